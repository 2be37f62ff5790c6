// The callback interface (MCAS, Table 4): what active data objects may do to a pool besides
// changing values in place. The shard itself uses these functions to create the values and memory
// of invocations.
//
// A process has mapped the memory that the pool had when it was launched. Nothing is created for a
// process in other memory: the status is `unseen` instead.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "systems/mcas/ado/callbacks.h"
#include "systems/mcas/growth.h"
#include "systems/mcas/pools.h"

namespace perdura::systems::mcas {

class PoolCallbacks final : public ado::Callbacks {
 public:
  // Works on one pool at a time, which use() selects.
  PoolCallbacks(const Pools& pools, Growth& growth, Bytes max_key_size)
      : pools_(pools), growth_(growth), max_key_size_(max_key_size) {}
  void use(Pool& pool) { pool_ = &pool; }
  Pool& pool() const { return *pool_; }

  // Sets the memory that the process has mapped.
  void show(std::vector<ByteRange> parts) { parts_ = std::move(parts); }
  // Takes over a lock that the shard got for an invocation; unlock() releases it.
  void hold(const std::string& key, ado::LockMode mode, KeyLocks::Lock lock);

  // For the shard, in any memory of the pool: creates a value under a key that does not exist, with
  // zeros or with the previous contents of its memory; and allocates memory that belongs to no key,
  // with these bytes.
  Task<ado::Created> create_value(std::string key, Bytes length, bool zeros);
  Task<ado::Created> keep(std::span<const std::byte> bytes);

  Task<> until_usable() override { return Growth::until_over(*pool_); }
  bool sees(const ByteRange& range) override;
  bool try_lock(const std::string& key, ado::LockMode mode) override;
  void unlock(const std::string& key, ado::LockMode mode) override;
  std::optional<ByteRange> find(const std::string& key) override;
  std::optional<std::string> read(const std::string& key) override;
  Task<ado::Created> create(std::string key, Bytes length) override;
  Task<ado::Created> resize(std::string key, Bytes length) override;
  bool erase(const std::string& key) override;
  Task<ado::Created> allocate(Bytes length) override;
  bool free(ByteRange range) override;
  void for_each(const std::function<void(const std::string&, ByteRange)>& visit) override;
  Task<KeySearchResult> find_key(std::string expression, ado::Matching matching,
                                 std::uint64_t position) override;
  ado::PoolInfo info() override;

 private:
  struct Held {
    ado::LockMode mode = ado::LockMode::read;
    KeyLocks::Lock lock;
  };
  enum class Where : std::uint8_t { seen, anywhere };
  using Write = std::function<void(ByteRange)>;
  using KeyOf = std::function<Key(ByteRange)>;

  // Returns true if it is valid as the key of a value.
  bool is_key(const std::string& key) const;
  // Returns the result of `use(engine)`, or nothing if the pool is damaged or is found to be by it.
  template <class Use>
  auto guarded(Use use) const -> std::optional<std::invoke_result_t<Use, Engine&>>;
  // The range of a key's value; nothing if there is none.
  std::optional<ByteRange> range_of(Key key) const;
  // Reserves memory, calls `write` to fill it, and puts it as the value of the key that
  // `key(range)` returns. That key must stay valid until the task has ended.
  Task<ado::Created> put(Bytes length, Where where, Write write, KeyOf key);
  ado::Created placed(ado::Created created, const std::string& key);
  bool erase_item(Key key);
  Task<ado::Created> put_allocation(Bytes length, Where where, Write write);
  void write_zeros(ByteRange range) const;

  const Pools& pools_;
  Growth& growth_;
  Bytes max_key_size_;
  Pool* pool_ = nullptr;
  std::vector<ByteRange> parts_;
  using AllHeld = std::multimap<std::string, Held>;
  AllHeld held_;
  SpareNodes<AllHeld> spare_;
};

}  // namespace perdura::systems::mcas
