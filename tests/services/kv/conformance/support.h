// One suite for all key-value systems on all platforms: each test is run for every pair.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "services/kv/kv.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

namespace perdura::systems::test {

using Buffer = std::vector<std::byte>;

inline Buffer to_bytes(std::string_view text) {
  Buffer bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// A key of exactly `size` bytes that contains the number.
inline Buffer key_of(std::uint64_t number, Bytes size = 16) {
  Buffer key(size, std::byte{'k'});
  std::memcpy(key.data(), &number, std::min<Bytes>(size, sizeof number));
  return key;
}

// A value that says what it is: every 8 bytes are a mix of key number, version and place, so that a
// torn or invented value is recognized. At least 8 bytes.
inline Buffer value_of(std::uint64_t key, std::uint64_t version, Bytes size) {
  Buffer value(size);
  for (Bytes i = 0; i < size; i += 8) {
    const std::uint64_t word =
        version << 32 ^ (key * 0x9E3779B97F4A7C15 + i * 0xD1B54A32D192ED03 + size) >> 32;
    std::memcpy(value.data() + i, &word, std::min<Bytes>(8, size - i));
  }
  return value;
}

// The version, if the bytes are a whole value of this key.
inline std::optional<std::uint64_t> version_of(std::uint64_t key,
                                               std::span<const std::byte> value) {
  std::uint64_t word = 0;
  if (value.size() < 8) return std::nullopt;
  std::memcpy(&word, value.data(), 8);
  const Buffer expected = value_of(key, word >> 32, value.size());
  if (!std::equal(value.begin(), value.end(), expected.begin())) return std::nullopt;
  return word >> 32;
}

// Systems have limits of their own; what a test would like is cut to what its system takes.
inline kv::KvConfig fit(const kv::KvSystem& system, kv::KvConfig config) {
  config.key_size = system.fit_key(config.key_size);
  config.value_size = system.fit_value(config.value_size);
  config.max_value_size = system.fit_value(config.max_value_size);
  // A log's regions are of a gigabyte unless one says so, which takes seconds to make on a busy
  // machine.
  if (find_parameter(system.parameters, "region_bytes") != nullptr) {
    config.parameters = {{"region_bytes", 8 * MiB}, {"segment_bytes", 1 * MiB}};
  }
  return config;
}

struct Subject {
  std::string system;
  std::string platform;
};

inline std::ostream& operator<<(std::ostream& out, const Subject& subject) {
  return out << subject.system << " on " << subject.platform;
}

inline std::vector<Subject> all_subjects() {
  std::vector<Subject> subjects;
  for (const kv::KvSystem& system : kv_systems()) {
    for (const std::string& platform : perdura::test::platform_names()) {
      subjects.push_back({std::string(system.name), platform});
    }
  }
  return subjects;
}

class KvTest : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    platform_ = perdura::test::make_platform(GetParam().platform, 4);
    config_ = fit(system(), config_);
  }

  Bytes fit_value(Bytes size) const { return system().fit_value(size); }
  const kv::KvSystem& system() const { return find_kv_system(GetParam().system); }
  Platform& platform() { return *platform_; }

  using Client = std::function<Task<>(kv::KvSession&, Thread&)>;
  void serve(fabric::Port port = 0, CompletionMode mode = CompletionMode::polling) {
    platform_->start_service(0, port, mode, [this, port](Thread& thread) -> Task<> {
      const auto partition = system().open(thread, "pool" + std::to_string(port), config_);
      co_await partition->serve();
    });
  }
  // A client thread on one of the other nodes.
  void connect(Client client, fabric::Port server_port = 0,
               CompletionMode mode = CompletionMode::polling) {
    const NodeId node = 1 + next_client_ % 3;
    const auto port = static_cast<fabric::Port>(10 + next_client_++);
    platform_->start(
        node, port, mode,
        [this, server_port, client = std::move(client)](Thread& thread) -> Task<> {
          const auto session = co_await system().connect(thread, {0, server_port}, config_);
          co_await client(*session, thread);
        });
  }
  void run() { platform_->run(); }

  kv::KvConfig config_{.key_size = 16,
                       .value_size = 64,
                       .max_value_size = 2048,
                       .records = 500,
                       .writes = 20000,
                       .sessions = 16,
                       .parameters = {}};
  std::unique_ptr<Platform> platform_;
  std::uint32_t next_client_ = 0;
};

inline std::string subject_name(const testing::TestParamInfo<Subject>& info) {
  std::string name = info.param.system + "_" + info.param.platform;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

}  // namespace perdura::systems::test
