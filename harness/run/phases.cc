#include "harness/run/phases.h"

#include "platform/runtime/sync.h"

namespace perdura::harness {

Task<> Phases::take_part(Thread& thread, PhaseWork& work, bool takes_costs) {
  std::exception_ptr problem;
  try {
    co_await work.prepare();
  } catch (...) {
    problem = std::current_exception();
  }
  if (problem) work.failed(problem);
  co_await barrier_->arrive_and_wait();
  co_await work.warm_up();
  co_await barrier_->arrive_and_wait();
  co_await work.settle();
  co_await barrier_->arrive_and_wait();
  for (const Interval interval : {Interval::empty, Interval::measured}) {
    if (takes_costs) costs_.begin(thread.node);
    co_await barrier_->arrive_and_wait();
    if (interval == Interval::measured) co_await work.operate();
    co_await barrier_->arrive_and_wait();
    if (interval == Interval::measured) work.operated();
    co_await work.settle();
    co_await barrier_->arrive_and_wait();
    if (takes_costs) costs_.end(thread.node, interval);
    if (interval == Interval::measured) work.collect();
    co_await barrier_->arrive_and_wait();
  }
}

Task<> Phases::serve(Thread& thread, PhaseWork& work, bool takes_costs) {
  co_await take_part(thread, work, takes_costs);
  WaitList forever;
  co_await wait(forever);
}

}  // namespace perdura::harness
