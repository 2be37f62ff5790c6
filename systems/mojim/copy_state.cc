#include "systems/mojim/copy_state.h"

#include <utility>

namespace perdura::systems::mojim {

CopyState::CopyState(pmem::Region& logs) : logs_region_(logs) {
  applied_ = saved_ = logs.load(kAppliedOffset);
  incomplete_ = logs.load(kIncompleteOffset) == kIncomplete;
  alone_ = logs.load(kIncompleteOffset) == kAlone;
  in_background_ = logs.load(kInBackgroundOffset) != 0;
}

void CopyState::store_durably(Bytes offset, std::uint64_t value) {
  logs_region_.store(offset, value);
  logs_region_.persist(offset, kWord);
}

void CopyState::store_applied(std::uint64_t id, bool durably) {
  store_saved(id, durably);
  applied_ = id;
}

void CopyState::store_saved(std::uint64_t id, bool durably) {
  logs_region_.store(kAppliedOffset, id);
  if (durably) logs_region_.persist(kAppliedOffset, kWord);
  saved_ = id;
}

void CopyState::store_begun_term(std::uint64_t term) { store_durably(kBegunOffset, term); }

void CopyState::set_in_background(bool in_background) {
  if (std::exchange(in_background_, in_background) == in_background) return;
  store_durably(kInBackgroundOffset, in_background ? 1 : 0);
}

void CopyState::set_incomplete(bool incomplete) {
  completes_with_ = 0;
  if (incomplete_ == incomplete) return;
  if (incomplete) ++times_incomplete_;
  store_completeness(incomplete ? kIncomplete : kComplete);
}

void CopyState::note_saved(std::uint64_t id) {
  const std::uint64_t completes_with = completes_with_;
  if (completes_with != 0 && completes_with <= id) set_incomplete(false);
  if (id > saved_) store_saved(id, true);
}

void CopyState::go_on_alone() {
  if (is_alone()) return;
  completes_with_ = 0;
  store_completeness(kAlone);
}

void CopyState::store_completeness(std::uint64_t completeness) {
  store_durably(kIncompleteOffset, completeness);
  incomplete_ = completeness == kIncomplete;
  alone_ = completeness == kAlone;
}

void CopyState::set_given_up(std::uint64_t copies) {
  if (given_up() == copies) return;
  store_durably(kGivenUpOffset, copies);
}

}  // namespace perdura::systems::mojim
