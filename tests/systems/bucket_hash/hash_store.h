// Stores with the hash indexes, as tests of one of them and of all need them.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "platform/base/error.h"
#include "platform/faults/faulty_thread.h"
#include "systems/registry/registry.h"
#include "tests/systems/bucket_hash/workers.h"

namespace perdura::systems::test {

inline constexpr Bytes kHashValue = 15;

class HashStore : public KvTest {
 protected:
  static Task<kv::Result<void>> put(kv::KvSession& session, std::uint64_t number,
                                    std::uint64_t version) {
    const Buffer key = key_of(number);
    const Buffer value = value_of(number, version, kHashValue);
    co_return co_await session.put(key, value);
  }
  static Task<kv::Result<void>> erase(kv::KvSession& session, std::uint64_t number) {
    const Buffer key = key_of(number);
    co_return co_await session.erase(key);
  }
  // The version that a get finds, 0 if none.
  static Task<std::uint64_t> get(kv::KvSession& session, std::uint64_t number) {
    const Buffer key = key_of(number);
    Buffer into(kHashValue);
    const auto got = co_await session.get(key, into);
    if (!got) {
      EXPECT_EQ(got.error(), kv::Error::not_found);
      co_return 0;
    }
    const auto version = version_of(number, std::span(into).first(*got));
    EXPECT_TRUE(version.has_value()) << "torn value of key " << number;
    co_return version.value_or(0);
  }

  // A client whose operations on the fabric are counted.
  using CountedClient = std::function<Task<>(kv::KvSession&, const faults::FaultyThread&)>;
  void connect_counted(CountedClient client) {
    platform().start(
        1, 10, CompletionMode::polling,
        [this, client = std::move(client)](Thread& thread) -> Task<> {
          faults::FaultyThread counted(thread, {});
          const auto session = co_await system().connect(counted.thread(), {0, 0}, config_);
          co_await client(*session, counted);
        });
  }
  // How many READs a get takes that finds this version, 0 for none.
  static Task<std::uint64_t> reads_of_get(kv::KvSession& session,
                                          const faults::FaultyThread& fabric, std::uint64_t number,
                                          std::uint64_t version) {
    const std::uint64_t before = fabric.counts().operations;
    EXPECT_EQ(co_await get(session, number), version) << "key " << number;
    co_return fabric.counts().operations - before;
  }
};

// Of one system, or of all hash indexes.
inline std::vector<Subject> hash_subjects(const std::string& only = {}) {
  std::vector<Subject> subjects = all_subjects();
  std::erase_if(subjects, [&](const Subject& subject) {
    return only.empty() ? !find_kv_system(subject.system).shares_partition : subject.system != only;
  });
  return subjects;
}

// What opening a store says to this configuration, "" if it is taken.
inline std::string refusal_of(const kv::KvSystem& system, const kv::KvConfig& config) {
  std::string message;
  const auto platform = perdura::test::make_platform("sim", 1);
  platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    try {
      system.open(thread, "pool", config);
    } catch (const UsageError& error) {
      message = error.what();
    }
    co_return;
  });
  platform->run();
  return message;
}

inline kv::KvConfig smallest_config() {
  kv::KvConfig config;
  config.value_size = config.max_value_size = kHashValue;
  return config;
}

// Each of these parameters by itself is refused in one line that names it.
inline void expect_parameters_refused(
    const kv::KvSystem& system,
    std::initializer_list<std::pair<std::string, std::uint64_t>> parameters) {
  for (const auto& [name, value] : parameters) {
    kv::KvConfig bad = smallest_config();
    bad.parameters[name] = value;
    const std::string message = refusal_of(system, bad);
    EXPECT_NE(message.find(name), std::string::npos) << name << " " << value << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

}  // namespace perdura::systems::test
