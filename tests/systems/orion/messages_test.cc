// How many messages Orion's operations take (chapter 4): what a client does by itself, by one-sided
// READs, by a log commit, and by an RPC.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "methods/chooser.h"
#include "systems/orion/orion.h"
#include "systems/orion/protocol/counted.h"
#include "tests/services/fs/bytes_of.h"
#include "tests/services/fs/home.h"
#include "tests/support/platforms.h"
#include "tests/systems/orion/group.h"

namespace perdura::systems::orion::test {
namespace {

using fs::InodeNumber;
using fs::kRootInode;
using fs::test::Home;

constexpr NodeId kStore = 1;
constexpr NodeId kExternal = 2;

// A session's messages since the last call.
class Messages {
 public:
  explicit Messages(fs::Session& session) : session_(session) { take(); }
  std::vector<double> take() {
    const std::vector<double> now = session_.metrics();
    std::vector<double> since = now;
    for (std::size_t i = 0; i < before_.size(); ++i) since[i] -= before_[i];
    before_ = now;
    return since;
  }

 private:
  fs::Session& session_;
  std::vector<double> before_;
};
double count(const std::vector<double>& messages, Measured what) {
  return messages[static_cast<std::size_t>(what)];
}

// Runs `body` with a session on a node: with kStore the client is internal.
void run(NodeId node, bool correct, const std::function<Task<>(fs::Session&)>& body) {
  fs::FsConfig config{.size = 4 * MiB, .threads = 2};
  if (correct) {
    config.data_method = methods::choose(methods::configurations(), *kOrion.cluster->update, {});
  }
  Home home(kOrion, config);
  const auto platform = perdura::test::make_platform("sim", fs::test::nodes_for(kOrion, 1));
  home.start(*platform);
  platform->start(node, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.make(thread, {});
    const auto files = co_await home.mount(thread);
    const auto session = files->attach(thread);
    co_await body(*session);
  });
  platform->run();
}

// Section 4.2.1: an RPC "involves multiple inodes".
TEST(OrionMessages, ACreateIsOneRpc) {
  run(kExternal, true, [](fs::Session& session) -> Task<> {
    co_await make_file(session, "first");
    Messages messages(session);
    co_await make_file(session, "second");
    const auto seen = messages.take();
    EXPECT_EQ(count(seen, Measured::rpcs), 1);
    EXPECT_EQ(count(seen, Measured::commits), 0);
    EXPECT_EQ(count(seen, Measured::log_reads), 0);
    EXPECT_EQ(count(seen, Measured::tail_reads), 0);
  });
}

// Sections 4.2.1 and 4.3.2: data goes to the client's own memory, and a log entry to the MDS.
TEST(OrionMessages, AWriteOfAnInternalClientIsOneCommit) {
  for (const bool correct : {true, false}) {
    run(kStore, correct, [](fs::Session& session) -> Task<> {
      const InodeNumber file = co_await make_file(session, "file");
      const auto data = std::vector<std::byte>(4096, std::byte{1});
      co_await session.write(file, 0, data, {});
      Messages messages(session);
      // The MDS chose the page in which the log begins with the first commit. The session READs it.
      co_await session.write(file, 0, data, {});
      EXPECT_EQ(count(messages.take(), Measured::log_reads), 1);
      for (int i = 0; i < 10; ++i) {
        const auto written = co_await session.write(file, 0, data, {});
        EXPECT_TRUE(written.has_value());
      }
      const auto seen = messages.take();
      EXPECT_EQ(count(seen, Measured::commits), 10);
      EXPECT_EQ(count(seen, Measured::rpcs), 0);
      EXPECT_EQ(count(seen, Measured::page_writes), 0);
      EXPECT_EQ(count(seen, Measured::page_reads), 0);
      EXPECT_EQ(count(seen, Measured::log_reads), 0);
    });
  }
}

TEST(OrionMessages, AWriteOfAnExternalClientIsOneWriteAndOneCommit) {
  run(kExternal, true, [](fs::Session& session) -> Task<> {
    const InodeNumber file = co_await make_file(session, "file");
    const auto data = std::vector<std::byte>(4096, std::byte{1});
    co_await session.write(file, 0, data, {});
    Messages messages(session);
    for (int i = 0; i < 10; ++i) co_await session.write(file, 0, data, {});
    const auto seen = messages.take();
    EXPECT_EQ(count(seen, Measured::commits), 10);
    EXPECT_EQ(count(seen, Measured::page_writes), 10);
    EXPECT_EQ(count(seen, Measured::rpcs), 0);
    EXPECT_EQ(count(seen, Measured::page_reads), 0);
  });
}

// Section 4.2.3: "Orion uses RPCs for all updates to these inodes."
TEST(OrionMessages, UpdatesOfAFileThatIsSharedIntensivelyAreRpcs) {
  run(kExternal, true, [](fs::Session& session) -> Task<> {
    const InodeNumber file = co_await make_file(session, "file");
    co_await session.write(file, 0, std::vector<std::byte>(4096, std::byte{1}), {});
    const auto updates = [&](double commits, double rpcs) -> Task<> {
      Messages messages(session);
      const auto written =
          co_await session.write(file, 0, std::vector<std::byte>(4096, std::byte{2}), {});
      EXPECT_TRUE(written.has_value());
      const auto cut = co_await session.truncate(file, 100, {});
      EXPECT_TRUE(cut.has_value());
      const auto changed = co_await session.change(file, {.permissions = 0600});
      EXPECT_TRUE(changed.has_value());
      const auto seen = messages.take();
      EXPECT_EQ(count(seen, Measured::commits), commits);
      EXPECT_EQ(count(seen, Measured::rpcs), rpcs);
    };
    co_await updates(3, 0);
    const auto set =
        co_await session.set_extended(file, kSharedAttribute, {}, fs::AttributeMode::create, {});
    EXPECT_TRUE(set.has_value());
    co_await updates(0, 3);
    const auto removed = co_await session.remove_extended(file, kSharedAttribute, {});
    EXPECT_TRUE(removed.has_value());
    co_await updates(3, 0);
  });
}

// Section 4.3.2: the cache serves reads; no store and no CPU of the MDS has a part in it.
TEST(OrionMessages, ACachedReadReadsTheTailOnly) {
  run(kExternal, true, [](fs::Session& session) -> Task<> {
    const InodeNumber file = co_await make_file(session, "file");
    co_await session.write(file, 0, std::vector<std::byte>(4096, std::byte{1}), {});
    std::vector<std::byte> into(4096);
    co_await session.read(file, 0, into);
    Messages messages(session);
    for (int i = 0; i < 10; ++i) {
      const auto read = co_await session.read(file, 0, into);
      EXPECT_TRUE(read && *read == into.size());
    }
    const auto seen = messages.take();
    EXPECT_EQ(count(seen, Measured::cache_hits), 10);
    EXPECT_EQ(count(seen, Measured::tail_reads), 10);
    EXPECT_EQ(count(seen, Measured::page_reads), 0);
    EXPECT_EQ(count(seen, Measured::log_reads), 0);
    EXPECT_EQ(count(seen, Measured::commits) + count(seen, Measured::rpcs), 0);
  });
}

// Section 4.2.1: RDMA reads "bypass the MDS CPU".
TEST(OrionMessages, LookingCostsTheMdsNoCpu) {
  fs::FsConfig config{.size = 4 * MiB, .threads = 2};
  Home home(kOrion, config);
  const auto platform = perdura::test::make_platform("sim", fs::test::nodes_for(kOrion, 1));
  home.start(*platform);
  platform->start(kExternal, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.make(thread, {});
    const auto files = co_await home.mount(thread);
    const auto session = files->attach(thread);
    const InodeNumber file = co_await make_file(*session, "file");
    Messages messages(*session);
    for (int i = 0; i < 10; ++i) {
      const auto found = co_await session->look_up(kRootInode, "file");
      EXPECT_TRUE(found && found->inode == file);
    }
    const auto seen = messages.take();
    // The directory's, the inode's, and the directory's again, which must not have moved.
    EXPECT_EQ(count(seen, Measured::tail_reads), 30);
    EXPECT_EQ(count(seen, Measured::commits) + count(seen, Measured::rpcs), 0);
  });
  platform->run();
}

}  // namespace
}  // namespace perdura::systems::orion::test
