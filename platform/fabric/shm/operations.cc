// What the operations do to the peer's memory.
#include <fmt/core.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "platform/fabric/shm/endpoint.h"
#include "platform/fabric/shm/queue_pair.h"
#include "platform/pmem/instructions.h"
#include "platform/pmem/word_copy.h"

namespace perdura::fabric::shm {
namespace {

using pmem::Cause;
using pmem::Medium;

// The initiator's thread counts what its operations write, at both ends.
void place(std::byte* target, Medium medium, Bytes region_offset, std::span<const std::byte> data) {
  if (data.empty()) return;
  if (medium == Medium::pm) {
    pmem::WriteMeter& meter = pmem::thread_write_meter();
    pmem::mapped::count_write(meter, Cause::one_sided, target, data);
    meter.lines_written(Cause::one_sided, region_offset, data.size());
  }
  pmem::mapped::copy_to_shared(target, data);
}

void count_word(const RemoteRange& range, Bytes offset, std::uint64_t before, std::uint64_t after) {
  if (range.medium != Medium::pm) return;
  pmem::WriteMeter& meter = pmem::thread_write_meter();
  meter.word(Cause::one_sided, before, after, pmem::kWholeWord);
  meter.lines_written(Cause::one_sided, range.region_offset + offset, kWord);
}

}  // namespace

std::span<std::byte> checked_bytes(const LocalBuffer& buffer) {
  if (buffer.length == 0) return {};
  if (buffer.region == nullptr || buffer.offset > buffer.region->size() ||
      buffer.length > buffer.region->size() - buffer.offset) [[unlikely]] {
    fmt::print(stderr, "perdura: a local buffer of {} bytes at {} is outside its region\n",
               buffer.length, buffer.offset);
    std::abort();
  }
  return buffer.bytes();
}

const RemoteRange* ShmQueuePair::resolve(RemoteAddress address, Bytes length, Access needed) {
  const RemoteRange* range = remote_.memory->find(address.key.value);
  if (range == nullptr || !allows(range->access, needed) || !range->holds(address.offset, length)) {
    return nullptr;
  }
  return range;
}

// What changes the peer's memory says so before it looks whether the peer is still there: a process
// that takes the peer's place closes the connection first and then waits for what has begun
// (Job::declare_dead). So nothing is placed in memory that the new process uses, however long this
// thread goes without a core.
ShmQueuePair::Outcome ShmQueuePair::execute(const WorkRequest& request, Payload payload) {
  if (request.opcode == Opcode::read || request.opcode == Opcode::flush) {
    return perform(request, payload);
  }
  Word& changing = remote_slot().changing;
  changing.store(endpoint_.life_, std::memory_order_seq_cst);
  const Outcome outcome = perform(request, payload);
  changing.store(0, std::memory_order_release);
  return outcome;
}

ShmQueuePair::Outcome ShmQueuePair::perform(const WorkRequest& request, Payload payload) {
  // A peer that has gone, or a new process that took its place, wants none of this any more.
  if (!is_connected(remote_slot().state.load(std::memory_order_seq_cst))) [[unlikely]] {
    return {Status::retry_exceeded, 0};
  }
  if (request.flags.inlined && request.local.length > kMaxInline) return {Status::unsupported, 0};
  if (request.local.length > endpoint_.capabilities().max_message) {
    return {Status::message_too_long, 0};
  }
  switch (request.opcode) {
    case Opcode::read:
      return read(request);
    case Opcode::write:
      return write(request, payload);
    case Opcode::write_with_immediate:
    case Opcode::send:
      return deliver(request, payload);
    case Opcode::compare_and_swap:
    case Opcode::fetch_and_add:
    case Opcode::atomic_write:
      return atomic(request);
    case Opcode::flush:
      return flush(request);
  }
  return {Status::unsupported, 0};
}

ShmQueuePair::Outcome ShmQueuePair::read(const WorkRequest& request) {
  const RemoteRange* range = resolve(request.remote, request.local.length, Access::remote_read);
  if (range == nullptr) return {Status::remote_access_error, 0};
  const std::byte* source = range->base + request.remote.offset;
  const std::span<std::byte> into = checked_bytes(request.local);
  if (!into.empty() && request.local.region->medium() == Medium::pm) [[unlikely]] {
    // The device of this node writes to its persistent memory: counted, and visible word by word.
    thread_local std::vector<std::byte> data;
    data.resize(into.size());
    pmem::mapped::copy_from_shared(data, source);
    place(into.data(), Medium::pm, request.local.offset, data);
    return {};
  }
  pmem::mapped::copy_from_shared(into, source);
  return {};
}

ShmQueuePair::Outcome ShmQueuePair::write(const WorkRequest& request, Payload payload) {
  const RemoteRange* range = resolve(request.remote, payload.size(), Access::remote_write);
  if (range == nullptr) return {Status::remote_access_error, 0};
  place(range->base + request.remote.offset, range->medium,
        range->region_offset + request.remote.offset, payload);
  return {};
}

ShmQueuePair::Outcome ShmQueuePair::atomic(const WorkRequest& request) {
  const bool is_write = request.opcode == Opcode::atomic_write;
  const RemoteRange* range =
      resolve(request.remote, kWord, is_write ? Access::remote_write : Access::remote_atomic);
  std::byte* target = range == nullptr ? nullptr : range->base + request.remote.offset;
  if (target == nullptr || reinterpret_cast<std::uintptr_t>(target) % kWord != 0) {
    return {Status::remote_access_error, 0};
  }
  const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(target));
  switch (request.opcode) {
    case Opcode::compare_and_swap: {
      std::uint64_t old = request.expected;
      if (word.compare_exchange_strong(old, request.operand)) {
        count_word(*range, request.remote.offset, old, request.operand);
      }
      return {Status::success, old};
    }
    case Opcode::fetch_and_add: {
      const std::uint64_t old = word.fetch_add(request.operand);
      count_word(*range, request.remote.offset, old, old + request.operand);
      return {Status::success, old};
    }
    default: {
      const std::uint64_t old = word.exchange(request.operand);
      count_word(*range, request.remote.offset, old, request.operand);
      return {};
    }
  }
}

