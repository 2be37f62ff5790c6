// What every platform must do, written against perdura::Platform only. A platform joins by one line
// in a source file of its own (see tests/platform/shm/conformance.cc):
//
//   PERDURA_CONFORMANCE(Shm, perdura::conformance::cases(make_shm));
//
// Every test runs twice, with threads that poll and with threads that sleep until an event. No test
// waits by sleeping for something that another thread does, except in polling loops.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "platform/platform.h"

namespace perdura::conformance {

// What a test needs of the platform that it runs on.
struct Options {
  NodeId node_count = 2;
  Machines machines{};
  // Attempts of a sender that finds no receive buffer; negative: for ever.
  int receiver_not_ready_retries = -1;
  Picoseconds connection_timeout = std::chrono::seconds(10);
};

// Where a new platform's persistent memory is to be: an empty directory below PERDURA_TEST_PM, a
// directory or a DAX device; empty, the platform's own choice, where that is not set.
std::string new_pm_directory();

// All nodes are in the calling process.
using Factory = std::function<std::unique_ptr<Platform>(const Options&)>;

struct Case {
  Factory make;
  CompletionMode mode = CompletionMode::polling;
  // What the platform needs and this host has not: then its tests are skipped.
  std::string missing{};
  // What its device lacks of the following is not tested.
  fabric::Capabilities can{.commits = true};
  // A sender that finds no receive buffer gives up after so many attempts as it is told to make.
  bool gives_up = true;
};
inline std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << (c.mode == CompletionMode::polling ? "polling" : "event");
}
inline std::vector<Case> cases(const Factory& make) {
  return {{make, CompletionMode::polling}, {make, CompletionMode::event}};
}
inline std::string case_name(const testing::TestParamInfo<Case>& info) {
  return info.param.mode == CompletionMode::polling ? "polling" : "event";
}

inline constexpr std::uint32_t kReceiveDepth = 16;
inline constexpr std::uint32_t kMessage = 256;  // bytes of each receive buffer
inline constexpr Bytes kMemory = 64 * KiB;      // of each side, besides the receive buffers

// One side of a connection with all that a test needs. `memory` is registered for everything, and
// so is what the peer has: `there` is the start of its memory.
struct Side {
  explicit Side(Thread& on_thread) : thread(on_thread) {}

  Thread& thread;
  std::unique_ptr<pmem::Region> region;
  std::unique_ptr<pmem::Region> buffers;
  fabric::MemoryRegion memory;
  fabric::MemoryRegion buffer_memory;
  std::unique_ptr<fabric::ReceiveQueue> receive_queue;
  fabric::CompletionQueue completions;
  std::unique_ptr<fabric::QueuePair> queue_pair;
  fabric::RemoteAddress there;
  Platform::Barrier* barrier = nullptr;

  // Both sides come to the same line.
  Task<> meet() { return barrier->arrive_and_wait(); }

  fabric::LocalBuffer local(Bytes offset, std::uint32_t length) const {
    return memory.local(offset, length);
  }
  void post_receive(std::uint64_t id, std::uint32_t length = kMessage) {
    receive_queue->post(buffer_memory.local(id * kMessage, length), id);
  }
};

struct PairOptions {
  Options platform;
  std::uint32_t receives_posted = kReceiveDepth;  // on both sides, before they connect
  std::uint32_t send_depth = 64;
  pmem::Medium buffers = pmem::Medium::dram;
  pmem::Medium memory = pmem::Medium::dram;
};

class Conformance : public testing::TestWithParam<Case> {
 protected:
  using Body = std::function<Task<>(Side&)>;

  void SetUp() override {
    if (!GetParam().missing.empty()) GTEST_SKIP() << GetParam().missing;
  }

  CompletionMode mode() const { return GetParam().mode; }
  std::unique_ptr<Platform> make(const Options& options = {}) const {
    return GetParam().make(options);
  }

  // Runs a server on node 0 and a client on node 1, connected to each other.
  void connected(const PairOptions& options, const Body& server, const Body& client) const;
  void connected(const Body& server, const Body& client) const { connected({}, server, client); }
  // The same with a server that does nothing until the client is done.
  void with_idle_server(const PairOptions& options, const Body& client) const;
  void with_idle_server(const Body& client) const { with_idle_server({}, client); }

  // The parts, for tests that connect by themselves.
  static void prepare(Side& side, const PairOptions& options);
  static Task<> accept(Side* side, PairOptions options);
  static Task<> connect(Side* side, fabric::Address to, PairOptions options);
};

class FabricOperations : public Conformance {};
class FabricOrder : public Conformance {};
class FabricAccess : public Conformance {};
class FabricReceive : public Conformance {};
class FabricConnection : public Conformance {};
class FabricContention : public Conformance {};
class PmemRegion : public Conformance {};
class PmemAccounting : public Conformance {};
class NodeAccounting : public Conformance {};
class Runtime : public Conformance {};
class PlatformRun : public Conformance {};
class PlatformThreads : public Conformance {};
// Of platforms whose nodes share memory.
class Rings : public Conformance {};

// --- small helpers ---------------------------------------------------------------------

// Counts when it is destroyed, be it in a frame or on a stack.
struct Witness {
  std::atomic<int>* destroyed;
  explicit Witness(std::atomic<int>* counter) : destroyed(counter) {}
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  ~Witness() { ++*destroyed; }
};

std::vector<std::byte> bytes_of(std::string_view text);
// Bytes that differ from place to place and from seed to seed.
std::vector<std::byte> pattern(std::size_t size, unsigned seed = 0);
std::vector<std::byte> contents(const pmem::Region& region, Bytes offset, std::size_t size);
std::string text_of(const fabric::LocalBuffer& buffer);

}  // namespace perdura::conformance

// In a test: skips it where the device lacks a capability that it is about.
#define PERDURA_NEEDS(capability)                                                  \
  do {                                                                             \
    if (!GetParam().can.capability) GTEST_SKIP() << "the device: no " #capability; \
  } while (false)

#define PERDURA_CONFORMANCE_SUITE(platform, suite, cases)                         \
  namespace perdura::conformance {                                                \
  INSTANTIATE_TEST_SUITE_P(platform, suite, testing::ValuesIn(cases), case_name); \
  }
#define PERDURA_CONFORMANCE(platform, cases)                   \
  PERDURA_CONFORMANCE_SUITE(platform, FabricOperations, cases) \
  PERDURA_CONFORMANCE_SUITE(platform, FabricOrder, cases)      \
  PERDURA_CONFORMANCE_SUITE(platform, FabricAccess, cases)     \
  PERDURA_CONFORMANCE_SUITE(platform, FabricReceive, cases)    \
  PERDURA_CONFORMANCE_SUITE(platform, FabricConnection, cases) \
  PERDURA_CONFORMANCE_SUITE(platform, FabricContention, cases) \
  PERDURA_CONFORMANCE_SUITE(platform, PmemRegion, cases)       \
  PERDURA_CONFORMANCE_SUITE(platform, PmemAccounting, cases)   \
  PERDURA_CONFORMANCE_SUITE(platform, NodeAccounting, cases)   \
  PERDURA_CONFORMANCE_SUITE(platform, Runtime, cases)          \
  PERDURA_CONFORMANCE_SUITE(platform, PlatformRun, cases)      \
  PERDURA_CONFORMANCE_SUITE(platform, PlatformThreads, cases)
