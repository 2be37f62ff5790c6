// A process that a node starts on its own machine to have code executed that it does not trust: it
// shares a part of one persistent region with it, two queues of messages, and nothing else.
//
//   const ChildProgram kEcho{"perdura-echo", [](ChildContext& self) -> Task<> {
//     self.ready();
//     const auto parent = self.parent();
//     std::vector<std::byte> message(parent->longest_message());
//     while (const auto length = co_await parent->receive(message)) {
//       co_await parent->send(std::span(message).first(*length));
//     }
//   }};
//   auto child = co_await child_processes_of(node).start_child(kEcho, {.memory = "shard", ...});
//
// On `sim` it is a node of its own, which is killed as others are and which the machine's cores
// execute. On `shm` and `verbs` it is a program, whose main() calls run_child() (host/child_main.h)
// and which is found beside the running program, or in the folder that PERDURA_PROGRAMS names. It
// has no endpoint of the fabric: what it could reach by one could not be taken from it.
//
// A child ends with its parent's thread that has started it, however that ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "platform/message_ring.h"
#include "platform/platform.h"

namespace perdura {

// The other one of two processes, as each of them has it. Messages arrive whole, once, and in the
// order sent. Used by tasks of one thread.
class PeerProcess {
 public:
  virtual ~PeerProcess() = default;
  virtual Bytes longest_message() const = 0;
  // False if there is no room now. Throws UsageError if the message is too long.
  virtual bool try_send(std::span<const std::byte> message) = 0;
  // Waits for room. Returns also if the peer is gone.
  virtual Task<> send(std::span<const std::byte> message) = 0;
  // Copies the next message to the beginning of `into`, where the longest must have room; nothing
  // if the peer is gone and all that it has sent has been received. One task at a time.
  virtual Task<std::optional<Bytes>> receive(std::span<std::byte> into) = 0;
};

// A child as its parent has it. The destructor ends it.
class ChildProcess : public PeerProcess {
 public:
  // Kills it, wherever it is, unless it has ended. It executes nothing more when this returns,
  // which says how it has ended, as in "perdura-ado was ended by signal 11 (Segmentation fault)".
  // May be called again.
  virtual std::string end() = 0;
};

// A child as it has itself.
class ChildContext {
 public:
  virtual ~ChildContext() = default;
  virtual const std::vector<std::string>& arguments() const = 0;
  // Of the size of the whole region; outside of the parts that it was given there is nothing, and
  // an access ends it (on `sim` it throws std::out_of_range).
  virtual pmem::Region& memory() = 0;
  virtual std::shared_ptr<PeerProcess> parent() = 0;
  // Lets start_child() return.
  virtual void ready() = 0;
};

// The program ends when its body does; what that throws before ready() is what start_child()
// throws.
struct ChildProgram {
  std::string file;  // its name, on real platforms
  std::function<Task<>(ChildContext&)> body;
};

enum class Isolation : std::uint8_t {
  none,
  full,  // all of it, or the child is not started
};

// What a child may do besides computing; docs/systems/mcas.md says how that is enforced.
struct ChildLimits {
  Isolation isolation = Isolation::full;
  // Its user is this one plus its process number, so no two have the same.
  std::uint32_t first_user = 0x4000'0000;
  Bytes memory = 256 * MiB;       // that it may allocate
  std::vector<unsigned> cores{};  // on which it runs; empty: any
  // How long it may take until it is ready; then it is ended. 0: as long as it likes. The simulator
  // has no such limit: a program that computes for ever never lets the others run there.
  Picoseconds start{};
  // Files that it may read, besides those of the system's libraries.
  std::vector<std::string> readable{};
};

struct MemoryPart {
  Bytes offset = 0;
  Bytes length = 0;
  Bytes end() const { return offset + length; }
};

struct ChildOrder {
  std::string memory{};             // the name of a region in PM
  std::vector<MemoryPart> parts{};  // of it, whole pages of 4 KiB or up to its end, in order
  std::vector<std::string> arguments{};
  RingShape messages{.slots = 64, .message_size = 1024};  // of the queue in each direction
  CompletionMode mode = CompletionMode::event;            // how the child waits
  ChildLimits limits{};
};

class ChildProcesses {
 public:
  // To be called by a task; the child belongs to its thread. Returns when the child is ready.
  // Throws UsageError if the order cannot be, and PlatformError if the child cannot be started or
  // isolated, or has ended before it was ready, or is not ready in time: in one line, why.
  virtual Task<std::unique_ptr<ChildProcess>> start_child(ChildProgram program,
                                                          ChildOrder order) = 0;

 protected:
  ~ChildProcesses() = default;
};

// All platforms' nodes have them.
ChildProcesses& child_processes_of(Node& node);

// For implementations: throws UsageError unless the parts can be parts of a region of this size.
void check_parts(const std::vector<MemoryPart>& parts, Bytes size, std::string_view region);

}  // namespace perdura
