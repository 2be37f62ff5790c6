#include "services/kv/history/history.h"

#include <fmt/format.h>

namespace perdura::history {

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::get:
      return "get";
    case Kind::put:
      return "put";
    case Kind::erase:
      return "delete";
  }
  return "operation";
}

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok:
      return "ok";
    case Outcome::not_found:
      return "not found";
    case Outcome::unknown:
      return "unknown";
    case Outcome::refused:
      return "refused";
    case Outcome::torn:
      return "torn";
  }
  return "unknown";
}

std::string describe(const Operation& operation) {
  std::string text(to_string(operation.kind));
  const bool answered = operation.outcome == Outcome::ok;
  if (operation.kind == Kind::put || (operation.kind == Kind::get && answered)) {
    text += fmt::format(" of version {}", operation.version);
  } else if (!answered && operation.outcome != Outcome::unknown) {
    text += fmt::format(" ({})", to_string(operation.outcome));
  }
  text += fmt::format(" by client {}, ", operation.client);
  const double start = to_microseconds(operation.start.time_since_epoch());
  if (operation.outcome == Outcome::unknown) {
    return text + fmt::format("from {:.3f} us, never answered", start);
  }
  return text + fmt::format("{:.3f} to {:.3f} us", start,
                            to_microseconds(operation.end.time_since_epoch()));
}

void History::add(std::span<const Operation> operations) {
  operations_.insert(operations_.end(), operations.begin(), operations.end());
}

void History::merge(const History& other) {
  add(other.operations_);
  power_failures_.insert(power_failures_.end(), other.power_failures_.begin(),
                         other.power_failures_.end());
  preloads_.insert(preloads_.end(), other.preloads_.begin(), other.preloads_.end());
}

}  // namespace perdura::history
