// Two clients of one file system, each with a mount on a node of its own: what one of them has done
// is seen by the other at once. Systems of one node have no such clients.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <set>
#include <vector>

#include "systems/registry/registry.h"
#include "tests/services/fs/bytes_of.h"
#include "tests/services/fs/home.h"
#include "tests/services/fs/random_operations.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"

namespace perdura::fs::test {
namespace {

struct TwoMounts {
  std::string platform;
  const FsSystem* system;
};

std::vector<TwoMounts> all_two_mounts() {
  std::vector<TwoMounts> all;
  for (const FsSystem& system : systems::fs_systems()) {
    for (const std::string& platform : perdura::test::platform_names()) {
      all.push_back({platform, &system});
    }
  }
  return all;
}

constexpr std::array kMaybe{true, false};

// A client of the test, with its mount.
struct Client {
  Thread* thread = nullptr;
  std::shared_ptr<FileSystem> files;
  std::unique_ptr<Session> session;
};

class FsMounts : public testing::TestWithParam<TwoMounts> {
 protected:
  using Body = std::function<Task<>(Client& client, std::size_t number)>;

  void SetUp() override {
    if (GetParam().system->cluster == nullptr) GTEST_SKIP() << "it has one node";
  }

  // Runs `body` on the nodes of two clients; each has mounted it.
  void run(const Body& body) {
    const FsSystem& system = *GetParam().system;
    Home home(system, config_of(system, false));
    const auto platform = perdura::test::make_platform(GetParam().platform, nodes_for(system, 2));
    home.start(*platform);
    const auto mounted = platform->create_barrier(2);
    const auto ended = platform->create_barrier(2);
    barrier_ = platform->create_barrier(2);
    home_ = &home;
    for (std::size_t number = 0; number < 2; ++number) {
      platform->start(home.client(static_cast<NodeId>(number)), 0, CompletionMode::polling,
                      [&, number](Thread& thread) -> Task<> {
                        if (number == 0) co_await home.make(thread, {});
                        co_await mounted->arrive_and_wait();
                        Client client{&thread, nullptr, nullptr};
                        co_await mount(client);
                        co_await body(client, number);
                        co_await ended->arrive_and_wait();
                        if (client.files == nullptr) co_return;
                        client.session.reset();
                        const std::string audit = co_await client.files->audit();
                        EXPECT_EQ(audit, "");
                        co_await client.files->unmount();
                        client.files.reset();
                        co_await ended->arrive_and_wait();
                        if (number > 0) co_return;
                        const std::string of_servers = co_await home.audit();
                        EXPECT_EQ(of_servers, "");
                      });
    }
    platform->run();
    barrier_.reset();
  }
  Task<> mount(Client& client) {
    client.files = co_await home_->mount(*client.thread);
    client.session = client.files->attach(*client.thread);
  }

  // The steps of a test, one after the other, each by one of the clients.
  struct Turn {
    std::size_t client;
    std::function<Task<>(Client& client)> step;
  };
  void take_turns(const std::vector<Turn>& turns) {
    run([&](Client& client, std::size_t number) -> Task<> {
      for (const Turn& turn : turns) {
        if (turn.client == number && !testing::Test::HasFatalFailure()) {
          co_await turn.step(client);
        }
        co_await barrier_->arrive_and_wait();
      }
    });
  }

