#include "systems/persistence/detection.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>

namespace perdura::persistence {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> entries(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> result;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with(prefix)) result.push_back(entry.path());
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::string first_line(const fs::path& file) {
  std::ifstream input(file);
  std::string line;
  std::getline(input, line);
  return line;
}

// One value for all of them, or none.
template <class Value>
Detected<Value> agreed(const std::vector<std::pair<std::optional<Value>, std::string>>& said,
                       const std::string& if_none) {
  if (said.empty()) return {std::nullopt, if_none};
  for (const auto& [value, reason] : said) {
    if (!value) return {std::nullopt, reason};
    if (*value != *said.front().first) {
      return {std::nullopt, fmt::format("{}, but {}", said.front().second, reason)};
    }
  }
  return {said.front().first, said.front().second};
}

Detected<pmem::PersistenceDomain> detect_domain(const fs::path& root) {
  std::vector<std::pair<std::optional<pmem::PersistenceDomain>, std::string>> said;
  for (const fs::path& region : entries(root / "sys/bus/nd/devices", "region")) {
    const fs::path file = region / "persistence_domain";
    const std::string word = first_line(file);
    if (word.empty()) continue;
    std::optional<pmem::PersistenceDomain> domain;
    if (word == "memory_controller") domain = pmem::PersistenceDomain::dmp;
    if (word == "cpu_cache") domain = pmem::PersistenceDomain::mhp;
    said.emplace_back(domain, fmt::format("{} says {}", region.filename().string(), word));
  }
  return agreed(said, "there is no region of persistent memory (/sys/bus/nd/devices/region*)");
}

Detected<pmem::Transport> detect_transport(const fs::path& root) {
  std::vector<std::pair<std::optional<pmem::Transport>, std::string>> said;
  for (const fs::path& device : entries(root / "sys/class/infiniband", "")) {
    const std::string type = first_line(device / "node_type");
    std::optional<pmem::Transport> transport;
    if (type.starts_with("1:")) transport = pmem::Transport::infiniband;
    if (type.starts_with("4:")) transport = pmem::Transport::iwarp;
    said.emplace_back(transport,
                      fmt::format("{} is a {}", device.filename().string(),
                                  type.size() > 3 ? type.substr(3) : "device of no type"));
  }
  return agreed(said, "there is no RDMA device (/sys/class/infiniband)");
}

Detected<bool> detect_dax(const fs::path& root) {
  const auto devices = entries(root / "sys/bus/dax/devices", "dax");
  if (devices.empty()) return {false, "there is no device DAX (/sys/bus/dax/devices)"};
  return {true, fmt::format("{} is there", devices.front().filename().string())};
}

}  // namespace

Detection detect(const fs::path& root) {
  return {detect_domain(root),
          {std::nullopt, "Linux does not tell where a device's messages are placed"},
          detect_transport(root),
          detect_dax(root)};
}

}  // namespace perdura::persistence
