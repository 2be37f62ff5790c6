// Replicated memory: a region of persistent memory of one node, the primary, which applications map
// and change with loads and stores, and copies of it on other nodes. At a sync point an application
// says which ranges the copies are to get: all of them or none ("Mojim: A Reliable and
// Highly-Available Non-Volatile Memory System", section 3.1.1: msync takes one range, gmsync
// several).
//
//   const auto replica = system.open(thread, "accounts", config, MemoryRole::primary);
//   const auto memory = co_await replica->map(thread);
//   pmem::View<std::uint64_t> balance(memory->region());
//   balance[3] = balance[3] + 5;
//   const auto done = co_await memory->sync({{balance.offset_of(3), 8}});
//
// A copy holds, after a failure too, the outcome of some of the sync points, each of them
// whole; which ones is the system's promise. Stores that no sync point has named may or may not be
// on the primary after a failure, and are on no copy.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "methods/chooser.h"
#include "platform/platform.h"
#include "services/event.h"
#include "services/metric.h"
#include "services/service.h"

namespace perdura::services {

// Bytes of the region.
struct MemoryRange {
  Bytes offset = 0;
  Bytes length = 0;
};

enum class SyncError : std::uint8_t {
  outside,    // a range is not in the region
  too_large,  // the ranges do not fit into the log of a copy, so they cannot get there atomically
  replaced,   // another node is the primary now
};
std::string_view to_string(SyncError error);

class DirectReaders;  // services/memory/direct_readers.h

// The role of a node. Every system has a primary; which other roles it has is up to it
// (MemorySystem::copies).
enum class MemoryRole : std::uint8_t { primary, mirror, backup };
std::string_view to_string(MemoryRole role);

struct MemoryConfig {
  Bytes size = 64 * KiB;
  std::uint32_t threads = 1;  // application threads on the primary
  // The nodes: the primary, then the mirror and the backups, as far as the system has them.
  std::vector<NodeId> nodes{0, 1};
  // How the system's own threads on the primary wait.
  CompletionMode completion = CompletionMode::event;
  // A system's own parameters, `[systems.NAME]` of an experiment; unknown ones throw UsageError.
  GivenParameters parameters{};
  // The method that makes what a copy receives durable before it is acknowledged; must fit
  // MemorySystem::update. Absent: as in the paper, whatever that guarantees.
  std::optional<methods::Method> method{};
  // On a node that has a copy: those who read its data area through mappings of it, if there may be
  // any. Must outlive the replica.
  DirectReaders* readers = nullptr;
};

// An application thread's mapping of the region. Belongs to that thread.
class MappedMemory {
 public:
  virtual ~MappedMemory() = default;
  // The memory that the application loads from and stores to, through views (pmem/view.h).
  virtual pmem::Region& region() = 0;
  // A sync point. What the thread has stored to the ranges before, and what other threads may have
  // stored to them meanwhile, goes to the copies. When it returns, the ranges are as safe as the
  // system promises.
  virtual Task<tl::expected<void, SyncError>> sync(std::span<const MemoryRange> ranges) = 0;
  // The same for a single range, as msync(2).
  Task<tl::expected<void, SyncError>> sync(MemoryRange range) {
    co_return co_await sync(std::span<const MemoryRange>(&range, 1));
  }
  // Waits until every sync point of this thread has arrived wherever it is to, also those for which
  // sync() does not wait.
  virtual Task<> settle() = 0;
  // The values of MemorySystem::session_metrics since it was mapped.
  virtual std::vector<double> metrics() const { return {}; }
};

// A node's copy of the region; the primary's is the one that applications change. Shared by the
// node's threads.
class MemoryReplica {
 public:
  virtual ~MemoryReplica() = default;
  virtual MemoryRole role() const = 0;

  // On the primary: maps the region for an application's thread, which connects to the copies.
  // Throws PlatformError if it cannot.
  virtual Task<std::unique_ptr<MappedMemory>> map(Thread& thread) = 0;

