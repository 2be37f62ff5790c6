// The measurement of one point of a sweep, or of one process's share of it; shares are merged
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

// valid: the row is what it claims to be. invalid: the run ended, but something was wrong, such as
// a value that was never written. failed: the point could not be run to its end.
enum class Verdict : std::uint8_t { valid, invalid, failed };
std::string_view to_string(Verdict verdict);

// A kind of operation of a service: its name in results ("read") and its order among a point's
// rows.
struct OperationKind {
  std::uint32_t order = 0;
  std::string name;
  auto operator<=>(const OperationKind&) const = default;
};

// The operations of one kind. Updated by each operation, and therefore on cache lines of its own.
struct alignas(kCacheLine) KindMeasurement {
  std::uint64_t operations = 0;  // begun within the measured interval; includes the next two
  std::uint64_t errors = 0;      // ended in an error, or read a value that was never written
  std::uint64_t not_found = 0;   // a valid answer, not an error
  measure::Histogram latency;    // nanoseconds, operations without an error only
  // In an open loop, the latency from the time at which an operation was due, not from that at
  // which it began; nullopt in a closed loop.
  std::optional<measure::Histogram> response;

  void merge(const KindMeasurement& other);
};

// The space of the store, over all partitions.
struct SpaceUse {
  Bytes capacity = 0;  // 0: unknown
  Bytes free = 0;

  // For a hash table with slots, this is its load factor.
  std::optional<double> used_percent() const {
    if (capacity == 0) return std::nullopt;
    return 100.0 * static_cast<double>(capacity - free) / static_cast<double>(capacity);
  }
};

// The resources used by all nodes of a role together.
struct RoleCosts {
  Picoseconds cpu{};    // CPU time of all their threads
  pmem::Writes writes;  // writes to their persistent memory
  fabric::Traffic traffic;
  pmem::MemoryUse peak_memory;  // the sum of the nodes' peaks since their start

  RoleCosts& operator+=(const RoleCosts& other);
  bool operator==(const RoleCosts&) const = default;
};

struct Measurement {
  std::map<OperationKind, KindMeasurement> kinds;
  std::uint64_t torn_reads = 0;
  std::uint64_t one_sided_reads = 0;     // READs by clients
  SpaceUse space;                        // at the end of the measured interval
  Picoseconds elapsed{};                 // from the first operation's start to the last one's end
  std::vector<measure::AtWork> at_work;  // one per process with clients
  Picoseconds arrivals{};                // open loop: from the first due time to the last
  // The costs of each role in the measured interval, by the role's name.
  std::map<std::string, RoleCosts, std::less<>> roles;
  // Metrics of drivers and systems, by column (Driver::columns): sums over all participants, within
  // the measured interval.
  std::map<std::string, double, std::less<>> declared;
  // Cost of the harness itself; maximum over clients.
  std::optional<Picoseconds> harness_per_operation;
  Timeline timeline;
  std::optional<HostNoise> noise;  // noise of the hosts; nullopt on a model
  Verdict verdict = Verdict::valid;
  std::string reason;  // one line; empty if valid
  std::string method;  // method of remote persistence that was used; empty if there is none
  std::string
      guarantee;  // guarantee of a completed operation (services/guarantee.h); empty: unknown
  // The input of Driver::conclude from all processes, in a format of the driver's own; conclude()
  // empties it.
  std::vector<std::uint64_t> evidence;
  std::uint64_t operations_checked = 0;
  bool interrupted = false;  // the run was cut short, so nothing here counts
  std::string usage_error;   // if not empty, the point is impossible and the sweep must stop

  // Worsens the verdict; the first reason given for the worst verdict is kept.
  void judge(Verdict worse, const std::string& why);
  void note_noise(const HostNoise& more);
  // The costs of a role; zero if there is no such role.
  RoleCosts costs_of(std::string_view role) const;
  pmem::Writes writes() const;  // to all persistent memory
  // Adds another share. Shares cover the same interval, so the longer duration counts.
  void merge(const Measurement& other);
  std::uint64_t operations() const;
  // Operations per second while all clients were at work; nullopt if they never were.
  std::optional<double> throughput() const;
  // The percentage of operations that ended outside of that time: before all clients were at work,
  // or after one of them had nothing more to do. The system was less loaded then, yet these
  // operations are part of latencies, costs and counts.
  double tail_percent() const;
  // True if the tail is too large for latency and throughput to describe the same load: with a tail
  // of a tenth, Little's law is off by up to a tenth.
  bool has_long_tail() const { return tail_percent() > 10; }
  // For an open loop, true if operations arrived faster than the system executed them, so that they
  // ended at less than 95 % of the rate at which they were due. Returns nullopt if fewer than two
  // were due.
  std::optional<bool> saturated() const;

  // Serialization for another process of the same program. Deserializing throws PlatformError if
  // the words are not a measurement.
  std::vector<std::uint64_t> serialize() const;
  static Measurement deserialize(std::span<const std::uint64_t> words);
};

}  // namespace perdura::harness
