// PersistenceState: derives what is known to be durable, and builds crash images.
#include <algorithm>
#include <cstring>

#include "platform/pmem/model/line_mask.h"
#include "platform/pmem/model/persistence_state.h"

namespace perdura::pmem {

namespace {

constexpr std::uint64_t kWordMask = 0xFF;

}  // namespace

// True if some change that is known to be durable can have become so only after this fragment.
bool PersistenceState::follows_from_durable(const Fragment& fragment) const {
  const Line& line = *fragment.line;
  if (fragment.cached && rules_.holds(Rule::lines_in_order)) {
    if (fragment.visible && line.durable_behind) return true;
    const auto after_it = [&](Operation other) {
      return takes_effect_before(fragment.operation, other);
    };
    if (fragment.source == Source::device &&
        std::any_of(line.durable_operations.begin(), line.durable_operations.end(), after_it)) {
      return true;
    }
  }
  if (fragment.written_back_before != kNever &&
      writers_.at(fragment.written_back_by).durable > fragment.written_back_before) {
    return true;
  }
  if (fragment.source != Source::device) return false;
  const Connection& connection = connections_[fragment.operation.connection];
  const std::uint32_t index = fragment.operation.index;
  const OperationState& state = connection.operations[index];
  return index < connection.durable[state.group] ||
         (connection.durable_pushed.highest() > 0 &&
          pushes_of(connection, fragment).before(connection.durable_pushed));
}

// Marks as durable whatever must have become durable before something that is known to be durable.
// This follows the orders that image() keeps backwards, so that new knowledge never allows more
// images.
void PersistenceState::follow_durable() {
  for (auto& [key, line] : lines_) {
    line.durable_behind = false;
    line.durable_operations.clear();
  }
  for (auto& [id, writer] : writers_) writer.durable = 0;
  for (Connection& connection : connections_) {
    connection.durable = connection.durable_pushed = OfEachGroup(0);
  }
  for (auto told = fragments_.rbegin(); told != fragments_.rend(); ++told) {
    Fragment& fragment = **told;
    if (fragment.line == nullptr) continue;
    if (!fragment.durable && !follows_from_durable(fragment)) continue;
    fragment.durable = true;
    if (fragment.cached) {
      fragment.line->durable_behind = true;
      if (fragment.source == Source::device) {
        fragment.line->durable_operations.push_back(fragment.operation);
      }
    }
    if (fragment.source == Source::store) {
      std::uint64_t& last = writers_.at(fragment.writer).durable;
      last = std::max(last, fragment.sequence);
    }
    if (fragment.source != Source::device) continue;
    Connection& connection = connections_[fragment.operation.connection];
    const OperationState& state = connection.operations[fragment.operation.index];
    if (ordered_by_visibility()) {
      connection.durable.raise_to(state.after);
    } else if (rules_.holds(Rule::push_orders)) {
      connection.durable_pushed.raise_to(state.after);
    }
  }
}

// Moves fragments that are durable, and have no uncertain one before them, into the durable
// contents of their line; the others stay.
void PersistenceState::settle() {
  if (!changed_) return;
  changed_ = false;
  follow_durable();
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

bool PersistenceState::may_survive(const Fragment& fragment) const {
  const Line& line = *fragment.line;
  if (fragment.cached) {
    if (model_.domain == PersistenceDomain::dmp && !rules_.holds(Rule::lines_are_evicted)) {
      return false;
    }
    if (rules_.holds(Rule::lines_in_order)) {
      if (line.broken) return false;
      const auto before_it = [&](Operation broken) {
        return takes_effect_before(broken, fragment.operation);
      };
      if (fragment.source == Source::device &&
          std::any_of(line.broken_operations.begin(), line.broken_operations.end(), before_it)) {
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
    for (std::size_t i = 0; i < kGroups; ++i) {
      if (connection.broken.indices[i] < state.after.indices[i]) return false;
    }
    return true;
  }
  return !connection.broken_pushes.before(state.after) || !rules_.holds(Rule::push_orders);
}

void PersistenceState::leave_out(const Fragment& fragment) {
  Line& line = *fragment.line;
  if (fragment.cached) {
    if (fragment.visible) {
      line.broken = true;
    } else {
      line.broken_operations.push_back(fragment.operation);
    }
  }
  if (fragment.written_back_before != kNever) {
    std::uint64_t& broken = writers_[fragment.written_back_by].broken;
    broken = std::min(broken, fragment.written_back_before);
  }
  if (fragment.source != Source::device) return;
  Connection& connection = connections_[fragment.operation.connection];
  const std::uint32_t index = fragment.operation.index;
  std::uint32_t& broken = connection.broken[connection.operations[index].group];
  broken = std::min(broken, index);
  const Pushes pushes = pushes_of(connection, fragment);
  connection.broken_pushes = {std::min(connection.broken_pushes.read, pushes.read),
                              std::min(connection.broken_pushes.flush, pushes.flush)};
}

// Chooses which bytes of the fragment survive.
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
  if (fragment.source == Source::device && !rules_.holds(Rule::messages_in_any_order)) {
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

const std::vector<PersistenceState::Survivor>& PersistenceState::image(Choices& choices) {
  settle();
  survivors_.clear();
  for (auto& [key, line] : lines_) {
    line.survivor = survivors_.size();
    line.broken = false;
    line.broken_operations.clear();
    survivors_.push_back({{key.first, key.second}, line.durable});
  }
  for (Connection& connection : connections_) {
    connection.broken = OfEachGroup(kNone);
    connection.broken_pushes = {};
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
