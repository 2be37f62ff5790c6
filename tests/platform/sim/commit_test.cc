// A commit of a registration of extents (QueuePair::commit), and the memory that a power failure
// leaves after it, at every moment and on each kind of server.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <span>

#include "platform/fabric/dirty_ranges.h"
#include "tests/platform/sim/power.h"
#include "tests/support/seed.h"

namespace perdura::sim::test {
namespace {

using fabric::Extent;
using fabric::OperationFlags;
using pmem::Transport;

constexpr OperationFlags kCommits{.commit = true};

constexpr PersistenceModel kKinds[] = {{PersistenceDomain::dmp, false},
                                       {PersistenceDomain::dmp, true},
                                       {PersistenceDomain::mhp, false},
                                       {PersistenceDomain::mhp, true},
                                       {PersistenceDomain::wsp, true}};
// Those on which a WRITE that has completed may be lost.
constexpr std::span<const PersistenceModel> kLosing(kKinds, 4);

// The file has two parts, which lie in the pool in the opposite order.
constexpr Bytes kPart = 8 * KiB;
constexpr Bytes kSecondPlace = 8 * KiB;
constexpr Bytes kFirstPlace = 24 * KiB;
constexpr Bytes kSizePlace = 0;
constexpr std::array kParts{Extent{0, kFirstPlace, kPart}, Extent{kPart, kSecondPlace, kPart}};
constexpr Bytes place_of(Bytes at) {
  return at < kPart ? kFirstPlace + at : kSecondPlace + (at - kPart);
}

// Words of the pool, by their places.
using Words = std::map<Bytes, std::uint64_t>;

// A program's connection to the file.
class FileClient {
 public:
  FileClient(Thread& on_thread, fabric::RemoteKey of_file)
      : thread(on_thread),
        key(of_file),
        region_(on_thread.node.create_region("data", kPoolSize, pmem::Medium::dram)),
        memory_(on_thread.endpoint.register_memory(*region_, fabric::Access::local)) {}

  // A WRITE of a word, which must stay until it has completed.
  fabric::RdmaOperation write(Bytes at, std::uint64_t value, OperationFlags flags = {}) {
    return peer->write(word(value), {key, at}, flags);
  }
  fabric::RdmaOperation append(std::uint64_t value, OperationFlags flags = {}) {
    return peer->append(word(value), key, flags);
  }
  // A READ or WRITE of many bytes.
  fabric::LocalBuffer many(std::uint32_t bytes) const { return memory_.local(0, bytes); }

  Thread& thread;
  const fabric::RemoteKey key;
  std::unique_ptr<fabric::QueuePair> peer;

 private:
  fabric::LocalBuffer word(std::uint64_t value) {
    const Bytes at = 32 * KiB + next_++ % 4096 * kWord;
    region_->store(at, value);
    return memory_.local(at, kWord);
  }

  std::unique_ptr<Region> region_;
  fabric::MemoryRegion memory_;
  Bytes next_ = 0;
};

class CommitRun {
 public:
  using ClientBody = std::function<Task<>(FileClient&)>;
  using OwnerBody = std::function<Task<>(Thread&, Region&, const fabric::ExtentMap&)>;

  CommitRun(PersistenceModel model, std::size_t clients,
            const SimPlatform::ScheduleChoices& late = {})
      : platform_(with_flush(), static_cast<fabric::NodeId>(clients + 1)), clients_(clients) {
    if (late.messages != nullptr) platform_.choose_schedule(late);
    platform_.track_durability(model);
  }

  // The words that a completed commit covers; a failure at any later time must leave them.
  Words promised;
  // The words that were there after the power failure.
  Words survived;
  // Set by a client when all has been done after which the watched words may still be lost.
  bool at_end = false;

  SimPlatform& platform() { return platform_; }

