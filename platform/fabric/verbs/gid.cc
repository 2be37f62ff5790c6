#include "platform/fabric/verbs/gid.h"

#include <arpa/inet.h>

#include <algorithm>

namespace perdura::fabric::verbs {

std::optional<std::string> ipv4_of(const GidBytes& gid) {
  constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (!std::equal(kMapped.begin(), kMapped.end(), gid.begin())) return std::nullopt;
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, gid.data() + 12, text.data(), text.size());
  return std::string(text.data());
}

GidBytes gid_of(const std::string& ipv4) {
  GidBytes gid{};
  if (::inet_pton(AF_INET, ipv4.c_str(), gid.data() + 12) == 1) gid[10] = gid[11] = 0xFF;
  return gid;
}

std::string to_string(const GidBytes& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, gid.data(), text.data(), text.size());
  return text.data();
}

bool is_link_local(const GidBytes& gid) {
  if (ipv4_of(gid)) return (gid[12] == 169 && gid[13] == 254) || gid[12] == 127;
  constexpr GidBytes kLoopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return (gid[0] == 0xFE && (gid[1] & 0xC0) == 0x80) || gid == kLoopback;
}

int merit(const GidEntry& entry, std::span<const std::string> local_addresses) {
  if (std::all_of(entry.gid.begin(), entry.gid.end(), [](auto byte) { return byte == 0; })) {
    return 0;
  }
  if (entry.type == GidType::infiniband) return 5;
  if (entry.type == GidType::roce_v1) return 1;
  const auto address = ipv4_of(entry.gid);
  if (is_link_local(entry.gid)) return address ? 3 : 2;
  if (!address) return 4;
  const bool ours =
      std::find(local_addresses.begin(), local_addresses.end(), *address) != local_addresses.end();
  return ours ? 6 : 5;
}

std::optional<GidEntry> best_gid(std::span<const GidEntry> table, unsigned port,
                                 std::span<const std::string> local_addresses) {
  std::optional<GidEntry> best;
  for (const GidEntry& entry : table) {
    if (entry.port != port) continue;
    const int needed = best ? merit(*best, local_addresses) : 0;
    if (merit(entry, local_addresses) > needed) best = entry;
  }
  return best;
}

}  // namespace perdura::fabric::verbs
