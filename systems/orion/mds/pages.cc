#include "systems/orion/mds/pages.h"

#include <algorithm>
#include <mutex>

namespace perdura::systems::orion {

Pages::Pages(std::uint32_t groups, std::uint64_t pages, std::uint64_t chunk_pages)
    : pages_(pages), chunk_pages_(chunk_pages), groups_(groups), free_count_(groups * (pages - 1)) {
  for (Group& group : groups_) {
    group.used.resize((pages + 63) / 64);
    group.owners.resize(chunks(), kNobody);
    group.free_of.resize(chunks());
    for (std::uint64_t chunk = 0; chunk < chunks(); ++chunk) {
      group.free_of[chunk] =
          static_cast<std::uint32_t>(std::min(chunk_pages_, pages_ - chunk * chunk_pages_));
    }
    set(group, 0, true);  // the header
  }
}

bool Pages::are_pages(std::uint64_t first, std::uint64_t count) const {
  if (first < nova::kFirstPage || group_of(first) >= groups_.size()) return false;
  const std::uint64_t page = page_of(first);
  return page >= 1 && page < pages_ && count <= pages_ - page;
}

bool Pages::set(Group& group, std::uint64_t page, bool used) {
  std::uint64_t& word = group.used[page / 64];
  const std::uint64_t bit = std::uint64_t{1} << page % 64;
  const bool before = (word & bit) != 0;
  if (before == used) return before;
  word ^= bit;
  std::uint32_t& free = group.free_of[chunk_of(page)];
  used ? --free : ++free;
  return before;
}

std::uint64_t Pages::mark_used(std::uint64_t first, std::uint64_t count) {
  const std::lock_guard guard(lock_);
  Group& group = groups_[group_of(first)];
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (set(group, page_of(first) + i, true)) ++before;
  }
  free_count_.fetch_sub(count - before, std::memory_order_relaxed);
  return before;
}

void Pages::free(std::uint64_t first, std::uint64_t count) {
  const std::lock_guard guard(lock_);
  if (kept_group_ == group_of(first)) {
    kept_.push_back({first, count});
  } else {
    free_now(first, count);
  }
}

void Pages::free_now(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto loan = loans_.find(first + i);
    if (loan == loans_.end()) {
      free_one(first + i);
    } else {
      loan->second.is_freed = true;
    }
  }
}

void Pages::free_one(std::uint64_t gpa) {
  const bool was_used = set(groups_[group_of(gpa)], page_of(gpa), false);
  if (was_used) free_count_.fetch_add(1, std::memory_order_relaxed);
}

void Pages::free_returned(std::uint64_t gpa) {
  if (kept_group_ == group_of(gpa)) {
    kept_.push_back({gpa, 1});
  } else {
    free_one(gpa);
  }
}

bool Pages::lend(SessionNumber session, std::span<const std::uint64_t> pages) {
  const std::lock_guard guard(lock_);
  const auto may_have = [&](std::uint64_t gpa) {
    const auto loan = loans_.find(gpa);
    return loan == loans_.end() || loan->second.session == session;
  };
  if (!std::all_of(pages.begin(), pages.end(), may_have)) return false;
  for (const std::uint64_t gpa : pages) loans_.try_emplace(gpa, Loan{session});
  return true;
}

bool Pages::is_lent_to(SessionNumber session, std::uint64_t gpa) const {
  const std::lock_guard guard(lock_);
  const auto loan = loans_.find(gpa);
  return loan != loans_.end() && loan->second.session == session;
}

void Pages::end_loan(SessionNumber session, std::uint64_t gpa) {
  const std::lock_guard guard(lock_);
  const auto loan = loans_.find(gpa);
  if (loan == loans_.end() || loan->second.session != session) return;
  const bool is_freed = loan->second.is_freed;
  loans_.erase(loan);
  if (is_freed) free_returned(gpa);
}

bool Pages::is_used(std::uint64_t gpa) const {
  const std::lock_guard guard(lock_);
  const std::uint64_t page = page_of(gpa);
  return (groups_[group_of(gpa)].used[page / 64] >> page % 64 & 1) != 0;
}

// Returns chunks() if no chunk that nobody owns has free pages.
std::uint64_t Pages::find(Group& group) const {
  for (std::uint64_t i = 0; i < chunks(); ++i) {
    const std::uint64_t chunk = (group.next + i) % chunks();
    if (group.owners[chunk] == kNobody && group.free_of[chunk] > 0) {
      group.next = chunk + 1;
      return chunk;
    }
  }
  return chunks();
}

