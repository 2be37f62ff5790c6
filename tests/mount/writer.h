// A program that makes random system calls in a directory until whatever serves it is killed, and
// of which it is known afterwards, to the call, what it must have left.
//
// Which calls it makes follows from a seed and from what the calls before them have done. So it is
// enough to keep how many there were: they are repeated on the model (services/fs/model), whose
// tree must be what is found. Of a call that had begun and not returned, all or nothing may have
// been done; the kernel hands a write over in parts, which end at pages, of which it may be the
// first.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/services/fs/posix/comparison.h"

namespace perdura::fs::test {

// How far a writer has come, in memory that outlives it; zeroed at the very first.
struct WriterRecord {
  static constexpr std::size_t kLives = 1000;
  struct Life {
    std::atomic<std::uint64_t> begun;  // calls
    std::atomic<std::uint64_t> returned;
    // Of the call that had begun and not returned: 1 and how many of its parts were found, or 0 as
    // long as nobody has looked.
    std::atomic<std::uint64_t> found;
  };
  std::atomic<std::uint64_t> lives;
  std::array<Life, kLives> life;
};

// The calls of a writer, one after the other, and what they do to a model.
class WriterCalls {
 public:
  explicit WriterCalls(std::uint32_t seed);
  WriterCalls(const WriterCalls&) = delete;
  WriterCalls& operator=(const WriterCalls&) = delete;

  // What was open before is closed.
  void begin_life(std::uint64_t number);
  // The next call, which follows from what those before it have done.
  Operation draw();
  // What the kernel may hand over at a time.
  std::vector<Operation> parts_of(const Operation& call);
  Outcome make(const Operation& call);
  Side& model() { return *process_; }

 private:
  std::uint32_t seed_;
  Process::Options options_;
  Drawn may_be_drawn_;
  ModelFileSystem files_{Model({.now = Comparison::kBegin})};
  std::unique_ptr<Session> session_ = files_.attach();
  std::optional<ProcessSide> process_;
  std::mt19937 random_;
  Known known_;
  std::array<bool, kSlots> appends_{};  // open files
  std::uint64_t drawn_calls_ = 0;       // in this life
};

class Writer {
 public:
  // Of this thread, whose root the directory becomes.
  Writer(const std::string& directory, WriterRecord& record, std::uint32_t seed);

  // What is there, compared with what must be. Returns what is wrong; empty if nothing is.
  std::string check();
  // The calls of all lives so far that have returned.
  std::uint64_t calls() const;
  // Begins a life behind a check, and makes calls until the mount is gone; `returned` is called
  // behind each. Returns what is wrong with the result of one.
  std::string write(const std::function<void()>& returned);

 private:
  std::string difference();
  bool is_gone();

  WriterRecord& record_;
  WriterCalls calls_;  // reads the kernel's settings, and so comes before the other root
  KernelSide kernel_;
};

}  // namespace perdura::fs::test
