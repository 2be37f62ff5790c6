// Selects the GID of a port that connections use. On RoCE the GID determines the network: the
// version of the protocol and the IP address. The GIDs of iWARP carry no information, so the IP
// addresses of its interface are used instead.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace perdura::fabric::verbs {

using GidBytes = std::array<std::uint8_t, 16>;

enum class GidType : std::uint8_t { infiniband, roce_v1, roce_v2, iwarp };

struct GidEntry {
  unsigned port = 1;
  unsigned index = 0;
  GidType type = GidType::infiniband;
  GidBytes gid{};
};

// "10.0.0.1" if the GID is an IPv4-mapped IPv6 address.
std::optional<std::string> ipv4_of(const GidBytes& gid);
std::string to_string(const GidBytes& gid);
// The GID of an IPv4 address ("10.0.0.1"); zeros if the text is none.
GidBytes gid_of(const std::string& ipv4);

// True if a GID is an address that is valid on its own link only (169.254.0.0/16, fe80::/10) or on
// its own host only (127.0.0.0/8, ::1): two hosts with a router between them cannot use it.
bool is_link_local(const GidBytes& gid);

// Ranks a GID; 0 is unusable (all zeros). From best to worst: RoCE v2 with an IPv4 address of this
// host (`local_addresses`; in a network namespace a device of another one has none), with any IPv4
// address, with an IPv6 address, with a link-local address of either kind, and RoCE v1. iWARP is
// ranked like RoCE v2. All GIDs of InfiniBand serve equally.
int merit(const GidEntry& entry, std::span<const std::string> local_addresses);

// The best GID of a port, and the first of several; nullopt if there is none.
std::optional<GidEntry> best_gid(std::span<const GidEntry> table, unsigned port,
                                 std::span<const std::string> local_addresses);

}  // namespace perdura::fabric::verbs
