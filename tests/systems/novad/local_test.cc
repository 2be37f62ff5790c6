// Programs on the server's node use the volume beside clients: each sees what the other has done,
// at once and entirely, and files that no client holds cost them no message.
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>

#include "systems/nova/nova.h"
#include "systems/nova/session.h"
#include "systems/novad/requests.h"
#include "systems/novad/session.h"
#include "tests/systems/novad/support.h"

namespace perdura::systems::novad::test {
namespace {

constexpr fabric::Port kLocalPort = 1;
constexpr std::array kBothWrites{"atomic", "in-place"};

fs::FsConfig config_of_writes(const char* writes) {
  return {.size = 4 * MiB, .threads = 2, .parameters = {{"writes", std::string(writes)}}};
}

class NovadLocal : public testing::TestWithParam<std::string> {
 protected:
  using Body = std::function<Task<>(fs::Session& session, bool is_local)>;

  // Runs `body` with the session of a client, and with one of a local program.
  void run(const Body& body, const char* writes = kBothWrites[0]) {
    const auto platform = perdura::test::make_platform(GetParam(), nodes_for(kNovad, 1));
    Home home(kNovad, config_of_writes(writes));
    home.start(*platform);
    const auto made = platform->create_barrier(2);
    barrier_ = platform->create_barrier(2);
    for (const bool is_local : {false, true}) {
      platform->start(is_local ? kServer : home.client(0), is_local ? kLocalPort : 0,
                      CompletionMode::polling, [&, is_local](Thread& thread) -> Task<> {
                        if (!is_local) co_await home.make(thread, {});
                        co_await made->arrive_and_wait();
                        const auto files = co_await home.mount(thread);
                        const auto session = files->attach(thread);
                        co_await body(*session, is_local);
                        co_await made->arrive_and_wait();
                        if (is_local) co_return;
                        EXPECT_EQ(co_await home.audit(), "");
                      });
    }
    platform->run();
    barrier_.reset();
  }

  // The steps of a test, one after the other.
  struct Turn {
    bool is_local;
    std::function<Task<>(fs::Session& session)> step;
  };
  void take_turns(const std::vector<Turn>& turns, const char* writes = kBothWrites[0]) {
    run(
        [&](fs::Session& session, bool is_local) -> Task<> {
          for (const Turn& turn : turns) {
            if (turn.is_local == is_local) co_await turn.step(session);
            co_await barrier_->arrive_and_wait();
          }
        },
        writes);
  }

