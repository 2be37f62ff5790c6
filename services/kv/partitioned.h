// A store of several partitions that is used as one. A hash of its own, which is independent of
// those that partitions use internally, assigns each key to a partition.
#pragma once

#include <memory>
#include <vector>

#include "services/kv/kv.h"

namespace perdura::kv {

// The partition of a key, from 0 to partitions - 1. The hash is charged as CPU work unless there is
// only one partition.
std::uint32_t partition_of(Key key, std::uint32_t partitions);

// The configuration of one partition of a store. Since hashing distributes keys unevenly, a
// partition has room for its share of the keys plus six standard deviations.
KvConfig partition_config(const KvConfig& whole, std::uint32_t partitions);

// A session to every partition, used like one to a store with a single partition.
class PartitionedSession final : public KvSession {
 public:
  // `sessions` has one session for each partition, in their order, and at least one.
  explicit PartitionedSession(std::vector<std::unique_ptr<KvSession>> sessions)
      : sessions_(std::move(sessions)) {}

  // Connects to the partitions; `config` is the configuration of one partition. Throws
  // PlatformError if that fails.
  static Task<std::unique_ptr<PartitionedSession>> connect(const KvSystem& system, Thread& thread,
                                                           std::vector<fabric::Address> partitions,
                                                           KvConfig config);

  Task<Result<Bytes>> get(Key key, std::span<std::byte> into) override {
    return session_of(key).get(key, into);
  }
  Task<Result<void>> put(Key key, Value value) override { return session_of(key).put(key, value); }
  Task<Result<void>> erase(Key key) override { return session_of(key).erase(key); }
  SessionCounts counts() const override;
  std::vector<double> metrics() const override;

 private:
  KvSession& session_of(Key key) {
    return *sessions_[partition_of(key, static_cast<std::uint32_t>(sessions_.size()))];
  }

  std::vector<std::unique_ptr<KvSession>> sessions_;
};

}  // namespace perdura::kv
