// A metadata server with a mirror: two nodes, one of which is the MDS and the other one its mirror
// (section 4.3.4). Both have the same ports: the first one for Mojim, at which the mirror receives,
// the next one for clients and stores.
//
// Which of them is the MDS? Two nodes cannot tell a failure of the other one from a broken link, so
// neither may decide by what it sees. It is decided by acknowledgments instead:
//
// - The MDS answers nobody before the mirror has acknowledged (settle()).
// - The mirror takes over if a client asks for that and the MDS does not answer. From then on it
//   acknowledges nothing, so that an MDS that is still there can answer nobody either, and learns
//   that it has been replaced.
// - A mirror that has taken over goes on alone, until the former MDS is back and wants to be the mirror.
//   It then stops, gives it all of its memory, and from then on waits for its acknowledgments, too.
// - A node that starts asks the other one, and waits until it answers, unless it has gone on alone. If
//   the other one is the MDS, it becomes the mirror; if neither is, the one that the configuration
//   names is the MDS, or the other one if that is not complete.
// - An MDS that starts loads its memory from the mirror, which has what was acknowledged. A mirror whose
//   memory is new has nothing: then the MDS goes on with what it has itself, and gives it to the mirror.
//
// So at any time at most one of them can change anything that somebody is told of. If the MDS may go
// on without its mirror (`without_mirror = "go-on"`), this does not hold, and the mirror never takes
// over.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "systems/orion/mds/mds.h"

namespace perdura::systems::orion {

class PairMember final : public fs::FsServer, public std::enable_shared_from_this<PairMember> {
 public:
  // Makes what the pair needs besides the regions of the MDS.
  static void make(Node& node, const std::string& name);
  // Opens the part of the thread's node, as far as that does not depend on the other one.
  PairMember(Thread& thread, std::string name, const fs::FsConfig& config,
             const Parameters& parameters);

  Task<> serve(Thread& thread) override;
  // As long as it is not the MDS, nothing has happened.
  std::vector<std::uint64_t> events() const override;
  std::vector<double> metrics() const override;
  bool has_metadata() const override { return serves_ && mds_->has_metadata(); }
  std::string damage() const override { return serves_ ? mds_->damage() : std::string(); }
  Task<std::string> audit() override {
    if (!serves_) co_return std::string();
    co_return co_await mds_->audit();
  }

 private:
  enum class Part : std::uint8_t { undecided, mirror, mds };
  // A durable fact about the node. `gives`: it has taken over, and has begun to give its memory to the
  // other one, which may be complete by now. `loads`: its memory may be neither what it was nor what the
  // mirror has.
  enum class Alone : std::uint64_t { no, has_taken_over, gives, loads };

  bool is_first() const { return node_ == parameters_.mds; }
  Task<> begin(Thread& thread);
  Task<> receive(Thread& thread);
  void be_mirror(Thread& thread);
  void follow_mds(Thread& thread);
  Task<> follow(Thread& thread);
  Task<> await_takeover(Thread& thread);
  Task<> take_over(Thread& thread, bool is_alone);
  Task<> be_primary(Thread& thread, bool mirror_is_new);
  Task<std::unique_ptr<Mirror>> load_or_give(Thread& thread, bool mirror_is_new);
  Task<> go_on_alone(Thread& thread);
  Task<> be_mds(Thread& thread, std::unique_ptr<Mirror> mirror);
  static Task<> adopt(std::shared_ptr<PairMember> self);
  Task<bool> give_memory();
  Alone alone() const { return static_cast<Alone>(state_->load(0)); }
  void set_alone(Alone alone);
  Task<std::optional<PairAnswer>> ask_other(Thread& thread);
  PairAnswer answer() const;
  void accept(Thread& thread, fabric::ConnectionRequest& request);

  NodeId node_;
  std::string name_;
  fs::FsConfig config_;
  Parameters parameters_;
  // A word, an Alone.
  std::unique_ptr<pmem::Region> state_;
  std::shared_ptr<mojim::Replica> replica_;  // null while it is undecided
  std::atomic<bool> receives_{false};        // as the mirror
  std::atomic<bool> serves_{false};          // mds_ is there
  std::shared_ptr<Mds> mds_;                 // null unless it is the MDS
  // Used by the thread at the second port.
  Part part_ = Part::undecided;
  bool claims_ = false;  // undecided, but perhaps the MDS
  bool adopts_ = false;
  bool is_wanted_ = false;
  WaitList asked_;
  fabric::CompletionQueue completions_;  // those of ask_other(), of which there are none
};

}  // namespace perdura::systems::orion
