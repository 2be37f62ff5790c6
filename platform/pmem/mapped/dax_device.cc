#include "platform/pmem/mapped/dax_device.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "platform/base/error.h"
#include "platform/pmem/instructions.h"
#include "platform/pmem/word_copy.h"

namespace perdura::pmem::mapped {
namespace {

namespace fs = std::filesystem;

struct flock lock_of(short type, Extent extent) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(extent.offset);
  lock.l_len = static_cast<off_t>(extent.length);
  return lock;
}

// The lowest locked part of the extent. The kernel may report any of the locks in a range, so it is
// asked again about the part below the one that it reported.
std::optional<Extent> first_lock(int fd, Extent extent, const std::string& path) {
  std::optional<Extent> lowest;
  while (extent.length != 0) {
    struct flock lock = lock_of(F_WRLCK, extent);
    if (::fcntl(fd, F_OFD_GETLK, &lock) != 0) {
      throw PlatformError(fmt::format("cannot see the locks of {}: {}", path, error_text(errno)));
    }
    if (lock.l_type == F_UNLCK) break;
    lowest = {static_cast<Bytes>(lock.l_start), static_cast<Bytes>(lock.l_len)};
    extent.length = std::max(extent.offset, lowest->offset) - extent.offset;
  }
  return lowest;
}

// While such an object lives, writes are not counted. Writes to the directory of regions and the
// zeros of a new region are not writes of a system; those of a file system are not counted either.
class Uncounted {
 public:
  Uncounted() : meter_(thread_write_meter()) {}
  ~Uncounted() { thread_write_meter() = meter_; }
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;

 private:
  WriteMeter meter_;
};

void fill_with_zeros(const Mapping& memory) {
  static constexpr std::array<std::byte, 64 * 1024> kZeros{};
  for (Bytes at = 0; at < memory.mapped_size(); at += kZeros.size()) {
    stream_to_shared(memory.data() + at,
                     std::span(kZeros).first(std::min(kZeros.size(), memory.mapped_size() - at)));
  }
  drain();
}

bool is_dax_device(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISCHR(info.st_mode)) return false;
  std::error_code error;
  const fs::path subsystem =
      fs::read_symlink(fs::path(folder_of_device(path)) / "subsystem", error);
  return !error && subsystem.filename() == "dax";
}

}  // namespace

std::string folder_of_device(const std::string& device) {
  struct stat info {};
  if (::stat(device.c_str(), &info) != 0) return "";
  return fmt::format("/sys/dev/char/{}:{}", major(info.st_rdev), minor(info.st_rdev));
}

std::optional<DevicePath> device_path(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    std::string device = path.substr(0, end);
    if (is_dax_device(device)) {
      return DevicePath{std::move(device), end == std::string::npos ? "" : path.substr(end + 1)};
    }
    if (end == std::string::npos) return std::nullopt;
  }
}

// While such an object lives, no other process or thread uses the directory.
class DaxDevice::Turn {
 public:
  explicit Turn(DaxDevice& device)
      : device_(device),
        file_(device.open_file()),
        memory_("directory", Medium::pm, device.map_.base, RegionDirectory::kSize, nullptr,
                nullptr) {
    struct flock lock = lock_of(F_WRLCK, {0, RegionDirectory::kSize});
    while (::fcntl(file_.get(), F_OFD_SETLKW, &lock) != 0) {
      if (errno == EINTR) continue;
      throw PlatformError(fmt::format("cannot lock {}: {}", device.path_, error_text(errno)));
    }
    directory_.emplace(memory_, device.geometry_, device.path_);
  }

  RegionDirectory& directory() { return *directory_; }
  int file() const { return file_.get(); }

  // Makes a change of the directory durable by a deep flush. Changes are rare, and all regions
  // depend on the directory.
  void changed() const {
    if (device_.map_.granularity == Granularity::page) return;
    if (const std::string problem = deep_flush(device_.map_); !problem.empty()) {
      throw PlatformError(
          fmt::format("{}: no deep flush of the directory of regions: {}", device_.path_, problem));
    }
  }

 private:
  DaxDevice& device_;
  File file_;
  Uncounted uncounted_;
  Region memory_;
  std::optional<RegionDirectory> directory_;
};

DaxDevice::DaxDevice(std::string path)
    : path_(std::move(path)), file_(open_file()), geometry_(device_geometry(file_.get(), path_)) {
  check_size();
  refuse_bad_blocks(bad_blocks_of(file_.get()), path_, true);
  map_ = map_persistent(file_.get(), {0, first_region()}, path_);
}

DaxDevice::DaxDevice(std::string path, DeviceGeometry geometry)
    : path_(std::move(path)), file_(open_file()), geometry_(geometry) {
  check_size();
  map_ = map_persistent(file_.get(), {0, first_region()}, path_);
}

