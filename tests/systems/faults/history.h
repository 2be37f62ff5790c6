// A few operations of several clients, each the only writer of its keys, and what may be found of
// them when something has failed.
#pragma once

#include <algorithm>
#include <array>
#include <set>

#include "platform/base/error.h"
#include "platform/sim/sim_platform.h"
#include "systems/registry/registry.h"
#include "tests/services/kv/conformance/support.h"

namespace perdura::systems::test {

inline constexpr Bytes kValueSize = 200;

// What the clients know of a key. Version 0 means absent.
struct Known {
  std::uint64_t acknowledged = 0;
  std::uint64_t uncertain = 0;  // may have taken effect
  std::uint64_t before = 0;     // the version before the acknowledged one
  void begin(std::uint64_t version) { uncertain = version; }
  void end() {
    before = acknowledged;
    acknowledged = uncertain;
  }
};

// A log, where a system has one of fixed size, goes around within the history; Erda's goes through
// several segments and is never cleaned.
inline kv::KvConfig small_config(const kv::KvSystem& system) {
  kv::KvConfig config{.key_size = 16,
                      .value_size = kValueSize,
                      .max_value_size = kValueSize,
                      .records = 16,
                      .writes = 500,
                      .sessions = 8,
                      .parameters = {}};
  if (system.name == "redo-logging" || system.name == "read-after-write") {
    config.parameters["log_slots"] = 16;
  }
  if (system.name == "erda") {
    config.parameters["segment_bytes"] = 4 * KiB;
    config.parameters["region_bytes"] = 64 * KiB;
  }
  return fit(system, config);
}

inline std::vector<Subject> systems_on_sim() {
  std::vector<Subject> subjects;
  for (const kv::KvSystem& system : kv_systems())
    subjects.push_back({std::string(system.name), "sim"});
  return subjects;
}

// The version of a key that a get finds, 0 if it is absent; nothing if it found what is neither.
inline Task<std::optional<std::uint64_t>> version_in(kv::KvSession& session, std::uint64_t number) {
  const Buffer key = key_of(number);
  Buffer into(2 * kValueSize);
  const auto got = co_await session.get(key, into);
  if (!got) {
    EXPECT_EQ(got.error(), kv::Error::not_found)
        << "key " << number << ": " << to_string(got.error());
    if (got.error() != kv::Error::not_found) co_return std::nullopt;
    co_return 0;
  }
  const auto version = version_of(number, std::span(into).first(*got));
  EXPECT_TRUE(version.has_value()) << "torn value of key " << number;
  co_return version;
}

// A session, or null if the server was not there.
inline Task<std::unique_ptr<kv::KvSession>> try_connect(const kv::KvSystem& system,
                                                        Thread& thread) {
  try {
    co_return co_await system.connect(thread, {0, 0}, small_config(system));
  } catch (const PlatformError&) {
  }
  co_return nullptr;
}

// Puts a version of a key, or erases it (version 0).
inline Task<kv::Result<void>> write_version(const kv::KvSystem& system, kv::KvSession& session,
                                            std::uint64_t number, std::uint64_t version) {
  const Buffer key = key_of(number);
  if (version == 0) {
    const auto erased = co_await session.erase(key);
    if (!erased && erased.error() == kv::Error::not_found) co_return kv::Result<void>{};
    co_return erased;
  }
  const Buffer value = value_of(number, version, system.fit_value(kValueSize));
  co_return co_await session.put(key, value);
}

// The store takes writes: every key gets this version and is read again.
inline Task<> write_all(const kv::KvSystem& system, kv::KvSession& session, std::uint64_t keys,
                        std::uint64_t version) {
  for (std::uint64_t number = 0; number < keys; ++number) {
    const auto done = co_await write_version(system, session, number, version);
    EXPECT_TRUE(done.has_value()) << "key " << number;
  }
  for (std::uint64_t number = 0; number < keys; ++number) {
    EXPECT_EQ(co_await version_in(session, number), version) << "key " << number;
  }
}

}  // namespace perdura::systems::test
