// The messages from the program perdura-lmdb to the process that has started it: the begin and end
// of the measured interval, and finally the measurements.
//
//   perdura-lmdb        perdura
//      kBegins   ---->             counts the CPU time of all processes
//                <----   kGoOn
//      operations
//      kEnds     ---->             counts it again
//                <----   kGoOn
//      kResult, the number of words, the words of a Result   ---->
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/measure/at_work.h"
#include "harness/measure/histogram.h"
#include "harness/results/words.h"

namespace perdura::bench::lmdb {

inline constexpr char kBegins = 'b';
inline constexpr char kEnds = 'e';
inline constexpr char kResult = 'r';
inline constexpr char kGoOn = '+';

// The operations of one kind, like harness::KindMeasurement.
struct Kind {
  std::uint64_t operations = 0;
  std::uint64_t errors = 0;
  std::uint64_t not_found = 0;
  measure::Histogram latency;
};

struct Result {
  std::map<std::uint32_t, Kind> kinds;  // by ycsb::OperationKind
  Picoseconds elapsed{};
  // The interval in which all clients were at work, and the operations completed in it.
  Time all_begin{};
  Time all_end{};
  std::uint64_t operations_at_work = 0;
  std::uint64_t entries = 0;  // number in the database at the end
  bool failed = false;
  std::string problem;  // one line; empty if all is well
};

template <class Archive, class T>
requires harness::IsOf<T, Kind>
void visit(Archive& archive, T& kind) {
  archive(kind.operations, kind.errors, kind.not_found, kind.latency);
}

template <class Archive, class T>
requires harness::IsOf<T, Result>
void visit(Archive& archive, T& result) {
  archive(result.kinds, result.elapsed, result.all_begin, result.all_end, result.operations_at_work,
          result.entries, result.failed, result.problem);
}

}  // namespace perdura::bench::lmdb
