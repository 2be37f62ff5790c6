#include "systems/erda/space.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/base/error.h"

namespace perdura::systems::erda {

namespace {
// Cleaning copies live objects in order to reclaim stale ones. It is worthwhile when at least one
// part in this many of the log has been written since the last cleaning.
constexpr Bytes kWorthwhilePart = 8;
}  // namespace

Space::Space(pmem::Region& pool, const PoolLayout& layout, std::uint64_t threshold_percent)
    : pool_(pool), layout_(layout), heads_(layout.shape().heads) {
  const Superblock& shape = layout.shape();
  // The share of each head in the log, counted as if there were one more head: the additional share
  // is for the head that is being cleaned.
  threshold_ = shape.regions * shape.region_bytes / (shape.heads + 1) / 100 * threshold_percent;
  std::vector<bool> used(shape.regions);
  for (std::uint8_t head = 1; head <= heads(); ++head) {
    of(head).state = HeadState::of(pool.load(layout.state_word(head)));
    const ObjectFormat format(shape.key_size, shape.value_size);
    of(head).largest =
        std::max(round_up(format.typical_size(), kWord), pool.load(layout.largest_word(head)));
    for (const std::uint32_t chain : {0U, 1U}) {
      for (std::uint64_t i = 0; i < shape.regions; ++i) {
        const std::uint64_t word = pool.load(layout.link_word(head, chain, i));
        const std::optional<Link> link = Link::of(word);
        next_life_ = std::max(next_life_, link ? link->life + 1 : Link::life_of(word));
        if (!link) continue;
        if (link->region >= shape.regions || used[link->region]) {
          throw UsageError(fmt::format(
              "pool '{}' is damaged: its head array names region {}, which is not there or is "
              "named twice",
              pool.name(), link->region));
        }
        used[link->region] = true;
      }
      of(head).logs.emplace_back(pool, layout, head, chain);
    }
  }
  // In an old pool, nothing tells if a free region has been used before. An old pool may have no
  // linked region: cleaning a head whose keys are all deleted leaves none.
  fresh_ = next_life_ == 0;
  for (std::uint64_t region = shape.regions; region-- > 0;) {
    if (!used[region]) free_.push_back(static_cast<std::uint32_t>(region));
  }
  for (std::uint8_t head = 1; head <= heads(); ++head) {
    if (region_1(head).regions() == 0) link(region_1(head));
  }
}

void Space::link(Log& log) {
  log.link({free_.back(), next_life_});
  free_.pop_back();
  if (next_life_ > 0) ++next_life_;
}

// --- what a log may take -------------------------------------------------------------------------

std::optional<Position> Space::reserve_in_1(std::uint8_t head, Bytes size) {
  return reserve(head, region_1(head), size, false);
}

std::optional<Position> Space::reserve_in_2(std::uint8_t head, Bytes size) {
  return reserve(head, region_2(head), size, false);
}

std::optional<Position> Space::reserve_for_cleaner(std::uint8_t head, Bytes size) {
  return reserve(head, region_2(head), size, true);
}

std::optional<Position> Space::reserve(std::uint8_t head, Log& log, Bytes size, bool promised) {
  const std::optional<Position> position = log.position_for(size);
  if (!position) return std::nullopt;
  note_size(head, size);
  const bool grows = !log.reaches(*position);
  if (grows && free_.empty()) return std::nullopt;
  if (!promised) {
    const Bytes after = log.held() + round_up(size, kWord);
    const bool more = grows || demand(of(head), &log, after) != demand(of(head));
    if (more && !affordable(free_.size() - (grows ? 1 : 0), &log, after)) return std::nullopt;
  }
  if (grows) link(log);
  const Bytes before = log.occupied();
  log.take(*position, size);
  used_.store(used_.load(std::memory_order_relaxed) + log.occupied() - before,
              std::memory_order_relaxed);
  return position;
}

void Space::note_size(std::uint8_t head, Bytes size) {
  if (size <= of(head).largest) return;
  of(head).largest = round_up(size, kWord);
  pool_.store(layout_.largest_word(head), of(head).largest);
  pool_.persist(layout_.largest_word(head), kWord);
}

std::uint64_t Space::segments_for(const Head& head, Bytes bytes) const {
  // A segment is abandoned as soon as an object does not fit into its rest.
  const Bytes segment = layout_.shape().segment_bytes;
  const Bytes filled = segment > head.largest ? segment - head.largest : kWord;
  return (bytes + filled - 1) / filled;
}

std::uint64_t Space::regions_for_segments(std::uint64_t segments) const {
  const std::uint64_t per_region = layout_.shape().region_bytes / layout_.shape().segment_bytes;
  return (segments + per_region - 1) / per_region;
}

std::uint64_t Space::demand(const Head& head, const Log* changed, Bytes held) const {
  const Log& log = log_of(head);
  const Log& other = head.logs[1 - head.state.chain];
  const auto held_by = [&](const Log& l) { return &l == changed ? held : l.held(); };
  const auto to_clean = [&](const Log& l) {
    return regions_for_segments(segments_for(head, held_by(l)));
  };
  const auto less = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
  if (!head.cleaning) return to_clean(log);
  // After this cleaning it must be possible to clean the head again, with the regions of the former
  // Region 1.
  if (head.state.phase == Phase::switching) return less(to_clean(log), other.regions());
  // Objects written since merging began are copied to segments of their own.
  const Bytes all = held_by(log);
  const Bytes before =
      head.state.phase == Phase::normal ? all : std::min(head.held_before_merging, all);
  const std::uint64_t whole =
      regions_for_segments(segments_for(head, before) + segments_for(head, all - before));
  const std::uint64_t next = less(to_clean(other), log.regions());
  return std::max(less(whole, other.regions()), next);
}

bool Space::affordable(std::uint64_t free, const Log* changed, Bytes held) const {
  std::uint64_t promised = 0;   // regions promised to heads under cleaning
  std::uint64_t returning = 0;  // regions that these heads give back at the end
  std::uint64_t next = 0;       // the greatest demand of another head after that
  for (const Head& head : heads_) {
    const std::uint64_t regions = demand(head, changed, held);
    if (!head.cleaning) {
      next = std::max(next, regions);
      continue;
    }
    promised += regions;
    const bool switched = head.state.phase == Phase::switching;
    returning += head.logs[switched ? 1 - head.state.chain : head.state.chain].regions();
  }
  return free >= promised && free - promised + returning >= next;
}

// --- when to clean -------------------------------------------------------------------------------

bool Space::wants_cleaning(std::uint8_t head) const {
  const Head& h = of(head);
  const Bytes occupied = log_of(h).occupied();
  return !h.cleaning && occupied >= threshold_ &&
         occupied - h.occupied_before >= occupied / kWorthwhilePart;
}

std::optional<std::uint8_t> Space::best_to_clean(std::uint8_t preferred) const {
  const auto possible = [this](const Head& head) {
    return yields(head) && demand(head) <= free_.size();
  };
  if (possible(of(preferred))) return preferred;
  std::optional<std::uint8_t> best;
  Bytes written = 0;
  for (std::uint8_t head = 1; head <= heads(); ++head) {
    const Bytes since = log_of(of(head)).occupied() - of(head).occupied_before;
    if (!possible(of(head)) || since <= written) continue;
    best = head;
    written = since;
  }
  return best;
}

bool Space::any_cleaning() const {
  return std::any_of(heads_.begin(), heads_.end(), [](const Head& h) { return h.cleaning; });
}

bool Space::promise(std::uint8_t head) {
  Head& h = of(head);
  h.cleaning = true;
  // Heads that are already being cleaned keep their promised space. Later ones can wait for this
  // one.
  std::uint64_t promised = 0;
  for (const Head& other : heads_) {
    if (other.cleaning) promised += demand(other);
  }
  if (promised > free_.size()) h.cleaning = false;
  measure();
  return h.cleaning;
}

// --- the steps of a cleaning (section 4.4)
// ---------------------------------------------------------

void Space::set_state(std::uint8_t head, HeadState state) {
  of(head).state = state;
  steps_.fetch_add(1, std::memory_order_relaxed);
  pool_.store(layout_.state_word(head), state.word());
  pool_.persist(layout_.state_word(head), kWord);
}

void Space::begin_merging(std::uint8_t head) {
  of(head).held_before_merging = region_1(head).held();
  of(head).objects_before_merging = region_1(head).objects().size();
  set_state(head, {chain(head), Phase::merging});
}

bool Space::begin_replicating(std::uint8_t head) {
  Log& log = region_2(head);
  const Bytes written = region_1(head).held() - of(head).held_before_merging;
  Position begin{static_cast<std::uint32_t>(log.occupied() / kWord)};
  Position end = begin;
  if (written > 0) {
    if (begin.units - log.segment_of(begin).units > 1) begin = log.segment_after(begin);
    end = begin;
    for (std::uint64_t n = segments_for(of(head), written); n > 0; --n) {
      const Position last{end.units};
      while (!log.reaches(last)) {
        if (free_.empty()) return false;
        link(log);
      }
      end = log.segment_after(end);
    }
    log.skip_to(end);
    measure();
  }
  for (const auto& [word, position] : {std::pair(layout_.reserved_begin_word(head), begin),
                                       std::pair(layout_.reserved_end_word(head), end)}) {
    pool_.store(word, position.units);
  }
  pool_.persist(layout_.reserved_begin_word(head), 2 * kWord);
  set_state(head, {chain(head), Phase::replicating});
  return true;
}

void Space::begin_switching(std::uint8_t head) {
  set_state(head, {1 - chain(head), Phase::switching});
}

void Space::end_cleaning(std::uint8_t head) {
  // The merged objects were live then. Those after them have been written since, and may have
  // replaced some of them.
  const bool abandoned = phase(head) == Phase::merging;
  of(head).occupied_before =
      abandoned ? region_1(head).occupied()
                : std::min(region_1(head).occupied(), reserved_begin(head).bytes());
  set_state(head, {chain(head), Phase::normal});
  for (const Link& link : region_2(head).unlink_all()) free_.push_back(link.region);
  if (next_life_ == 0) next_life_ = 1;
  of(head).cleaning = false;
  measure();
  cleanings_.fetch_add(1, std::memory_order_relaxed);
}

void Space::opened() {
  measure();
  cleanings_.store(0, std::memory_order_relaxed);
  steps_.store(0, std::memory_order_relaxed);
}

void Space::measure() {
  Bytes used = 0;
  std::uint32_t cleanings = 0;
  for (const Head& head : heads_) {
    for (const Log& log : head.logs) used += log.occupied();
    cleanings += head.cleaning ? 1 : 0;
  }
  used_.store(used, std::memory_order_relaxed);
  cleanings_now_.store(cleanings, std::memory_order_relaxed);
}

kv::KvSpace Space::gauge() const {
  const Bytes capacity = layout_.shape().regions * layout_.shape().region_bytes;
  return {capacity,
          capacity - std::min(capacity, used_.load(std::memory_order_relaxed)),
          cleanings_.load(std::memory_order_relaxed),
          cleanings_now_.load(std::memory_order_relaxed),
          false,
          steps_.load(std::memory_order_relaxed)};
}

std::string Space::audit() const {
  const std::uint64_t regions = layout_.shape().regions;
  std::vector<std::uint32_t> uses(regions);
  for (const std::uint32_t region : free_) ++uses[region];
  for (std::uint8_t head = 1; head <= heads(); ++head) {
    if (phase(head) != Phase::normal || region_2(head).regions() > 0) {
      return fmt::format("head {} is still being cleaned", head);
    }
    for (const std::uint32_t chain : {0U, 1U}) {
      bool ended = false;
      for (std::uint64_t i = 0; i < regions; ++i) {
        const auto link = Link::of(pool_.load(layout_.link_word(head, chain, i)));
        if (link && ended) return fmt::format("a chain of head {} has a gap", head);
        if (link) ++uses[link->region];
        ended = !link;
      }
    }
  }
  for (std::uint64_t region = 0; region < regions; ++region) {
    if (uses[region] == 1) continue;
    return fmt::format("region {} is {}", region,
                       uses[region] == 0 ? "neither free nor linked" : "free or linked twice");
  }
  return {};
}

Position Space::reserved_begin(std::uint8_t head) const {
  return {static_cast<std::uint32_t>(pool_.load(layout_.reserved_begin_word(head)))};
}

Position Space::reserved_end(std::uint8_t head) const {
  return {static_cast<std::uint32_t>(pool_.load(layout_.reserved_end_word(head)))};
}

}  // namespace perdura::systems::erda
