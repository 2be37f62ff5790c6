// The specification says what POSIX says, at the level of inodes.
#include "services/fs/model/model.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_set>

#include "tests/services/fs/bytes_of.h"
#include "tests/support/seed.h"

namespace perdura::fs {
namespace {

constexpr Timestamp kLater{100, 5};

class FsModelTest : public testing::Test {
 protected:
  InodeNumber make(InodeNumber in, std::string_view name, std::uint32_t type = S_IFREG) {
    const auto made = model_.create(in, name, {.mode = type | 0644, .target = "x"}, {});
    EXPECT_TRUE(made.has_value()) << name;
    return made->inode;
  }
  Attributes of(InodeNumber inode) { return model_.attributes(inode).value(); }
  std::errc rename(InodeNumber from, std::string_view name, InodeNumber to,
                   std::string_view new_name, RenameMode mode = RenameMode::replace) {
    const Model before = model_;
    const auto done = model_.rename(from, name, to, new_name, mode, kLater);
    EXPECT_EQ(model_.audit(), "");
    if (!done) {
      EXPECT_TRUE(model_ == before) << "an error has changed something";
    }
    return done ? std::errc{} : done.error();
  }
  std::string text(InodeNumber inode, Bytes offset, Bytes length) {
    std::string read(length, '?');
    const auto got = model_.read(inode, offset, std::as_writable_bytes(std::span(read)));
    return read.substr(0, got.value());
  }

