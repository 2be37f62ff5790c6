// Sources of choices, and failures at every crash point of a run.
#include "platform/sim/failures.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "platform/base/error.h"
#include "tests/platform/sim/power.h"

namespace perdura::sim::test {
namespace {

TEST(Choices, TheEnumeratorTriesEverySequenceOnce) {
  std::set<std::vector<std::size_t>> sequences;
  pmem::Enumerator all;
  while (all.next()) {
    std::vector<std::size_t> sequence{all.choose(3)};
    if (sequence[0] == 1) {
      sequence.push_back(all.choose(1));
      sequence.push_back(all.choose(2));
    }
    if (sequence[0] == 2) sequence.push_back(all.choose(4));
    EXPECT_TRUE(sequences.insert(sequence).second);
  }
  EXPECT_EQ(sequences.size(), 1U + 2U + 4U);
  EXPECT_EQ(all.sequences(), 7U);
}

TEST(Choices, ARunWithoutChoicesIsTriedOnce) {
  pmem::Enumerator all;
  EXPECT_TRUE(all.next());
  EXPECT_FALSE(all.next());
}

TEST(Choices, TheEnumeratorRefusesARunThatIsNotDeterministic) {
  pmem::Enumerator all;
  ASSERT_TRUE(all.next());
  all.choose(2);
  all.choose(3);
  ASSERT_TRUE(all.next());
  EXPECT_THROW(all.choose(4), PlatformError);
}

TEST(Choices, RandomOnesAreReplayedByTheSeedAndReachEveryAlternative) {
  pmem::RandomChoices first(5);
  pmem::RandomChoices again(5);
  pmem::RandomChoices other(6);
  std::map<std::size_t, int> counts;
  int different = 0;
  for (int i = 0; i < 7000; ++i) {
    const std::size_t choice = first.choose(7);
    EXPECT_EQ(choice, again.choose(7));
    different += choice != other.choose(7) ? 1 : 0;
    ++counts[choice];
  }
  EXPECT_EQ(counts.size(), 7U);
  for (const auto& [choice, count] : counts) EXPECT_NEAR(count, 1000, 200) << choice;
  EXPECT_GT(different, 5000);
}

TEST(Choices, SeedsNextToEachOtherGiveSequencesOfTheirOwn) {
  constexpr std::size_t kMany = std::size_t{1} << 31;
  std::set<std::size_t> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    pmem::RandomChoices choices(seed);
    for (int i = 0; i < 10; ++i) seen.insert(choices.choose(kMany));
  }
  EXPECT_GE(seen.size(), 995U) << "of 1000: shifted copies of one sequence have 109";
}

// A task that makes a word durable three times without suspending: everything between its first
// event and its last is crash points of stores and fences.
struct Counting {
  std::uint64_t engine_events = 0;
  std::vector<std::pair<std::string, Image>> found;
  Explored explored;
};

Counting count_to_three(const ExploreOptions& options) {
  Counting result;
  result.explored = explore_failures(options, [&](Failure& failure) {
    SimPlatform platform(testbed(), 1);
    platform.track_durability({PersistenceDomain::dmp, false});
    const auto pool = platform.local_node(0)->create_region("pool", kPoolSize, pmem::Medium::pm);
    platform.start(0, 0, CompletionMode::polling, [&](Thread&) -> Task<> {
      for (std::uint64_t i = 1; i <= 3; ++i) {
        pool->store(0, i);
        pool->persist(0, kWord);
      }
      co_await sleep_for(Microseconds(50));
    });
    failure.watch(platform, [&](pmem::Choices& choices) {
      platform.fail_power(0, choices);
      result.found.emplace_back(failure.text(), image_of(platform, {0}));
    });
    platform.run();
    if (!failure.happened()) result.engine_events = platform.engine().fired();
  });
  return result;
}

TEST(Failures, EveryEventAndEveryStepOfThePersistentMemoryIsAMoment) {
  const Counting least = count_to_three({.images = Images::least});
  // Before each event, the last included; and between two of them three stores and three fences,
  // the last of which is where the task ends and so an event of its own.
  EXPECT_EQ(least.explored.crash_points, least.engine_events + 5);
  EXPECT_EQ(least.explored.runs, least.explored.crash_points);
  std::vector<std::uint64_t> values;
  for (const auto& [text, image] : least.found) values.push_back(image[0]);
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  EXPECT_EQ(std::set<std::uint64_t>(values.begin(), values.end()).size(), 4U);

  const Counting most = count_to_three({.images = Images::most});
  ASSERT_EQ(most.found.size(), least.found.size());
  int differ = 0;
  for (std::size_t i = 0; i < most.found.size(); ++i) {
    const std::uint64_t more = most.found[i].second[0] - least.found[i].second[0];
    EXPECT_LE(more, 1U);
    differ += more == 1 ? 1 : 0;
  }
  EXPECT_EQ(differ, 3) << "between each store and its fence";
}

TEST(Failures, AllImagesOfAMomentAreTriedOneAfterTheOther) {
  const Counting all = count_to_three({.images = Images::all});
  EXPECT_EQ(all.explored.tried, all.explored.crash_points);
  EXPECT_EQ(all.explored.runs, all.explored.crash_points + 3);
  EXPECT_EQ(count_to_three({.images = Images::all, .most_images = 1}).explored.runs,
            all.explored.crash_points);
  EXPECT_EQ(count_to_three({.stride = 4}).explored.runs, (all.explored.crash_points + 3) / 4);
}

TEST(Failures, AMomentThatHasOneImageIsNotTriedAgain) {
  const Counting least = count_to_three({.images = Images::least});
  const Counting most = count_to_three({.images = Images::most, .before = &least.explored});
  EXPECT_EQ(most.explored.runs, 3U) << "between each store and its fence";
  EXPECT_EQ(most.explored.known, least.explored.crash_points - 3);
  EXPECT_EQ(most.explored.of_one_image, least.explored.of_one_image);
  const Counting again = count_to_three({.images = Images::all, .before = &most.explored});
  EXPECT_EQ(again.explored.runs, 6U) << "both images of three moments";
}

TEST(Failures, AreNotTriedAtMomentsAtWhichTheyCannotHappen) {
  const Explored explored = explore_failures({}, [&](Failure& failure) {
    SimPlatform platform(testbed(), 1);
    bool possible = false;
    platform.start(0, 0, CompletionMode::polling, [&](Thread&) -> Task<> {
      co_await sleep_for(Microseconds(1));
      possible = true;
      co_await sleep_for(Microseconds(1));
      possible = false;
      co_await sleep_for(Microseconds(1));
    });
    failure.watch(
        platform, [&](pmem::Choices&) { EXPECT_TRUE(possible); }, [&] { return possible; });
    platform.run();
  });
  EXPECT_GT(explored.tried, 0U);
  EXPECT_EQ(explored.runs, explored.tried);
  EXPECT_GT(explored.impossible, 0U);
  EXPECT_EQ(explored.tried + explored.impossible, explored.crash_points);
}

TEST(Failures, TheSameSeedGivesTheSameFailuresAndImages) {
  const Counting first = count_to_three({.images = Images::random, .seed = 9});
  EXPECT_EQ(first.found, count_to_three({.images = Images::random, .seed = 9}).found);
  EXPECT_NE(first.found[0].first.find("seed 9"), std::string::npos) << first.found[0].first;
}

TEST(Failures, OnlyMomentsOfThePartThatIsOfInterestAreTried) {
  const auto explored = explore_failures({}, [&](Failure& failure) {
    SimPlatform platform(testbed(), 1);
    failure.enable(false);
    platform.start(0, 0, CompletionMode::polling, [&](Thread&) -> Task<> {
      for (int i = 0; i < 10; ++i) {
        failure.enable(i == 4 || i == 5);
        co_await yield();
      }
    });
    failure.watch(platform, [&](pmem::Choices&) { platform.kill(0); });
    platform.run();
  });
  EXPECT_EQ(explored.crash_points, 2U);
}

// --- connections in the making -----------------------------------------------------------------

// A server's process dies at any crash point: a client that was just connecting hears of it.
TEST(Failures, AClientHearsOfTheEndOfAConnectionThatItHasJustMade) {
  int connected = 0;
  explore_failures({}, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    SimPlatform platform(testbed(), 2);
    platform.start_service(0, 0, CompletionMode::polling, [](Thread& thread) -> Task<> {
      const auto request = co_await thread.endpoint.next_connection();
      const auto client = request->accept({}, {});
      co_await sleep_for(std::chrono::seconds(10));
    });
    // A sleeper wakes up long after the answer has come.
    platform.start(1, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
      fabric::CompletionQueue completions;
      const auto made = co_await thread.endpoint.connect({0, 0}, {nullptr, &completions}, {});
      if (made.queue_pair == nullptr) co_return;
      failure.enable(false);
      if (!failure.happened()) co_return;
      ++connected;
      const fabric::ReceiveCompletion end = co_await completions.next();
      EXPECT_EQ(end.status, fabric::Status::disconnected);
      EXPECT_EQ(end.queue_pair, made.queue_pair.get());
    });
    failure.watch(platform, [&](pmem::Choices&) { platform.kill(0); });
    platform.run();
  });
  EXPECT_GT(connected, 0);
}

