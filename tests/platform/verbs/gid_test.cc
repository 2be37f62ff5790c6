// Which GID is taken out of a table.
#include "platform/fabric/verbs/gid.h"

#include <gtest/gtest.h>

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
