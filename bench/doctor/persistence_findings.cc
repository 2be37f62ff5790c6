// Findings about persistent memory: where it is, how far its persistence domain reaches, and what
// the firmware reports about it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/doctor/findings.h"
#include "persistence/acpi_tables.h"
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
  } else if (tree.has("sys/firmware/acpi/tables")) {
    finding.value = "none";
    finding.evidence = fmt::format("the firmware has no {}", name);
  } else {
    finding.evidence = "there is no /sys/firmware/acpi/tables";
    finding.how = "boot with ACPI; a container may hide it";
  }
  return std::nullopt;
}

Finding nfit_finding(const Tree& tree) {
  Finding finding{"persistence", "NFIT", "", "/sys/firmware/acpi/tables/NFIT", ""};
  const auto bytes = table(tree, "NFIT", finding);
  if (!bytes) return finding;
  const auto nfit = persistence::read_nfit(*bytes);
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
  const auto srat = persistence::read_srat(*bytes);
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
  const auto hmat = persistence::read_hmat(*bytes);
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

// The persistence domains that occur in the output of ndctl.
std::vector<std::string> domains_of(const std::string& text) {
  std::vector<std::string> domains;
  const auto visit = [&](const auto& self, const Json& json) -> void {
    if (json.is_object() && json.contains("persistence_domain") &&
        json["persistence_domain"].is_string()) {
      domains.push_back(fmt::format("{} says {}", json.value("dev", "a region"),
                                    json["persistence_domain"].template get<std::string>()));
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
  const auto domains = domains_of(*text);
  finding.value = domains.empty() ? "no region" : "regions";
  finding.evidence = domains.empty() ? "ndctl list -R names no persistence domain"
                                     : fmt::format("{}", fmt::join(domains, ", "));
  return finding;
}

Finding nvdimm_finding(const Tree& tree) {
  const auto dimms = tree.names("sys/bus/nd/devices", "nmem");
  std::vector<std::string> regions;
  for (const std::string& region : tree.names("sys/bus/nd/devices", "region")) {
    const std::string folder = "sys/bus/nd/devices/" + region;
    const auto size = tree.number(folder + "/size");
    const auto node = tree.number(folder + "/numa_node");
    regions.push_back(fmt::format(
        "{}{}{}", region, size ? fmt::format(" of {}", size_text(static_cast<Bytes>(*size))) : "",
        node ? fmt::format(" at NUMA node {}", *node) : ""));
  }
  Finding finding{"persistence", "NVDIMMs", std::to_string(dimms.size()), "/sys/bus/nd/devices",
                  ""};
  if (!regions.empty()) finding.evidence += fmt::format(": {}", fmt::join(regions, ", "));
  return finding;
}

Finding cxl_finding(const Tree& tree) {
  std::vector<std::string> memories;
  for (const std::string& device : tree.names("sys/bus/cxl/devices", "mem")) {
    const auto size = [&](const char* kind) -> std::string {
      // The value is in hexadecimal.
      const std::string text =
          tree.line(fmt::format("sys/bus/cxl/devices/{}/{}/size", device, kind));
      return text.empty() ? "unknown" : size_text(std::strtoull(text.c_str(), nullptr, 0));
    };
    memories.push_back(
        fmt::format("{} with {} persistent and {} volatile", device, size("pmem"), size("ram")));
  }
  Finding finding{"persistence", "CXL memory", std::to_string(memories.size()),
                  "/sys/bus/cxl/devices", ""};
  if (!memories.empty()) {
    finding.evidence += fmt::format(": {}", fmt::join(memories, ", "));
    finding.how =
        "whether its persistence domain reaches to the caches (global persistent flush) is the "
        "firmware's to say: 'cxl list -M', the setup menu";
  }
  return finding;
}

template <class Value>
Finding of(const char* section, const char* name, const persistence::Detected<Value>& detected,
           const auto& shown, const char* how) {
  return {section, name, detected.value ? std::string(shown(*detected.value)) : kUnknown,
          detected.reason, detected.value ? "" : how};
}

}  // namespace

std::vector<Finding> persistence_findings(const Host& host, const Tree& tree,
                                          const persistence::Detection& found) {
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
      srat_finding(tree),
      hmat_finding(tree),
      of("persistence", "device DAX", found.device_dax, yes_or_no, ""),
      of("persistence", "file-system DAX", found.file_system_dax, yes_or_no,
         "statx(2) tells of each file"),
  };
}

}  // namespace perdura::bench
