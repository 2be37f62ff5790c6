// What comes over the network, and what a power failure may leave of it.
#include <gtest/gtest.h>

#include "tests/platform/sim/power.h"

namespace perdura::sim::test {
namespace {

using fabric::Placement;
using pmem::Transport;

// --- what becomes known ------------------------------------------------------------------------

// After which of these steps is a message surely durable? The steps are those by which somebody
// comes to know something; the persistence model has the rules.
enum class After : std::uint8_t {
  write,
  read,
  write_behind_read,
  flush_visibility,
  flush_persistence,
  unsignaled_read,
  atomic_write,
  atomic_write_and_read,
  receive,
  receive_and_flush,
  receive_into_pm,
  receive_into_pm_and_flush,
  load,
  load_and_flush,
  load_in_part_and_flush,
  read_by_another,
};

constexpr std::uint32_t kMessageWords = 20;  // of three lines
constexpr std::uint32_t kMessage = kMessageWords * kWord;

class Steps {
 public:
  Steps(After after, PersistenceModel model, Failure& failure)
      : after_(after), failure_(failure), platform_(extended_testbed(), 3) {
    platform_.track_durability(model);
    platform_.start_service(0, 0, CompletionMode::polling,
                            [this](Thread& thread) { return server(thread); });
    failure.enable(false);
    platform_.start(1, 1, CompletionMode::polling,
                    [this](Thread& thread) { return client(thread); });
    platform_.start_service(2, 2, CompletionMode::polling,
                            [this](Thread& thread) { return other_client(thread); });
    failure.watch(platform_, [this](pmem::Choices& choices) {
      platform_.fail_power(0, choices);
      const auto pool = platform_.local_node(0)->open_region("pool");
      whole_ = true;
      for (std::uint64_t i = 0; i < words(); ++i) whole_ &= pool->load(i * kWord) == i + 1;
    });
    platform_.run();
  }

  // Somebody knows, perhaps since after the failure, that the steps have been done.
  bool done() const { return done_; }
  bool whole() const { return whole_; }

 private:
  static Profile extended_testbed() {
    Profile profile = testbed();
    profile.nic.flush = profile.nic.flush_persistence = profile.nic.atomic_write = true;
    return profile;
  }
  bool atomic() const {
    return after_ == After::atomic_write || after_ == After::atomic_write_and_read;
  }
  std::uint64_t words() const { return atomic() ? 1 : kMessageWords; }

  Task<> server(Thread& thread) {
    const auto pool = thread.node.create_region("pool", kPoolSize, pmem::Medium::pm);
    const auto memory = thread.endpoint.register_memory(*pool, fabric::Access::remote_all);
    fabric::CompletionQueue completions;
    const auto receives = thread.endpoint.create_receive_queue(1);
    receives->post(memory.local(0, kMessage), 0);
    std::vector<std::unique_ptr<fabric::QueuePair>> clients;
    while (clients.size() < 2) {
      clients.push_back(
          (co_await thread.endpoint.next_connection())
              ->accept({receives.get(), &completions}, std::as_bytes(std::span(&memory.key, 1))));
    }
    both_connected_ = true;
    switch (after_) {
      case After::receive:
      case After::receive_and_flush:
      case After::receive_into_pm:
      case After::receive_into_pm_and_flush:
        co_await completions.next();
        break;
      case After::load:
      case After::load_and_flush:
      case After::load_in_part_and_flush:
        for (std::uint64_t i = 0; i < kMessageWords; ++i) {
          if (after_ == After::load_in_part_and_flush && i % 8 == 3) continue;
          while (pool->load(i * kWord) != i + 1) co_await sleep_for(Nanoseconds(50));
        }
        break;
      default:
        co_await sleep_for(std::chrono::seconds(1));
    }
    if (after_ == After::receive_and_flush || after_ == After::receive_into_pm_and_flush ||
        after_ == After::load_and_flush || after_ == After::load_in_part_and_flush) {
      pool->persist(0, kMessage);
    }
    co_await yield();  // all that has been paid for
    done_ = true;
    co_await sleep_for(std::chrono::seconds(1));
  }

