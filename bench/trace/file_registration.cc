#include "bench/trace/file_registration.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#ifdef PERDURA_HAVE_VERBS
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "platform/fabric/verbs/device.h"
#include "platform/pmem/mapped/mapping.h"
#endif

namespace perdura::bench {

#ifdef PERDURA_HAVE_VERBS

struct FileRegistration::OpenDevice {
  explicit OpenDevice(const std::string& name) : device({.name = name}) {}
  fabric::verbs::Device device;
};

FileRegistration::FileRegistration(const std::string& device) {
  int count = 0;
  ibv_device** const devices = ibv_get_device_list(&count);
  if (devices != nullptr) ibv_free_device_list(devices);
  if (device.empty() && count == 0) {
    problem_ = "this host has no RDMA device";
    return;
  }
  try {
    device_ = std::make_unique<OpenDevice>(device);
  } catch (const PlatformError& error) {
    problem_ = error.what();
  }
}

void FileRegistration::add(const std::filesystem::path& file, Bytes size) {
  if (device_ == nullptr || size == 0 || !problem_.empty()) return;
  const Bytes length = std::min(size, kMost - bytes_);
  const pmem::mapped::File opened(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  void* const base = length == 0 || !opened ? MAP_FAILED
                                            : mmap(nullptr, length, PROT_READ,
                                                   MAP_SHARED | MAP_POPULATE, opened.get(), 0);
  if (base == MAP_FAILED) {
    ++left_out_;
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  const fabric::verbs::Handle<ibv_mr> memory(
      ibv_reg_mr(device_->device.domain(), base, length, IBV_ACCESS_REMOTE_READ));
  const auto took = std::chrono::steady_clock::now() - begin;
  if (memory == nullptr) {
    problem_ = fmt::format("{}: {}", file.string(), std::strerror(errno));
  } else {
    ++files_;
    bytes_ += length;
    time_ += std::chrono::duration_cast<Picoseconds>(took);
  }
  munmap(base, length);
}

#else

struct FileRegistration::OpenDevice {};

FileRegistration::FileRegistration(const std::string&) : problem_("this build has no libibverbs") {}

void FileRegistration::add(const std::filesystem::path&, Bytes) {}

#endif

FileRegistration::~FileRegistration() = default;

std::string FileRegistration::text() const {
  if (files_ == 0 && !problem_.empty()) return "nothing was registered: " + problem_;
  if (files_ == 0)
    return fmt::format("nothing was registered: {} files cannot be mapped", left_out_);
  std::string line = fmt::format("registering {} files, {} bytes: {:.3f} ms", files_, bytes_,
                                 to_microseconds(time_) / 1000);
  if (left_out_ > 0) line += fmt::format("; {} files were left out", left_out_);
  if (!problem_.empty()) line += "; then " + problem_;
  return line;
}

}  // namespace perdura::bench
