// The set of memory probes.
#include <algorithm>
#include <optional>

#include "bench/probe/host_memory.h"
#include "bench/probe/memory_probes.h"

namespace perdura::bench {
namespace {

using pmem::Medium;
using Values = std::vector<double>;

constexpr CacheState kStates[] = {CacheState::hot, CacheState::flushed, CacheState::cold};
const char* to_string(CacheState state) {
  switch (state) {
    case CacheState::hot:
      return "hot";
    case CacheState::flushed:
      return "flushed";
    case CacheState::cold:
      return "cold";
  }
  return "cold";
}

// Persistence is not probed on DRAM, which has no persistence domain that a flush could reach. On
// the model, plain stores to DRAM are not probed either, since they end in a cache of unlimited
// size.
std::vector<Access> accesses_of(Medium medium, bool modelled) {
  if (medium == Medium::pm) return {Access::load, Access::ntstore, Access::store_clwb};
  if (modelled) return {Access::load, Access::ntstore};
  return {Access::load, Access::ntstore, Access::store};
}

class SetOfMemory {
 public:
  SetOfMemory(const Effort& effort, Medium medium, bool modelled, MemoryPlace place = {})
      : effort_(effort), medium_(medium), modelled_(modelled), place_(place) {
    if (medium == Medium::dram) {
      effort_.piece = 0;
    } else if (effort.piece != 0) {
      // A longer interval, so that what the DIMMs' buffers absorb at first is a small part of the
      // total.
      effort_.interval *= 5;
    }
  }

  void latencies() {
    for (const Pattern pattern : {Pattern::sequential, Pattern::random}) {
      for (const CacheState state : kStates) {
        add({.probe = "idle-latency",
             .operation = "load",
             .pattern = std::string(to_string(pattern)),
             .cache = to_string(state),
             .size = kWord,
             .unit = "ns"},
            [=, effort = effort_, medium = medium_, place = place_](Platform& platform) {
              return load_latency(platform, medium, pattern, state, effort, place);
            });
      }
    }
    if (medium_ == Medium::dram) return;
    for (const Access access : {Access::store_clwb, Access::ntstore}) {
      for (const CacheState state : kStates) {
        add({.probe = "idle-latency",
             .operation = std::string(to_string(access)),
             .pattern = "random",
             .cache = to_string(state),
             .size = kWord,
             .unit = "ns"},
            [=, effort = effort_, medium = medium_, place = place_](Platform& platform) {
              return persist_latency(platform, medium, access, state, effort, place);
            });
      }
    }
  }

  // The probes of Figure 2.3.
  void over_threads() {
    for (const Access access : accesses_of(medium_, modelled_)) {
      for (const std::uint32_t threads : thread_counts()) {
        add_bandwidth("bandwidth-over-threads", {.access = access, .threads = threads});
      }
    }
  }

  // The probes of Figure 2.4.
  void over_size() {
    for (const Access access : accesses_of(medium_, modelled_)) {
      for (const Pattern pattern : {Pattern::sequential, Pattern::random}) {
        for (Bytes size = 64; size <= 2 * MiB; size *= effort_.quick ? 8 : 2) {
          add_bandwidth(
              "bandwidth-over-size",
              {.access = access, .pattern = pattern, .size = size, .threads = several(access)});
        }
      }
    }
  }

  // The probes of Figure 2.5.
  void mixes() {
    for (const std::uint32_t threads : {1U, several(Access::ntstore)}) {
      for (std::uint32_t share = 0; share <= 100; share += effort_.quick ? 50 : 25) {
        add_bandwidth("mix", {.access = Access::ntstore, .threads = threads, .load_share = share});
        if (effort_.cores == 1) return;
      }
    }
  }

  void under_load() {
    for (const Access access : {Access::load, Access::ntstore}) {
      for (const std::uint32_t threads : thread_counts()) {
        if (threads == effort_.cores) continue;  // one core is left to the pointer chase
        const Stream others{.access = access, .threads = threads, .load_share = 0};
        add({.probe = "loaded-latency",
             .operation = std::string(to_string(access)),
             .pattern = "random",
             .size = kWord,
             .threads = threads,
             .unit = "ns"},
            [=, effort = effort_, medium = medium_](Platform& platform) {
              return loaded_latency(platform, medium, others, effort);
            });
      }
    }
  }