File DaxDevice::open_file() const {
  File file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (file) return file;
  if (errno == EACCES || errno == EPERM) {
    throw UsageError(
        fmt::format("this user may not open {} for reading and writing; let its owner change that "
                    "(chown, or a udev rule), or give a directory of a DAX file system",
                    path_));
  }
  throw PlatformError(fmt::format("cannot open {}: {}", path_, error_text(errno)));
}

void DaxDevice::check_size() const {
  const Bytes least = first_region() + geometry_.alignment;
  if (geometry_.size >= least) return;
  throw UsageError(
      fmt::format("{} is too small: it has {} bytes, but the directory of regions and one region "
                  "need {} at its alignment of {}; make its namespace larger, or its alignment "
                  "smaller (ndctl create-namespace --mode devdax --size SIZE --align 2M)",
                  path_, geometry_.size, least, geometry_.alignment));
}

std::shared_ptr<Mapping> DaxDevice::create(const std::string& name, Bytes size) {
  if (size == 0) throw UsageError(fmt::format("a region needs a size: {}/{}", path_, name));
  if (name.empty() || name.size() > RegionDirectory::kMaxName) {
    throw UsageError(fmt::format("the name {} of a region of {} is not of 1 to {} bytes", name,
                                 path_, RegionDirectory::kMaxName));
  }
  Turn turn(*this);
  if (turn.directory().find(name)) {
    throw UsageError(
        fmt::format("{}/{} exists already; remove it or choose another name", path_, name));
  }
  const Extent extent = find_room(turn, name, size);
  auto memory = map(extent, name);
  fill_with_zeros(*memory);
  turn.directory().add({name, extent});
  turn.changed();
  return memory;
}

std::shared_ptr<Mapping> DaxDevice::open(const std::string& name) {
  Turn turn(*this);
  const auto extent = turn.directory().find(name);
  return extent ? map(*extent, name) : nullptr;
}

std::optional<File> DaxDevice::lock(const std::string& name, PoolLock which, std::uint32_t part) {
  Turn turn(*this);
  const auto extent = turn.directory().find(name);
  if (!extent) throw UsageError(fmt::format("there is no {}/{}", path_, name));
  return try_lock(open_file(), which, extent->offset, path_, Access::in_place, part);
}

void DaxDevice::remove(const std::string& name) {
  Turn turn(*this);
  if (turn.directory().remove(name)) turn.changed();
}

void DaxDevice::remove_all(std::string_view prefix) {
  Turn turn(*this);
  for (const NamedExtent& region : turn.directory().regions()) {
    if (region.name.starts_with(prefix)) turn.directory().remove(region.name);
  }
  turn.changed();
}

std::vector<NamedExtent> DaxDevice::regions() { return Turn(*this).directory().regions(); }

std::shared_ptr<Mapping> DaxDevice::map(Extent extent, const std::string& name) const {
  auto file = std::make_shared<File>(open_file());
  const Extent pages{extent.offset, round_up(extent.length)};
  struct flock lock = lock_of(F_RDLCK, pages);
  if (::fcntl(file->get(), F_OFD_SETLK, &lock) != 0) {
    throw PlatformError(fmt::format("cannot lock {}/{}: {}", path_, name, error_text(errno)));
  }
  return map_part(file->get(), pages, extent.length, fmt::format("{}/{}", path_, name), file);
}

// The first gap that is large enough between all regions, including removed ones that are still
// mapped.
Extent DaxDevice::find_room(Turn& turn, const std::string& name, Bytes size) const {
  std::vector<NamedExtent> taken = turn.directory().regions();
  std::sort(taken.begin(), taken.end(), [](const NamedExtent& a, const NamedExtent& b) {
    return a.extent.offset < b.extent.offset;
  });
  const Bytes all = geometry_.size / geometry_.alignment * geometry_.alignment;
  Bytes free = 0;
  Bytes largest = 0;
  Bytes start = first_region();
  for (std::size_t next = 0;; ++next) {
    const Bytes end = next < taken.size() ? taken[next].extent.offset : all;
    while (start < end) {
      const auto in_use = first_lock(turn.file(), {start, end - start}, path_);
      const Bytes gap = (in_use ? std::max(start, in_use->offset) : end) - start;
      if (size <= gap) return {start, size};
      free += gap;
      largest = std::max(largest, gap);
      start = in_use ? in_use->offset + in_use->length : end;
    }
    if (next == taken.size()) break;
    start = taken[next].extent.offset + round_up(taken[next].extent.length);
  }
  throw UsageError(fmt::format(
      "no room for {} bytes of {}/{}: the device has {}, of which {} are free, {} of them in one "
      "piece, and {} regions are there; choose a smaller size, make the namespace larger (ndctl "
      "create-namespace --size), or clear the device (daxio --zero --output {}) if killed runs "
      "left them",
      size, path_, name, geometry_.size, free, largest, taken.size(), path_));
}

}  // namespace perdura::pmem::mapped
