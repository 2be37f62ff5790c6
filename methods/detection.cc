#include "methods/detection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <system_error>

#include "methods/acpi_tables.h"
#include "methods/pci.h"
#include "platform/base/path_kind.h"
#include "platform/pmem/mapped/dax_memory.h"

namespace perdura::methods {

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

// The first line of a device's attribute, or the reason why there is none.
struct Attribute {
  std::string word{};
  std::string silence{};  // empty if there is a word
};

Attribute attribute_of(const fs::path& device, const char* attribute) {
  const fs::path file = device / attribute;
  const std::string name = (device.filename() / attribute).string();
  errno = 0;
  std::ifstream input(file);
  std::string line;
  if (input && std::getline(input, line) && !line.empty()) return {line, {}};
  const int error = errno;
  if (error == ENOENT) {
    return {{},
            fmt::format("{} does not say: it has no {}", device.filename().string(), attribute)};
  }
  if (error != 0) return {{}, fmt::format("{} cannot be read: {}", name, std::strerror(error))};
  return {{},
          fmt::format("{} does not say: its {} is empty", device.filename().string(), attribute)};
}

constexpr const char* kNoSysfs =
    "there is no /sys/bus, which every Linux has; a container or a copy may leave it out";

// The value on which all sources agree; unknown if they disagree, or if there is none.
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

std::optional<Nfit> nfit_of(const fs::path& root) {
  std::ifstream input(root / "sys/firmware/acpi/tables/NFIT", std::ios::binary);
  return read_nfit(
      std::string{std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()});
}

// The persistence domain that each region states for itself. A region that states none makes the
// domain unknown: its memory may have a different one.
Detected<pmem::PersistenceDomain> detect_domain(const fs::path& root) {
  std::vector<std::pair<std::optional<pmem::PersistenceDomain>, std::string>> said;
  for (const fs::path& region : entries(root / "sys/bus/nd/devices", "region")) {
    // Memory of these types is not persistent memory that a device can write to.
    const std::string type = first_line(region / "devtype");
    if (type == "nd_volatile" || type == "nd_blk") continue;
    const auto [word, silence] = attribute_of(region, "persistence_domain");
    std::optional<pmem::PersistenceDomain> domain;
    if (word == "memory_controller") domain = pmem::PersistenceDomain::dmp;
    if (word == "cpu_cache") domain = pmem::PersistenceDomain::mhp;
    said.emplace_back(domain, silence.empty()
                                  ? fmt::format("{} says {}", region.filename().string(), word)
                                  : silence);
  }
  if (const auto nfit = nfit_of(root); nfit && (!said.empty() || !nfit->persistent.empty())) {
    // Firmware that reports neither capability has reported nothing.
    if (nfit->flushes_caches.value_or(false)) {
      said.emplace_back(pmem::PersistenceDomain::mhp,
                        "the firmware (NFIT) says that CPU caches are flushed when power is lost");
    } else if (nfit->flushes_controllers.value_or(false)) {
      said.emplace_back(
          pmem::PersistenceDomain::dmp,
          "the firmware (NFIT) says that memory controllers are flushed when power is lost");
    } else if (said.empty()) {
      said.emplace_back(std::nullopt,
                        "the firmware (NFIT) has persistent memory, and does not say what is "
                        "flushed when power is lost");
    }
  }
  if (said.empty() && !shows_sysfs(root)) return {std::nullopt, kNoSysfs};
  return agreed(said, "there is no region of persistent memory (/sys/bus/nd/devices/region*)");
}

constexpr const char* kNoRdmaDevice = "there is no RDMA device (/sys/class/infiniband)";

// The link layers of a device's ports tell InfiniBand from RoCE, which are one transport for the
// methods: " on Ethernet".
std::string on_link_layers(const fs::path& device) {
  std::set<std::string> layers;
  for (const fs::path& port : entries(device / "ports", "")) {
    if (const std::string layer = first_line(port / "link_layer"); !layer.empty()) {
      layers.insert(layer);
    }
  }
  return layers.empty() ? "" : fmt::format(" on {}", fmt::join(layers, " and "));
}

Detected<pmem::Transport> detect_transport(const std::vector<fs::path>& devices,
                                           const char* if_none) {
  std::vector<std::pair<std::optional<pmem::Transport>, std::string>> said;
  for (const fs::path& device : devices) {
    const std::string type = first_line(device / "node_type");
    std::optional<pmem::Transport> transport;
    if (type.starts_with("1:")) transport = pmem::Transport::infiniband;
    if (type.starts_with("4:")) transport = pmem::Transport::iwarp;
    said.emplace_back(transport, fmt::format("{} is a {}{}", device.filename().string(),
                                             type.size() > 3 ? type.substr(3) : "device of no type",
                                             on_link_layers(device)));
  }
  return agreed(said, if_none);
}

Detected<bool> detect_ddio(const std::vector<fs::path>& devices, const char* if_none) {
  std::vector<std::pair<std::optional<bool>, std::string>> said;
  for (const fs::path& device : devices) {
    const std::string name = device.filename().string();
    const auto pci = pci_device_of(device / "device");
    if (!pci) {
      said.emplace_back(
          std::nullopt,
          fmt::format("{} is no PCI device; if a driver in software, a CPU stores what "
                      "it receives, as with DDIO",
                      name));
      continue;
    }
    const auto port = root_port_of(*pci);
    if (!port) {
      said.emplace_back(std::nullopt, fmt::format("{} is below no root port that is shown", name));
      continue;
    }
    auto found = allocating_writes_of(*port);
    said.emplace_back(found.value, fmt::format("{}: {}", name, found.reason));
  }
  return agreed(said, if_none);
}

void detect_features(const std::vector<fs::path>& devices, const FeaturesOf& features_of,
                     const char* if_none, Detection& found) {
  using Said = std::vector<std::pair<std::optional<bool>, std::string>>;
  Said flush;
  Said flush_persistence;
  Said atomic_write;
  for (const fs::path& path : devices) {
    const std::string device = path.filename().string();
    const auto features = features_of(device);
    const auto say = [&](Said& said, bool DeviceFeatures::*feature, const char* name) {
      if (!features) {
        said.emplace_back(std::nullopt, features.error());
        return;
      }
      const bool has = (*features).*feature;
      said.emplace_back(has, fmt::format("{} {} {}", device, has ? "has" : "lacks", name));
    };
    say(flush, &DeviceFeatures::flush, "FLUSH");
    say(flush_persistence, &DeviceFeatures::flush_persistence, "FLUSH for persistence");
    say(atomic_write, &DeviceFeatures::atomic_write, "ATOMIC WRITE");
  }
  found.flush = agreed(flush, if_none);
  found.flush_persistence = agreed(flush_persistence, if_none);
  found.atomic_write = agreed(atomic_write, if_none);
}

// One device of persistent memory is enough. If there is none, one where it is unknown comes next.
Detected<bool> best_of(const std::vector<Detected<bool>>& said) {
  const auto rank = [](const Detected<bool>& each) {
    return !each.value ? 1 : *each.value ? 2 : 0;
  };
  return *std::max_element(said.begin(), said.end(),
                           [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

// Determines if programs can map a device of persistent memory. Other kinds of memory are offered
// as DAX devices, too.
Detected<bool> detect_device_dax(const fs::path& root) {
  std::vector<Detected<bool>> said;
  for (const fs::path& device : entries(root / "sys/bus/dax/devices", "dax")) {
    const auto memory = pmem::mapped::dax_memory_of(device);
    said.push_back({memory.persistent, memory.reason});
  }
  if (!said.empty()) return best_of(said);
  if (!shows_sysfs(root)) return {std::nullopt, kNoSysfs};
  return {false, "there is no device DAX (/sys/bus/dax/devices)"};
}

// One line of /proc/mounts.
struct Mount {
  std::string source;
  std::string target;
  std::string type;
  std::string options;

  bool has(std::string_view option) const {
    return fmt::format(",{},", options).find(fmt::format(",{},", option)) != std::string::npos;
  }
  // True if the mount's source is the whole block device, or one of its partitions.
  bool is_of(const std::string& device) const {
    const std::string whole = "/dev/" + device;
    if (source == whole) return true;
    const std::string partition = whole + "p";
    return source.starts_with(partition) &&
           source.find_first_not_of("0123456789", partition.size()) == std::string::npos;
  }
};

std::vector<Mount> mounts(const fs::path& root) {
  std::vector<Mount> result;
  std::ifstream input(root / "proc/mounts");
  for (std::string line; std::getline(input, line);) {
    std::istringstream words(line);
    Mount mount;
    if (words >> mount.source >> mount.target >> mount.type >> mount.options) {
      result.push_back(mount);
    }
  }
  return result;
}

// Determines if programs can map the files of a mounted persistent-memory file system without a
// page cache in between (Linux documentation, "Direct Access for files").
Detected<bool> detect_mount(const std::string& device, const Mount& mount) {
  const auto with = [&](const char* option) {
    return fmt::format("{} is mounted at {} with {}", device, mount.target, option);
  };
  for (const char* option : {"dax=always", "dax"}) {
    if (mount.has(option)) return {true, with(option)};
  }
  if (mount.has("dax=never")) return {false, with("dax=never")};
  // On these file systems dax=inode is the default.
  if (mount.has("dax=inode") || mount.type == "ext4" || mount.type == "xfs") {
    return {std::nullopt, with("dax=inode: each file has its own attribute")};
  }
  return {false, fmt::format("{} is mounted at {} without dax", device, mount.target)};
}

// The known facts about the file systems on one block device of persistent memory.
void detect_on_block_device(const fs::path& root, const fs::path& block_device,
                            std::vector<Detected<bool>>& said) {
  const std::string device = block_device.filename().string();
  const std::string answer = first_line(block_device / "queue/dax");
  if (answer != "1") {
    const std::string file = fmt::format("/sys/block/{}/queue/dax", device);
    said.push_back(answer == "0"
                       ? Detected<bool>{false, fmt::format("{} cannot ({})", device, file)}
                       : Detected<bool>{std::nullopt, fmt::format("{} does not say whether {} can",
                                                                  file, device)});
    return;
  }
  if (kind_of(root / "proc/mounts") != PathKind::file) {
    said.push_back({std::nullopt, fmt::format("{} can, and /proc/mounts cannot be read", device)});
    return;
  }
  const std::size_t before = said.size();
  for (const Mount& mount : mounts(root)) {
    if (mount.is_of(device)) said.push_back(detect_mount(device, mount));
  }
  if (said.size() != before) return;
  // Something in between (a device mapper, a software RAID) holds the device; file systems on it
  // may have DAX.
  if (const auto holders = entries(block_device / "holders", ""); !holders.empty()) {
    said.push_back({std::nullopt, fmt::format("{} can, and {} stands on it", device,
                                              holders.front().filename().string())});
    return;
  }
  said.push_back({false, fmt::format("{} can, and has no mounted file system", device)});
}

Detected<bool> detect_file_system_dax(const fs::path& root) {
  std::vector<Detected<bool>> said;
  for (const fs::path& block_device : entries(root / "sys/block", "pmem")) {
    detect_on_block_device(root, block_device, said);
  }
  if (!said.empty()) return best_of(said);
  if (!shows_sysfs(root)) return {std::nullopt, kNoSysfs};
  return {false, "there is no block device of persistent memory (/sys/block/pmem*)"};
}

}  // namespace

bool shows_sysfs(const fs::path& root) { return !entries(root / "sys/bus", "").empty(); }

Detection detect(const fs::path& root, const FeaturesOf& features_of) {
  const auto devices = entries(root / "sys/class/infiniband", "");
  Detection found;
  found.domain = detect_domain(root);
  const char* const if_none = shows_sysfs(root) ? kNoRdmaDevice : kNoSysfs;
  found.ddio = detect_ddio(devices, if_none);
  found.transport = detect_transport(devices, if_none);
  found.has_rdma_device = !devices.empty();
  detect_features(devices, features_of, if_none, found);
  found.device_dax = detect_device_dax(root);
  found.file_system_dax = detect_file_system_dax(root);
  return found;
}

DeviceFeatures usable_features(const Detection& found) {
  if (!found.has_rdma_device) return {};
  return {.flush = found.flush.value.value_or(false),
          .flush_persistence = found.flush_persistence.value.value_or(false),
          .atomic_write = found.atomic_write.value.value_or(false)};
}

}  // namespace perdura::methods
