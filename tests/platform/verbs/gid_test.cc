// Which GID is taken out of a table.
#include "platform/fabric/verbs/gid.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace perdura::fabric::verbs {
namespace {

GidBytes ipv4(std::uint8_t last) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, last};
}
GidBytes link_local() { return {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0xFF, 0xFE, 0, 0, 1}; }

const std::vector<std::string> kOurs{"10.0.0.1", "127.0.0.1"};

// The usual table of a RoCE port: every address in both versions.
std::vector<GidEntry> usual() {
  return {{1, 0, GidType::roce_v1, link_local()},
          {1, 1, GidType::roce_v2, link_local()},
          {1, 2, GidType::roce_v1, ipv4(1)},
          {1, 3, GidType::roce_v2, ipv4(1)}};
}

TEST(Gid, OfRoceTheSecondVersionWithAnIpv4AddressIsTaken) {
  EXPECT_EQ(best_gid(usual(), 1, kOurs)->index, 3U);
}

struct GidCase {
  const char* what;
  std::vector<std::pair<GidType, const char*>> table;
  std::vector<std::string> ours;
  unsigned index;
};

GidBytes bytes_of(const char* text) {
  GidBytes gid{};
  EXPECT_EQ(::inet_pton(AF_INET6, text, gid.data()), 1) << text;
  return gid;
}

// In every order of the table, since drivers add addresses in the order in which they come.
TEST(Gid, AnAddressThatRoutersPassIsBetterThanALinkLocalOne) {
  using enum GidType;
  const std::vector<GidCase> cases = {
      {"IPv6 alone, a unique local address",
       {{roce_v1, "fe80::1"}, {roce_v2, "fe80::1"}, {roce_v1, "fd93::7"}, {roce_v2, "fd93::7"}},
       {},
       3},
      {"IPv6 alone, a global address", {{roce_v2, "fe80::1"}, {roce_v2, "2001:db8::7"}}, {}, 1},
      {"both addresses of IPv4 are this host's",
       {{roce_v2, "fe80::1"}, {roce_v2, "::ffff:169.254.3.4"}, {roce_v2, "::ffff:10.1.0.5"}},
       {"169.254.3.4", "10.1.0.5"},
       2},
      {"the link-local one is this host's, the other is not",
       {{roce_v2, "::ffff:169.254.3.4"}, {roce_v2, "::ffff:10.1.0.5"}},
       {"169.254.3.4"},
       1},
      {"a link-local IPv4 address and a routable IPv6 address",
       {{roce_v2, "::ffff:169.254.3.4"}, {roce_v2, "2001:db8::7"}},
       {"169.254.3.4"},
       1},
      {"nothing but link-local ones", {{roce_v1, "fe80::1"}, {roce_v2, "fe80::1"}}, {}, 1},
      {"iWARP", {{iwarp, "::ffff:169.254.3.4"}, {iwarp, "::ffff:10.1.0.5"}}, {"169.254.3.4"}, 1},
      {"not everything beside fe80::/10 and 169.254.0.0/16 is link-local",
       {{roce_v2, "febf::1"}, {roce_v2, "fec0::1"}},
       {},
       1},
      {"169.253 is routable",
       {{roce_v2, "::ffff:169.254.0.1"}, {roce_v2, "::ffff:169.253.0.1"}},
       {},
       1},
      {"a loopback address",
       {{roce_v2, "::ffff:127.0.0.1"}, {roce_v2, "fd93::7"}},
       {"127.0.0.1"},
       1},
  };
  for (const GidCase& each : cases) {
    std::vector<GidEntry> table;
    for (const auto& [type, address] : each.table) {
      table.push_back({1, static_cast<unsigned>(table.size()), type, bytes_of(address)});
    }
    do {
      EXPECT_EQ(best_gid(table, 1, each.ours)->index, each.index) << each.what;
    } while (std::next_permutation(
        table.begin(), table.end(),
        [](const GidEntry& a, const GidEntry& b) { return a.index < b.index; }));
  }
}

// A bond and a VXLAN device on it may repeat an address; the first of equals is taken.
TEST(Gid, OfEqualAddressesTheFirstIsTaken) {
  const std::vector<GidEntry> table{{1, 2, GidType::roce_v1, ipv4(1)},
                                    {1, 3, GidType::roce_v2, ipv4(1)},
                                    {1, 5, GidType::roce_v2, ipv4(1)}};
  EXPECT_EQ(best_gid(table, 1, kOurs)->index, 3U);
}

TEST(Gid, AnAddressOfThisHostIsBetterThanAnothers) {
  const std::vector<GidEntry> table{{1, 4, GidType::roce_v2, ipv4(9)},
                                    {1, 5, GidType::roce_v2, ipv4(1)}};
  EXPECT_EQ(best_gid(table, 1, kOurs)->index, 5U);
  EXPECT_GT(merit(table[1], kOurs), merit(table[0], kOurs));
  EXPECT_EQ(best_gid(table, 1, {})->index, 4U);  // none is: the first
}

TEST(Gid, WithoutIpv4TheSecondVersionIsStillPreferred) {
  auto table = usual();
  table.resize(2);
  EXPECT_EQ(best_gid(table, 1, kOurs)->index, 1U);
  table.resize(1);
  EXPECT_EQ(best_gid(table, 1, kOurs)->index, 0U);
}

TEST(Gid, OfIwarpTheAddressOfTheInterfaceStandsForIt) {
  const std::vector<GidEntry> table{{1, 0, GidType::iwarp, gid_of("10.0.0.9")},
                                    {1, 1, GidType::iwarp, gid_of("10.0.0.1")}};
  EXPECT_EQ(gid_of("10.0.0.1"), ipv4(1));
  EXPECT_EQ(gid_of("nowhere"), GidBytes{});
  EXPECT_EQ(best_gid(table, 1, kOurs)->index, 1U);
  EXPECT_EQ(merit({1, 0, GidType::iwarp, gid_of("nowhere")}, kOurs), 0);
}

TEST(Gid, OfInfinibandTheFirstIsTaken) {
  const std::vector<GidEntry> table{{1, 0, GidType::infiniband, link_local()},
                                    {1, 1, GidType::infiniband, ipv4(1)}};
  EXPECT_EQ(best_gid(table, 1, kOurs)->index, 0U);
}

TEST(Gid, OtherPortsAndEmptyEntriesAreNotTaken) {
  EXPECT_FALSE(best_gid(usual(), 2, kOurs).has_value());
  const std::vector<GidEntry> empty{{1, 0, GidType::roce_v2, {}}};
  EXPECT_FALSE(best_gid(empty, 1, kOurs).has_value());
  EXPECT_FALSE(best_gid({}, 1, kOurs).has_value());
}

TEST(Gid, IsShownAsAnAddress) {
  EXPECT_EQ(ipv4_of(ipv4(7)), "10.0.0.7");
  EXPECT_FALSE(ipv4_of(link_local()).has_value());
  EXPECT_EQ(to_string(link_local()), "fe80::200:ff:fe00:1");
  EXPECT_EQ(to_string(ipv4(7)), "::ffff:10.0.0.7");
}

}  // namespace
}  // namespace perdura::fabric::verbs
