// The send queue of a queue pair: requests are collected and handed to the device together, with
// one ring of its doorbell. The extended interface (ibv_wr_*) is used where the device has it,
// since it alone supports FLUSH and ATOMIC WRITE; otherwise ibv_post_send() is used.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>

#include "platform/fabric/types.h"

namespace perdura::fabric::verbs {

inline constexpr std::size_t kBatch = 16;

// One work request, as the device understands it.
struct Posting {
  std::uint64_t id = 0;
  Opcode opcode = Opcode::read;
  bool signaled = true;
  bool fenced = false;
  bool inlined = false;
  Placement placement = Placement::global_visibility;
  std::uint32_t immediate = 0;
  std::uint32_t device_key = 0;
  std::uint64_t address = 0;
  std::array<ibv_sge, kMaxPieces> local{};
  int pieces = 0;  // the number of pieces in `local`
  std::uint64_t operand = 0;
  std::uint64_t expected = 0;
  std::uint64_t flush_length = 0;

  void add(const ibv_sge& piece) {
    if (piece.length != 0) local[static_cast<std::size_t>(pieces++)] = piece;
  }
};

class SendQueue {
 public:
  SendQueue(ibv_qp* pair, bool extended)
      : pair_(pair), extended_(extended ? ibv_qp_to_qp_ex(pair) : nullptr) {}

  bool full() const { return count_ == kBatch; }
  // Inlined data is not touched after ring(), other data until the request has completed.
  void add(const Posting& posting);
  // Hands over what was added; returns an errno if the device refuses.
  int ring();

 private:
  ibv_qp* pair_;
  ibv_qp_ex* extended_;
  std::size_t count_ = 0;
  void add_extended(const Posting& posting);
  std::array<Posting, kBatch> postings_;
};

}  // namespace perdura::fabric::verbs
