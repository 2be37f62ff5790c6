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

  // Locks of keys, also of those that do not exist. They are taken at once or not at all.
  virtual bool try_lock(const std::string& key, LockMode mode) = 0;
  virtual void unlock(const std::string& key, LockMode mode) = 0;

  // The place of a value that another process may read and, if the key is locked for it, change
  // there. It stays while the key is locked. Of length 0 if a change of another key may move the
  // value, as when it lies in the table of the engine. Nothing if there is no such key.
  virtual std::optional<Place> find(const std::string& key) = 0;
  // A key that does not exist and is locked gets a value of zeros; durable when it returns. `done`
  // or `out_of_space`.
  virtual Task<Created> create(std::string key, Bytes length) = 0;
  // Changes the length of a value and keeps its bytes; durable when it returns. `done`, `not_found`
  // or `out_of_space`.
  virtual Task<Created> resize(std::string key, Bytes length) = 0;
  // False if there is no such key.
  virtual bool erase(const std::string& key) = 0;

  // Memory that belongs to no key, until it is freed, over restarts too. Nothing if there is none.
  virtual std::optional<Place> allocate(Bytes length) = 0;
  // False if nothing is allocated there.
  virtual bool free(Place place) = 0;

  virtual void for_each(const std::function<void(const std::string&, Place)>& visit) = 0;
  // The next key that matches and its position, from a position on. Without a secondary index:
  // `refused`.
  struct Found {
    CallStatus status = CallStatus::refused;
    std::string key;
    std::uint64_t position = 0;
  };
  virtual Found find_key(const std::string&, Matching, std::uint64_t) { return {}; }
  virtual PoolInfo info() = 0;
};

}  // namespace perdura::systems::mcas::ado
