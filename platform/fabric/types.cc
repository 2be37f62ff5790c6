#include "platform/fabric/types.h"

#include "platform/pmem/region.h"

namespace perdura::fabric {

std::string_view to_string(Status status) {
  switch (status) {
    case Status::success:
      return "success";
    case Status::remote_access_error:
      return "remote access error";
    case Status::receiver_not_ready:
      return "receiver not ready";
    case Status::message_too_long:
      return "message too long for the receive buffer";
    case Status::retry_exceeded:
      return "retries exceeded: the peer does not answer";
    case Status::flushed:
      return "flushed: the queue pair was in error";
    case Status::unsupported:
      return "operation not supported";
    case Status::disconnected:
      return "disconnected";
  }
  return "unknown status";
}

std::string_view to_string(Opcode opcode) {
  switch (opcode) {
    case Opcode::read:
      return "READ";
    case Opcode::write:
      return "WRITE";
    case Opcode::write_with_immediate:
      return "WRITE_WITH_IMM";
    case Opcode::send:
      return "SEND";
    case Opcode::compare_and_swap:
      return "CAS";
    case Opcode::fetch_and_add:
      return "FAA";
    case Opcode::flush:
      return "FLUSH";
    case Opcode::append:
      return "APPEND";
    case Opcode::commit:
      return "COMMIT";
    case Opcode::atomic_write:
      return "ATOMIC_WRITE";
  }
  return "unknown operation";
}

std::span<std::byte> LocalBuffer::bytes() const { return {region->data() + offset, length}; }

}  // namespace perdura::fabric
