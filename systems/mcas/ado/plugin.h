// The interface that writers of active data objects implement, and the services that they are given
// (MCAS, sections 4.1 and 4.2).
//
//   class Counter final : public Plugin {
//     Task<Result> do_work(Services& services, const Invocation& work) override {
//       const Memory memory = services.memory();
//       const std::uint64_t count = memory.region().load(work.value.offset) + 1;
//       memory.store_durably(work.value.offset, count);
//       co_return Result{{std::to_string(count)}};
//     }
//   };
//
// A process executes one invocation after the other. Meanwhile the shard keeps the target key
// locked, and serves others. A value is changed in place, with stores through the region of
// memory(), and must be durable and consistent after a failure at any time: containers/arena.h
// helps. All other changes of the pool are requested from the shard through Services.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "platform/runtime/task.h"
#include "systems/mcas/ado/messages.h"
#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas::ado {

// Must be changed together with anything in this header, in peer_client.h, in containers/, or in
// what they include, since plugins that are loaded depend on all of it.
inline constexpr std::uint32_t kPluginInterface = 4;

struct Invocation {
  std::string key{};
  ByteRange value{};  // length 0: it cannot be changed in place
  std::vector<ByteRange>
      detached{};  // further memory of the pool, put with the value by the client
  std::string request{};
  bool is_new = false;

  // True if this reports an operation other than an invocation.
  bool is_signal() const { return request.starts_with(kSignalPrefix); }
};

struct Result {
  std::vector<std::string> responses{};
  std::string error{};  // if not empty, the invocation has failed, for this reason; one line
};

template <class T>
struct Answer {
  CallStatus status = CallStatus::done;
  T value{};
  explicit operator bool() const { return status == CallStatus::done; }
};

// The callback interface (Table 4). Keys that an invocation creates or opens are locked until it
// ends, unless it unlocks them before. To avoid deadlocks no call waits for a lock: for a key that
// is in use the status is `locked`. If the shard dies, the calls throw PlatformError.
//
// A process has mapped the memory that its pool had when it was launched. For anything in memory
// that the pool got later the status is `unseen`. The invocation must then fail without having
// changed anything: it is executed again by a new process, which has mapped that memory, and the
// client does not notice.
class Services {
 public:
  virtual ~Services() = default;

  // The shard's memory in this process. A plugin may access only the values of keys that it has
  // locked and memory that it has allocated.
  virtual Memory memory() const = 0;

  // Creates a key with a value of zeros, and returns its range; or `exists`, `out_of_space`.
  virtual Task<Answer<ByteRange>> create_key(std::string key, Bytes length) = 0;
  // Returns the range of a value, of length 0 if it cannot be changed in place; or `not_found`.
  virtual Task<Answer<ByteRange>> open_key(std::string key, LockMode mode) = 0;
  virtual Task<CallStatus> erase_key(std::string key) = 0;
  // Changes the length of the value of a key that this invocation has locked for writing, and
  // returns its range, which may be a new one. Its bytes are kept; added bytes are zeros.
  virtual Task<Answer<ByteRange>> resize_value(std::string key, Bytes length) = 0;
  // Allocates memory that belongs to no key until it is freed.
  virtual Task<Answer<ByteRange>> allocate_memory(Bytes length) = 0;
  // Frees a whole allocation. If the range is not that of an allocation, the status is `not_found`
  // and nothing is freed.
  virtual Task<CallStatus> free_memory(ByteRange range) = 0;
  // Returns all keys with the ranges of their values. They are not locked and may change at any
  // time. `refused` if there are too many for a message.
  virtual Task<Answer<std::vector<Reference>>> get_references() = 0;
  // Returns the same in pieces, as of the first call, which passes position 0. Each call returns
  // the piece at `position`, and advances `position` to the next one. The last piece is empty.
  virtual Task<Answer<std::vector<Reference>>> iterate(std::uint64_t& position) = 0;
  // Finds the first key at or after `position` (initially 0) that matches; it is not locked.
  // `position` advances past it. `refused` if the pool has no secondary index or the expression is
  // invalid.
  virtual Task<Answer<std::string>> find_key(std::string expression, Matching matching,
                                             std::uint64_t& position) = 0;
  virtual Task<Answer<PoolInfo>> get_pool_info() = 0;
  virtual Task<CallStatus> unlock(std::string key) = 0;
  // Returns a copy of the value of a key that this invocation has locked, also if the value cannot
  // be changed in place. `refused` if it is too long for a message.
  virtual Task<Answer<std::string>> read_value(std::string key) = 0;

  // The following calls make the process a client of the shard that `plugin_peer` names (section 2:
  // back-flow), by messages over one connection that lives as long as the process.
  // ado/peer_client.h uses them.
  //
  // Connects with the private data `hello`, and returns the peer's; an earlier connection ends.
  // `refused` without `plugin_peer`, `disconnected` if the peer cannot be reached or refuses.
  virtual Task<Answer<std::string>> connect_peer(std::string hello) = 0;
  // `refused` if the message is longer than the shard accepts itself, `disconnected` if the
  // connection has ended.
  virtual Task<CallStatus> send_to_peer(std::string message) = 0;
  // Waits for the next message.
  virtual Task<Answer<std::string>> receive_from_peer() = 0;
};

class Plugin {
 public:
  virtual ~Plugin() = default;

  // Called when a shard has connected. A plugin undoes here what a failure has
  // interrupted.
  virtual Task<> launched(Services&) { co_return; }
  // Executes an invocation or a signal. Several plugins are called in turn. An exception becomes
  // the error of the invocation; the process continues.
  virtual Task<Result> do_work(Services& services, const Invocation& work) = 0;
  // Reports an event of another member of the shard's cluster (section 5). Called between
  // invocations, in the order in which the shard learns of the events. After launched() and before
  // the first invocation, each current member is reported as having joined; earlier events are not
  // reported. Exceptions are ignored: the process continues, and the other plugins are told, too.
  virtual void cluster_event(const ClusterEvent&) {}
  // Called before the process ends. Exceptions are ignored.
  virtual void shut_down() {}
};

// The object that a plugin's shared object exports as `extern "C"`, under the name kPluginSymbol.
struct PluginEntry {
  std::uint32_t interface_version = kPluginInterface;
  Plugin* (*create)(const char* argument) = nullptr;  // the caller deletes the plugin
};
inline constexpr const char* kPluginSymbol = "perdura_mcas_plugin";

}  // namespace perdura::systems::mcas::ado
