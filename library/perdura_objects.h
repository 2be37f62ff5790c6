// Pools of keys and values in the persistent memory of shards (MCAS), for applications: clients of
// a shard, clients of several that divide keys among them, and the shards themselves. For C++
// programs; perdura_objects_c.h has the calls of clients for C. Link as with perdura.h.
//
//   perdura::mcas::Client client({.job = "accounts", .node = 0});
//   auto pool = client.create_pool("balances", 64 << 20).value();
//   pool.put("alice", "100").value();           // persistent at the shard when it returns
//   std::string balance = pool.get("alice").value();
//
// `perdura mcas serve FILE` runs the shards that a configuration file describes, which
// docs/library.md shows; Server does so in a program. Shards and clients are processes of one host,
// or, by its RDMA devices, of several: then a shard has an address, by which clients find it.
//
// Every operation has an asynchronous form, which returns a Pending at once. What the call was
// given has been copied by then, so keys and values may be changed or freed; memory for direct
// transfers must be left alone until the operation has completed. Puts, gets and erases of one
// key that one thread begins through one handle take effect in the order in which it began them,
// however many are under way, while the connection lasts. Direct transfers and calls of plugins are
// not in that order: a put_direct, for instance, takes effect when all of its value has arrived.
//
// Threads: all calls of a Client, Pool, Cluster, ClusterPool and Server may be made by several
// threads at once; a Pending is used by one thread at a time. An object must not be destroyed while
// another thread uses it. Each Client and Cluster has a thread of its own, which makes all
// progress; it runs `on_event`, which must not wait for it. The library's threads take no signals
// but those of their own faults, and so run no handlers of the program.
//
// Failures: if a shard dies, the operations that are under way end as `disconnected`, and it is
// unknown whether they took effect. Later ones wait until it is back, for as long as
// `connect_timeout`, and go on with the pools that were open.
//
// Sizes are in bytes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perdura.h"

namespace perdura::mcas {

// How an operation has ended. One that has not ended as `ok` has changed nothing, except after
// `disconnected` and `timed_out`; and a put_direct_offset that a failure interrupts may leave any
// of its bytes old or new.
enum class Status : std::uint8_t {
  ok,
  not_found,      // no such pool or key
  exists,         // and it was not to
  out_of_space,   // the shard or the pool is full; everything acknowledged is kept
  too_large,      // longer than a message or the memory takes
  invalid,        // arguments that cannot be: an empty key, a range outside of the value
  no_permission,  // the pool was opened read-only, or has been closed
  busy,           // the pool is in use and cannot be deleted
  locked,         // another operation has the key, and this one may not wait for it
  unsupported,    // the pool has no secondary index, or the shard no active data objects
  failed,         // the active data object has died or refused, or the pool is damaged
  disconnected,   // the shard has gone meanwhile; whether the operation took effect is unknown
  unreachable,    // the shard could not be reached; nothing was sent
  timed_out,      // no answer yet; the operation goes on, and may take effect
};
std::string_view to_string(Status status);

// Thrown by Result::value().
class Failure : public std::runtime_error {
 public:
  explicit Failure(Status status, const std::string& reason = {})
      : std::runtime_error(std::string(to_string(status)) + (reason.empty() ? "" : ": " + reason)),
        status_(status) {}
  Status status() const noexcept { return status_; }

 private:
  Status status_;
};

// What an operation yields: a value, or why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status, std::string reason = {}) : status_(status), reason_(std::move(reason)) {}
  bool ok() const noexcept { return status_ == Status::ok; }
  Status status() const noexcept { return status_; }
  // More about a status that is not ok; empty if it says all. After `failed` it is
  // what a plugin has said, how its process has died, or how the pool is damaged.
  const std::string& reason() const noexcept { return reason_; }
  // Throws Failure if there is none.
  T& value() & {
    if (!ok()) throw Failure(status_, reason_);
    return *value_;
  }
  T value() && { return std::move(value()); }

 private:
  Status status_ = Status::ok;
  std::string reason_;
  std::optional<T> value_;
};
template <>
class [[nodiscard]] Result<void> {
 public:
  Result(Status status = Status::ok, std::string reason = {})
      : status_(status), reason_(std::move(reason)) {}
  bool ok() const noexcept { return status_ == Status::ok; }
  Status status() const noexcept { return status_; }
  const std::string& reason() const noexcept { return reason_; }
  void value() const {
    if (!ok()) throw Failure(status_, reason_);
  }

 private:
  Status status_;
  std::string reason_;
};

