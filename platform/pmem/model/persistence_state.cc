#include "platform/pmem/model/persistence_state.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace perdura::pmem {

namespace {

constexpr std::uint64_t kWordMask = 0xFF;

// Calls function(line offset, first byte in the line, bytes) for each line of a range.
template <class Function>
void for_each_line(Bytes offset, Bytes length, const Function& function) {
  const Bytes end = offset + length;
  for (Bytes line = offset / kCacheLine * kCacheLine; line < end; line += kCacheLine) {
    const Bytes begin = std::max(line, offset);
    function(line, begin - line, std::min(line + kCacheLine, end) - begin);
  }
}

std::uint64_t mask_of(Bytes begin, Bytes length) {
  const std::uint64_t ones = length >= kCacheLine ? ~0ULL : (1ULL << length) - 1;
  return ones << begin;
}

void apply(std::uint64_t mask, const std::array<std::byte, kCacheLine>& from,
           std::array<std::byte, kCacheLine>& to) {
  for (; mask != 0; mask &= mask - 1) {
    const auto byte = static_cast<std::size_t>(std::countr_zero(mask));
    to[byte] = from[byte];
  }
}

}  // namespace

// --- being told ----------------------------------------------------------------------------------

void PersistenceState::attach(RegionId region, Medium medium, const std::byte* memory) {
  regions_[region] = {memory, medium};
}

bool PersistenceState::is_lost(Place place) const {
  return regions_.at(place.region).medium == Medium::dram && rules_.holds(Rule::dram_is_lost);
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

void PersistenceState::expect(Place place, Bytes length) {
  if (is_lost(place)) return;
  for_each_line(place.offset, length, [&](Bytes line, Bytes, Bytes) {
    ++line_of({place.region, line}).expected;
  });
}

template <class Function>
void PersistenceState::add(const Fragment& what, Place place, std::span<const std::byte> bytes,
                           const Function& function) {
  if (is_lost(place)) return;
  if (fragments_.size() >= settle_at_) settle();
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

void PersistenceState::store(Writer writer, Place place, std::span<const std::byte> bytes) {
  writers_.try_emplace(writer);
  Fragment fragment;
  fragment.source = Source::store;
  fragment.cached = true;
  fragment.writer = writer;
  add(fragment, place, bytes, [this](Fragment& added) { make_visible(added); });
}

void PersistenceState::stream(Writer writer, Place place, std::span<const std::byte> bytes) {
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
  state.relaxed = flags.relaxed && rules_.holds(Rule::relaxed_is_unordered);
  if (flags.fenced && rules_.holds(Rule::fence_stops_overtaking)) {
    connection.fence_horizon = connection.non_posted_end;
  }
  if (kind == RemoteKind::posted) {
    const bool ordered = rules_.holds(Rule::posted_in_order) && !state.relaxed;
    state.after_posted = ordered ? index : 0;
    state.after_all = rules_.holds(Rule::posted_overtakes) ? connection.fence_horizon : index;
  } else {
    state.after_all = rules_.holds(Rule::non_posted_after_all) ? index : connection.fence_horizon;
    connection.non_posted_end = index + 1;
    if (kind != RemoteKind::atomic) connection.reads.push_back(index);
  }
  connection.operations.push_back(state);
  return {id, index};
}

void PersistenceState::place(Operation operation, Place place, std::span<const std::byte> bytes) {
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
  });
}

void PersistenceState::cover(Operation operation, Place place, Bytes length) {
  connections_.at(operation.connection).covers.push_back({operation.index, place, length});
}

// --- what becomes durable ------------------------------------------------------------------------

template <class Function>
void PersistenceState::each_fragment(Place place, Bytes length, const Function& function) {
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
  if (!fragment.visible) ++changes_;
  fragment.visible = true;
  if (model_.domain != PersistenceDomain::dmp && rules_.holds(Rule::visible_is_durable)) {
    make_durable(fragment);
  }
}

void PersistenceState::make_durable(Fragment& fragment) {
  if (!fragment.durable) ++changes_;
  fragment.durable = true;
}

