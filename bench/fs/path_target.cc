#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "bench/driver/mounted_directory.h"
#include "bench/fs/target.h"
#include "platform/base/error.h"

namespace perdura::bench {
namespace {

using tl::unexpected;

std::errc error() { return static_cast<std::errc>(errno); }

// A path as a zero-terminated string, for system calls.
class Path {
 public:
  explicit Path(std::string_view path) {
    const std::size_t length = std::min(path.size(), text_.size() - 1);
    path.copy(text_.data(), length);
    text_[length] = '\0';
  }
  const char* text() const { return text_.data(); }

 private:
  std::array<char, 4096> text_;
};

class PathTarget final : public FileTarget {
 public:
  explicit PathTarget(int folder) : folder_(folder) {}

  Task<Result<void>> make_directory(std::string_view path) override {
    co_return result(mkdirat(folder_, Path(path).text(), 0755));
  }
  Task<Result<void>> remove_directory(std::string_view path) override {
    co_return result(unlinkat(folder_, Path(path).text(), AT_REMOVEDIR));
  }
  Task<Result<Handle>> create(std::string_view path) override {
    co_return opened(openat(folder_, Path(path).text(), kFlags | O_CREAT | O_EXCL, 0644));
  }
  Task<Result<Handle>> open(std::string_view path) override {
    co_return opened(openat(folder_, Path(path).text(), kFlags));
  }
  Task<Result<void>> close(Handle file) override { co_return result(::close(descriptor(file))); }
  Task<Result<Bytes>> read(Handle file, Bytes offset, std::span<std::byte> into) override {
    const ssize_t count =
        pread(descriptor(file), into.data(), into.size(), static_cast<off_t>(offset));
    if (count < 0) co_return unexpected(error());
    co_return static_cast<Bytes>(count);
  }
  Task<Result<void>> write(Handle file, Bytes offset, std::span<const std::byte> data) override {
    while (!data.empty()) {
      const ssize_t count =
          pwrite(descriptor(file), data.data(), data.size(), static_cast<off_t>(offset));
      if (count < 0) co_return unexpected(error());
      data = data.subspan(static_cast<std::size_t>(count));
      offset += static_cast<Bytes>(count);
    }
    co_return Result<void>();
  }
  // Appends like a program that has not opened the file for appending: a write at the end.
  Task<Result<void>> append(Handle file, std::span<const std::byte> data) override {
    iovec piece{const_cast<std::byte*>(data.data()), data.size()};
    const ssize_t count = pwritev2(descriptor(file), &piece, 1, -1, RWF_APPEND);
    if (count < 0) co_return unexpected(error());
    if (static_cast<std::size_t>(count) < data.size()) {
      co_return unexpected(std::errc::no_space_on_device);
    }
    co_return Result<void>();
  }
  Task<Result<void>> sync(Handle file) override { co_return result(fsync(descriptor(file))); }
  Task<Result<Bytes>> size(std::string_view path) override {
    struct stat found {};
    if (fstatat(folder_, Path(path).text(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
      co_return unexpected(error());
    }
    co_return static_cast<Bytes>(found.st_size);
  }
  Task<Result<void>> rename(std::string_view path, std::string_view new_path) override {
    co_return result(renameat(folder_, Path(path).text(), folder_, Path(new_path).text()));
  }
  Task<Result<void>> unlink(std::string_view path) override {
    co_return result(unlinkat(folder_, Path(path).text(), 0));
  }
  Task<Result<void>> set_times(Handle file) override {
    co_return result(futimens(descriptor(file), nullptr));
  }

 private:
  static constexpr int kFlags = O_RDWR | O_CLOEXEC;

  static int descriptor(Handle file) { return static_cast<int>(file); }
  static Result<void> result(int returned) {
    if (returned < 0) return unexpected(error());
    return {};
  }
  static Result<Handle> opened(int returned) {
    if (returned < 0) return unexpected(error());
    return static_cast<Handle>(returned);
  }

  int folder_;
};

}  // namespace

PathFolder::PathFolder(const std::string& path) : path_(path + "/perdura-XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr) refuse_path(path);
  descriptor_ = open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) refuse_path(path);
}

PathFolder::~PathFolder() {
  if (descriptor_ >= 0) close(descriptor_);
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::unique_ptr<FileTarget> create_path_target(const PathFolder& folder) {
  return std::make_unique<PathTarget>(folder.descriptor());
}

}  // namespace perdura::bench
