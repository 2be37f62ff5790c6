// The messages by which the two ends of a connection are joined, and how the sender learns that a
// sync point has arrived.
#pragma once

#include <cstdint>
#include <optional>

#include "methods/method.h"
#include "platform/fabric/types.h"
#include "systems/mojim/layout.h"

namespace perdura::systems::mojim {

inline constexpr std::uint32_t kProtocolVersion = 3;

struct Hello {
  std::uint32_t version = 0;
  std::uint8_t log = 0;
  std::uint8_t in_background = 0;  // 1: nobody waits for sync points to arrive
  // The copy's contents, or what will become of them. `equal` and `other` matter only to a copy
  // that has not taken part in this term so far.
  // - `equal`: it holds what it has to, as when the region is new, or has been loaded from it.
  // - `other`: the region has to be copied to it.
  // - `written`: the sender now WRITEs its own data area to it, whatever it holds, and then stores
  //   into the control memory (kWritten) which id must be applied before it is complete.
  // - `awaited`: the sender does not have the region itself yet; a copy that lacks sync points up
  //   to `from` is incomplete until it is given the region.
  enum class Contents : std::uint16_t { equal, other, written, awaited } contents = Contents::equal;
  // The id up to which the sender has nothing more to send; it is of the sender's term.
  std::uint64_t from = 0;
  Shape shape;
};
static_assert(sizeof(Hello) == 56 && sizeof(Hello) <= fabric::kMaxPrivateData);

struct Welcome {
  std::uint64_t position = 0;    // position of the next request in the log
  std::uint64_t free_until = 0;  // positions below it have free slots
  std::uint64_t last_id = 0;     // the log needs no requests up to this one
  std::uint64_t safe = 0;        // up to this one they count as acknowledged
  std::uint64_t applied = 0;     // all up to this one are applied, from all logs
  fabric::RemoteKey control;     // the control memory
  fabric::RemoteKey data;        // the data area
  std::uint16_t incomplete = 0;  // 1: the region has to be given to it
};
static_assert(sizeof(Welcome) <= fabric::kMaxPrivateData);

// The control memory of a log: free_until as it is now, a word that the sender WRITEs, and the
// heartbeat (section 3.2.3), a number that grows as long as the thread of the log runs,
// kHeartbeatsInTimeout times in the interval after which a node that does not answer has failed.
inline constexpr Bytes kFreeUntil = 0;
inline constexpr Bytes kWritten = kWord;
inline constexpr Bytes kHeartbeat = 2 * kWord;
inline constexpr int kHeartbeatsInTimeout = 8;

struct Refusal {
  enum class Reason : std::uint32_t {
    none,
    in_use,
    replaced,
    shape,
    alone,   // it has been a primary without copies, and would lose what it has acknowledged
    broken,  // never sent: the connection broke before an answer
  } reason = Reason::none;
  std::uint32_t version = 0;
  std::uint64_t term = 0;  // the term of the node that refuses
};

// The event for which the sender waits after the last request of a sync point.
enum class Acknowledgment : std::uint8_t {
  device,  // the completion of the SEND: one round trip, without the receiver's CPU (section 3.2.1)
  read,    // that of a READ that follows: what was placed before is visible
  message,  // a message of the receiver, which has flushed it or passed it on
};

// How a copy acknowledges with this method, or, without one, as in the paper.
inline Acknowledgment acknowledgment_by(const std::optional<methods::Method>& method) {
  if (!method) return Acknowledgment::device;
  if (!method->responder().empty()) return Acknowledgment::message;
  const bool behind = method->uses(pmem::StepKind::flush_visibility);
  return behind ? Acknowledgment::read : Acknowledgment::device;
}

// Over TCP only the receiver's software can say what has arrived, and what it stores is in its
// caches.
inline Acknowledgment acknowledgment_over_tcp() { return Acknowledgment::message; }

// Acknowledgment::message: every request up to this id is safe.
struct Acknowledged {
  std::uint64_t id = 0;
};

}  // namespace perdura::systems::mojim
