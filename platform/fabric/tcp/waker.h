// Wakes an executor that sleeps on its doorbell when a file descriptor becomes readable, with a
// thread that waits for the descriptor. For doorbells without an eventfd: those that other
// processes ring.
#pragma once

#include "platform/host/host_node.h"
#include "platform/host/os_thread.h"
#include "platform/pmem/mapped/mapping.h"
#include "platform/runtime/doorbell.h"

namespace perdura::fabric::tcp {

class Waker {
 public:
  // `use`: where the thread's CPU time is counted. Throws PlatformError.
  Waker(int descriptor, runtime::Doorbell& bell, ThreadUse& use);
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  // Rings the doorbell once, as soon as the descriptor is readable, or at once if it is already.
  void arm();

 private:
  void wait();

  int descriptor_;
  runtime::Doorbell& bell_;
  ThreadUse& use_;
  pmem::mapped::File epoll_;
  pmem::mapped::File stop_;
  OsThread thread_;
};

}  // namespace perdura::fabric::tcp
