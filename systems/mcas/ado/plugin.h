// What writers of active data objects implement and what they are given (MCAS, sections 4.1 and
// 4.2).
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
// A process executes one work after the other. While it executes one, the shard keeps the target
// locked, and serves others. A value is changed in place, with stores that go through the region of
// memory(), and is to be durable and whole after a failure at any moment: containers/arena.h helps.
// All else that changes the pool is asked of the shard by Services.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "platform/runtime/task.h"
#include "systems/mcas/ado/messages.h"
#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas::ado {

// Changes with everything in this header, in peer_client.h and in containers/, or that they
// include, on which a plugin that is loaded depends.
inline constexpr std::uint32_t kPluginInterface = 4;

struct Invocation {
  std::string key{};
  Place value{};                  // of length 0: the key has none that could be changed in place
  std::vector<Place> detached{};  // memory of the pool besides, that the client has put with it
  std::string request{};
  bool is_new = false;

  // Whether it tells of another operation than an invocation.
  bool is_signal() const { return request.starts_with(kSignalPrefix); }
};

struct Result {
  std::vector<std::string> responses{};
  std::string error{};  // not empty: the work has failed, and this is why, in one line
};

template <class T>
struct Answer {
  CallStatus status = CallStatus::done;
  T value{};
  explicit operator bool() const { return status == CallStatus::done; }
};

// The callback interface (Table 4). Keys that a work creates or opens are locked until it ends,
// unless it unlocks them before. Whoever holds a lock does not wait for another one: a key that is
// in use is answered `locked`. If the shard dies, the calls throw PlatformError.
//
// A process sees the memory that its pool had when it was launched. What lies in memory that the
// pool has got since is answered `unseen`. Then a work must fail, and must not have changed
// anything: it is executed again by a new process, which sees that memory, and nobody is told.
class Services {
 public:
  virtual ~Services() = default;

  // The memory of the shard in this process. What a plugin may touch there is the values of keys
  // that it has locked, and what it has allocated.
  virtual Memory memory() const = 0;

  // A new key with a value of zeros, and its place; or `exists`, `out_of_space`.
  virtual Task<Answer<Place>> create_key(std::string key, Bytes length) = 0;
  // The place of a value, of length 0 if it cannot be changed in place; or `not_found`.
  virtual Task<Answer<Place>> open_key(std::string key, LockMode mode) = 0;
  virtual Task<CallStatus> erase_key(std::string key) = 0;
  // The value of a key that this work has locked for writing gets another length, and perhaps
  // another place, which is the answer. Its bytes stay; those beyond are zeros.
  virtual Task<Answer<Place>> resize_value(std::string key, Bytes length) = 0;
  // Memory that belongs to no key, until it is freed.
  virtual Task<Answer<Place>> allocate_memory(Bytes length) = 0;
  // All of it at once: `not_found`, and nothing is freed, if the place or its length is not what
  // was allocated.
  virtual Task<CallStatus> free_memory(Place place) = 0;
  // All keys with their values' places, which are not locked and may change at any time. `refused`
  // if there are too many for a message.
  virtual Task<Answer<std::vector<Reference>>> get_references() = 0;
  // The same in pieces, of the pool as it was at the first call: from `position` on, at first 0,
  // which becomes that of the next piece. The last piece is empty.
  virtual Task<Answer<std::vector<Reference>>> iterate(std::uint64_t& position) = 0;
  // The next key from a position on, at first 0, that matches; it is not locked. `position` becomes
  // that behind it. `refused` if the pool has no secondary index.
  virtual Task<Answer<std::string>> find_key(std::string expression, Matching matching,
                                             std::uint64_t& position) = 0;
  virtual Task<Answer<PoolInfo>> get_pool_info() = 0;
  virtual Task<CallStatus> unlock(std::string key) = 0;
  // A copy of the value of a key that this work has locked, also of one that cannot be changed in
  // place. `refused` if it is too long for a message.
  virtual Task<Answer<std::string>> read_value(std::string key) = 0;

  // To be a client of the shard that `plugin_peer` names (section 2: back-flow), which
  // ado/peer_client.h does by messages over one connection. It lives as long as the process.
  // Connects, with this private data, and answers that of the peer; an older connection ends.
  // `refused` without `plugin_peer`, `disconnected` if the peer is not reached or refuses.
  virtual Task<Answer<std::string>> connect_peer(std::string hello) = 0;
  // `refused` if the message is longer than the shard's own, `disconnected` if the connection has
  // ended.
  virtual Task<CallStatus> send_to_peer(std::string message) = 0;
  // Waits for the next message.
  virtual Task<Answer<std::string>> receive_from_peer() = 0;
};

class Plugin {
 public:
  virtual ~Plugin() = default;

  // A shard has connected. The place to undo what a failure has interrupted.
  virtual Task<> launched(Services&) { co_return; }
  // An invocation or a signal. Several plugins are called in turn. What it throws is the error of
  // the work; the process goes on.
  virtual Task<Result> do_work(Services& services, const Invocation& work) = 0;
  // Of another member of the shard's cluster (section 5), between works, in the order in which the
  // shard learns it. Behind launched(), and before the first work, each member that is there then
  // is said to have joined; of what was before a process hears nothing. What it throws is nobody's
  // error: the process goes on, and other plugins hear of the event.
  virtual void cluster_event(const ClusterEvent&) {}
  // The process ends. What it throws changes nothing.
  virtual void shut_down() {}
};

// What a shared object with a plugin exports, as `extern "C"`, under the name kPluginSymbol.
struct PluginEntry {
  std::uint32_t interface_version = kPluginInterface;
  Plugin* (*create)(const char* argument) = nullptr;  // deleted by the caller
};
inline constexpr const char* kPluginSymbol = "perdura_mcas_plugin";

}  // namespace perdura::systems::mcas::ado
