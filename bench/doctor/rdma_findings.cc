// Findings about the RDMA devices: where their writes go, and how far they are from persistent
// memory.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <set>
#include <sstream>

#include "bench/doctor/findings.h"
#include "methods/pci.h"

namespace perdura::bench {

namespace {

constexpr const char* kFolder = "sys/class/infiniband";

const char* on_or_off(bool value) { return value ? "on" : "off"; }

template <class Value>
Finding of(const std::string& name, const methods::Detected<Value>& detected, const auto& shown,
           const char* how) {
  return {"RDMA", name, detected.value ? std::string(shown(*detected.value)) : kUnknown,
          detected.reason, detected.value ? "" : how};
}

// The ways of the last-level cache that device writes may allocate, one bit each, on Intel Xeon
// Scalable processors of the first and second generation.
Finding ways_finding(const Tree& tree) {
  constexpr off_t kIioLlcWays = 0xC8B;
  Finding finding{"RDMA", "cache ways of DDIO", kUnknown,
                  "the register IIO_LLC_WAYS (MSR 0xC8B) of an Intel processor", ""};
  const int file = ::open(tree.at("dev/cpu/0/msr").c_str(), O_RDONLY | O_CLOEXEC);
  std::uint64_t ways = 0;
  const bool read = file >= 0 && ::pread(file, &ways, sizeof ways, kIioLlcWays) == sizeof ways;
  if (file >= 0) ::close(file);
  if (!read) {
    finding.evidence += " cannot be read";
    finding.how = "modprobe msr, and ask as root; only Xeon Scalable processors have it";
    return finding;
  }
  finding.value = fmt::format("{} ({:#x})", std::popcount(ways), ways);
  return finding;
}

std::string ports_of(const Tree& tree, const std::string& device) {
  std::vector<std::string> ports;
  const std::string folder = fmt::format("{}/{}/ports", kFolder, device);
  for (const std::string& port : tree.names(folder)) {
    const std::string at = folder + "/" + port;
    ports.push_back(fmt::format("port {}: {}, {}, {}", port, tree.line(at + "/state"),
                                tree.line(at + "/link_layer"), tree.line(at + "/rate")));
  }
  return fmt::format("{}", fmt::join(ports, "; "));
}

// True if the processor reports a hypervisor.
bool is_guest(const Tree& tree) {
  std::istringstream cpus(tree.read("proc/cpuinfo").value_or(""));
  for (std::string line; std::getline(cpus, line);) {
    if (line.starts_with("flags")) return (line + " ").find(" hypervisor ") != std::string::npos;
  }
  return false;
}

// The transport of devices whose queue pairs are InfiniBand's, by the link layer of all ports.
std::string infiniband_or_roce(const Tree& tree, const std::vector<std::string>& devices) {
  std::set<std::string> layers;
  for (const std::string& device : devices) {
    const std::string folder = fmt::format("{}/{}/ports", kFolder, device);
    const auto ports = tree.names(folder);
    if (ports.empty()) layers.insert("");
    for (const std::string& port : ports) {
      layers.insert(tree.line(fmt::format("{}/{}/link_layer", folder, port)));
    }
  }
  if (layers == std::set<std::string>{"InfiniBand"}) return "InfiniBand";
  if (layers == std::set<std::string>{"Ethernet"}) return "RoCE";
  if (layers == std::set<std::string>{"Ethernet", "InfiniBand"}) return "InfiniBand and RoCE";
  return "InfiniBand or RoCE";
}

std::vector<long long> nodes_of_persistent_memory(const Tree& tree) {
  std::set<long long> nodes;
  for (const std::string& region : tree.names("sys/bus/nd/devices", "region")) {
    const auto node = tree.number(fmt::format("sys/bus/nd/devices/{}/numa_node", region));
    if (node && *node >= 0) nodes.insert(*node);
  }
  return {nodes.begin(), nodes.end()};
}

// The distance between two NUMA nodes according to the firmware's SLIT, in which a node's distance
// to itself is 10.
std::optional<int> distance(const Tree& tree, long long from, long long to) {
  // The file has one column per online node, in ascending order.
  std::istringstream line(tree.line(fmt::format("sys/devices/system/node/node{}/distance", from)));
  for (const auto& [node, place] : [&] {
         std::set<std::pair<long long, std::string>> nodes;
         for (const std::string& name : tree.names("sys/devices/system/node", "node")) {
           const std::string digits = name.substr(4);
           if (digits.find_first_not_of("0123456789") != std::string::npos || digits.empty())
             continue;
           nodes.emplace(std::stoll(digits), name);
         }
         return nodes;
       }()) {
    int value = 0;
    if (!(line >> value)) return std::nullopt;
    if (node == to) return value;
  }
  return std::nullopt;
}

Finding numa_finding(const Tree& tree, const std::string& device) {
  Finding finding{"RDMA", device + ": NUMA distance to persistent memory", kUnknown, "", ""};
  const auto node = tree.number(fmt::format("{}/{}/device/numa_node", kFolder, device));
  const auto memory = nodes_of_persistent_memory(tree);
  if (memory.empty() && !tree.names("sys/bus/nd/devices", "region").empty()) {
    finding.evidence = "the regions of persistent memory say no node";
    finding.how = "'ndctl list -Rv' and the board's manual";
    return finding;
  }
  if (memory.empty() && !methods::shows_sysfs(tree.root())) {
    finding.evidence = kNoSysfs;
    finding.how = kAskOutside;
    return finding;
  }
  if (memory.empty()) {
    finding.value = "none";
    finding.evidence = "there is no region of persistent memory with a NUMA node";
    return finding;
  }
  if (!node || *node < 0) {
    finding.evidence = fmt::format("/{}/{}/device/numa_node says no node", kFolder, device);
    finding.how = "the slot's NUMA node is in the board's manual";
    return finding;
  }
  std::vector<std::string> distances;
  bool far = false;
  for (const long long at : memory) {
    const auto found = distance(tree, *node, at);
    distances.push_back(found ? std::to_string(*found) : kUnknown);
    far = far || at != *node;
  }
  finding.value = fmt::format("{}", fmt::join(distances, ", "));
  finding.evidence =
      fmt::format("it is at node {}, persistent memory at {}", *node, fmt::join(memory, ", "));
  if (far) finding.how = "place data in the persistent memory of the device's own node";
  return finding;
}

void add_device(const Host& host, const Tree& tree, const std::string& device,
                std::vector<Finding>& findings) {
  const std::string folder = fmt::format("{}/{}", kFolder, device);
  const std::string type = tree.line(folder + "/hca_type");
  const std::string firmware = tree.line(folder + "/fw_ver");
  findings.push_back({"RDMA", device, type.empty() ? "present" : type,
                      fmt::format("{}{}{}", firmware.empty() ? "" : "firmware " + firmware + "; ",
                                  ports_of(tree, device), ""),
                      ""});
  const auto features = host.features_of(device);
  for (const auto& [name, feature] :
       {std::pair{"FLUSH", &methods::DeviceFeatures::flush},
        std::pair{"FLUSH for persistence", &methods::DeviceFeatures::flush_persistence},
        std::pair{"ATOMIC WRITE", &methods::DeviceFeatures::atomic_write}}) {
    Finding finding{"RDMA", fmt::format("{}: {}", device, name), kUnknown, "", ""};
    if (features) {
      finding.value = yes_or_no((*features).*feature);
      finding.evidence = "ibv_query_device_ex";
    } else {
      finding.evidence = features.error();
      finding.how = "ask with access to /dev/infiniband, or see 'ibv_devinfo -v'";
    }
    findings.push_back(finding);
  }
  const auto pci = methods::pci_device_of(tree.at(folder + "/device"));
  if (pci) {
    auto relaxed =
        of(device + ": relaxed ordering", methods::relaxed_ordering_of(*pci, is_guest(tree)),
           on_or_off, "ask as root: 'lspci -vv' shows RlxdOrd of DevCtl");
    if (relaxed.value == "on") {
      relaxed.how =
          "it holds only for memory that is registered with IBV_ACCESS_RELAXED_ORDERING; methods "
          "of two ordered WRITEs need memory that is not";
    }
    findings.push_back(relaxed);
  } else {
    findings.push_back({"RDMA", device + ": relaxed ordering", kUnknown,
                        fmt::format("{} is no PCI device", device),
                        "a driver in software has none"});
  }
  findings.push_back(numa_finding(tree, device));
}

}  // namespace

std::vector<Finding> rdma_findings(const Host& host, const Tree& tree,
                                   const methods::Detection& found) {
  std::vector<Finding> findings;
  const auto devices = tree.names(kFolder);
  findings.push_back(
      {"RDMA", "devices", count_of(tree, devices.size()),
       devices.empty() ? found.transport.reason : fmt::format("{}", fmt::join(devices, ", ")),
       devices.empty() ? "load the device's driver; 'rdma link' shows devices" : ""});
  findings.push_back(of("DDIO", found.ddio, on_or_off,
                        "see the setup menu, or measure: with DDIO a reader's CPU finds what was "
                        "written in its cache; then --ddio on or off"));
  findings.push_back(ways_finding(tree));
  findings.push_back(of(
      "transport", found.transport,
      [&](auto transport) {
        return transport == pmem::Transport::iwarp ? "iWARP" : infiniband_or_roce(tree, devices);
      },
      "--transport ib, roce or iwarp"));
  for (const std::string& device : devices) add_device(host, tree, device, findings);
  return findings;
}

}  // namespace perdura::bench