// An operation under way. Dropping it does not end the operation.
template <class T>
class [[nodiscard]] Pending {
 public:
  // What the library makes: `limit` is for wait().
  Pending(std::future<Result<T>> result, std::chrono::milliseconds limit)
      : result_(std::move(result)), limit_(limit) {}

  // check_async_completion: whether wait() returns at once.
  bool completed() const {
    return taken_ || result_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  // Waits for the result, which later calls return again, each a copy of it; after `timed_out` they
  // wait again. What is a temporary, as in `pool.async_get(key).wait()`, copies nothing.
  Result<T> wait() & { return take() ? *taken_ : Result<T>(Status::timed_out); }
  Result<T> wait() && { return take() ? std::move(*taken_) : Result<T>(Status::timed_out); }

 private:
  // False if there is no result within the limit.
  bool take() {
    if (taken_) return true;
    if (limit_ == std::chrono::milliseconds::max()) {
      result_.wait();
    } else if (result_.wait_for(limit_) != std::future_status::ready) {
      return false;
    }
    try {
      taken_ = result_.get();
    } catch (const std::future_error&) {
      taken_ = Status::disconnected;  // the client has been destroyed
    }
    return true;
  }

  std::future<Result<T>> result_;
  std::optional<Result<T>> taken_;
  std::chrono::milliseconds limit_;
};

// --- pools ---------------------------------------------------------------------------------------

struct PoolFlags {
  bool create_only = false;       // create_pool: an existing pool is an error, `exists`
  bool create_on_demand = false;  // open_pool: creates a pool that is not there
  bool read_only = false;         // changes of the pool through this handle are refused
};
struct PutFlags {
  bool no_overwrite = false;  // an existing key is an error, `exists`
};
struct InvokeFlags {
  bool create_on_demand = false;  // a key that is not there is created, with `value_length` bytes
  bool create_only = false;       // a key that is there is an error, `exists`
  bool read_only = false;         // the call does not change the value, so others may read it
  bool detached = false;          // a put value is given to the call, and is not the key's value
  bool zero_new_value = false;    // a value that is created is all zeros
  bool no_overwrite = false;      // of the value that is put, `exists`
};

struct PoolAttributes {
  std::uint64_t items = 0;
  std::uint64_t capacity = 0;  // of its memory, and of what it may still be given
  std::uint64_t free = 0;
  bool has_index = false;
};
struct KeyAttributes {
  std::uint64_t value_length = 0;
};
// What a shard has done since it started.
struct Statistics {
  std::uint64_t requests = 0;
  std::uint64_t puts = 0;
  std::uint64_t gets = 0;
  std::uint64_t erases = 0;
  std::uint64_t direct_transfers = 0;
  std::uint64_t invocations = 0;
  std::uint64_t failed_requests = 0;
  std::uint64_t sessions = 0;  // now
  std::uint64_t pools = 0;     // that exist
};

// How find() compares the keys of the secondary index with what is asked for.
enum class Match : std::uint8_t { exact, prefix, regular_expression, next };
struct Found {
  std::string key{};
  std::uint64_t position = 0;  // of the key in the order of keys: go on from the next one
};

// A call's answers, one of each plugin of the shard.
using Answers = std::vector<std::string>;

// Memory that the shard READs and WRITEs itself, without copies. Shards reach memory that is a file
// of the job, so the library allocates it. Copies are of the same memory, which is unregistered and
// freed with the last of them and the last operation that uses it.
class DirectMemory {
 public:
  std::span<std::byte> bytes() const;

