// Trees are equal if users see the same, and a difference is told in words.
#include "services/fs/tree.h"

#include <gtest/gtest.h>

#include <functional>

#include "services/fs/model/model_file_system.h"
#include "tests/services/fs/bytes_of.h"

namespace perdura::fs {
namespace {

InodeNumber at(const Model& model, std::string_view name) {
  return model.look_up(kRootInode, name)->inode;
}

Model example() {
  Model model;
  EXPECT_TRUE(model.create(kRootInode, "a", {.mode = S_IFREG | 0644}, {}));
  const auto d = model.create(kRootInode, "d", {.mode = S_IFDIR | 0755}, {});
  EXPECT_TRUE(model.create(d->inode, "link", {.mode = S_IFLNK | 0777, .target = "../a"}, {}));
  EXPECT_TRUE(model.link(at(model, "a"), d->inode, "b", {}));
  EXPECT_TRUE(model.create(kRootInode, "z", {.mode = S_IFREG | 0644}, {}));
  EXPECT_TRUE(model.write(at(model, "a"), 9000, bytes_of("text"), {}));
  EXPECT_TRUE(model.truncate(at(model, "a"), kLargestFile, {}));
  EXPECT_TRUE(
      model.set_extended(at(model, "a"), "user.x", bytes_of("1"), AttributeMode::create, {}));
  return model;
}

TEST(FsTreeTest, ShowsAllThatCanBeReached) {
  const Tree tree = tree_of(example());
  EXPECT_EQ(tree.problems, std::vector<std::string>());
  EXPECT_EQ(tree.names.size(), 6u);
  EXPECT_EQ(tree.names.at("/a"), tree.names.at("/d/b"));
  EXPECT_EQ(tree.at("/d/link").target, "../a");
  EXPECT_EQ(tree.at("/a").size, kLargestFile);
  ASSERT_EQ(tree.at("/a").data.size(), 1u);
  EXPECT_EQ(tree.at("/a").data[0].offset, 8192u);
}

TEST(FsTreeTest, TellsTheFirstDifference) {
  const Tree expected = tree_of(example(), {.times = true});
  EXPECT_EQ(difference(tree_of(example(), {.times = true}), expected), "");
  const Timestamp later{7, 1};
  for (const auto& [change, words] :
       std::vector<std::pair<std::function<void(Model&)>, std::string>>{
           {[](Model& model) { (void)model.unlink(kRootInode, "a", {}); }, "/a is missing"},
           {[](Model& model) { (void)model.create(kRootInode, "c", {.mode = S_IFIFO}, {}); },
            "/c should not exist"},
           {[](Model& model) { (void)model.change(kRootInode, {.permissions = 0700}); },
            "/: mode 40700 instead of 40755"},
           {[](Model& model) { (void)model.change(at(model, "z"), {.gid = 5}); },
            "/z: group 5 instead of 0"},
           {[](Model& model) { (void)model.write(at(model, "a"), 9001, bytes_of("o"), {}); },
            "/a: byte 9001 is 0x6f instead of 0x65"},
           {[](Model& model) { (void)model.write(at(model, "a"), 0, bytes_of("o"), {}); },
            "/a: data at 0 instead of a hole"},
           {[](Model& model) { (void)model.remove_extended(at(model, "a"), "user.x", {}); },
            "/a: it lacks user.x"},
           {[&](Model& model) { (void)model.change(at(model, "z"), {.modified = later}); },
            "/z: modified 7.000000001 instead of 0.000000000"},
           {[](Model& model) {
              (void)model.rename(kRootInode, "a", kRootInode, "z", RenameMode::exchange, {});
            },
            "/a: links 1 instead of 2"}}) {
    Model changed = example();
    change(changed);
    EXPECT_EQ(difference(tree_of(changed, {.times = true}), expected), words);
  }
}

// A block of zeros is a hole, unless holes are asked for.
TEST(FsTreeTest, SeesHolesIfAsked) {
  Model with = example();
  ASSERT_TRUE(with.allocate(at(with, "z"), AllocationMode::extend, 0, 10, {}));
  Model without = example();
  ASSERT_TRUE(without.truncate(at(without, "z"), 10, {}));
  EXPECT_EQ(difference(tree_of(with), tree_of(without)), "");
  EXPECT_EQ(difference(tree_of(with, {.holes = true}), tree_of(without, {.holes = true})),
            "/z: data at 0 instead of a hole");
}

// Inode numbers, cookies and the order of creation differ from system to system.
TEST(FsTreeTest, DoesNotSeeWhatUsersCannot) {
  Model other;
  ASSERT_TRUE(other.create(kRootInode, "z", {.mode = S_IFREG | 0644}, {}));
  ASSERT_TRUE(other.create(kRootInode, "d", {.mode = S_IFDIR | 0755}, {}));
  ASSERT_TRUE(other.create(at(other, "d"), "b", {.mode = S_IFREG | 0644}, {}));
  ASSERT_TRUE(other.link(other.look_up(at(other, "d"), "b")->inode, kRootInode, "a", {}));
  ASSERT_TRUE(other.create(at(other, "d"), "link", {.mode = S_IFLNK | 0777, .target = "../a"}, {}));
  ASSERT_TRUE(other.write(at(other, "a"), 9000, bytes_of("text"), {}));
  ASSERT_TRUE(other.truncate(at(other, "a"), kLargestFile, {}));
  ASSERT_TRUE(
      other.set_extended(at(other, "a"), "user.x", bytes_of("1"), AttributeMode::create, {}));
  EXPECT_EQ(difference(tree_of(other), tree_of(example())), "");
}

}  // namespace
}  // namespace perdura::fs
