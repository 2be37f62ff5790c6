// The small store on which a history with failures runs, and its format of keys and values, which
// identifies the put that wrote a value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "services/crash.h"
#include "services/kv/crash_plan.h"
#include "services/kv/kv.h"
#include "services/kv/recorder.h"

namespace perdura::services {

using CrashKey = std::vector<std::byte>;
CrashKey crash_key(std::uint64_t number, Bytes size);

// The lengths of a plan's values, at most as long as the system supports. A value's version
// determines its length.
class CrashLengths {
 public:
  CrashLengths(const kv::KvSystem& system, const KvCrashPlan& plan) {
    for (const Bytes length : plan.lengths) lengths_.push_back(system.fit_value(length));
  }
  Bytes typical() const { return lengths_.front(); }
  Bytes longest() const { return *std::max_element(lengths_.begin(), lengths_.end()); }
  Bytes of(std::uint64_t version) const { return lengths_[version % lengths_.size()]; }

 private:
  std::vector<Bytes> lengths_;
};

// How the recorder of the history interprets keys and values.
class CrashFormat final : public kv::Format {
 public:
  explicit CrashFormat(const CrashLengths& lengths) : lengths_(lengths) {}
  std::uint64_t key_number(kv::Key key) override;
  // Returns nullopt for a value that no single put of the history has written.
  std::optional<std::uint64_t> version(kv::Key key, kv::Value value) override;

 private:
  const CrashLengths& lengths_;
};

// A store for a history, and the numbers of the keys that it holds at the beginning.
struct CrashStore {
  kv::KvConfig config;
  std::span<const std::uint64_t> filling{};
};

// The system's small store of this number, or the next one into which the plan's values fit.
CrashStore small_crash_store(const kv::KvSystem& system, const CrashSetup& setup,
                             const KvCrashPlan& plan, std::size_t number);

// Replaces the plan's keys in gets by keys that the store is filled with, from the one with the
// index `first` on: these are the keys that the store moves when it makes room.
void get_filling(KvCrashPlan& plan, std::span<const std::uint64_t> filling, std::size_t first);

}  // namespace perdura::services
