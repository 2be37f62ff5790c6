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
// Every operation has an asynchronous form, which returns a Pending at once. By then it has copied
// its arguments, so keys and values may be changed or freed; memory for direct transfers must be
// left alone until the operation has completed. Puts, gets and erases of one key that one thread
// begins through one handle take effect in the order in which it began them, however many are under
// way, as long as the connection lasts. Direct transfers and calls of plugins are not in that
// order: a put_direct, for instance, takes effect when all of its value has arrived.
//
// Threads: several threads may call a Client, Pool, Cluster, ClusterPool or Server at once; a
// Pending may be used by one thread at a time. An object must not be destroyed while another thread
// uses it. Each Client and Cluster has a thread of its own, which makes all progress; that thread
// also runs `on_event`, which must not wait for operations. The library's threads block all signals
// but those of their own faults, so they run no signal handlers of the program.
//
// Failures: if a shard dies, the operations under way end as `disconnected`, and it is unknown
// whether they took effect. Later operations wait until the shard is back, for at most
// `connect_timeout`, and continue to use the pools that were open.
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

// How an operation has ended. Unless it is `ok`, the operation has changed nothing, with these
// exceptions: after `disconnected` and `timed_out` it may have taken effect or still do so; a
// put_direct_offset that a failure interrupts may leave any of its bytes old or new; after `failed`
// a call of an active data object leaves what it has changed by then, and a put or an erase to
// which active data objects did not consent has taken effect.
enum class Status : std::uint8_t {
  ok,
  not_found,      // no such pool or key
  exists,         // it exists and should not
  out_of_space,   // the shard or the pool is full; everything acknowledged is kept
  too_large,      // longer than a message or the memory allows
  invalid,        // impossible arguments: an empty key, a range outside of the value
  no_permission,  // the pool was opened read-only, or has been closed
  busy,           // the pool is in use and cannot be deleted
  locked,         // another operation has the key, and this one may not wait for it
  unsupported,    // the pool has no secondary index, or the shard no active data objects
  failed,         // the active data object has died or refused, or the pool is damaged
  disconnected,   // the shard has gone; whether the operation took effect is unknown
  unreachable,    // the shard could not be reached; nothing was sent
  timed_out,      // no answer yet; the operation continues, and may take effect
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

// The result of an operation: a value, or the reason why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status, std::string reason = {}) : status_(status), reason_(std::move(reason)) {}
  bool ok() const noexcept { return status_ == Status::ok; }
  Status status() const noexcept { return status_; }
  // Details of a status that is not `ok`; empty if there are none. After `failed` they are what a
  // plugin has reported, how its process has died, or how the pool is damaged.
  const std::string& reason() const noexcept { return reason_; }
  // Throws Failure if there is no value.
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

// An operation under way. Destroying the object does not end the operation.
template <class T>
class [[nodiscard]] Pending {
 public:
  // For the library's own use. `limit` is that of wait().
  Pending(std::future<Result<T>> result, std::chrono::milliseconds limit)
      : result_(std::move(result)), limit_(limit) {}

