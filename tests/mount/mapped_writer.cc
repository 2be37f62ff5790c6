#include "tests/mount/mapped_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <vector>

namespace perdura::fs::test {
namespace {

constexpr std::size_t kPageBytes = MappedRecord::kPageBytes;
constexpr std::size_t kBytes = MappedRecord::kPages * kPageBytes;
constexpr std::size_t kMostPages = 8;  // between two synchronizations

}  // namespace

MappedWriter::MappedWriter(const std::string& path, MappedRecord& record, std::uint32_t seed)
    : record_(record),
      file_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)),
      mapped_(MAP_FAILED),
      random_(seed + static_cast<std::uint32_t>(record.synchronizations)) {
  if (file_ && ftruncate(file_.get(), kBytes) == 0) {
    // In memory, so that no page has to be read when there is nobody who serves it.
    mapped_ =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_LOCKED, file_.get(), 0);
  }
  if (mapped_ == MAP_FAILED) {
    throw std::runtime_error(fmt::format("{}: {}", path, pmem::mapped::error_text(errno)));
  }
}

MappedWriter::~MappedWriter() { munmap(mapped_, kBytes); }

std::span<std::uint64_t> MappedWriter::page(std::size_t number) const {
  constexpr std::size_t kWords = kPageBytes / sizeof(std::uint64_t);
  return {static_cast<std::uint64_t*>(mapped_) + number * kWords, kWords};
}

std::string MappedWriter::check() {
  for (std::size_t number = 0; number < MappedRecord::kPages; ++number) {
    const auto [least, most] = std::ranges::minmax(page(number));
    const std::uint64_t synchronized = record_.synchronized.at(number);
    const std::uint64_t stored = record_.stored.at(number);
    if (least < synchronized || most > stored) {
      return fmt::format("page {} has numbers from {} to {}; {} was synchronized, {} stored last",
                         number, least, most, synchronized, stored);
    }
    // What has been found once stays.
    record_.synchronized.at(number) = least;
  }
  return "";
}

std::string MappedWriter::write(const std::function<void()>& synchronized) {
  for (;;) {
    std::vector<std::size_t> changed(1 + random_() % kMostPages);
    for (std::size_t& number : changed) {
      number = random_() % MappedRecord::kPages;
      const std::uint64_t next = ++record_.stored.at(number);
      std::ranges::fill(page(number), next);
    }
    const bool by_range = random_() % 2 == 0;
    if ((by_range ? msync(mapped_, kBytes, MS_SYNC) : fsync(file_.get())) != 0) {
      const int error = errno;
      // Asks for what the kernel never remembers.
      if (fgetxattr(file_.get(), "user.none", nullptr, 0) != 0 &&
          (errno == ENOTCONN || errno == ECONNABORTED)) {
        return "";
      }
      return fmt::format("{}: {}", by_range ? "msync" : "fsync", pmem::mapped::error_text(error));
    }
    for (const std::size_t number : changed) {
      record_.synchronized.at(number) = record_.stored.at(number).load();
    }
    ++record_.synchronizations;
    synchronized();
  }
}

}  // namespace perdura::fs::test
