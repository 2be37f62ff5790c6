// A process of `perdura mojim run`, as seen by the library in it: which descriptors and addresses
// belong to the replicated file, and its sync points. The primary, which does the rest, is another
// process (primary_process.h).
//
// Member functions may be called by any thread, in signal handlers and in forked processes, so they
// neither allocate memory nor take a lock.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <span>
#include <string>

#include "preload/mappings.h"
#include "preload/requests.h"
#include "preload/written_pages.h"

namespace perdura::preload {

class Program {
 public:
  // Watches the file that the environment names. Throws UsageError or PlatformError.
  Program();

  const char* path() const { return path_.c_str(); }
  bool has_begun() const { return requests_.has_begun(); }
  Bytes size() const { return requests_.size(); }

  // True if the descriptor is of the file, whether it is replicated already or not.
  bool is_file(int descriptor) const;
  bool is_replicated(int descriptor) const { return has_begun() && is_file(descriptor); }
  // True if this is a name of the file, and the file is replicated. `folder`: as for openat(2).
  bool is_replicated(int folder, const char* name, bool follows) const;

  // Notes that this process uses the file, which is replicated from now on. False, with errno, if
  // it cannot be.
  bool begin();
  bool is_used() const { return is_used_.load(std::memory_order_relaxed); }
  void note_fork();  // in the child
  // Notes that something was mapped, or dropped from memory, so that stores may not be found.
  void note_mapping() { written_.forget(); }

  // Sync points; each returns 0, or -1 with errno.
  int sync(std::span<const services::MemoryRange> ranges,
           Atomicity atomicity = Atomicity::if_possible);
  int sync_all();
  // Returns 0, or -1 with errno if the file is replicated and its name is that of another one now.
  int check_name() const;
  int settle();
  void note_refused() { requests_.note_refused(); }  // a refused sync point

  // The parts of the file that are mapped at these addresses.
  FoundParts find(const void* address, std::size_t length,
                  std::span<services::MemoryRange> ranges) const;

  // Prints a line on standard error.
  static void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

 private:
  int ask(const Requests::Question& question);

  std::string path_;
  Requests requests_;
  WrittenPages written_;
  std::atomic<bool> is_used_{false};
};

}  // namespace perdura::preload
