// Tables of the rules: set-id bits, sticky directories, owners and modes of what is new.
#include "services/fs/posix/rules.h"

#include <gtest/gtest.h>

namespace perdura::fs {
namespace {

const Credentials kRoot{};
const Credentials kOwner{.uid = 1000, .gid = 1000, .groups = {2000}};
const Credentials kOther{.uid = 1001, .gid = 1001, .groups = {2000}};

Attributes file(std::uint32_t mode, std::uint32_t uid = 1000, std::uint32_t gid = 1000) {
  Attributes attributes;
  attributes.mode = mode;
  attributes.uid = uid;
  attributes.gid = gid;
  return attributes;
}

// Every mode and wish of every class.
TEST(FsRulesTest, AccessIsByTheFirstClassThatFits) {
  for (std::uint32_t mode = 0; mode <= 0777; ++mode) {
    for (std::uint32_t wanted = 0; wanted <= 7; ++wanted) {
      const auto has = [&](std::uint32_t bits) { return (bits & wanted) == wanted; };
      const Attributes inode = file(S_IFREG | mode, 1000, 2000);
      EXPECT_EQ(may_access(kOwner, inode, {}, wanted), has(mode >> 6));
      EXPECT_EQ(may_access(kOther, inode, {}, wanted), has(mode >> 3));
      EXPECT_EQ(may_access({.uid = 7, .gid = 7}, inode, {}, wanted), has(mode));
      EXPECT_EQ(may_access(kRoot, inode, {}, wanted),
                (wanted & kMayExecute) == 0 || (mode & 0111) != 0);
      EXPECT_TRUE(may_access(kRoot, file(S_IFDIR | mode), {}, wanted));
    }
  }
}

// As the kernel: with an empty mask, a list is not looked at, and who it names is as others are.
TEST(FsRulesTest, AListWithAnEmptyMaskIsNone) {
  using Tag = AccessList::Tag;
  AccessList list{{{Tag::owner, 6, 0},
                   {Tag::user, 7, 1001},
                   {Tag::owning_group, 4, 0},
                   {Tag::mask, 0, 0},
                   {Tag::other, 4, 0}}};
  EXPECT_TRUE(may_access(kOther, file(S_IFREG | 0604), list, kMayRead));
  EXPECT_FALSE(may_access(kOther, file(S_IFREG | 0604), list, kMayWrite));
  list.entries[3].permissions = 2;
  EXPECT_FALSE(may_access(kOther, file(S_IFREG | 0624), list, kMayRead));
  EXPECT_TRUE(may_access(kOther, file(S_IFREG | 0624), list, kMayWrite));
}

TEST(FsRulesTest, StickyDirectoriesProtect) {
  for (const bool sticky : {false, true}) {
    for (const std::uint32_t of_directory : {1000U, 1001U, 5U}) {
      for (const std::uint32_t of_file : {1000U, 1001U, 5U}) {
        const Attributes directory = file(S_IFDIR | (sticky ? 01777 : 0777), of_directory);
        const bool own = of_directory == 1000 || of_file == 1000;
        EXPECT_EQ(is_protected(kOwner, directory, file(S_IFREG, of_file)), sticky && !own);
        EXPECT_FALSE(is_protected(kRoot, directory, file(S_IFREG, of_file)));
      }
    }
  }
}

TEST(FsRulesTest, TheGroupIsTheDirectorysIfThatIsSetGroupId) {
  struct Case {
    std::uint32_t directory;
    std::uint32_t mode;
    std::uint32_t made;
    std::uint32_t gid;
  };
  for (const Case& is : {Case{0777, S_IFREG | 02755, S_IFREG | 02755, 1000},
                         Case{02777, S_IFREG | 0644, S_IFREG | 0644, 500},
                         Case{02777, S_IFREG | 02755, S_IFREG | 0755, 500},
                         Case{02777, S_IFREG | 02745, S_IFREG | 02745, 500},
                         Case{02777, S_IFDIR | 0755, S_IFDIR | 02755, 500}}) {
    const Inherited made = inherit(kOwner, file(S_IFDIR | is.directory, 0, 500), {}, is.mode, 0);
    EXPECT_EQ(made.mode, is.made) << std::oct << is.directory << " " << is.mode;
    EXPECT_EQ(made.gid, is.gid);
    EXPECT_EQ(made.uid, 1000u);
  }
  // Who is in the group keeps set-group-ID.
  EXPECT_EQ(inherit(kOwner, file(S_IFDIR | 02777, 0, 2000), {}, S_IFREG | 02755, 0).mode,
            S_IFREG | 02755u);
}

TEST(FsRulesTest, ADefaultListReplacesTheMask) {
  using Tag = AccessList::Tag;
  const AccessList minimal{{{Tag::owner, 7, 0}, {Tag::owning_group, 5, 0}, {Tag::other, 0, 0}}};
  const Attributes directory = file(S_IFDIR | 0777);
  EXPECT_EQ(inherit(kOwner, directory, {}, S_IFREG | 0666, 027).mode, S_IFREG | 0640u);
  const Inherited plain = inherit(kOwner, directory, minimal, S_IFREG | 0666, 077);
  EXPECT_EQ(plain.mode, S_IFREG | 0640u);
  EXPECT_TRUE(plain.extended.empty());
  AccessList named = minimal;
  named.entries.insert(named.entries.begin() + 1, {Tag::user, 7, 1001});
  named.entries.insert(named.entries.begin() + 3, {Tag::mask, 7, 0});
  const Inherited below = inherit(kOwner, directory, named, S_IFDIR | 0750, 077);
  EXPECT_EQ(below.mode, S_IFDIR | 0750u);
  ASSERT_EQ(below.extended.size(), 2u);
  EXPECT_EQ(below.extended[0].name, kAccessList);
  EXPECT_EQ(AccessList::parse(below.extended[0].value)->value().permissions(), 0750u);
  EXPECT_EQ(below.extended[1].name, kDefaultList);
  EXPECT_EQ(AccessList::parse(below.extended[1].value)->value(), named);
  EXPECT_TRUE(inherit(kOwner, directory, named, S_IFLNK | 0777, 077).extended.empty());
}

// What chown leaves of 06000, by who does it, the mode, and whether the owner is in the group.
TEST(FsRulesTest, AChangeOfOwnerClearsSetId) {
  struct Case {
    const Credentials& who;
    std::uint32_t mode;
    std::uint32_t gid;
    std::uint32_t left;
  };
  for (const Case& is : {Case{kRoot, 06755, 1000, 0755}, Case{kOwner, 06755, 1000, 0755},
                         Case{kRoot, 06745, 1000, 02745}, Case{kOwner, 06745, 1000, 02745},
                         Case{kOwner, 02745, 500, 0745}, Case{kRoot, 02745, 500, 02745},
                         Case{kOwner, 0755, 1000, 0755}}) {
    const auto change =
        change_owner(is.who, file(S_IFREG | is.mode, 1000, is.gid), {}, 1000, Timestamp{});
    ASSERT_TRUE(change) << std::oct << is.mode;
    EXPECT_EQ(change->change.permissions.value_or(is.mode), is.left) << std::oct << is.mode;
  }
  EXPECT_EQ(change_owner(kRoot, file(S_IFDIR | 06755), 1000, 1000, {})->change.permissions,
            std::nullopt);
}

TEST(FsRulesTest, OnlyTheOwnerChangesGroupsAndOnlyToItsOwn) {
  const Attributes own = file(S_IFREG | 0644);
  const auto may = [&](const Credentials& who, std::optional<std::uint32_t> uid,
                       std::optional<std::uint32_t> gid) {
    return change_owner(who, own, uid, gid, {}).has_value();
  };
  EXPECT_TRUE(may(kOwner, {}, 2000));
  EXPECT_TRUE(may(kOwner, 1000, 1000));
  EXPECT_FALSE(may(kOwner, {}, 500));
  EXPECT_FALSE(may(kOwner, 1001, {}));
  EXPECT_FALSE(may(kOther, {}, 2000));
  EXPECT_FALSE(may(kOther, 1000, {}));
  EXPECT_TRUE(may(kOther, {}, {}));
  EXPECT_TRUE(may(kRoot, 5, 6));
  EXPECT_FALSE(change_owner(kOther, file(S_IFREG | 04755), {}, {}, {}));
}

TEST(FsRulesTest, AChangeOfModeDropsSetGroupIdOfForeignGroups) {
  EXPECT_EQ(change_mode(kOwner, file(S_IFREG, 1000, 500), {}, 06755, {})->change.permissions,
            04755u);
  EXPECT_EQ(change_mode(kOwner, file(S_IFREG, 1000, 2000), {}, 06755, {})->change.permissions,
            06755u);
  EXPECT_EQ(change_mode(kRoot, file(S_IFREG, 1000, 500), {}, 06755, {})->change.permissions,
            06755u);
  EXPECT_EQ(change_mode(kOther, file(S_IFREG), {}, 0644, {}).error(),
            std::errc::operation_not_permitted);
}

TEST(FsRulesTest, UserAttributesAreOnFilesAndDirectoriesAndOnSocketsOfSomeKernels) {
  const auto refusal = [](std::uint32_t type, AttributeAccess access, bool on_sockets) {
    return check_extended({}, {.mode = type | 0644}, "user.a", access, true, on_sockets);
  };
  for (const bool on_sockets : {false, true}) {
    EXPECT_EQ(refusal(S_IFREG, AttributeAccess::write, on_sockets), std::errc{});
    EXPECT_EQ(refusal(S_IFDIR, AttributeAccess::write, on_sockets), std::errc{});
    EXPECT_EQ(refusal(S_IFIFO, AttributeAccess::write, on_sockets),
              std::errc::operation_not_permitted);
    EXPECT_EQ(refusal(S_IFIFO, AttributeAccess::read, on_sockets), std::errc::no_message_available);
  }
  EXPECT_EQ(refusal(S_IFSOCK, AttributeAccess::write, false), std::errc::operation_not_permitted);
  EXPECT_EQ(refusal(S_IFSOCK, AttributeAccess::write, true), std::errc{});
}

TEST(FsRulesTest, AccessTimesAreRelative) {
  Attributes inode = file(S_IFREG);
  inode.modified = inode.changed = {100, 0};
  inode.accessed = {100, 0};
  EXPECT_TRUE(updates_accessed(inode, {101, 0}));
  inode.accessed = {100, 1};
  EXPECT_FALSE(updates_accessed(inode, {101, 0}));
  EXPECT_TRUE(updates_accessed(inode, {100 + 24 * 60 * 60, 0}));
}

}  // namespace
}  // namespace perdura::fs
