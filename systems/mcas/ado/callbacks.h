// The operations of a pool that the host of active data objects needs to execute their callbacks
// (MCAS, Table 4). The shard implements them. All functions are called on the shard's thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "systems/mcas/ado/messages.h"
#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas::ado {

struct Created {
  CallStatus status = CallStatus::done;
  ByteRange value{};
};

class Callbacks {
 public:
  virtual ~Callbacks() = default;

  // Returns when no other task is in the middle of changing the pool's table. Must be awaited
  // before any of the functions below that are not tasks.
  virtual Task<> until_usable() { co_return; }
  // Returns true if the process has mapped all of this range. A pool may have grown by memory that
  // its process has not mapped.
  virtual bool sees(const ByteRange&) { return true; }

  // Locks keys, also keys that do not exist. A lock is taken at once or not at all.
  virtual bool try_lock(const std::string& key, LockMode mode) = 0;
  virtual void unlock(const std::string& key, LockMode mode) = 0;

  // The range of a value, or nothing if the key does not exist. Another process may read the value
  // there and, if the key is locked for it, change it. The range is valid while the key is locked.
  // Its length is 0 if a change of another key may move the value, as when the value is stored in
  // the engine's table.
  virtual std::optional<ByteRange> find(const std::string& key) = 0;
  // Returns a copy of a value, or nothing if the key does not exist.
  virtual std::optional<std::string> read(const std::string&) { return std::nullopt; }
  // Creates a value of zeros under a key that is locked and does not exist; it is durable when this
  // returns. The status is `done`, `out_of_space`, `unseen` if there is room only in memory that
  // the process has not mapped, or `refused` if the key is invalid, the value too long or the pool
  // damaged. As with all functions below, nothing has changed unless the status is `done`.
  virtual Task<Created> create(std::string key, Bytes length) = 0;
  // Changes the length of a value and keeps its bytes; durable when it returns. The status is
  // `done`, `not_found`, `out_of_space`, `unseen` or `refused`.
  virtual Task<Created> resize(std::string key, Bytes length) = 0;
  // Returns false if the key does not exist.
  virtual bool erase(const std::string& key) = 0;

  // Allocates memory that belongs to no key until it is freed, also across restarts. The status is
  // `done`, `out_of_space`, `unseen` or `refused`.
  virtual Task<Created> allocate(Bytes length) = 0;
  // Returns false unless exactly this range is allocated.
  virtual bool free(ByteRange range) = 0;

  virtual void for_each(const std::function<void(const std::string&, ByteRange)>& visit) = 0;
  // Finds the first key at or after a position that matches, and its position. The status is
  // `done`, `not_found`, or `refused` without a secondary index or for an invalid expression.
  struct KeySearchResult {
    CallStatus status = CallStatus::refused;
    std::string key;
    std::uint64_t position = 0;
  };
  virtual Task<KeySearchResult> find_key(std::string, Matching, std::uint64_t) {
    co_return KeySearchResult{};
  }
  virtual PoolInfo info() = 0;
};

}  // namespace perdura::systems::mcas::ado
