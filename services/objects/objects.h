// Objects: pools of keys and values on a shard, with transfers that bypass the CPUs and calls of
// code that computes on a value in place (MCAS, sections 3.1 and 4.1, Tables 1 to 3).
//
//   const auto session = co_await system.connect(thread, shard, config);
//   const auto pool = co_await (*session)->create_pool("accounts", 64 * MiB, {});
//   co_await (*pool)->put(key, value, {});
//   const auto length = co_await (*pool)->get(key, buffer);
//
// Every operation is a coroutine. The asynchronous forms of the tables are in `pending.h`, for all
// operations alike: it starts an operation, and reports later whether it has completed.
//
// The task that an operation returns uses the operation's arguments, such as the key and buffers,
// and the object itself until the task has ended.
//
// A completed change is as durable as the system promises. A failed operation has changed nothing,
// with four exceptions: after `disconnected` it is unknown whether it took effect; a write into a
// part of a value that a failure interrupts may leave any of its bytes new or old; a failed call of
// an active data object leaves what it has put, created or changed by then; and a put or an erase
// that has `failed` because active data objects did not consent has taken effect.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "platform/base/parameter.h"
#include "platform/platform.h"
#include "services/service.h"

namespace perdura::objects {

using Key = std::span<const std::byte>;
using Value = std::span<const std::byte>;

enum class Error : std::uint8_t {
  not_found,      // no such pool or key
  exists,         // it exists and should not
  out_of_space,   // the shard or the pool is full; everything acknowledged is kept
  too_large,      // longer than the store, a message or the buffer allows
  invalid,        // impossible arguments: an empty key, a range outside of the value
  no_permission,  // the pool was opened read-only, has been closed, or is not this client's
  busy,           // the pool is in use and cannot be deleted
  locked,         // another operation has the key, and this one may not wait for it
  unsupported,    // the pool has no secondary index, or no active data objects are configured
  failed,         // the active data object has died, refused, or cannot be started; or the pool is
                  // damaged
  disconnected,   // the shard is gone; whether the operation took effect is unknown
};
std::string_view to_string(Error error);

// The reason of a failure. Converts to its error, and can be compared with one.
struct Failure {
  Error error = Error::failed;
  std::string reason{};  // for people; empty if the error says everything

  Failure(Error what, std::string why = {}) : error(what), reason(std::move(why)) {}
  operator Error() const { return error; }
};

template <class T>
using Result = tl::expected<T, Failure>;

// Flags of opening a pool.
struct PoolFlags {
  bool create_only = false;       // create_pool: an existing pool is an error, `exists`
  bool create_on_demand = false;  // open_pool: a pool that does not exist is created
  bool read_only = false;         // changes through this handle are refused
};

// Flags of a put, and of a call of an active data object.
struct PutFlags {
  bool no_overwrite = false;  // an existing key is an error, `exists`
};
struct InvokeFlags {
  bool create_on_demand = false;  // a key that does not exist is created, with `value_length` bytes
  bool create_only = false;       // an existing key is an error, `exists`
  bool read_only = false;         // the call does not change the value, so others may read it
  bool detached = false;          // the value put is given to the call, and is not the key's value
  bool zero_new_value = false;    // a created value consists of zeros instead of arbitrary bytes
  bool no_overwrite = false;      // invoke_put: an existing key is an error, `exists`
};

// The attributes of a pool or a key (get_attributes).
struct PoolAttributes {
  std::uint64_t items = 0;
  Bytes capacity = 0;  // its memory, and the memory that it may still be given
  Bytes free = 0;
  bool has_index = false;
};
struct KeyAttributes {
  Bytes value_length = 0;
};

// Counts of a shard since it started (get_statistics).
struct ShardStatistics {
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

// How find() compares the keys of the secondary index with the expression (section 3.3).
enum class Match : std::uint8_t { exact, prefix, regular_expression, next };
struct FoundKey {
  std::vector<std::byte> key;
  std::uint64_t position = 0;  // the key's number in the order; a search continues at the next one
};

// Memory that a client has registered for direct transfers, until unregister_direct_memory.
struct DirectMemory {
  std::uint32_t number = 0;
};
// A part of it, which one direct transfer fills or sends.
struct DirectBuffer {
  DirectMemory memory;
  Bytes offset = 0;
  Bytes length = 0;
};

// A call's answers: one per response of the shard's plugins, in the plugins' order.
using Answers = std::vector<std::vector<std::byte>>;

// A handle of an open pool. close() closes it; a session that ends closes all of its own.
class Pool {
 public:
  virtual ~Pool() = default;

  // Small keys and values travel in messages.
  virtual Task<Result<void>> put(Key key, Value value, PutFlags flags) = 0;
  // Copies the value to the beginning of `into` and returns its length.
  virtual Task<Result<Bytes>> get(Key key, std::span<std::byte> into) = 0;
  // The same, into allocated memory that the caller owns. The tables' free_memory is its
  // destructor.
  virtual Task<Result<std::vector<std::byte>>> get(Key key) = 0;
  virtual Task<Result<void>> erase(Key key) = 0;