  class Impl;
  explicit DirectMemory(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// A part of it, which one direct transfer fills or sends.
struct DirectPart {
  DirectMemory memory;
  std::size_t offset = 0;
  std::size_t length = 0;
};

// A handle of an open pool. Copies are the same handle, which is closed by close() or with the last
// copy.
class Pool {
 public:
  // Small values, which travel in messages: up to the shard's `max_message_value`.
  Result<void> put(std::string_view key, std::string_view value, PutFlags flags = {}) {
    return async_put(key, value, flags).wait();
  }
  Result<std::string> get(std::string_view key) { return async_get(key).wait(); }
  Result<void> erase(std::string_view key) { return async_erase(key).wait(); }
  Pending<void> async_put(std::string_view key, std::string_view value, PutFlags flags = {});
  Pending<std::string> async_get(std::string_view key);
  Pending<void> async_erase(std::string_view key);

  // Values of any size, from and to registered memory. get_direct returns the value's length.
  Result<void> put_direct(std::string_view key, const DirectPart& from, PutFlags flags = {}) {
    return async_put_direct(key, from, flags).wait();
  }
  Result<std::uint64_t> get_direct(std::string_view key, const DirectPart& into) {
    return async_get_direct(key, into).wait();
  }
  // Of the part of an existing value from `offset` on that is as long as the memory's part.
  Result<void> put_direct_offset(std::string_view key, std::uint64_t offset,
                                 const DirectPart& from) {
    return async_put_direct_offset(key, offset, from).wait();
  }
  Result<void> get_direct_offset(std::string_view key, std::uint64_t offset,
                                 const DirectPart& into) {
    return async_get_direct_offset(key, offset, into).wait();
  }
  Pending<void> async_put_direct(std::string_view key, const DirectPart& from, PutFlags flags = {});
  Pending<std::uint64_t> async_get_direct(std::string_view key, const DirectPart& into);
  Pending<void> async_put_direct_offset(std::string_view key, std::uint64_t offset,
                                        const DirectPart& from);
  Pending<void> async_get_direct_offset(std::string_view key, std::uint64_t offset,
                                        const DirectPart& into);

  // Calls the active data objects of the shard with the request, for this key; after putting the
  // value. `value_length` is that of a value which the call creates.
  Result<Answers> invoke(std::string_view key, std::string_view request,
                         std::uint64_t value_length = 0, InvokeFlags flags = {}) {
    return async_invoke(key, request, value_length, flags).wait();
  }
  Result<Answers> invoke_put(std::string_view key, std::string_view request, std::string_view value,
                             std::uint64_t root_length = 0, InvokeFlags flags = {}) {
    return async_invoke_put(key, request, value, root_length, flags).wait();
  }
  Pending<Answers> async_invoke(std::string_view key, std::string_view request,
                                std::uint64_t value_length = 0, InvokeFlags flags = {});
  Pending<Answers> async_invoke_put(std::string_view key, std::string_view request,
                                    std::string_view value, std::uint64_t root_length = 0,
                                    InvokeFlags flags = {});

  Result<PoolAttributes> attributes() { return async_attributes().wait(); }
  Result<KeyAttributes> attributes(std::string_view key) { return async_attributes(key).wait(); }
  Pending<PoolAttributes> async_attributes();
  Pending<KeyAttributes> async_attributes(std::string_view key);

  // "AddIndex::VolatileTree" and "RemoveIndex::".
  Result<void> configure(std::string_view command) { return async_configure(command).wait(); }
  Pending<void> async_configure(std::string_view command);
  // The first key from `position` on that matches, in the order of their bytes.
  Result<Found> find(std::string_view expression, Match match, std::uint64_t position = 0) {
    return async_find(expression, match, position).wait();
  }
  Pending<Found> async_find(std::string_view expression, Match match, std::uint64_t position = 0);

  Result<void> close() { return async_close().wait(); }
  Pending<void> async_close();

  class Impl;
  explicit Pool(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

// --- one shard -----------------------------------------------------------------------------------

// The RDMA device of this host by which processes of other hosts are reached. What is left out is
// chosen (docs/verbs.md).
struct RdmaDevice {
  std::string name{};                   // as ibv_devices shows it
  std::optional<unsigned> port{};       // from 1
  std::optional<unsigned> gid_index{};  // as show_gids shows it
  bool on_demand_paging = false;        // memory that is registered is not locked
};

struct ClientOptions {
  std::string job;            // as in the shards' configuration file
  std::uint32_t node = 0;     // the shard's number there
  unsigned queue_depth = 32;  // operations under way at once; more wait
  // How long calls wait: for the shard to be there, and then for its answer. Zero means not at all,
  // max() without a limit.
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds call_timeout{60'000};
  // "HOST:PORT", as in the configuration file, if the shards are on the platform `verbs`; empty:
  // they are on this host, on `shm`.
  std::string address{};
  RdmaDevice device{};  // for `verbs`
};

class Client {
 public:
  // Waits for the shard. Throws std::invalid_argument for impossible options, TimedOut, or
  // std::runtime_error.
  explicit Client(const ClientOptions& options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Creates a pool that may have `size` bytes, or opens an existing one.
  Result<Pool> create_pool(std::string_view name, std::uint64_t size, PoolFlags flags = {});
  // `size` is that of a pool which is created on demand.
  Result<Pool> open_pool(std::string_view name, PoolFlags flags = {}, std::uint64_t size = 0);
  // Overwrites what was in it and gives its memory back to the shard. `busy` while it is open.
  Result<void> delete_pool(std::string_view name) { return async_delete_pool(name).wait(); }
  Pending<void> async_delete_pool(std::string_view name);
  Result<Statistics> statistics() { return async_statistics().wait(); }
  Pending<Statistics> async_statistics();

  // register_direct_memory, of so many bytes, all zeros.
  Result<DirectMemory> register_direct_memory(std::size_t size);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// --- several shards ------------------------------------------------------------------------------

struct Shard {
  std::string name;
  std::uint32_t node = 0;
  std::string address{};  // as of a client; all shards of a cluster have one, or none has
};
// What a client needs to know of a configuration file. Throws std::invalid_argument with the file,
// the line and the key.
struct ShardList {
  std::string job;
  std::vector<Shard> shards;
  RdmaDevice device{};  // of [verbs], which may be another one on the client's host
  static ShardList read(const std::string& file);
};

// Something that has happened to a shard, as the one who is told sees it.
struct ClusterEvent {
  enum class What : std::uint8_t {
    joined,  // it can be reached
    left,    // it has ended of its own accord
    failed,  // nothing has been heard from it for as long as `patience`, or it was started again
  };
  What what = What::joined;
  std::string shard;
  std::uint64_t life = 0;  // of one process, from its start to its end; a successor's is larger
};

struct ClusterOptions {
  std::string job;
  std::vector<Shard> shards;
  unsigned queue_depth = 32;  // of each shard
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds call_timeout{60'000};
  // When a shard from which nothing is heard has failed: at least two heartbeats of the shards.
  std::chrono::milliseconds patience{1'000};
  // Called on the cluster's own thread, with events of one shard in their order.
  std::function<void(const ClusterEvent&)> on_event{};
  RdmaDevice device{};  // for shards that have addresses
};

// A pool of the same name on each shard; a key is in that of the shard to which it belongs.
class ClusterPool {
 public:
  Result<void> put(std::string_view key, std::string_view value, PutFlags flags = {}) {
    return of(key).put(key, value, flags);
  }
  Result<std::string> get(std::string_view key) { return of(key).get(key); }
  Result<void> erase(std::string_view key) { return of(key).erase(key); }
  // The pool of the shard to which the key belongs now, for all other operations.
  Pool of(std::string_view key);

  // After shards were added or removed: moves each key to the shard to which it belongs now, from
  // those given, which were asked before. They need an index (Pool::configure). A key is copied
  // before it is erased, so a move that ends early loses nothing and can be repeated. Until it has
  // ended, keys that have not been moved are not found; one that has been put anew meanwhile is
  // kept, and one that has been erased meanwhile may come back. Returns how many were moved.
  Result<std::uint64_t> move_keys(const std::vector<Shard>& from);

  class Impl;
  explicit ClusterPool(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

// A client of several shards, among which consistent hashing divides the keys: if shards are added
// or removed, the keys that must move are the only ones that belong to another one then. All
// clients with the same shards agree. A shard that has failed keeps its keys, which are unreachable
// until it is back.
class Cluster {
 public:
  // Does not wait for the shards. Throws std::invalid_argument or std::runtime_error.
  explicit Cluster(const ClusterOptions& options);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // On each shard it is opened, or created with `size` bytes, when it is first used there.
  ClusterPool pool(std::string_view name, std::uint64_t size);
  // Overwrites and removes it on all shards that have it; the first problem, if there is one.
  Result<void> delete_pool(std::string_view name);

  // From now on keys belong to these shards. ClusterPool::move_keys() moves those that have to.
  // Throws std::invalid_argument if there can be no such shard, or it would be the last one.
  void add(const Shard& shard);
  void remove(std::string_view name);
  std::vector<Shard> shards() const;
  // The name of the shard to which the key belongs.
  std::string owner(std::string_view key) const;
  // Whether it has joined, and has neither left nor failed.
  bool is_there(std::string_view shard) const;

  Result<DirectMemory> register_direct_memory(std::size_t size);

  class Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

// --- the shards themselves -----------------------------------------------------------------------

struct ServerOptions {
  std::string file;                   // the configuration file
  std::vector<std::string> shards{};  // of it, those that this process serves; empty: all
  // Called by the thread of the shard that serves, and of the one that is told.
  std::function<void(const std::string& shard)> on_serving{};
  std::function<void(const std::string& shard, const ClusterEvent& event)> on_event{};
};

class Server {
 public:
  // Throws std::invalid_argument as the constructor does, and else returns the shards, of which
  // none is touched. Looks at directories, cores and plugins of this host, and opens no device and
  // no memory, looks no host's name up and loads no plugin.
  static ShardList check(const std::string& file);

  // Throws std::invalid_argument with the file, the line and the key, or what else is impossible;
  // std::runtime_error if a shard is served already or the host lacks what it needs.
  explicit Server(const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Recovers the shards' memory, or makes it, and serves until stop(), which another thread or a
  // signal handler may call. Throws std::runtime_error if a shard cannot be served; the others are
  // ended then. May be called once.
  void run();
  void stop() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace perdura::mcas
