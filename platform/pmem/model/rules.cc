#include "platform/pmem/model/rules.h"

#include <array>

namespace perdura::pmem {

std::string_view to_string(Rule rule) {
  static constexpr std::array<std::string_view, kRules> kNames{
      "words_are_whole",
      "messages_in_any_order",
      "lines_in_order",
      "lines_are_evicted",
      "flush_and_fence_persist",
      "flush_waits_for_fence",
      "clflush_is_ordered",
      "fence_persists_streams",
      "streams_wait_for_fence",
      "posted_in_order",
      "relaxed_is_unordered",
      "connections_are_unordered",
      "non_posted_after_all",
      "reads_are_overtaken",
      "posted_overtakes",
      "fence_stops_overtaking",
      "push_orders",
      "read_makes_visible",
      "atomic_makes_visible",
      "completions_in_order",
      "receive_makes_visible",
      "completion_means_accepted",
      "iwarp_completes_early",
      "accepted_is_not_visible",
      "seen_is_visible",
      "visible_is_durable",
      "accepted_is_durable",
      "ddio_stays_in_cache",
      "push_persists",
      "visible_order_is_not_durable_order",
      "ddio_is_per_device",
      "dram_is_lost",
      "flush_persistence_reaches_medium",
  };
  return kNames[static_cast<std::size_t>(rule)];
}

}  // namespace perdura::pmem
