// The MDS' side of its mirror (sections 4.1.1 and 4.3.4): all changes of the MDS' persistent memory
// get to another node by Mojim's protocol (systems/mojim). The volume knows nothing of it: it is given
// a view of the memory in which flushes and fences are noted.
//
//   volume ── stores, flushes, fences ──▶ view ──▶ memory of the MDS
//                                          │ what each fence makes durable
//   answer ◀── settle() ──── Mojim: SEND into the mirror's log ──▶ mirror
//
// Nothing that the mirror lacks may be told to anybody, be it by an answer or by published words:
// settle() comes first.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "platform/platform.h"
#include "systems/mojim/replica.h"
#include "systems/orion/mds/changed_lines.h"
#include "systems/orion/protocol/parameters.h"

namespace perdura::systems::orion {

// The mode in which the MDS and its mirror work, and the configuration of their memory.
const mojim::Mode& mirror_mode();
// `mds`: the one of the two nodes that is the MDS.
services::MemoryConfig mirror_config(const Parameters& parameters, NodeId mds);
// The same for a node that has become the MDS, and has no mirror.
services::MemoryConfig config_alone(const Parameters& parameters, NodeId node);

// Belongs to the thread that connects, except for the view.
class Mirror {
 public:
  // `changes`: the last change that the mirror has now. `since`: all changes that were made before
  // this time are among them.
  using Told = std::function<void(std::uint64_t changes, Time since)>;

  // Connects to the mirror, for as long as it takes: without its mirror, a primary that has failed
  // does not know what it has acknowledged. The memory is loaded from there if it has failed. Throws
  // UsageError if the mirror follows another node, or has become the MDS. If the replica has no
  // copies, there is nothing to wait for.
  static Task<std::unique_ptr<Mirror>> connect(Thread& thread,
                                               std::shared_ptr<mojim::Replica> replica,
                                               const Parameters& parameters);

  // The volume's view of the memory. The Mirror must outlive it.
  std::unique_ptr<pmem::Region> view(const std::string& name);
  // The memory itself, for clients that READ it.
  pmem::Region& memory() { return memory_; }

  // Calls `told` when the mirror has received something.
  void on_change(Told told) { told_ = std::move(told); }
  // The number of the last change.
  std::uint64_t changes() { return lines_.changes(); }
  // Waits until the mirror has all changes made so far. False if it will never have: another node has
  // become the MDS, or the mirror is lost and this one may not go on without it.
  Task<bool> settle();
  // True if the mirror has all changes.
  bool has_everything() { return settled_ == lines_.changes(); }
  bool has_failed() const { return failed_; }

  // The node has no mirror any more: promote() has told the replica.
  Task<> connect_again();
  // The node has a mirror again, which gets all of the memory. Nothing may change before it is
  // connected, when `resume` is called. Changes go on then, and nobody needs to wait for the mirror,
  // which is not complete, until `pause` returns. Throws PlatformError if the mirror does not answer,
  // UsageError if it follows another node; then the replica must be promoted again.
  Task<> connect_again(std::function<Task<>()> pause, std::function<void()> resume,
                       bool goes_on_alone);
  bool is_alone() const { return session_->is_alone(); }
  // The thread calls this before its endpoint is gone. Nothing may be settled afterwards.
  void disconnect() { session_.reset(); }

 private:
  class Noting;

  Mirror(Thread& thread, std::shared_ptr<mojim::Replica> replica,
         std::shared_ptr<mojim::SyncSession> session, const Parameters& parameters);

  Task<> send_next();

  Thread& thread_;
  std::shared_ptr<mojim::Replica> replica_;
  std::shared_ptr<mojim::SyncSession> session_;
  pmem::Region& memory_;
  bool goes_on_alone_;
  ChangedLines lines_;
  Told told_;
  std::uint64_t settled_ = 0;  // changes
  bool sending_ = false;
  bool failed_ = false;
  WaitList changed_;
};

}  // namespace perdura::systems::orion
