#include "preload/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "preload/requests.h"
#include "preload/state_folder.h"

namespace perdura::preload {

namespace fs = std::filesystem;

namespace {

// kForRemains is longer than the interval at which a primary whose run was killed looks for its
// programs.
constexpr const char* kName = "lock";
constexpr auto kForRemains = std::chrono::seconds(2);

pid_t holder(int descriptor) {
  std::array<char, 32> text{};
  const ssize_t length = pread(descriptor, text.data(), text.size() - 1, 0);
  return length > 0 ? static_cast<pid_t>(std::strtol(text.data(), nullptr, 10)) : 0;
}

bool has_ended(pid_t process) { return process <= 0 || !is_alive(process); }

}  // namespace

RunLock::RunLock(const std::vector<std::string>& files) {
  try {
    for (const std::string& file : files) lock(file);
  } catch (...) {
    give_back();
    throw;
  }
}

RunLock::~RunLock() { give_back(); }

// Folders that hold nothing but the lock are removed again, before another run can get the lock.
void RunLock::give_back() {
  for (const std::string& folder : made_) {
    std::error_code error;
    const std::vector<fs::path> names = names_in(folder, error);
    const bool has_more = std::any_of(names.begin(), names.end(),
                                      [](const fs::path& one) { return one.filename() != kName; });
    if (!error && !has_more) fs::remove_all(folder, error);
  }
  made_.clear();
  for (const int descriptor : descriptors_) close(descriptor);
  descriptors_.clear();
}

void RunLock::lock(const std::string& file) {
  const std::string folder = state_folder(file);
  const std::string path = folder + "/" + kName;
  std::error_code error;
  const bool is_made = fs::create_directory(folder, error);
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) throw PlatformError(fmt::format("{}: {}", path, std::strerror(errno)));
  descriptors_.push_back(descriptor);
  const auto limit = std::chrono::steady_clock::now() + kForRemains;
  while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    const pid_t process = holder(descriptor);
    if (errno == EWOULDBLOCK && has_ended(process) && std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    throw UsageError(
        has_ended(process)
            ? fmt::format("{}: programs of a run that was killed (process {}) still use it; end "
                          "them first",
                          file, process)
            : fmt::format("{}: is in use by another run (process {})", file, process));
  }
  // The run that had the lock may have removed the file.
  struct stat ours {};
  struct stat named {};
  if (fstat(descriptor, &ours) != 0 || stat(path.c_str(), &named) != 0 ||
      ours.st_ino != named.st_ino) {
    return lock(file);
  }
  if (is_made) made_.push_back(folder);
  const std::string text = fmt::format("{}\n", getpid());
  if (ftruncate(descriptor, 0) != 0 ||
      pwrite(descriptor, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    throw PlatformError(fmt::format("{}: {}", path, std::strerror(errno)));
  }
}

void RunLock::share_with_children(bool shared) const {
  for (const int descriptor : descriptors_) {
    fcntl(descriptor, F_SETFD, shared ? 0 : FD_CLOEXEC);
  }
}

}  // namespace perdura::preload
