#include "platform/pmem/model/persistence_state.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "platform/pmem/model/line_mask.h"

namespace perdura::pmem {

namespace {

// Calls function(line offset, first byte in the line, bytes) for each line of a range.
template <class Function>
void for_each_line(Bytes offset, Bytes length, const Function& function) {
  const Bytes end = offset + length;
  for (Bytes line = offset / kCacheLine * kCacheLine; line < end; line += kCacheLine) {
    const Bytes begin = std::max(line, offset);
    function(line, begin - line, std::min(line + kCacheLine, end) - begin);
  }
}

}  // namespace

// --- reported events -----------------------------------------------------------------------------

void PersistenceState::attach(RegionId region, Medium medium, const std::byte* memory) {
  regions_[region] = {memory, medium};
}

bool PersistenceState::is_lost(RegionAddress place) const {
  return regions_.at(place.region).medium == Medium::dram && rules_.holds(Rule::dram_is_lost);
}

// The page cache of a file is in no persistence domain.
bool PersistenceState::is_durable_when_visible(const Fragment& fragment) const {
  return model_.domain != PersistenceDomain::dmp && rules_.holds(Rule::visible_is_durable) &&
         regions_.at(fragment.line->key.first).medium != Medium::disk;
}

PersistenceState::Line& PersistenceState::line_of(LineKey key) {
  const auto [found, added] = lines_.try_emplace(key);
  Line& line = found->second;
  if (added) {
    line.key = key;
    std::memcpy(line.durable.data(), regions_.at(key.first).memory + key.second, kCacheLine);
  }
  return line;
}

void PersistenceState::expect(RegionAddress place, Bytes length) {
  if (is_lost(place)) return;
  for_each_line(place.offset, length, [&](Bytes line, Bytes, Bytes) {
    ++line_of({place.region, line}).expected;
  });
}

void PersistenceState::expect_no_longer(RegionAddress place, Bytes length) {
  if (is_lost(place)) return;
  for_each_line(place.offset, length, [&](Bytes offset, Bytes, Bytes) {
    Line& line = line_of({place.region, offset});
    if (line.expected > 0) --line.expected;
    changed_ = true;
  });
}

template <class Function>
void PersistenceState::add(const Fragment& what, RegionAddress place,
                           std::span<const std::byte> bytes, const Function& function) {
  if (is_lost(place)) return;
  if (fragments_.size() >= settle_at_) settle();
  changed_ = true;
  ++sequence_;
  ++changes_;
  const std::byte* from = bytes.data();
  for_each_line(place.offset, bytes.size(), [&](Bytes offset, Bytes begin, Bytes length) {
    Line& line = line_of({place.region, offset});
    if (line.expected > 0) --line.expected;
    if (free_.empty()) free_.push_back(&pool_.emplace_back());
    Fragment& fragment = *free_.back();
    free_.pop_back();
    fragment = what;
    fragment.sequence = sequence_;
    fragment.line = &line;
    fragment.mask = mask_of(begin, length);
    std::copy_n(from, length, fragment.bytes.begin() + static_cast<std::ptrdiff_t>(begin));
    from += length;
    line.fragments.push_back(&fragment);
    fragments_.push_back(&fragment);
    function(fragment);
  });
}

void PersistenceState::store(Writer writer, RegionAddress place, std::span<const std::byte> bytes) {
  writers_.try_emplace(writer);
  Fragment fragment;
  fragment.source = Source::store;
  fragment.cached = true;
  fragment.writer = writer;
  add(fragment, place, bytes, [this](Fragment& added) { make_visible(added); });
}

void PersistenceState::stream(Writer writer, RegionAddress place,
                              std::span<const std::byte> bytes) {
  Fragment fragment;
  fragment.source = Source::stream;
  fragment.writer = writer;
  fragment.durable = !rules_.holds(Rule::streams_wait_for_fence);
  add(fragment, place, bytes,
      [&state = writers_[writer]](Fragment& added) { state.pending.push_back(&added); });
}

PersistenceState::ConnectionId PersistenceState::connect(bool ddio) {
  if (!rules_.holds(Rule::connections_are_unordered) && !connections_.empty()) return 0;
  Connection& connection = connections_.emplace_back();
  connection.ddio = rules_.holds(Rule::ddio_is_per_device) ? ddio : model_.ddio;
  return static_cast<ConnectionId>(connections_.size() - 1);
}

PersistenceState::Operation PersistenceState::post(ConnectionId id, RemoteKind kind,
                                                   RemoteFlags flags) {
  Connection& connection = connections_.at(id);
  const auto index = static_cast<std::uint32_t>(connection.operations.size());
  OperationState state;
  state.kind = kind;
  state.group = group_of(kind, flags.relaxed && rules_.holds(Rule::relaxed_is_unordered));
  if (flags.fenced && rules_.holds(Rule::fence_stops_overtaking)) {
    connection.fence_horizon = connection.fence_waits_to;
  }
  for (std::size_t i = 0; i < kGroups; ++i) {
    const auto earlier = static_cast<Group>(i);
    state.after[earlier] = is_kept(earlier, state.group) ? index : connection.fence_horizon;
  }
  if (fabric::fence_waits_for(kind_of(state.group))) connection.fence_waits_to = index + 1;
  if (kind == RemoteKind::read) connection.reads.push_back(index);
  if (kind == RemoteKind::flush) connection.flushes.push_back(index);
  connection.operations.push_back(state);
  return {id, index};
}

PersistenceState::Group PersistenceState::group_of(RemoteKind kind, bool relaxed) {
  switch (kind) {
    case RemoteKind::posted:
      return relaxed ? Group::relaxed : Group::posted;
    case RemoteKind::read:
      return Group::read;
    case RemoteKind::atomic:
      return Group::atomic;
    case RemoteKind::flush:
    case RemoteKind::flush_persistence:
      break;
  }
  return Group::flush;
}

// Returns true if an operation takes effect after all earlier ones of a group without any fence.
bool PersistenceState::is_kept(Group earlier, Group later) const {
  const fabric::WorkKind kind = kind_of(later);
  const bool kept = fabric::order_of(kind_of(earlier), kind) == fabric::Order::kept;
  if (kind == fabric::WorkKind::posted) {
    if (!rules_.holds(Rule::posted_overtakes)) return true;
    return kept && rules_.holds(Rule::posted_in_order) && earlier != Group::relaxed &&
           later != Group::relaxed;
  }
  return kept ? rules_.holds(Rule::non_posted_after_all) : !rules_.holds(Rule::reads_are_overtaken);
}

void PersistenceState::OfEachGroup::raise_to(const OfEachGroup& other) {
  for (std::size_t i = 0; i < kGroups; ++i) {
    indices[i] = std::max(indices[i], other.indices[i]);
  }
}

void PersistenceState::place(Operation operation, RegionAddress place,
                             std::span<const std::byte> bytes) {
  if (regions_.at(place.region).medium == Medium::disk) {
    throw std::logic_error("a device has changed a region that is on a disk");
  }
  Fragment fragment;
  fragment.source = Source::device;
  fragment.cached = connections_.at(operation.connection).ddio;
  fragment.operation = operation;
  auto& of_connection = connections_[operation.connection].fragments;
  add(fragment, place, bytes, [&](Fragment& added) {
    const auto behind = std::upper_bound(
        of_connection.begin(), of_connection.end(), operation.index,
        [](std::uint32_t index, const Fragment* other) { return index < other->operation.index; });
    of_connection.insert(behind, &added);
    if (connections_[operation.connection].ended) make_visible(added);
  });
}

void PersistenceState::cover(Operation operation, RegionAddress place, Bytes length) {
  connections_.at(operation.connection)
      .covers.push_back({operation.index, place, length, ++sequence_});
  changed_ = true;
}

// --- what becomes durable ------------------------------------------------------------------------

template <class Function>
void PersistenceState::each_fragment(RegionAddress place, Bytes length, const Function& function) {
  const Bytes end = place.offset + std::max<Bytes>(length, 1);
  auto line = lines_.lower_bound({place.region, place.offset / kCacheLine * kCacheLine});
  for (; line != lines_.end() && line->first < LineKey{place.region, end}; ++line) {
    for (Fragment* fragment : line->second.fragments) function(*fragment);
  }
}

template <class Function>
void PersistenceState::each_up_to(Operation operation, const Function& function) {
  const Connection& connection = connections_.at(operation.connection);
  for (Fragment* fragment : connection.fragments) {
    if (fragment->operation.index > operation.index) break;
    function(*fragment,
             connection.operations[fragment->operation.index].kind == RemoteKind::posted);
  }
}

void PersistenceState::make_visible(Fragment& fragment) {
  if (!fragment.visible) {
    fragment.visible_since = sequence_;
    ++changes_;
  }
  fragment.visible = true;
  if (is_durable_when_visible(fragment)) make_durable(fragment);
}

void PersistenceState::make_durable(Fragment& fragment) {
  if (!fragment.durable) ++changes_;
  fragment.durable = true;
}

// An effect that has been seen makes the effects that must come before it visible, too. Data that
// an earlier READ or FLUSH has pushed was durable before the effect.
void PersistenceState::make_seen(Fragment& fragment) {
  if (fragment.source != Source::device || fragment.visible) return;
  make_visible(fragment);
  const Connection& connection = connections_[fragment.operation.connection];
  const OperationState& state = connection.operations[fragment.operation.index];
  for (Fragment* other : connection.fragments) {
    if (other->operation.index >= fragment.operation.index) break;
    if (takes_effect_before(other->operation, fragment.operation)) make_visible(*other);
    if (rules_.holds(Rule::push_orders) && pushes_of(connection, *other).before(state.after)) {
      make_durable(*other);
    }
  }
}

void PersistenceState::flush(Writer writer, RegionAddress place, Bytes length, Flush kind) {
  if (!rules_.holds(Rule::flush_and_fence_persist)) return;
  changed_ = true;
  WriterState& state = writers_[writer];
  each_fragment(place, length, [&](Fragment& fragment) {
    // A write-back does not reach write-combining buffers, nor a place where the data of a message
    // has yet to arrive.
    if (fragment.source == Source::stream || !fragment.visible || fragment.durable) return;
    if (!rules_.holds(Rule::flush_waits_for_fence)) make_durable(fragment);
    state.pending.push_back(&fragment);
    if (kind == Flush::clflush && rules_.holds(Rule::clflush_is_ordered) &&
        fragment.written_back_before == kNever) {
      fragment.written_back_before = sequence_;
      fragment.written_back_by = writer;
    }
  });
}

void PersistenceState::fence(Writer writer) {
  const auto found = writers_.find(writer);
  if (found == writers_.end()) return;
  changed_ = true;
  for (Fragment* fragment : found->second.pending) {
    if (fragment->source != Source::stream || rules_.holds(Rule::fence_persists_streams)) {
      make_durable(*fragment);
    }
  }
  found->second.pending.clear();
}

// Completions are reported in the order in which operations were issued, so one reports all earlier
// operations, too.
void PersistenceState::completed(Operation operation) {
  Connection& connection = connections_.at(operation.connection);
  if (rules_.holds(Rule::completions_in_order)) {
    if (operation.index < connection.completed_end) return;
    for (std::uint32_t i = connection.completed_end; i < operation.index; ++i) {
      // In a sequence of posted operations the completion of the last one implies those of the
      // others.
      const bool tells = connection.operations[i].kind != RemoteKind::posted ||
                         i + 1 == operation.index ||
                         connection.operations[i + 1].kind != RemoteKind::posted;
      if (tells) complete({operation.connection, i});
    }
    connection.completed_end = operation.index + 1;
  }
  complete(operation);
  changed_ = true;
}

void PersistenceState::complete(Operation operation) {
  const Connection& connection = connections_.at(operation.connection);
  const RemoteKind kind = connection.operations.at(operation.index).kind;
  const auto covers = [&](const Cover& cover, const Fragment& fragment) {
    return cover.by == operation.index && cover.holds(fragment);
  };
  each_up_to(operation, [&](Fragment& fragment, bool posted) {
    switch (kind) {
      case RemoteKind::posted: {
        const bool accepted = posted && rules_.holds(Rule::completion_means_accepted) &&
                              (model_.transport == Transport::infiniband ||
                               !rules_.holds(Rule::iwarp_completes_early));
        if (!accepted) break;
        if (!rules_.holds(Rule::accepted_is_not_visible)) make_visible(fragment);
        if (model_.domain == PersistenceDomain::wsp && rules_.holds(Rule::accepted_is_durable)) {
          make_durable(fragment);
        }
        break;
      }
      case RemoteKind::atomic:
        if (rules_.holds(Rule::atomic_makes_visible)) make_visible(fragment);
        break;
      case RemoteKind::read:
      case RemoteKind::flush:
        if (rules_.holds(Rule::read_makes_visible)) make_visible(fragment);
        if (pushes_of(connection, fragment).first() <= operation.index &&
            rules_.holds(Rule::push_persists)) {
          make_durable(fragment);
        }
        break;
      case RemoteKind::flush_persistence:
        // A FLUSH guarantees nothing for fragments that it does not cover.
        if (rules_.holds(Rule::flush_persistence_reaches_medium) &&
            std::any_of(connection.covers.begin(), connection.covers.end(),
                        [&](const Cover& cover) { return covers(cover, fragment); })) {
          make_visible(fragment);
          make_durable(fragment);
        }
        break;
    }
  });
  if (kind != RemoteKind::flush_persistence ||
      !rules_.holds(Rule::flush_persistence_reaches_medium)) {
    return;
  }
  // A FLUSH also makes everything durable that was visible in its range, whoever wrote it.
  for (const Cover& cover : connection.covers) {
    if (cover.by != operation.index) continue;
    each_fragment(cover.place, cover.length, [&](Fragment& fragment) {
      if (fragment.visible && fragment.visible_since < cover.sequence &&
          fragment.source != Source::stream && cover.holds(fragment)) {
        make_durable(fragment);
      }
    });
  }
}

void PersistenceState::received(Operation operation) {
  if (!rules_.holds(Rule::receive_makes_visible)) return;
  changed_ = true;
  each_up_to(operation, [&](Fragment& fragment, bool posted) {
    if (posted || takes_effect_before(fragment.operation, operation)) make_visible(fragment);
  });
}

void PersistenceState::ended(ConnectionId connection) {
  changed_ = true;
  connections_.at(connection).ended = true;
  for (Fragment* fragment : connections_.at(connection).fragments) make_visible(*fragment);
}

// A fragment is known to be visible only when all of it has been seen.
void PersistenceState::seen(RegionAddress place, Bytes length) {
  if (!rules_.holds(Rule::seen_is_visible)) return;
  changed_ = true;
  each_fragment(place, length, [&](Fragment& fragment) {
    fragment.seen |= mask_in(fragment.line->key.second, place.offset, length);
    if ((fragment.mask & ~fragment.seen) == 0) make_seen(fragment);
  });
}

bool PersistenceState::may_learn(RegionAddress place, Bytes length) const {
  if (lines_.empty()) return false;
  const Bytes end = place.offset + length;
  auto line = lines_.lower_bound({place.region, place.offset / kCacheLine * kCacheLine});
  for (; line != lines_.end() && line->first < LineKey{place.region, end}; ++line) {
    if (line->second.expected > 0) return true;
    for (const Fragment* fragment : line->second.fragments) {
      if (fragment->source == Source::device && !fragment->visible) return true;
    }
  }
  return false;
}

void PersistenceState::seen(Operation operation, RegionAddress place, Bytes length) {
  if (!rules_.holds(Rule::seen_is_visible)) return;
  changed_ = true;
  each_fragment(place, length, [&](Fragment& fragment) {
    if (fragment.source == Source::device && fragment.operation == operation &&
        (fragment.mask & ~mask_in(fragment.line->key.second, place.offset, length)) == 0) {
      make_seen(fragment);
    }
  });
}

PersistenceState::Pushes PersistenceState::pushes_of(const Connection& connection,
                                                     const Fragment& fragment) const {
  const std::uint32_t index = fragment.operation.index;
  const auto next_of = [&](const std::vector<std::uint32_t>& indices) {
    const auto next = std::upper_bound(indices.begin(), indices.end(), index);
    return next == indices.end() ? kNone : *next;
  };
  Pushes pushes;
  if (!fragment.cached || !rules_.holds(Rule::ddio_stays_in_cache)) {
    pushes = {next_of(connection.reads), next_of(connection.flushes)};
  }
  if (!rules_.holds(Rule::flush_persistence_reaches_medium)) return pushes;
  for (const Cover& cover : connection.covers) {
    if (cover.by <= index || !cover.holds(fragment)) continue;
    pushes.flush = std::min(pushes.flush, cover.by);
    break;
  }
  return pushes;
}

// True if the range covers all bytes that the fragment changes.
bool PersistenceState::Cover::holds(const Fragment& fragment) const {
  const auto& [region, line] = fragment.line->key;
  return place.region == region && (fragment.mask & ~mask_in(line, place.offset, length)) == 0;
}

bool PersistenceState::takes_effect_before(Operation first, Operation second) const {
  if (first.connection != second.connection || first.index >= second.index) return false;
  const auto& operations = connections_[first.connection].operations;
  return first.index < operations[second.index].after[operations[first.index].group];
}

PersistenceState::Whereabouts PersistenceState::whereabouts(RegionAddress place,
                                                            Bytes length) const {
  Whereabouts result = Whereabouts::durable;
  const Bytes end = place.offset + length;
  auto line = lines_.lower_bound({place.region, place.offset / kCacheLine * kCacheLine});
  for (; line != lines_.end() && line->first < LineKey{place.region, end}; ++line) {
    for (const Fragment* fragment : line->second.fragments) {
      if (fragment->durable ||
          (fragment->mask & mask_in(line->first.second, place.offset, length)) == 0) {
        continue;
      }
      result = std::max(result, fragment->source == Source::stream ? Whereabouts::write_combining
                                : fragment->visible                ? Whereabouts::cache
                                                                   : Whereabouts::device);
    }
  }
  return result;
}

std::string_view to_string(PersistenceState::Whereabouts whereabouts) {
  switch (whereabouts) {
    case PersistenceState::Whereabouts::durable:
      break;
    case PersistenceState::Whereabouts::cache:
      return "   (perhaps no further than the cache or the way to the controller)";
    case PersistenceState::Whereabouts::write_combining:
      return "   (perhaps no further than a write-combining buffer)";
    case PersistenceState::Whereabouts::device:
      return "   (perhaps no further than the device)";
  }
  return "";
}

}  // namespace perdura::pmem
