// The recovery of a store (Liu et al., section 4.2). A cleaning that a crash interrupted (section
// 4.4) is abandoned if it was merging, since all versions written meanwhile are in Region 1;
// otherwise it is completed, since some of them are in Region 2 only. In either case every head is
// in its normal phase afterwards.
#include <fmt/format.h>

#include <algorithm>

#include "platform/base/error.h"
#include "systems/erda/store.h"

namespace perdura::systems::erda {

void Store::recover() {
  if (space_.fresh()) return space_.opened();
  // A process may have died before its last changes were durable, and the rest of recovery relies
  // on the chains of regions.
  pool_->persist(PoolLayout::kHeadArray, layout_.head_array_size());
  table_.recover();
  check_entries();
  Scratch scratch = make_scratch();
  for (std::uint8_t head = 1; head <= space_.heads(); ++head) {
    finish_cleaning(head, scratch);
    resume_log(head, scratch);
  }
  space_.opened();
}

std::string Store::audit() const {
  std::string problem = space_.audit();
  if (problem.empty()) problem = table_.audit();
  table_.for_each([&](const hopscotch::TableEntry& entry, std::span<const std::byte>) {
    const VersionWord word(entry.word);
    const Bytes occupied = space_.region_1(entry.tag).occupied();
    if (word.has_copy() || word.newest().bytes() >= occupied ||
        word.previous().bytes() >= occupied) {
      problem =
          fmt::format("the entry in bucket {} points beyond the end of its log", entry.bucket);
    }
  });
  return problem;
}

void Store::check_entries() const {
  table_.for_each([&](const hopscotch::TableEntry& entry, std::span<const std::byte>) {
    bool sound = entry.tag >= 1 && entry.tag <= space_.heads();
    if (sound) {
      const Log& region_1 = space_.region_1(entry.tag);
      const Log& region_2 = space_.region_2(entry.tag);
      const bool switching = space_.phase(entry.tag) == Phase::switching;
      const VersionWord word(entry.word);
      // While the tags are being flipped, the former Region 2 is already Region 1.
      const Log& of_newest = switching && word.has_copy() ? region_2 : region_1;
      const Log& of_previous = word.has_copy() && !switching ? region_2 : region_1;
      sound = of_newest.contains(word.newest()) && of_previous.contains(word.previous()) &&
              (!word.has_copy() || space_.phase(entry.tag) != Phase::normal);
    }
    if (!sound) {
      throw UsageError(
          fmt::format("pool '{}' is damaged: the entry in bucket {} points outside the log",
                      pool_->name(), entry.bucket));
    }
  });
}

void Store::finish_cleaning(std::uint8_t head, Scratch& scratch) {
  switch (space_.phase(head)) {
    case Phase::normal:
      // A crash at the end of a cleaning may have left regions linked.
      if (space_.region_2(head).regions() > 0) end_cleaning(head);
      return;
    case Phase::merging:
      ++recovered_.abandoned_cleanings;
      abandon_cleaning(head);
      return;
    case Phase::replicating:
      finish_replicating(head, scratch);
      space_.begin_switching(head);
      [[fallthrough]];
    case Phase::switching:
      ++recovered_.completed_cleanings;
      for_each_of(head, [&](const hopscotch::TableEntry& entry) {
        const VersionWord word(entry.word);
        if (word.has_copy()) set_word(entry, word.switched());
      });
      end_cleaning(head);
      return;
  }
}

// Replicated objects fill the reserved part from its beginning, so the remaining ones fit after
// them.
void Store::finish_replicating(std::uint8_t head, Scratch& scratch) {
  Position last;
  std::vector<std::uint32_t> left;
  for_each_of(head, [&](const hopscotch::TableEntry& entry) {
    const VersionWord word(entry.word);
    if (!word.has_copy()) {
      left.push_back(word.newest().units);
    } else if (word.copy() < space_.reserved_end(head)) {
      last = std::max(last, word.copy());
    }
  });
  Position to = space_.reserved_begin(head);
  if (last >= to) {
    static_cast<void>(read(space_.region_2(head), last, scratch));
    to = position_behind(last, scratch);
  }
  std::sort(left.begin(), left.end());
  for (const std::uint32_t units : left) to = replicate_object(head, {units}, to, scratch);
}

// Section 4.2: after a failure the server checks the objects in the last segment of each head.
// Objects in earlier segments are checked when they are next updated (unverified()).
void Store::resume_log(std::uint8_t head, Scratch& scratch) {
  Log& log = space_.region_1(head);
  std::vector<std::uint32_t> objects;
  for_each_of(head, [&](const hopscotch::TableEntry& entry) {
    const VersionWord word(entry.word);
    for (const Position position : {word.newest(), word.previous()}) {
      if (position) objects.push_back(position.units);
    }
  });
  std::sort(objects.begin(), objects.end());
  objects.erase(std::unique(objects.begin(), objects.end()), objects.end());
  if (!objects.empty()) {
    const Position last{objects.back()};
    std::optional<Position> end;
    for_each_of(head, [&](const hopscotch::TableEntry& entry) {
      const Position newest = VersionWord(entry.word).newest();
      if (newest < log.segment_of(last)) return;
      if (!read(log, newest, scratch)) {
        ++recovered_.restored_versions;
        restore(entry);
      } else if (newest == last) {
        end = position_behind(last, scratch);
      }
    });
    log.resume(last, end, std::move(objects), space_.largest(head));
    unverified_before_[head - 1] = log.segment_of(last);
  }
  remains_before_[head - 1] = log.end_of_regions();
}

Position Store::position_behind(Position position, const Scratch& object) const {
  return {position.units +
          static_cast<std::uint32_t>(round_up(format_.size_of(object), kWord) / kWord)};
}

}  // namespace perdura::systems::erda
