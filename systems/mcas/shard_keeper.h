// Keeps alive what a request's task uses: the shard, the session with its connection and buffers,
// and the pool.
#pragma once

#include <memory>

#include "systems/mcas/shard.h"

namespace perdura::systems::mcas {

// Must be created before the task, since the session may have ended before the task starts.
class Shard::Keeper {
 public:
  Keeper(Shard& shard, const Job& job)
      : shard_(shard.shared_from_this()), session_(job.session), pool_(job.pool) {
    ++session_->tasks;
    if (pool_ != nullptr) ++pool_->users;
  }
  Keeper(Keeper&& other) noexcept = default;
  Keeper& operator=(Keeper&&) = delete;
  ~Keeper() {
    if (shard_ == nullptr) return;  // moved from
    if (pool_ != nullptr) shard_->leave(*pool_);
    shard_->leave(*session_);
  }

 private:
  std::shared_ptr<Shard> shard_;
  Session* session_;
  Pool* pool_;
};

}  // namespace perdura::systems::mcas
