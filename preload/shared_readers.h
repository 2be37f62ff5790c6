// FILE.mojim/readers: memory that the process which serves a copy shares with those that read its
// file through mappings of their own (`perdura mojim read`).
//
// `sequence` is odd while the file may be something else than the outcome of whole sync points. A
// change of the file takes these steps:
// 1. The server makes the sequence odd, and says which pages it is about to change.
// 2. Each reader leaves these pages, and notes the present sequence in its slot.
// 3. When all readers have, the server changes the file, and makes the sequence even.
//
// A reader that registers while it is odd waits until it is even. Both store before they look
// (sequentially consistent): if a server begins and a reader registers at the same time, at least
// one sees the other.
//
// The memory is a file, so that it outlives a server: one that is killed in the middle of a change
// leaves an odd sequence, and nobody reads the file before another process has completed it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "platform/base/units.h"

namespace perdura::preload {

inline constexpr Bytes kReaderPage = 4 * KiB;

// The number of a process and the time of its start, in one word; 0: none.
using ProcessId = std::uint64_t;
ProcessId this_process();

// A handle of another process, which is not confused with a later one of the same number.
class Process {
 public:
  explicit Process(ProcessId id);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;

  ProcessId id() const { return id_; }
  int number() const;
  bool has_ended() const;  // with all of its threads
  void kill() const;

 private:
  ProcessId id_ = 0;
  int descriptor_ = -1;
  bool is_gone_ = true;  // it had ended when this was made
};

// Waits until the word has another value, wake_all() is called, or the time has passed. May be
// called in signal handlers.
inline constexpr int kNoLimit = -1;
void wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value, int milliseconds);
void wake_all(const std::atomic<std::uint32_t>& word);

struct PageRun {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

struct SharedReaders {
  static constexpr std::uint64_t kVersion = 0x31737264616572;  // "readrs1"
  static constexpr std::uint32_t kMost = 64;
  static constexpr std::uint32_t kMostRuns = 1024;
  // The meaning of an odd sequence while no process serves the file.
  enum class Reason : std::uint32_t {
    in_change,   // the server was killed in the middle of a change
    incomplete,  // the copy is not the outcome of sync points
    primary,     // it is the file of a program, or was one
  };
  struct Slot {
    std::atomic<std::uint32_t> left;  // the sequence since which it has left the pages
  };
  struct Run {
    std::atomic<std::uint64_t> first;  // page
    std::atomic<std::uint64_t> count;
  };

  std::uint64_t version;
  char boot[40];                  // boot of the machine; process numbers are valid for one boot
  std::atomic<ProcessId> server;  // the process that may make the sequence even
  std::atomic<std::uint32_t> sequence;
  std::atomic<Reason> reason;
  std::atomic<std::uint32_t> ever;  // slots from this one on have never been taken
  std::atomic<std::uint32_t> run_count;
  std::atomic<ProcessId> readers[kMost];
  Slot slots[kMost];
  Run runs[kMostRuns];

  bool is_changing() const { return sequence.load(std::memory_order_acquire) % 2 != 0; }
};

// Maps the file, or creates it with an even sequence. Throws UsageError if it belongs to another
// user, or is of another version; PlatformError if it cannot be mapped.
class SharedReadersFile {
 public:
  explicit SharedReadersFile(const std::string& file);
  ~SharedReadersFile();
  SharedReadersFile(const SharedReadersFile&) = delete;
  SharedReadersFile& operator=(const SharedReadersFile&) = delete;
  SharedReaders& operator*() const { return *shared_; }
  SharedReaders* operator->() const { return shared_; }
  // Writes the first page to the medium: a power failure may leave the file in part.
  void persist() const;

 private:
  SharedReaders* shared_ = nullptr;
};

// True if FILE has been a node's, so that it has a folder.
bool has_state(const std::string& file);
// Returns one line that says why a file cannot be read as a copy; nothing if it can be, or while a
// process serves it as a copy.
std::optional<std::string> why_unreadable(const std::string& file, const SharedReaders& shared);

}  // namespace perdura::preload
