#include "bench/fs/replication.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>

#include "platform/base/error.h"
#include "platform/pmem/view_of_region.h"

namespace perdura::bench {

using services::MappedMemory;
using services::MemoryRange;
using services::MemoryRole;

// Logs of replicated memory are finite (SyncError::too_large), and a mount may flush more than
// fits: that becomes several sync points. An operation of a file system needs less.
constexpr Bytes kPage = 4 * KiB;
constexpr Bytes kMostPages = 2048;

// A thread's access to the region.
struct Replication::Mapping {
  std::atomic<Executor*> executor{nullptr};  // the thread's executor
  std::unique_ptr<MappedMemory> memory;
  std::vector<MemoryRange> flushed;  // ranges flushed since the last sync point
  std::vector<MemoryRange> syncing;
  std::unique_ptr<FileSystemNode> node;
  std::optional<Thread> thread;  // the thread as the file system sees it
};

// The replicated region. Records the ranges that the running thread flushes.
class Replication::NotingModel final : public pmem::ViewOfRegion {
 public:
  NotingModel(pmem::Region& region, std::span<const std::unique_ptr<Mapping>> mappings)
      : ViewOfRegion(region), mappings_(mappings) {}

  void flush(Bytes offset, Bytes length) override {
    if (length == 0) return;
    const Bytes begin = offset / kCacheLine * kCacheLine;
    std::vector<MemoryRange>& ranges = own().flushed;
    const Bytes end = std::min(round_up(offset + length, kCacheLine), region().size());
    ranges.push_back({begin, end - begin});
  }
  void drain() override {}

 private:
  void flushed(Bytes offset, Bytes length) override { flush(offset, length); }
  Mapping& own() const {
    for (const auto& mapping : mappings_) {
      if (mapping->executor.load(std::memory_order_relaxed) == &Executor::current()) {
        return *mapping;
      }
    }
    throw std::logic_error("a thread without a mapping flushes a replicated region");
  }

  std::span<const std::unique_ptr<Mapping>> mappings_;
};

// The real node, except that the file system's region is the replicated one.
class Replication::FileSystemNode final : public Node {
 public:
  FileSystemNode(Node& node, std::shared_ptr<NotingModel> model, pmem::Region& region)
      : node_(node), model_(std::move(model)), region_(region) {}

  NodeId id() const override { return node_.id(); }
  NodeId machine() const override { return node_.machine(); }
  std::unique_ptr<pmem::Region> create_region(std::string_view name, Bytes size,
                                              pmem::Medium medium) override {
    if (medium != pmem::Medium::pm) return node_.create_region(name, size, medium);
    if (size > region_.size()) {
      throw UsageError(
          fmt::format("region '{}' of {} bytes is larger than the replicated memory", name, size));
    }
    return view(name, size);
  }
  std::unique_ptr<pmem::Region> open_region(std::string_view name) override {
    return view(name, region_.size());
  }
  void remove_region(std::string_view) override {}
  std::shared_ptr<void> own_region(std::string_view, std::uint32_t part) override {
    return node_.own_region(region_.name(), part);
  }
  std::unique_ptr<BackgroundThread> start_background_thread(std::optional<fabric::Port> port,
                                                            CompletionMode mode) override {
    return node_.start_background_thread(port, mode);
  }
  Picoseconds cpu_time() const override { return node_.cpu_time(); }
  pmem::Writes pm_writes() const override { return node_.pm_writes(); }
  fabric::TrafficByNode traffic() const override { return node_.traffic(); }
  pmem::MemoryUse peak_memory() const override { return node_.peak_memory(); }

 private:
  std::unique_ptr<pmem::Region> view(std::string_view name, Bytes size) {
    return std::make_unique<pmem::Region>(std::string(name), pmem::Medium::pm, region_.data(), size,
                                          model_, nullptr);
  }

  Node& node_;
  std::shared_ptr<NotingModel> model_;
  pmem::Region& region_;
};

Replication::Replication(const services::MemorySystem& system, services::MemoryConfig config,
                         std::uint32_t threads)
    : system_(system), config_(std::move(config)), replicas_(config_.nodes.size()) {
  for (std::uint32_t i = 0; i < threads; ++i) mappings_.push_back(std::make_unique<Mapping>());
}

Replication::~Replication() = default;

std::size_t Replication::index_of(NodeId node) const {
  const auto found = std::find(config_.nodes.begin(), config_.nodes.end(), node);
  return static_cast<std::size_t>(found - config_.nodes.begin());
}

void Replication::open(Thread& thread) {
  constexpr std::array kRoles{MemoryRole::primary, MemoryRole::mirror, MemoryRole::backup};
  const std::size_t index = index_of(thread.node.id());
  replicas_[index] =
      system_.open(thread, "fs", config_, kRoles[std::min(index, kRoles.size() - 1)]);
}

Task<> Replication::serve(Thread& thread) {
  return replicas_[index_of(thread.node.id())]->serve(thread);
}

Task<Thread*> Replication::map(Thread& thread, std::uint32_t index) {
  Mapping& mapping = *mappings_[index];
  mapping.memory = co_await replicas_.front()->map(thread);
  mapping.executor = &thread.executor;
  pmem::Region& region = mapping.memory->region();
  mapping.node = std::make_unique<FileSystemNode>(
      thread.node, std::make_shared<NotingModel>(region, mappings_), region);
  mapping.thread.emplace(Thread{*mapping.node, thread.executor, thread.endpoint});
  co_return &*mapping.thread;
}

Task<fs::Result<void>> Replication::sync(std::uint32_t index) {
  Mapping& mapping = *mappings_[index];
  std::vector<MemoryRange>& ranges = mapping.syncing;
  ranges.swap(mapping.flushed);
  mapping.flushed.clear();
  if (ranges.empty()) co_return fs::Result<void>();
  // Lines are flushed one by one, some of them several times; merge them, since each range would be
  // a request.
  std::sort(ranges.begin(), ranges.end(),
            [](const MemoryRange& a, const MemoryRange& b) { return a.offset < b.offset; });
  std::size_t last = 0;
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    const Bytes end = ranges[last].offset + ranges[last].length;
    if (ranges[i].offset > end) {
      ranges[++last] = ranges[i];
    } else {
      ranges[last].length =
          std::max(end, ranges[i].offset + ranges[i].length) - ranges[last].offset;
    }
  }
  ranges.resize(last + 1);
  const std::span<const MemoryRange> all(ranges);
  for (std::size_t first = 0; first < all.size();) {
    std::size_t count = 0;
    for (Bytes pages = 0; first + count < all.size() && pages < kMostPages; ++count) {
      pages += all[first + count].length / kPage + 1;
    }
    const auto synced = co_await mapping.memory->sync(all.subspan(first, count));
    if (!synced) co_return tl::unexpected(std::errc::io_error);
    first += count;
  }
  co_return fs::Result<void>();
}

Task<> Replication::settle(std::uint32_t index) { return mappings_[index]->memory->settle(); }

void Replication::unmap(std::uint32_t index) { mappings_[index]->memory.reset(); }

bool Replication::has_all(NodeId node) const {
  return replicas_[index_of(node)]->position() == replicas_.front()->position();
}

}  // namespace perdura::bench