// A task runs ahead of its thread's time: what it has flushed before it accepts is durable when the
// answer leaves, and if the process dies sooner, nobody gets the answer.
TEST(Failures, TheAnswerToAConnectionLeavesBehindTheWorkBeforeIt) {
  constexpr Bytes kWork = 100'000;  // some 35 us
  const auto accepted = [&](std::optional<Picoseconds> dies) {
    SimPlatform platform(testbed(), 2);
    std::optional<Time> ready;
    std::optional<bool> said;
    platform.start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto request = co_await thread.endpoint.next_connection();
      charge(Work::crc32, kWork);
      ready = thread.executor.now();
      const std::byte yes{1};
      const auto client = request->accept({}, std::span(&yes, 1));
      co_await sleep_for(std::chrono::seconds(10));
    });
    platform.start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto made = co_await thread.endpoint.connect(
          {0, 0}, {.connection_timeout = std::chrono::milliseconds(1)}, {});
      said = !made.private_data.empty();
      EXPECT_EQ(*said, made.queue_pair != nullptr);
      EXPECT_GE(thread.executor.now(), ready.value());
    });
    if (dies) platform.at(Time() + *dies, [&] { platform.kill(0); });
    platform.run();
    return said;
  };
  EXPECT_EQ(accepted(std::nullopt), true);
  EXPECT_EQ(accepted(Microseconds(20)), false) << "it died within that work";
}

