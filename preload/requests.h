// The programs of a run ask the process that is Mojim's primary to sync their file. Their requests
// are in memory that all these processes share, the file FILE.mojim/requests.
//
// A program may call fsync in a signal handler, while it holds the lock of malloc, or in a child
// that it has forked. So nothing here allocates memory or takes a lock: a program takes a slot,
// posts its request there and waits for the answer in the slot. The memory is made anew by each
// run.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "preload/state_folder.h"
#include "services/memory/memory.h"

namespace perdura::preload {

// The treatment of a sync point that is too large for a log: it fails (`required`), or is sent in
// parts that become safe one by one (`if_possible`).
enum class Atomicity : std::uint32_t { required, if_possible };

// The parts of the file that are compared with what the copies have: the ranges of the request,
// those in SyncRequest::changed, or all of it.
enum class Where : std::uint32_t { ranges, changed, everywhere };

struct SyncRequest {
  static constexpr std::size_t kMostRanges = 1024;
  static constexpr std::size_t kMostChanged = 512;
  enum State : std::uint32_t { free, taken, posted, answered };
  enum Kind : std::uint32_t {
    begin,   // the file is about to be used: replicate it from now on
    sync,    // the ranges
    settle,  // the whole file, and wait until all copies have it
  };

  std::atomic<std::uint32_t> state;  // a futex
  std::atomic<std::int32_t> process;
  std::uint32_t kind;
  std::uint32_t atomicity;
  std::uint32_t count;
  std::int32_t error;  // an errno; 0: done
  char why[400];       // one line, if there was an error
  services::MemoryRange ranges[kMostRanges];
  // With Where::changed: the ranges that the program may have stored to since the last request that
  // compared them.
  std::uint32_t where;
  std::uint32_t changed_count;
  services::MemoryRange changed[kMostChanged];
};

struct SharedRequests {
  static constexpr std::uint32_t kVersion = 1;
  static constexpr std::size_t kMostRequests = 32;
  static constexpr std::size_t kMostProcesses = 256;

  std::atomic<std::uint32_t> version;
  std::atomic<std::uint32_t> begun;  // device, inode and size are known
  std::uint64_t device;
  std::uint64_t inode;
  std::uint64_t size;
  std::atomic<std::uint32_t> work;  // a futex: how many requests have been posted
  // 1 if a sync failed and no later sync that covers it has succeeded. `failed` is for syncs that
  // reached the primary, `refused` for those that were refused before the primary was asked.
  std::atomic<std::uint32_t> failed;
  std::atomic<std::uint32_t> refused;
  std::atomic<std::uint32_t> uses;  // how many processes have ever used the file
  std::atomic<std::int32_t> processes[kMostProcesses];  // those that use the file; 0: unused
  SyncRequest requests[kMostRequests];
};

inline std::string requests_file(const std::string& file) {
  return state_folder(file) + "/requests";
}

// The requesters' side, used by programs and, at its end, by `perdura mojim run`. Member functions
// may be called by any thread, in signal handlers, and in forked processes.
class Requests {
 public:
  // Throws PlatformError if the run has no primary.
  explicit Requests(const std::string& file);

  bool has_begun() const { return shared_->begun.load(std::memory_order_acquire) != 0; }
  Bytes size() const { return shared_->size; }
  std::uint64_t inode() const { return shared_->inode; }
  // True if this is the replicated file; false before it is replicated.
  bool is(std::uint64_t device, std::uint64_t inode) const {
    return has_begun() && shared_->inode == inode && shared_->device == device;
  }
  // The number of processes that have used the file so far.
  std::uint32_t uses() const { return shared_->uses.load(std::memory_order_relaxed); }
  // Notes a process that uses the file. The primary goes on as long as one of these lives.
  void add_process(std::int32_t process);
  bool has_used(std::int32_t process) const;
  // True if a sync has failed and no later sync has sent its data.
  bool has_failed() const { return shared_->failed != 0 || shared_->refused != 0; }
  // Notes that a sync was refused before the primary could be asked for it.
  void note_refused() { shared_->refused = 1; }

  // `error` is 0 or an errno; then `why` is one line of text.
  struct Answer {
    int error = 0;
    char why[400]{};
  };
  struct Question {
    SyncRequest::Kind kind = SyncRequest::sync;
    std::span<const services::MemoryRange> ranges{};
    Atomicity atomicity = Atomicity::if_possible;
    Where where = Where::everywhere;
    std::span<const services::MemoryRange> changed{};  // with Where::changed
  };
  Answer ask(const Question& question);

 private:
  SyncRequest* take();
  bool has_primary() const;

  std::string path_;
  SharedRequests* shared_ = nullptr;
};

// Wakes threads of all processes that wait for the word.
void wake_all(std::atomic<std::uint32_t>& word);
// Waits until the word differs from `seen`, another thread wakes those that wait for it, or the
// time `most` has passed.
void wait_while(std::atomic<std::uint32_t>& word, std::uint32_t seen, Milliseconds most);
// True if a process lives and is no zombie.
bool is_alive(std::int32_t process);

}  // namespace perdura::preload
