#include "bench/probe/host_memory.h"

#include <numa.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "bench/probe/access.h"
#include "harness/config/site.h"
#include "platform/base/error.h"
#include "platform/host/host_node.h"
#include "platform/host/numa.h"
#include "platform/pmem/mapped/anonymous.h"

namespace perdura::bench {
namespace {

using Values = std::vector<double>;

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

// Measures in memory whose pages are populated before.
Values chase(Platform& platform, pmem::Pages pages, const Effort& effort,
             std::optional<unsigned> core) {
  Values values;
  std::unique_ptr<pmem::Region> region;
  if (platform.local_node(0) != nullptr) {
    auto memory = pmem::mapped::map_anonymous("a probe of memory", effort.working_set, pages);
    std::byte* const base = memory->data();
    std::memset(base, 0, effort.working_set);
    region = std::make_unique<pmem::Region>("probe", pmem::Medium::dram, base, effort.working_set,
                                            nullptr, std::move(memory));
    write_chain(*region, region->size(), Pattern::random);
    platform.start(0, 1, CompletionMode::polling, [&](Thread& thread) {
      return time_chase(thread, region.get(), effort, core, &values);
    });
  }
  platform.run();
  return values;
}

Task<> time_populating(Thread& thread, pmem::Pages pages, Effort effort, Values* values) {
  const Bytes page = pages == pmem::Pages::huge ? 2 * MiB : 4 * KiB;
  for (std::uint32_t i = 0; i < effort.repetitions; ++i) {
    const Time begin = thread.executor.now();
    const auto memory = pmem::mapped::map_anonymous("a probe of pages", effort.working_set, pages);
    volatile std::byte* const base = memory->data();
    for (Bytes at = 0; at < effort.working_set; at += page) base[at] = std::byte{1};
    const double took = static_cast<double>((thread.executor.now() - begin).count()) * 1e-3;
    values->push_back(static_cast<double>(effort.working_set) / took);
    co_await yield();
  }
}

// Measures how fast the kernel makes pages, which it fills with zeros, until the first byte of each
// has been stored to. Mapping makes some of them.
Values populate(Platform& platform, pmem::Pages pages, const Effort& effort) {
  Values values;
  if (platform.local_node(0) != nullptr) {
    platform.start(0, 1, CompletionMode::polling,
                   [&](Thread& thread) { return time_populating(thread, pages, effort, &values); });
  }
  platform.run();
  return values;
}

Values numa_latency(Platform& platform, unsigned node, unsigned core, const Effort& effort) {
  const MemoryBinding binding(platform.local_node(0) != nullptr ? std::optional(node)
                                                                : std::nullopt);
  return chase(platform, pmem::Pages::small, effort, core);
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

HostMemory memory_of_this_host() {
  HostMemory host;
  host.cores = static_cast<std::uint32_t>(harness::usable_cores().size());
  if (const int core = sched_getcpu(); core >= 0) host.core = static_cast<std::uint32_t>(core);
  if (numa_available() >= 0) {
    host.own_node =
        static_cast<std::uint32_t>(std::max(numa_node_of_cpu(static_cast<int>(host.core)), 0));
    for (unsigned node = 0; node <= static_cast<unsigned>(numa_max_node()); ++node) {
      if (numa_bitmask_isbitset(numa_all_nodes_ptr, node) != 0) host.nodes.push_back(node);
    }
  }
  try {
    pmem::mapped::map_anonymous("a probe of pages", 8 * MiB, pmem::Pages::huge);
  } catch (const PlatformError& error) {
    host.no_huge_pages = error.what();
  }
  return host;
}

void add_host_probes(const Effort& effort, const HostMemory& host, ProbeSet& set) {
  const auto add_pages = [&](pmem::Pages pages) {
    Setting setting_of_pages = setting("pages");
    setting_of_pages.pages = to_string(pages);
    set.probes.push_back(
        {.setting = setting_of_pages, .measure = [=](Platform& platform, const Gather&) {
           return chase(platform, pages, effort, std::nullopt);
         }});
    Setting populating{.probe = "populate", .medium = "dram", .operation = "store"};
    populating.pages = to_string(pages);
    populating.unit = "GB/s";
    set.probes.push_back(
        {.setting = std::move(populating), .measure = [=](Platform& platform, const Gather&) {
           return populate(platform, pages, effort);
         }});
  };
  add_pages(pmem::Pages::small);
  if (host.no_huge_pages.empty()) {
    add_pages(pmem::Pages::huge);
  } else {
    set.unanswered.push_back({"pages", host.no_huge_pages});
  }

  if (host.nodes.size() < 2) {
    set.unanswered.push_back({"numa", "this machine has one NUMA node: there is no remote memory"});
    return;
  }
  for (const std::uint32_t node : host.nodes) {
    Setting numa = setting("numa");
    numa.numa = node == host.own_node ? "local" : std::to_string(node);
    set.probes.push_back(
        {.setting = numa, .measure = [=, core = host.core](Platform& platform, const Gather&) {
           return numa_latency(platform, node, core, effort);
         }});
  }
}

}  // namespace perdura::bench
