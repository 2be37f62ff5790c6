#include "platform/fabric/verbs/meaning.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>

#include "platform/pmem/mapped/mapping.h"

namespace perdura::fabric::verbs {
namespace {

CompletionMeaning invalid_request(Opcode opcode) {
  if (opcode == Opcode::send || opcode == Opcode::write_with_immediate) {
    return {Status::message_too_long,
            "remote invalid request: the message is longer than the peer's receive buffer"};
  }
  return {Status::remote_access_error,
          "remote invalid request: the peer's device does not take this operation there (an atomic "
          "that is not aligned, or a right that its queue pair does not give)"};
}

std::string memory_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "is unknown";
  if (limit.rlim_cur == RLIM_INFINITY) return "is unlimited, so it is the device's memory or table";
  return fmt::format("is {} KiB", limit.rlim_cur / 1024);
}

}  // namespace

CompletionMeaning meaning_of(ibv_wc_status status, Opcode opcode) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return {Status::success, "success"};
    case IBV_WC_LOC_LEN_ERR:
      return {Status::message_too_long,
              "local length error: a message is longer than the receive buffer, or than the port "
              "takes"};
    case IBV_WC_LOC_QP_OP_ERR:
      return {Status::unsupported,
              "local queue pair operation error: the device does not take this request"};
    case IBV_WC_LOC_PROT_ERR:
      return {Status::unsupported,
              "local protection error: the local buffer is not registered (any more)"};
    case IBV_WC_WR_FLUSH_ERR:
      return {Status::flushed, "flushed: the queue pair was in error or was being closed"};
    case IBV_WC_BAD_RESP_ERR:
      return {Status::retry_exceeded, "bad response: the peer answered what was not asked"};
    case IBV_WC_LOC_ACCESS_ERR:
      return {Status::remote_access_error,
              "local access error: the peer wrote to what this side does not allow"};
    case IBV_WC_REM_INV_REQ_ERR:
      return invalid_request(opcode);
    case IBV_WC_REM_ACCESS_ERR:
      return {Status::remote_access_error,
              "remote access error: the peer refused; the key is wrong or deregistered, the range "
              "is outside the registered memory, or a right is missing"};
    case IBV_WC_REM_OP_ERR:
      return {opcode == Opcode::send ? Status::message_too_long : Status::remote_access_error,
              "remote operation error: the peer's device could not carry it out"};
    case IBV_WC_RETRY_EXC_ERR:
      return {Status::retry_exceeded,
              "retries exceeded: the peer does not answer; it is gone, or the network does not "
              "reach it (MTU, VLAN, firewall for UDP port 4791)"};
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return {Status::receiver_not_ready,
              "receiver not ready: the peer posted no receive buffer, through all retries"};
    case IBV_WC_RESP_TIMEOUT_ERR:
      return {Status::retry_exceeded, "response timeout: the peer does not answer"};
    case IBV_WC_REM_ABORT_ERR:
      return {Status::retry_exceeded, "remote abort: the peer ended the operation"};
    case IBV_WC_FATAL_ERR:
      return {Status::flushed, "fatal error of the device"};
    default:
      return {Status::flushed, ibv_wc_status_str(status)};
  }
}

EventMeaning meaning_of(ibv_event_type event) {
  switch (event) {
    case IBV_EVENT_COMM_EST:
      return {"a queue pair received its first packet", true, false};
    case IBV_EVENT_SQ_DRAINED:
      return {"a send queue is drained", true, false};
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return {"a queue pair in error takes no more receive buffers", true, false};
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return {"a shared receive queue runs short of buffers", true, false};
    case IBV_EVENT_PORT_ACTIVE:
      return {"the port is active", false, false};
    case IBV_EVENT_PORT_ERR:
      return {
          "the port is down: the link is gone, or its interface was taken down; connections end "
          "when their retries do",
          false, false};
    case IBV_EVENT_GID_CHANGE:
      return {"the addresses (GIDs) of the port have changed", false, false};
    case IBV_EVENT_LID_CHANGE:
      return {"the subnet manager has changed the LID of the port", false, false};
    case IBV_EVENT_PKEY_CHANGE:
      return {"the partition keys of the port have changed", false, false};
    case IBV_EVENT_SM_CHANGE:
      return {"another subnet manager is in charge", false, false};
    case IBV_EVENT_CLIENT_REREGISTER:
      return {"the subnet manager asks for a new registration", false, false};
    case IBV_EVENT_PATH_MIG:
      return {"a connection has moved to its alternate path", false, false};
    case IBV_EVENT_PATH_MIG_ERR:
      return {"a connection could not move to its alternate path", false, false};
    case IBV_EVENT_QP_ACCESS_ERR:
      return {"access error of a queue pair: the peer asked for what it may not, and was refused",
              false, false};
    case IBV_EVENT_QP_REQ_ERR:
      return {"request error of a queue pair: the peer sent what this device does not take", false,
              false};
    case IBV_EVENT_QP_FATAL:
      return {"fatal error of a queue pair", false, false};
    case IBV_EVENT_CQ_ERR:
      return {"a completion queue overflowed or was lost", false, true};
    case IBV_EVENT_SRQ_ERR:
      return {"a shared receive queue was lost", false, true};
    case IBV_EVENT_DEVICE_FATAL:
      return {"fatal error of the device: it was removed, or has to be reset", false, true};
    default:
      return {ibv_event_type_str(event), false, false};
  }
}

std::string registration_problem(int error, const Registration& what, std::string_view device) {
  const std::string subject =
      fmt::format("{} cannot register {} bytes of region {}", device, what.length, what.region);
  switch (error) {
    case ENOMEM:
      return fmt::format(
          "{}: not enough lockable memory (ENOMEM): the limit of locked memory {}; set memlock to "
          "unlimited in /etc/security/limits.conf (needs root; LimitMEMLOCK=infinity for services) "
          "and log in again, or use platform shm, which locks none",
          subject, memory_limit());
    case EOPNOTSUPP:
      return fmt::format(
          "{}: {} is on a DAX file system, whose pages the kernel does not lend to devices for "
          "long "
          "(EOPNOTSUPP); put persistent memory on device DAX (ndctl create-namespace -m devdax, "
          "needs root), or use platform shm, which works on DAX file systems",
          subject, what.path.empty() ? "its memory" : what.path);
    case EINVAL:
      if (what.flush_persistence) {
        return fmt::format(
            "{}: FLUSH for persistence needs persistent memory, and {} is none (EINVAL); put "
            "persistent memory on device DAX, or use platform shm",
            subject, what.path.empty() ? "anonymous memory" : what.path);
      }
      return fmt::format(
          "{}: the device does not take this memory or these rights (EINVAL); use "
          "another device, or platform shm",
          subject);
    case EFAULT:
      return fmt::format("{}: the memory is not mapped for writing (EFAULT)", subject);
    case EACCES:
    case EPERM:
      return fmt::format(
          "{}: this user may not lock memory; set memlock in /etc/security/limits.conf (needs "
          "root), or use platform shm",
          subject);
    default:
      return fmt::format("{}: {}; platform shm needs no device", subject,
                         pmem::mapped::error_text(error));
  }
}

}  // namespace perdura::fabric::verbs
