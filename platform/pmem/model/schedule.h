// Enumerates the orders in which the events of a program may happen.
//
// Events are the steps of the program's agents and, separately, effects: the change made by an
// operation or a non-temporal store may reach memory later than the step was executed, and others
// may then see it later than changes that were made after it. An effect is a separate event only if
// another step changes the same line; otherwise its time does not matter.
//
// Orders that differ only in the order of independent events are equivalent (partial-order
// reduction). each() visits only one order of each equivalence class: the one whose sequence of
// event numbers is lexicographically smallest. (An order is smallest if no event can move forward
// past greater ones that it does not depend on.)
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "platform/pmem/model/persistence_state.h"
#include "platform/pmem/model/program.h"

namespace perdura::pmem {

struct Event {
  std::uint32_t agent = 0;
  std::uint32_t step = 0;
  bool effect = false;  // the effect of the step, not the step itself
  friend bool operator==(const Event&, const Event&) = default;
};

class Schedule {
 public:
  // A set of lines: bit i stands for line i. Lines whose numbers are equal modulo 64 count as the
  // same line, which is safe and only costs time.
  using Lines = std::uint64_t;

  Schedule(const Program& program, const std::vector<Lines>& lines_of_variables, Rules rules);

  // Calls visit with every order of events that may have happened by some moment, until it returns
  // false. Returns false if visit did.
  bool each(const std::function<bool(const std::vector<Event>&)>& visit) const;
  // True if the effect of a step is a separate event.
  bool has_effect(std::uint32_t agent, std::uint32_t step) const {
    return effects_[agent][step] != kNone;
  }
  // The step whose change an await step waits for.
  std::optional<Event> awaited(std::uint32_t agent, std::uint32_t step) const {
    return needs_[agent][step];
  }
  // The first step that waits forever, if there is one.
  std::optional<Event> stuck() const;

 private:
  static constexpr std::uint32_t kNone = ~0U;
  struct Node {
    Event event;
    bool never = false;
    std::vector<std::uint32_t> after;  // events that it must come after
    Lines writes = 0;
    Lines writes_back = 0;
    Lines makes_visible = 0;
  };
  // An operation that changes variables or sends a message.
  struct Issued {
    std::uint32_t agent = 0;
    std::uint32_t step = 0;
    PersistenceState::Operation operation;
  };

  const Step& step_of(Event event) const { return program_.agents[event.agent].steps[event.step]; }
  Lines lines_of(const Step& step) const;
  void find_needs();
  void find_delayed();
  void add_nodes();
  void order_effects();
  void order_step(Node& node);
  void after_effects(Node& node, PersistenceState::Operation last,
                     const std::function<bool(const Issued&)>& is_before);
  void find_dependent();
  bool possible(std::uint32_t node, const std::vector<char>& happened) const;
  bool is_smallest(const std::vector<std::uint32_t>& order, std::uint32_t next) const;

  const Program& program_;
  std::vector<Lines> lines_;
  PersistenceState scratch_;                 // asked which operations take effect in which order
  std::vector<std::vector<Issued>> issued_;  // by requester
  std::vector<std::vector<std::optional<Event>>> needs_;
  // By agent and step: nonzero if the step waits for something that never happens.
  std::vector<std::vector<char>> never_;
  std::vector<std::vector<std::uint32_t>> steps_;    // by agent and step: index in nodes_
  std::vector<std::vector<std::uint32_t>> effects_;  // by agent and step, or kNone
  std::vector<Node> nodes_;
  std::vector<std::vector<char>> dependent_;
};

}  // namespace perdura::pmem