  // Runs the clients; `inject` gets what fails the power, before they begin.
  void run(const std::vector<ClientBody>& clients, const OwnerBody& owner,
           const std::function<void(std::function<void(pmem::Choices&)>)>& inject,
           Failure* failure = nullptr) {
    if (failure != nullptr) failure->enable(false);
    fabric::RemoteKey key;
    std::size_t connected = 0;
    platform_.start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto pool = thread.node.create_region("pool", kPoolSize, pmem::Medium::pm);
      fabric::RangeFaults faults;
      const auto map = thread.endpoint.register_extents(*pool, kParts, fabric::Access::remote_all);
      thread.endpoint.allow_appends(map, kSizePlace, faults);
      key = map.key;
      std::vector<std::unique_ptr<fabric::QueuePair>> peers;
      while (peers.size() < clients_) {
        peers.push_back((co_await thread.endpoint.next_connection())->accept({}, {}));
      }
      if (owner) co_await owner(thread, *pool, map);
      co_await sleep_for(std::chrono::seconds(1));
    });
    for (std::size_t i = 0; i < clients_; ++i) {
      const auto node = static_cast<fabric::NodeId>(i + 1);
      platform_.start(node, 1, CompletionMode::polling, [&, i](Thread& thread) -> Task<> {
        while (key.value == 0) co_await sleep_for(Microseconds(1));
        FileClient client(thread, key);
        client.peer = std::move((co_await thread.endpoint.connect({0, 0}, {}, {})).queue_pair);
        ++connected;
        while (connected < clients_) co_await sleep_for(Microseconds(1));
        if (failure != nullptr) failure->enable(true);
        co_await clients[i](client);
        co_await sleep_for(Microseconds(20));
      });
    }
    inject([this](pmem::Choices& choices) {
      platform_.fail_power(0, choices);
      const auto pool = platform_.local_node(0)->open_region("pool");
      for (Bytes at = 0; at < kPoolSize; at += kWord) survived[at] = pool->load(at);
    });
    platform_.run();
  }

 private:
  static Profile with_flush() {
    Profile profile = testbed();
    profile.nic.flush_persistence = profile.nic.atomic_write = true;
    return profile;
  }

  SimPlatform platform_;
  std::size_t clients_;
};

// Fails the power at every crash point, with the least that it may leave. Returns how often one of
// `watched`, which nobody has promised, was lost although CommitRun::at_end was set.
struct Tried {
  std::uint64_t promises = 0;
  std::uint64_t watched_lost = 0;
};
using Bodies = std::function<std::vector<CommitRun::ClientBody>(CommitRun&)>;

Tried fail_everywhere(PersistenceModel model, std::size_t clients, const Bodies& bodies,
                      const CommitRun::OwnerBody& owner = {}, const Words& watched = {}) {
  Tried tried;
  const Explored explored = explore_failures({}, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    CommitRun run(model, clients);
    run.run(
        bodies(run), owner, [&](auto fail) { failure.watch(run.platform(), std::move(fail)); },
        &failure);
    if (!failure.happened()) {
      tried.promises = run.promised.size();
      return;
    }
    for (const auto& [place, value] : run.promised) {
      ASSERT_EQ(run.survived.at(place), value) << "word at " << place << " of the pool";
    }
    if (!run.at_end) return;
    for (const auto& [place, value] : watched) {
      tried.watched_lost += run.survived.at(place) != value ? 1 : 0;
    }
  });
  EXPECT_GT(explored.crash_points, 3U);
  EXPECT_GT(tried.promises, 0U) << "nothing was promised even without a failure";
  return tried;
}

// --- what is persistent ------------------------------------------------------------------------

TEST(Commits, PersistAllThatWasWrittenWhereverItIs) {
  for (const PersistenceModel& model : kKinds) {
    fail_everywhere(model, 1, [](CommitRun& run) {
      return std::vector<CommitRun::ClientBody>{[&run](FileClient& client) -> Task<> {
        auto first = client.write(8, 1);
        auto second = client.write(kPart + 512, 2);
        auto word = client.peer->atomic_write({client.key, 1024}, 3);
        first.post();
        second.post();
        word.post();
        if (co_await client.peer->commit(client.key)) {
          run.promised = {{place_of(8), 1}, {place_of(kPart + 512), 2}, {place_of(1024), 3}};
        }
      }};
    });
  }
}

// The size that APPENDs move is persistent, too.
TEST(Commits, PersistAppendsWithTheirSize) {
  for (const PersistenceModel& model : kKinds) {
    for (const bool by_flag : {false, true}) {
      fail_everywhere(model, 1, [by_flag](CommitRun& run) {
        return std::vector<CommitRun::ClientBody>{[&run, by_flag](FileClient& client) -> Task<> {
          auto first = client.append(1);
          first.post();
          auto second = client.append(2, {.commit = by_flag});
          bool is_committed = static_cast<bool>(co_await second);
          if (!by_flag) is_committed = static_cast<bool>(co_await client.peer->commit(client.key));
          if (is_committed) {
            run.promised = {{place_of(0), 1}, {place_of(kWord), 2}, {kSizePlace, 2 * kWord}};
          }
        }};
      });
    }
  }
}

