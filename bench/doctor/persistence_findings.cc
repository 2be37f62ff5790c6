// Findings about persistent memory: where it is, how far its persistence domain reaches, and what
// the firmware reports about it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/doctor/findings.h"
#include "methods/acpi_tables.h"
#include "platform/base/json.h"

namespace perdura::bench {

namespace {

std::string size_text(Bytes size) {
  if (size >= GiB) return fmt::format("{:.4g} GiB", static_cast<double>(size) / GiB);
  return fmt::format("{:.4g} MiB", static_cast<double>(size) / MiB);
}

// Reads an ACPI table of the firmware. If that is impossible, `finding` says why.
std::optional<std::string> table(const Tree& tree, const char* name, Finding& finding) {
  const std::string path = fmt::format("sys/firmware/acpi/tables/{}", name);
  auto bytes = tree.read(path);
  if (bytes && !bytes->empty()) return bytes;
  finding.value = kUnknown;
  if (tree.has(path)) {
    finding.evidence = fmt::format("/{} cannot be read", path);
    finding.how = "ask as root";
  } else if (!tree.names("sys/firmware/acpi/tables").empty()) {
    finding.value = "none";
    finding.evidence = fmt::format("the firmware has no {}", name);
  } else {
    finding.evidence = "there is no table in /sys/firmware/acpi/tables";
    finding.how = "boot with ACPI; a container may hide it";
  }
  return std::nullopt;
}

Finding nfit_finding(const Tree& tree) {
  Finding finding{"persistence", "NFIT", "", "/sys/firmware/acpi/tables/NFIT", ""};
  const auto bytes = table(tree, "NFIT", finding);
  if (!bytes) return finding;
  const auto nfit = methods::read_nfit(*bytes);
  if (!nfit) {
    finding.value = kUnknown;
    finding.evidence += " is damaged";
    return finding;
  }
  const auto said = [](const std::optional<bool>& flushes) {
    return flushes ? yes_or_no(*flushes) : "not said";
  };
  finding.value = fmt::format("{} {} of persistent memory", nfit->persistent.size(),
                              nfit->persistent.size() == 1 ? "range" : "ranges");
  finding.evidence += fmt::format(": on power loss caches are flushed: {}; memory controllers: {}",
                                  said(nfit->flushes_caches), said(nfit->flushes_controllers));
  if (!nfit->flushes_caches) {
    finding.how = "the firmware has no platform capabilities; see the setup menu for eADR";
  }
  return finding;
}

Finding srat_finding(const Tree& tree) {
  Finding finding{"persistence", "SRAT", "", "/sys/firmware/acpi/tables/SRAT", ""};
  const auto bytes = table(tree, "SRAT", finding);
  if (!bytes) return finding;
  const auto srat = methods::read_srat(*bytes);
  if (!srat) {
    finding.value = kUnknown;
    finding.evidence += " is damaged";
    return finding;
  }
  std::vector<std::string> persistent;
  for (const auto& range : srat->memory) {
    if (!range.persistent) continue;
    persistent.push_back(
        fmt::format("{} in proximity domain {}", size_text(range.length), range.proximity_domain));
  }
  finding.value = persistent.empty() ? "no persistent memory" : "persistent memory";
  if (!persistent.empty()) finding.evidence += fmt::format(": {}", fmt::join(persistent, ", "));
  return finding;
}

Finding hmat_finding(const Tree& tree) {
  Finding finding{"persistence", "HMAT", "", "/sys/firmware/acpi/tables/HMAT", ""};
  const auto bytes = table(tree, "HMAT", finding);
  if (!bytes) return finding;
  const auto hmat = methods::read_hmat(*bytes);
  if (!hmat || hmat->latencies.empty()) {
    finding.value = kUnknown;
    finding.evidence += " tells no read latency, or is not of revision 2";
    finding.how = "measure it: perdura probe --set memory";
    return finding;
  }
  std::vector<std::string> latencies;
  for (const auto& latency : hmat->latencies) {
    latencies.push_back(fmt::format("{} to {} {:.0f} ns", latency.initiator, latency.target,
                                    1000 * to_microseconds(latency.read)));
  }
  finding.value = "read latencies";
  finding.evidence += fmt::format(", by proximity domain: {}", fmt::join(latencies, ", "));
  return finding;
}

// The persistence domain of each region, as the output of ndctl states it.
std::vector<std::string> domains_of(const std::string& text) {
  std::vector<std::string> domains;
  const auto visit = [&](const auto& self, const Json& json) -> void {
    if (json.is_object() && json.contains("dev") && json["dev"].is_string()) {
      const auto name = json["dev"].template get<std::string>();
      const Json* const domain = json.find("persistence_domain");
      if (domain != nullptr && domain->is_string()) {
        domains.push_back(fmt::format("{} says {}", name, domain->template get<std::string>()));
      } else if (name.starts_with("region")) {
        domains.push_back(fmt::format("{} does not say", name));
      }
    }
    if (json.is_object()) {
      for (const auto& [name, member] : json.items()) self(self, member);
    } else if (json.is_array()) {
      for (const Json& element : json) self(self, element);
    }
  };
  visit(visit, Json::parse_or_null(text));
  return domains;
}

Finding ndctl_finding(const Host& host) {
  Finding finding{"persistence", "ndctl", kUnknown, "", ""};
  const auto text = host.ndctl_regions();
  if (!text) {
    finding.evidence = "there is no ndctl, or it fails";
    finding.how = "install ndctl and call 'ndctl list -R' as root";
    return finding;
  }
  // Without any region ndctl prints nothing.
  if (text->find_first_not_of(" \n") != std::string::npos && Json::parse_or_null(*text).is_null()) {
    finding.evidence = "ndctl list -R prints no JSON";
    finding.how = "call 'ndctl list -R' as root";
    return finding;
  }
  const auto domains = domains_of(*text);
  finding.value = domains.empty() ? "no region" : "regions";
  finding.evidence = domains.empty() ? "ndctl list -R names no region"
                                     : fmt::format("{}", fmt::join(domains, ", "));
  return finding;
}

constexpr const char* kNvdimmBus = "sys/bus/nd/devices";
constexpr const char* kCxlBus = "sys/bus/cxl/devices";

Finding nvdimm_finding(const Tree& tree) {
  const auto dimms = tree.names(kNvdimmBus, "nmem");
  std::vector<std::string> shown;
  for (const std::string& region : tree.names(kNvdimmBus, "region")) {
    const std::string folder = fmt::format("{}/{}", kNvdimmBus, region);
    const auto size = tree.number(folder + "/size");
    const auto node = tree.number(folder + "/numa_node");
    shown.push_back(fmt::format(
        "{}{}{}", region, size ? fmt::format(" of {}", size_text(static_cast<Bytes>(*size))) : "",
        node ? fmt::format(" at NUMA node {}", *node) : ""));
  }
  Finding finding{"persistence", "NVDIMMs", count_of(tree, dimms.size()), "/sys/bus/nd/devices",
                  ""};
  for (const std::string& dimm : dimms) {
    // Such as "not_armed flush_fail": the DIMM does not keep what its machine promises.
    const std::string flags = tree.line(fmt::format("{}/{}/nfit/flags", kNvdimmBus, dimm));
    if (flags.empty()) continue;
    shown.push_back(fmt::format("{} reports {}", dimm, flags));
    finding.how = "'ndctl list -DH' shows its health; what is flushed to it may be lost";
  }
  if (!shown.empty()) finding.evidence += fmt::format(": {}", fmt::join(shown, ", "));
  if (!finding.known()) finding.evidence = kNoSysfs, finding.how = kAskOutside;
  return finding;
}

// Bytes of a CXL device's persistent ("pmem") or volatile ("ram") memory.
std::optional<Bytes> cxl_size(const Tree& tree, const std::string& device, const char* kind) {
  // The value is in hexadecimal.
  const std::string text = tree.line(fmt::format("{}/{}/{}/size", kCxlBus, device, kind));
  if (text.empty()) return std::nullopt;
  return std::strtoull(text.c_str(), nullptr, 0);
}

Finding cxl_finding(const Tree& tree) {
  std::vector<std::string> memories;
  for (const std::string& device : tree.names(kCxlBus, "mem")) {
    const auto size = [&](const char* kind) -> std::string {
      const auto found = cxl_size(tree, device, kind);
      return found ? size_text(*found) : kUnknown;
    };
    memories.push_back(
        fmt::format("{} with {} persistent and {} volatile", device, size("pmem"), size("ram")));
  }
  Finding finding{"persistence", "CXL memory", count_of(tree, memories.size()),
                  "/sys/bus/cxl/devices", ""};
  if (!memories.empty()) {
    finding.evidence += fmt::format(": {}", fmt::join(memories, ", "));
    finding.how =
        "whether its persistence domain reaches to the caches (global persistent flush) is the "
        "firmware's to say: 'cxl list -M', the setup menu";
  }
  if (!finding.known()) finding.evidence = kNoSysfs, finding.how = kAskOutside;
  return finding;
}

// The number of times that memory lost power before everything in its persistence domain had
// reached the medium. Drivers of NVDIMMs (NFIT, PAPR) and of persistent CXL memory keep the count
// in an attribute of the device "nmem".
Finding dirty_shutdowns(const Tree& tree) {
  Finding finding{"persistence", "dirty shutdowns", "", "/sys/bus/nd/devices/nmem*", ""};
  std::vector<std::string> counts;
  bool all_known = true;
  bool some = false;
  bool some_cxl = false;
  for (const std::string& dimm : tree.names(kNvdimmBus, "nmem")) {
    const std::string folder = fmt::format("{}/{}", kNvdimmBus, dimm);
    std::optional<long long> count;
    for (const char* driver : {"nfit", "cxl", "papr"}) {
      if (!count) count = tree.number(fmt::format("{}/{}/dirty_shutdown", folder, driver));
    }
    some_cxl = some_cxl || tree.has(folder + "/cxl");
    all_known = all_known && count.has_value();
    some = some || count.value_or(0) > 0;
    counts.push_back(fmt::format("{} {}", dimm, count ? std::to_string(*count) : kUnknown));
  }
  for (const std::string& device : tree.names(kCxlBus, "mem")) {
    if (some_cxl || cxl_size(tree, device, "pmem").value_or(0) == 0) continue;
    all_known = false;
    counts.push_back(fmt::format("{} {}", device, kUnknown));
  }
  if (counts.empty()) {
    finding.value = methods::shows_sysfs(tree.root()) ? "none" : kUnknown;
    finding.evidence = finding.known() ? "no device that counts them is shown" : kNoSysfs;
    if (!finding.known()) finding.how = kAskOutside;
    return finding;
  }
  finding.value = all_known ? fmt::format("{}", fmt::join(counts, ", ")) : kUnknown;
  if (!all_known) {
    finding.evidence += fmt::format(": {}", fmt::join(counts, ", "));
    finding.how = "a newer kernel tells (dirty_shutdown), or 'ndctl list -DH'";
  }
  if (some) {
    finding.how =
        "each may have lost what was durable; a count that grows means that the persistence domain "
        "is not what the machine says";
  }
  return finding;
}

template <class Value>
Finding of(const char* section, const char* name, const methods::Detected<Value>& detected,
           const auto& shown, const char* how) {
  return {section, name, detected.value ? std::string(shown(*detected.value)) : kUnknown,
          detected.reason, detected.value ? "" : how};
}

}  // namespace

std::optional<bool> has_persistent_memory(const Tree& tree, const methods::Detection& found) {
  if (!tree.names(kNvdimmBus, "region").empty()) return true;
  if (found.domain.value || found.device_dax.value == true || found.file_system_dax.value == true) {
    return true;
  }
  for (const std::string& device : tree.names(kCxlBus, "mem")) {
    const auto size = cxl_size(tree, device, "pmem");
    if (!size) return std::nullopt;
    if (*size != 0) return true;
  }
  if (!methods::shows_sysfs(tree.root())) return std::nullopt;
  if (!found.device_dax.value || !found.file_system_dax.value) return std::nullopt;
  return false;
}

std::vector<Finding> persistence_findings(const Host& host, const Tree& tree,
                                          const methods::Detection& found) {
  return {
      of(
          "persistence", "persistence domain", found.domain,
          [](auto domain) { return to_string(domain); },
          "see the setup menu for ADR or eADR, or the batteries' documents; then --domain dmp, mhp "
          "or wsp"),
      nfit_finding(tree),
      ndctl_finding(host),
      nvdimm_finding(tree),
      cxl_finding(tree),
      dirty_shutdowns(tree),
      srat_finding(tree),
      hmat_finding(tree),
      of("persistence", "device DAX", found.device_dax, yes_or_no,
         "'daxctl list' and 'ndctl list -N' show which memory a DAX device is"),
      of("persistence", "file-system DAX", found.file_system_dax, yes_or_no,
         "statx(2) tells of each file"),
  };
}

}  // namespace perdura::bench
