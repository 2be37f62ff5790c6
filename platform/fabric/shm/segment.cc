#include "platform/fabric/shm/segment.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "platform/base/error.h"
#include "platform/base/limits.h"

namespace perdura::fabric::shm {

using pmem::mapped::error_text;
using pmem::mapped::File;
using pmem::mapped::map_file;

void take_memory(void* begin, Bytes size, const std::string& path) {
  constexpr std::uintptr_t kPage = 4 * KiB;
  const auto first = reinterpret_cast<std::uintptr_t>(begin) / kPage * kPage;
  const auto end = round_up(reinterpret_cast<std::uintptr_t>(begin) + size, kPage);
  while (::madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_WRITE) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno == EINVAL) return;  // before Linux 5.14
    throw PlatformError(fmt::format(
        "no room for {} bytes of {}; make it larger (mount -o remount,size=... /dev/shm; of a "
        "container: --shm-size)",
        end - first, path));
  }
}

OwnSegment::OwnSegment(std::string path, std::uint64_t generation, std::uint32_t doorbell)
    : path_(std::move(path)), next_offset_(round_up(sizeof(EndpointSegment), 4 * KiB)) {
  // The file is created under a temporary name and linked to its own when it is complete, so that
  // peers never see it half made.
  const std::string temporary = path_ + ".new";
  file_ = File(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file_ && errno == EEXIST) {
    throw UsageError(fmt::format("two threads want to be {}", path_));
  }
  if (!file_ || ::ftruncate(file_.get(), static_cast<off_t>(kSegmentSize)) != 0) {
    const int error = errno;
    if (file_) ::unlink(temporary.c_str());
    throw PlatformError(fmt::format("cannot create {}: {}", temporary, error_text(error)));
  }
  mapping_ = map_file(file_.get(), temporary);
  try {
    take_memory(mapping_->data(), offsetof(EndpointSegment, connections), path_);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  shared().generation = generation;
  shared().doorbell = doorbell;
  shared().version = kLayoutVersion;
  const int linked = ::link(temporary.c_str(), path_.c_str());
  const int error = errno;
  ::unlink(temporary.c_str());
  if (linked != 0 && error == EEXIST) {
    throw UsageError(fmt::format("two threads want to be {}", path_));
  }
  if (linked != 0) {
    throw PlatformError(fmt::format("cannot create {}: {}", path_, error_text(error)));
  }
}

OwnSegment::~OwnSegment() { ::unlink(path_.c_str()); }

// Memory is allocated now: if /dev/shm is full, this is an error here, and would be a SIGBUS at the
// first access.
void OwnSegment::reserve(std::uint64_t offset, Bytes size) {
  while (::fallocate(file_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(size)) != 0) {
    if (errno == EINTR) continue;
    throw PlatformError(
        fmt::format("cannot reserve {} bytes in {}: {}", size, path_, error_text(errno)));
  }
}

std::uint64_t OwnSegment::allocate(Bytes size) {
  size = std::bit_ceil(round_up(size, kCacheLine));
  auto& free = free_[size];
  if (!free.empty()) {
    const std::uint64_t offset = free.back();
    free.pop_back();
    std::memset(at<std::byte>(offset), 0, size);
    return offset;
  }
  if (next_offset_ + size > kSegmentSize) {
    throw PlatformError(fmt::format("{} is full: too many connections or too deep queues", path_));
  }
  reserve(next_offset_, size);
  const std::uint64_t offset = next_offset_;
  next_offset_ += size;
  return offset;
}

void OwnSegment::release(std::uint64_t offset, Bytes size) {
  free_[std::bit_ceil(round_up(size, kCacheLine))].push_back(offset);
}

std::uint32_t OwnSegment::allocate_slot() {
  if (!free_slots_.empty()) {
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }
  if (next_slot_ == kMaxConnections) {
    throw PlatformError(fmt::format("more than {} connections of {}", kMaxConnections, path_));
  }
  const auto* first = mapping_->data();
  const auto* slot = reinterpret_cast<const std::byte*>(&shared().connections[next_slot_]);
  reserve(static_cast<std::uint64_t>(slot - first), sizeof(ConnectionSlot));
  return next_slot_++;
}

void OwnSegment::release_slot(std::uint32_t slot) {
  shared().connections[slot].state = SlotState::free;
  free_slots_.push_back(slot);
}

std::shared_ptr<PeerSegment> PeerSegment::open(const std::string& path, std::uint64_t generation) {
  const File file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) check_files_left(errno, path);
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 ||
      static_cast<Bytes>(info.st_size) != kSegmentSize) {
    return nullptr;
  }
  auto segment = std::make_shared<PeerSegment>(map_file(file.get(), path));
  if (segment->shared().version != kLayoutVersion || segment->shared().generation != generation ||
      segment->shared().closed != 0) {
    return nullptr;
  }
  return segment;
}

}  // namespace perdura::fabric::shm
