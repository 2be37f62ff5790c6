#include "platform/pmem/mapped/dax_memory.h"

#include <fmt/format.h>

#include <fstream>
#include <string_view>
#include <system_error>

namespace perdura::pmem::mapped {
namespace {

namespace fs = std::filesystem;

// True if a name consists of a prefix and a number, as "ndbus0" does for "ndbus".
bool is_numbered(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         name.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
}

// The memory of a bus of NVDIMMs. The bus's provider names the source of the memory.
DaxMemory on_bus(const fs::path& bus, const std::string& device) {
  std::ifstream input(bus / "provider");
  std::string provider;
  std::getline(input, provider);
  const std::string name = bus.filename().string();
  if (provider == "e820") {
    return {std::nullopt,
            fmt::format("{} is on {} of e820: an NVDIMM of an old firmware, or RAM set aside by "
                        "memmap=",
                        device, name)};
  }
  if (provider.starts_with("virtio")) {
    return {false, fmt::format("{} is on {} of {}: only the host can make it durable", device, name,
                               provider)};
  }
  return {true, fmt::format("{} is on {}{}", device, name,
                            provider.empty() ? "" : fmt::format(" of {}", provider))};
}

}  // namespace

DaxMemory dax_memory_of(const fs::path& device) {
  std::error_code error;
  const fs::path folder = fs::canonical(device, error);
  const std::string name = error ? device.filename().string() : folder.filename().string();
  if (error || !fs::is_directory(folder, error)) {
    return {std::nullopt, fmt::format("{} does not lead to the device's folder", device.string())};
  }
  const fs::path driver = fs::canonical(folder / "driver", error);
  if (!error && driver.filename() == "kmem") {
    return {false, fmt::format("{} is used as RAM by the kernel (driver kmem)", name)};
  }
  for (fs::path at = folder.parent_path(); at != at.parent_path(); at = at.parent_path()) {
    const std::string parent = at.filename().string();
    if (is_numbered(parent, "ndbus")) return on_bus(at, name);
    if (is_numbered(parent, "hmem.") || is_numbered(parent, "hmem")) {
      return {false, fmt::format("{} is memory of {}, which is volatile", name, parent)};
    }
    if (is_numbered(parent, "dax_region")) {
      return {false, fmt::format("{} is memory of the CXL region {}, which is volatile", name,
                                 at.parent_path().filename().string())};
    }
  }
  return {std::nullopt, fmt::format("nothing says whether the memory of {} is persistent", name)};
}

}  // namespace perdura::pmem::mapped
