// The primary of Mojim within the process of an application that knows nothing of it: the file that
// is replicated, mapped into memory, and the application's sync points.
//
// Pages to which the application has stored are found by their protection (pmem/tracked_memory.h),
// and what it has written by system calls is noted by who calls note_written(). A thread of its own
// sends sync points; those that call wait for it.
//
// All member functions may be called by any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "library/mojim/cluster.h"
#include "library/mojim/reader_processes.h"
#include "platform/host/os_thread.h"
#include "platform/host/thread_executor.h"
#include "platform/pmem/tracked_memory.h"

namespace perdura::mojim {

class Application {
 public:
  // `on_thread` is called first on each thread that this makes.
  Application(Cluster cluster, std::function<void()> on_thread);
  ~Application();

  // The file in memory, for everybody who maps it.
  std::span<std::byte> memory() const { return tracked_->memory(); }

  // What a system call has written to the file; is part of the next sync point that covers it.
  void note_written(Bytes offset, Bytes length);
  // A sync point: all that was changed within these ranges goes to the copies, atomically if it
  // fits into a log. Nothing, or why it is not as safe as the mode promises.
  enum class Atomicity : std::uint8_t { required, if_possible };
  std::optional<services::SyncError> sync(std::span<const services::MemoryRange> ranges,
                                          Atomicity atomicity);

 private:
  Task<> be_primary(Thread& thread);
  Task<> send(std::vector<services::MemoryRange> changed, Atomicity atomicity,
              std::optional<services::SyncError>& problem);
  void tell_of_lost_copies();
  std::vector<services::MemoryRange> take_changed(std::span<const services::MemoryRange> ranges);

  Cluster cluster_;
  std::function<void()> on_thread_;
  std::optional<ReaderProcesses> readers_;  // of a copy that becomes the primary's
  std::unique_ptr<ShmPlatform> platform_;
  std::shared_ptr<services::MemoryReplica> replica_;
  std::unique_ptr<services::MappedMemory> mapped_;
  std::unique_ptr<pmem::TrackedMemory> tracked_;
  runtime::ThreadExecutor* executor_ = nullptr;
  std::promise<void> ready_;
  std::vector<bool> lost_;  // by node, of which it has been told
  WaitList ended_;
  bool ends_ = false;
  std::mutex changing_;
  std::vector<services::MemoryRange> written_;
  std::mutex syncing_;  // sync points are in the order in which their changes are taken
  std::exception_ptr problem_;
  OsThread thread_;
};

}  // namespace perdura::mojim
