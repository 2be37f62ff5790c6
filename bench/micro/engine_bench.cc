// Measures the event engine in the "hold" model: a fixed number of tasks is pending, and each task
// that is resumed goes to sleep again for a random time. One item is one resumption.
#include <benchmark/benchmark.h>

#include <coroutine>
#include <vector>

#include "platform/sim/kernel/engine.h"
#include "platform/sim/sim_platform.h"

namespace perdura::bench::micro {
namespace {

using sim::Engine;
using sim::Event;
using sim::load_profile;
using sim::Profile;
using sim::SimPlatform;

// A cheap generator, so that the engine dominates the time; its low bits are poor and not used.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15 + 1) {}
  // 1 ns to 1.05 us.
  Picoseconds operator()() {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return Picoseconds(static_cast<std::int64_t>(1000 + (state_ >> 44)));
  }

 private:
  std::uint64_t state_;
};

// co_await on one suspends the task until its time on the engine: no thread, no core.
struct Pause final : Event {
  Pause(Engine& e, Picoseconds d) : engine(e), duration(d) {}
  Engine& engine;
  Picoseconds duration;
  std::coroutine_handle<> task;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiting) {
    task = awaiting;
    engine.schedule(engine.now() + duration, *this);
  }
  void await_resume() const noexcept {}
  void fire() override { task.resume(); }
};

Task<> pause_forever(Engine& engine, std::uint64_t seed) {
  Draw draw(seed);
  for (;;) co_await Pause(engine, draw());
}

void engine_resumes_tasks(benchmark::State& state) {
  Engine engine;
  std::vector<Task<>> tasks;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    tasks.push_back(pause_forever(engine, static_cast<std::uint64_t>(i)));
    tasks.back().handle().resume();
  }
  for (auto _ : state) {
    if (!engine.step()) state.SkipWithError("nothing is pending");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(engine_resumes_tasks)->Arg(1)->Arg(16)->Arg(256)->Arg(4096);

// The same through the interfaces that systems use: sleeping tasks of simulated threads, at most 16
// tasks per thread. A resumption takes at least three events: the timer, the wake-up of the thread,
// and the end of its charged time.
Task<> sleep_forever(std::uint64_t seed, std::uint64_t& resumptions) {
  Draw draw(seed);
  for (;;) {
    co_await sleep_for(draw());
    ++resumptions;
  }
}

void simulated_threads_resume_tasks(benchmark::State& state) {
  const auto tasks = static_cast<std::uint64_t>(state.range(0));
  const std::uint64_t threads = (tasks + 15) / 16;
  Profile profile = load_profile(PERDURA_SOURCE_DIR "/profiles/erda-connectx3.toml");
  profile.client.cores = static_cast<std::uint32_t>(threads);
  SimPlatform platform(profile, 2);
  std::uint64_t resumptions = 0;
  for (std::uint64_t thread = 0; thread < threads; ++thread) {
    platform.start(1, static_cast<fabric::Port>(thread), CompletionMode::polling,
                   [&, thread](Thread& self) -> Task<> {
                     for (std::uint64_t i = thread + threads; i < tasks; i += threads) {
                       self.executor.spawn(sleep_forever(i, resumptions));
                     }
                     co_await sleep_forever(thread, resumptions);
                   });
  }
  Engine& engine = platform.engine();
  while (resumptions < 2 * tasks) engine.step();
  const std::uint64_t events = engine.fired();
  resumptions = 0;
  for (auto _ : state) {
    const std::uint64_t next = resumptions + 1;
    while (resumptions != next) engine.step();
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["events"] =
      benchmark::Counter(static_cast<double>(engine.fired() - events), benchmark::Counter::kIsRate);
}
BENCHMARK(simulated_threads_resume_tasks)->Arg(1)->Arg(16)->Arg(256)->Arg(4096);

}  // namespace
}  // namespace perdura::bench::micro
