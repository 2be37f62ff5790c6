// Histories in the formats of other linearizability checkers, so that a verdict of checker.h can be
// confirmed by a program that does not come from this project. docs/history.md has the models with
// which those programs read them.
//
// In both formats the history must be durably linearizable as it stands: an operation that was
// under way at a power failure has no answer, and nothing else marks the failure. So the changes
// that the promise Undone::last_version allows cannot be expressed. Initial contents of keys become
// puts before everything else. Gets without an answer and refused operations carry no information
// and are left out.
#pragma once

#include <string>
#include <string_view>

#include "services/kv/history/history.h"

namespace perdura::history {

// For Jepsen's checkers, one map per line: {:index 0, :process 2, :type :invoke, :f :write, :value
// [7 3], :time 1000, :client 5}. Each process number has one operation at a time, and is not used
// again after an operation without an answer. Times are in nanoseconds, rounded down; the index has
// the exact order, in which an end and a beginning at the same time are concurrent.
std::string to_edn(const History& history);

// For Porcupine, an array with one operation per line, as Go writes its type Operation:
// {"ClientId": 5, "Input": {"op": "put", "key": 7, "value": 3}, "Call": 1000, "Output": {"outcome":
// "ok"}, "Return": 2000}. Times are in picoseconds; an operation without an answer returns at the
// largest signed 64-bit number.
std::string to_json(const History& history);

// Reads the output of to_json(), wherever its lines are broken. Throws UsageError, which says what
// is wrong with which operation.
History from_json(std::string_view text);

}  // namespace perdura::history