  struct Connected {
    std::unique_ptr<pmem::Region> region;
    fabric::MemoryRegion memory;
    std::unique_ptr<fabric::QueuePair> queue_pair;
    fabric::RemoteAddress there;
    fabric::LocalBuffer message() const { return memory.local(0, kMessage); }
    fabric::LocalBuffer elsewhere(std::uint32_t n) const { return memory.local(kMessage, n); }
  };
  Task<Connected> connect(Thread& thread) {
    Connected made;
    made.region = thread.node.create_region("local", kPoolSize, pmem::Medium::dram);
    made.memory = thread.endpoint.register_memory(*made.region, fabric::Access::local);
    auto connection = co_await thread.endpoint.connect({0, 0}, {}, {});
    std::memcpy(&made.there.key, connection.private_data.data(), sizeof made.there.key);
    made.queue_pair = std::move(connection.queue_pair);
    while (!both_connected_) co_await sleep_for(Microseconds(1));
    co_return made;
  }

  Task<> client(Thread& thread) {
    const Connected server = co_await connect(thread);
    for (std::uint64_t i = 0; i < kMessageWords; ++i) server.region->store(i * kWord, i + 1);
    fabric::QueuePair& to = *server.queue_pair;
    auto message = to.write(server.message(), server.there);
    auto read = to.read(server.elsewhere(kWord), server.there);
    failure_.enable(true);
    bool known = false;
    switch (after_) {
      case After::write:
      case After::load:
      case After::load_and_flush:
      case After::load_in_part_and_flush:
      case After::read_by_another:
        known = bool(co_await message) && after_ == After::write;
        break;
      case After::read:
        message.post();
        known = bool(co_await read);
        break;
      case After::write_behind_read: {
        message.post();
        read.post();
        auto behind = to.write(server.elsewhere(kWord), server.there + kMessage);
        known = bool(co_await behind);
        break;
      }
      case After::flush_visibility:
      case After::flush_persistence:
        message.post();
        known =
            bool(co_await to.flush(server.there, kMessage,
                                   after_ == After::flush_visibility ? Placement::global_visibility
                                                                     : Placement::persistence));
        break;
      case After::unsignaled_read:
        message.post();
        to.post_unsignaled(read.request());
        known = bool(co_await message);
        co_await sleep_for(Microseconds(20));
        break;
      case After::atomic_write:
      case After::atomic_write_and_read:
        known = bool(co_await to.atomic_write(server.there, 1));
        if (after_ == After::atomic_write_and_read) known = bool(co_await read);
        break;
      case After::receive:
      case After::receive_and_flush:
        co_await to.write_with_immediate(server.message(), server.there, 0);
        break;
      case After::receive_into_pm:
      case After::receive_into_pm_and_flush:
        co_await to.send(server.message());
        break;
    }
    if (known) done_ = true;
    co_await sleep_for(Microseconds(20));
  }

  Task<> other_client(Thread& thread) {
    const Connected server = co_await connect(thread);
    while (after_ != After::read_by_another) co_await sleep_for(Microseconds(100));
    do {
      if (!co_await server.queue_pair->read(server.message(), server.there)) co_return;
    } while (server.region->load((kMessageWords - 1) * kWord) == 0 || server.region->load(0) == 0 ||
             server.region->load(10 * kWord) == 0);
    done_ = true;
    co_await sleep_for(std::chrono::seconds(1));
  }