  void amplification() {
    for (const Access access : {Access::ntstore, Access::store_clwb}) {
      for (const Pattern pattern : {Pattern::sequential, Pattern::random}) {
        for (Bytes size = 64; size <= 4 * KiB; size *= 2) {
          const Stream stream{.access = access, .pattern = pattern, .size = size};
          add({.probe = "write-amplification",
               .operation = std::string(to_string(access)),
               .pattern = std::string(to_string(pattern)),
               .size = size,
               .unit = "ratio"},
              [=, effort = effort_](Platform& platform) {
                return write_amplification(platform, stream, effort);
              });
          probes_.back().accounting = pmem::WriteMeter::Level::compared;
        }
      }
    }
  }

  std::vector<Probe> take() { return std::move(probes_); }

 private:
  void add(Setting setting, std::function<Values(Platform&)> measure) {
    setting.medium = medium_ == Medium::dram ? "dram" : "pm";
    if (effort_.remote) setting.numa = place_.remote ? "remote" : "local";
    if (effort_.one_dimm && medium_ == Medium::pm) {
      setting.dimms = place_.one_dimm ? "one" : "interleaved";
    }
    probes_.push_back(
        {.setting = std::move(setting),
         .measure = [measure = std::move(measure)](Platform& platform, const Gather&) {
           return measure(platform);
         }});
  }
  void add_bandwidth(const char* probe, Stream stream) {
    stream.place = place_;
    if (stream.access == Access::load) stream.load_share = 100;
    const bool mixed = std::string_view(probe) == "mix";
    if (!mixed && stream.access != Access::load) stream.load_share = 0;
    add({.probe = probe,
         .operation = std::string(to_string(stream.access)),
         .pattern = std::string(to_string(stream.pattern)),
         .size = stream.size,
         .threads = stream.threads,
         .read_share = mixed ? std::optional(stream.load_share) : std::nullopt,
         .unit = "GB/s"},
        [=, effort = effort_, medium = medium_](Platform& platform) {
          return bandwidth(platform, medium, stream, effort);
        });
  }
  // 1, 2, 4, ... and the number of all cores.
  std::vector<std::uint32_t> thread_counts() const {
    std::vector<std::uint32_t> counts;
    for (std::uint32_t n = 1; n < effort_.cores; n *= effort_.quick ? 4 : 2) counts.push_back(n);
    counts.push_back(effort_.cores);
    return counts;
  }
  // Several DIMMs need more threads to reach their full bandwidth: 16 are best for reading (section
  // 2.2.4).
  std::uint32_t several(Access access) const {
    const bool many = access == Access::load && effort_.one_dimm && !place_.one_dimm;
    return std::min(effort_.cores, many ? 16U : 4U);
  }

  Effort effort_;
  Medium medium_;
  bool modelled_;
  MemoryPlace place_;
  std::vector<Probe> probes_;
};

}  // namespace

ProbeSet memory_probes(const Effort& effort, const HostMemory* host) {
  ProbeSet set;
  for (const Medium medium : {Medium::dram, Medium::pm}) {
    SetOfMemory probes(effort, medium, host == nullptr);
    probes.latencies();
    probes.over_threads();
    probes.over_size();
    probes.mixes();
    probes.under_load();
    if (medium == Medium::pm) probes.amplification();
    for (Probe& probe : probes.take()) set.probes.push_back(std::move(probe));
  }
  const auto add_place = [&](MemoryPlace place, bool sizes) {
    SetOfMemory probes(effort, Medium::pm, host == nullptr, place);
    probes.latencies();
    probes.over_threads();
    if (sizes) probes.over_size();
    for (Probe& probe : probes.take()) set.probes.push_back(std::move(probe));
  };
  if (effort.one_dimm) add_place({.one_dimm = true}, true);
  if (effort.remote) add_place({.remote = true}, false);
  if (effort.cores == 1) {
    set.unanswered.push_back(
        {"loaded-latency", "one core only: a second thread would take time from the first"});
  }
  if (host == nullptr) {
    set.unanswered.push_back({"pages", "the model has no page sizes"});
    if (!effort.remote) {
      set.unanswered.push_back({"numa", "the profile's machines have one NUMA node: no [numa]"});
    }
    if (!effort.one_dimm) {
      set.unanswered.push_back({"one DIMM", "the profile's memory is one pipe: no dimms in [pm]"});
    }
  } else {
    set.unanswered.push_back(
        {"one DIMM", "where a page lies is up to the machine's interleaving; set it in the BIOS"});
    add_host_probes(effort, *host, set);
  }
  return set;
}

}  // namespace perdura::bench
