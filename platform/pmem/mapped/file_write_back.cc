#include "platform/pmem/mapped/file_write_back.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "platform/base/error.h"
#include "platform/pmem/mapped/mapping.h"

namespace perdura::pmem::mapped {

namespace {

class FileWriteBack final : public WriteBack {
 public:
  FileWriteBack(File file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  // A hint: finish() writes whatever has changed. Some file systems do not support it.
  void begin(Bytes offset, Bytes length) override {
    ::sync_file_range(file_.get(), static_cast<off64_t>(offset), static_cast<off64_t>(length),
                      SYNC_FILE_RANGE_WRITE);
  }
  void finish() override {
    while (::fdatasync(file_.get()) != 0) {
      if (errno == EINTR) continue;
      fmt::print(stderr, "perdura: {}: the disk has not got what was written: {}\n", path_,
                 error_text(errno));
      std::abort();
    }
  }

 private:
  File file_;
  std::string path_;
};

}  // namespace

std::shared_ptr<WriteBack> write_back_of(const std::string& path) {
  File file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) throw PlatformError(fmt::format("cannot open {}: {}", path, error_text(errno)));
  return std::make_shared<FileWriteBack>(std::move(file), path);
}

}  // namespace perdura::pmem::mapped
