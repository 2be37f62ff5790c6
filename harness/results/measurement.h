// What was measured at one point of a sweep, or one process's share of that; shares are merged
// without loss.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/measure/at_work.h"
#include "harness/measure/histogram.h"
#include "harness/results/host_noise.h"
#include "harness/results/timeline.h"
#include "platform/base/units.h"
#include "platform/fabric/traffic.h"
#include "platform/pmem/accounting.h"
#include "platform/pmem/memory_meter.h"

namespace perdura::harness {

// valid: the row says what it claims. invalid: the run ended, but something was not as it should
// be, such as a value that nobody wrote. failed: it could not be run to its end.
enum class Verdict : std::uint8_t { valid, invalid, failed };
std::string_view to_string(Verdict verdict);

// A kind of operation of a service, by its name in results ("read"), in the order of a point's
// rows.
struct OperationKind {
  std::uint32_t order = 0;
  std::string name;
  auto operator<=>(const OperationKind&) const = default;
};

// The operations of one kind. Written for each operation, so on cache lines of its own.
struct alignas(kCacheLine) KindMeasurement {
  std::uint64_t operations = 0;  // begun within the measured interval; includes the next two
  std::uint64_t errors = 0;      // ended in an error, or read a value that nobody wrote
  std::uint64_t not_found = 0;   // an answer, not an error
  measure::Histogram latency;    // of those that did not end in an error; nanoseconds
  // The same of an open loop, from the time at which an operation was due instead of that at which
  // it was begun; nothing for a closed loop.
  std::optional<measure::Histogram> response;

  void merge(const KindMeasurement& other);
};

// The space of the store, all its partitions together.
struct SpaceUse {
  Bytes capacity = 0;  // 0: not known
  Bytes free = 0;

  // Of a hash table with slots, its load factor.
  std::optional<double> used_percent() const {
    if (capacity == 0) return std::nullopt;
    return 100.0 * static_cast<double>(capacity - free) / static_cast<double>(capacity);
  }
};

// The resources that the nodes of a role used, together.
struct RoleCosts {
  Picoseconds cpu{};    // of all their threads
  pmem::Writes writes;  // to their persistent memory
  fabric::Traffic traffic;
  pmem::MemoryUse peak_memory;  // the sum of the nodes' peaks, from their start on

  RoleCosts& operator+=(const RoleCosts& other);
  bool operator==(const RoleCosts&) const = default;
};

struct Measurement {
  std::map<OperationKind, KindMeasurement> kinds;
  std::uint64_t torn_reads = 0;
  std::uint64_t one_sided_reads = 0;     // READs by clients
  SpaceUse space;                        // at the end of the measured interval
  Picoseconds elapsed{};                 // from the first operation's start to the last one's end
  std::vector<measure::AtWork> at_work;  // one for each process that has clients
  Picoseconds arrivals{};  // of an open loop: from when the first was due to when the last was
  std::map<std::string, RoleCosts, std::less<>> roles;  // by name; within the measured interval
  // What drivers and systems measure of their own, by column (Driver::columns): sums over all that
  // took part, within the measured interval.
  std::map<std::string, double, std::less<>> declared;
  std::optional<Picoseconds> harness_per_operation;  // what it costs itself; the costliest client's
  Timeline timeline;
  std::optional<HostNoise> noise;  // of the hosts; nothing of a model
  Verdict verdict = Verdict::valid;
  std::string reason;     // one line; empty if valid
  std::string method;     // of remote persistence, as it was run; empty where there is none
  std::string guarantee;  // of a completed operation (services/guarantee.h); empty: not known
  // What Driver::conclude needs of all processes, in words of the driver's own; it empties this.
  std::vector<std::uint64_t> evidence;
  std::uint64_t operations_checked = 0;
  bool interrupted = false;  // the run was cut short: nothing of this counts
  std::string usage_error;  // if not empty, the point asks for something impossible: stop the sweep

  // Worsens the verdict; the first reason for the worst verdict stays.
  void judge(Verdict worse, const std::string& why);
  void note_noise(const HostNoise& more);
  // The costs of a role; zero if there was no such role.
  RoleCosts costs_of(std::string_view role) const;
  pmem::Writes writes() const;  // to all persistent memory
  // Adds another share. Shares cover the same interval, so the longer one counts.
  void merge(const Measurement& other);
  std::uint64_t operations() const;
  // Operations a second while all clients were at work; nothing if they never were.
  std::optional<double> throughput() const;
  // The percentage of operations that ended outside of that time: before all clients were at work,
  // or after one of them had nothing more to do. The system was then less loaded, yet these
  // operations are part of latencies, costs and counts.
  double tail_percent() const;
  // Whether the tail is too large for latency and throughput to describe the same load: with a tail
  // of a tenth, Little's law is off by up to a tenth.
  bool has_long_tail() const { return tail_percent() > 10; }
  // Of an open loop: whether operations came faster than the system took them, so that they ended
  // at less than 95 % of the rate at which they were due. Nothing if fewer than two were due.
  std::optional<bool> saturated() const;

  // Serialization for another process of the same program. Deserializing throws PlatformError if
  // the words are not a measurement.
  std::vector<std::uint64_t> serialize() const;
  static Measurement deserialize(std::span<const std::uint64_t> words);
};

}  // namespace perdura::harness