void PersistenceState::flush(Writer writer, Place place, Bytes length, Flush kind) {
  if (!rules_.holds(Rule::flush_and_fence_persist)) return;
  WriterState& state = writers_[writer];
  each_fragment(place, length, [&](Fragment& fragment) {
    // Write-back does not reach into write-combining buffers, nor to where a message is still on
    // its way.
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
  for (Fragment* fragment : found->second.pending) {
    if (fragment->source != Source::stream || rules_.holds(Rule::fence_persists_streams)) {
      make_durable(*fragment);
    }
  }
  found->second.pending.clear();
}

void PersistenceState::completed(Operation operation) {
  const Connection& connection = connections_.at(operation.connection);
  const RemoteKind kind = connection.operations.at(operation.index).kind;
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
      case RemoteKind::flush_persistence:
        if (rules_.holds(Rule::read_makes_visible)) make_visible(fragment);
        if (pushed_by(connection, fragment) <= operation.index &&
            rules_.holds(Rule::push_persists)) {
          make_durable(fragment);
        }
        break;
    }
  });
  // Whatever is visible there, however it came.
  if (kind == RemoteKind::flush_persistence &&
      rules_.holds(Rule::flush_persistence_reaches_medium)) {
    for (const Cover& cover : connection.covers) {
      if (cover.by != operation.index) continue;
      each_fragment(cover.place, cover.length, [&](Fragment& fragment) {
        if (fragment.visible && fragment.source != Source::stream) make_durable(fragment);
      });
    }
  }
}

void PersistenceState::received(Operation operation) {
  if (!rules_.holds(Rule::receive_makes_visible)) return;
  each_up_to(operation, [&](Fragment& fragment, bool posted) {
    if (posted) make_visible(fragment);
  });
}

void PersistenceState::seen(Place place, Bytes length) {
  if (!rules_.holds(Rule::seen_is_visible)) return;
  const Bytes end = place.offset + length;
  each_fragment(place, length, [&](Fragment& fragment) {
    if (fragment.source != Source::device || fragment.visible) return;
    const Bytes line = fragment.line->key.second;
    const Bytes begin = std::max(place.offset, line);
    fragment.seen |= mask_of(begin - line, std::min(end, line + kCacheLine) - begin);
    if ((fragment.mask & ~fragment.seen) == 0) make_visible(fragment);
  });
}

