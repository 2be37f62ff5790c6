// The interface that a key-value system implements; the harness and the tests know nothing else of
// a system.
//
// A store is divided into partitions by the hash of the key. Each partition is served by one worker
// thread of the server, the only one that modifies it, and has its own pool in persistent memory; a
// client thread has one session to every partition. A system therefore implements a single
// partition and its session and is unaware of other partitions (services/kv/partitioned.h
// distributes keys over them).
//
// A system with locks may instead have one partition, which all worker threads serve and modify
// concurrently; a client thread then has one session, to one of the workers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "methods/chooser.h"
#include "platform/base/parameter.h"
#include "platform/base/units.h"
#include "platform/fabric/needs.h"
#include "platform/platform.h"
#include "platform/runtime/task.h"
#include "services/event.h"
#include "services/footprint.h"
#include "services/guarantee.h"
#include "services/metric.h"
#include "services/setting.h"

namespace perdura::kv {

using Key = std::span<const std::byte>;
using Value = std::span<const std::byte>;

enum class Error : std::uint8_t {
  not_found,
  out_of_space,  // the store is full; everything acknowledged is kept
  too_large,     // the key or value is longer than the store takes
  corrupt,       // the key has no version with a valid checksum; must never happen
  disconnected,  // the server has failed; whether the operation took effect is unknown
};
std::string_view to_string(Error error);

template <class T>
using Result = tl::expected<T, Error>;

// How a store is laid out. Sizes are of one partition.
struct KvConfig {
  Bytes key_size = 16;    // key of the typical record, for which the layout is optimized
  Bytes value_size = 64;  // value of the typical record
  Bytes max_value_size = 64;
  std::uint64_t records = 1000;  // distinct keys that it must be able to hold
  std::uint64_t writes = 1000;   // puts and deletes expected over its lifetime, including loading
  std::uint32_t sessions = 64;   // clients that may be connected to each worker at the same time
  std::uint32_t workers = 1;     // threads that serve it; more only if KvSystem::shares_partition
  // Nodes that hold the partition, with consecutive numbers; more than one only if
  // KvSystem::spans_servers.
  std::uint32_t servers = 1;
  // A system's own parameters, `[systems.NAME]` of an experiment; unknown ones throw UsageError.
  GivenParameters parameters;
  // The method that makes a put durable before it is acknowledged; must fit KvSystem::put. Absent:
  // puts persist as in the paper, whatever that guarantees.
  std::optional<methods::Method> put_method{};
};

// How full a partition's store is.
struct KvSpace {
  Bytes capacity = 0;               // room for keys and values with their metadata; 0: unknown
  Bytes free = 0;                   // part of the capacity that is free without reclaiming anything
  std::uint64_t cleanings = 0;      // number that have ended since the server started
  std::uint32_t cleanings_now = 0;  // number that are under way
  bool resizing = false;            // capacity is being added
  std::uint64_t steps = 0;          // begun since the server started, in all cleanings and resizes
};

// The server's side of a partition. Lives on the worker thread that opened it.
class KvPartition {
 public:
  virtual ~KvPartition() = default;
  // May be called on any thread, at any time.
  virtual KvSpace space() const { return {}; }
  // The values of KvSystem::partition_metrics since it was opened. To be called on its worker's
  // thread.
  virtual std::vector<double> metrics() const { return {}; }
  // The number of times that each of KvSystem::events has happened since it was opened, recovery
  // included.
  virtual std::vector<std::uint64_t> events() const { return {}; }
  // Describes a contradiction in the store, such as space that is neither free nor in use, as a
  // phrase; empty if there is none. To be called on its worker's thread before it serves.
  virtual std::string audit() { return {}; }
  // Accepts sessions and serves them; does not end by itself.
  virtual Task<> serve() = 0;
  // Like serve(), for a further one of KvConfig::workers; called on that worker's thread after
  // serve() has been called. The task may outlive this object.
  virtual Task<> serve_also([[maybe_unused]] Thread& thread) { co_return; }
  // Waits until deferred work, such as applying a log, is done and durable.
  virtual Task<> settle() = 0;
};

struct SessionCounts {
  std::uint64_t torn_reads = 0;  // objects fetched whose checksum did not match
  std::uint64_t one_sided_reads = 0;
  std::uint64_t retries = 0;  // requests and reads that had to be repeated
};

// A client thread's side. Several operations may be under way at once.
class KvSession {
 public:
  virtual ~KvSession() = default;
  // Copies the value to the beginning of `into` and returns its length, or `too_large` if it does
  // not fit.
  virtual Task<Result<Bytes>> get(Key key, std::span<std::byte> into) = 0;
  // Creates or updates. `out_of_space` leaves the previous value in place.
  virtual Task<Result<void>> put(Key key, Value value) = 0;
  virtual Task<Result<void>> erase(Key key) = 0;
  virtual SessionCounts counts() const = 0;
  // The values of KvSystem::session_metrics since it connected.
  virtual std::vector<double> metrics() const { return {}; }
};

// Settings that make a store so small that its own activities, such as cleaning its log or growing,
// happen within the short histories in which failures are explored.
struct SmallStore {
  std::span<const services::Setting> parameters{};
  // The numbers of keys that it holds at the beginning, besides those of the history, which begin
  // at 0. They are chosen so that the keys of the history find their buckets full.
  std::span<const std::uint64_t> filling{};
};

// An entry of the table of systems (systems/registry/registry.cc).
struct KvSystem {
  std::string_view name;       // as on the command line: lower case with dashes
  std::string_view title;      // as in a legend
  std::string_view paper;      // title, authors, year; section
  std::string_view guarantee;  // the meaning of a completed put
  // The guarantee as a level, as the paper claims it for its own testbed.
  services::GuaranteeLevel level = services::GuaranteeLevel::visible;
  // How a put's data is transferred to the server: the input of the chooser of a method that makes
  // it durable (KvConfig::put_method). Absent if the system only persists in its own way.
  std::optional<methods::UpdateNeeds> put{};
  // Operations of RDMA devices without which the system cannot run.
  fabric::DeviceNeeds needs{};
  // The longest keys and values that the system supports in any configuration; 0: the configuration
  // alone decides.
  Bytes max_key_size = 0;
  Bytes max_value_size = 0;
  // The given size, limited to the longest that the system supports.
  Bytes fit_key(Bytes size) const { return fit(size, max_key_size); }
  Bytes fit_value(Bytes size) const { return fit(size, max_value_size); }
  // All worker threads of a node serve one partition, rather than each its own.
  bool shares_partition = false;
  // A partition is spread over all servers, each of which opens a part of it, rather than each
  // server having partitions of its own.
  bool spans_servers = false;
  // The parameters that `[systems.NAME]` of an experiment may set, to be read by a ParameterReader
  // (systems/parameter_reader.h).
  std::span<const Parameter> parameters{};
  // The first one is used in the histories in which failures are tried at every crash point; random
  // histories use any of them.
  std::span<const SmallStore> small_stores{};
  // The system's own activities; an exploration of failures must meet each of them.
  std::span<const services::Event> events{};
  // Parameters that change what the system guarantees; it is also explored with each of them.
  std::span<const services::Setting> changes_guarantee{};

  // Metrics that its sessions and partitions count in addition to SessionCounts.
  std::span<const services::Metric> session_metrics{};
  std::span<const services::Metric> partition_metrics{};

  // Estimates the memory of its points for `perdura plan`; if absent, there is no estimate.
  std::optional<services::Footprint> footprint{};

  // Throws UsageError if the configuration of a partition is impossible, as open() and connect()
  // do.
  void (*check)(const KvConfig& config) = [](const KvConfig&) {};
  // Opens the pool `name` of the thread's node, recovering it, or creates it. If several servers
  // hold the partition, each opens its part. Throws UsageError if the configuration is impossible
  // or the pool is damaged or of another shape.
  std::unique_ptr<KvPartition> (*open)(Thread& thread, std::string name, const KvConfig& config);
  // Connects to the partition served at `server`, which is the first of KvConfig::servers
  // consecutive nodes with the same port. Throws PlatformError if connecting fails.
  Task<std::unique_ptr<KvSession>> (*connect)(Thread& thread, fabric::Address server,
                                              KvConfig config);

 private:
  static Bytes fit(Bytes size, Bytes longest) {
    return longest == 0 || size < longest ? size : longest;
  }
};

}  // namespace perdura::kv