  std::unique_ptr<Platform::Barrier> barrier_;
};

constexpr bool kLocal = true;
constexpr bool kRemote = false;

// All but the first of the remote reads are READs, without a message to the server.
TEST_P(NovadLocal, ProgramsAndClientsSeeWhatTheOtherHasDone) {
  for (const char* const writes : kBothWrites) {
    fs::InodeNumber file{};
    const auto expect_read = [&](Bytes offset, const std::string& text) {
      return Turn{kRemote, [&file, offset, text](fs::Session& session) -> Task<> {
                    const SessionCounts before(session);
                    EXPECT_EQ(co_await text_of(session, file, offset, text.size()), text);
                    EXPECT_EQ(SessionCounts(session).reads, before.reads + 1);
                    EXPECT_EQ(SessionCounts(session).rpcs, before.rpcs);
                  }};
    };
    take_turns(
        {{kRemote,
          [&](fs::Session& session) -> Task<> {
            file = co_await open_new(session, "a", filled(20000, 'a'));
          }},
         expect_read(8190, "aaaa"),
         {kLocal,
          [&](fs::Session& session) -> Task<> {
            const auto found = co_await session.look_up(fs::kRootInode, "a");
            EXPECT_TRUE(found && found->inode == file && found->size == 20000);
            EXPECT_EQ(co_await text_of(session, file, 0, 2), "aa");
            EXPECT_TRUE((co_await session.write(file, 8192, filled(1, 'b'), {})).has_value());
            EXPECT_EQ(co_await text_of(session, file, 8190, 4), "aaba");
          }},
         expect_read(8190, "aaba"),
         {kRemote,
          [&](fs::Session& session) -> Task<> {
            EXPECT_TRUE((co_await session.write(file, 8193, filled(1, 'c'), {})).has_value());
            EXPECT_TRUE((co_await session.sync(file)).has_value());
          }},
         {kLocal,
          [&](fs::Session& session) -> Task<> {
            EXPECT_EQ(co_await text_of(session, file, 8190, 4), "aabc");
            EXPECT_TRUE((co_await session.append(file, filled(2, 'd'), {})).has_value());
            EXPECT_TRUE((co_await session.truncate(file, 20001, {})).has_value());
          }},
         {kRemote,
          [&](fs::Session& session) -> Task<> {
            EXPECT_EQ(co_await text_of(session, file, 19999, 9), "ad");
            EXPECT_EQ((co_await session.attributes(file))->size, 20001U);
          }},
         expect_read(19999, "ad")},
        writes);
  }
}

TEST_P(NovadLocal, TruncationEndsWhatAFilekeyReaches) {
  fs::InodeNumber file{};
  take_turns(
      {{kRemote,
        [&](fs::Session& session) -> Task<> {
          file = co_await open_new(session, "a", filled(20000, 'a'));
          EXPECT_EQ(co_await text_of(session, file, 0, 2), "aa");
        }},
       {kLocal,
        [&](fs::Session& session) -> Task<> {
          EXPECT_TRUE((co_await session.truncate(file, 5000, {})).has_value());
          // Its blocks may become another file's.
          const auto made =
              co_await session.create(fs::kRootInode, "b", {.mode = S_IFREG | 0600}, {});
          EXPECT_TRUE(made.has_value());
          EXPECT_TRUE(
              (co_await session.write(made->inode, 0, filled(2 * MiB, '!'), {})).has_value());
        }},
       {kRemote, [&](fs::Session& session) -> Task<> {
          EXPECT_EQ(co_await text_of(session, file, 4998, 5000), "aa");
          EXPECT_EQ(SessionCounts(session).refused, 1);
        }}});
}

TEST_P(NovadLocal, FilesThatNoClientHoldsCostNoMessage) {
  take_turns(
      {{kLocal,
        [&](fs::Session& session) -> Task<> {
          const auto made =
              co_await session.create(fs::kRootInode, "a", {.mode = S_IFREG | 0600}, {});
          EXPECT_TRUE(made.has_value());
          EXPECT_TRUE((co_await session.hold(made->inode)).has_value());
          const SessionCounts before(session);
          for (int i = 0; i < 10; ++i) {
            EXPECT_TRUE((co_await session.append(made->inode, filled(5000, 'a'), {})).has_value());
            EXPECT_EQ(co_await text_of(session, made->inode, 0, 2), "aa");
          }
          EXPECT_TRUE((co_await session.truncate(made->inode, 1, {})).has_value());
          EXPECT_EQ(SessionCounts(session).rpcs, before.rpcs);
        }},
       // A file that one holds costs one for each change, and none for a read.
       {kRemote,
        [&](fs::Session& session) -> Task<> {
          const auto found = co_await session.look_up(fs::kRootInode, "a");
          EXPECT_TRUE((co_await session.hold(found->inode)).has_value());
        }},
       {kLocal, [&](fs::Session& session) -> Task<> {
          const auto found = co_await session.look_up(fs::kRootInode, "a");
          const SessionCounts before(session);
          EXPECT_TRUE((co_await session.append(found->inode, filled(5000, 'a'), {})).has_value());
          EXPECT_EQ(co_await text_of(session, found->inode, 0, 2), "aa");
          EXPECT_EQ(SessionCounts(session).rpcs, before.rpcs + 1);
        }}});
}

// A program that has mapped the file stores to the bytes that clients READ.
TEST_P(NovadLocal, StoresOfAMappedFileAreRead) {
  fs::InodeNumber file{};
  take_turns({{kRemote,
               [&](fs::Session& session) -> Task<> {
                 file = co_await open_new(session, "a", filled(8192, 'a'));
               }},
              {kLocal,
               [&](fs::Session& session) -> Task<> {
                 const auto mapped = co_await session.map(file, 0, 8192);
                 EXPECT_TRUE(mapped.has_value());
                 if (!mapped) co_return;
                 const fs::MappedExtent& last = (*mapped)->extents().back();
                 (*mapped)->region().write(last.in_region + last.length - 2, filled(2, 'm'));
                 co_await yield();
                 EXPECT_TRUE((co_await session.sync(file)).has_value());
               }},
              {kRemote, [&](fs::Session& session) -> Task<> {
                 EXPECT_EQ(co_await text_of(session, file, 8189, 3), "amm");
                 EXPECT_EQ(SessionCounts(session).reads, 1);
               }}});
}

// Both append to one file at the same time, and read it all the while.
TEST_P(NovadLocal, AppendsOfBothNeverOverlap) {
  constexpr int kAppends = 150;
  std::atomic<std::uint64_t> inode{0};
  std::array<std::vector<std::pair<Bytes, std::string>>, 2> appended;
  for (const char* const writes : kBothWrites) {
    run(
        [&](fs::Session& session, bool is_local) -> Task<> {
          auto& mine = appended.at(is_local ? 1 : 0);
          mine.clear();
          if (!is_local) {
            inode = static_cast<std::uint64_t>(co_await open_new(session, "log", {}));
          }
          co_await barrier_->arrive_and_wait();
          const fs::InodeNumber file{inode.load()};
          for (int i = 0; i < kAppends && !HasFailure(); ++i) {
            const std::string text(1 + i * 37 % 300,
                                   static_cast<char>((is_local ? 'a' : 'A') + i % 26));
            const auto at = co_await session.append(file, std::as_bytes(std::span(text)), {});
            EXPECT_TRUE(at.has_value());
            if (!at) break;
            mine.emplace_back(*at, text);
            // Each of the participants finds its earlier appends where they were.
            const auto& [before, expected] = mine.at(mine.size() / 2);
            EXPECT_EQ(co_await text_of(session, file, before, expected.size()), expected);
            co_await yield();
          }
          co_await barrier_->arrive_and_wait();
          auto all = appended[0];
          all.insert(all.end(), appended[1].begin(), appended[1].end());
          std::sort(all.begin(), all.end());
          Bytes end = 0;
          for (const auto& [at, text] : all) {
            EXPECT_EQ(at, end);
            EXPECT_EQ(co_await text_of(session, file, at, text.size()), text);
            end = at + text.size();
          }
          EXPECT_EQ((co_await session.attributes(file))->size, end);
        },
        writes);
  }
}

// The holds of a program end with its sessions, as those of a client do.
TEST_P(NovadLocal, ProgramsThatAreGoneHoldNothing) {
  const auto platform = perdura::test::make_platform(GetParam(), nodes_for(kNovad, 1));
  Home home(kNovad, {.size = 4 * MiB, .threads = 2});
  home.start(*platform);
  platform->start(kServer, kLocalPort, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.make(thread, {});
    std::uint64_t free = 0;
    {
      const auto files = co_await home.mount(thread);
      const auto session = files->attach(thread);
      free = (co_await session->statistics())->free_inodes;
      const auto made = co_await session->create_unnamed({.mode = S_IFREG | 0600}, {});
      EXPECT_TRUE(made.has_value());
      EXPECT_EQ((co_await session->statistics())->free_inodes, free - 1);
    }
    const auto files = co_await home.mount(thread);
    const auto session = files->attach(thread);
    for (;;) {
      const auto now = co_await session->statistics();
      if (now->free_inodes == free) break;
      co_await sleep_for(Microseconds(20));
    }
    EXPECT_EQ(co_await home.audit(), "");
  });
  platform->run();
}

// A session whose file is written by a program between any two of its calls.
class OvertakenSession final : public Session {
 public:
  OvertakenSession(std::shared_ptr<FileSystem> files, Thread& thread, fs::Session& program)
      : Session(std::move(files), thread), program_(program) {}

