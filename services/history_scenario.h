// The base of the crash scenarios of services that have a sequential specification (judge.h). It
// records the calls of the clients and of the inspector, and from this record provides the judge,
// what the inspector has observed, and the calls for explanations. A service adds how its servers
// serve, what its clients do, and how an explanation shows one of its operations:
//
//   class QueueScenario final : public HistoryScenario<QueueSpecification> {
//     Task<> use(Thread& thread, std::uint32_t number) override {
//       ...
//       Calling calling(*this, {.kind = Kind::dequeue}, number);
//       calling.operation().found = co_await queue->dequeue();
//       calling.end();
//     }
//   };
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "services/crash.h"
#include "services/judge.h"

namespace perdura::services {

template <SequentialSpecification S>
class HistoryScenario : public CrashScenario {
 public:
  using Operation = typename S::Operation;

  Verdict judge(std::span<const ServerFailure> failures, const ToJudge& judged) const override {
    return judge_history(specification_, calls_, inspector(), times_of(failures), problem(),
                         judged);
  }
  bool waits_for_operation() const override { return !under_way_.empty(); }
  std::vector<CrashCall> calls() const override {
    std::vector<CrashCall> calls;
    for (const ClientCall<Operation>& one : calls_) {
      CrashCall& call = calls.emplace_back();
      call.client = one.client;
      call.start = one.call.start;
      if (one.call.answered) call.end = one.call.end;
      call.changes = specification_.changes(one.call.operation);
      explain(one.call, call);
    }
    return calls;
  }

 protected:
  explicit HistoryScenario(S specification = {}) : specification_(std::move(specification)) {}

  // A call, from its beginning on. It is under way until it goes out of scope, which it also does
  // when its client dies.
  class Calling {
   public:
    Calling(HistoryScenario& scenario, Operation operation, std::uint32_t client)
        : scenario_(scenario), index_(scenario.calls_.size()) {
      scenario.calls_.push_back(
          {{std::move(operation), Executor::current().now(), Time::max(), false}, client});
      scenario.under_way_.push_back(index_);
      scenario.changed();
    }
    Calling(const Calling&) = delete;
    Calling& operator=(const Calling&) = delete;
    ~Calling() { std::erase(scenario_.under_way_, index_); }

    // The operation, to which the caller adds the answer.
    Operation& operation() { return scenario_.calls_[index_].call.operation; }
    // Notes that the call has been answered.
    void end() {
      Call<Operation>& call = scenario_.calls_[index_].call;
      call.end = Executor::current().now();
      call.answered = true;
      scenario_.changed();
    }

   private:
    HistoryScenario& scenario_;
    std::size_t index_;
  };

  // Fills in what an explanation shows of a call: its object, what was asked, what was told, and
  // its values.
  virtual void explain(const Call<Operation>& call, CrashCall& shown) const = 0;
  // All that the inspector can have observed by a call.
  virtual std::string observed(const Call<Operation>& call) const {
    return specification_.text(call);
  }

  std::uint32_t inspector() const { return clients(); }  // its client number in the history
  S& specification() { return specification_; }
  const S& specification() const { return specification_; }
  using Calls = std::vector<ClientCall<Operation>>;
  Calls& history() { return calls_; }
  const Calls& history() const { return calls_; }
  // Indexes in history() of the calls that are under way.
  const std::vector<std::size_t>& under_way() const { return under_way_; }

  void snapshot_observations() override { kept_calls_ = calls_.size(); }
  void restore_observations() override {
    calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(kept_calls_), calls_.end());
    under_way_.clear();
  }
  std::string observations_since_snapshot() const override {
    std::string found;
    for (std::size_t i = kept_calls_; i < calls_.size(); ++i) {
      found += fmt::format("{}{};", observed(calls_[i].call), calls_[i].call.answered ? "" : "?");
    }
    return found;
  }

 private:
  S specification_;
  Calls calls_;
  std::vector<std::size_t> under_way_;
  std::size_t kept_calls_ = 0;
};

}  // namespace perdura::services