TEST(Commits, AtTheEndOfAWriteAreOfAllThatWasWritten) {
  for (const PersistenceModel& model : kKinds) {
    fail_everywhere(model, 1, [](CommitRun& run) {
      return std::vector<CommitRun::ClientBody>{[&run](FileClient& client) -> Task<> {
        auto first = client.write(kPart, 1);
        first.post();
        if (co_await client.write(64, 2, kCommits)) {
          run.promised = {{place_of(kPart), 1}, {place_of(64), 2}};
        }
        // The device knows again what is dirty.
        auto third = client.write(kPart + 128, 3);
        third.post();
        if (co_await client.write(128, 4, kCommits)) {
          run.promised[place_of(kPart + 128)] = 3;
          run.promised[place_of(128)] = 4;
        }
      }};
    });
  }
}

constexpr Bytes kRanges = 3 * fabric::kDirtyRanges;

// A device keeps few ranges; with more of them it commits more, and never less.
TEST(Commits, PersistMoreRangesThanADeviceKeeps) {
  for (const PersistenceModel& model : {kKinds[0], kKinds[1]}) {
    fail_everywhere(model, 1, [](CommitRun& run) {
      return std::vector<CommitRun::ClientBody>{[&run](FileClient& client) -> Task<> {
        std::deque<fabric::RdmaOperation> writes;
        Words written;
        for (Bytes i = 0; i < kRanges; ++i) {
          const Bytes at = i * 7 % kRanges * 320;
          writes.emplace_back(*client.peer, client.write(at, i + 1).request()).post();
          written[place_of(at)] = i + 1;
        }
        if (co_await client.peer->commit(client.key)) run.promised = written;
      }};
    });
  }
}

// --- what is not -------------------------------------------------------------------------------

TEST(Commits, SayNothingOfWhatIsWrittenAfterThem) {
  for (const PersistenceModel& model : kLosing) {
    const Words later{{place_of(64), 2}};
    const Tried tried = fail_everywhere(
        model, 1,
        [](CommitRun& run) {
          return std::vector<CommitRun::ClientBody>{[&run](FileClient& client) -> Task<> {
            auto first = client.write(0, 1);
            first.post();
            if (co_await client.peer->commit(client.key)) run.promised = {{place_of(0), 1}};
            if (co_await client.write(64, 2)) run.at_end = true;
          }};
        },
        {}, later);
    EXPECT_GT(tried.watched_lost, 0U) << to_string(model.domain);
  }
}

// Only the ranges that were written are written back: a store of the owner's CPU beside them stays
// where it was, in a cache.
TEST(Commits, AreOfTheDirtyBytesAlone) {
  const Words beside{{place_of(2048), 9}};
  bool has_stored = false;
  const Tried tried = fail_everywhere(
      {PersistenceDomain::dmp, true}, 1,
      [&](CommitRun& run) {
        has_stored = false;
        return std::vector<CommitRun::ClientBody>{[&](FileClient& client) -> Task<> {
          while (!has_stored) co_await sleep_for(Nanoseconds(100));
          auto first = client.write(0, 1);
          first.post();
          if (co_await client.write(4096, 2, kCommits)) {
            run.promised = {{place_of(0), 1}, {place_of(4096), 2}};
            run.at_end = true;
          }
        }};
      },
      [&](Thread&, Region& pool, const fabric::ExtentMap&) -> Task<> {
        pool.store(place_of(2048), 9);
        co_await yield();
        has_stored = true;
      },
      beside);
  EXPECT_GT(tried.watched_lost, 0U);
}

