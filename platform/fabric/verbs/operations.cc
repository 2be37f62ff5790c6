// Processing of an operation before it is handed to the device and after it has completed:
// resolving keys, checking rights, and write accounting.
#include <cstring>
#include <utility>

#include "platform/fabric/verbs/endpoint.h"
#include "platform/fabric/verbs/queue_pair.h"
#include "platform/pmem/word_copy.h"

namespace perdura::fabric::verbs {
namespace {

using pmem::Cause;
using pmem::Medium;
using Level = pmem::WriteMeter::Level;

bool replaces(Opcode opcode) {
  return opcode == Opcode::write || opcode == Opcode::write_with_immediate ||
         opcode == Opcode::atomic_write;
}

bool works_on_a_word(Opcode opcode) {
  return opcode == Opcode::compare_and_swap || opcode == Opcode::fetch_and_add ||
         opcode == Opcode::atomic_write;
}

Bytes remote_length(const WorkRequest& request) {
  if (works_on_a_word(request.opcode)) return kWord;
  return request.opcode == Opcode::flush ? request.flush_length : request.local.length();
}

bool has(const Capabilities& can, Opcode opcode) {
  switch (opcode) {
    case Opcode::write_with_immediate:
      return can.write_with_immediate;
    case Opcode::compare_and_swap:
    case Opcode::fetch_and_add:
      return can.atomics;
    case Opcode::flush:
      return can.flush;
    case Opcode::atomic_write:
      return can.atomic_write;
    case Opcode::append:
      return can.appends;
    default:
      return true;
  }
}

}  // namespace

VerbsQueuePair::Readiness VerbsQueuePair::examine(SendRequest& request, Status& failure) {
  const WorkRequest& wanted = request.request;
  const Capabilities& can = endpoint_.device().capabilities();
  if ((wanted.flags.inlined && wanted.local.length() > can.max_inline) ||
      (commits(wanted) && !can.commits) || !has(can, wanted.opcode)) {
    failure = Status::unsupported;
  } else if (wanted.local.length() > can.max_message) {
    failure = Status::message_too_long;
  } else if (wanted.opcode != Opcode::send) {
    if (!look_up(request)) return Readiness::not_yet;
    failure = check(request);
  }
  return failure == Status::success ? Readiness::ready : Readiness::never;
}

// Looks up the range of the request's key; returns false while the answer is awaited.
bool VerbsQueuePair::look_up(SendRequest& request) {
  if (request.resolved || request.refused) return true;
  const std::uint32_t key = request.request.remote.key.value;
  if (const RemoteRange* const range = endpoint_.known_range(peer_.node, key)) {
    request.range = *range;
    request.resolved = true;
    return true;
  }
  if (!std::exchange(request.asked, true)) endpoint_.ask(peer_, id_, key);
  return false;
}

void VerbsQueuePair::key_found(std::uint32_t key, const std::optional<RemoteRange>& range) {
  if (waiting_.empty()) return;
  SendRequest& next = *waiting_.front();
  if (next.asked && next.request.remote.key.value == key && !range) next.refused = true;
  endpoint_.note(*this);
}

Status VerbsQueuePair::check(const SendRequest& request) const {
  const WorkRequest& wanted = request.request;
  const RemoteRange& range = request.range;
  if (request.refused || !allows(range.access, right_for(wanted.opcode)) ||
      !range.holds(wanted.remote.offset, remote_length(wanted)) ||
      (works_on_a_word(wanted.opcode) && (range.address + wanted.remote.offset) % kWord != 0)) {
    return Status::remote_access_error;
  }
  const bool persistence =
      wanted.opcode == Opcode::flush && wanted.placement == Placement::persistence;
  return persistence && !range.flush_persistence ? Status::unsupported : Status::success;
}

Posting VerbsQueuePair::posting_of(SendRequest& request) const {
  const WorkRequest& wanted = request.request;
  Posting posting{.opcode = wanted.opcode,
                  .fenced = wanted.flags.fenced,
                  .placement = wanted.placement,
                  .immediate = wanted.immediate,
                  .device_key = request.range.device_key,
                  .address = request.range.address + wanted.remote.offset,
                  .operand = wanted.operand,
                  .expected = wanted.expected,
                  .flush_length = wanted.flush_length};
  if (wanted.opcode == Opcode::send) posting.address = posting.device_key = 0;
  if (wanted.opcode == Opcode::compare_and_swap || wanted.opcode == Opcode::fetch_and_add) {
    posting.add({reinterpret_cast<std::uint64_t>(&request.result), kWord, request.slab_key});
  } else if (request.owns_data) {
    posting.add({reinterpret_cast<std::uint64_t>(request.data.data()), wanted.local.length(),
                 request.slab_key});
    posting.inlined = posting.pieces != 0;
  } else {
    for (const LocalBuffer& piece : wanted.local.all()) {
      if (piece.length != 0) posting.add(endpoint_.locate(piece));
    }
  }
  if (wanted.opcode == Opcode::read && VerbsEndpoint::lands_in_persistent(wanted.local) &&
      pmem::thread_write_meter().level() == Level::compared) {
    VerbsEndpoint::copy_contents(wanted.local, request.before);
  }
  return posting;
}

// --- write accounting ------------------------------------------------------------------

bool VerbsQueuePair::replaces_persistent(const SendRequest& request) const {
  return replaces(request.request.opcode) && request.range.medium == Medium::pm &&
         remote_length(request.request) != 0;
}

// The device at the other end does not report what a write replaces, so the old contents are read
// first.
void VerbsQueuePair::read_old_contents(const SendRequest& request) {
  const auto length = static_cast<std::uint32_t>(remote_length(request.request));
  if (old_contents_memory_ == nullptr || old_contents_.size() < length) {
    old_contents_memory_.reset();
    old_contents_.resize(length);
    old_contents_memory_ = endpoint_.device().register_memory(
        old_contents_.data(), old_contents_.size(), 0, "write accounting", "");
  }
  SendRequest* const read = endpoint_.pool().take();
  read->role = SendRequest::Role::old_contents;
  read->request = {.opcode = Opcode::read};
  counting_ = true;
  Posting posting{.opcode = Opcode::read,
                  .device_key = request.range.device_key,
                  .address = request.range.address + request.request.remote.offset};
  posting.add(
      {reinterpret_cast<std::uint64_t>(old_contents_.data()), length, old_contents_memory_->lkey});
  hand_over(read, posting);
}

// If contents are compared, `old_contents_` holds the bytes that the operation replaces.
void VerbsQueuePair::count_replacement(SendRequest& request) {
  request.counted = true;
  if (request.abandoned) return;
  const WorkRequest& wanted = request.request;
  const Bytes length = remote_length(wanted);
  pmem::WriteMeter& meter = pmem::thread_write_meter();
  const bool compared = meter.level() == Level::compared;
  if (compared && old_contents_.size() < length) old_contents_.resize(length);
  if (wanted.opcode == Opcode::atomic_write) {
    std::uint64_t before = 0;
    if (compared) std::memcpy(&before, old_contents_.data(), kWord);
    meter.word(Cause::one_sided, before, wanted.operand, pmem::kWholeWord);
  } else {
    std::span<const std::byte> payload = std::span(request.data).first(0);
    if (request.owns_data) {
      payload = std::span(request.data).first(length);
    } else if (wanted.local.is_one()) {
      payload = wanted.local.first().bytes();
    } else {
      VerbsEndpoint::copy_contents(wanted.local, gathered_);
      payload = gathered_;
    }
    meter.bytes(Cause::one_sided,
                compared ? std::span<const std::byte>(old_contents_).first(length)
                         : std::span<const std::byte>(),
                payload);
  }
  meter.lines_written(Cause::one_sided, request.range.region_offset + wanted.remote.offset, length);
}

void VerbsQueuePair::count_completed(SendRequest& request) {
  const WorkRequest& wanted = request.request;
  if (wanted.opcode == Opcode::read) {
    if (request.operation != nullptr && VerbsEndpoint::lands_in_persistent(wanted.local)) {
      VerbsEndpoint::count_placed(wanted.local, wanted.local.length(), request.before);
    }
    return;
  }
  const bool swaps = wanted.opcode == Opcode::compare_and_swap;
  if ((!swaps && wanted.opcode != Opcode::fetch_and_add) || request.range.medium != Medium::pm ||
      (swaps && request.result != wanted.expected)) {
    return;
  }
  pmem::WriteMeter& meter = pmem::thread_write_meter();
  meter.word(Cause::one_sided, request.result,
             swaps ? wanted.operand : request.result + wanted.operand, pmem::kWholeWord);
  meter.lines_written(Cause::one_sided, request.range.region_offset + wanted.remote.offset, kWord);
}

}  // namespace perdura::fabric::verbs
