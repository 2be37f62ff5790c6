// Probes: microbenchmarks of a machine's memory or a cluster's RDMA, without a system on top.
//
// A probe is written once, against the interface of platform/platform.h, and runs on real memory
// and devices as well as on `sim`.
// It yields one number per repetition; its parameters are in its Setting, which becomes a row of
// the result. The choice of parameters follows chapter 2 of "Building Distributed Systems with
// Non-Volatile Main Memories and RDMA Networks": Figures 2.2 to 2.5 for memory, Figure 2.7 for
// RDMA.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platform/platform.h"
#include "platform/sim/kernel/profile.h"

namespace perdura::bench {

// The parameters of a measurement: each member is a column of probes.csv, empty or 0 where it does
// not apply to the probe.
struct Setting {
  std::string probe{};      // idle-latency, bandwidth-over-threads, ...
  std::string medium{};     // dram, pm: the memory that is probed
  std::string operation{};  // load, store+clwb, ntstore; read, write, ...
  std::string pattern{};    // sequential, random
  std::string cache{};      // hot, flushed, cold: the state of the lines before they are accessed
  std::string pages{};      // small, huge
  std::string numa{};       // local, remote, or the number of a remote node
  std::string dimms{};      // one, interleaved; empty where the platform cannot choose
  Bytes size = 0;           // size of one access or message
  std::uint32_t threads = 1;
  std::uint32_t queue_depth = 0;
  std::uint32_t queue_pairs = 0;
  std::uint32_t regions = 0;                  // number of registered regions
  Bytes region_size = 0;                      // size of the memory that is accessed
  std::optional<std::uint32_t> read_share{};  // percent of the accesses
  std::string unit{};                         // ns, GB/s, Mop/s, or ratio
};

// The setting as shown in the progress line: "bandwidth-over-threads pm load sequential 256 B, 2
// threads".
std::string label(const Setting& setting);

// The amount of work that a probe does. Times are in the platform's time: virtual on `sim`, real
// elsewhere.
struct Effort {
  std::uint32_t repetitions = 5;
  std::uint32_t loads = 1'000'000;  // loads of a chain, per repetition
  // The duration of a bandwidth measurement, per repetition.
  Picoseconds interval = std::chrono::seconds(1) / 10;
  Bytes working_set = 256 * MiB;  // far beyond the caches
  // The simulation runs the threads of a node's cores one after the other, so a thread that ran far
  // ahead would take bandwidth that belongs to another one. A streaming thread therefore yields
  // after so many bytes.
  Bytes stretch = MiB;
  // A model that tracks single lines of memory must be accessed in the order of time, so there a
  // long access pauses after so many bytes. 0: accesses do not pause.
  Bytes piece = 0;
  bool one_dimm = false;              // the platform can place memory within one DIMM
  bool remote = false;                // the platform can place memory on the other NUMA node
  std::uint32_t cores = 1;            // usable cores, the largest number of threads of a probe
  std::uint32_t operations = 20'000;  // operations of an RDMA probe, per repetition
  Bytes message_bytes = 256 * MiB;    // bytes in large messages of an RDMA probe, per repetition
  bool quick = false;                 // varies parameters in fewer steps

  // The usual effort for a platform in modelled or in real time; `cores` is that of the node that
  // is probed.
  static Effort of(bool modelled, std::uint32_t cores, bool quick);
  // The usual effort on the model of a testbed.
  static Effort of(const sim::Profile& profile, bool quick);
};

// A thread's share of a repetition: an amount, such as operations or bytes, and the interval in
// which it was done. The share of several threads together is the sum of their amounts, from the
// time when the first of them began to the time when the last one ended. Rates are computed from
// that and never added up: threads that share a core take turns, so each one's own rate would be
// that of the whole core.
struct Share {
  Time begin = Time::max();
  Time end = Time::min();
  double amount = 0;

  void add(const Share& other);
  // The amount per nanosecond; 0 if there was none.
  double per_nanosecond() const;
};

// A collective operation: brings the words of each process to the one that measures. Returns the
// words of all processes there, in a fixed order, and nothing elsewhere. All processes must call it
// equally often.
using Gather =
    std::function<std::vector<std::vector<std::uint64_t>>(const std::vector<std::uint64_t>&)>;
// The Gather of a single process.
std::vector<std::vector<std::uint64_t>> alone(const std::vector<std::uint64_t>& words);

// Combines the shares of all processes in the one that measures; returns nothing elsewhere.
// `shares` are those of this process, one per repetition. Times of different clocks
// (measure::clock_of_this_host) cannot be compared; the processes of each clock are then assumed to
// have begun together, as they leave a barrier together.
std::vector<Share> gather_shares(std::span<const Share> shares, std::uint64_t clock,
                                 const Gather& gather);

// Memory that a probe needs: DRAM if its page size is chosen, else persistent memory.
struct Room {
  Bytes size = 0;
  pmem::Pages pages = pmem::Pages::any;

  pmem::Medium medium() const {
    return pages == pmem::Pages::any ? pmem::Medium::pm : pmem::Medium::dram;
  }
};

struct Probe {
  Setting setting;
  NodeId nodes = 1;
  // The memory for which node 0 must have room. It is allocated on trial first, so that a probe
  // that does not fit is skipped.
  Room room{};
  // `compared` if the probe counts what the media write.
  pmem::WriteMeter::Level accounting = pmem::WriteMeter::Level::issued;
  // Runs the probe; called on a fresh platform by each of its processes. Returns one value per
  // repetition, in the setting's unit, in the process that measures, and none elsewhere. If several
  // processes issue operations, the one that measures is the one to which Gather brings their
  // shares.
  std::function<std::vector<double>(Platform&, const Gather&)> measure;
};

// A probe that cannot run on this machine or platform, and the reason in one line.
struct Unanswered {
  std::string probe;
  std::string reason;
};

struct ProbeSet {
  std::vector<Probe> probes;
  std::vector<Unanswered> unanswered;
};

// Throws UsageError or PlatformError if there is no such memory.
std::unique_ptr<pmem::Region> create(Node& node, std::string_view name, Room room);

struct Reading {
  Setting setting;
  double median = 0;
  double low = 0;  // the lowest of the repetitions
  double high = 0;
  std::size_t repetitions = 0;
};
// `values` is not empty.
Reading reading_of(const Setting& setting, std::vector<double> values);

// For each kind of access, medium and place: the highest reading of bandwidth-over-threads, as a
// reading of the probe `peak-bandwidth`.
std::vector<Reading> peaks_of(const std::vector<Reading>& readings);

// The readings as tidy CSV, one row each.
std::string to_csv(const std::vector<Reading>& readings, std::string_view platform, bool modelled,
                   std::string_view profile);

}  // namespace perdura::bench