// An extent was given to another file between the WRITE and the commit, which must not touch it.
// What stays mapped is persistent, also if it has been mapped anew.
TEST(Commits, LeaveAloneWhatIsAnotherFilesMeanwhile) {
  const Words of_other_file{{place_of(kPart), 9}};
  int step = 0;
  const Tried tried = fail_everywhere(
      {PersistenceDomain::dmp, true}, 1,
      [&](CommitRun& run) {
        step = 0;
        return std::vector<CommitRun::ClientBody>{[&](FileClient& client) -> Task<> {
          if (!co_await client.write(0, 1)) co_return;
          if (!co_await client.write(kPart, 2)) co_return;
          step = 1;
          while (step == 1 && run.survived.empty()) co_await sleep_for(Nanoseconds(100));
          if (step == 1) co_return;
          if (co_await client.peer->commit(client.key)) {
            run.promised = {{place_of(0), 1}};
            run.at_end = true;
          }
        }};
      },
      [&](Thread& thread, Region& pool, const fabric::ExtentMap& map) -> Task<> {
        while (step == 0) co_await sleep_for(Nanoseconds(100));
        co_await thread.endpoint.unmap_extents(map, 0, 2 * kPart);
        pool.store(place_of(kPart), 9);
        co_await thread.endpoint.map_extent(map, {0, kFirstPlace, kPart});
        step = 2;
      },
      of_other_file);
  EXPECT_GT(tried.watched_lost, 0U);
}

// --- several queue pairs -----------------------------------------------------------------------

// A WRITE of another queue pair that had completed is committed, whether it is in memory yet or
// not.
TEST(Commits, AreOfOtherQueuePairsToo) {
  for (const PersistenceModel& model : kKinds) {
    bool has_written = false;
    fail_everywhere(model, 2, [&](CommitRun& run) {
      has_written = false;
      return std::vector<CommitRun::ClientBody>{
          [&](FileClient& client) -> Task<> {
            const fabric::Completion first = co_await client.write(kPart, 1);
            const fabric::Completion second = co_await client.append(2);
            has_written = first && second;
          },
          [&](FileClient& client) -> Task<> {
            while (!has_written && run.survived.empty()) co_await sleep_for(Nanoseconds(50));
            if (!has_written) co_return;
            if (co_await client.peer->commit(client.key)) {
              run.promised = {{place_of(kPart), 1}, {place_of(0), 2}, {kSizePlace, kWord}};
            }
          }};
    });
  }
}

// Two commit at once, and the first one's completion is held up by a long READ before it: the
// second one may not take for granted what only the first one has written back.
TEST(Commits, DoNotRelyOnOneThatHasNotCompleted) {
  for (const int later : {500, 1000, 2000, 3000}) {
    bool has_written = false;
    fail_everywhere(kKinds[0], 2, [&](CommitRun& run) {
      has_written = false;
      return std::vector<CommitRun::ClientBody>{
          [&](FileClient& client) -> Task<> {
            while (!has_written && run.survived.empty()) co_await sleep_for(Nanoseconds(50));
            auto read = client.peer->read(client.many(2 * kPart), {client.key, 0});
            read.post();
            co_await client.peer->commit(client.key);
          },
          [&, later](FileClient& client) -> Task<> {
            has_written = static_cast<bool>(co_await client.write(kPart, 1));
            if (!has_written) co_return;
            co_await sleep_for(Nanoseconds(later));
            if (co_await client.peer->commit(client.key)) run.promised = {{place_of(kPart), 1}};
          }};
    });
  }
}

// One queue pair commits while another one's long WRITE is under way. That WRITE is dirty until it
// is in memory, and its own commit persists it.
TEST(Commits, DoNotForgetWhatIsStillUnderWay) {
  for (int shift = 0; shift < 5000; shift += 50) {
    const auto run_at = [shift](CommitRun& run, pmem::Choices& least) {
      const std::vector<CommitRun::ClientBody> bodies{
          [&](FileClient& client) -> Task<> {
            const auto end = place_of(kPart - kWord);
            auto data = client.many(kPart);
            data.region->store(data.offset + kPart - kWord, 7);
            auto whole = client.peer->write(data, {client.key, 0});
            whole.post();
            if (co_await client.peer->commit(client.key)) run.promised = {{end, 7}};
            run.platform().at(client.thread.executor.now(), [&] {
              run.platform().fail_power(0, least);
              const auto pool = run.platform().local_node(0)->open_region("pool");
              run.survived[end] = pool->load(end);
            });
          },
          [&, shift](FileClient& client) -> Task<> {
            co_await sleep_for(Nanoseconds(shift));
            co_await client.peer->commit(client.key);
          }};
      run.run(bodies, {}, [](const auto&) {});
    };
    for (const PersistenceModel& model : {kKinds[0], kKinds[1]}) {
      pmem::LeastChoices least;
      CommitRun run(model, 2);
      run_at(run, least);
      ASSERT_EQ(run.promised.size(), 1U);
      EXPECT_EQ(run.survived, run.promised) << shift << " ns later";
    }
  }
}

