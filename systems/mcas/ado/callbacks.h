// What the host of active data objects needs of a shard to execute their callbacks (MCAS, Table 4).
// The shard implements it for a pool. All functions are called on the shard's thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "systems/mcas/ado/messages.h"
#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas::ado {

struct Created {
  CallStatus status = CallStatus::done;
  Place value{};
};

class Callbacks {
 public:
  virtual ~Callbacks() = default;

  // Returns when the pool can be used: no other task is in the middle of changing its table. To be
  // awaited before the functions below that are no tasks.
  virtual Task<> until_usable() { co_return; }
  // Whether the process sees all of this place. A pool that gets more memory has some that its
  // process does not see.
  virtual bool sees(const Place&) { return true; }

  // Locks of keys, also of those that do not exist. They are taken at once or not at all.
  virtual bool try_lock(const std::string& key, LockMode mode) = 0;
  virtual void unlock(const std::string& key, LockMode mode) = 0;

  // The place of a value that another process may read and, if the key is locked for it, change
  // there. It stays while the key is locked. Of length 0 if a change of another key may move the
  // value, as when it lies in the table of the engine. Nothing if there is no such key.
  virtual std::optional<Place> find(const std::string& key) = 0;
  // A copy of a value.
  virtual std::optional<std::string> read(const std::string&) { return std::nullopt; }
  // A key that does not exist and is locked gets a value of zeros; durable when it returns. `done`,
  // `out_of_space`, `refused` if a key cannot be so, or `unseen`: there is room only in memory that
  // the process does not see. As in all that follows, nothing has changed unless it is done.
  virtual Task<Created> create(std::string key, Bytes length) = 0;
  // Changes the length of a value and keeps its bytes; durable when it returns. `done`,
  // `not_found`, `out_of_space` or `unseen`.
  virtual Task<Created> resize(std::string key, Bytes length) = 0;
  // False if there is no such key.
  virtual bool erase(const std::string& key) = 0;

  // Memory that belongs to no key, until it is freed, over restarts too. `done`, `out_of_space` or
  // `unseen`.
  virtual Task<Created> allocate(Bytes length) = 0;
  // False if not just this is allocated.
  virtual bool free(Place place) = 0;

  virtual void for_each(const std::function<void(const std::string&, Place)>& visit) = 0;
  // The next key that matches and its position, from a position on. Without a secondary index:
  // `refused`.
  struct Found {
    CallStatus status = CallStatus::refused;
    std::string key;
    std::uint64_t position = 0;
  };
  virtual Task<Found> find_key(std::string, Matching, std::uint64_t) { co_return Found{}; }
  virtual PoolInfo info() = 0;
};

}  // namespace perdura::systems::mcas::ado
