#include "mount/source.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "platform/pmem/mapped/dax_device.h"
#include "platform/pmem/mapped/pool_file.h"

namespace perdura::mount {

namespace {

using pmem::mapped::lock_pool_file;
using pmem::mapped::PoolLock;

// Time that a mount may take to end after umount(8), and to notice that it was unmounted.
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

MountSource::MountSource(const std::string& path) {
  namespace files = std::filesystem;
  if (path.empty()) throw UsageError("the name of the file system's place is empty");
  std::error_code error;
  files::path whole = files::absolute(path, error).lexically_normal();
  path_ = whole.string();
  if (const auto inside = pmem::mapped::device_path(path_)) {
    if (inside->name.empty()) {
      throw UsageError(fmt::format("{}: name the file system in the device, as in {}/home", path,
                                   inside->device));
    }
    device_ = inside->device;
  } else if (const files::path folder = whole.parent_path(); kind_of(folder) != PathKind::folder) {
    throw UsageError(fmt::format("{}: {}", folder.string(), not_a_folder(folder)));
  } else if (const PathKind kind = kind_of(whole); kind == PathKind::unknown) {
    throw UsageError(fmt::format("{}: {}", path, not_a_file(whole)));
  } else if (kind != PathKind::file && kind != PathKind::nothing) {
    throw UsageError(fmt::format("{}: a file system lies in a file or in a DAX device", path));
  } else if (is_link(whole)) {
    whole = files::canonical(whole, error);
    if (error) throw UsageError(fmt::format("{}: the link leads to no file", path));
    path_ = whole.string();
  }
  folder_ = whole.parent_path().string();
  name_ = whole.filename().string();
}

bool MountSource::exists() const {
  if (is_in_device()) {
    return pmem::mapped::DaxDevice(device_).open(path_.substr(device_.size() + 1)) != nullptr;
  }
  return is_there(path_);
}

MountingNode MountSource::platform(Access access) const {
  ShmOptions options;
  options.pm_directory_of_nodes = folder_;
  options.pm_access = access;
  options.accounting = pmem::WriteMeter::Level::issued;
  return {std::make_unique<ShmPlatform>(std::move(options))};
}

void MountSource::prepare(Access access) const { wait_until_free(*this, access); }

std::optional<File> MountSource::mark(Access access) const {
  return lock_pool_file(path_, PoolLock::mount, access);
}

void MountSource::run(const std::function<Task<>(Thread&)>& body, Access access) const {
  const auto [on, node] = platform(access);
  on->start(node, 0, CompletionMode::event, body);
  on->run();
}

void wait_until_free(const MountSource& source, Access access) {
  if (!source.exists()) {
    throw UsageError(
        fmt::format("{}: there is no such file; make it with 'perdura fs mkfs'", source.path()));
  }
  const auto is_free = [&](PoolLock which) {
    return lock_pool_file(source.path(), which, access).has_value();
  };
  const auto unused = [&] { return is_free(PoolLock::ownership); };
  const auto unmounted = [&] { return is_free(PoolLock::mount); };
  if (unused()) return;
  if (!wait_for(kToNotice, unmounted) || !wait_for(kToEnd, unused)) {
    throw UsageError(fmt::format("{}: a process has mounted it; unmount it first", source.path()));
  }
}

}  // namespace perdura::mount
