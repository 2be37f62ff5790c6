// Cases of damaged logs and inodes, one each, that random trees seldom have (salvage_test.cc).
#include <fmt/format.h>

#include "tests/systems/nova/damaged_images.h"
#include "tests/systems/nova/support.h"

namespace perdura::systems::nova::test {
namespace {

using fs::kRootInode;

class SmallTree {
 public:
  explicit SmallTree(Thread& thread) : thread_(thread) {}

  Task<> mount() {
    files_ = co_await kNova.mount(thread_, "home", roomy());
    session_ = files_->attach(thread_);
  }
  Task<> end(bool unmounts) {
    session_.reset();
    if (unmounts) co_await files_->unmount();
    files_.reset();
  }
  fs::Session& session() { return *session_; }
  Task<std::uint64_t> make(fs::InodeNumber in, const char* name, const fs::NewInode& inode) {
    const auto made = co_await session_->create(in, name, inode, now());
    EXPECT_TRUE(made.has_value());
    co_return made ? static_cast<std::uint64_t>(made->inode) : 0;
  }
  Task<> write(std::uint64_t file, Bytes at, int value) {
    const std::vector<std::byte> data = bytes(kBlock, value);
    const auto written = co_await session_->write(fs::InodeNumber{file}, at, data, {.now = now()});
    EXPECT_TRUE(written.has_value());
  }
  fs::Timestamp now() { return {++clock_, 0}; }

  // The place of the entry, counted from the last one, of the inode's log.
  Bytes entry_of(std::uint64_t inode, Bytes from_last) {
    const auto region = thread_.node.open_region("home");
    const Geometry geometry = *stored_geometry(*region, 0);
    return end_of(region->load(geometry.inode_offset(inode) + kTailWord)) -
           (from_last + 1) * kCacheLine;
  }
  void lose(Bytes line) {
    constexpr std::array<std::byte, kCacheLine> kNothing{};
    thread_.node.open_region("home")->write(line, kNothing);
  }
  void lose_base(std::uint64_t inode) {
    const auto region = thread_.node.open_region("home");
    lose(stored_geometry(*region, 0)->inode_offset(inode) + kCacheLine);
  }
  Task<> repair() {
    for (const fs::Damage& each : co_await kNova.inspect(thread_, "home", true)) {
      EXPECT_TRUE(each.repaired) << each.where << ": " << each.what;
    }
    const std::vector<fs::Damage> left = co_await kNova.inspect(thread_, "home", false);
    EXPECT_TRUE(left.empty());
  }
  Task<fs::Tree> tree() {
    co_await mount();
    const std::string audit = co_await files_->audit();
    EXPECT_EQ(audit, "");
    const fs::Tree tree = co_await fs::read_tree(*session_, kTree);
    EXPECT_TRUE(tree.problems.empty());
    co_await end(true);
    co_return tree;
  }

