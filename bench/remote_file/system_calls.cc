#include "bench/remote_file/system_calls.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "platform/base/error.h"
#include "platform/pmem/mapped/mapping.h"
#include "platform/runtime/work.h"

namespace perdura::bench {
namespace {

constexpr Bytes kPage = 4 * KiB;

[[noreturn]] void fail(const char* call) {
  throw PlatformError(fmt::format("{} of a file in memory: {}", call, std::strerror(errno)));
}

class RealSystemCalls final : public SystemCalls {
 public:
  explicit RealSystemCalls(Bytes size)
      : size_(round_up(size, kPage)), file_(memfd_create("perdura-emulation", MFD_CLOEXEC)) {
    if (!file_) fail("memfd_create");
    if (ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) fail("ftruncate");
    void* const base =
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_.get(), 0);
    if (base == MAP_FAILED) fail("mmap");
    base_ = static_cast<std::byte*>(base);
  }
  ~RealSystemCalls() override { munmap(base_, size_); }
  RealSystemCalls(const RealSystemCalls&) = delete;
  RealSystemCalls& operator=(const RealSystemCalls&) = delete;

  void sync(Bytes offset, Bytes length) override {
    const Bytes first = offset / kPage * kPage;
    if (msync(base_ + first, round_up(offset + length, kPage) - first, MS_SYNC) != 0) fail("msync");
  }
  void write(Bytes offset, std::span<const std::byte> data) override {
    const ssize_t written =
        pwrite(file_.get(), data.data(), data.size(), static_cast<off_t>(offset));
    if (written < 0 || static_cast<std::size_t>(written) != data.size()) fail("pwrite");
  }

 private:
  Bytes size_;
  pmem::mapped::File file_;
  std::byte* base_ = nullptr;
};

class ModelledSystemCalls final : public SystemCalls {
 public:
  ModelledSystemCalls(Bytes size, Picoseconds time) : file_(size), time_(time) {}

  void sync(Bytes, Bytes) override { pass(); }
  void write(Bytes offset, std::span<const std::byte> data) override {
    pass();
    copy_bytes(std::span(file_).subspan(offset, data.size()), data);
  }

 private:
  void pass() const {
    if (cost_meter != nullptr) cost_meter->spin_until(cost_meter->now() + time_);
  }

  std::vector<std::byte> file_;
  Picoseconds time_;
};

}  // namespace

std::unique_ptr<SystemCalls> real_system_calls(Bytes file_size) {
  return std::make_unique<RealSystemCalls>(file_size);
}

std::unique_ptr<SystemCalls> modelled_system_calls(Bytes file_size, Picoseconds time) {
  return std::make_unique<ModelledSystemCalls>(file_size, time);
}

}  // namespace perdura::bench
