#include "services/kv/history/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
#include <set>

#include "platform/base/error.h"
#include "platform/base/json.h"
#include "services/kv/history/recorded_elsewhere.h"

namespace perdura::history {
namespace {

// The operations to be written: those with a meaning in both formats, and the initial contents as
// puts.
std::vector<Operation> operations_of(const History& history) {
  std::vector<Operation> operations;
  std::set<std::uint64_t> keys;
  for (const Operation& operation : history.operations()) {
    keys.insert(operation.key);
    const bool says_nothing =
        operation.outcome == Outcome::refused ||
        (operation.outcome == Outcome::unknown && operation.kind == Kind::get);
    if (!says_nothing) operations.push_back(operation);
  }
  Time first = Time();
  for (const Operation& operation : operations) first = std::min(first, operation.start);
  const Time before = first - Picoseconds(1);
  std::vector<Operation> puts;
  for (const History::Preload& preload : history.preloads()) {
    for (auto key = keys.lower_bound(preload.first);
         key != keys.end() && *key - preload.first < preload.keys; ++key) {
      puts.push_back({.key = *key,
                      .version = preload.version,
                      .start = before,
                      .end = before,
                      .kind = Kind::put,
                      .outcome = Outcome::ok});
    }
  }
  operations.insert(operations.begin(), puts.begin(), puts.end());
  return operations;
}

// A delete that found nothing is a read of an absent key; the name has no other meaning.
std::string_view function_of(const Operation& operation) {
  if (operation.kind == Kind::put) return "write";
  if (operation.kind == Kind::get || operation.outcome == Outcome::not_found) return "read";
  return "delete";
}

std::string value_of(const Operation& operation, bool invoked) {
  if (operation.kind == Kind::put) return fmt::format("{}", operation.version);
  if (operation.outcome == Outcome::not_found) return invoked ? "nil" : ":absent";
  if (invoked || operation.kind == Kind::erase) return "nil";
  return operation.outcome == Outcome::torn ? ":torn" : fmt::format("{}", operation.version);
}

// Writes the two halves of each operation in the order of time.
class EdnWriter {
 public:
  explicit EdnWriter(std::vector<Operation> operations) : operations_(std::move(operations)) {}

  std::string write() {
    std::vector<Half> halves;
    Time last = Time();
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const Operation& operation = operations_[i];
      halves.push_back({operation.start, false, i});
      last = std::max(last, operation.start);
      if (operation.outcome == Outcome::unknown) continue;
      halves.push_back({operation.end, true, i});
      last = std::max(last, operation.end);
    }
    std::stable_sort(halves.begin(), halves.end(), [](const Half& a, const Half& b) {
      return std::pair(a.when, a.completes) < std::pair(b.when, b.completes);
    });
    process_of_.resize(operations_.size());
    for (const Half& half : halves) {
      if (half.completes) {
        complete(half);
      } else {
        invoke(half);
      }
    }
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      if (operations_[i].outcome == Outcome::unknown) add("info", false, last, i);
    }
    return std::move(text_);
  }

 private:
  struct Half {
    Time when;
    bool completes;
    std::size_t operation;
  };

  void invoke(const Half& half) {
    if (free_.empty()) {
      process_of_[half.operation] = processes_++;
    } else {
      process_of_[half.operation] = free_.top();
      free_.pop();
    }
    add("invoke", true, half.when, half.operation);
  }

  void complete(const Half& half) {
    add("ok", false, half.when, half.operation);
    free_.push(process_of_[half.operation]);
  }

  void add(std::string_view type, bool invoked, Time when, std::size_t number) {
    const Operation& operation = operations_[number];
    fmt::format_to(std::back_inserter(text_),
                   "{{:index {}, :process {}, :type :{}, :f :{}, :value [{} {}], :time {}, "
                   ":client {}}}\n",
                   index_++, process_of_[number], type, function_of(operation), operation.key,
                   value_of(operation, invoked),
                   std::chrono::floor<Nanoseconds>(when.time_since_epoch()).count(),
                   operation.client);
  }

  std::vector<Operation> operations_;
  std::vector<std::uint64_t> process_of_;
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> free_;
  std::uint64_t processes_ = 0;
  std::uint64_t index_ = 0;
  std::string text_;
};

constexpr Kind kKinds[] = {Kind::get, Kind::put, Kind::erase};
constexpr Outcome kOutcomes[] = {Outcome::ok, Outcome::not_found, Outcome::unknown, Outcome::torn};

template <class Value, std::size_t count>
Value value_of_word(const Value (&values)[count], const std::string& word) {
  for (const Value value : values) {
    if (to_string(value) == word) return value;
  }
  throw UsageError(fmt::format("'{}' is not known", word));
}

Time time_of(const Json& number) { return Time(Picoseconds(number.get<std::int64_t>())); }

Operation operation_of(const Json& written) {
  const Json& input = written.at("Input");
  const Json& output = written.at("Output");
  Operation operation;
  operation.client = written.at("ClientId").get<std::uint32_t>();
  operation.kind = value_of_word(kKinds, input.at("op").get<std::string>());
  operation.key = input.at("key").get<std::uint64_t>();
  operation.outcome = value_of_word(kOutcomes, output.at("outcome").get<std::string>());
  operation.start = time_of(written.at("Call"));
  const bool answered = operation.outcome != Outcome::unknown;
  operation.end = answered ? time_of(written.at("Return")) : Time::max();
  if (operation.end < operation.start) throw UsageError("it returns before it is called");
  if (operation.kind == Kind::put) {
    if (answered && operation.outcome != Outcome::ok) {
      throw UsageError("a put is 'ok' or 'unknown'");
    }
    operation.version = input.at("value").get<std::uint64_t>();
  } else if (operation.kind == Kind::get && operation.outcome == Outcome::ok) {
    operation.version = output.at("value").get<std::uint64_t>();
  }
  return operation;
}

}  // namespace

std::string to_edn(const History& history) { return EdnWriter(operations_of(history)).write(); }

std::string to_json(const History& history) {
  std::string text = "[";
  std::string_view separator = "\n";
  for (const Operation& operation : operations_of(history)) {
    const bool put = operation.kind == Kind::put;
    const bool found = operation.kind == Kind::get && operation.outcome == Outcome::ok;
    fmt::format_to(std::back_inserter(text),
                   R"({}{{"ClientId":{},"Input":{{"op":"{}","key":{}{}}},"Call":{},)"
                   R"("Output":{{"outcome":"{}"{}}},"Return":{}}})",
                   separator, operation.client, to_string(operation.kind), operation.key,
                   put ? fmt::format(R"(,"value":{})", operation.version) : "",
                   operation.start.time_since_epoch().count(), to_string(operation.outcome),
                   found ? fmt::format(R"(,"value":{})", operation.version) : "",
                   operation.outcome == Outcome::unknown
                       ? Time::max().time_since_epoch().count()
                       : operation.end.time_since_epoch().count());
    separator = ",\n";
  }
  return text + "\n]\n";
}

History from_json(std::string_view text) {
  History history;
  const auto take = [&](const Json& value) {
    try {
      history.add(operation_of(value));
    } catch (const std::exception& error) {
      throw UsageError(fmt::format("line {}: operation {}: {}",
                                   line_of_element(text, history.size()), history.size(),
                                   error.what()));
    }
  };
  try {
    if (!Json::for_each_element(text, take)) throw UsageError("it is no array of operations");
  } catch (const JsonError& error) {
    throw UsageError(error.what());
  }
  return history;
}

}  // namespace perdura::history