  // check_async_completion: true if wait() returns at once.
  bool completed() const {
    return taken_ || result_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  // Waits for the result. Later calls return a copy of it; after `timed_out` they wait again. For a
  // temporary, as in `pool.async_get(key).wait()`, nothing is copied.
  Result<T> wait() & { return take() ? *taken_ : Result<T>(Status::timed_out); }
  Result<T> wait() && { return take() ? std::move(*taken_) : Result<T>(Status::timed_out); }

 private:
  // Returns false if there is no result within the limit.
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
  bool create_on_demand = false;  // open_pool: a pool that does not exist is created
  bool read_only = false;         // changes through this handle are refused
};
struct PutFlags {
  bool no_overwrite = false;  // an existing key is an error, `exists`
};
struct InvokeFlags {
  bool create_on_demand = false;  // a key that does not exist is created, with `value_length` bytes
  bool create_only = false;       // an existing key is an error, `exists`
  bool read_only = false;         // the call does not change the value, so others may read it
  bool detached = false;          // the value put is given to the call, and is not the key's value
  bool zero_new_value = false;    // a created value consists of zeros
  bool no_overwrite = false;      // invoke_put: an existing key is an error, `exists`
};

struct PoolAttributes {
  std::uint64_t items = 0;
  std::uint64_t capacity = 0;  // its memory, and the memory that it may still be given
  std::uint64_t free = 0;
  bool has_index = false;
};
struct KeyAttributes {
  std::uint64_t value_length = 0;
};
// Counts of a shard since it started.
struct Statistics {
  std::uint64_t requests = 0;
  std::uint64_t puts = 0;
  std::uint64_t gets = 0;
  std::uint64_t erases = 0;
  std::uint64_t direct_transfers = 0;
  std::uint64_t invocations = 0;
  std::uint64_t failed_requests = 0;
  std::uint64_t sessions = 0;  // connected now
  std::uint64_t pools = 0;     // existing now
};

// How find() compares the keys of the secondary index with the expression.
enum class Match : std::uint8_t { exact, prefix, regular_expression, next };
struct FoundKey {
  std::string key{};
  std::uint64_t position = 0;  // the key's number in the order; a search continues at the next one
};
using Found = FoundKey;  // the former name, for programs that use it

// A call's answers: one per response of the shard's plugins, in the plugins' order.
using Answers = std::vector<std::string>;

// Memory that the shard READs and WRITEs itself, without copies. A shard reaches only memory that
// is a file of the job, so the library allocates it. Copies of the object share the memory, which
// is unregistered and freed with the last of them and the last operation that uses it.
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

// A handle of an open pool. Copies share the handle, which is closed by close() or with the last
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
  // Transfers to or from the part of an existing value that begins at `offset` and is as long as
  // the memory's part.
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

  // Calls the active data objects of the shard with the request, for this key; invoke_put() first
  // puts the value. `value_length` is the length of a value that the call creates.
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

  // Executes "AddIndex::VolatileTree" or "RemoveIndex::".
  Result<void> configure(std::string_view command) { return async_configure(command).wait(); }
  Pending<void> async_configure(std::string_view command);
  // Finds the first key from `position` on that matches, in the order of the keys' bytes.
  Result<FoundKey> find(std::string_view expression, Match match, std::uint64_t position = 0) {
    return async_find(expression, match, position).wait();
  }
  Pending<FoundKey> async_find(std::string_view expression, Match match,
                               std::uint64_t position = 0);

  Result<void> close() { return async_close().wait(); }
  Pending<void> async_close();

