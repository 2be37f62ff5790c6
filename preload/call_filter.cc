#include "preload/call_filter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "platform/base/error.h"

namespace perdura::preload {

namespace {

// libseccomp returns a negative errno.
void require(int result) {
  if (result == 0) return;
  throw PlatformError(fmt::format("libseccomp makes no filter: {}", std::strerror(-result)));
}

template <class... Comparisons>
void add(void* filter, std::uint32_t action, int call, Comparisons... comparisons) {
  require(seccomp_rule_add(filter, action, call, sizeof...(comparisons), comparisons...));
}

// Matches an argument whose bits in the mask are these.
scmp_arg_cmp has_bits(unsigned argument, std::uint32_t mask, std::uint32_t bits) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, bits};
}

void add_rules(void* filter) {
  for (const int call : {SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(sync_file_range),
                         SCMP_SYS(syncfs), SCMP_SYS(sync), SCMP_SYS(msync), SCMP_SYS(openat2)}) {
    add(filter, SCMP_ACT_NOTIFY, call);
  }
  for (const std::uint32_t type : {MAP_SHARED, MAP_SHARED_VALIDATE}) {
    add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(mmap), has_bits(3, MAP_TYPE | MAP_ANONYMOUS, type));
  }
  // O_SYNC has the bit of O_DSYNC.
  add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(open), has_bits(1, O_DSYNC, O_DSYNC));
  add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(openat), has_bits(2, O_DSYNC, O_DSYNC));
  add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(open_by_handle_at), has_bits(2, O_DSYNC, O_DSYNC));
  for (const std::uint32_t flag : {RWF_DSYNC, RWF_SYNC}) {
    add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(pwritev2), has_bits(5, flag, flag));
  }
  // These calls set up queues, and later requests in them name the file without a call that could
  // be held. To the program it is as if the kernel did not have them.
  add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(io_uring_setup));
  add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(io_setup));
}

// A message of one byte that carries a descriptor.
struct Letter {
  char one = 0;
  iovec part{&one, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  msghdr message{};
  Letter() {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
};

}  // namespace

CallFilter::CallFilter() : filter_(seccomp_init(SCMP_ACT_ALLOW)) {
  if (filter_ == nullptr) throw PlatformError("libseccomp makes no filter");
  try {
    // In code of 32 bits and of x32, call numbers mean other calls, so all calls from there are
    // refused.
    require(seccomp_attr_set(filter_, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)));
    // Lets programs gain other rights by what they execute (sudo), if this process may allow that.
    require(seccomp_attr_set(filter_, SCMP_FLTATR_CTL_NNP, 0));
    add_rules(filter_);
  } catch (...) {
    seccomp_release(filter_);
    throw;
  }
}

CallFilter::~CallFilter() { seccomp_release(filter_); }

int CallFilter::begin(int socket) {
  int problem = -seccomp_load(filter_);
  if (problem == EACCES || problem == EPERM) {
    seccomp_attr_set(filter_, SCMP_FLTATR_CTL_NNP, 1);
    problem = -seccomp_load(filter_);
  }
  if (problem != 0) return problem;
  const int held = seccomp_notify_fd(filter_);
  if (held < 0) return -held;
  Letter letter;
  cmsghdr* const header = CMSG_FIRSTHDR(&letter.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof held);
  std::memcpy(CMSG_DATA(header), &held, sizeof held);
  const bool is_sent = sendmsg(socket, &letter.message, MSG_NOSIGNAL) == 1;
  problem = errno;
  close(held);
  return is_sent ? 0 : problem;
}

int receive_held_calls(int socket) {
  Letter letter;
  ssize_t length = 0;
  do {
    length = recvmsg(socket, &letter.message, MSG_CMSG_CLOEXEC);
  } while (length < 0 && errno == EINTR);
  const cmsghdr* const header = length == 1 ? CMSG_FIRSTHDR(&letter.message) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return -1;
  int held = -1;
  std::memcpy(&held, CMSG_DATA(header), sizeof held);
  return held;
}

}  // namespace perdura::preload