ShmQueuePair::Outcome ShmQueuePair::flush(const WorkRequest& request) {
  const RemoteRange* range = resolve(request.remote, request.flush_length, Access::remote_flush);
  if (range == nullptr) return {Status::remote_access_error, 0};
  // Visible is what was written before anyway: it is this thread that wrote it.
  if (request.placement == Placement::persistence) {
    pmem::mapped::flush_lines(range->base + request.remote.offset, request.flush_length);
    pmem::mapped::drain();
  }
  return {};
}

// SEND and WRITE_WITH_IMM: places the data and reports it in the connection's ring.
ShmQueuePair::Outcome ShmQueuePair::deliver(const WorkRequest& request, Payload payload) {
  const bool is_send = request.opcode == Opcode::send;
  if (!is_send && resolve(request.remote, payload.size(), Access::remote_write) == nullptr) {
    return {Status::remote_access_error, 0};
  }
  const auto claim = claims_.claim();
  if (!claim) return {Status::receiver_not_ready, 0};

  Status status = Status::success;
  if (!is_send) {
    status = write(request, payload).status;
  } else if (payload.size() > claim->length) {
    status = Status::message_too_long;
  } else if (!payload.empty()) {
    const RemoteRange* range = remote_.memory->find(claim->key);
    if (range == nullptr || !range->holds(claim->offset, payload.size())) {
      status = Status::remote_access_error;  // the buffer's region went away after it was posted
    } else {
      place(range->base + claim->offset, range->medium, range->region_offset + claim->offset,
            payload);
    }
  }

  Message& message = out_[(out_next_ - 1) & out_mask_];
  message.ticket = claim->ticket;
  message.length = is_send && status == Status::success ? request.local.length : 0;
  message.immediate = request.immediate;
  message.has_immediate = is_send ? 0 : 1;
  message.status = status;
  // The last of these is the read-modify-write that the doorbell asks for.
  if (out_is_watched_) {
    message.sequence.exchange(out_next_++, std::memory_order_seq_cst);
  } else {
    message.sequence.store(out_next_++, std::memory_order_release);
    peer_activity_->fetch_or(peer_activity_bit_, std::memory_order_seq_cst);
  }
  peer_doorbell_->ring();
  return {status, 0};
}

}  // namespace perdura::fabric::shm
