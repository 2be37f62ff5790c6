// The orders in which what a program does may happen.
//
// Events are the steps of its agents and, apart from them, effects: what an operation or a
// non-temporal store changes may reach memory later than the step, and then others see it later
// than changes that were made after it. Effects are events of their own only where something else
// changes the same line, so that it matters.
//
// Orders that differ only in events that do not touch each other are one: each() shows of these the
// one that is smallest by the numbers of its events. (An order is smallest if no event can move
// forward past greater ones that it does not depend on.)
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
  bool effect = false;  // else the step itself
  friend bool operator==(const Event&, const Event&) = default;
};

class Schedule {
 public:
  // Bit i of a set is for line i; lines 64 apart count as the same, which only costs time.
  using Lines = std::uint64_t;

  Schedule(const Program& program, const std::vector<Lines>& lines_of_variables, Rules rules);

  // Every order of events that may have happened by some moment, until visit returns false; then
  // false.
  bool each(const std::function<bool(const std::vector<Event>&)>& visit) const;
  // Whether what a step changes is an event of its own.
  bool has_effect(std::uint32_t agent, std::uint32_t step) const {
    return effects_[agent][step] != kNone;
  }
  // The step that an await waits for.
  std::optional<Event> awaited(std::uint32_t agent, std::uint32_t step) const {
    return needs_[agent][step];
  }
  // The first step that waits for what never comes.
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
  PersistenceState scratch_;                 // knows what takes effect in which order
  std::vector<std::vector<Issued>> issued_;  // by requester
  std::vector<std::vector<std::optional<Event>>> needs_;
  std::vector<std::vector<char>> never_;             // there is nothing that it waits for
  std::vector<std::vector<std::uint32_t>> steps_;    // their nodes
  std::vector<std::vector<std::uint32_t>> effects_;  // their nodes, or kNone
  std::vector<Node> nodes_;
  std::vector<std::vector<char>> dependent_;
};

}  // namespace perdura::pmem