  After after_;
  Failure& failure_;
  SimPlatform platform_;
  bool both_connected_ = false;
  bool done_ = false;
  bool whole_ = false;
};

// With the least that a failure at any moment leaves.
bool surely_durable(After after, PersistenceModel model) {
  bool kept = true;
  bool lost_before = false;
  explore_failures({}, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    const Steps steps(after, model, failure);
    if (!failure.happened()) {
      EXPECT_TRUE(steps.done());
      return;
    }
    if (!steps.whole()) (steps.done() ? kept : lost_before) = !steps.done();
  });
  EXPECT_TRUE(lost_before) << "as long as nothing is known";
  return kept;
}

TEST(WhatMakesDurable, DependsOnTheModelAndOnWhatIsKnown) {
  constexpr PersistenceModel kModels[] = {{PersistenceDomain::dmp, false},
                                          {PersistenceDomain::dmp, true},
                                          {PersistenceDomain::mhp, true},
                                          {PersistenceDomain::wsp, true},
                                          {PersistenceDomain::wsp, true, Transport::iwarp}};
  struct Row {
    After after;
    std::string_view name;
    std::string_view durable;  // y or n, by model
  };
  constexpr Row kRows[] = {
      {After::write, "write", "nnnyn"},
      {After::read, "read", "ynyyy"},
      {After::write_behind_read, "write behind a read", "ynyyy"},
      {After::flush_visibility, "flush for visibility", "ynyyy"},
      {After::flush_persistence, "flush for persistence", "yyyyy"},
      {After::unsignaled_read, "unsignaled read", "nnnyn"},
      {After::atomic_write, "atomic write", "nnyyy"},
      {After::atomic_write_and_read, "atomic write, read", "ynyyy"},
      {After::receive, "receive", "nnyyy"},
      {After::receive_and_flush, "receive, flush", "yyyyy"},
      {After::receive_into_pm, "receive into pm", "nnyyy"},
      {After::receive_into_pm_and_flush, "receive into pm, flush", "yyyyy"},
      {After::load, "load", "nnyyy"},
      {After::load_and_flush, "load, flush", "yyyyy"},
      {After::load_in_part_and_flush, "load in part, flush", "nnnyn"},
      {After::read_by_another, "read by another", "nnyyy"},
  };
  for (const Row& row : kRows) {
    std::string found;
    for (const PersistenceModel& model : kModels) {
      found += surely_durable(row.after, model) ? 'y' : 'n';
    }
    EXPECT_EQ(found, row.durable) << row.name;
  }
}

// What a node has fetched by a READ lies in its memory as if it had been sent there.
TEST(WhatMakesDurable, OfWhatANodeHasReadItsCpuMakesItDurable) {
  const auto found = [](PersistenceModel model, bool flush) {
    SimPlatform platform(testbed(), 2);
    platform.track_durability(model);
    platform.start_service(1, 1, CompletionMode::polling, [](Thread& thread) -> Task<> {
      const auto source = thread.node.create_region("source", kPoolSize, pmem::Medium::dram);
      source->store(0, 77);
      const auto memory = thread.endpoint.register_memory(*source, fabric::Access::remote_all);
      const auto request = co_await thread.endpoint.next_connection();
      const auto reader = request->accept({}, std::as_bytes(std::span(&memory.key, 1)));
      co_await sleep_for(std::chrono::seconds(1));
    });
    platform.start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto pool = thread.node.create_region("pool", kPoolSize, pmem::Medium::pm);
      const auto memory = thread.endpoint.register_memory(*pool, fabric::Access::local);
      const auto connection = co_await thread.endpoint.connect({1, 1}, {}, {});
      fabric::RemoteKey key;
      std::memcpy(&key, connection.private_data.data(), sizeof key);
      EXPECT_TRUE(co_await connection.queue_pair->read(memory.local(0, kWord), {key, 0}));
      EXPECT_EQ(pool->load(0), 77U);
      if (flush) pool->persist(0, kWord);
      co_await sleep_for(std::chrono::seconds(1));
    });
    platform.start(1, 2, CompletionMode::polling,
                   [](Thread&) -> Task<> { co_await sleep_for(Milliseconds(2)); });
    std::uint64_t left = 0;
    pmem::LeastChoices least;
    platform.at(Time(Milliseconds(1)), [&] {
      platform.fail_power(0, least);
      left = image_of(platform, {0})[0];
    });
    platform.run();
    return left;
  };
  EXPECT_EQ(found({PersistenceDomain::dmp, false}, false), 0U);
  EXPECT_EQ(found({PersistenceDomain::dmp, false}, true), 77U);
  EXPECT_EQ(found({PersistenceDomain::mhp, true}, false), 77U);
}

// --- a message on its way ----------------------------------------------------------------------

// A client WRITEs a message and READs behind it; the server may flush what has arrived. The power
// fails at every moment.
struct Seen {
  std::uint64_t crash_points = 0;
  Time whole_at_least{};  // the first moment from which on the least image has all of it
  bool kept_after_read = true;
  bool part = false;  // there is an image with a part of the message
};

