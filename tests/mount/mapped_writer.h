// A program that stores to a shared mapping of a file and synchronizes it, until whatever serves
// the file is killed. Nothing but msync() and fsync() makes such stores durable, as they are in the
// kernel's cache until then.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>

#include "platform/pmem/mapped/mapping.h"

namespace perdura::fs::test {

// Of each page, in memory that outlives the writer: the numbers that are stored in it ascend.
struct MappedRecord {
  static constexpr std::size_t kPages = 64;
  static constexpr std::size_t kPageBytes = 4096;
  std::array<std::atomic<std::uint64_t>, kPages> stored;        // the last one, perhaps in part
  std::array<std::atomic<std::uint64_t>, kPages> synchronized;  // none below this may be found
  std::atomic<std::uint64_t> synchronizations;
};

class MappedWriter {
 public:
  // Makes the file if it is not there.
  MappedWriter(const std::string& path, MappedRecord& record, std::uint32_t seed);
  ~MappedWriter();
  MappedWriter(const MappedWriter&) = delete;
  MappedWriter& operator=(const MappedWriter&) = delete;

  // What is missing; empty if nothing is.
  std::string check();
  // Goes on until the mount is gone; `synchronized` is called behind each msync() or fsync().
  // Returns what is wrong.
  std::string write(const std::function<void()>& synchronized);

 private:
  std::span<std::uint64_t> page(std::size_t number) const;

  MappedRecord& record_;
  pmem::mapped::File file_;
  void* mapped_;
  std::mt19937 random_;
};

}  // namespace perdura::fs::test
