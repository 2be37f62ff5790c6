// A node's copy of the region, and what the node does with it in its role.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "services/memory/memory.h"
#include "systems/mojim/layout.h"
#include "systems/mojim/local_copy.h"
#include "systems/mojim/mode.h"
#include "systems/mojim/primary.h"
#include "systems/mojim/session.h"

namespace perdura::systems::mojim {

class Replica final : public services::MemoryReplica {
 public:
  Replica(Thread& thread, const std::string& name, const Mode& mode,
          const services::MemoryConfig& config, services::MemoryRole role);

  services::MemoryRole role() const override { return role_; }
  Task<std::unique_ptr<services::MappedMemory>> map(Thread& thread) override;
  // As map(), for a thread that says itself what the ranges hold when it syncs them.
  Task<std::shared_ptr<SyncSession>> connect(Thread& thread, const CopyingSteps& steps = {});
  Task<> serve(Thread& thread) override;
  std::uint64_t position() const override;
  bool is_complete() const override { return !local_.state.is_incomplete(); }
  // True if it has gone on as the primary without copies.
  bool is_alone() const { return local_.state.is_alone(); }
  // Before promote(), on a copy whose primary may still be there: from then on it acknowledges
  // nothing. Returns when nothing arrives any more.
  Task<> stop_receiving();
  // Before promote(), on a node whose region was a primary's, or complete: what it has counts, since no copy
  // has anything. Durable when it returns.
  void count_as_complete() { local_.state.set_incomplete(false); }
  void note_missed() override { local_.data.await_region(); }
  void read(Bytes offset, std::span<std::byte> into) override;
  bool has_lost(NodeId copy) const override;
  bool is_unreplicated() const override {
    return primary_ && !primary_->copies().empty() && !local_.state.is_incomplete();
  }
  std::uint64_t next_term() const override { return term_after(local_.state.term(), node_.id()); }
  std::function<bool(std::uint64_t term)> would_follow() const override {
    return [node = node_.id(), known = local_.state.term(),
            is_alone = local_.state.is_alone()](std::uint64_t term) {
      return follows(node, known, term) && !(term > known && is_alone);
    };
  }
  void promote(std::vector<NodeId> nodes) override;
  std::vector<std::uint64_t> events() const override;

 private:
  void be_primary(Primary::Contents contents);
  void require_primary() const;
  pmem::Medium medium() const;  // the data area's medium

  Node& node_;
  std::string name_;
  const Mode& mode_;
  services::MemoryConfig config_;
  Parameters parameters_;
  services::MemoryRole role_;
  Regions regions_;
  std::unique_ptr<pmem::Region> loaded_;  // the data area, if it has been loaded from the disk
  LocalCopy local_;
  std::shared_ptr<BackgroundThread> disk_;  // null unless the data area is on one
  std::shared_ptr<Primary> primary_;        // null unless it is the primary
};

}  // namespace perdura::systems::mojim