  class Impl;
  explicit Pool(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

// --- one shard -----------------------------------------------------------------------------------

// The RDMA device of this host by which processes of other hosts are reached. Empty members are
// chosen automatically (docs/verbs.md).
struct RdmaDevice {
  std::string name{};                   // as shown by ibv_devices
  std::optional<unsigned> port{};       // from 1
  std::optional<unsigned> gid_index{};  // as shown by show_gids
  bool on_demand_paging = false;        // true: registered memory is not locked
};

struct ClientOptions {
  std::string job;            // as in the shards' configuration file
  std::uint32_t node = 0;     // the shard's number there
  unsigned queue_depth = 32;  // operations under way at once; more wait
  // How long calls wait: until the shard can be reached, and then for its answer. Zero means not at
  // all, max() without a limit.
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
  // Overwrites the pool's contents and returns its memory to the shard. `busy` while it is open.
  Result<void> delete_pool(std::string_view name) { return async_delete_pool(name).wait(); }
  Pending<void> async_delete_pool(std::string_view name);
  Result<Statistics> statistics() { return async_statistics().wait(); }
  Pending<Statistics> async_statistics();

  // Allocates and registers this many bytes, all zeros.
  Result<DirectMemory> register_direct_memory(std::size_t size);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// --- several shards ------------------------------------------------------------------------------

struct Shard {
  std::string name;
  std::uint32_t node = 0;
  std::string address{};  // as for a client; either all shards of a cluster have one, or none has
};
// The parts of a configuration file that a client needs. read() throws std::invalid_argument with
// the file, the line and the key.
struct ShardList {
  std::string job;
  std::vector<Shard> shards;
  RdmaDevice device{};  // from [verbs]; the client's host may need another one
  static ShardList read(const std::string& file);
};

// An event of a shard, as the observer perceives it.
struct ClusterEvent {
  enum class What : std::uint8_t {
    joined,  // it can be reached
    left,    // it has ended of its own accord
    failed,  // nothing has been heard from it for `patience`, or it was started again
  };
  What what = What::joined;
  std::string shard;
  std::uint64_t life = 0;  // the number of a process's life; a successor's is larger
};

struct ClusterOptions {
  std::string job;
  std::vector<Shard> shards;
  unsigned queue_depth = 32;  // per shard
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds call_timeout{60'000};
  // The time without a heartbeat after which a shard has failed: at least two heartbeats of the
  // shards.
  std::chrono::milliseconds patience{1'000};
  // Called on the cluster's own thread, with the events of one shard in their order.
  std::function<void(const ClusterEvent&)> on_event{};
  RdmaDevice device{};  // for shards that have addresses
};

// A pool of the same name on each shard; a key is in the pool of the shard to which it belongs.
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
  // the given shards, on which it was before. Their pools need an index (Pool::configure). A key is
  // copied before it is erased, so a move that ends early loses nothing and can be repeated. Until
  // the move has ended, keys that have not been moved are not found; a key that was put again
  // meanwhile keeps its new value, and one that was erased meanwhile may come back. Returns the
  // number of keys moved.
  Result<std::uint64_t> move_keys(const std::vector<Shard>& from);

  class Impl;
  explicit ClusterPool(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

// A client of several shards, among which consistent hashing divides the keys: if shards are added
// or removed, the only keys that must move are those that then belong to another shard. All clients
// with the same shards agree. A shard that has failed keeps its keys, which are unreachable until
// it is back.
class Cluster {
 public:
  // Does not wait for the shards. Throws std::invalid_argument or std::runtime_error.
  explicit Cluster(const ClusterOptions& options);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // The pool is opened on each shard, or created with `size` bytes, when it is first used there.
  ClusterPool pool(std::string_view name, std::uint64_t size);
  // Overwrites and removes the pool on all shards that have it. Returns the first problem, if any.
  Result<void> delete_pool(std::string_view name);

  // From now on keys belong to the changed set of shards; ClusterPool::move_keys() moves them.
  // Throws std::invalid_argument if the shard is impossible, or the last one would be removed.
  void add(const Shard& shard);
  void remove(std::string_view name);
  std::vector<Shard> shards() const;
  // The name of the shard to which the key belongs.
  std::string owner(std::string_view key) const;
  // True if the shard has joined, and has neither left nor failed since.
  bool is_there(std::string_view shard) const;

  Result<DirectMemory> register_direct_memory(std::size_t size);

  class Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

// --- the shards themselves -----------------------------------------------------------------------

struct ServerOptions {
  std::string file;                   // the configuration file
  std::vector<std::string> shards{};  // the shards of the file that this process serves; empty: all
  // Called by threads of `shard`: the one that serves, and the one that takes part in the cluster.
  std::function<void(const std::string& shard)> on_serving{};
  std::function<void(const std::string& shard, const ClusterEvent& event)> on_event{};
};

class Server {
 public:
  // Checks the file. Throws std::invalid_argument as the constructor does, or else returns the
  // shards. Examines directories, cores and plugins of this host, but opens no device and no
  // memory, resolves no host name and loads no plugin.
  static ShardList check(const std::string& file);

  // Throws std::invalid_argument, with the file, the line and the key, or for other impossible
  // options; std::runtime_error if a shard is served already or the host lacks what it needs.
  explicit Server(const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Recovers the shards' memory, or creates it, and serves until stop(), which another thread or a
  // signal handler may call. Throws std::runtime_error if a shard cannot be served; the others are
  // ended then. May be called once.
  void run();
  void stop() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace perdura::mcas
