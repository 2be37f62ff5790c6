#include "harness/results/machine.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>

#include "platform/base/json.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream input(file);
  std::string line;
  std::getline(input, line);
  return line.empty() ? "unknown" : line;
}

// The value of the first line "key   : value" with this key.
std::string value_in(const fs::path& file, std::string_view key) {
  std::ifstream input(file);
  for (std::string line; std::getline(input, line);) {
    const std::size_t at = line.find(key);
    const std::size_t colon = line.find(':');
    if (at == std::string::npos || colon == std::string::npos || at > colon) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    if (start != std::string::npos) return line.substr(start);
  }
  return "unknown";
}

// The entries of a folder named prefix0, prefix1, and so on; all entries if the prefix is empty.
std::vector<fs::path> entries(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> result;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const bool numbered = name.size() > prefix.size() &&
                          std::isdigit(static_cast<unsigned char>(name[prefix.size()])) != 0;
    if (prefix.empty() || numbered) result.push_back(entry.path());
  }
  // Numbers are compared by value, so that node2 comes before node10.
  std::sort(result.begin(), result.end(), [](const fs::path& a, const fs::path& b) {
    const std::string left = a.filename().string();
    const std::string right = b.filename().string();
    return std::pair(left.size(), left) < std::pair(right.size(), right);
  });
  return result;
}

unsigned usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 0;
  return static_cast<unsigned>(CPU_COUNT(&set));
}

Json numa_nodes(const fs::path& root) {
  Json nodes = Json::array();
  for (const fs::path& node : entries(root / "sys/devices/system/node", "node")) {
    nodes.push_back({{"name", node.filename().string()},
                     {"cpus", first_line(node / "cpulist")},
                     {"memory", value_in(node / "meminfo", "MemTotal")},
                     {"distances", first_line(node / "distance")}});
  }
  return nodes;
}

Json rdma_devices(const fs::path& root) {
  Json devices = Json::array();
  for (const fs::path& device : entries(root / "sys/class/infiniband", "")) {
    Json ports = Json::array();
    for (const fs::path& port : entries(device / "ports", "")) {
      ports.push_back({{"port", port.filename().string()},
                       {"state", first_line(port / "state")},
                       {"rate", first_line(port / "rate")},
                       {"link_layer", first_line(port / "link_layer")}});
    }
    devices.push_back({{"name", device.filename().string()},
                       {"description", first_line(device / "node_desc")},
                       {"firmware", first_line(device / "fw_ver")},
                       {"type", first_line(device / "hca_type")},
                       {"numa_node", first_line(device / "device/numa_node")},
                       {"ports", ports}});
  }
  return devices;
}

Json pm_namespaces(const fs::path& root) {
  Json namespaces = Json::array();
  for (const fs::path& each : entries(root / "sys/bus/nd/devices", "namespace")) {
    namespaces.push_back({{"name", each.filename().string()},
                          {"mode", first_line(each / "mode")},
                          {"size", first_line(each / "size")},
                          {"numa_node", first_line(each / "numa_node")}});
  }
  return namespaces;
}

}  // namespace

std::string describe_machine(const fs::path& root, std::span<const ResponderProperty> responder) {
  Json machine;
  machine["host"] = first_line(root / "proc/sys/kernel/hostname");
  machine["kernel"] = fmt::format("{} {}", first_line(root / "proc/sys/kernel/ostype"),
                                  first_line(root / "proc/sys/kernel/osrelease"));
  machine["cpu"] = value_in(root / "proc/cpuinfo", "model name");
  machine["microcode"] = value_in(root / "proc/cpuinfo", "microcode");
  machine["usable_cores"] = usable_cores();
  machine["governor"] = first_line(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  machine["numa_nodes"] = numa_nodes(root);
  machine["rdma_devices"] = rdma_devices(root);
  machine["pm_namespaces"] = pm_namespaces(root);
  machine["responder"] = Json::object();
  for (const ResponderProperty& property : responder) {
    machine["responder"][property.name] = {{"value", property.value}, {"reason", property.reason}};
  }
  return machine.dump();
}

std::string machine_name(const std::string& description) {
  const auto machine = Json::parse(description);
  return fmt::format("{} ({}, {})", machine.at("host").get<std::string>(),
                     machine.at("cpu").get<std::string>(), machine.at("kernel").get<std::string>());
}

std::vector<std::string> distinct_machines(std::vector<std::string> descriptions) {
  std::set<std::string> seen;
  std::erase_if(descriptions, [&](const std::string& description) {
    return !seen.insert(machine_name(description)).second;
  });
  return descriptions;
}

}  // namespace perdura::harness
