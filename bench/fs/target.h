// The target of a workload: a file system of the table of systems, or a directory of this machine.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platform/platform.h"
#include "services/fs/fs.h"

namespace perdura::bench {

// A thread's access to the target; each of its lanes may have an operation under way. Paths are
// relative to the root of the workload, an empty directory at first: "0003/00000042". Errors are
// those of POSIX.
class FileTarget {
 public:
  enum class Handle : std::uint64_t {};  // an open file
  template <class T>
  using Result = fs::Result<T>;

  virtual ~FileTarget() = default;
  virtual Task<Result<void>> make_directory(std::string_view path) = 0;
  virtual Task<Result<void>> remove_directory(std::string_view path) = 0;
  virtual Task<Result<Handle>> create(std::string_view path) = 0;  // and opens it
  virtual Task<Result<Handle>> open(std::string_view path) = 0;
  virtual Task<Result<void>> close(Handle file) = 0;
  // Reads up to the end of the file at most. Returns the number of bytes read.
  virtual Task<Result<Bytes>> read(Handle file, Bytes offset, std::span<std::byte> into) = 0;
  virtual Task<Result<void>> write(Handle file, Bytes offset, std::span<const std::byte> data) = 0;
  virtual Task<Result<void>> append(Handle file, std::span<const std::byte> data) = 0;
  virtual Task<Result<void>> sync(Handle file) = 0;
  virtual Task<Result<Bytes>> size(std::string_view path) = 0;  // stat
  virtual Task<Result<void>> rename(std::string_view path, std::string_view new_path) = 0;
  virtual Task<Result<void>> unlink(std::string_view path) = 0;
  virtual Task<Result<void>> set_times(Handle file) = 0;  // to the present: futimens
  // The system's own counters, in the order of FsSystem::session_metrics.
  virtual std::vector<double> metrics() const { return {}; }
};

// Uses a session of a file system of the table. Each path component costs one look-up by the
// system; an open file is held (fs::Session::hold).
class SessionTarget final : public FileTarget {
 public:
  explicit SessionTarget(std::unique_ptr<fs::Session> session) : session_(std::move(session)) {}

  Task<Result<void>> make_directory(std::string_view path) override;
  Task<Result<void>> remove_directory(std::string_view path) override;
  Task<Result<Handle>> create(std::string_view path) override;
  Task<Result<Handle>> open(std::string_view path) override;
  Task<Result<void>> close(Handle file) override;
  Task<Result<Bytes>> read(Handle file, Bytes offset, std::span<std::byte> into) override;
  Task<Result<void>> write(Handle file, Bytes offset, std::span<const std::byte> data) override;
  Task<Result<void>> append(Handle file, std::span<const std::byte> data) override;
  Task<Result<void>> sync(Handle file) override;
  Task<Result<Bytes>> size(std::string_view path) override;
  Task<Result<void>> rename(std::string_view path, std::string_view new_path) override;
  Task<Result<void>> unlink(std::string_view path) override;
  Task<Result<void>> set_times(Handle file) override;
  std::vector<double> metrics() const override { return session_->metrics(); }

 private:
  struct PathEnd {
    fs::InodeNumber directory{};
    std::string_view name;
  };
  // The directory that a path ends in, and the name in it.
  Task<Result<PathEnd>> find(std::string_view path);

  std::unique_ptr<fs::Session> session_;
};

class Replication;
// Returns a SessionTarget for a file system in replicated memory (bench/fs/replication.h), to be
// used by the thread with this index.
std::unique_ptr<FileTarget> create_replicated_target(std::unique_ptr<fs::Session> session,
                                                     Replication& replication, std::uint32_t index);

// A new directory below `path`, for all threads of a point. The destructor removes it with all its
// contents.
class PathFolder {
 public:
  // Throws UsageError if `path` is no directory, or if nothing can be created in it.
  explicit PathFolder(const std::string& path);
  ~PathFolder();
  PathFolder(const PathFolder&) = delete;
  PathFolder& operator=(const PathFolder&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  std::string path_;
  int descriptor_ = -1;
};

// Uses a directory of this machine by system calls, which block the thread.
std::unique_ptr<FileTarget> create_path_target(const PathFolder& folder);

}  // namespace perdura::bench