enum class Server : std::uint8_t { idle, flushes };

Seen write_and_fail(PersistenceModel model, Images images, Server server = Server::idle) {
  constexpr std::uint32_t kWords = 512;
  Seen seen;
  bool whole_until_the_end = false;
  const auto explored = explore_failures({.images = images, .seed = 3}, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    SimPlatform platform(testbed(), 2);
    platform.track_durability(model);
    bool done = false;
    platform.start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto pool = thread.node.create_region("pool", kPoolSize, pmem::Medium::pm);
      const auto memory = thread.endpoint.register_memory(*pool, fabric::Access::remote_all);
      const auto request = co_await thread.endpoint.next_connection();
      const auto client = request->accept({}, std::as_bytes(std::span(&memory.key, 1)));
      if (server == Server::flushes) {
        for (std::uint64_t i = 1; i <= kWords; ++i) {
          while (pool->load((i - 1) * kWord) != i) co_await sleep_for(Nanoseconds(100));
        }
        pool->persist(0, kWords * kWord);
        co_await yield();  // the fence has been paid for
        done = true;
      }
      co_await sleep_for(std::chrono::seconds(1));
    });
    failure.enable(false);
    platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto region = thread.node.create_region("local", kPoolSize, pmem::Medium::dram);
      const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
      const auto connection = co_await thread.endpoint.connect({0, 0}, {}, {});
      fabric::RemoteKey key;
      std::memcpy(&key, connection.private_data.data(), sizeof key);
      for (std::uint64_t i = 0; i < kWords; ++i) region->store(i * kWord, i + 1);
      failure.enable(true);
      auto write = connection.queue_pair->write(memory.local(0, kWords * kWord), {key, 0});
      auto read = connection.queue_pair->read(memory.local(kWords * kWord, kWord), {key, 0});
      write.post();
      read.post();
      if (!co_await write || !co_await read) co_return;
      if (server == Server::idle) done = true;
      co_await sleep_for(Microseconds(20));
    });
    failure.watch(platform, [&](pmem::Choices& choices) {
      platform.fail_power(0, choices);
      const auto pool = platform.local_node(0)->open_region("pool");
      std::uint64_t there = 0;
      for (std::uint64_t i = 0; i < kWords; ++i) {
        const std::uint64_t word = pool->load(i * kWord);
        EXPECT_TRUE(word == 0 || word == i + 1) << "word " << i << " is " << word;
        there += word != 0 ? 1 : 0;
      }
      if (there > 0 && there < kWords) seen.part = true;
      if (done && there < kWords) seen.kept_after_read = false;
      if (there < kWords) {
        whole_until_the_end = false;
      } else if (!whole_until_the_end) {
        whole_until_the_end = true;
        seen.whole_at_least = platform.engine().now();
      }
    });
    platform.run();
  });
  if (!whole_until_the_end) seen.whole_at_least = Time::max();
  seen.crash_points = explored.crash_points;
  EXPECT_EQ(explored.runs, explored.crash_points);
  if (model.domain != PersistenceDomain::wsp) {
    EXPECT_GT(explored.crash_points, 64U) << "at least each line's own moment";
  }
  testing::Test::RecordProperty("moments", static_cast<int>(explored.crash_points));
  return seen;
}

TEST(PowerFailureOfAWrite, WithoutDdioItIsDurableWhenAReadBehindItHasCompleted) {
  const Seen least = write_and_fail({PersistenceDomain::dmp, false}, Images::least);
  EXPECT_TRUE(least.kept_after_read);
  EXPECT_FALSE(least.part) << "what nobody knows to be there may be lost";
  EXPECT_NE(least.whole_at_least, Time::max());
  const Seen random = write_and_fail({PersistenceDomain::dmp, false}, Images::random);
  EXPECT_TRUE(random.part);
  EXPECT_TRUE(random.kept_after_read);
  const Seen most = write_and_fail({PersistenceDomain::dmp, false}, Images::most);
  EXPECT_LT(most.whole_at_least, least.whole_at_least) << "it was there before the READ";
}

