// Access control lists: their format, what they have to do with modes, and whom they permit what.
#include "services/fs/posix/access_list.h"

#include <gtest/gtest.h>

#include "services/fs/posix/rules.h"

namespace perdura::fs {
namespace {

AccessList list_of(std::uint16_t owner, std::uint16_t user, std::uint16_t owning_group,
                   std::uint16_t group, std::uint16_t mask, std::uint16_t other) {
  return {{{AccessList::Tag::owner, owner, 0},
           {AccessList::Tag::user, user, 1001},
           {AccessList::Tag::owning_group, owning_group, 0},
           {AccessList::Tag::group, group, 2000},
           {AccessList::Tag::mask, mask, 0},
           {AccessList::Tag::other, other, 0}}};
}

TEST(FsAccessListTest, IsStoredAsLinuxDoes) {
  const AccessList list = list_of(7, 6, 5, 4, 3, 2);
  const std::vector<std::byte> value = list.format();
  EXPECT_EQ(value.size(), 4u + 6 * 8);
  EXPECT_EQ(value[0], std::byte{2});    // the version
  EXPECT_EQ(value[4], std::byte{1});    // the owner's tag
  EXPECT_EQ(value[6], std::byte{7});    // its permissions
  EXPECT_EQ(value[8], std::byte{255});  // no id
  EXPECT_EQ(AccessList::parse(value)->value(), list);
  EXPECT_EQ(AccessList::parse(std::span(value).first(4)).value(), std::nullopt);
  EXPECT_EQ(AccessList::parse({}).value(), std::nullopt);
  EXPECT_EQ(AccessList::parse(std::span(value).first(3)).error(), std::errc::invalid_argument);
  EXPECT_EQ(AccessList::parse(std::span(value).first(11)).error(), std::errc::invalid_argument);
  std::vector<std::byte> other = value;
  other[0] = std::byte{1};
  EXPECT_EQ(AccessList::parse(other).error(), std::errc::operation_not_supported);
  other = value;
  other[4] = std::byte{3};
  EXPECT_EQ(AccessList::parse(other).error(), std::errc::invalid_argument);
}

TEST(FsAccessListTest, MustBeComplete) {
  const AccessList whole = list_of(7, 6, 5, 4, 3, 2);
  EXPECT_TRUE(whole.is_valid());
  const std::vector<bool> without{false, true, false, true, false, false};
  for (std::size_t i = 0; i < whole.entries.size(); ++i) {
    AccessList list = whole;
    list.entries.erase(list.entries.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_EQ(list.is_valid(), without[i]) << i;
    list = whole;
    list.entries.insert(list.entries.begin() + static_cast<std::ptrdiff_t>(i), whole.entries[i]);
    EXPECT_EQ(list.is_valid(), without[i]) << i << " twice";
    list = whole;
    list.entries[i].permissions = 8;
    EXPECT_FALSE(list.is_valid());
    if (i > 0) {
      list = whole;
      std::swap(list.entries[i], list.entries[i - 1]);
      EXPECT_FALSE(list.is_valid());
    }
  }
}

// Of every mode: the list of no more than it has it, chmod and creation change both alike.
TEST(FsAccessListTest, AgreesWithModes) {
  for (std::uint32_t mode = 0; mode <= 0777; ++mode) {
    AccessList minimal{{{AccessList::Tag::owner, 0, 0},
                        {AccessList::Tag::owning_group, 0, 0},
                        {AccessList::Tag::other, 0, 0}}};
    minimal.set_permissions(mode);
    EXPECT_TRUE(minimal.is_mode());
    EXPECT_EQ(minimal.permissions(), mode);
    AccessList masked = list_of(7, 6, 5, 4, 7, 7);
    EXPECT_FALSE(masked.is_mode());
    masked.set_permissions(mode);
    EXPECT_EQ(masked.permissions(), mode);
    EXPECT_EQ(masked.entries[2].permissions, 5) << "the mask has the group's bits";
    AccessList created = list_of(6, 7, 7, 7, 5, 3);
    created.restrict_to(mode);
    EXPECT_EQ(created.permissions(), mode & 0653);
  }
}

// Every value of every entry, for the owner, a user and groups that are named, several groups, and
// others; by the algorithm of the draft standard in words of sets.
TEST(FsAccessListTest, PermitsWhatTheAlgorithmSays) {
  const std::vector<Credentials> users{
      {.uid = 1000, .gid = 5},                       // the owner
      {.uid = 1001, .gid = 5},                       // named
      {.uid = 1002, .gid = 1000},                    // in the owning group
      {.uid = 1002, .gid = 5, .groups = {2000}},     // in the named one
      {.uid = 1002, .gid = 2000, .groups = {1000}},  // in both
      {.uid = 1002, .gid = 5}};
  for (std::uint32_t bits = 0; bits < 1U << 12; ++bits) {
    // Two permissions of each entry are enough.
    const auto entry = [&](int which) {
      return static_cast<std::uint16_t>(bits >> (2 * which) & 3);
    };
    const AccessList list = list_of(entry(0), entry(1), entry(2), entry(3), entry(4), entry(5));
    for (std::uint32_t wanted = 1; wanted <= 3; ++wanted) {
      const auto has = [&](std::uint32_t permissions) { return (permissions & wanted) == wanted; };
      const bool mask = has(entry(4));
      const std::vector<bool> expected{has(entry(0)),
                                       has(entry(1)) && mask,
                                       has(entry(2)) && mask,
                                       has(entry(3)) && mask,
                                       (has(entry(2)) || has(entry(3))) && mask,
                                       has(entry(5))};
      for (std::size_t user = 0; user < users.size(); ++user) {
        ASSERT_EQ(list.permits(users[user], 1000, 1000, wanted), expected[user])
            << "user " << user << ", entries " << bits << ", wanted " << wanted;
      }
    }
  }
}

}  // namespace
}  // namespace perdura::fs