  Model model_{{.capacity = 64 * kBlock, .inodes = 64}};
};

TEST_F(FsModelTest, NamesAreChecked) {
  const std::string longest(kLongestName, 'n');
  make(kRootInode, longest);
  for (const auto& [name, error] : std::vector<std::pair<std::string, std::errc>>{
           {"", std::errc::invalid_argument},
           {".", std::errc::invalid_argument},
           {"..", std::errc::invalid_argument},
           {"a/b", std::errc::invalid_argument},
           {std::string("a\0b", 3), std::errc::invalid_argument},
           {longest + "n", std::errc::filename_too_long}}) {
    EXPECT_EQ(model_.look_up(kRootInode, name).error(), error) << name;
    EXPECT_EQ(model_.create(kRootInode, name, {.mode = S_IFREG}, {}).error(), error) << name;
    EXPECT_EQ(model_.unlink(kRootInode, name, {}).error(), error) << name;
    EXPECT_EQ(rename(kRootInode, longest, kRootInode, name), error) << name;
  }
  EXPECT_EQ(model_.look_up(make(kRootInode, "f"), "a").error(), std::errc::not_a_directory);
}

TEST_F(FsModelTest, LinksAreCountedAndTimesSet) {
  const InodeNumber a = make(kRootInode, "a", S_IFDIR);
  const InodeNumber b = make(a, "b", S_IFDIR);
  EXPECT_EQ(of(kRootInode).links, 3u);
  EXPECT_EQ(of(a).links, 3u);
  EXPECT_EQ(of(b).links, 2u);
  const InodeNumber f = make(b, "f");
  EXPECT_EQ(model_.link(f, a, "g", kLater)->links, 2u);
  EXPECT_EQ(of(a).modified, kLater);
  EXPECT_EQ(of(f).changed, kLater);
  EXPECT_EQ(of(f).modified, Timestamp{});
  EXPECT_EQ(model_.link(b, a, "h", kLater).error(), std::errc::operation_not_permitted);
  EXPECT_EQ(model_.link(f, a, "g", kLater).error(), std::errc::file_exists);
  EXPECT_EQ(model_.remove_directory(a, "b", {}).error(), std::errc::directory_not_empty);
  EXPECT_EQ(model_.remove_directory(a, "g", {}).error(), std::errc::not_a_directory);
  EXPECT_EQ(model_.unlink(a, "b", {}).error(), std::errc::is_a_directory);
  EXPECT_TRUE(model_.unlink(b, "f", {}));
  EXPECT_EQ(of(f).links, 1u);
  ASSERT_TRUE(model_.hold(b));
  EXPECT_TRUE(model_.remove_directory(a, "b", kLater));
  EXPECT_EQ(of(a).links, 2u);
  EXPECT_EQ(of(b).links, 0u);
  EXPECT_EQ(model_.create(b, "x", {.mode = S_IFREG}, {}).error(),
            std::errc::no_such_file_or_directory);
  EXPECT_EQ(model_.parent(b).error(), std::errc::no_such_file_or_directory);
  EXPECT_EQ(model_.audit(), "");
  model_.release(b);
  EXPECT_FALSE(model_.exists(b));
}

TEST_F(FsModelTest, RenameFollowsItsRules) {
  const InodeNumber a = make(kRootInode, "a", S_IFDIR);
  const InodeNumber b = make(a, "b", S_IFDIR);
  const InodeNumber f = make(b, "f");
  make(kRootInode, "g");
  make(kRootInode, "empty", S_IFDIR);
  using enum RenameMode;
  EXPECT_EQ(rename(kRootInode, "none", a, "x"), std::errc::no_such_file_or_directory);
  EXPECT_EQ(rename(kRootInode, "a", b, "x"), std::errc::invalid_argument);
  EXPECT_EQ(rename(kRootInode, "a", a, "x"), std::errc::invalid_argument);
  EXPECT_EQ(rename(b, "f", kRootInode, "a"), std::errc::directory_not_empty);
  EXPECT_EQ(rename(b, "f", kRootInode, "a", exchange), std::errc::invalid_argument);
  EXPECT_EQ(rename(kRootInode, "g", kRootInode, "empty"), std::errc::is_a_directory);
  EXPECT_EQ(rename(kRootInode, "empty", kRootInode, "g"), std::errc::not_a_directory);
  EXPECT_EQ(rename(kRootInode, "empty", kRootInode, "a"), std::errc::directory_not_empty);
  EXPECT_EQ(rename(kRootInode, "g", a, "b", keep), std::errc::file_exists);
  EXPECT_EQ(rename(kRootInode, "g", a, "x", exchange), std::errc::no_such_file_or_directory);

  // Names of one inode: nothing happens.
  ASSERT_TRUE(model_.link(f, kRootInode, "h", {}));
  EXPECT_EQ(rename(kRootInode, "h", b, "f"), std::errc{});
  EXPECT_TRUE(model_.look_up(kRootInode, "h"));
  EXPECT_EQ(of(kRootInode).modified, Timestamp{});

  // A directory over an empty one, into another directory.
  EXPECT_EQ(rename(a, "b", kRootInode, "empty"), std::errc{});
  EXPECT_EQ(model_.parent(b), kRootInode);
  EXPECT_EQ(of(a).links, 2u);
  EXPECT_EQ(of(kRootInode).links, 4u);
  EXPECT_EQ(of(a).modified, kLater);
  EXPECT_EQ(of(kRootInode).changed, kLater);
  EXPECT_EQ(of(b).changed, kLater);
  // A file and a directory change places.
  EXPECT_EQ(rename(kRootInode, "empty", kRootInode, "g", exchange), std::errc{});
  EXPECT_EQ(model_.look_up(kRootInode, "g")->inode, b);
  EXPECT_EQ(rename(kRootInode, "g", a, "file"), std::errc{});
  EXPECT_EQ(rename(kRootInode, "empty", a, "file", exchange), std::errc{});
  EXPECT_EQ(model_.parent(b), kRootInode);
}

TEST_F(FsModelTest, FilesMayHaveHolesUpToTheLargestSize) {
  const InodeNumber f = make(kRootInode, "f");
  using enum Session::Seek;
  EXPECT_EQ(model_.seek(f, 0, data).error(), std::errc::no_such_device_or_address);
  ASSERT_TRUE(model_.truncate(f, kLargestFile, {}));
  EXPECT_EQ(model_.truncate(f, kLargestFile + 1, {}).error(), std::errc::file_too_large);
  EXPECT_EQ(of(f).blocks, 0u);
  EXPECT_EQ(model_.seek(f, 7, data).error(), std::errc::no_such_device_or_address);
  EXPECT_EQ(model_.seek(f, 7, hole), 7u);
  ASSERT_TRUE(model_.write(f, kLargestFile - 3, bytes_of("end"), {}));
  EXPECT_EQ(model_.write(f, kLargestFile - 2, bytes_of("end"), {}).error(),
            std::errc::file_too_large);
  EXPECT_EQ(model_.append(f, bytes_of("x"), {}).error(), std::errc::file_too_large);
  EXPECT_EQ(text(f, kLargestFile - 5, 10), std::string("\0\0end", 5));
  EXPECT_EQ(model_.seek(f, 7, data), kLargestFile / kBlock * kBlock);
  EXPECT_EQ(model_.seek(f, kLargestFile - 1, hole), kLargestFile);
  ASSERT_TRUE(model_.truncate(f, 10, {}));
  EXPECT_EQ(model_.append(f, bytes_of("abc"), {}), 10u);
  // What is cut off does not come back.
  ASSERT_TRUE(model_.truncate(f, 11, {}));
  ASSERT_TRUE(model_.truncate(f, 20, {}));
  EXPECT_EQ(text(f, 10, 20), std::string("a\0\0\0\0\0\0\0\0\0", 10));
}

TEST_F(FsModelTest, SpaceIsAllocatedPunchedAndZeroed) {
  const InodeNumber f = make(kRootInode, "f");
  const WriteOptions later{kLater};
  using enum AllocationMode;
  ASSERT_TRUE(model_.allocate(f, keep_size, 0, 3 * kBlock, later));
  EXPECT_EQ(of(f).size, 0u);
  EXPECT_EQ(of(f).blocks, 24u);
  EXPECT_EQ(of(f).modified, kLater);
  EXPECT_EQ(of(f).changed, kLater);
  ASSERT_TRUE(model_.allocate(f, extend, 0, 2 * kBlock + 1, later));
  EXPECT_EQ(model_.seek(f, 0, Session::Seek::hole), 2 * kBlock + 1);
  const std::string full(2 * kBlock, 'x');
  ASSERT_TRUE(model_.write(f, 0, bytes_of(full), {}));
  ASSERT_TRUE(model_.allocate(f, punch, 1, 2 * kBlock - 2, later));
  EXPECT_EQ(of(f).blocks, 24u);
  EXPECT_EQ(text(f, 0, 3), std::string("x\0\0", 3));
  EXPECT_EQ(text(f, 2 * kBlock - 2, 2), std::string("\0x", 2));
  ASSERT_TRUE(model_.allocate(f, punch, 1, 2 * kBlock - 1, later));
  EXPECT_EQ(model_.seek(f, 0, Session::Seek::hole), kBlock);
  EXPECT_EQ(model_.seek(f, kBlock, Session::Seek::data), 2 * kBlock);
  EXPECT_EQ(model_.allocate(f, extend, 0, 0, later).error(), std::errc::invalid_argument);
  EXPECT_EQ(model_.allocate(f, punch, kLargestFile, 1, later).error(), std::errc::file_too_large);
  const Model before = model_;
  EXPECT_EQ(model_.allocate(f, extend, 0, kLargestFile, later).error(),
            std::errc::no_space_on_device);
  EXPECT_EQ(model_.allocate(f, zero, 0, 65 * kBlock, later).error(), std::errc::no_space_on_device);
  EXPECT_TRUE(model_ == before);
}

TEST_F(FsModelTest, WhatIsHeldExistsWithoutNames) {
  const Statistics empty = model_.statistics().value();
  const auto f = model_.create_unnamed({.mode = S_IFREG | 0600}, {});
  EXPECT_EQ(f->links, 0u);
  ASSERT_TRUE(model_.write(f->inode, 0, bytes_of("text"), {}));
  ASSERT_TRUE(model_.link(f->inode, kRootInode, "f", {}));
  model_.release(f->inode);
  ASSERT_TRUE(model_.hold(f->inode));
  ASSERT_TRUE(model_.hold(f->inode));
  ASSERT_TRUE(model_.unlink(kRootInode, "f", {}));
  model_.release(f->inode);
  EXPECT_EQ(text(f->inode, 0, 9), "text");
  Model failed = model_;
  failed.end_holds();
  EXPECT_FALSE(failed.exists(f->inode));
  EXPECT_EQ(failed.statistics()->free, empty.free);
  EXPECT_EQ(failed.statistics()->free_inodes, empty.free_inodes);
  // A number is used again, with another generation.
  const auto again = failed.create(kRootInode, "g", {.mode = S_IFREG}, {});
  EXPECT_EQ(again->inode, f->inode);
  EXPECT_NE(again->generation, f->generation);
}

TEST_F(FsModelTest, AWriteClearsSetIdIfAsked) {
  const InodeNumber f = make(kRootInode, "f");
  for (const auto& [before, after] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {06755, 0755}, {06745, 02745}, {04644, 0644}, {01777, 01777}}) {
    ASSERT_TRUE(model_.change(f, {.permissions = before}));
    ASSERT_TRUE(model_.write(f, 0, {}, {.clear_set_id = true}));
    EXPECT_EQ(of(f).mode, S_IFREG | before) << "a write of nothing";
    ASSERT_TRUE(model_.write(f, 0, bytes_of("x"), {.clear_set_id = true}));
    EXPECT_EQ(of(f).mode, S_IFREG | after);
  }
}

TEST_F(FsModelTest, ExtendedAttributesHaveModes) {
  const InodeNumber f = make(kRootInode, "f");
  using enum AttributeMode;
  const auto set = [&](std::string_view name, std::string_view value, AttributeMode mode) {
    const auto done = model_.set_extended(f, name, bytes_of(value), mode, kLater);
    return done ? std::errc{} : done.error();
  };
  EXPECT_EQ(set("user.a", "1", replace), std::errc::no_message_available);
  EXPECT_EQ(set("user.a", "1", create), std::errc{});
  EXPECT_EQ(set("user.a", "2", create), std::errc::file_exists);
  EXPECT_EQ(set("user.a", "2", neither), std::errc::file_exists);
  EXPECT_EQ(set("user.b", "2", neither), std::errc::no_message_available);
  EXPECT_EQ(set("user.a", std::string(kLargestAttribute + 1, 'x'), create_or_replace),
            std::errc::argument_list_too_long);
  EXPECT_EQ(set(std::string(256, 'n'), "1", create), std::errc::result_out_of_range);
  EXPECT_EQ(model_.extended(f, "user.a")->size(), 1u);
  EXPECT_EQ(of(f).changed, kLater);
  EXPECT_EQ(model_.extended_names(f)->size(), 1u);
  EXPECT_TRUE(model_.remove_extended(f, "user.a", {}));
  EXPECT_EQ(model_.remove_extended(f, "user.a", {}).error(), std::errc::no_message_available);
  EXPECT_EQ(model_.extended(f, "user.a").error(), std::errc::no_message_available);
}

TEST_F(FsModelTest, AWalkReturnsWhatStaysOnce) {
  for (char name = 'a'; name <= 'j'; ++name) make(kRootInode, std::string(1, name));
  std::string walked;
  std::uint64_t cookie = 0;
  for (int step = 0;; ++step) {
    const auto some = model_.entries(kRootInode, cookie, 2).value();
    if (some.empty()) break;
    for (const DirectoryEntry& entry : some) walked += entry.name;
    cookie = some.back().cookie;
    if (step == 0) {
      ASSERT_TRUE(model_.unlink(kRootInode, "b", {}));
      ASSERT_TRUE(model_.unlink(kRootInode, "e", {}));
      make(kRootInode, "k");
    }
  }
  EXPECT_EQ(walked, "abcdfghijk");
}

// Any operations keep the model whole; copies stay what they were, and equal ones have one hash.
TEST_F(FsModelTest, RandomOperationsKeepItWhole) {
  const unsigned seed = test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  std::vector<InodeNumber> inodes{kRootInode};
  const auto any = [&] { return inodes[random() % inodes.size()]; };
  const auto name = [&] { return std::string(1, static_cast<char>('a' + random() % 4)); };
  std::size_t successes = 0;
  for (int i = 0; i < 6'000; ++i) {
    const Model before = model_;
    const std::size_t hash = before.hash();
    bool done = false;
    switch (random() % 7) {
      case 0: {
        const auto made = model_.create(
            any(), name(), {.mode = random() % 2 != 0 ? S_IFDIR | 0755u : S_IFREG | 0644u}, {});
        done = made.has_value();
        if (done) inodes.push_back(made->inode);
        break;
      }
      case 1:
        done = model_.unlink(any(), name(), {}).has_value();
        break;
      case 2:
        done = model_.remove_directory(any(), name(), {}).has_value();
        break;
      case 3:
        done = model_.link(any(), any(), name(), {}).has_value();
        break;
      case 4:
        done =
            model_.rename(any(), name(), any(), name(), static_cast<RenameMode>(random() % 3), {})
                .has_value();
        break;
      case 5:
        done =
            model_.write(any(), random() % 20000, bytes_of(std::string(random() % 9000, 'x')), {})
                .has_value();
        break;
      default:
        done = model_
                   .allocate(any(), static_cast<AllocationMode>(random() % 5), random() % 20000,
                             random() % 20000, {})
                   .has_value();
    }
    ASSERT_EQ(model_.audit(), "") << "operation " << i;
    ASSERT_EQ(before.hash(), hash);
    if (!done) {
      ASSERT_TRUE(model_ == before) << "operation " << i;
    }
    if (model_ == before) {
      ASSERT_EQ(model_.hash(), hash);
    }
    successes += done;
    std::erase_if(inodes, [&](InodeNumber inode) { return !model_.exists(inode); });
  }
  EXPECT_GT(successes, 500u);
}

TEST_F(FsModelTest, EqualStatesOnDifferentWaysAreOne) {
  Model other = model_;
  std::unordered_set<Model> states{model_};
  const auto a = model_.create(kRootInode, "a", {.mode = S_IFREG}, {});
  ASSERT_TRUE(a);
  EXPECT_FALSE(model_ == other);
  ASSERT_TRUE(other.create(kRootInode, "b", {.mode = S_IFREG}, {}));
  ASSERT_TRUE(other.rename(kRootInode, "b", kRootInode, "a", RenameMode::keep, {}));
  EXPECT_TRUE(model_ == other);
  states.insert(model_);
  states.insert(other);
  EXPECT_EQ(states.size(), 2u);
  model_.choose_next_inode(InodeNumber{4711});
  EXPECT_EQ(model_.create(kRootInode, "c", {.mode = S_IFREG}, {})->inode, InodeNumber{4711});
}

}  // namespace
}  // namespace perdura::fs
