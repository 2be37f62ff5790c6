// A process that a node starts on its own machine to execute untrusted code: it shares a part of
// one persistent region with it, two queues of messages, and nothing else.
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
// On `sim` it is a node of its own, which can be killed like others and which the machine's cores
// execute. On `shm` and `verbs` it is a program, whose main() calls run_child() (host/child_main.h)
// and which is found beside the running program, or in the folder that PERDURA_PROGRAMS names. It
// has no endpoint of the fabric, since an endpoint would give it access that could not be
// restricted.
//
// A child ends with the thread that has started it, however that ends.
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

// The other one of two processes, as either of them sees it. Messages arrive whole, once, and in
// the order sent. Used by tasks of one thread.
class PeerProcess {
 public:
  virtual ~PeerProcess() = default;
  virtual Bytes longest_message() const = 0;
  // Returns false if there is no room now. Throws UsageError if the message is too long.
  virtual bool try_send(std::span<const std::byte> message) = 0;
  // Waits for room. Also returns if the peer is gone.
  virtual Task<> send(std::span<const std::byte> message) = 0;
  // Copies the next message to the beginning of `into`, where the longest one must have room.
  // Returns nullopt if the peer is gone and everything that it sent has been received. One task at
  // a time.
  virtual Task<std::optional<Bytes>> receive(std::span<std::byte> into) = 0;
};

// A child as its parent sees it. The destructor ends it.
class ChildProcess : public PeerProcess {
 public:
  // Kills the child unless it has ended. When this returns, the child executes nothing more.
  // Returns how it has ended, as in "perdura-ado was ended by signal 11 (Segmentation fault)". May
  // be called again.
  virtual std::string end() = 0;
};

// A child as it sees itself.
class ChildContext {
 public:
  virtual ~ChildContext() = default;
  virtual const std::vector<std::string>& arguments() const = 0;
  // Has the size of the whole region. Outside of the parts that the child was given nothing is
  // mapped, and an access ends the child (on `sim` it throws std::out_of_range).
  virtual pmem::Region& memory() = 0;
  virtual std::shared_ptr<PeerProcess> parent() = 0;
  // Lets start_child() return.
  virtual void ready() = 0;
};

// The program ends when its body does; start_child() rethrows an exception that the body throws
// before ready().
struct ChildProgram {
  std::string file;  // its name, on real platforms
  std::function<Task<>(ChildContext&)> body;
};

enum class Isolation : std::uint8_t {
  none,
  full,  // all restrictions, or the child is not started
};

// The limits of a child; docs/systems/mcas.md says how they are enforced.
struct ChildLimits {
  Isolation isolation = Isolation::full;
  // The child's user is this one plus its process number, so no two children have the same.
  std::uint32_t first_user = 0x4000'0000;
  Bytes memory = 256 * MiB;       // the memory that it may allocate
  std::vector<unsigned> cores{};  // the cores on which it runs; empty: any
  // How long the child may take until it is ready; after that it is ended. 0: without limit. The
  // simulator has no such limit: a program that computes forever never lets other tasks run there.
  Picoseconds start{};
  // Files that the child may read, besides the system's libraries.
  std::vector<std::string> readable{};
};

struct MemoryPart {
  Bytes offset = 0;
  Bytes length = 0;
  Bytes end() const { return offset + length; }
};

struct ChildOrder {
  std::string memory{};             // the name of a region in PM
  std::vector<MemoryPart> parts{};  // parts of the region: whole pages of 4 KiB, or up to its end,
                                    // in order
  std::vector<std::string> arguments{};
  RingShape messages{.slots = 64, .message_size = 1024};  // shape of the queue in each direction
  CompletionMode mode = CompletionMode::event;            // how the child waits
  ChildLimits limits{};
};

class ChildProcesses {
 public:
  // To be called by a task; the child belongs to its thread. Returns when the child is ready.
  // Throws UsageError if the order is not possible, and PlatformError, with the reason in one line,
  // if the child cannot be started or isolated, or has ended before it was ready, or is not ready
  // in time.
  virtual Task<std::unique_ptr<ChildProcess>> start_child(ChildProgram program,
                                                          ChildOrder order) = 0;

 protected:
  ~ChildProcesses() = default;
};

// Nodes of all platforms have child processes.
ChildProcesses& child_processes_of(Node& node);

// For implementations: throws UsageError unless the parts fit a region of this size.
void check_parts(const std::vector<MemoryPart>& parts, Bytes size, std::string_view region);

}  // namespace perdura
