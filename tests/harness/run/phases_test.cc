// The choreography of a point: all threads are in the same phase, and nobody is left waiting.
#include "harness/run/phases.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "platform/sim/sim_platform.h"

namespace perdura::harness {
namespace {

// Writes down what it does and when, and takes a time of its own for each of it.
class Recorder final : public PhaseWork {
 public:
  struct Entry {
    std::string what;
    Time begin;
    Time end;
  };

  Recorder(std::vector<Entry>& entries, std::uint64_t pace, bool fails)
      : entries_(entries), pace_(pace), fails_(fails) {}

  Task<> prepare() override {
    co_await note("prepare");
    if (fails_) throw std::runtime_error("cannot");
  }
  void failed(std::exception_ptr) override { now("failed"); }
  Task<> warm_up() override { return note("warm up"); }
  Task<> settle() override { return note("settle"); }
  Task<> operate() override { return note("operate"); }
  void operated() override { now("operated"); }
  void collect() override { now("collect"); }

 private:
  Task<> note(std::string what) {
    const Time begin = Executor::current().now();
    co_await sleep_for(Microseconds(pace_));
    entries_.push_back({std::move(what), begin, Executor::current().now()});
  }
  void now(std::string what) {
    const Time time = Executor::current().now();
    entries_.push_back({std::move(what), time, time});
  }

  std::vector<Entry>& entries_;
  std::uint64_t pace_;
  bool fails_;
};

using Entries = std::vector<Recorder::Entry>;

// A server and three clients of different speed, the last one of which may fail.
std::vector<Entries> run(bool one_fails) {
  sim::SimPlatform platform(sim::load_profile(PERDURA_SOURCE_DIR "/profiles/erda-connectx3.toml"),
                            4);
  Phases phases(platform, 4);
  std::vector<Entries> entries(4);
  platform.start_service(0, 0, CompletionMode::event, [&](Thread& thread) -> Task<> {
    Recorder work(entries[0], 3, false);
    co_await phases.serve(thread, work, true);
  });
  for (NodeId node = 1; node < 4; ++node) {
    platform.start(node, 0, CompletionMode::event, [&, node](Thread& thread) -> Task<> {
      Recorder work(entries[node], 10 * node, one_fails && node == 3);
      co_await phases.take_part(thread, work, true);
    });
  }
  platform.run();
  return entries;
}

TEST(Phases, AllThreadsAreInTheSamePhase) {
  const std::vector<Entries> threads = run(false);
  const std::vector<std::string> order{"prepare", "warm up",  "settle", "settle",
                                       "operate", "operated", "settle", "collect"};
  for (const Entries& entries : threads) {
    std::vector<std::string> whats;
    for (const auto& entry : entries) whats.push_back(entry.what);
    EXPECT_EQ(whats, order);
  }
  // Where a barrier stands between two steps, the first one of every thread ends before the second
  // one of any begins.
  for (const std::size_t step : {0U, 1U, 2U, 3U, 4U}) {
    for (const Entries& before : threads) {
      for (const Entries& after : threads) {
        EXPECT_LE(before[step].end, after[step + 1].begin) << order[step];
      }
    }
  }
}

TEST(Phases, AThreadThatFailsKeepsNobodyWaiting) {
  const std::vector<Entries> threads = run(true);
  EXPECT_EQ(threads[3][1].what, "failed");
  for (const Entries& entries : threads) EXPECT_EQ(entries.back().what, "collect");
}

}  // namespace
}  // namespace perdura::harness
