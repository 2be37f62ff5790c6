// A process that reads the file of a copy without knowing that it is one: its mappings of the file,
// and its calls that read it, wait while a checkpoint is applied (shared_readers.h).
//
// A thread of the library takes the pages of a checkpoint from the process (mprotect(2)) and says
// so to the server; a thread of the application that touches one waits in the handler of SIGSEGV
// until it is given back.
//
// All member functions may be called by any thread. Those that begin to read throw UsageError if
// the copy cannot be read. A process whose copy is lost meanwhile is ended, with one line and exit
// code 2.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "platform/pmem/fault_signal.h"
#include "preload/shared_readers.h"

namespace perdura::preload {

// One for each process; is never destroyed, since threads may read until the process ends.
class CopyReader {
 public:
  // Only releases the slots that this process had registered before it executed this program.
  explicit CopyReader(std::string file);

  bool is_copy(int descriptor) const;

  // While this is held, nothing is withdrawn and the file does not change; for calls that return
  // soon.
  class Reading {
   public:
    explicit Reading(CopyReader& reader);
    ~Reading();
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    CopyReader& reader_;
  };

  // While this is held, nothing is withdrawn either, and no other thread changes the known
  // mappings; for calls that change mappings.
  class Mapping {
   public:
    explicit Mapping(CopyReader& reader);

    struct Part {
      std::uintptr_t begin = 0;
      std::uintptr_t end = 0;
      std::uint64_t page = 0;  // page of the file
      int protection = 0;
      bool is_shared = false;
    };
    void add(const Part& part);
    // Removes the parts of mappings at these addresses, and returns them in order.
    std::vector<Part> remove(std::uintptr_t begin, std::uintptr_t end);

   private:
    void enter(const Part& part);

    CopyReader& reader_;
    std::unique_lock<std::mutex> held_;
  };

  // True if any of these bytes are in a mapping of the file, or in a shared one.
  bool has(const void* data, std::size_t length) const;
  bool has_shared(const void* data, std::size_t length) const;
  // Reads from each page of these bytes that is in such a mapping, which waits until it is back. A
  // system call to which they are given then finds them, if nothing is withdrawn meanwhile. False
  // if there are none.
  bool touch(const void* data, std::size_t length) const;

  [[noreturn]] static void end_process(std::string_view line);

 private:
  struct MappingEntry {
    std::atomic<std::uintptr_t> begin;
    std::atomic<std::uintptr_t> end;  // 0 if the entry is free
    std::atomic<std::uint64_t> page;
    std::atomic<int> protection;  // as the program wants it
    std::atomic<bool> is_shared;
  };

  void register_once();
  void register_now();
  void take_slot();
  void start_watching();
  void watch();
  void end_if_unserved();
  void withdraw(std::uint32_t sequence);
  void give_back();
  void set_protection(const PageRun& run, bool accessible);
  template <class Visit>
  void visit(const void* data, std::size_t length, Visit visit) const;
  bool allows(std::uintptr_t at, int protection) const;
  void wait_until_open();
  static bool serve(const siginfo_t& fault, unsigned long error);
  void before_fork() { mappings_.lock(); }
  void after_fork(bool is_child);

  const std::string file_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::unique_ptr<SharedReadersFile> shared_;
  std::atomic<bool> is_registered_{false};
  std::uint32_t slot_ = 0;

  std::mutex mappings_;  // guards entries, also while pages are withdrawn or given back
  std::array<MappingEntry, 256> entries_{};
  std::atomic<std::uint32_t> changes_{0};  // number of changes of entries; odd during one
  std::vector<PageRun> withdrawn_;
  std::uint32_t withdrawn_in_ = 0;  // the sequence of the last withdrawal

  std::atomic<std::uint32_t> closed_{1};   // 1 while something is withdrawn
  std::atomic<std::uint32_t> waiting_{0};  // threads in the handler
  std::atomic<std::uint32_t> calls_{0};    // calls that hold a Reading
};

}  // namespace perdura::preload
