// What the firmware says of a machine's memory, in the ACPI tables that Linux keeps below
// /sys/firmware/acpi/tables (ACPI Specification 6.5: NFIT section 5.2.25, SRAT 5.2.16,
// HMAT 5.2.28). Each reader takes a table's bytes and returns nothing if they are none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "platform/base/units.h"

namespace perdura::persistence {

// NVDIMM Firmware Interface Table.
struct Nfit {
  // Platform Capabilities Structure; absent if the firmware has none. What is not valid is absent.
  std::optional<bool> flushes_caches;       // on power loss: eADR
  std::optional<bool> flushes_controllers;  // ADR
  struct Range {
    Bytes base = 0;
    Bytes length = 0;
    std::uint32_t proximity_domain = 0;
  };
  std::vector<Range> persistent;  // byte-addressable persistent memory
};
std::optional<Nfit> read_nfit(std::string_view table);

// System Resource Affinity Table: ranges of memory that is enabled.
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

}  // namespace perdura::persistence