 private:
  Thread& thread_;
  std::shared_ptr<fs::FileSystem> files_;
  std::unique_ptr<fs::Session> session_;
  std::int64_t clock_ = 0;
};

constexpr fs::NewInode kPlainFile{.mode = S_IFREG | 0644};

void expect_one_block(const fs::Tree& tree, std::uint64_t inode, Bytes place, int value) {
  const std::string path = fmt::format("/lost+found/#{}", inode);
  EXPECT_TRUE(tree.names.contains(path)) << path;
  if (!tree.names.contains(path)) return;
  const std::vector<fs::Extent> expected{{place, bytes(kBlock, value)}};
  EXPECT_TRUE(tree.at(path).data == expected) << path;
}

// The first file has lost the entry that freed a block, which the second one has got since. Nothing
// of the second one's record can be read, but all of its log.
TEST(NovaRepair, LeavesABlockToTheDamagedFileThatHasItNow) {
  for (const bool unmounts : {false, true}) {
    run("shm", roomy(), [&](Thread& thread) -> Task<> {
      SmallTree home(thread);
      co_await home.mount();
      const std::uint64_t first = co_await home.make(kRootInode, "first", kPlainFile);
      const std::uint64_t second = co_await home.make(kRootInode, "second", kPlainFile);
      co_await home.write(first, 0, 1);
      co_await home.write(first, 0, 2);
      co_await home.write(second, 0, 3);
      co_await home.write(first, 4 * kBlock, 4);
      co_await home.end(unmounts);
      home.lose(home.entry_of(first, 1));
      home.lose_base(second);
      co_await home.repair();
      const fs::Tree tree = co_await home.tree();
      expect_one_block(tree, first, 4 * kBlock, 4);
      expect_one_block(tree, second, 0, 3);
    });
  }
}

// Both have lost entries, and the bitmap of used blocks does not say whose they are.
TEST(NovaRepair, GivesABlockToNoneOfTwoFilesThatMayHaveIt) {
  run("shm", roomy(), [](Thread& thread) -> Task<> {
    SmallTree home(thread);
    co_await home.mount();
    const std::uint64_t first = co_await home.make(kRootInode, "first", kPlainFile);
    const std::uint64_t second = co_await home.make(kRootInode, "second", kPlainFile);
    co_await home.write(first, 0, 1);
    co_await home.write(first, 0, 2);
    co_await home.write(second, 0, 3);
    co_await home.write(second, kBlock, 3);
    co_await home.write(second, 4 * kBlock, 4);
    co_await home.write(first, 4 * kBlock, 4);
    co_await home.end(true);
    home.lose(home.entry_of(first, 1));
    home.lose(home.entry_of(second, 1));
    co_await home.repair();
    const fs::Tree tree = co_await home.tree();
    expect_one_block(tree, first, 4 * kBlock, 4);
    expect_one_block(tree, second, 4 * kBlock, 4);
  });
}

// A log page has one entry, which is lost. The pages after it, of which only the last one is known
// otherwise, are still found when all free blocks have been written to.
TEST(NovaRepair, FindsThePagesAfterOneWithoutEntries) {
  run("shm", roomy(), [](Thread& thread) -> Task<> {
    constexpr std::uint64_t kInAPage = kSmallestLogPage / kCacheLine - 1;
    SmallTree home(thread);
    co_await home.mount();
    const std::uint64_t file = co_await home.make(kRootInode, "file", kPlainFile);
    // Blocks that are not adjacent have an entry each, also when the log is collected.
    const auto place = [](std::uint64_t i) { return 2 * i * kBlock; };
    for (std::uint64_t i = 0; i < kInAPage; ++i) co_await home.write(file, place(i), 1);
    const std::string name(fs::kLongestAttributeName, 'n');
    const std::vector<std::byte> value = bytes(kLongestInlineValue);
    const auto set = co_await home.session().set_extended(fs::InodeNumber{file}, name, value,
                                                          fs::AttributeMode::create, home.now());
    EXPECT_TRUE(set.has_value());
    const Bytes page = home.entry_of(file, kInAPage - 1);
    EXPECT_EQ(page % kBlock, 0U) << "the entry fills a page";
    std::vector<fs::Extent> expected;
    for (std::uint64_t i = 20; i <= 20 + kInAPage; ++i) {
      co_await home.write(file, place(i), 2);
      expected.push_back({place(i), bytes(kBlock, 2)});
    }
    co_await home.end(false);
    home.lose(page);
    co_await overwrite_what_is_free(thread);
    co_await home.repair();
    const fs::Tree tree = co_await home.tree();
    const std::string path = fmt::format("/lost+found/#{}", file);
    EXPECT_TRUE(tree.names.contains(path));
    if (tree.names.contains(path)) {
      EXPECT_TRUE(tree.at(path).data == expected);
    }
  });
}

// The directory has lost the entry that removed a name, and a new file has the number of the old
// one.
TEST(NovaRepair, DoesNotGiveANewFileThePastNameOfAnother) {
  run("shm", roomy(), [](Thread& thread) -> Task<> {
    SmallTree home(thread);
    co_await home.mount();
    const std::uint64_t directory = co_await home.make(kRootInode, "in", {.mode = S_IFDIR | 0755});
    const fs::InodeNumber in{directory};
    const std::uint64_t past = co_await home.make(in, "past", kPlainFile);
    EXPECT_TRUE((co_await home.session().unlink(in, "past", home.now())).has_value());
    const std::uint64_t present = co_await home.make(in, "present", kPlainFile);
    EXPECT_EQ(present, past) << "the number is used again";
    co_await home.end(true);
    home.lose(home.entry_of(directory, 1));
    co_await home.repair();
    const fs::Tree tree = co_await home.tree();
    EXPECT_TRUE(tree.names.contains("/in/present"));
    EXPECT_FALSE(tree.names.contains("/in/past"));
    if (tree.names.contains("/in/present")) {
      EXPECT_EQ(tree.at("/in/present").links, 1U);
    }
  });
}

// A block with the target of a link, over which another file has written.
TEST(NovaRepair, ShowsNoTargetThatIsNotTheLinks) {
  for (const bool is_damaged : {false, true}) {
    run("shm", roomy(), [&](Thread& thread) -> Task<> {
      SmallTree home(thread);
      co_await home.mount();
      const std::string target(200, 't');
      const std::uint64_t link =
          co_await home.make(kRootInode, "link", {.mode = S_IFLNK | 0777, .target = target});
      co_await home.session().change(fs::InodeNumber{link}, {.uid = 1});
      co_await home.end(true);
      const auto region = thread.node.open_region("home");
      const Geometry geometry = *stored_geometry(*region, 0);
      const auto record = region->read_object<InodeRecord>(geometry.inode_offset(link));
      region->write(record.base.target_block * kBlock, bytes(kBlock, 0xC3));
      if (is_damaged) home.lose(home.entry_of(link, 0));
      const std::vector<fs::Damage> found = co_await kNova.inspect(thread, "home", true);
      EXPECT_FALSE(found.empty());
      co_await home.mount();
      const auto read = co_await home.session().read_link(fs::InodeNumber{link});
      EXPECT_FALSE(read.has_value());
      if (!read) {
        EXPECT_EQ(read.error(),
                  is_damaged ? std::errc::no_such_file_or_directory : std::errc::io_error);
      }
      co_await home.end(true);
    });
  }
}

// A mount that has found damage knows not all used blocks, and says so when it is unmounted.
TEST(NovaRepair, DoesNotTrustTheBitmapOfADamagedMount) {
  run("shm", roomy(), [](Thread& thread) -> Task<> {
    SmallTree home(thread);
    co_await home.mount();
    const std::uint64_t file = co_await home.make(kRootInode, "file", kPlainFile);
    co_await home.write(file, 0, 1);
    co_await home.write(file, 0, 2);
    co_await home.write(file, 4 * kBlock, 4);
    co_await home.end(false);
    home.lose(home.entry_of(file, 1));
    co_await home.mount();
    co_await home.end(true);
    co_await home.repair();
    const fs::Tree tree = co_await home.tree();
    expect_one_block(tree, file, 4 * kBlock, 4);
  });
}

}  // namespace
}  // namespace perdura::systems::nova::test