// Once the server hears that a connection has ended, nothing that came over it changes memory.
TEST(Failures, NoAtomicOfAConnectionTakesEffectAfterItsEnd) {
  std::set<std::uint64_t> found;
  explore_failures({}, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    SimPlatform platform(testbed(), 2);
    failure.enable(false);
    fabric::RemoteKey key;
    platform.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto region = thread.node.create_region("word", kCacheLine, pmem::Medium::dram);
      key = thread.endpoint.register_memory(*region, fabric::Access::remote_atomic).key;
      fabric::CompletionQueue completions;
      const auto request = co_await thread.endpoint.next_connection();
      const auto client = request->accept({nullptr, &completions}, {});
      EXPECT_EQ((co_await completions.next()).status, fabric::Status::disconnected);
      const std::uint64_t at_the_end = region->load(0);
      found.insert(at_the_end);
      co_await sleep_for(Milliseconds(1));
      EXPECT_EQ(region->load(0), at_the_end);
    });
    platform.start_service(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      auto made = co_await thread.endpoint.connect({0, 0}, {}, {});
      failure.enable(true);
      for (int i = 0; i < 3; ++i) co_await made.queue_pair->fetch_and_add({key, 0}, 1);
      failure.enable(false);
      made.queue_pair.reset();
      co_await sleep_for(std::chrono::seconds(10));
    });
    failure.watch(platform, [&](pmem::Choices&) { platform.kill(1); });
    platform.run();
  });
  EXPECT_EQ(found, (std::set<std::uint64_t>{0, 1, 2, 3}));
}

// And the other way around: a client that dies while it connects leaves no connection behind.
TEST(Failures, AServerHearsOfTheDeathOfAClientThatWasConnecting) {
  int accepted = 0;
  explore_failures({}, [&](Failure& failure) {
    SCOPED_TRACE(failure.text());
    SimPlatform platform(testbed(), 2);
    std::unique_ptr<fabric::QueuePair> client;
    platform.start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto request = co_await thread.endpoint.next_connection();
      client = request->accept({}, {});
      co_await sleep_for(std::chrono::seconds(10));
    });
    platform.start_service(1, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
      const auto made = co_await thread.endpoint.connect({0, 0}, {}, {});
      failure.enable(false);
      co_await sleep_for(std::chrono::seconds(10));
    });
    platform.start(0, 1, CompletionMode::polling, [&](Thread&) -> Task<> {
      co_await sleep_for(Milliseconds(1));
      if (!failure.happened() || client == nullptr) co_return;
      ++accepted;
      EXPECT_FALSE(client->connected());
    });
    failure.watch(platform, [&](pmem::Choices&) { platform.kill(1); });
    platform.run();
    client.reset();
  });
  EXPECT_GT(accepted, 2);
}

TEST(Failures, ARunThatDependsOnAnythingElseIsRefused) {
  int runs = 0;
  try {
    explore_failures({}, [&](Failure& failure) {
      SimPlatform platform(testbed(), 1);
      ++runs;
      platform.start(0, 0, CompletionMode::polling,
                     [&](Thread&) -> Task<> { co_await sleep_for(Microseconds(runs)); });
      failure.watch(platform, [&](pmem::Choices&) { platform.kill(0); });
      platform.run();
    });
    FAIL() << "was not noticed";
  } catch (const PlatformError& error) {
    EXPECT_NE(std::string(error.what()).find("crash point"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace perdura::sim::test
