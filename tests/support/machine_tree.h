// Fake machines for tests: folders with the files that Linux would have below /sys, /proc and /dev.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace perdura::test {

// Bytes, little-endian.
class Bytes {
 public:
  template <class Value>
  Bytes& put(std::size_t offset, Value value) {
    if (bytes_.size() < offset + sizeof value) bytes_.resize(offset + sizeof value);
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
    return *this;
  }
  Bytes& append(const Bytes& other) {
    bytes_ += other.bytes_;
    return *this;
  }
  std::size_t size() const { return bytes_.size(); }
  const std::string& text() const { return bytes_; }

 private:
  std::string bytes_;
};

// An ACPI table with its header; structures begin at `first`.
inline std::string acpi_table(std::string_view name, std::size_t first,
                              const std::vector<Bytes>& structures, std::uint8_t revision = 1) {
  Bytes body;
  for (const Bytes& structure : structures) body.append(structure);
  Bytes table;
  for (std::size_t i = 0; i < name.size(); ++i) table.put(i, name[i]);
  table.put(4, static_cast<std::uint32_t>(first + body.size())).put(8, revision);
  table.put(first - 1, std::uint8_t{0});
  return table.append(body).text();
}

inline Bytes nfit_range(std::uint64_t base, std::uint64_t length) {
  constexpr unsigned char kPersistent[] = {0x79, 0xd3, 0xf0, 0x66, 0xf3, 0xb4, 0x74, 0x40,
                                           0xac, 0x43, 0x0d, 0x33, 0x18, 0xb7, 0x8c, 0xdb};
  Bytes range;
  range.put(0, std::uint16_t{0}).put(2, std::uint16_t{56}).put(48, std::uint64_t{0});
  range.put(32, base).put(40, length).put(12, std::uint32_t{2});
  for (std::size_t i = 0; i < sizeof kPersistent; ++i) range.put(16 + i, kPersistent[i]);
  return range;
}

inline Bytes nfit_capabilities(std::uint8_t highest_valid, std::uint32_t capabilities) {
  Bytes structure;
  structure.put(0, std::uint16_t{7}).put(2, std::uint16_t{16}).put(12, std::uint32_t{0});
  structure.put(4, highest_valid).put(8, capabilities);
  return structure;
}

inline std::string nfit(const std::vector<Bytes>& structures) {
  return acpi_table("NFIT", 40, structures);
}

inline std::string srat(std::uint64_t length, std::uint32_t flags) {
  Bytes memory;
  memory.put(0, std::uint8_t{1}).put(1, std::uint8_t{40}).put(39, std::uint8_t{0});
  memory.put(2, std::uint32_t{3}).put(8, std::uint64_t{1} << 32).put(16, length).put(28, flags);
  return acpi_table("SRAT", 48, {memory});
}

// One initiator, two targets.
inline std::string hmat(std::uint16_t first, std::uint16_t second, std::uint8_t revision = 2) {
  Bytes latencies;
  latencies.put(0, std::uint16_t{1}).put(4, std::uint32_t{48}).put(8, std::uint8_t{0});
  latencies.put(9, std::uint8_t{1}).put(12, std::uint32_t{1}).put(16, std::uint32_t{2});
  latencies.put(24, std::uint64_t{1000}).put(32, std::uint32_t{0});
  latencies.put(36, std::uint32_t{0}).put(40, std::uint32_t{2}).put(44, first).put(46, second);
  return acpi_table("HMAT", 40, {latencies}, revision);
}

// A device's configuration space of so many bytes, with a PCI Express capability.
inline std::string pci_config(std::uint16_t vendor, std::uint16_t device, std::size_t size,
                              bool relaxed_ordering) {
  Bytes config;
  config.put(size - 1, std::uint8_t{0}).put(0, vendor).put(2, device);
  config.put(0x34, std::uint8_t{0x50});
  if (size <= 0x60) return config.text();
  config.put(0x50, std::uint8_t{0x05}).put(0x51, std::uint8_t{0x60});  // interrupts
  config.put(0x60, std::uint8_t{0x10}).put(0x61, std::uint8_t{0});
  config.put(0x68, static_cast<std::uint16_t>(relaxed_ordering ? 0x2810 : 0x2800));
  return config.text();
}

class MachineTree {
 public:
  MachineTree() {
    std::string name = (std::filesystem::temp_directory_path() / "perdura-machine-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~MachineTree() { std::filesystem::remove_all(root_); }
  MachineTree(const MachineTree&) = delete;
  MachineTree& operator=(const MachineTree&) = delete;

  const std::filesystem::path& root() const { return root_; }
  void put(const std::string& file, const std::string& line) { put_bytes(file, line + "\n"); }
  void put_bytes(const std::string& file, const std::string& bytes) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file, std::ios::binary) << bytes;
  }
  // An RDMA device behind a root port of an Intel Xeon Scalable processor.
  void put_rdma_device(const std::string& name, bool relaxed_ordering, bool allocating_writes,
                       std::size_t readable = 4096, std::uint16_t root_port = 0x2030) {
    const std::string port = "sys/devices/pci0000:3a/0000:3a:00.0";
    const std::string device = port + "/0000:3b:00.0";
    put_bytes(device + "/config", pci_config(0x15b3, 0x1019, readable, relaxed_ordering));
    std::string of_port = pci_config(0x8086, root_port, readable, false);
    if (readable > 0x180) of_port[0x180] = static_cast<char>(allocating_writes ? 0x80 : 0x00);
    put_bytes(port + "/config", of_port);
    put(device + "/numa_node", "0");
    put("sys/class/infiniband/" + name + "/node_type", "1: CA");
    put("sys/class/infiniband/" + name + "/hca_type", "MT4121");
    put("sys/class/infiniband/" + name + "/ports/1/state", "4: ACTIVE");
    std::filesystem::create_directory_symlink(
        "../../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0",
        root_ / "sys/class/infiniband" / name / "device");
  }

 private:
  std::filesystem::path root_;
};

}  // namespace perdura::test