Chunk Pages::describe(std::uint32_t number, std::uint64_t chunk) const {
  const Group& group = groups_[number];
  const std::uint64_t first = chunk * chunk_pages_;
  Chunk described{.first = gpa_of(number, first),
                  .count = static_cast<std::uint32_t>(std::min(chunk_pages_, pages_ - first))};
  for (std::uint32_t page = 0; page < described.count; ++page) {
    const std::uint64_t at = first + page;
    if ((group.used[at / 64] >> at % 64 & 1) == 0) {
      described.free[page / 64] |= std::uint64_t{1} << page % 64;
    }
  }
  return described;
}

std::optional<Chunk> Pages::take(SessionNumber session, std::uint32_t preferred,
                                 std::uint64_t own) {
  const std::lock_guard guard(lock_);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto number = static_cast<std::uint32_t>((preferred + i) % groups_.size());
    const std::uint64_t chunk = find(groups_[number]);
    if (chunk == chunks()) continue;
    groups_[number].owners[chunk] = session + 1;
    delegations_.fetch_add(1, std::memory_order_relaxed);
    return describe(number, chunk);
  }
  for (std::uint32_t number = 0; number < groups_.size(); ++number) {
    const Group& group = groups_[number];
    for (std::uint64_t chunk = 0; chunk < chunks(); ++chunk) {
      if (group.owners[chunk] != session + 1 || group.free_of[chunk] == 0) continue;
      if (own-- == 0) return describe(number, chunk);
    }
  }
  return std::nullopt;
}

void Pages::give_back(SessionNumber session) {
  const std::lock_guard guard(lock_);
  for (Group& group : groups_) {
    std::replace(group.owners.begin(), group.owners.end(), session + 1, kNobody);
  }
  std::erase_if(loans_, [&](const auto& loan) {
    if (loan.second.session != session) return false;
    if (loan.second.is_freed) free_returned(loan.first);
    return true;
  });
}

void Pages::give_back(SessionNumber session, std::uint64_t first) {
  if (!are_pages(first, 1) && page_of(first) != 0) return;
  const std::lock_guard guard(lock_);
  if (group_of(first) >= groups_.size()) return;
  std::uint32_t& owner = groups_[group_of(first)].owners[chunk_of(page_of(first))];
  if (owner == session + 1) owner = kNobody;
}

Pages::Claimed Pages::claim(SessionNumber session, std::uint64_t gpa,
                            std::optional<std::uint64_t> epoch) {
  const std::lock_guard guard(lock_);
  if (epoch && accepted_ != epoch) return Claimed::other_epoch;
  Group& group = groups_[group_of(gpa)];
  const std::uint64_t page = page_of(gpa);
  if (group.owners[chunk_of(page)] != session + 1) return Claimed::no;
  if (set(group, page, true)) return Claimed::no;
  free_count_.fetch_sub(1, std::memory_order_relaxed);
  return Claimed::yes;
}

// A store that catches up may have fetched such a page before it was written.
Pages::Claimed Pages::claim_again(std::uint64_t gpa, std::optional<std::uint64_t> epoch) const {
  const std::lock_guard guard(lock_);
  const bool may_be_late = accepted_ != epoch || kept_group_ == group_of(gpa);
  return epoch && may_be_late ? Claimed::other_epoch : Claimed::yes;
}

// --- epochs

void Pages::accept(std::optional<std::uint64_t> epoch) {
  const std::lock_guard guard(lock_);
  accepted_ = epoch;
}

std::optional<std::uint64_t> Pages::accepted() const {
  const std::lock_guard guard(lock_);
  return accepted_;
}

void Pages::keep(std::optional<std::uint32_t> group) {
  const std::lock_guard guard(lock_);
  if (kept_group_ == group) return;
  kept_group_ = group;
  for (const nova::Extent& extent : std::exchange(kept_, {})) {
    free_now(extent.first, extent.count);
  }
}

bool Pages::has_kept() const {
  const std::lock_guard guard(lock_);
  return !kept_.empty();
}

std::vector<std::uint64_t> Pages::used(std::uint32_t group) const {
  const std::lock_guard guard(lock_);
  return groups_[group].used;
}

}  // namespace perdura::systems::orion
