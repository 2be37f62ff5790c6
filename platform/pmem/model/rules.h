// The rules of the persistence model, by name. PersistenceState obeys them; docs/persistence.md
// explains them one by one, and tests/platform/pmem/litmus has litmus tests for each.
//
// A Rules object that lacks rules is for tests only: without any one of the rules, some litmus test
// must fail. Otherwise the rule is redundant or the litmus tests are incomplete.
//
// Sources: [T] "Correct, Fast Remote Persistence"; [SDM] Intel 64 and IA-32 Architectures Software
// Developer's Manual; [Px86] Raad, Wickerson, Neiger, Vafeiadis: "Persistency Semantics of the
// Intel-x86 Architecture", POPL 2020; [IB] InfiniBand Architecture Specification, volume 1, and its
// memory placement extensions [MPE]; [RDMA-TSO] Ambal et al.: "Semantics of Remote Direct Memory
// Access", OOPSLA 2024; [5040], [7306] the RFCs of iWARP. Where a source leaves a question open,
// the model takes the answer that guarantees less.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>

namespace perdura::pmem {

enum class Rule : std::uint8_t {
  // --- granularity
  // An aligned word of 8 bytes is durable whole or not at all [SDM 3A 9.1.1, MPE].
  words_are_whole,
  // The words of one message are placed in any order [IB 9.5; ibv_query_qp_data_in_order].
  messages_in_any_order,

  // --- stores of a CPU
  // A prefix of the cached stores to one 64-byte line is durable; lines are independent [Px86 3].
  lines_in_order,
  // A dirty line may be written back at any time, so unflushed stores may survive [Px86 3].
  lines_are_evicted,
  // After clwb, clflushopt or clflush and then a fence, what the line held at the flush is durable
  // [SDM 2 CLWB; Px86 3].
  flush_and_fence_persist,
  // Before the fence, clwb and clflushopt guarantee nothing [SDM 2 CLWB].
  flush_waits_for_fence,
  // clflush is ordered with stores: what it writes back is durable before any later store of the
  // same thread [SDM 2 CLFLUSH].
  clflush_is_ordered,
  // A fence makes the thread's own non-temporal stores durable [SDM 1 10.4.6.2].
  fence_persists_streams,
  // Before the fence they may stay in write-combining buffers, which no persistence domain covers
  // [Px86 3].
  streams_wait_for_fence,

  // --- operations on one reliable connection, in the order issued
  // Posted operations (WRITE, SEND) take effect in order [IB 9.5; T 2].
  posted_in_order,
  // Posted operations to memory registered with relaxed ordering are unordered [ibv_reg_mr].
  relaxed_is_unordered,
  // There is no order between connections [IB 9.5].
  connections_are_unordered,
  // A non-posted operation takes effect after everything issued before it, but for the READs that
  // it may overtake [T 2].
  non_posted_after_all,
  // An atomic or FLUSH may overtake an earlier READ [IB 10.8.3.3], and so what the READ pushes.
  reads_are_overtaken,
  // A posted operation may overtake an earlier non-posted one [IB 9.5; T 2].
  posted_overtakes,
  // A fenced operation starts after all earlier non-posted ones have completed [IB 10.8.3.3; T 2].
  fence_stops_overtaking,
  // Data that a READ or FLUSH pushes out of the device is durable, or visible, before anything that
  // takes effect after it (fabric/order/ordering.h). Therefore an ATOMIC WRITE can follow a FLUSH without waiting a round
  // trip, and an agent that sees the ATOMIC WRITE knows that the data that the FLUSH pushed is
  // durable [T 2, MPE].
  push_orders,

  // --- what completions tell
  // Completion of a READ or FLUSH: everything before it is visible to the CPU [IB 9.5; T 2].
  read_makes_visible,
  // Completion of an atomic: it and everything before it are visible [T 2].
  atomic_makes_visible,
  // Completions come in the order issued, so each implies those of all earlier operations [IB 10.8;
  // T 2].
  completions_in_order,
  // Receive completion: its message and every posted operation before it are visible [IB 9.5; 5040
  // 5.3].
  receive_makes_visible,
  // Completion of a posted operation: the responder's device has accepted it [IB 9.7.5.1; T 3.1.3].
  completion_means_accepted,
  // On iWARP it means only that the requester's own transport has it [5040 3; T 3.2].
  iwarp_completes_early,
  // On no transport does it mean that the operation is visible [T 2].
  accepted_is_not_visible,
  // A value that an agent has read is visible [RDMA-TSO].
  seen_is_visible,

  // --- persistence domains
  // MHP, WSP: visible data is durable [T 3.1.1].
  visible_is_durable,
  // WSP: data that the device has accepted is durable [T 3.1.1].
  accepted_is_durable,
  // DMP with DDIO: visible data is in the cache; no operation of a requester makes it durable,
  // except FLUSH for persistence [T 3.1.2].
  ddio_stays_in_cache,
  // DMP without DDIO: data that a READ or FLUSH has pushed is durable [T 3.2].
  push_persists,
  // DMP: two WRITEs that became visible in order may become durable in either order [T 2].
  visible_order_is_not_durable_order,
  // DDIO is a property of the device, not of the machine [PCI Express TPH].
  ddio_is_per_device,
  // DRAM, including receive buffers in DRAM, is lost in any power failure [T 3.2].
  dram_is_lost,
  // A FLUSH with placement type persistence makes data durable even if it is in the caches [MPE].
  flush_persistence_reaches_medium,
};
inline constexpr std::size_t kRules =
    static_cast<std::size_t>(Rule::flush_persistence_reaches_medium) + 1;

class Rules {
 public:
  Rules() { held_.set(); }
  Rules without(Rule rule) const {
    Rules result = *this;
    result.held_.reset(static_cast<std::size_t>(rule));
    return result;
  }
  bool holds(Rule rule) const { return held_[static_cast<std::size_t>(rule)]; }

 private:
  std::bitset<kRules> held_;
};

std::string_view to_string(Rule rule);

}  // namespace perdura::pmem