  Task<fs::Result<fs::Attributes>> attributes(fs::InodeNumber inode) override {
    const auto found = co_await Session::attributes(inode);
    if (overtakes_-- > 0) {
      const auto longer = filled(found->size + 10, static_cast<char>('a' + overtakes_));
      EXPECT_TRUE((co_await program_.write(inode, 0, longer, {})).has_value());
    }
    co_return found;
  }
  int overtakes() const { return overtakes_; }

 private:
  fs::Session& program_;
  int overtakes_ = 3;
};

// The server asks for the size and then for the data. What it answers is the file of one moment,
// even if a program writes longer data in between.
TEST(NovadLocalOnAModel, ReadsByRequestsAreOfOneMoment) {
  const auto platform = perdura::test::make_platform("sim", nodes_for(kNovad, 1));
  Home home(kNovad, config_of_writes("atomic"));
  home.start(*platform);
  platform->start(home.client(0), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.make(thread, {});
    const auto files = co_await home.mount(thread);
    const auto program = files->attach(thread);
    OvertakenSession session(std::dynamic_pointer_cast<FileSystem>(files), thread, *program);
    const auto made = co_await program->create(fs::kRootInode, "a", {.mode = S_IFREG | 0600}, {});
    EXPECT_TRUE((co_await program->write(made->inode, 0, filled(100, 'x'), {})).has_value());
    // Requests need bindings, which a read does not use.
    co_await kNova.make(thread, "unused", {});
    const auto unused = co_await kNova.mount(thread, "unused", {});
    Bindings bindings(thread, std::dynamic_pointer_cast<nova::FileSystem>(unused)->volume());
    Requests requests(session, bindings, false);
    Encoder arguments;
    arguments.add(Bytes{0});
    arguments.add(Bytes{1000});
    const MessageHeader header{.request = Request::read,
                               .inode = static_cast<std::uint64_t>(made->inode)};
    Encoder results;
    const auto error = co_await requests.execute(1, header, arguments.bytes(), 1000, results);
    EXPECT_EQ(error, 0);
    EXPECT_LE(session.overtakes(), 0) << "it was not overtaken";
    const auto read = results.bytes();
    EXPECT_EQ(std::vector<std::byte>(read.begin(), read.end()), filled(130, 'a'));
  });
  platform->run();
}

INSTANTIATE_TEST_SUITE_P(Platforms, NovadLocal, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace perdura::systems::novad::test
