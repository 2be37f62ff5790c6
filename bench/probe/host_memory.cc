#include "bench/probe/host_memory.h"

#include <fmt/format.h>
#include <numa.h>
#include <sched.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <system_error>

#include "bench/probe/access.h"
#include "platform/error.h"
#include "platform/numa.h"
#include "platform/shm_node.h"

namespace perdura::bench {
namespace {

using Values = std::vector<double>;

// Anonymous memory whose page size and NUMA node are chosen before it is touched.
class Memory {
 public:
  Memory(Bytes size, bool huge) : size_(size) {
    constexpr Bytes kHuge = 2 * MiB;
    mapped_ = size + kHuge;  // so that it can begin at a huge page
    base_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) {
      throw PlatformError(fmt::format("cannot map {} bytes for a probe of memory: {}; free some",
                                      mapped_, std::generic_category().message(errno)));
    }
    data_ = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(base_), kHuge));
    madvise(data_, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    std::memset(data_, 0, size);
  }
  ~Memory() { munmap(base_, mapped_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::unique_ptr<pmem::Region> region() {
    return std::make_unique<pmem::Region>("probe", pmem::Medium::dram, data_, size_, nullptr,
                                          nullptr);
  }
  // How much of it is in huge pages, by /proc/self/smaps.
  Bytes huge_bytes() const {
    std::ifstream maps("/proc/self/smaps");
    bool here = false;
    for (std::string line; std::getline(maps, line);) {
      unsigned long begin = 0;
      unsigned long end = 0;
      if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
        const auto first = reinterpret_cast<unsigned long>(data_);
        here = begin <= first && first < end;
      }
      unsigned long kib = 0;
      if (here && std::sscanf(line.c_str(), "AnonHugePages: %lu kB", &kib) == 1) return kib * KiB;
    }
    return 0;
  }

 private:
  Bytes size_;
  Bytes mapped_ = 0;
  void* base_ = nullptr;
  std::byte* data_ = nullptr;
};

Task<> time_chase(Thread& thread, const pmem::Region* region, Effort effort,
                  std::optional<unsigned> core, Values* values) {
  if (core) pin_this_thread({*core});
  Bytes at = 0;
  for (std::uint32_t i = 0; i < effort.repetitions; ++i) {
    const Time begin = thread.executor.now();
    at = follow_cold_chain(*region, at, effort.loads);
    values->push_back(static_cast<double>((thread.executor.now() - begin).count()) * 1e-3 /
                      effort.loads);
    co_await yield();
  }
}

Values chase(Platform& platform, Memory* memory, const Effort& effort,
             std::optional<unsigned> core) {
  Values values;
  std::unique_ptr<pmem::Region> region;
  if (memory != nullptr) {
    region = memory->region();
    write_chain(*region, region->size(), Pattern::random);
    platform.start(0, 1, CompletionMode::polling, [&](Thread& thread) {
      return time_chase(thread, region.get(), effort, core, &values);
    });
  }
  platform.run();
  return values;
}

Values page_latency(Platform& platform, bool huge, const Effort& effort) {
  if (platform.local_node(0) == nullptr) return chase(platform, nullptr, effort, std::nullopt);
  Memory memory(effort.working_set, huge);
  return chase(platform, &memory, effort, std::nullopt);
}

Values numa_latency(Platform& platform, unsigned node, unsigned core, const Effort& effort) {
  if (platform.local_node(0) == nullptr) return chase(platform, nullptr, effort, std::nullopt);
  const MemoryBinding binding(node);
  Memory memory(effort.working_set, false);
  return chase(platform, &memory, effort, core);
}

Setting setting(const char* probe) {
  return {.probe = probe,
          .medium = "dram",
          .operation = "load",
          .pattern = "random",
          .cache = "cold",
          .size = kWord,
          .unit = "ns"};
}

}  // namespace

void add_host_probes(const Effort& effort, ProbeSet& set) {
  const auto add_pages = [&](bool huge) {
    Setting pages = setting("pages");
    pages.pages = huge ? "huge" : "small";
    set.probes.push_back({.setting = pages, .measure = [=](Platform& platform) {
                            return page_latency(platform, huge, effort);
                          }});
  };
  add_pages(false);
  constexpr Bytes kTried = 8 * MiB;
  if (Memory(kTried, true).huge_bytes() == kTried) {
    add_pages(true);
  } else {
    set.unanswered.push_back({"pages",
                              "no huge pages: the kernel gives none on request; write 'madvise' to "
                              "/sys/kernel/mm/transparent_hugepage/enabled (needs root)"});
  }

  const int last_node = numa_available() < 0 ? 0 : numa_max_node();
  const int core = sched_getcpu();
  if (last_node == 0 || core < 0) {
    set.unanswered.push_back({"numa", "this machine has one NUMA node: there is no remote memory"});
    return;
  }
  for (int node = 0; node <= last_node; ++node) {
    if (numa_bitmask_isbitset(numa_all_nodes_ptr, static_cast<unsigned>(node)) == 0) continue;
    Setting numa = setting("numa");
    numa.numa = node == numa_node_of_cpu(core) ? "local" : std::to_string(node);
    set.probes.push_back({.setting = numa, .measure = [=](Platform& platform) {
                            return numa_latency(platform, static_cast<unsigned>(node),
                                                static_cast<unsigned>(core), effort);
                          }});
  }
}

}  // namespace perdura::bench