  std::unique_ptr<Platform::Barrier> barrier_;
  Home* home_ = nullptr;
};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Task<std::string> contents(Session& session, InodeNumber inode) {
  std::vector<std::byte> into(64 * KiB);
  const auto read = co_await session.read(inode, 0, into);
  if (!read) co_return std::make_error_code(read.error()).message();
  co_return text_of(std::span(into).first(*read));
}

Task<std::set<std::string>> names(Session& session, InodeNumber directory) {
  std::set<std::string> names;
  const auto found = co_await session.entries(directory, 0, 100);
  if (!found) co_return names;
  for (const DirectoryEntry& entry : *found) names.insert(entry.name);
  co_return names;
}

TEST_P(FsMounts, SeeAtOnceWhatTheOtherHasDone) {
  InodeNumber file{};
  InodeNumber directory{};
  Attributes known;
  const auto note = [&](Session& session) -> Task<> {
    const auto attributes = co_await session.attributes(file);
    EXPECT_TRUE(attributes.has_value());
    if (attributes) known = *attributes;
  };
  const auto expect_known = [&](Session& session) -> Task<> {
    const auto attributes = co_await session.attributes(file);
    EXPECT_TRUE(attributes.has_value());
    if (attributes) {
      EXPECT_TRUE(*attributes == known)
          << attributes->size << " bytes, modified " << attributes->modified.seconds;
    }
  };
  using Names = std::set<std::string>;
  take_turns({
      {0,
       [&](Client& client) -> Task<> {
         const auto made =
             co_await client.session->create(kRootInode, "a", {.mode = S_IFREG | 0644}, {1, 0});
         const auto folder =
             co_await client.session->create(kRootInode, "d", {.mode = S_IFDIR | 0755}, {2, 0});
         EXPECT_TRUE(made && folder);
         if (made) file = made->inode;
         if (folder) directory = folder->inode;
         const auto done =
             co_await client.session->write(file, 0, bytes_of("hello"), {.now = {3, 0}});
         EXPECT_TRUE(done.has_value());
         co_await note(*client.session);
       }},
      {1,
       [&](Client& client) -> Task<> {
         const auto found = co_await client.session->look_up(kRootInode, "a");
         EXPECT_TRUE(found && *found == known);
         co_await expect_known(*client.session);
         const std::string text = co_await contents(*client.session, file);
         EXPECT_EQ(text, "hello");
         const Names all = co_await names(*client.session, kRootInode);
         EXPECT_EQ(all, (Names{"a", "d"}));
       }},
      {0,
       [&](Client& client) -> Task<> {
         const auto appended =
             co_await client.session->append(file, bytes_of(" world"), {.now = {4, 0}});
         EXPECT_TRUE(appended && *appended == 5);
         const auto synced = co_await client.session->sync(file);
         EXPECT_TRUE(synced.has_value());
         AttributeChange change;
         change.permissions = 0600;
         change.uid = 7;
         change.changed = Timestamp{5, 0};
         const auto changed = co_await client.session->change(file, change);
         EXPECT_TRUE(changed.has_value());
         const auto set = co_await client.session->set_extended(file, "user.x", bytes_of("value"),
                                                                AttributeMode::create, {6, 0});
         EXPECT_TRUE(set.has_value());
         co_await note(*client.session);
       }},
      {1,
       [&](Client& client) -> Task<> {
         co_await expect_known(*client.session);
         const std::string text = co_await contents(*client.session, file);
         EXPECT_EQ(text, "hello world");
         const auto value = co_await client.session->extended(file, "user.x");
         EXPECT_TRUE(value && text_of(*value) == "value");
         // In place of what the other may have cached, and in the middle of it.
         const auto written =
             co_await client.session->write(file, 6, bytes_of("there"), {.now = {7, 0}});
         EXPECT_TRUE(written.has_value());
         co_await note(*client.session);
       }},
      {0,
       [&](Client& client) -> Task<> {
         co_await expect_known(*client.session);
         const std::string text = co_await contents(*client.session, file);
         EXPECT_EQ(text, "hello there");
         const auto moved = co_await client.session->rename(kRootInode, "a", directory, "b",
                                                            RenameMode::replace, {8, 0});
         EXPECT_TRUE(moved.has_value());
         const auto cut = co_await client.session->truncate(file, 4, {.now = {9, 0}});
         EXPECT_TRUE(cut.has_value());
       }},
      {1,
       [&](Client& client) -> Task<> {
         const auto gone = co_await client.session->look_up(kRootInode, "a");
         EXPECT_TRUE(!gone && gone.error() == std::errc::no_such_file_or_directory);
         const auto found = co_await client.session->look_up(directory, "b");
         EXPECT_TRUE(found && found->inode == file && found->size == 4);
         const std::string text = co_await contents(*client.session, file);
         EXPECT_EQ(text, "hell");
         const Names all = co_await names(*client.session, directory);
         EXPECT_EQ(all, (Names{"b"}));
         const auto removed = co_await client.session->unlink(directory, "b", {10, 0});
         EXPECT_TRUE(removed.has_value());
       }},
      {0,
       [&](Client& client) -> Task<> {
         const auto gone = co_await client.session->look_up(directory, "b");
         EXPECT_TRUE(!gone && gone.error() == std::errc::no_such_file_or_directory);
         const auto removed = co_await client.session->remove_directory(kRootInode, "d", {11, 0});
         EXPECT_TRUE(removed.has_value());
         const auto target = co_await client.session->create(
             kRootInode, "l", {.mode = S_IFLNK | 0777, .target = "elsewhere"}, {12, 0});
         EXPECT_TRUE(target.has_value());
       }},
      {1,
       [&](Client& client) -> Task<> {
         const Names all = co_await names(*client.session, kRootInode);
         EXPECT_EQ(all, (Names{"l"}));
         const auto link = co_await client.session->look_up(kRootInode, "l");
         EXPECT_TRUE(link.has_value());
         if (!link) co_return;
         const auto target = co_await client.session->read_link(link->inode);
         EXPECT_TRUE(target && *target == "elsewhere");
       }},
  });
}

// Both append at the same time; each record is where its append says, and nothing else is there.
TEST_P(FsMounts, AppendsNeverOverlap) {
  constexpr int kRecords = 150;
  struct Record {
    Bytes offset = 0;
    std::string text;
  };
  std::array<std::vector<Record>, 2> appended;
  std::atomic<std::uint64_t> file{0};
  run([&](Client& client, std::size_t number) -> Task<> {
    Session& session = *client.session;
    if (number == 0) {
      const auto made = co_await session.create(kRootInode, "log", {.mode = S_IFREG | 0644}, {});
      EXPECT_TRUE(made.has_value());
      if (made) file = static_cast<std::uint64_t>(made->inode);
    }
    co_await barrier_->arrive_and_wait();
    const InodeNumber log{file.load()};
    std::mt19937_64 random(number);
    for (int i = 0; i < kRecords; ++i) {
      const std::size_t most = i % 10 == 0 ? 9000 : 200;
      const std::string text(1 + random() % most,
                             static_cast<char>('a' + 13 * number + random() % 13));
      const auto at = co_await session.append(log, bytes_of(text), {.now = {i, 0}});
      EXPECT_TRUE(at.has_value());
      if (!at) break;
      appended[number].push_back({*at, text});
      co_await yield();
    }
    co_await barrier_->arrive_and_wait();
    std::vector<Record> all = appended[0];
    all.insert(all.end(), appended[1].begin(), appended[1].end());
    std::sort(all.begin(), all.end(),
              [](const Record& a, const Record& b) { return a.offset < b.offset; });
    Bytes end = 0;
    for (const Record& record : all) {
      EXPECT_EQ(record.offset, end) << "appends overlap, or leave a hole";
      end = record.offset + record.text.size();
      std::vector<std::byte> into(record.text.size());
      const auto read = co_await session.read(log, record.offset, into);
      EXPECT_TRUE(read && *read == record.text.size() && text_of(into) == record.text)
          << "another record is at " << record.offset;
      if (testing::Test::HasFailure()) break;
    }
    const auto attributes = co_await session.attributes(log);
    EXPECT_TRUE(attributes && attributes->size == end);
    co_await barrier_->arrive_and_wait();
  });
}

// One client changes a file back to back, directly or by its name. Each operation of the other one ends
// before that has changed the file too often.
TEST_P(FsMounts, BusyOnesKeepNobodyWaiting) {
  // On other platforms a thread may not run for a while.
  if (GetParam().platform != "sim") GTEST_SKIP() << "counts what happens meanwhile";
  constexpr int kMostMeanwhile = 200;
  constexpr int kTimes = 5;
  const std::array<std::string, 2> names{"file", "renamed"};
  for (const bool renames : {false, true}) {
    int meanwhile = 0;
    bool is_done = false;
    run([&](Client& client, std::size_t number) -> Task<> {
      Session& session = *client.session;
      if (number == 0) {
        co_await session.create(kRootInode, names[0], {.mode = S_IFREG | 0644}, {});
      }
      co_await barrier_->arrive_and_wait();
      const auto found = co_await session.look_up(kRootInode, names[0]);
      EXPECT_TRUE(found.has_value());
      const InodeNumber file = found ? found->inode : kRootInode;
      co_await barrier_->arrive_and_wait();
      for (std::size_t i = 0; number == 0 && !is_done && meanwhile < kMostMeanwhile; ++i) {
        ++meanwhile;
        if (renames) {
          const auto renamed = co_await session.rename(kRootInode, names[i % 2], kRootInode,
                                                       names[(i + 1) % 2], {}, {});
          EXPECT_TRUE(renamed.has_value());
        } else {
          const auto changed = co_await session.change(file, {.permissions = 0600});
          EXPECT_TRUE(changed.has_value());
        }
      }
      for (int i = 0; number == 1 && i < kTimes; ++i) {
        const auto written = co_await session.write(file, 100, bytes_of("part of a page"), {});
        EXPECT_TRUE(written && std::exchange(meanwhile, 0) < kMostMeanwhile);
        const auto appended = co_await session.append(file, std::vector<std::byte>(9000), {});
        EXPECT_TRUE(appended && std::exchange(meanwhile, 0) < kMostMeanwhile);
        const auto cut = co_await session.truncate(file, 5000, {});
        EXPECT_TRUE(cut && std::exchange(meanwhile, 0) < kMostMeanwhile);
      }
      if (number == 1) is_done = true;
      co_await barrier_->arrive_and_wait();
    });
  }
}

Task<std::uint64_t> free_inodes(Session& session) {
  const auto statistics = co_await session.statistics();
  co_return statistics ? statistics->free_inodes : 0;
}

// An inode without a name lives as long as a client holds it, and no longer: until it releases it,
// unmounts, or is gone.
TEST_P(FsMounts, KeepWhatTheOtherHolds) {
  enum class End { release, unmount, death };
  for (const End end : {End::release, End::unmount, End::death}) {
    SCOPED_TRACE(static_cast<int>(end));
    InodeNumber file{};
    std::uint64_t free_before = 0;
    take_turns({
        {0,
         [&](Client& client) -> Task<> {
           const auto made =
               co_await client.session->create(kRootInode, "a", {.mode = S_IFREG | 0644}, {1, 0});
           EXPECT_TRUE(made.has_value());
           if (made) file = made->inode;
           const auto written =
               co_await client.session->write(file, 0, bytes_of("held"), {.now = {2, 0}});
           EXPECT_TRUE(written.has_value());
           free_before = co_await free_inodes(*client.session);
         }},
        {1,
         [&](Client& client) -> Task<> {
           const auto found = co_await client.session->look_up(kRootInode, "a");
           EXPECT_TRUE(found && found->inode == file);
           const auto held = co_await client.session->hold(file);
           EXPECT_TRUE(held.has_value());
         }},
        {0,
         [&](Client& client) -> Task<> {
           const auto removed = co_await client.session->unlink(kRootInode, "a", {3, 0});
           EXPECT_TRUE(removed.has_value());
           const std::uint64_t now = co_await free_inodes(*client.session);
           EXPECT_EQ(now, free_before);
           for (int i = 0; i < 3; ++i) {
             const auto made = co_await client.session->create(kRootInode, std::to_string(i),
                                                               {.mode = S_IFREG | 0644}, {4, 0});
             EXPECT_TRUE(made && made->inode != file) << "the number is in use";
           }
           free_before = now - 3;
         }},
        {1,
         [&](Client& client) -> Task<> {
           const std::string text = co_await contents(*client.session, file);
           EXPECT_EQ(text, "held");
           const auto written =
               co_await client.session->write(file, 4, bytes_of(" still"), {.now = {5, 0}});
           EXPECT_TRUE(written.has_value());
           const std::string more = co_await contents(*client.session, file);
           EXPECT_EQ(more, "held still");
           const auto attributes = co_await client.session->attributes(file);
           EXPECT_TRUE(attributes && attributes->links == 0);
           if (end == End::release) co_return co_await client.session->release(file, 1);
           client.session.reset();
           if (end == End::unmount) co_await client.files->unmount();
           client.files.reset();
           co_await mount(client);
         }},
        {0,
         [&](Client& client) -> Task<> {
           // The servers may learn of a death later.
           std::uint64_t now = 0;
           for (int tries = 0; tries < 1000; ++tries) {
             now = co_await free_inodes(*client.session);
             if (now == free_before + 1 || end != End::death) break;
             co_await sleep_for(Microseconds(100));
           }
           EXPECT_EQ(now, free_before + 1) << "it is still there";
         }},
    });
  }
}

// As in the test of conformance, but each session has a node of its own. They do their operations
// one after the other.
TEST_P(FsMounts, RandomOperationsDoWhatTheModelDoes) {
  constexpr int kOperations = 600;
  constexpr int kBetweenChecks = 60;
  constexpr int kEnd = 2;
  const std::uint32_t first = perdura::test::random_seed();
  for (std::uint32_t seed = first; seed < first + 3 && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
    for (const bool is_small : kMaybe) {
      const FsSystem& system = *GetParam().system;
      Home home(system, config_of(system, is_small));
      const auto platform = perdura::test::make_platform(GetParam().platform, nodes_for(system, 2));
      home.start(*platform);
      std::optional<RandomOperations> operations;
      const auto ready = platform->create_barrier(2);
      std::atomic<int> turn{0};
      int done = 0;
      const auto body = [&](Thread& thread, int number) -> Task<> {
        if (number == 0) {
          operations.emplace(thread, home, seed);
          co_await operations->make();
        }
        co_await ready->arrive_and_wait();
        if (number == 0) co_await operations->attach(thread, 0);
        co_await ready->arrive_and_wait();
        if (number == 1) co_await operations->attach(thread, 1);
        co_await ready->arrive_and_wait();
        while (turn != kEnd) {
          if (turn != number) {
            co_await sleep_for(Microseconds(1));
            continue;
          }
          co_await operations->step_of(static_cast<std::size_t>(number));
          if (++done % kBetweenChecks == 0) co_await operations->check();
          co_await yield();  // the thread is ahead of simulated time
          const bool is_end = done == kOperations || testing::Test::HasFailure();
          turn = is_end ? kEnd : static_cast<int>(operations->next());
        }
        for (int each = 0; each < 2; ++each) {
          if (each == number) co_await operations->unmount(static_cast<std::size_t>(number));
          co_await ready->arrive_and_wait();
        }
      };
      for (int number = 0; number < 2; ++number) {
        platform->start(home.client(static_cast<NodeId>(number)), 0, CompletionMode::polling,
                        [&body, number](Thread& thread) { return body(thread, number); });
      }
      platform->run();
      EXPECT_GT(operations->succeeded() * 5, operations->done()) << "most of it has been refused";
    }
  }
}

std::string name_of_mounts(const testing::TestParamInfo<TwoMounts>& info) {
  std::string name = std::string(info.param.system->info.name) + "_" + info.param.platform;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, FsMounts, testing::ValuesIn(all_two_mounts()), name_of_mounts);

}  // namespace
}  // namespace perdura::fs::test
