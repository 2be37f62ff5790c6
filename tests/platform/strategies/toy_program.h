// Small concurrent programs whose interleavings a strategy chooses: threads that load and store
// shared variables, and may choose whether to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform/pmem/model/choices.h"

namespace perdura::strategies::test {

struct ToyStep {
  enum class Kind : std::uint8_t { load, store, add, choose } kind = Kind::load;
  std::uint32_t variable = 0;
  // To store, to add to what the thread has loaded, or to store or leave out, as is chosen.
  int value = 0;
};

struct ToyProgram {
  std::uint32_t variables = 0;
  std::vector<std::vector<ToyStep>> threads;
};

// One run. The outcome is the variables and what each thread has loaded last.
class ToyRun {
 public:
  explicit ToyRun(const ToyProgram& program)
      : program_(program),
        variables_(program.variables),
        loaded_(program.threads.size()),
        at_(program.threads.size()) {}

  std::string finish(pmem::Choices& choices) {
    std::vector<pmem::NextStep> steps;
    while (list(steps), !steps.empty()) take(steps[choices.choose_step(steps)].agent, choices);
    return state();
  }

  // All that what follows depends on, and the outcome at the end.
  std::string state() const {
    std::string text;
    for (const auto* numbers : {&variables_, &loaded_}) {
      for (const int number : *numbers) text += std::to_string(number) + ' ';
    }
    for (const std::size_t at : at_) text += std::to_string(at) + ' ';
    return choosing_ ? text + "chooses" : text;
  }

 private:
  void list(std::vector<pmem::NextStep>& steps) const {
    steps.clear();
    for (std::size_t thread = 0; thread < at_.size(); ++thread) {
      if (at_[thread] == program_.threads[thread].size()) continue;
      const std::uint32_t variable = program_.threads[thread][at_[thread]].variable;
      steps.push_back({thread, std::uint64_t{1} << variable});
    }
  }

  void take(std::size_t thread, pmem::Choices& choices) {
    const ToyStep& step = program_.threads[thread][at_[thread]++];
    int& variable = variables_[step.variable];
    switch (step.kind) {
      case ToyStep::Kind::load:
        loaded_[thread] = variable;
        return;
      case ToyStep::Kind::store:
        variable = step.value;
        return;
      case ToyStep::Kind::add:
        variable = loaded_[thread] + step.value;
        return;
      case ToyStep::Kind::choose:
        choosing_ = true;
        if (choices.choose(2) == 1) variable = step.value;
        choosing_ = false;
        return;
    }
  }

  const ToyProgram& program_;
  std::vector<int> variables_;
  std::vector<int> loaded_;  // by each thread
  std::vector<std::size_t> at_;
  bool choosing_ = false;
};

}  // namespace perdura::strategies::test
