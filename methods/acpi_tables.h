// Reports of the firmware about a machine's memory, in the ACPI tables that Linux exposes below
// /sys/firmware/acpi/tables (ACPI Specification 6.5: NFIT section 5.2.25, SRAT 5.2.16, HMAT
// 5.2.28). Each reader takes the bytes of a table and returns nullopt if they are not such a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "platform/base/units.h"

namespace perdura::methods {

// NVDIMM Firmware Interface Table.
struct Nfit {
  // From the Platform Capabilities Structure; absent if the firmware has none, or does not mark the
  // capability as valid.
  std::optional<bool> flushes_caches;       // on power loss, from CPU caches: eADR
  std::optional<bool> flushes_controllers;  // on power loss, from the memory controllers: ADR
  struct Range {
    Bytes base = 0;
    Bytes length = 0;
    std::uint32_t proximity_domain = 0;
  };
  std::vector<Range> persistent;  // byte-addressable persistent memory
};
std::optional<Nfit> read_nfit(std::string_view table);

// System Resource Affinity Table: the ranges of enabled memory.
struct Srat {
  struct Range {
    Bytes base = 0;
    Bytes length = 0;
    std::uint32_t proximity_domain = 0;
    bool persistent = false;
  };
  std::vector<Range> memory;
};
std::optional<Srat> read_srat(std::string_view table);

// Heterogeneous Memory Attribute Table, of revision 2: read latencies between proximity domains.
struct Hmat {
  struct Latency {
    std::uint32_t initiator = 0;
    std::uint32_t target = 0;
    Picoseconds read{};
  };
  std::vector<Latency> latencies;
};
std::optional<Hmat> read_hmat(std::string_view table);

}  // namespace perdura::methods
