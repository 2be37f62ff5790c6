// Stores of Erda that have to be cleaned all the time.
#pragma once

#include <random>

#include "systems/registry/registry.h"
#include "tests/services/kv/conformance/recording.h"

namespace perdura::systems::test {

inline constexpr Bytes kValue = 64;
inline constexpr Bytes kObject = 88;  // 5 of header, 16 of key, the value, to 8 bytes

struct Shape {
  std::uint64_t heads = 1;
  std::uint64_t regions = 2;
  Bytes region = 0;
  Bytes segment = 0;

  Bytes size() const { return regions * region; }
};

inline kv::KvConfig config_of(const Shape& shape, std::uint64_t records) {
  return {.key_size = 16,
          .value_size = kValue,
          .max_value_size = 4 * kValue,
          .records = records,
          .writes = records,
          .sessions = 16,
          .parameters = {{"heads", shape.heads},
                         {"regions", shape.regions},
                         {"region_bytes", shape.region},
                         {"segment_bytes", shape.segment},
                         // Longer than any thread is without a core.
                         {"client_timeout_ms", 60'000}}};
}

// What a server's partition says of its space, also after it has gone.
class Gauge {
 public:
  void watch(const kv::KvPartition& partition) { partition_ = &partition; }
  void forget() {
    last_ = partition_->space();
    partition_ = nullptr;
  }
  kv::KvSpace now() const { return partition_ != nullptr ? partition_->space() : kv::KvSpace{}; }
  // When it went.
  kv::KvSpace last() const { return last_; }

 private:
  const kv::KvPartition* partition_ = nullptr;
  kv::KvSpace last_;
};

inline Task<> serve(Thread& thread, kv::KvConfig config, Gauge* gauge = nullptr) {
  const auto partition = find_kv_system("erda").open(thread, "pool", config);
  struct Watch {
    Gauge* gauge;
    ~Watch() {
      if (gauge != nullptr) gauge->forget();
    }
  } watch{gauge};
  if (gauge != nullptr) gauge->watch(*partition);
  co_await partition->serve();
}

inline Task<std::unique_ptr<kv::KvSession>> connect(Thread& thread, kv::KvConfig config) {
  co_return co_await find_kv_system("erda").connect(thread, {0, 0}, config);
}

// What happens to a put, erase or get is for the history to say; the store must not be full.
inline void expect_space(const auto& result) {
  if (!result && result.error() != kv::Error::not_found &&
      result.error() != kv::Error::disconnected) {
    ADD_FAILURE() << to_string(result.error());
  }
}

// Versions that no other client writes.
class Versions {
 public:
  explicit Versions(std::uint32_t client) : next_(client + 1) {}
  std::uint64_t next() { return std::exchange(next_, next_ + kClients); }

 private:
  static constexpr std::uint64_t kClients = 16;
  std::uint64_t next_;
};

}  // namespace perdura::systems::test
