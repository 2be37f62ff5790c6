// Logs and their garbage, space and its end.
#include "platform/base/error.h"
#include "systems/nova/inspect.h"
#include "systems/nova/layout.h"
#include "tests/systems/nova/support.h"

namespace perdura::systems::nova::test {
namespace {

using fs::InodeNumber;
using fs::kRootInode;

const fs::NewInode kFile{.mode = S_IFREG | 0644};

std::uint64_t event(const fs::FileSystem& files, std::string_view name) {
  for (std::size_t i = 0; i < kNova.events.size(); ++i) {
    if (kNova.events[i].name == name) return files.events()[i];
  }
  ADD_FAILURE() << name;
  return 0;
}

// "The log's entries record all modifications to the file": section 4.1.2. "When the number of dead
// entries in a log becomes too large", it is rebuilt (section 4.2.2); so a file that is written
// again and again has a short log.
TEST(NovaLog, OfAFileThatIsOverwrittenStaysShort) {
  run("shm", {.size = 2 * MiB}, [](Thread& thread) -> Task<> {
    const auto files = co_await kNova.mount(thread, "home", {});
    const auto session = files->attach(thread);
    const auto made = co_await session->create(kRootInode, "a", kFile, {});
    const std::vector<std::byte> data = bytes(4096);
    fs::Statistics before;
    for (int i = 0; i < 20000; ++i) {
      const auto written = co_await session->write(made->inode, i % 4 * 4096, data, {});
      EXPECT_TRUE(written.has_value());
      if (i == 1000) before = *co_await session->statistics();
    }
    const auto after = co_await session->statistics();
    EXPECT_LE(before.free, after->free + 4 * kBlock);
    EXPECT_GT(event(*files, "fast collections"), 0U);
    EXPECT_EQ(co_await files->audit(), "");
  });
}

TEST(NovaLog, OfADirectoryWhoseNamesComeAndGoStaysShort) {
  run("shm", {.size = 2 * MiB}, [](Thread& thread) -> Task<> {
    const auto files = co_await kNova.mount(thread, "home", {});
    const auto session = files->attach(thread);
    co_await session->create(kRootInode, "stays", kFile, {});
    for (int i = 0; i < 20000; ++i) {
      const std::string name = "f" + std::to_string(i);
      co_await session->create(kRootInode, name, kFile, {});
      const auto removed = co_await session->unlink(kRootInode, name, {});
      EXPECT_TRUE(removed.has_value());
    }
    EXPECT_GT(event(*files, "thorough collections"), 0U) << "the first page has what stays";
    const auto statistics = co_await session->statistics();
    EXPECT_GT(statistics->free, statistics->capacity * 9 / 10);
    EXPECT_EQ(co_await files->audit(), "");
  });
}

// Full, of small files and of names: nothing is damaged, and everything can be removed.
TEST(NovaSpace, ThatIsFullCanBeMadeFree) {
  for (const Bytes bytes_each : {Bytes{0}, Bytes{1}, Bytes{9000}}) {
    run("shm", {.size = 2 * MiB}, [&](Thread& thread) -> Task<> {
      fs::FsConfig config;
      const auto files = co_await kNova.mount(thread, "home", config);
      const auto session = files->attach(thread);
      const auto before = co_await session->statistics();
      std::vector<std::string> names;
      const std::vector<std::byte> data = bytes(bytes_each);
      for (;;) {
        const std::string name = "a file of this number: " + std::to_string(names.size());
        const auto made = co_await session->create(kRootInode, name, kFile, {});
        if (!made) {
          EXPECT_EQ(made.error(), std::errc::no_space_on_device);
          break;
        }
        names.push_back(name);
        const auto written = co_await session->write(made->inode, 0, data, {});
        if (!written) {
          EXPECT_EQ(written.error(), std::errc::no_space_on_device);
          break;
        }
      }
      EXPECT_GT(names.size(), 50U);
      EXPECT_EQ(co_await files->audit(), "");
      // Every second one first, so that pages with names are never dead at once.
      for (const std::size_t first : {0, 1}) {
        for (std::size_t i = first; i < names.size(); i += 2) {
          const auto removed = co_await session->unlink(kRootInode, names[i], {});
          EXPECT_TRUE(removed.has_value()) << i;
        }
      }
      EXPECT_EQ(co_await files->audit(), "");
      const auto after = co_await session->statistics();
      EXPECT_EQ(after->free_inodes, before->free_inodes);
      EXPECT_GE(after->free + 2 * kBlock, before->free) << "the root's log";
    });
  }
}

TEST(NovaSpace, ThatWasAllocatedCanBeWrittenWhenItIsFull) {
  run("shm", {.size = 2 * MiB}, [](Thread& thread) -> Task<> {
    const auto files = co_await kNova.mount(thread, "home", {});
    const auto session = files->attach(thread);
    const auto made = co_await session->create(kRootInode, "a", kFile, {});
    const auto other = co_await session->create(kRootInode, "b", kFile, {});
    co_await session->write(made->inode, 0, bytes(1), {});
    const auto allocated =
        co_await session->allocate(made->inode, fs::AllocationMode::extend, 0, 100 * kBlock, {});
    EXPECT_TRUE(allocated.has_value());
    const std::vector<std::byte> data = bytes(kBlock);
    for (Bytes at = 0;; at += kBlock) {
      const auto written = co_await session->write(other->inode, at, data, {});
      if (!written) break;
    }
    for (Bytes at = kBlock + 100; at + kBlock < 40 * kBlock; at += 2 * kBlock) {
      const auto written = co_await session->write(made->inode, at, data, {});
      EXPECT_TRUE(written.has_value()) << at;
    }
    std::vector<std::byte> into(100 * kBlock);
    co_await session->read(made->inode, 0, into);
    EXPECT_EQ(into[kBlock + 99], std::byte{0});
    EXPECT_EQ(into[kBlock + 100], data[0]);
    EXPECT_EQ(into[50 * kBlock], std::byte{0});
    EXPECT_EQ(co_await files->audit(), "");
  });
}

// What is there can be changed, although a change is written to other blocks first.
TEST(NovaSpace, ThatIsFullCanBeOverwritten) {
  run("shm", {.size = 2 * MiB}, [](Thread& thread) -> Task<> {
    const auto files = co_await kNova.mount(thread, "home", {});
    const auto session = files->attach(thread);
    const auto made = co_await session->create(kRootInode, "a", kFile, {});
    const auto other = co_await session->create(kRootInode, "b", kFile, {});
    constexpr Bytes kLength = 64 * kBlock;
    co_await session->write(made->inode, 0, bytes(kLength), {});
    const std::vector<std::byte> data = bytes(kBlock);
    for (Bytes at = 0;; at += kBlock) {
      const auto written = co_await session->write(other->inode, at, data, {});
      if (!written) break;
    }
    const auto before = co_await session->statistics();
    for (Bytes at = 0; at + kBlock <= kLength; at += kBlock / 2) {
      const auto written = co_await session->write(made->inode, at, data, {});
      EXPECT_TRUE(written.has_value()) << at;
    }
    for (std::uint32_t i = 0; i < 1000; ++i) {
      const fs::AttributeChange change{.permissions = i % 2 == 0 ? 0600U : 0644U};
      const auto changed = co_await session->change(made->inode, change);
      EXPECT_TRUE(changed.has_value()) << i;
      const std::string_view from = i % 2 == 0 ? "b" : "c";
      const std::string_view to = i % 2 == 0 ? "c" : "b";
      const auto renamed =
          co_await session->rename(kRootInode, from, kRootInode, to, fs::RenameMode::replace, {});
      EXPECT_TRUE(renamed.has_value()) << i;
    }
    const auto grown = co_await session->write(made->inode, kLength, data, {});
    EXPECT_FALSE(grown.has_value());
    std::vector<std::byte> into(kBlock / 2);
    co_await session->read(made->inode, kBlock, into);
    EXPECT_TRUE(std::equal(into.begin(), into.end(), data.begin()));
    const auto after = co_await session->statistics();
    EXPECT_LE(before->free - std::min(before->free, after->free), 8 * kBlock) << "pages of logs";
    EXPECT_EQ(co_await files->audit(), "");
  });
}

// A clean unmount saves what is free, so that the next mount reads no log.
TEST(NovaMount, AfterACleanUnmountReadsNoLog) {
  run("shm", {}, [](Thread& thread) -> Task<> {
    {
      const auto files = co_await kNova.mount(thread, "home", {});
      const auto session = files->attach(thread);
      const auto made = co_await session->create(kRootInode, "a", kFile, {});
      co_await session->write(made->inode, 0, bytes(100), {});
    }
    co_await (co_await kNova.mount(thread, "home", {}))->unmount();
    const auto region = thread.node.open_region("home");
    const Geometry geometry = *stored_geometry(*region, 0);
    // Of a log that is not read nobody notices the damage.
    const Bytes tail = geometry.inode_offset(2) + kTailWord;
    const std::uint64_t whole = region->load(tail);
    region->store(tail, ~std::uint64_t{0});
    const auto files = co_await kNova.mount(thread, "home", {});
    region->store(tail, whole);
    EXPECT_EQ(co_await files->audit(), "");
  });
}

TEST(NovaMount, IsTheOnlyOneOfItsRegion) {
  for (const std::string& platform : perdura::test::platform_names()) {
    SCOPED_TRACE(platform);
    run(platform, {}, [](Thread& thread) -> Task<> {
      std::string why;
      const auto attempt = [&](auto function) -> Task<> {
        why.clear();
        try {
          co_await function();
        } catch (const UsageError& error) {
          why = error.what();
        }
      };
      const auto mounts = [&]() -> Task<> { co_await kNova.mount(thread, "home", {}); };
      const auto inspects = [&]() -> Task<> { co_await kNova.inspect(thread, "home", true); };
      const std::string mounted = "the file system 'home' is mounted; unmount it first";
      auto files = co_await kNova.mount(thread, "home", {});
      co_await attempt(mounts);
      EXPECT_EQ(why, mounted);
      co_await attempt(inspects);
      EXPECT_EQ(why, mounted);
      // As when its process dies.
      files.reset();
      co_await attempt(mounts);
      EXPECT_EQ(why, "");
      files = co_await kNova.mount(thread, "home", {});
      co_await files->unmount();
      co_await attempt(inspects);
      EXPECT_EQ(why, "");
      co_await attempt(mounts);
      EXPECT_EQ(why, "");
    });
  }
}

// What a mount after a failure finds, and how long it takes, with some threads.
struct Recovered {
  Picoseconds took{};
  fs::Statistics statistics;
  std::string problem;
  std::uint64_t orphans = 0;
  bool operator==(const Recovered& other) const {
    return took == other.took && statistics.free == other.statistics.free &&
           statistics.free_inodes == other.statistics.free_inodes && problem == other.problem &&
           orphans == other.orphans;
  }
};

Recovered recover_by(const std::string& platform, std::uint32_t threads, bool damages) {
  Recovered found;
  fs::FsConfig config{.size = 64 * MiB, .parameters = {{"inodes", std::uint64_t{5000}}}};
  run(platform, config, [&](Thread& thread) -> Task<> {
    {
      const auto files = co_await kNova.mount(thread, "home", config);
      const auto session = files->attach(thread);
      const std::vector<std::byte> data = bytes(100);
      InodeNumber directory{};
      for (int i = 0; i < 4800; ++i) {
        const std::string name = std::to_string(i);
        if (i % 50 == 0) {
          const fs::NewInode in{.mode = S_IFDIR | 0755};
          const auto made = co_await session->create(kRootInode, name, in, {});
          directory = made->inode;
        }
        const auto made = co_await session->create(directory, name, kFile, {});
        if (i % 3 == 0) co_await session->write(made->inode, 0, data, {});
        // Without a name, and held.
        if (i % 100 == 0) co_await session->create_unnamed(kFile, {});
      }
    }
    if (damages) {
      const auto region = thread.node.open_region("home");
      const Geometry geometry = *stored_geometry(*region, 0);
      for (const std::uint64_t number : {4000, 1111, 1200, 2500}) {
        const Bytes place = geometry.inode_offset(number) + kCacheLine;
        region->store(place, ~region->load(place));
      }
    }
    config.threads = threads;
    const Time begin = thread.executor.now();
    try {
      const auto files = co_await kNova.mount(thread, "home", config);
      found.took = thread.executor.now() - begin;
      const auto session = files->attach(thread);
      found.statistics = *co_await session->statistics();
      found.orphans = event(*files, "orphans reclaimed");
      found.problem = co_await files->audit();
    } catch (const UsageError& error) {
      found.problem = error.what();
    }
  });
  return found;
}

TEST(NovaMount, AfterAFailureReadsLogsByAllThreads) {
  const Recovered one = recover_by("sim", 1, false);
  const Recovered four = recover_by("sim", 4, false);
  EXPECT_EQ(one.problem, "");
  EXPECT_GT(one.orphans, 10U);
  EXPECT_LT(four.took, one.took / 2);
  EXPECT_EQ(four, recover_by("sim", 4, false)) << "it differs from run to run";
  for (Recovered other : {four, recover_by("shm", 4, false)}) {
    other.took = one.took;
    EXPECT_EQ(other, one);
  }
}

TEST(NovaMount, NamesTheFirstInodeThatIsDamagedWhicheverThreadFindsIt) {
  for (const std::string& platform : perdura::test::platform_names()) {
    for (const std::uint32_t threads : {1, 3}) {
      const std::string problem = recover_by(platform, threads, true).problem;
      EXPECT_NE(problem.find("inode 1111 is damaged"), std::string::npos) << problem;
    }
  }
}

TEST(NovaMount, OfDirectAccessChangesDataInPlace) {
  run("sim", {}, [](Thread& thread) -> Task<> {
    const auto files = co_await kNova.mount(thread, "home", {});
    const auto session = files->attach(thread);
    const auto made = co_await session->create(kRootInode, "a", kFile, {});
    co_await session->write(made->inode, 0, bytes(10000), {});
    {
      const auto mapping = co_await session->map(made->inode, 0, 3 * kBlock);
      const fs::MappedExtent extent = (*mapping)->extents()[0];
      (*mapping)->region().store(extent.in_region + 8, 0x1122334455667788);
      co_await session->sync(made->inode);
      co_await session->write(made->inode, 16, bytes(8, 7), {});
      EXPECT_EQ((*mapping)->region().load(extent.in_region + 16), 0x0707070707070707U);
    }
    std::vector<std::byte> into(24);
    co_await session->read(made->inode, 0, into);
    EXPECT_EQ(into[8], std::byte{0x88});
    EXPECT_EQ(into[16], std::byte{7});
    EXPECT_EQ(co_await files->audit(), "");
  });
}

}  // namespace
}  // namespace perdura::systems::nova::test