// --- at random ---------------------------------------------------------------------------------

// Several clients write, append and commit as they like, with messages and devices late at random,
// until the power fails. Every commit that has completed holds: for what its own queue pair had
// posted, and for what others had completed, when it was posted.
class RandomClients {
 public:
  RandomClients(CommitRun& run, std::uint64_t seed) : run_(run), random_(seed) {}

  CommitRun::ClientBody body(std::uint64_t number) {
    return [this, number](FileClient& client) -> Task<> {
      for (std::uint64_t i = 0; i < 40 && run_.survived.empty(); ++i) {
        const std::uint64_t kind = random_() % 8;
        // Each word is written once; the other half of the file is for appends.
        const Bytes at = kPart + (number * 40 + i) * 48;
        const Words before = completed_;
        if (kind == 0) {
          const bool is_committed = static_cast<bool>(co_await client.peer->commit(client.key));
          if (is_committed) promise(before);
        } else if (kind < 4) {
          const bool by_flag = kind == 1;
          const fabric::Completion done = co_await client.append(at, {.commit = by_flag});
          if (!done) co_return;
          completed_[place_of(done.old_value)] = at;
          if (by_flag) promise(before);
          if (by_flag) promise({{place_of(done.old_value), at}});
        } else {
          const bool by_flag = kind == 4;
          const fabric::Completion done = co_await client.write(at, at, {.commit = by_flag});
          if (!done) co_return;
          completed_[place_of(at)] = at;
          if (by_flag) promise(before);
          if (by_flag) promise({{place_of(at), at}});
        }
        if (random_() % 3 == 0) co_await sleep_for(Nanoseconds(random_() % 2000));
      }
    };
  }

 private:
  void promise(const Words& words) { run_.promised.insert(words.begin(), words.end()); }

  CommitRun& run_;
  std::mt19937_64 random_;
  Words completed_;
};

TEST(Commits, HoldAmongManyClients) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::size_t promises = 0;
  for (int round = 0; round < 60; ++round) {
    pmem::SparseChoices late(random(), 3);
    CommitRun run(kKinds[round % 4], 3, {.messages = &late, .devices = &late});
    RandomClients clients(run, random());
    pmem::LeastChoices least;
    const Time when(Microseconds(20 + random() % 150));
    run.run({clients.body(0), clients.body(1), clients.body(2)}, {},
            [&](auto fail) { run.platform().at(when, [&, fail] { fail(least); }); });
    promises += run.promised.size();
    ASSERT_FALSE(run.survived.empty());
    for (const auto& [place, value] : run.promised) {
      ASSERT_EQ(run.survived.at(place), value)
          << "round " << round << ", word at " << place << " of the pool";
    }
  }
  EXPECT_GT(promises, 100U);
}

// --- what it takes -----------------------------------------------------------------------------

// A commit is one message of a header and an answer, and the flag adds no message at all.
TEST(Commits, TakeOneMessageOrNone) {
  fabric::Traffic plain;
  fabric::Traffic flagged;
  fabric::Traffic separate;
  for (const int way : {0, 1, 2}) {
    CommitRun run(kKinds[0], 1);
    run.run({[&](FileClient& client) -> Task<> {
              const auto sent = [&] { return run.platform().local_node(1)->traffic().at(1); };
              const fabric::Traffic before = sent();
              EXPECT_TRUE(co_await client.write(0, 1, {.commit = way == 1}));
              if (way == 2) {
                EXPECT_TRUE(co_await client.peer->commit(client.key));
              }
              fabric::Traffic used = sent();
              used -= before;
              (way == 0 ? plain : way == 1 ? flagged : separate) = used;
            }},
            {}, [](const auto&) {});
  }
  EXPECT_EQ(flagged, plain);
  EXPECT_GT(separate.sent, plain.sent);
}

}  // namespace
}  // namespace perdura::sim::test
