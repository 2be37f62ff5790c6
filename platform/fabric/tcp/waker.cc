#include "platform/fabric/tcp/waker.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <cerrno>

#include "platform/base/error.h"

namespace perdura::fabric::tcp {

Waker::Waker(int descriptor, runtime::Doorbell& bell, ThreadUse& use)
    : descriptor_(descriptor),
      bell_(bell),
      use_(use),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      stop_(::eventfd(0, EFD_CLOEXEC)) {
  // Not armed yet: an empty set of events reports nothing, and one-shot events are off after the
  // first.
  epoll_event unarmed{.events = EPOLLONESHOT, .data = {.fd = descriptor_}};
  epoll_event stopped{.events = EPOLLIN, .data = {.fd = stop_.get()}};
  if (!epoll_ || !stop_ || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor_, &unarmed) != 0 ||
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stop_.get(), &stopped) != 0) {
    throw PlatformError(fmt::format("connections over TCP: cannot wait for sockets: {}",
                                    pmem::mapped::error_text(errno)));
  }
  thread_ = OsThread([this] { wait(); });
}

Waker::~Waker() {
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

void Waker::arm() {
  epoll_event armed{.events = EPOLLIN | EPOLLONESHOT, .data = {.fd = descriptor_}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor_, &armed);
}

void Waker::wait() {
  use_.begin();
  for (;;) {
    epoll_event event{};
    if (::epoll_wait(epoll_.get(), &event, 1, -1) <= 0) continue;
    if (event.data.fd == stop_.get()) break;
    bell_.ring();
  }
  use_.end();
}

}  // namespace perdura::fabric::tcp
