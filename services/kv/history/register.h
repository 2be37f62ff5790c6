// Histories of registers, in which a value may be written more than once, and which have
// compare-and-set and append besides reads and writes. Most public histories are of this kind. The
// checker of this system's own histories (checker.h) needs a version for each put; registers are
// decided by the general search (services/linearizability.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "services/linearizability.h"

namespace perdura::history {

// The values of a history, numbered. A value is a text; equal values have equal texts.
class RegisterValues {
 public:
  using Id = std::uint32_t;
  static constexpr Id kAbsent = 0;    // nil: the register holds nothing
  static constexpr Id kAnything = 1;  // the initial content is unknown

  Id id_of(const std::string& text);
  const std::string& text_of(Id id) const { return texts_[id]; }
  // The concatenation of two strings, where nil counts as the empty string.
  Id concatenated(Id first, Id second);

 private:
  std::vector<std::string> texts_{"nil", "anything"};
  std::unordered_map<std::string, Id> ids_;
};

struct RegisterOperation {
  enum class Action : std::uint8_t {
    read,            // returned `value`
    write,           // wrote `value`
    compare_set,     // found `expected` and wrote `value`
    compare_failed,  // did not find `expected`
    append,          // appended the string `value`
    erase,           // found something and removed it
  };
  Action action = Action::read;
  RegisterValues::Id value = RegisterValues::kAbsent;
  RegisterValues::Id expected = RegisterValues::kAbsent;
  std::size_t line = 0;  // the line of the file in which it begins
};

// A write that was never answered, and that another write covers before it has been seen, is
// equivalent to one without effect. So such a write may be required to be followed by an operation
// that sees it, which spares the search most orders of such writes: its value is marked as unseen
// until then.
struct RegisterSpecification {
  using State = RegisterValues::Id;
  static constexpr State kUnseen = State{1} << 31;
  using Operation = RegisterOperation;

  RegisterValues* values = nullptr;
  State at_first = RegisterValues::kAbsent;

  State initial() const { return at_first; }
  std::vector<State> after(State state, const Operation& operation, bool answered) const;
  std::vector<State> after_failure(State state) const { return {state}; }
  bool changes(const Operation& operation) const {
    // An operation that sees a value removes its mark, after which more is possible.
    return operation.action != Operation::Action::compare_failed &&
           (operation.action != Operation::Action::read || at_first == RegisterValues::kAnything);
  }
  // True if two operations have the same effect from every state, so that of two that were never
  // answered the one that begins later need not take effect before the other.
  bool interchangeable(const Operation& a, const Operation& b) const {
    return a.action == b.action && a.value == b.value && a.expected == b.expected;
  }
};

struct RegisterHistory {
  RegisterValues values;
  // By the register's name, which is empty for a single register without a name.
  std::map<std::string, std::vector<services::Call<RegisterOperation>>> registers;
  // True if registers hold nothing at first. Otherwise that is not recorded: the checker is given
  // the initial content, or its verdict must not depend on it.
  bool begins_empty = false;
  std::string not_known;  // the first operation that registers do not have, in words; or empty
};

struct RegisterVerdict {
  services::Linearizability::Decision decision{};
  std::string what;  // one line
};

struct RegisterLimits {
  std::optional<std::string> at_first{};  // the initial content of registers, if it is known
  // The limit of the search for each register; a search that would exceed it is undecided.
  std::size_t configurations = services::kMostConfigurations;
};

RegisterVerdict check_registers(RegisterHistory& history, const RegisterLimits& limits = {});

}  // namespace perdura::history