  // On a copy: receives what is synced, on each of MemorySystem::workers threads, which listen at
  // the ports from 0 on. Does not return.
  virtual Task<> serve(Thread& thread) = 0;
  // Grows with the sync points: on the primary with those that have begun, on a copy with those
  // that are part of it. A copy for which it is the same as for the primary has all of them.
  virtual std::uint64_t position() const = 0;

  // Reads what readers of this node see: the outcome of whole sync points.
  virtual void read(Bytes offset, std::span<std::byte> into) = 0;
  // True if this copy is the outcome of sync points; false if the region is being copied to it, or
  // if it has been a primary and was not given the region since.
  virtual bool is_complete() const = 0;
  // On a copy whose process was gone while sync points went on without it: makes it incomplete
  // until it has been given the region again.
  virtual void note_missed() = 0;
  // True if this node, which sends sync points to that copy, has given it up since it was opened,
  // because it did not answer anymore. Such a copy may lack sync points.
  virtual bool has_lost(NodeId copy) const = 0;
  // True on a primary that is to have copies, none of which is complete and answers, so that it
  // flushes what is synced. What it has acknowledged is durable, but a failure may leave a part of
  // a sync point that is under way.
  virtual bool is_unreplicated() const = 0;
  // Each primary has a term, and no two have the same. The one that this node begins when it is
  // promoted, and a test of whether the node, as it is now, follows a primary of a given term. It
  // refuses one that may not have heard of another that it has followed. The test may be called
  // when this object is gone.
  virtual std::uint64_t next_term() const = 0;
  virtual std::function<bool(std::uint64_t term)> would_follow() const = 0;
  // Makes a complete copy the primary: it completes what has arrived, refuses the former primary,
  // and can be mapped when this has returned. `nodes`: itself, then the nodes that follow it now.
  virtual void promote(std::vector<NodeId> nodes) = 0;

  // How often each of MemorySystem::events has happened since it was opened.
  virtual std::vector<std::uint64_t> events() const { return {}; }
  // The values of MemorySystem::replica_metrics since it was opened.
  virtual std::vector<double> metrics() const { return {}; }
};

// An entry of the table of systems (systems/registry/registry.cc).
struct MemorySystem {
  SystemInfo info;
  // The least and the greatest number of nodes that have copies.
  struct Copies {
    std::uint32_t least = 0;
    std::uint32_t most = 0;
  } copies{};
  // Which of MemoryConfig::nodes has the safest copy when all have failed; 0 is the primary.
  std::uint32_t safest = 0;
  // The number of copies, from the mirror on, that have what a completed sync point names.
  std::uint32_t synced_copies = 0;
  // The backups get sync points from the mirror, or from each other, and not from the primary.
  bool backups_follow_mirror = false;
  // Copies have their data areas on a disk, in regions NAME.disk.
  bool copies_on_disk = false;
  // The carrier of a sync point to a copy: the input of the chooser (MemoryConfig::method). Absent
  // if the system persists in its own way only.
  std::optional<methods::UpdateNeeds> update{};
  // Parameters that make its logs small, for the histories in which failures are tried.
  std::span<const Setting> small{};
  std::span<const Event> events{};
  std::span<const Metric> session_metrics{};
  std::span<const Metric> replica_metrics{};

  // The bytes of persistent memory that a node needs besides the region.
  Bytes (*log_bytes)(const MemoryConfig& config);
  // The number of threads that serve on a node that has a copy.
  std::uint32_t (*workers)(const MemoryConfig& config);
  // Throws UsageError if the configuration is impossible, as open() does.
  void (*check)(const MemoryConfig& config);
  // Opens the copy `name` of the thread's node, recovering it, or creates it, filled with zeros. A
  // complete copy that is opened as the primary is promoted; a former primary gets the region from
  // the mirror. Throws UsageError if it exists with another configuration, or if the node may not
  // have the role, as a primary that another one has replaced.
  std::shared_ptr<MemoryReplica> (*open)(Thread& thread, std::string name,
                                         const MemoryConfig& config, MemoryRole role);
};

// The system's line in the table of services.
SystemInfo info_of(const MemorySystem& system);

}  // namespace perdura::services
