#include "methods/pci.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string_view>

#include "methods/little_endian.h"

namespace perdura::methods {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kWithoutRoot = 64;

std::string bytes_of(const fs::path& device) {
  std::ifstream input(device / "config", std::ios::binary);
  return {std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
}

// True if the path ends like 0000:3b:00.1: domain, bus, device and function.
bool is_address(const fs::path& path) {
  constexpr std::string_view kDigits = "hhhh:hh:hh.o";
  const std::string name = path.string();
  return std::equal(name.begin(), name.end(), kDigits.begin(), kDigits.end(),
                    [](char is, char digit) {
                      if (digit == 'h') return (is >= '0' && is <= '9') || (is >= 'a' && is <= 'f');
                      if (digit == 'o') return is >= '0' && is <= '7';
                      return is == digit;
                    });
}

std::string unreadable(const fs::path& device, std::string_view bytes) {
  const std::string file = (device.filename() / "config").string();
  if (bytes.empty()) return fmt::format("{} cannot be read", file);
  return fmt::format("only the first {} bytes of {} can be read; ask as root", bytes.size(), file);
}

// The offset of the PCI Express capability.
std::optional<std::size_t> express_capability(std::string_view bytes) {
  constexpr std::uint8_t kExpress = 0x10;
  std::size_t offset = field_at<std::uint8_t>(bytes, 0x34);
  // A corrupt list may be cyclic; a space of 256 bytes holds no more capabilities than these.
  for (int i = 0; i < 48 && offset >= kWithoutRoot && offset + 2 <= bytes.size(); ++i) {
    if (field_at<std::uint8_t>(bytes, offset) == kExpress) return offset;
    offset = field_at<std::uint8_t>(bytes, offset + 1);
  }
  return std::nullopt;
}

}  // namespace

std::optional<fs::path> pci_device_of(const fs::path& device) {
  std::error_code none;
  const fs::path folder = fs::canonical(device, none);
  if (none || !is_address(folder.filename())) return std::nullopt;
  return folder;
}

std::optional<fs::path> root_port_of(const fs::path& pci_device) {
  fs::path port;
  for (fs::path folder = pci_device; is_address(folder.filename()); folder = folder.parent_path()) {
    port = folder;
  }
  if (port.empty() || port == pci_device) return std::nullopt;
  return port;
}

Detected<bool> relaxed_ordering_of(const fs::path& pci_device, bool in_guest) {
  std::error_code none;
  if (fs::is_symlink(fs::symlink_status(pci_device / "physfn", none))) {
    const std::string name = pci_device.filename().string();
    const fs::path physical = fs::canonical(pci_device / "physfn", none);
    if (none) {
      return {std::nullopt,
              fmt::format("{} is a virtual function whose physical function is not shown", name)};
    }
    Detected<bool> found = relaxed_ordering_of(physical, in_guest);
    found.reason = fmt::format("{} is a virtual function: {}", name, found.reason);
    return found;
  }
  const std::string bytes = bytes_of(pci_device);
  if (bytes.size() <= kWithoutRoot) return {std::nullopt, unreadable(pci_device, bytes)};
  const std::string name = pci_device.filename().string();
  const auto express = express_capability(bytes);
  if (!express) return {std::nullopt, fmt::format("{} is no PCI Express device", name)};
  constexpr std::uint16_t kEnable = 1U << 4;
  const bool on = (field_at<std::uint16_t>(bytes, *express + 8) & kEnable) != 0;
  if (!on && in_guest) {
    return {
        std::nullopt,
        fmt::format("Device Control of {} disables relaxed ordering, which in a virtual machine "
                    "means nothing if it is a virtual function",
                    name)};
  }
  return {on, fmt::format("Device Control of {} {} relaxed ordering", name,
                          on ? "enables" : "disables")};
}

Detected<bool> allocating_writes_of(const fs::path& root_port) {
  const std::string bytes = bytes_of(root_port);
  const std::string name = root_port.filename().string();
  constexpr std::uint16_t kIntel = 0x8086;
  constexpr std::array<std::uint16_t, 4> kPorts{0x2030, 0x2031, 0x2032, 0x2033};
  const auto vendor = field_at<std::uint16_t>(bytes, 0);
  const auto device = field_at<std::uint16_t>(bytes, 2);
  if (!bytes.empty() &&
      (vendor != kIntel || std::find(kPorts.begin(), kPorts.end(), device) == kPorts.end())) {
    return {std::nullopt,
            fmt::format("of root port {} ({:04x}:{:04x}) it is not known where it tells", name,
                        vendor, device)};
  }
  constexpr std::size_t kPerfctrlsts0 = 0x180;
  constexpr std::uint32_t kUseAllocatingFlowWr = 1U << 7;
  if (bytes.size() < kPerfctrlsts0 + 4) return {std::nullopt, unreadable(root_port, bytes)};
  const bool on = (field_at<std::uint32_t>(bytes, kPerfctrlsts0) & kUseAllocatingFlowWr) != 0;
  return {on, fmt::format("root port {} {} allocating writes", name, on ? "uses" : "does not use")};
}

}  // namespace perdura::methods
