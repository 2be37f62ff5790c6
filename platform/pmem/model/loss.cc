#include "platform/pmem/model/loss.h"

#include <algorithm>
#include <bit>

#include "platform/pmem/model/line_mask.h"

namespace perdura::pmem {

std::string_view to_string(LostIn where) {
  switch (where) {
    case LostIn::write_combining_buffer:
      return "in a write-combining buffer";
    case LostIn::cache:
      return "in the CPU's cache, not flushed";
    case LostIn::write_back:
      return "flushed, but not fenced";
    case LostIn::network:
      return "on the network, for all that anybody knew";
    case LostIn::device:
      return "in the device's buffers";
    case LostIn::cache_of_device:
      return "in the last-level cache, where DDIO had placed it";
    case LostIn::controller:
      return "on the way to the memory controller";
  }
  return "";
}

std::string_view meaning(Rule rule) {
  switch (rule) {
    case Rule::streams_wait_for_fence:
      return "before the fence, non-temporal stores may be lost";
    case Rule::flush_and_fence_persist:
      return "a store is durable after a flush of its line and then a fence, not before";
    case Rule::flush_waits_for_fence:
      return "before the fence, a flush guarantees nothing";
    case Rule::completion_means_accepted:
      return "before its completion, nobody knows that the device has a message";
    case Rule::iwarp_completes_early:
      return "on iWARP, a completion says nothing about the responder";
    case Rule::accepted_is_not_visible:
      return "the completion of a WRITE or SEND means that the device has it, no more";
    case Rule::ddio_stays_in_cache:
      return "what DDIO has placed in the cache stays there until the CPU or a FLUSH for "
             "persistence writes it back";
    case Rule::push_persists:
      return "what no READ or FLUSH after it has pushed is not known to be in the memory "
             "controller";
    default:
      break;
  }
  return "";
}

namespace {

bool equal_in(std::uint64_t mask, const std::array<std::byte, kCacheLine>& a,
              const std::array<std::byte, kCacheLine>& b) {
  for (; mask != 0; mask &= mask - 1) {
    const auto byte = static_cast<std::size_t>(std::countr_zero(mask));
    if (a[byte] != b[byte]) return false;
  }
  return true;
}

}  // namespace

// Determines how far a change had come that is not known to be durable.
std::pair<LostIn, Rule> PersistenceState::cause_of_loss(const Fragment& fragment) const {
  const auto is_pending = [&](const auto& entry) {
    const auto& pending = entry.second.pending;
    return std::find(pending.begin(), pending.end(), &fragment) != pending.end();
  };
  const bool written_back = fragment.source != Source::stream &&
                            std::any_of(writers_.begin(), writers_.end(), is_pending);
  if (fragment.source == Source::stream) {
    return {LostIn::write_combining_buffer, Rule::streams_wait_for_fence};
  }
  if (written_back) return {LostIn::write_back, Rule::flush_waits_for_fence};
  if (fragment.source == Source::store) return {LostIn::cache, Rule::flush_and_fence_persist};
  if (fragment.visible && fragment.cached) {
    return {LostIn::cache_of_device, Rule::ddio_stays_in_cache};
  }
  if (fragment.visible) return {LostIn::controller, Rule::push_persists};
  const Connection& connection = connections_[fragment.operation.connection];
  if (fragment.operation.index >= connection.completed_end) {
    return {LostIn::network, Rule::completion_means_accepted};
  }
  if (model_.transport == Transport::iwarp) return {LostIn::network, Rule::iwarp_completes_early};
  return {LostIn::device, Rule::accepted_is_not_visible};
}

std::vector<Loss> PersistenceState::losses(std::span<const Survivor> image) const {
  std::vector<Loss> losses;
  for (const Survivor& survivor : image) {
    const auto found = lines_.find({survivor.place.region, survivor.place.offset});
    if (found == lines_.end()) continue;
    const std::vector<Fragment*>& fragments = found->second.fragments;
    // For each word, the changes after the one that survives are lost.
    std::vector<std::uint64_t> lost(fragments.size());
    for (Bytes word = 0; word < kCacheLine; word += kWord) {
      const std::uint64_t bits = mask_of(word, kWord);
      for (std::size_t i = fragments.size(); i-- > 0;) {
        const std::uint64_t mask = fragments[i]->mask & bits;
        if (mask == 0) continue;
        if (equal_in(mask, fragments[i]->bytes, survivor.bytes)) break;
        if (!fragments[i]->durable) lost[i] |= mask;
      }
    }
    for (std::size_t i = 0; i < fragments.size(); ++i) {
      if (lost[i] == 0) continue;
      const Fragment& fragment = *fragments[i];
      const auto [where, rule] = cause_of_loss(fragment);
      losses.push_back({survivor.place, lost[i], fragment.bytes, where, rule, fragment.writer,
                        fragment.operation});
    }
  }
  return losses;
}

}  // namespace perdura::pmem
