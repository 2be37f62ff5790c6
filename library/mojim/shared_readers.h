// FILE.mojim/readers: memory that the process which serves a copy shares with those that read its
// file through mappings of their own (`perdura mojim read`).
//
// `sequence` is odd while the file may be something else than the outcome of whole sync points. The
// server makes it odd before it changes the file, says which pages it is about to change, and waits
// until every reader has noted in its slot that it has left them since (the sequence of then). A
// reader that registers while it is odd waits until it is even. Both store before they look
// (sequentially consistent): of a server that begins and a reader that registers at the same time,
// at least one sees the other.
//
// The memory is a file, so that it outlives a server: one that is killed in the middle of a change
// leaves an odd sequence, and nobody reads the file before somebody has completed it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "platform/base/units.h"

namespace perdura::mojim {

inline constexpr Bytes kReaderPage = 4 * KiB;

// A process and when it began, in one word; 0: none.
using ProcessId = std::uint64_t;
ProcessId this_process();

// Of another process. Does not take one for it that has got its number later.
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

// Waits until the word has another value, somebody wakes, or the time is over. Also in a handler of
// signals.
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
  // What an odd sequence means when nobody serves the file.
  enum class Reason : std::uint32_t {
    in_change,   // the server was killed in the middle of a change
    incomplete,  // the copy is no outcome of sync points
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
  char boot[40];                  // of the machine, since process numbers are of one
  std::atomic<ProcessId> server;  // who may make the sequence even
  std::atomic<std::uint32_t> sequence;
  std::atomic<Reason> reason;
  std::atomic<std::uint32_t> ever;  // no slot from this one on has ever been taken
  std::atomic<std::uint32_t> run_count;
  std::atomic<ProcessId> readers[kMost];
  Slot slots[kMost];
  Run runs[kMostRuns];

  bool is_changing() const { return sequence.load(std::memory_order_acquire) % 2 != 0; }
};

// Maps it, or makes it, with an even sequence. Throws UsageError if it is of another user, or of
// another version; PlatformError if it cannot be had.
class SharedReadersFile {
 public:
  explicit SharedReadersFile(const std::string& file);
  ~SharedReadersFile();
  SharedReadersFile(const SharedReadersFile&) = delete;
  SharedReadersFile& operator=(const SharedReadersFile&) = delete;
  SharedReaders& operator*() const { return *shared_; }
  SharedReaders* operator->() const { return shared_; }
  // Its first words are on the medium: a power failure may leave the file in part.
  void persist() const;

 private:
  SharedReaders* shared_ = nullptr;
};

// Whether FILE has been a node's, so that it has a folder.
bool has_state(const std::string& file);
// Why a copy that nobody serves cannot be read, in one line; nothing if it can. Of one that is
// served: nothing.
std::optional<std::string> why_unreadable(const std::string& file, const SharedReaders& shared);

}  // namespace perdura::mojim
