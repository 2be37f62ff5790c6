// The library's pools, which are opened again after the connection to their shard has been made
// again, and memory for direct transfers, which is registered for each connection that uses it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "library/mcas/membership.h"

namespace perdura::mcas {

// Memory, and its registrations with sessions. Used on the membership's thread, except for bytes().
class RegisteredMemory {
 public:
  explicit RegisteredMemory(std::unique_ptr<pmem::Region> region) : region_(std::move(region)) {}
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  std::span<std::byte> bytes() { return {region_->data(), region_->size()}; }
  objects::Result<objects::DirectBuffer> part(const std::shared_ptr<objects::Session>& session,
                                              std::size_t offset, std::size_t length);

 private:
  struct Of {
    std::weak_ptr<objects::Session> session;
    objects::DirectMemory memory;
  };
  std::unique_ptr<pmem::Region> region_;
  std::vector<Of> registered_;
};

class DirectMemory::Impl {
 public:
  Impl(std::shared_ptr<Membership> membership, std::shared_ptr<RegisteredMemory> memory)
      : membership_(std::move(membership)), memory_(std::move(memory)) {}
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  const std::shared_ptr<RegisteredMemory>& memory() const { return memory_; }

 private:
  std::shared_ptr<Membership> membership_;
  std::shared_ptr<RegisteredMemory> memory_;  // shared with operations under way
};

Result<DirectMemory> allocate(const std::shared_ptr<Membership>& membership, std::size_t size);

// The parameters for opening a pool.
struct PoolName {
  std::string name;
  PoolFlags flags{};
  std::uint64_t size = 0;
  bool creates = false;  // the first time, by create_pool
};

// A pool on one shard, used on the membership's thread. Operations share its ownership, since they
// may outlive the handle.
class OpenPool {
 public:
  // A pool in use by an operation; keeps the pool and its session alive.
  struct Use {
    std::shared_ptr<objects::Session> session;
    std::shared_ptr<objects::Pool> pool;
  };

  OpenPool(std::shared_ptr<ShardConnection> shard, PoolName name)
      : shard_(std::move(shard)), name_(std::move(name)) {}

  // Returns the pool, and opens it first if the current session has not opened it yet.
  Task<Result<Use>> use();
  void lost(const Use& use) { shard_->lost(use.session); }
  // Must be called after the first opening: from now on the pool is opened, but not created.
  void now_exists();
  // Closes the pool; it cannot be used anymore.
  static Task<Result<void>> close(std::shared_ptr<OpenPool> self);

 private:
  Task<Result<void>> open(const std::shared_ptr<objects::Session>& session);

  std::shared_ptr<ShardConnection> shard_;
  PoolName name_;
  std::weak_ptr<objects::Session> session_;  // the session in which it is open
  std::weak_ptr<objects::Pool> pool_;
  bool opening_ = false;
  bool closed_ = false;
  WaitList waiting_;
};

class Pool::Impl {
 public:
  Impl(std::shared_ptr<Membership> membership, std::shared_ptr<OpenPool> pool)
      : membership_(std::move(membership)), pool_(std::move(pool)) {}
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const std::shared_ptr<OpenPool>& pool() const { return pool_; }
  Membership& membership() const { return *membership_; }

 private:
  std::shared_ptr<Membership> membership_;
  std::shared_ptr<OpenPool> pool_;
};

// Opens the pool before it returns.
Result<Pool> open(const std::shared_ptr<Membership>& membership,
                  const std::shared_ptr<ShardConnection>& shard, PoolName name);

Task<Result<void>> delete_pool_of(objects::Session& session, const std::string& name);

// Performs an operation on the shard's session.
template <class T, class Operation>
Task<Result<T>> on_session(std::shared_ptr<ShardConnection> shard, Operation operation) {
  const std::shared_ptr<objects::Session> session = co_await shard->session();
  if (session == nullptr) co_return Status::unreachable;
  Result<T> result = co_await operation(*session);
  if (result.status() == Status::disconnected) shard->lost(session);
  co_return result;
}

}  // namespace perdura::mcas