  // Without copies: the shard READs from or WRITEs to the client's memory (section 3.1.1).
  virtual Task<Result<void>> put_direct(Key key, DirectBuffer from, PutFlags flags) = 0;
  virtual Task<Result<Bytes>> get_direct(Key key, DirectBuffer into) = 0;
  // Transfers into or from the part of an existing value that begins at `offset` and is as long as
  // the buffer (3.1.2).
  virtual Task<Result<void>> put_direct_offset(Key key, Bytes offset, DirectBuffer from) = 0;
  virtual Task<Result<void>> get_direct_offset(Key key, Bytes offset, DirectBuffer into) = 0;

  // Calls the active data objects of the shard with the request, for this key. If the key does not
  // exist, it is created with a value of `value_length` bytes if a flag says so; otherwise the
  // error is `not_found`. `read_only` cannot be combined with other flags. `too_large` if the
  // request does not fit into a message or, after the call, its answers do not.
  virtual Task<Result<Answers>> invoke(Key key, std::span<const std::byte> request,
                                       Bytes value_length, InvokeFlags flags) = 0;
  // The same after putting the value. If the value is `detached`, a key that does not exist is
  // created with a value of `root_length` bytes, which is ignored otherwise. Never `read_only`.
  virtual Task<Result<Answers>> invoke_put(Key key, std::span<const std::byte> request, Value value,
                                           Bytes root_length, InvokeFlags flags) = 0;

  virtual Task<Result<PoolAttributes>> attributes() = 0;
  virtual Task<Result<KeyAttributes>> attributes(Key key) = 0;
  // Executes "AddIndex::NAME" or "RemoveIndex::", as the published code names them. The pool keeps
  // its index over restarts. `unsupported` if there is no such index.
  virtual Task<Result<void>> configure(std::string_view command) = 0;
  // Finds the first key from `position` on that matches, in the order of the keys' bytes. Inserting
  // or erasing a key moves the positions of the keys after it.
  virtual Task<Result<FoundKey>> find(std::string_view expression, Match match,
                                      std::uint64_t position) = 0;
  virtual Task<Result<void>> close() = 0;
};

// A client thread's connection to a shard. Several operations may be under way at once.
class Session {
 public:
  virtual ~Session() = default;
  // Creates a pool that may have `size` bytes, or opens an existing one.
  virtual Task<Result<std::unique_ptr<Pool>>> create_pool(std::string_view name, Bytes size,
                                                          PoolFlags flags) = 0;
  // `size` is that of a pool which is created on demand.
  virtual Task<Result<std::unique_ptr<Pool>>> open_pool(std::string_view name, PoolFlags flags,
                                                        Bytes size) = 0;
  Task<Result<std::unique_ptr<Pool>>> open_pool(std::string_view name, PoolFlags flags) {
    return open_pool(name, flags, 0);
  }
  // Overwrites the pool's contents and returns its memory to the shard. `busy` while it is open.
  virtual Task<Result<void>> delete_pool(std::string_view name) = 0;
  virtual Task<Result<ShardStatistics>> statistics() = 0;

  // The region must outlive the registration.
  virtual Result<DirectMemory> register_direct_memory(pmem::Region& region) = 0;
  virtual void unregister_direct_memory(DirectMemory memory) = 0;
};

// An event of another member of a shard's cluster (section 5).
struct MemberEvent {
  enum class What : std::uint8_t { joined, left, failed };
  What what = What::joined;
  std::string member{};
  std::uint64_t life = 0;  // the number of its process's life; a successor's is larger
};

// A shard: the pools of one thread.
class Shard {
 public:
  virtual ~Shard() = default;
  // Accepts sessions and serves them; does not end by itself.
  virtual Task<> serve() = 0;
  // Reports the event to the shard's active data objects. Must be called on the shard's thread, in
  // the order of the events.
  virtual void cluster_event(const MemberEvent&) {}
  // Returns an inconsistency in the shard's memory, as a phrase; empty if there is none. Must be
  // called on the shard's thread before it serves.
  virtual std::string audit() = 0;
};

struct Config {
  Bytes memory = 64 * MiB;             // the shard's, for all its pools
  Bytes max_message_value = 64 * KiB;  // longest value of a put or get that is not direct
  std::uint32_t sessions = 64;         // clients that may be connected at the same time
  GivenParameters parameters{};        // the system's own; unknown ones throw UsageError
};

// An entry of the table of systems (systems/registry/registry.cc).
struct System {
  services::SystemInfo info;
  // Parameters that make a shard small, for the histories in which failures are tried.
  std::span<const services::Setting> small{};

  // Throws UsageError if the configuration is impossible, as open() and connect() do.
  void (*check)(const Config& config) = [](const Config&) {};
  // Opens the memory `name` of the thread's node and recovers all its pools, or creates it. Throws
  // UsageError if the memory is damaged or of another shape.
  std::unique_ptr<Shard> (*open)(Thread& thread, std::string name, const Config& config);
  // Connects to the shard that is served at `server`. Throws PlatformError if that fails.
  Task<std::unique_ptr<Session>> (*connect)(Thread& thread, fabric::Address server, Config config);
};

}  // namespace perdura::objects
