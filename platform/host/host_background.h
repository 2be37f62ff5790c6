// A background thread of a node of a real platform: an operating-system thread whose executor is
// given tasks by another one's.
#pragma once

#include <thread>
#include <vector>

#include "platform/host/host_node.h"
#include "platform/host/thread_executor.h"
#include "platform/platform.h"
#include "platform/pmem/accounting.h"
#include "platform/runtime/doorbell.h"

namespace perdura {

class HostBackgroundThread final : public BackgroundThread {
 public:
  // `clock`: the platform's. It may run on `cores`, if there are any. `use` stays
  // for as long as the node.
  HostBackgroundThread(const runtime::HostClock& clock, pmem::WriteMeter::Level accounting,
                       std::vector<unsigned> cores, ThreadUse& use);
  ~HostBackgroundThread() override;

  Task<> run(Task<> work) override;

 private:
  void main(pmem::WriteMeter::Level accounting, const std::vector<unsigned>& cores);

  runtime::Doorbell doorbell_;
  runtime::ThreadExecutor executor_;
  ThreadUse& use_;
  std::thread thread_;  // last: all else is there when it starts
};

}  // namespace perdura
