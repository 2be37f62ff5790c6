#include "bench/trace/file_extents.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <set>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "platform/pmem/mapped/mapping.h"

namespace perdura::bench {
namespace {

namespace files = std::filesystem;

constexpr std::uint32_t kExtentsAtOnce = 256;

// The memory of a request has room for the extents after it.
struct ExtentRequest {
  std::vector<std::byte> memory =
      std::vector<std::byte>(sizeof(fiemap) + kExtentsAtOnce * sizeof(fiemap_extent));
  fiemap& head() { return *reinterpret_cast<fiemap*>(memory.data()); }
  const fiemap_extent* extents() const {
    return reinterpret_cast<const fiemap_extent*>(memory.data() + sizeof(fiemap));
  }
};

class ExtentReader {
 public:
  ExtentReader(const files::path& directory, const std::function<void(const LaidOutFile&)>& use)
      : top_(directory), use_(use) {}

  DirectoryExtents read() {
    struct stat top {};
    if (stat(top_.c_str(), &top) != 0) {
      throw UsageError(fmt::format("{}: {}", top_.string(), std::strerror(errno)));
    }
    device_ = top.st_dev;
    std::error_code problem;
    names_in(top_, problem);
    if (problem) throw UsageError(fmt::format("{}: {}", top_.string(), problem.message()));
    add_folder(top_);
    return sum_;
  }

 private:
  void add_folder(const files::path& folder) {
    std::error_code problem;
    std::vector<files::path> names = names_in(folder, problem);
    if (problem) ++sum_.unreadable;
    std::sort(names.begin(), names.end());
    for (const files::path& name : names) {
      const files::path path = folder / name.filename();
      struct stat found {};
      if (lstat(path.c_str(), &found) != 0 || found.st_dev != device_) continue;
      if (S_ISDIR(found.st_mode)) add_folder(path);
      if (!S_ISREG(found.st_mode)) continue;
      if (found.st_nlink > 1 && !linked_.insert(found.st_ino).second) continue;
      add_file(path, static_cast<Bytes>(found.st_size));
    }
  }

  void add_file(const files::path& path, Bytes size) {
    const pmem::mapped::File file(
        ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file) {
      ++sum_.unreadable;
      return;
    }
    LaidOutFile found{path.lexically_relative(top_).string(), size, {}};
    for (Bytes next = 0; read_some(file.get(), path, next, found.extents);) {
    }
    ++sum_.files;
    sum_.bytes += size;
    use_(found);
  }

  // Reads some extents from `next` on, and moves it after them. Returns false if none follow.
  bool read_some(int file, const files::path& path, Bytes& next, std::vector<FileExtent>& extents) {
    fiemap& head = request_.head();
    head = {};
    head.fm_start = next;
    head.fm_length = std::numeric_limits<std::uint64_t>::max() - next;
    head.fm_flags = FIEMAP_FLAG_SYNC;
    head.fm_extent_count = kExtentsAtOnce;
    if (ioctl(file, FS_IOC_FIEMAP, &head) != 0) {
      throw UsageError(fmt::format(
          "{}: its file system does not say where files are (FIEMAP: {}); ext4, XFS and Btrfs do",
          path.string(), std::strerror(errno)));
    }
    for (std::uint32_t i = 0; i < head.fm_mapped_extents; ++i) {
      const fiemap_extent& extent = request_.extents()[i];
      next = extent.fe_logical + extent.fe_length;
      ++sum_.extents;
      constexpr std::uint32_t kNoPlace =
          FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_DATA_TAIL;
      if ((extent.fe_flags & kNoPlace) != 0) {
        ++sum_.without_place;
      } else {
        extents.push_back({extent.fe_logical, extent.fe_physical, extent.fe_length});
      }
      if ((extent.fe_flags & FIEMAP_EXTENT_LAST) != 0) return false;
    }
    return head.fm_mapped_extents > 0;
  }

  files::path top_;
  const std::function<void(const LaidOutFile&)>& use_;
  dev_t device_ = 0;
  std::set<ino_t> linked_;  // files that have several names
  ExtentRequest request_;
  DirectoryExtents sum_;
};

}  // namespace

DirectoryExtents read_extents(const files::path& directory,
                              const std::function<void(const LaidOutFile&)>& use) {
  return ExtentReader(directory, use).read();
}

}  // namespace perdura::bench
