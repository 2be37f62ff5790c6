// What a program of several writers shares with those who kill it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/mount/mapped_writer.h"
#include "tests/mount/writer.h"

namespace perdura::fs::test {

struct WritersRecord {
  enum class Phase : std::uint64_t { starting, recovering, working };
  // Of this life; tests/vm/power_failures reads these two words.
  std::atomic<Phase> phase;
  std::atomic<std::uint64_t> calls;  // of all writers, that have returned
  std::array<WriterRecord, 2> writers;
  MappedRecord mapped;
};
// In a file, or in a device's memory. Throws PlatformError if that cannot be mapped or is too
// small.
std::shared_ptr<WritersRecord> map_record(const std::string& path);

}  // namespace perdura::fs::test
