// The server of a hash index, which executes requests. All member functions may be called by
// several workers (bucket_hash/worker.h) on their own threads at the same time; the locks of the
// index serialize conflicting changes. `Design` is the index (bucket_hash/system.h).
#pragma once

#include <fmt/core.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "platform/base/error.h"
#include "services/kv/kv.h"
#include "systems/bucket_hash/locks.h"
#include "systems/bucket_hash/messages.h"
#include "systems/bucket_hash/pool.h"
#include "systems/flushing.h"

namespace perdura::systems::bucket_hash {

template <class Design>
class Server {
  using Index = typename Design::Index;
  using Outcome = typename Index::Outcome;
  using Parameters = typename Design::Parameters;

 public:
  // Creates the pool, or opens it and recovers the index. Throws UsageError if the pool is damaged
  // or has another shape.
  Server(Node& node, std::string name, const kv::KvConfig& config, const Parameters& parameters)
      : name_(std::move(name)),
        sessions_(config.sessions),
        lanes_(parameters.queue_depth),
        workers_(config.workers),
        locks_(config.workers),
        pool_(open_pool(node, name_, Design::kName,
                        {config.key_size, config.value_size, config.records,
                         Design::shape_of(parameters.geometry)},
                        parameters.geometry.size())),
        index_(*pool_.region, kIndexOffset, parameters.geometry, flushing_of(config)) {
    if (!pool_.created) index_.recover();
  }

  // Both execute an operation on behalf of a worker, and may suspend; the worker's other requests
  // wait meanwhile. The only errors are `out_of_space` and `not_found`. A put resizes the table if
  // it must: all requests then wait until the resize has ended, while clients' READs proceed.
  Task<kv::Result<void>> put(std::uint32_t worker, Slot item) {
    const auto hash = Design::hash_of(item);
    for (;;) {
      auto inside = co_await locks_.enter(worker);
      const Outcome outcome = Design::put(index_, locks_, worker, item, hash);
      if (outcome == Outcome::done) co_return kv::Result<void>{};
      if (outcome == Outcome::out_of_space) co_return tl::unexpected(kv::Error::out_of_space);
      const auto lock = locks_.upgrade(std::move(inside));
      if (!lock) continue;
      index_.begin_resize();
      note_resize_step();
      while (index_.resize_step()) {
        note_resize_step();
        co_await yield();
      }
    }
  }
  Task<kv::Result<void>> erase(std::uint32_t worker, Slot key) {
    const auto hash = Design::hash_of(key);
    const auto inside = co_await locks_.enter(worker);
    co_return Design::erase(index_, locks_, worker, key, hash);
  }

  // The plan for clients that connect. During a resize it names the old table; clients follow its
  // seals to the next one.
  Plan plan() const { return Design::plan_of(index_.geometry(), Design::table_in_use(index_)); }
  kv::KvSpace space() const {
    kv::KvSpace space;
    space.capacity = index_.slots() * kSlotSize;
    space.free = space.capacity - index_.items() * kSlotSize;
    space.resizing = index_.resizing();
    space.steps = resize_steps_.load(std::memory_order_relaxed);
    return space;
  }
  std::vector<std::uint64_t> events() const { return index_.events(); }
  // After recovery: describes a contradiction in the index, as a phrase; "" if there is none. Each
  // item must exist once, where a search finds it.
  std::string audit() const {
    std::string problem;
    std::uint64_t items = 0;
    std::set<std::string> keys;
    index_.for_each([&](const Slot& slot) {
      ++items;
      const std::string key(reinterpret_cast<const char*>(slot.key_bytes().data()),
                            slot.key_bytes().size());
      if (!keys.insert(key).second) problem = "a key is there twice";
      if (!index_.find(slot)) problem = "there is an item that no search finds";
    });
    if (problem.empty() && items != index_.items()) {
      problem = fmt::format("there are {} items, but {} are counted", items, index_.items());
    }
    return problem;
  }
  // Registers the index for the READs of clients.
  fabric::MemoryRegion register_index(fabric::Endpoint& endpoint) const {
    return endpoint.register_memory(*pool_.region, kIndexOffset, index_.geometry().size(),
                                    fabric::Access::remote_read);
  }

  const std::string& name() const { return name_; }
  std::uint32_t sessions() const { return sessions_; }
  // Maximum number of requests of a session in flight.
  std::uint32_t lanes() const { return lanes_; }
  // Assigns a number to one more worker. Throws UsageError if all configured workers have started.
  std::uint32_t add_worker() {
    const std::uint32_t number = started_.fetch_add(1, std::memory_order_relaxed);
    if (number >= workers_) {
      throw UsageError(
          fmt::format("pool '{}' has {} workers already; configure more", name_, workers_));
    }
    return number;
  }

 private:
  void note_resize_step() { resize_steps_.fetch_add(1, std::memory_order_relaxed); }

  std::string name_;
  std::uint32_t sessions_;
  std::uint32_t lanes_;
  std::uint32_t workers_;
  std::atomic<std::uint32_t> started_{0};  // number of workers
  std::atomic<std::uint64_t> resize_steps_{0};
  LockTable locks_;
  Pool pool_;
  Index index_;
};

}  // namespace perdura::systems::bucket_hash
