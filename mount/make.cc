#include "mount/make.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "platform/base/error.h"
#include "platform/pmem/mapped/pool_file.h"
#include "platform/pmem/mapped/populate.h"

namespace perdura::mount {

namespace {

namespace files = std::filesystem;
using pmem::mapped::error_text;
using pmem::mapped::File;
using pmem::mapped::PoolLock;

// Removes the temporary name of a file at the end, also if the user interrupts the process; after a
// rename there is none to remove. One at a time.
class Removal {
 public:
  explicit Removal(const std::string& path) : path_(path) {
    removed_ = path_.c_str();
    for (std::size_t i = 0; i < std::size(kEnding); ++i) {
      ::sigaction(kEnding[i], nullptr, &before_[i]);
      // Other signals are ignored, as by nohup, or the program has a handler of its own.
      if (before_[i].sa_handler != SIG_DFL) continue;
      struct sigaction removes {};
      removes.sa_handler = remove_and_end;
      ::sigaction(kEnding[i], &removes, nullptr);
    }
  }
  ~Removal() {
    for (std::size_t i = 0; i < std::size(kEnding); ++i) {
      ::sigaction(kEnding[i], &before_[i], nullptr);
    }
    ::unlink(path_.c_str());
  }
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;

 private:
  static constexpr std::array kEnding{SIGINT, SIGTERM, SIGHUP};
  static void remove_and_end(int signal) {
    ::unlink(removed_);
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  static inline const char* removed_ = nullptr;

  const std::string& path_;
  std::array<struct sigaction, std::size(kEnding)> before_{};
};

std::string exists_already(const MountSource& source) {
  return fmt::format("{}: exists already; --force replaces it by an empty file system",
                     source.path());
}

// This process has made nothing yet, so a leftover with its number is of an earlier process.
bool is_alive(pid_t process) {
  return process != getpid() && (::kill(process, 0) == 0 || errno != ESRCH);
}

// Removes the leftovers of processes that were killed: a region of PLACE.new-PROCESS-0, or the file
// that was to become it (create_pool_file()), which had two suffixes in earlier versions.
void remove_leftovers(const MountSource& source) {
  static const std::regex kMade(R"(\.new-(\d{1,9})-\d+(\.new-\d+-\d+)?)");
  std::error_code error;
  for (const auto& entry :
       files::directory_iterator(files::path(source.path()).parent_path(), error)) {
    const std::string name = entry.path().filename();
    std::smatch parts;
    if (!name.starts_with(source.name())) continue;
    const std::string rest = name.substr(source.name().size());
    if (!std::regex_match(rest, parts, kMade) || is_alive(std::stoi(parts[1]))) continue;
    files::remove(entry.path(), error);
  }
}

// The space that a new file could use if the old one, which may be sparse, were removed.
Bytes room_without(const MountSource& source) {
  std::error_code error;
  const auto free = files::space(files::path(source.path()).parent_path(), error).available;
  struct stat old {};
  if (error || ::stat(source.path().c_str(), &old) != 0) return 0;
  return free + static_cast<Bytes>(old.st_blocks) * 512;
}

void make_names_durable(const MountSource& source) {
  const files::path folder = files::path(source.path()).parent_path();
  const File directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems need no fsync of directories and return EINVAL.
  if (directory && ::fsync(directory.get()) != 0 && errno != EINVAL) {
    throw PlatformError(
        fmt::format("cannot make {} durable: {}", source.path(), error_text(errno)));
  }
}

// Returns the size of the new file system.
Bytes make_in(const fs::FsSystem& system, const MountSource& source, const fs::FsConfig& config) {
  Bytes size = 0;
  source.run([&](Thread& thread) -> Task<> {
    co_await system.make(thread, source.name(), config);
    size = thread.node.open_region(source.name())->size();
  });
  return size;
}

// Touches all pages. A page that was allocated in memory gets its zeros when it is first touched,
// which makes the first write through a mount ten times as slow as later ones. mkfs can wait for
// that.
void take_memory(const MountSource& made) {
  const auto pool = pmem::mapped::open_pool_file(made.path());
  if (pool) pmem::mapped::populate(*pool, {});
}

Bytes make_whole(const fs::FsSystem& system, const MountSource& source, const fs::FsConfig& config,
                 bool exists) {
  remove_leftovers(source);
  const MountSource made(fmt::format("{}.new-{}-0", source.path(), getpid()));
  const Removal removal(made.path());
  Bytes size = 0;
  try {
    size = make_in(system, made, config);
    take_memory(made);
  } catch (const pmem::mapped::NoRoom&) {
    if (exists && config.size <= room_without(source)) {
      throw UsageError(
          fmt::format("{}: no room for {} bytes beside the file system that is there; remove that "
                      "first, or choose a smaller size",
                      source.path(), config.size));
    }
    throw UsageError(
        fmt::format("{}: no room for {} bytes; choose a smaller size or another directory",
                    source.path(), config.size));
  }
  const int result = exists ? ::rename(made.path().c_str(), source.path().c_str())
                            : ::link(made.path().c_str(), source.path().c_str());
  if (result != 0 && errno == EEXIST) throw UsageError(exists_already(source));
  if (result != 0) {
    throw PlatformError(fmt::format("cannot create {}: {}", source.path(), error_text(errno)));
  }
  make_names_durable(source);
  return size;
}

}  // namespace

bool is_in_memory(const MountSource& source) {
  const auto pool = pmem::mapped::open_pool_file(source.path());
  return pool && pmem::mapped::is_in_memory(*pool);
}

Bytes make(const fs::FsSystem& system, const MountSource& source, const fs::FsConfig& config,
           bool replaces) {
  const bool exists = source.exists();
  if (exists && !replaces) throw UsageError(exists_already(source));
  system.check(config);
  std::optional<File> ownership;  // holds the old file until it has lost its name
  if (exists) {
    wait_until_free(source);
    ownership = pmem::mapped::lock_pool_file(source.path(), PoolLock::ownership);
    if (!ownership) throw UsageError(source.path() + ": another process uses it");
  }
  if (!source.is_in_device()) return make_whole(system, source, config, exists);
  pmem::mapped::remove_pool_file(source.path());
  return make_in(system, source, config);
}

}  // namespace perdura::mount
