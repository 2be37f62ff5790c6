// One suite for all stores of pools on all platforms: each test is run for every pair.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "services/objects/objects.h"
#include "services/objects/pending.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

namespace perdura::objects::test {

using Buffer = std::vector<std::byte>;

inline Key as_key(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// The error that an operation has ended with; nothing if it was done.
template <class T>
std::optional<Error> error_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error());
}

// A value that says what it is, in each of its bytes.
inline std::string value_of(std::uint64_t number, Bytes length) {
  std::string value(length, '\0');
  std::mt19937_64 random(number);
  for (char& byte : value) byte = static_cast<char>(random());
  return value;
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
  for (const System& system : systems::object_systems()) {
    for (const std::string& platform : perdura::test::platform_names()) {
      subjects.push_back({std::string(system.info.name), platform});
    }
  }
  return subjects;
}
inline std::string subject_name(const testing::TestParamInfo<Subject>& info) {
  std::string name = info.param.system + "_" + info.param.platform;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Memory of a client for direct transfers.
class DirectMemoryOf {
 public:
  DirectMemoryOf(Session& session, Thread& thread, Bytes size)
      : session_(session),
        region_(thread.node.create_region(
            "direct memory of port " + std::to_string(thread.endpoint.address().port), size,
            pmem::Medium::dram)),
        memory_(session.register_direct_memory(*region_).value()) {}
  ~DirectMemoryOf() { session_.unregister_direct_memory(memory_); }

  DirectBuffer buffer(Bytes offset, Bytes length) const { return {memory_, offset, length}; }
  DirectBuffer holding(std::string_view text, Bytes offset = 0) {
    std::copy(text.begin(), text.end(), reinterpret_cast<char*>(region_->data() + offset));
    return buffer(offset, text.size());
  }
  std::string text(Bytes offset, Bytes length) const {
    return text_of(std::span(region_->data() + offset, length));
  }

 private:
  Session& session_;
  std::unique_ptr<pmem::Region> region_;
  DirectMemory memory_;
};

class ObjectsTest : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override { platform_ = perdura::test::make_platform(GetParam().platform, 4); }

  const System& system() const { return systems::find_object_system(GetParam().system); }

  using Client = std::function<Task<>(Session&, Thread&)>;
  void serve() {
    platform_->start_service(0, 0, CompletionMode::polling, [this](Thread& thread) -> Task<> {
      const auto shard = system().open(thread, "shard", config_);
      EXPECT_EQ(shard->audit(), "");
      co_await shard->serve();
    });
  }
  // A client thread on one of the other nodes.
  void connect(Client client) {
    const NodeId node = 1 + next_client_ % 3;
    const auto port = static_cast<fabric::Port>(10 + next_client_++);
    platform_->start(node, port, CompletionMode::polling,
                     [this, client = std::move(client)](Thread& thread) -> Task<> {
                       const auto session = co_await connect_to(thread);
                       co_await client(*session, thread);
                     });
  }
  Task<std::unique_ptr<Session>> connect_to(Thread& thread) {
    return system().connect(thread, {0, 0}, config_);
  }
  // Serves one client.
  void run(Client client) {
    serve();
    connect(std::move(client));
    platform_->run();
  }

  Config config_{.memory = 4 * MiB,
                 .max_message_value = 2 * KiB,
                 .sessions = 8,
                 .parameters = {{"direct_piece", 4 * KiB}}};
  std::unique_ptr<Platform> platform_;
  std::uint32_t next_client_ = 0;
};

}  // namespace perdura::objects::test
