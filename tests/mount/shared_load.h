// Writers on the two mounts of one file system, while the processes that serve it are killed, and they
// themselves are. Each writer is a process with files of its own, which everyone reads through both
// mounts, and all append to one log.
//
// A LoadRecord, in memory that outlives all processes, has what the calls have done. A file is a row
// of cells, each of which says who has written it and in which version of the file. Each call that
// changes a file begins a version, which the record describes before the call begins, and calls done
// when it has returned. So a reader knows which versions a file may have: those from the last one that
// was done when it began to read, to the last one that had begun when it ended.
//
// A call may fail only if the test has noted a cause before: a mount is down, or the servers are
// (Excuse). The writer of such a call looks which of the two versions the file has, and goes on from
// there; so a request that is executed later than that is noticed, too.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace perdura::test {

// Odd while there is a cause for calls to fail.
using Excuse = std::atomic<std::uint32_t>;

inline constexpr std::size_t kLoadWriters = 4;  // those with odd numbers work on the second mount
inline constexpr std::size_t kLoadFiles = 6;    // that each writer has
inline constexpr std::size_t kMostCells = 24;
inline constexpr std::size_t kCellBytes = 512;  // eight in a page
inline constexpr std::size_t kVersionsKept = 64;
inline constexpr std::size_t kMostAppends = 1 << 17;  // that each writer adds to the log

struct FileVersion {
  bool exists = false;
  std::uint32_t cells = 0;
  std::array<std::uint32_t, kMostCells> versions{};  // in which each cell was written; 0: a hole
  bool operator==(const FileVersion& other) const;
};

struct FileRecord {
  std::atomic<std::uint32_t> begun{0};
  std::atomic<std::uint32_t> done{0};  // the same, or the version before
  std::array<FileVersion, kVersionsKept> versions{};
  FileVersion& version(std::uint32_t number) { return versions.at(number % kVersionsKept); }
};

enum class AppendState : std::uint8_t { none, begun, done };

struct LoadWriterRecord {
  std::atomic<std::uint64_t> calls{0};  // that have succeeded
  std::atomic<std::int64_t> since{
      0};  // when the call under way began, of the steady clock; 0: none
  std::array<FileRecord, kLoadFiles> files{};
  std::atomic<std::uint32_t> appends{0};  // that have begun
  std::array<std::atomic<AppendState>, kMostAppends> log{};
};

struct LoadRecord {
  std::atomic<bool> stops{false};
  Excuse servers{0};
  std::array<Excuse, 2> mounts{};
  std::array<LoadWriterRecord, kLoadWriters> writers{};
  // The first thing that is not as it must be.
  std::atomic<bool> is_wrong{false};
  std::array<char, 1000> wrong{};

  void note(const std::string& what);
  std::uint64_t calls() const;
};
// In memory that is shared with processes that are forked later.
std::shared_ptr<LoadRecord> make_load_record();

using MountPaths = std::array<std::filesystem::path, 2>;

// Reads and writes until the record says so. Returns the exit code of the process, 1 if something is
// wrong.
class LoadWriter {
 public:
  LoadWriter(LoadRecord& record, MountPaths mounts, std::size_t number, std::uint32_t seed);
  int run();

 private:
  // One look at the excuses.
  struct Excuses {
    std::uint32_t servers = 0;
    std::uint32_t mount = 0;
  };
  void await_mount() const;
  Excuses excuses() const;
  bool are_excused(const Excuses& before) const;
  // A system call that has returned. True if it has succeeded.
  bool succeeded(const Excuses& before, bool success, const std::string& what);
  bool settle(std::size_t file);
  bool make_directory();
  void change();
  void append();
  void read_some();
  bool write_cells(int opened, std::size_t file, std::uint32_t first, const FileVersion& version,
                   std::uint32_t end);
  bool replace(std::size_t file, const FileVersion& next);
  bool use_open(std::size_t file, const FileVersion& next, std::uint32_t first, std::uint32_t end,
                bool truncates);
  std::uint32_t random(std::uint32_t below) {
    return static_cast<std::uint32_t>(random_() % below);
  }
  std::filesystem::path path_of(std::size_t file) const;

  LoadRecord& record_;
  LoadWriterRecord& own_;
  MountPaths mounts_;
  std::size_t number_;
  std::size_t mount_;
  std::mt19937 random_;
};

// How long the slowest call under way takes, in seconds.
double longest_call(const LoadRecord& record);

// Reads all files of all writers through the mount. Returns what is wrong; nothing if the mount may
// have failed meanwhile.
std::string check_files(LoadRecord& record, const std::filesystem::path& mount);

// Reads the log as far as it has not been read.
class LogReader {
 public:
  explicit LogReader(LoadRecord& record) : record_(record) {}
  std::string check(const std::filesystem::path& mount);

 private:
  LoadRecord& record_;
  std::uint64_t offset_ = 0;
  std::array<std::vector<bool>, kLoadWriters> seen_{};  // the appends of each writer
};

}  // namespace perdura::test
