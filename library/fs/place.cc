#include "library/fs/place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <span>
#include <thread>

#include "platform/base/error.h"
#include "platform/pmem/mapped/dax_device.h"
#include "platform/runtime/work.h"

namespace perdura::fs {

namespace {

using pmem::mapped::error_text;

// Locks lie far behind all data, and behind those of the regions of a DAX device.
constexpr Bytes kLocks = Bytes{1} << 62;

// How long a mount may take to end behind umount(8), and to notice that it was unmounted.
constexpr std::chrono::seconds kToEnd(60);
constexpr std::chrono::seconds kToNotice(1);
constexpr std::chrono::milliseconds kBetweenLooks(5);

bool wait_for(std::chrono::seconds most, const auto& condition) {
  const auto until = std::chrono::steady_clock::now() + most;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

}  // namespace

Place::Place(const std::string& path) {
  namespace files = std::filesystem;
  std::error_code error;
  const files::path whole = files::absolute(path, error).lexically_normal();
  path_ = whole.string();
  if (const auto inside = pmem::mapped::device_path(path_)) {
    if (inside->name.empty()) {
      throw UsageError(fmt::format("{}: name the file system in the device, as in {}/home", path,
                                   inside->device));
    }
    device_ = inside->device;
  } else if (!files::is_directory(whole.parent_path(), error)) {
    throw UsageError(fmt::format("{}: there is no such folder", whole.parent_path().string()));
  } else if (files::exists(whole, error) && !files::is_regular_file(whole, error)) {
    throw UsageError(fmt::format("{}: a file system lies in a file or in a DAX device", path));
  }
  folder_ = whole.parent_path().string();
  name_ = whole.filename().string();
}

bool Place::exists() const {
  if (!device_.empty()) {
    return pmem::mapped::DaxDevice(device_).open(path_.substr(device_.size() + 1)) != nullptr;
  }
  return access(path_.c_str(), F_OK) == 0;
}

std::unique_ptr<ShmPlatform> Place::platform() const {
  ShmOptions options;
  options.pm_directory_of_nodes = folder_;
  options.accounting = pmem::WriteMeter::Level::issued;
  return std::make_unique<ShmPlatform>(std::move(options));
}

void Place::run(const std::function<Task<>(Thread&)>& body) const {
  const auto on = platform();
  on->start(0, 0, CompletionMode::event, body);
  on->run();
}

PlaceLock::PlaceLock(const Place& place) {
  const std::string& file = place.device_.empty() ? place.path() : place.device_;
  file_ = pmem::mapped::File(open(file.c_str(), O_RDWR | O_CLOEXEC));
  if (!file_ && errno == ENOENT) {
    throw UsageError(
        fmt::format("{}: there is no such file; make it with 'perdura fs mkfs'", file));
  }
  if (!file_) throw PlatformError(fmt::format("cannot open {}: {}", file, error_text(errno)));
  const std::uint64_t number =
      place.device_.empty() ? 0 : hash64(std::as_bytes(std::span(place.name())));
  used_ = kLocks + 2 * (number % (kLocks / 4));
  mounted_ = used_ + 1;
  const auto free = [&] { return set(F_WRLCK, used_); };
  const auto not_mounted = [&] {
    if (!set(F_WRLCK, mounted_)) return false;
    set(F_UNLCK, mounted_);
    return true;
  };
  if (free()) return;
  if (!wait_for(kToNotice, not_mounted) || !wait_for(kToEnd, free)) {
    throw UsageError(fmt::format("{}: a process has mounted it; unmount it first", place.path()));
  }
}

void PlaceLock::begin_mount() { set(F_WRLCK, mounted_); }
void PlaceLock::end_mount() { set(F_UNLCK, mounted_); }

bool PlaceLock::set(short type, Bytes at) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(at);
  lock.l_len = 1;
  return fcntl(file_.get(), F_OFD_SETLK, &lock) == 0;
}

}  // namespace perdura::fs
