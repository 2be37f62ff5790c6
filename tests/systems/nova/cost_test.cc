// What operations flush, as docs/systems/nova.md states it.
#include "tests/systems/nova/support.h"

namespace perdura::systems::nova::test {
namespace {

using fs::InodeNumber;
using fs::kRootInode;

struct Cost {
  std::uint64_t fences = 0;
  std::uint64_t flushes = 0;  // lines
  bool operator==(const Cost&) const = default;
};

void PrintTo(const Cost& cost, std::ostream* out) {
  *out << cost.fences << " fences, " << cost.flushes << " flushed lines";
}

class NovaCost : public testing::Test {
 protected:
  // The cost of `operation`, of which `before` is not part.
  template <class Operation>
  static Task<Cost> cost_of(Thread& thread, Operation operation) {
    const pmem::WriteCounts before = thread.node.pm_writes().total();
    co_await operation();
    const pmem::WriteCounts after = thread.node.pm_writes().total();
    co_return Cost{after.fences - before.fences, after.flushes - before.flushes};
  }
};

TEST_F(NovaCost, IsWhatTheDocumentationStates) {
  run("sim", {}, [](Thread& thread) -> Task<> {
    const auto files = co_await kNova.mount(thread, "home", {});
    const auto session = files->attach(thread);
    const std::vector<std::byte> data = bytes(4096);
    const fs::NewInode file{.mode = S_IFREG | 0644};
    const fs::NewInode directory{.mode = S_IFDIR | 0755};
    // The first name and the first write give the logs their first pages.
    const auto made = co_await session->create(kRootInode, "a", file, {});
    const InodeNumber inode = made->inode;
    co_await session->write(inode, 0, data, {});
    const auto home = co_await session->create(kRootInode, "home", directory, {});
    const InodeNumber in = home->inode;
    co_await session->create(in, "x", file, {});

    const auto write = [&]() -> Task<> { co_await session->write(inode, 4096, data, {}); };
    EXPECT_EQ(co_await cost_of(thread, write), (Cost{2, 2})) << "entry; tail";
    const auto overwrite = [&]() -> Task<> { co_await session->write(inode, 100, data, {}); };
    EXPECT_EQ(co_await cost_of(thread, overwrite), (Cost{2, 2})) << "entry; tail";
    const auto change = [&]() -> Task<> {
      const fs::AttributeChange to{.permissions = 0600};
      co_await session->change(inode, to);
    };
    EXPECT_EQ(co_await cost_of(thread, change), (Cost{2, 2})) << "entry; tail";
    const auto create = [&]() -> Task<> { co_await session->create(kRootInode, "b", file, {}); };
    EXPECT_EQ(co_await cost_of(thread, create), (Cost{3, 8}))
        << "the inode's four lines and an entry; a record of one line and its end; two words";
    const auto link = [&]() -> Task<> { co_await session->link(inode, kRootInode, "c", {}); };
    EXPECT_EQ(co_await cost_of(thread, link), (Cost{3, 5})) << "two entries; record; two tails";
    const auto rename = [&]() -> Task<> {
      co_await session->rename(kRootInode, "c", in, "c", fs::RenameMode::replace, {});
    };
    EXPECT_EQ(co_await cost_of(thread, rename), (Cost{3, 8})) << "three entries; record; tails";
    const auto unlink = [&]() -> Task<> { co_await session->unlink(kRootInode, "b", {}); };
    EXPECT_EQ(co_await cost_of(thread, unlink), (Cost{3, 4})) << "entry; record; tail and state";
    const auto read = [&]() -> Task<> {
      std::vector<std::byte> into(4096);
      co_await session->read(inode, 0, into);
      co_await session->look_up(kRootInode, "a");
      co_await session->sync(inode);
    };
    EXPECT_EQ(co_await cost_of(thread, read), (Cost{0, 0}));
  });
}

}  // namespace
}  // namespace perdura::systems::nova::test
