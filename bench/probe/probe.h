// Probes: what a machine's memory, or a cluster's RDMA, does by itself, with no system on top.
//
// A probe is written once over platform/platform.h and runs on real memory and devices as on `sim`.
// It yields one number for each repetition; what it varies is in its Setting, which becomes the row
// of the result. What is varied follows chapter 2 of "Building Distributed Systems with
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

// What was measured; a column of probes.csv each. Empty, or 0, where a probe does not have it.
struct Setting {
  std::string probe{};      // idle-latency, bandwidth-over-threads, ...
  std::string medium{};     // dram, pm: of the memory that is probed
  std::string operation{};  // load, store+clwb, ntstore; read, write, ...
  std::string pattern{};    // sequential, random
  std::string cache{};      // hot, flushed, cold: of the lines, before they are used
  std::string pages{};      // small, huge
  std::string numa{};       // local, remote, or the number of a remote node
  std::string dimms{};      // one, interleaved; empty where the platform cannot choose
  Bytes size = 0;           // of one access or message
  std::uint32_t threads = 1;
  std::uint32_t queue_depth = 0;
  std::uint32_t queue_pairs = 0;
  std::uint32_t regions = 0;                  // registered
  Bytes region_size = 0;                      // of the memory that is accessed
  std::optional<std::uint32_t> read_share{};  // percent of the accesses
  std::string unit{};                         // ns, GB/s, Mop/s, or ratio
};

// "bandwidth-over-threads pm load sequential 256 B, 2 threads": for progress.
std::string label(const Setting& setting);

// How much work a probe is worth. Times are the platform's.
struct Effort {
  std::uint32_t repetitions = 5;
  std::uint32_t loads = 1'000'000;                      // of a chase, of a repetition
  Picoseconds interval = std::chrono::seconds(1) / 10;  // of a bandwidth, of a repetition
  Bytes working_set = 256 * MiB;                        // far beyond the caches
  // Threads of different cores of a simulated node run one after the other: a thread that goes far
  // ahead takes bandwidth that another one should have had. So it stops after so many bytes.
  Bytes stretch = MiB;
  // Where a model knows the lines of its memory, it must be asked for them in the order of time: an
  // access pauses after so many bytes. 0: it does not.
  Bytes piece = 0;
  bool one_dimm = false;              // the platform can keep memory within a DIMM
  bool remote = false;                // and place it on the other NUMA node
  std::uint32_t cores = 1;            // that may be used: threads of the probes go up to it
  std::uint32_t operations = 20'000;  // of an RDMA probe, of a repetition
  Bytes message_bytes = 256 * MiB;    // of one, where its messages are large
  bool quick = false;                 // fewer steps of what is varied

  // For a platform; `cores` of the node that is probed.
  static Effort of(bool modelled, std::uint32_t cores, bool quick);
  // On the model of a testbed.
  static Effort of(const sim::Profile& profile, bool quick);
};

// What a thread did of a repetition: so much from one time to another, such as operations or bytes.
// Several threads together did the sum of it, from when the first of them began to when the last of
// them ended. Rates are taken of that and never added up: threads that share a core take turns, and
// each one's own rate is that of the whole core.
struct Share {
  Time begin = Time::max();
  Time end = Time::min();
  double amount = 0;

  void add(const Share& other);
  // Amount a nanosecond; 0 if there was nothing.
  double per_nanosecond() const;
};

// Takes what each process has to say to the one that measures: every process's words there, in one
// order; elsewhere nothing. Every process calls it as often.
using Gather =
    std::function<std::vector<std::vector<std::uint64_t>>(const std::vector<std::uint64_t>&)>;
// Of a process that is alone.
std::vector<std::vector<std::uint64_t>> alone(const std::vector<std::uint64_t>& words);

// The work of all processes together, at the one that measures; elsewhere nothing. `shares`: of
// this process, one for each repetition. Where clocks (measure::clock_of_this_host) differ, times
// cannot be compared: the processes of each clock are then taken to have begun together, as
// barriers let them.
std::vector<Share> gather_shares(std::span<const Share> shares, std::uint64_t clock,
                                 const Gather& gather);

// Of DRAM, if its pages are chosen, else of persistent memory.
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
  // What node 0 must have room for: tried before, so that a probe that does not fit is left out.
  Room room{};
  // Compared where the probe counts what the media write.
  pmem::WriteMeter::Level accounting = pmem::WriteMeter::Level::issued;
  // On a fresh platform, by every process of it. One value for each repetition, in the setting's
  // unit, in the process that measures; elsewhere none. Where several processes issue operations,
  // that is the one that Gather brings them to.
  std::function<std::vector<double>(Platform&, const Gather&)> measure;
};

// What this machine or platform cannot answer, and why: one line.
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
  double low = 0;  // of the repetitions
  double high = 0;
  std::size_t repetitions = 0;
};
// `values` is not empty.
Reading reading_of(const Setting& setting, std::vector<double> values);

// Of each kind of access, medium and place, the reading of bandwidth-over-threads that is highest,
// as the probe `peak-bandwidth`.
std::vector<Reading> peaks_of(const std::vector<Reading>& readings);

// Tidy CSV, one row a reading.
std::string to_csv(const std::vector<Reading>& readings, std::string_view platform, bool modelled,
                   std::string_view profile);

}  // namespace perdura::bench