bool PersistenceState::may_learn(Place place, Bytes length) const {
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

// What is durable and has nothing unsure before it goes into its line; the rest stays.
void PersistenceState::settle() {
  for (auto& [key, line] : lines_) {
    auto end = line.fragments.begin();
    while (end != line.fragments.end() && (*end)->durable) {
      Fragment& fragment = **end++;
      apply(fragment.mask, fragment.bytes, line.durable);
      fragment.line = nullptr;
    }
    line.fragments.erase(line.fragments.begin(), end);
  }
  const auto is_settled = [](const Fragment* fragment) { return fragment->line == nullptr; };
  for (Connection& connection : connections_) std::erase_if(connection.fragments, is_settled);
  for (auto& [writer, state] : writers_) std::erase_if(state.pending, is_settled);
  std::erase_if(fragments_, [&](Fragment* fragment) {
    if (fragment->line != nullptr) return false;
    free_.push_back(fragment);
    return true;
  });
  settle_at_ = std::max<std::size_t>(256, 2 * fragments_.size());
  std::erase_if(lines_, [&](const auto& entry) {
    const auto& [key, line] = entry;
    return line.fragments.empty() && line.expected == 0 &&
           std::memcmp(line.durable.data(), regions_.at(key.first).memory + key.second,
                       kCacheLine) == 0;
  });
}

// --- what a power failure leaves -----------------------------------------------------------------

// The operation that pushes this one's effect out of the device to where it is durable.
std::uint32_t PersistenceState::pushed_by(const Connection& connection,
                                          const Fragment& fragment) const {
  const std::uint32_t index = fragment.operation.index;
  if (!fragment.cached || !rules_.holds(Rule::ddio_stays_in_cache)) {
    const auto read = std::upper_bound(connection.reads.begin(), connection.reads.end(), index);
    return read == connection.reads.end() ? kNone : *read;
  }
  if (!rules_.holds(Rule::flush_persistence_reaches_medium)) return kNone;
  for (const Cover& cover : connection.covers) {
    if (cover.by > index && cover.place.region == fragment.line->key.first &&
        cover.place.offset < fragment.line->key.second + kCacheLine &&
        cover.place.offset + cover.length > fragment.line->key.second) {
      return cover.by;
    }
  }
  return kNone;
}

bool PersistenceState::visible_before(Operation first, Operation second) const {
  if (first.connection != second.connection) return false;
  const auto& operations = connections_[first.connection].operations;
  const OperationState& state = operations[second.index];
  const OperationState& earlier = operations[first.index];
  return first.index < state.after_all || (earlier.kind == RemoteKind::posted && !earlier.relaxed &&
                                           first.index < state.after_posted);
}

bool PersistenceState::may_survive(const Fragment& fragment) const {
  const Line& line = *fragment.line;
  if (fragment.cached) {
    if (model_.domain == PersistenceDomain::dmp && !rules_.holds(Rule::lines_are_evicted)) {
      return false;
    }
    if (rules_.holds(Rule::lines_in_order)) {
      if (line.broken) return false;
      if (line.operation_is_broken && fragment.source == Source::device &&
          visible_before(line.broken_operation, fragment.operation)) {
        return false;
      }
    }
  }
  if (fragment.source == Source::store) {
    return writers_.at(fragment.writer).broken >= fragment.sequence;
  }
  if (fragment.source == Source::stream) return true;
  const Connection& connection = connections_[fragment.operation.connection];
  const OperationState& state = connection.operations[fragment.operation.index];
  if (ordered_by_visibility()) {
    return connection.broken_posted >= state.after_posted &&
           connection.broken_any >= state.after_all;
  }
  return connection.broken_pushed >= state.after_all || !rules_.holds(Rule::push_orders);
}

void PersistenceState::leave_out(const Fragment& fragment) {
  Line& line = *fragment.line;
  if (fragment.cached) {
    if (fragment.visible) {
      line.broken = true;
    } else {
      line.operation_is_broken = true;
      line.broken_operation = fragment.operation;
    }
  }
  if (fragment.written_back_before != kNever) {
    std::uint64_t& broken = writers_[fragment.written_back_by].broken;
    broken = std::min(broken, fragment.written_back_before + 1);
  }
  if (fragment.source != Source::device) return;
  Connection& connection = connections_[fragment.operation.connection];
  const std::uint32_t index = fragment.operation.index;
  const OperationState& state = connection.operations[index];
  if (state.kind == RemoteKind::posted && !state.relaxed) {
    connection.broken_posted = std::min(connection.broken_posted, index);
  }
  connection.broken_any = std::min(connection.broken_any, index);
  connection.broken_pushed = std::min(connection.broken_pushed, pushed_by(connection, fragment));
}

// Which bytes of it survive.
std::uint64_t PersistenceState::choose_words(const Fragment& fragment, Choices& choices) const {
  std::array<std::uint64_t, kCacheLine / kWord> words{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint64_t word = fragment.mask & (kWordMask << (i * kWord));
    if (word != 0) words[count++] = word;
  }
  if (count == 1) {
    if (rules_.holds(Rule::words_are_whole)) return choices.choose(2) == 0 ? 0 : fragment.mask;
    const std::uint64_t half = fragment.mask & 0x0F0F'0F0F'0F0F'0F0F;
    return std::array{std::uint64_t{0}, half, fragment.mask}[choices.choose(3)];
  }
  const bool prefix =
      fragment.source == Source::store ||
      (fragment.source == Source::device && !rules_.holds(Rule::messages_in_any_order));
  if (prefix) {
    std::uint64_t kept = 0;
    const std::size_t n = choices.choose(count + 1);
    for (std::size_t i = 0; i < n; ++i) kept |= words[i];
    return kept;
  }
  switch (choices.choose(3)) {
    case 0:
      return 0;
    case 2:
      return fragment.mask;
    default:
      break;
  }
  const std::size_t chosen = 1 + choices.choose((std::size_t{1} << count) - 2);
  std::uint64_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if ((chosen >> i & 1) != 0) kept |= words[i];
  }
  return kept;
}

PersistenceState::Whereabouts PersistenceState::whereabouts(Place place, Bytes length) const {
  Whereabouts result = Whereabouts::durable;
  const Bytes end = place.offset + length;
  auto line = lines_.lower_bound({place.region, place.offset / kCacheLine * kCacheLine});
  for (; line != lines_.end() && line->first < LineKey{place.region, end}; ++line) {
    for (const Fragment* fragment : line->second.fragments) {
      if (fragment->durable) continue;
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

const std::vector<PersistenceState::Survivor>& PersistenceState::image(Choices& choices) {
  settle();
  survivors_.clear();
  for (auto& [key, line] : lines_) {
    line.survivor = survivors_.size();
    line.broken = false;
    line.operation_is_broken = false;
    survivors_.push_back({{key.first, key.second}, line.durable});
  }
  for (Connection& connection : connections_) {
    connection.broken_posted = connection.broken_any = connection.broken_pushed = kNone;
  }
  for (auto& [writer, state] : writers_) state.broken = kNever;
  for (const Fragment* told : fragments_) {
    const Fragment& fragment = *told;
    std::uint64_t kept = fragment.mask;
    if (!fragment.durable) {
      kept = may_survive(fragment) ? choose_words(fragment, choices) : 0;
      if (kept != fragment.mask) leave_out(fragment);
    }
    apply(kept, fragment.bytes, survivors_[fragment.line->survivor].bytes);
  }
  return survivors_;
}

}  // namespace perdura::pmem
