// The order of the work requests of a reliable connection, as a table. Whatever models a connection
// asks this file which of two requests may overtake the other: the timed simulation
// (fabric/sim/requester.cc for fences, fabric/sim/responder.h for the rest), the one in every order
// (fabric/sim/relaxed_pipe.cc), and the persistence model (pmem/model/persistence_state.cc).
//
// A request passes three stages. In the first and the last one, requests keep the order in which
// they were posted; the table is about the second.
//
//   issue        The requester's device starts the request. A fenced request is not started before
//                each earlier READ, atomic and FLUSH has completed. It holds up all later requests.
//   execution    The request takes effect in the responder's memory: data of a SEND or WRITE is
//                placed, a READ takes its data, an atomic changes its word, and a FLUSH pushes what
//                was placed before.
//   completion   The requester learns of the request. For a SEND or WRITE this says that the
//                responder's device has it, and nothing of its placement; for a READ, an atomic
//                and a FLUSH it says that they have been executed, and all before them.
//
// Execution, with `#` where the later request never overtakes the earlier one, and `F` where only a
// fence prevents that:
//
//                              the later request
//   the earlier one     SEND, WRITE   READ   atomic   FLUSH
//   SEND, WRITE              #          #       #        #
//   READ                     F          #       F        F
//   atomic                   F          #       #        #
//   FLUSH                    F          #       #        #
//
// "WRITE" includes WRITE with immediate; "atomic" is compare-and-swap, fetch-and-add and ATOMIC
// WRITE.
//
// Sources. SEND, WRITE, READ and atomic: InfiniBand Architecture Specification, volume 1, section
// 10.8.3.3, table 79, "Work Request Operation Ordering", which has the same two signs. The table
// above deviates from it in one entry: two atomics need a fence there, but section 9.5 has the
// responder execute SENDs, WRITEs and atomics, though not READs, in the order in which they arrive,
// and RDMA-TSO orders atomics (Ambal and others, OOPSLA 2024, and its extension by remote
// read-modify-writes). The two sections differ in the same way about a SEND or WRITE after an
// atomic; there the weaker answer of table 79 counts. FLUSH and ATOMIC WRITE: annex A19,
// memory placement extensions; "Correct, Fast Remote Persistence", section 2. A FLUSH changes
// nothing that a READ returns, so nothing asks it to wait for one. On iWARP, RFC 5040, section 5.5,
// and RFC 7306 let the same requests overtake a READ or an atomic, and order no more; they are
// read in different ways about the placement of successive WRITEs (docs/persistence.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace perdura::fabric {

// The kinds of work requests that differ in their order.
enum class WorkKind : std::uint8_t {
  posted,  // SEND, WRITE, WRITE with immediate
  read,
  atomic,  // compare-and-swap, fetch-and-add, ATOMIC WRITE
  flush,   // FLUSH, for visibility or for persistence
};
inline constexpr std::array kWorkKinds{WorkKind::posted, WorkKind::read, WorkKind::atomic,
                                       WorkKind::flush};

enum class Order : std::uint8_t {
  // The later request takes effect after the earlier one.
  kept,
  // It does so only if it is fenced, or if a request between the two of them is.
  with_fence,
};

namespace detail {

inline constexpr Order k = Order::kept;
inline constexpr Order f = Order::with_fence;
// A row is for the earlier request, a column for the later one, in the order of kWorkKinds.
inline constexpr std::array<std::array<Order, kWorkKinds.size()>, kWorkKinds.size()> kTable{{
    {k, k, k, k},
    {f, k, f, f},
    {f, k, k, k},
    {f, k, k, k},
}};

}  // namespace detail

constexpr Order order_of(WorkKind earlier, WorkKind later) {
  return detail::kTable[static_cast<std::size_t>(earlier)][static_cast<std::size_t>(later)];
}

// Returns true if a fenced request waits for the completion of an earlier one of this kind.
constexpr bool fence_waits_for(WorkKind earlier) { return earlier != WorkKind::posted; }

// Returns true if the later request may take effect before the earlier one. `fenced` says that the
// later one is fenced, or one between the two of them.
constexpr bool may_overtake(WorkKind later, WorkKind earlier, bool fenced) {
  return order_of(earlier, later) == Order::with_fence && !(fenced && fence_waits_for(earlier));
}

}  // namespace perdura::fabric