TEST(PowerFailureOfAWrite, WithDdioAndVolatileCachesNothingOfTheClientMakesItDurable) {
  const Seen least = write_and_fail({PersistenceDomain::dmp, true}, Images::least);
  EXPECT_FALSE(least.kept_after_read);
  EXPECT_EQ(least.whole_at_least, Time::max());
  EXPECT_FALSE(least.part);
  const Seen random = write_and_fail({PersistenceDomain::dmp, true}, Images::random);
  EXPECT_TRUE(random.part);
  EXPECT_FALSE(random.kept_after_read);
  const Seen most = write_and_fail({PersistenceDomain::dmp, true}, Images::most);
  EXPECT_TRUE(most.kept_after_read) << "all may have been evicted";
}

TEST(PowerFailureOfAWrite, WithDdioTheServersFlushMakesItDurable) {
  const Seen least = write_and_fail({PersistenceDomain::dmp, true}, Images::least, Server::flushes);
  EXPECT_TRUE(least.kept_after_read);
  EXPECT_NE(least.whole_at_least, Time::max());
}

TEST(PowerFailureOfAWrite, WithPersistentCachesDdioDoesNotMatter) {
  const Seen with = write_and_fail({PersistenceDomain::mhp, true}, Images::least);
  const Seen without = write_and_fail({PersistenceDomain::mhp, false}, Images::least);
  EXPECT_TRUE(with.kept_after_read);
  EXPECT_EQ(with.whole_at_least, without.whole_at_least);
}

TEST(PowerFailureOfAWrite, AWholeSystemKeepsWhatTheDeviceHasAccepted) {
  const Seen memory = write_and_fail({PersistenceDomain::mhp, true}, Images::least);
  const Seen least = write_and_fail({PersistenceDomain::wsp, true}, Images::least);
  EXPECT_TRUE(least.kept_after_read);
  EXPECT_LT(least.whole_at_least, memory.whole_at_least) << "before it is visible";
  const Seen most = write_and_fail({PersistenceDomain::wsp, true}, Images::most);
  EXPECT_LT(most.whole_at_least, least.whole_at_least) << "a message may be there early";
}

// The device's own operations end with its power.
TEST(PowerFailureOfAWrite, AnAtomicUnderWayDoesNotHappenAfterwards) {
  std::set<std::uint64_t> found;
  const auto explored = explore_failures({}, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    SimPlatform platform(testbed(), 2);
    platform.track_durability({PersistenceDomain::mhp, false});
    platform.start_service(0, 0, CompletionMode::polling, [](Thread& thread) -> Task<> {
      const auto pool = thread.node.create_region("pool", kPoolSize, pmem::Medium::pm);
      const auto memory = thread.endpoint.register_memory(*pool, fabric::Access::remote_all);
      const auto request = co_await thread.endpoint.next_connection();
      const auto client = request->accept({}, std::as_bytes(std::span(&memory.key, 1)));
      co_await sleep_for(std::chrono::seconds(1));
    });
    std::uint64_t acknowledged = 0;
    platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto connection = co_await thread.endpoint.connect({0, 0}, {}, {});
      if (connection.queue_pair == nullptr) co_return;  // the server is gone
      fabric::RemoteKey key;
      std::memcpy(&key, connection.private_data.data(), sizeof key);
      for (int i = 0; i < 4; ++i) {
        if (!co_await connection.queue_pair->fetch_and_add({key, 0}, 1)) break;
        ++acknowledged;
      }
      co_await sleep_for(Microseconds(100));
    });
    std::uint64_t left = 0;
    failure.watch(platform, [&](pmem::Choices& choices) {
      platform.fail_power(0, choices);
      if (platform.local_node(0)->open_region("pool") == nullptr) return;
      left = image_of(platform, {0})[0];
      EXPECT_GE(left, acknowledged);
      EXPECT_LE(left, acknowledged + 1);
      found.insert(left);
      platform.start(0, 1, CompletionMode::polling, [&](Thread&) -> Task<> {
        co_await sleep_for(Microseconds(100));
        EXPECT_EQ(image_of(platform, {0})[0], left);
      });
    });
    platform.run();
  });
  EXPECT_EQ(found.size(), 5U);
  EXPECT_GT(explored.crash_points, 20U);
}

}  // namespace
}  // namespace perdura::sim::test
