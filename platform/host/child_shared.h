// The memory that a child process (platform/child_process.h) on a real platform shares with its
// parent, and an eventfd by which a sleeping parent is woken.
//
//   Shared   the order, as text   the ring to the child   the ring to the parent
//
// The child may write anything there, so its parent trusts nothing of it but messages.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "platform/child_process.h"
#include "platform/host/mapped_ring.h"
#include "platform/pmem/accounting.h"
#include "platform/pmem/mapped/mapping.h"
#include "platform/pmem/region.h"
#include "platform/runtime/doorbell.h"
#include "platform/runtime/host_clock.h"

namespace perdura::host {

// Descriptors of the child when its main() begins. It closes all but the last.
inline constexpr int kShared = 3;
inline constexpr int kMemory = 4;
inline constexpr int kWakeParent = 5;
inline constexpr int kDescriptors = 6;

// To be changed with the declarations below, and with the layout of rings: a program that was
// started by another version then reports that, instead of waiting forever.
inline constexpr std::uint64_t kVersion = 1;

struct Shared {
  std::uint64_t version;
  std::array<char, 512> problem;  // why the child has ended; ends with a zero
  // The members above have the same places in all versions.
  runtime::HostClock clock;
  RingShape messages;
  std::uint32_t order_length;
  runtime::Doorbell bell;  // wakes the child's thread
  // Set by the parent's thread before it sleeps; the party that clears it wakes the parent.
  alignas(kCacheLine) std::atomic<std::uint32_t> parent_sleeps;
  std::atomic<std::uint32_t> ready;
};

// The offsets of the rings, and of the end of the memory.
struct Layout {
  Layout(RingShape messages, Bytes order_length)
      : to_child(round_up(sizeof(Shared) + order_length, kCacheLine)),
        to_parent(round_up(to_child + MappedRing::size(messages), kCacheLine)),
        end(to_parent + MappedRing::size(messages)) {}
  Bytes to_child;
  Bytes to_parent;
  Bytes end;
};

// Further information for the child: its order with the place of its memory.
struct Start {
  ChildOrder order{};
  int parent = 0;    // its process number
  Bytes offset = 0;  // where the region begins in its file
  Bytes size = 0;
  pmem::Durable durable = pmem::Durable::when_flushed;
  Nanoseconds write_latency{0};
};
std::string encoded(const Start& start);
Start decoded(std::string_view text);

// The messages of either process. `gone`: true once the other process is gone.
class Peer {
 public:
  Peer(MappedRing out, MappedRing in, const std::atomic<bool>& gone)
      : out_(std::move(out)), in_(std::move(in)), gone_(gone) {
    // A waiting process always waits for messages, too; the other one sees whether it sleeps.
    in_.end().waits.store(1);
  }

  bool try_send(std::span<const std::byte> message) { return out_.try_push(message); }
  Task<> send(std::span<const std::byte> message);
  Task<std::optional<Bytes>> receive(std::span<std::byte> into);

 private:
  bool gone() const { return gone_.load(std::memory_order_acquire); }

  MappedProducer out_;
  MappedConsumer in_;
  const std::atomic<bool>& gone_;
};

}  // namespace perdura::host
