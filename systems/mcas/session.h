// A session of the pools' interface (services/objects/objects.h).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "services/objects/objects.h"
#include "systems/mcas/client.h"

namespace perdura::systems::mcas {

// The memory that a session has registered for direct transfers.
class DirectMemories {
 public:
  explicit DirectMemories(fabric::Endpoint& endpoint) : endpoint_(endpoint) {}
  DirectMemories(const DirectMemories&) = delete;
  DirectMemories& operator=(const DirectMemories&) = delete;
  ~DirectMemories();

  objects::DirectMemory add(pmem::Region& region);
  void remove(objects::DirectMemory memory);
  // Returns `invalid` if the buffer is not within registered memory.
  objects::Result<Transfer> transfer_of(const objects::DirectBuffer& buffer, Bytes value_offset);

 private:
  fabric::Endpoint& endpoint_;
  std::vector<fabric::MemoryRegion> memories_;  // by number; a removed one has no region
};

class PoolsSession final : public objects::Session {
 public:
  template <class T>
  using Result = objects::Result<T>;

  // Throws PlatformError if connecting fails.
  static Task<std::unique_ptr<objects::Session>> connect(Thread& thread, fabric::Address shard,
                                                         objects::Config config);

  Task<Result<std::unique_ptr<objects::Pool>>> create_pool(std::string_view name, Bytes size,
                                                           objects::PoolFlags flags) override;
  using objects::Session::open_pool;
  Task<Result<std::unique_ptr<objects::Pool>>> open_pool(std::string_view name,
                                                         objects::PoolFlags flags,
                                                         Bytes size) override;
  Task<Result<void>> delete_pool(std::string_view name) override;
  Task<Result<objects::ShardStatistics>> statistics() override;
  Result<objects::DirectMemory> register_direct_memory(pmem::Region& region) override;
  void unregister_direct_memory(objects::DirectMemory memory) override;

 private:
  explicit PoolsSession(std::shared_ptr<Client> client);
  Task<Result<std::unique_ptr<objects::Pool>>> open(RequestKind kind, std::string_view name,
                                                    Bytes size, std::uint8_t flags);

  std::shared_ptr<Client> client_;
  // Shared with the pools, which may outlive the session.
  std::shared_ptr<DirectMemories> memories_;
};

}  // namespace perdura::systems::mcas
