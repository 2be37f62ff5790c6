// Which data stores are up to date, that is, have all pages that logs refer to (section 4.3.4).
//
//     up to date  -- lost, and its group has another one that is up to date -->  out
//     out         -- asks to catch up -->  joins  -- has caught up -->  up to date
//
// Clients read a page from a store that is up to date, and write it to all that are, and to those that
// join; the pages that had been in use before a store joined it fetches from another one. The last store
// of a group that is up to date remains so when it is lost: nobody can go on without it.
//
// Each step begins an epoch. The MDS accepts pages only if they were written in the current epoch, so
// that each accepted page is in all stores that are up to date. Before clients learn of an epoch, all
// stores that are connected have noted it in their journals; whatever a journal has after that note
// was written in this epoch or a later one.
//
// A word for each store is durable in the MDS' region: the last epoch in which the store was up to
// date while it is out, and whether it is.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "platform/platform.h"
#include "systems/orion/protocol/messages.h"
#include "systems/orion/protocol/parameters.h"

namespace perdura::systems::orion {

class Members {
 public:
  Members(pmem::Region& region, const Parameters& parameters, std::uint64_t opened);
  // Writes the words of a new file system.
  static void make(pmem::Region& region, const Parameters& parameters);

  // --- by any thread
  // The epoch that clients may know.
  std::uint64_t published() const { return published_.load(std::memory_order_acquire); }
  // True if a page that is written without immediates is missing in the journal from which a store that
  // is out would learn of it.
  bool needs_note(std::uint32_t group) const {
    return (outside_.load(std::memory_order_relaxed) >> group & 1) != 0;
  }
  // Notes, durably, that such a page of the group is about to be accepted.
  void note_unjournaled(std::uint32_t group);

  // --- by network thread 0; each changes the state, which change() and publish() make known
  // A store has connected, which was up to date in `epoch` last. Returns false if it cannot be used.
  bool connected(std::uint32_t store, std::uint64_t epoch);
  void lost(std::uint32_t store);
  // Others need no longer wait for stores that have not connected since the MDS began.
  void end_patience() {
    patient_ = false;
    for (const StoreRecord& record : stores_) changed_ = changed_ || record.is_missing();
  }
  // Returns false if it cannot join now.
  bool join(std::uint32_t store);
  void joined(std::uint32_t store);

  bool has_changed() const;
  // Begins the next epoch, with the words durable, and returns its number.
  std::uint64_t change();
  // All stores that are connected have noted the epoch that change() began.
  MembersLine publish();

  StoreState state_of(std::uint32_t store) const;
  // The store that joins; nullopt if none does.
  std::optional<std::uint32_t> joining() const { return joining_; }
  bool needs_everything(std::uint32_t store) const { return stores_[store].needs_everything; }
  // A store that is up to date and connected; nullopt if the group has none.
  std::optional<std::uint32_t> peer_of(std::uint32_t store) const;
  std::uint64_t joins() const { return joins_.load(std::memory_order_relaxed); }
  std::uint64_t removals() const { return removals_.load(std::memory_order_relaxed); }

 private:
  struct StoreRecord {
    std::uint32_t group = 0;
    std::uint64_t epoch = 0;  // in which it was last seen up to date; 0: never used
    bool is_up_to_date = false;
    bool is_new = false;  // up to date, but its word does not say so yet
    bool needs_everything = false;
    bool is_connected = false;
    bool was_connected = false;  // since the MDS began
    bool is_missing() const { return is_up_to_date && !was_connected; }
  };
  void remove_lost();
  void save(std::uint32_t store);
  StoreSet up_to_date() const;

  pmem::Region& region_;
  bool is_strong_;
  std::vector<StoreRecord> stores_;
  std::optional<std::uint32_t> joining_;
  std::uint64_t epoch_;
  bool changed_ = true;
  bool patient_ = true;
  SpinLock lock_;  // protects `needs_everything` and the words
  std::atomic<std::uint64_t> published_;
  std::atomic<std::uint64_t> outside_{
      0};  // a bit for each of the first 64 groups with a store that is out
  std::atomic<std::uint64_t> joins_{0};
  std::atomic<std::uint64_t> removals_{0};
};

}  // namespace perdura::systems::orion
