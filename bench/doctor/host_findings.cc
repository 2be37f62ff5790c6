// Findings about the host that disturb or limit a measurement, apart from persistence.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <sstream>

#include "bench/doctor/findings.h"

namespace perdura::bench {

namespace {

Finding huge_pages(const Tree& tree) {
  constexpr const char* kFolder = "sys/kernel/mm/hugepages";
  Finding finding{"host", "huge pages", "none", fmt::format("/{}", kFolder), ""};
  if (!tree.has(kFolder)) {
    finding.value = kUnknown;
    finding.evidence =
        fmt::format("there is no /{}: the kernel has none, or /sys is not shown", kFolder);
    finding.how = "'grep Huge /proc/meminfo' shows what is set aside";
    return finding;
  }
  std::vector<std::string> pools;
  bool silent = false;
  for (const std::string& size : tree.names(kFolder, "hugepages-")) {
    const std::string folder = fmt::format("{}/{}", kFolder, size);
    const auto all = tree.number(folder + "/nr_hugepages");
    const auto free = tree.number(folder + "/free_hugepages");
    if (all == 0) continue;
    silent = silent || !all;
    pools.push_back(fmt::format("{} of {}, {} free", all ? std::to_string(*all) : kUnknown,
                                size.substr(10), free ? std::to_string(*free) : kUnknown));
  }
  if (silent) {
    finding.value = kUnknown;
    finding.evidence += fmt::format(": {}", fmt::join(pools, "; "));
  } else if (!pools.empty()) {
    finding.value = fmt::format("{}", fmt::join(pools, "; "));
  } else {
    finding.how = "sysctl vm.nr_hugepages=N; a device then needs fewer translations of addresses";
  }
  return finding;
}

Finding transparent_huge_pages(const Tree& tree) {
  constexpr const char* kFile = "sys/kernel/mm/transparent_hugepage/enabled";
  const std::string line = tree.line(kFile);
  const std::size_t begin = line.find('[');
  const std::size_t end = line.find(']');
  Finding finding{"host", "transparent huge pages", kUnknown, fmt::format("/{}", kFile), ""};
  if (begin != std::string::npos && end != std::string::npos && end > begin) {
    finding.value = line.substr(begin + 1, end - begin - 1);
  } else {
    finding.evidence += " cannot be read";
  }
  return finding;
}

// The limit on locked memory, which registering memory with a device needs.
Finding locked_memory(const Tree& tree) {
  Finding finding{"host", "memlock", kUnknown, "/proc/self/limits", ""};
  std::istringstream limits(tree.read("proc/self/limits").value_or(""));
  constexpr std::string_view kName = "Max locked memory";
  for (std::string line; std::getline(limits, line);) {
    if (!line.starts_with(kName)) continue;
    std::istringstream words(line.substr(kName.size()));
    std::string soft;
    words >> soft;
    finding.value = soft == "unlimited" ? soft : soft + " bytes";
    if (soft != "unlimited") {
      finding.how =
          "raise it to what is registered with a device: ulimit -l unlimited, or memlock in "
          "/etc/security/limits.conf";
    }
  }
  if (finding.value == kUnknown) finding.evidence += " does not say";
  return finding;
}

Finding governor(const Tree& tree) {
  std::map<std::string, int> governors;
  bool silent = false;
  for (const std::string& cpu : tree.names("sys/devices/system/cpu", "cpu")) {
    // The folder also has cpufreq and cpuidle.
    if (cpu.size() == 3 || cpu.find_first_not_of("0123456789", 3) != std::string::npos) continue;
    const std::string folder = fmt::format("sys/devices/system/cpu/{}", cpu);
    const std::string said = tree.line(folder + "/cpufreq/scaling_governor");
    // A CPU that is offline has no governor.
    const bool offline = tree.number(folder + "/online") == 0;
    if (!said.empty()) {
      ++governors[said];
    } else if (!offline) {
      silent = true;
    }
  }
  Finding finding{"host", "CPU frequency governor", kUnknown,
                  "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", ""};
  if (governors.empty()) {
    finding.evidence += ": there is none";
    finding.how = "a virtual machine's host decides; else load a cpufreq driver";
    return finding;
  }
  std::vector<std::string> names;
  for (const auto& [name, count] : governors) {
    names.push_back(governors.size() == 1 ? name : fmt::format("{} on {} CPUs", name, count));
  }
  finding.value = fmt::format("{}", fmt::join(names, ", "));
  if (silent) {
    finding.evidence += fmt::format(": {}, and some CPUs do not say", finding.value);
    finding.value = kUnknown;
    finding.how = "cpupower frequency-info";
  } else if (finding.value != "performance") {
    finding.how = "latencies vary with the frequency: cpupower frequency-set -g performance";
  }
  return finding;
}

Finding smt(const Tree& tree) {
  Finding finding{"host", "SMT", kUnknown, "/sys/devices/system/cpu/smt/active", ""};
  const auto active = tree.number("sys/devices/system/cpu/smt/active");
  if (!active) {
    finding.evidence += " does not say";
    finding.how = "lscpu shows threads per core";
    return finding;
  }
  finding.value = *active != 0 ? "on" : "off";
  if (*active != 0) finding.how = "two threads of a core slow each other: pin one to each core";
  return finding;
}

Finding numa_nodes(const Tree& tree) {
  std::vector<std::string> nodes;
  for (const std::string& node : tree.names("sys/devices/system/node", "node")) {
    const std::string cpus = tree.line(fmt::format("sys/devices/system/node/{}/cpulist", node));
    nodes.push_back(
        fmt::format("{} {}", node, cpus.empty() ? "without CPUs" : "with CPUs " + cpus));
  }
  return {"host", "NUMA nodes", nodes.empty() ? kUnknown : std::to_string(nodes.size()),
          nodes.empty() ? "there is no /sys/devices/system/node"
                        : fmt::format("{}", fmt::join(nodes, "; ")),
          nodes.empty() ? "lscpu shows NUMA nodes" : ""};
}

}  // namespace

std::vector<Finding> host_findings(const Tree& tree) {
  return {numa_nodes(tree),    huge_pages(tree), transparent_huge_pages(tree),
          locked_memory(tree), governor(tree),   smt(tree)};
}

}  // namespace perdura::bench
