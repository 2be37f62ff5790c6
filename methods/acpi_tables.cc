#include "methods/acpi_tables.h"

#include "methods/little_endian.h"

namespace perdura::methods {

namespace {

constexpr std::size_t kHeader = 36;
constexpr std::size_t kRevisionAt = 8;

// The table, without bytes after its end; nullopt if it is another table, or truncated.
std::optional<std::string_view> table_named(std::string_view name, std::string_view bytes) {
  if (bytes.size() < kHeader || !bytes.starts_with(name)) return std::nullopt;
  const auto length = field_at<std::uint32_t>(bytes, 4);
  if (length < kHeader || length > bytes.size()) return std::nullopt;
  return bytes.substr(0, length);
}

// Calls `visit` for each structure of a table. Type and length of a structure have the given types
// and offsets.
template <class Type, class Length>
void each_structure(std::string_view table, std::size_t first, std::size_t length_at,
                    const auto& visit) {
  for (std::size_t begin = first; begin + length_at + sizeof(Length) <= table.size();) {
    const auto length = field_at<Length>(table, begin + length_at);
    if (length < length_at + sizeof(Length) || length > table.size() - begin) return;
    visit(field_at<Type>(table, begin), table.substr(begin, length));
    begin += length;
  }
}

}  // namespace

std::optional<Nfit> read_nfit(std::string_view bytes) {
  const auto table = table_named("NFIT", bytes);
  if (!table) return std::nullopt;
  constexpr std::uint16_t kRange = 0;
  constexpr std::uint16_t kCapabilities = 7;
  // 66F0D379-B4F3-4074-AC43-0D3318B78CDB
  constexpr std::string_view kPersistent(
      "\x79\xd3\xf0\x66\xf3\xb4\x74\x40\xac\x43\x0d\x33\x18\xb7\x8c\xdb", 16);
  Nfit nfit;
  each_structure<std::uint16_t, std::uint16_t>(
      *table, kHeader + 4, 2, [&](std::uint16_t type, std::string_view structure) {
        if (type == kRange && structure.size() >= 48 && structure.substr(16, 16) == kPersistent) {
          nfit.persistent.push_back({field_at<std::uint64_t>(structure, 32),
                                     field_at<std::uint64_t>(structure, 40),
                                     field_at<std::uint32_t>(structure, 12)});
        }
        if (type != kCapabilities || structure.size() < 12) return;
        const auto highest_valid = field_at<std::uint8_t>(structure, 4);
        const auto capabilities = field_at<std::uint32_t>(structure, 8);
        nfit.flushes_caches = (capabilities & 1U) != 0;
        if (highest_valid >= 1) nfit.flushes_controllers = (capabilities & 2U) != 0;
      });
  return nfit;
}

std::optional<Srat> read_srat(std::string_view bytes) {
  const auto table = table_named("SRAT", bytes);
  if (!table) return std::nullopt;
  constexpr std::uint8_t kMemory = 1;
  constexpr std::uint32_t kEnabled = 1;
  constexpr std::uint32_t kNonVolatile = 4;
  Srat srat;
  each_structure<std::uint8_t, std::uint8_t>(
      *table, kHeader + 12, 1, [&](std::uint8_t type, std::string_view structure) {
        if (type != kMemory || structure.size() < 40) return;
        const auto flags = field_at<std::uint32_t>(structure, 28);
        if ((flags & kEnabled) == 0) return;
        srat.memory.push_back({field_at<std::uint64_t>(structure, 8),
                               field_at<std::uint64_t>(structure, 16),
                               field_at<std::uint32_t>(structure, 2), (flags & kNonVolatile) != 0});
      });
  return srat;
}

std::optional<Hmat> read_hmat(std::string_view bytes) {
  const auto table = table_named("HMAT", bytes);
  // Firmware and operating systems disagreed about the units of the first revision.
  if (!table || field_at<std::uint8_t>(*table, kRevisionAt) != 2) return std::nullopt;
  constexpr std::uint16_t kLocality = 1;
  Hmat hmat;
  each_structure<std::uint16_t, std::uint32_t>(
      *table, kHeader + 4, 4, [&](std::uint16_t type, std::string_view structure) {
        if (type != kLocality || structure.size() < 32) return;
        const auto flags = field_at<std::uint8_t>(structure, 8);
        const auto data_type = field_at<std::uint8_t>(structure, 9);
        const bool of_memory = (flags & 0xF) == 0;
        const bool read_latency = data_type == 0 || data_type == 1;
        if (!of_memory || !read_latency) return;
        const std::uint64_t initiators = field_at<std::uint32_t>(structure, 12);
        const std::uint64_t targets = field_at<std::uint32_t>(structure, 16);
        const auto unit = field_at<std::uint64_t>(structure, 24);  // in picoseconds
        const std::size_t entries = 32 + 4 * (initiators + targets);
        if (initiators > structure.size() || targets > structure.size() ||
            entries + 2 * initiators * targets > structure.size()) {
          return;
        }
        constexpr std::uint16_t kUnreachable = 0xFFFF;
        // A millisecond; anything longer is not a latency.
        constexpr std::uint64_t kLongest = 1'000'000'000;
        for (std::size_t i = 0; i < initiators; ++i) {
          for (std::size_t t = 0; t < targets; ++t) {
            const auto entry = field_at<std::uint16_t>(structure, entries + 2 * (i * targets + t));
            if (entry == 0 || entry == kUnreachable || unit > kLongest / entry) continue;
            hmat.latencies.push_back({field_at<std::uint32_t>(structure, 32 + 4 * i),
                                      field_at<std::uint32_t>(structure, 32 + 4 * (initiators + t)),
                                      Picoseconds(static_cast<std::int64_t>(entry * unit))});
          }
        }
      });
  return hmat;
}

}  // namespace perdura::methods
