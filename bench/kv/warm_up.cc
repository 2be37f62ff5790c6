#include "bench/kv/warm_up.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/kv/steady_state.h"
#include "harness/run/interrupt.h"

namespace perdura::bench {

Task<> WarmUp::watch(Platform::Barrier& nodes) {
  const harness::PointSettings& settings = point_.settings;
  SteadyState rate(settings.real("steady_slope"),
                   Picoseconds(std::chrono::milliseconds(settings.number("steady_window_ms"))));
  Time next =
      Executor::current().now() +
      Picoseconds(std::chrono::milliseconds(settings.number_if_given("ramp_ms").value_or(0)));
  bool steady = false;
  while (!steady && at_work()) {
    co_await sleep_until(next);
    const Time now = Executor::current().now();
    steady = at_work() && rate.add(now, operations());
    // A thread that was kept from running skips the samples that it missed.
    while (next <= now) next += rate.interval();
  }
  if (!steady && !stop_ && !harness::interrupted()) {
    problem_ = fmt::format(
        "no steady state within the {} operations of the warm-up; raise warmup, steady_slope or "
        "steady_window_ms",
        settings.number("warmup"));
  }
  co_await nodes.arrive_and_wait();
  over_ = true;
  has_ended_ = true;
  waiting_.wake_all();
}

Task<> WarmUp::ended() {
  while (!has_ended_) co_await wait(waiting_);
}

bool WarmUp::at_work() const {
  return !stop_ && !harness::interrupted() &&
         std::none_of(clients_.begin(), clients_.end(),
                      [](const KvClient* client) { return client->warmed_up(); });
}

std::uint64_t WarmUp::operations() const {
  std::uint64_t sum = 0;
  for (const KvClient* client : clients_) sum += client->warm_up_operations();
  return sum;
}

}  // namespace perdura::bench
