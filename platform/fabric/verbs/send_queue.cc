#include "platform/fabric/verbs/send_queue.h"

#include <arpa/inet.h>

#include <cerrno>

namespace perdura::fabric::verbs {
namespace {

unsigned flags_of(const Posting& posting) {
  unsigned flags = 0;
  if (posting.signaled) flags |= IBV_SEND_SIGNALED;
  if (posting.fenced) flags |= IBV_SEND_FENCE;
  if (posting.inlined) flags |= IBV_SEND_INLINE;
  return flags;
}

void fill(ibv_send_wr& request, const Posting& posting) {
  request.wr_id = posting.id;
  request.send_flags = flags_of(posting);
  request.wr.rdma.remote_addr = posting.address;
  request.wr.rdma.rkey = posting.device_key;
  switch (posting.opcode) {
    case Opcode::read:
      request.opcode = IBV_WR_RDMA_READ;
      break;
    case Opcode::write_with_immediate:
      request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
      request.imm_data = htonl(posting.immediate);
      break;
    case Opcode::send:
      request.opcode = IBV_WR_SEND;
      break;
    case Opcode::compare_and_swap:
    case Opcode::fetch_and_add: {
      const bool swaps = posting.opcode == Opcode::compare_and_swap;
      request.opcode = swaps ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
      request.wr.atomic.remote_addr = posting.address;
      request.wr.atomic.rkey = posting.device_key;
      request.wr.atomic.compare_add = swaps ? posting.expected : posting.operand;
      request.wr.atomic.swap = posting.operand;
      break;
    }
    default:  // FLUSH and ATOMIC WRITE are never posted this way
      request.opcode = IBV_WR_RDMA_WRITE;
  }
}

}  // namespace

void SendQueue::add(const Posting& posting) { postings_[count_++] = posting; }

int SendQueue::ring() {
  if (count_ == 0) return 0;
  const std::size_t count = count_;
  count_ = 0;
  if (extended_ != nullptr) {
    ibv_wr_start(extended_);
    for (std::size_t i = 0; i < count; ++i) add_extended(postings_[i]);
    return ibv_wr_complete(extended_);
  }
  std::array<ibv_send_wr, kBatch> requests{};
  for (std::size_t i = 0; i < count; ++i) {
    fill(requests[i], postings_[i]);
    requests[i].next = i + 1 < count ? &requests[i + 1] : nullptr;
    requests[i].sg_list = postings_[i].local.data();
    requests[i].num_sge = postings_[i].pieces;
  }
  ibv_send_wr* refused = nullptr;
  return ibv_post_send(pair_, requests.data(), &refused);
}

void SendQueue::add_extended(const Posting& posting) {
  extended_->wr_id = posting.id;
  extended_->wr_flags = flags_of(posting);
  switch (posting.opcode) {
    case Opcode::read:
      ibv_wr_rdma_read(extended_, posting.device_key, posting.address);
      break;
    case Opcode::write:
      ibv_wr_rdma_write(extended_, posting.device_key, posting.address);
      break;
    case Opcode::write_with_immediate:
      ibv_wr_rdma_write_imm(extended_, posting.device_key, posting.address,
                            htonl(posting.immediate));
      break;
    case Opcode::send:
      ibv_wr_send(extended_);
      break;
    case Opcode::compare_and_swap:
      ibv_wr_atomic_cmp_swp(extended_, posting.device_key, posting.address, posting.expected,
                            posting.operand);
      break;
    case Opcode::fetch_and_add:
      ibv_wr_atomic_fetch_add(extended_, posting.device_key, posting.address, posting.operand);
      break;
    case Opcode::flush:
#ifdef PERDURA_VERBS_FLUSH
      ibv_wr_flush(
          extended_, posting.device_key, posting.address, posting.flush_length,
          posting.placement == Placement::persistence ? IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL,
          IBV_FLUSH_RANGE);
#endif
      return;
    case Opcode::append:  // neither is ever posted: no device has it
    case Opcode::commit:
      return;
    case Opcode::atomic_write:
#ifdef PERDURA_VERBS_ATOMIC_WRITE
      ibv_wr_atomic_write(extended_, posting.device_key, posting.address, &posting.operand);
#endif
      return;
  }
  const ibv_sge& first = posting.local.front();
  if (posting.inlined) {
    ibv_wr_set_inline_data(extended_, reinterpret_cast<void*>(first.addr), first.length);
  } else if (posting.pieces == 1) {
    ibv_wr_set_sge(extended_, first.lkey, first.addr, first.length);
  } else {
    ibv_wr_set_sge_list(extended_, static_cast<std::size_t>(posting.pieces), posting.local.data());
  }
}

}  // namespace perdura::fabric::verbs
