// The files that are mapped at addresses of a process, according to the kernel: a program may have
// mapped, moved, replaced or unmapped them in any way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "services/memory/memory.h"

namespace perdura::preload {

struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::uint64_t offset = 0;  // offset of `begin` in the file
  std::uint64_t inode = 0;   // 0: no file
  bool is_shared = false;
};

// The parts of a file that are mapped at these addresses of the process; 0 is the calling process.
// find_parts() neither allocates memory nor takes a lock.
struct FoundParts {
  std::size_t count = 0;
  bool has_others = false;  // some of the addresses do not map the file
  bool is_unknown = false;  // the kernel cannot tell, or there are too many
};
FoundParts find_parts(std::uintptr_t begin, std::size_t length, std::uint64_t inode,
                      std::span<services::MemoryRange> ranges, std::int32_t process = 0);

// The mappings of files, one after the other.
class MappingsOfFiles {
 public:
  MappingsOfFiles();
  ~MappingsOfFiles();
  MappingsOfFiles(const MappingsOfFiles&) = delete;
  MappingsOfFiles& operator=(const MappingsOfFiles&) = delete;

  // Finds the first mapping that ends after the address. `unknown`: the kernel cannot tell, or not
  // quickly.
  enum class Next : std::uint8_t { found, end, unknown };
  Next next(std::uintptr_t address, Mapping& mapping) const;

 private:
  int descriptor_;
};

}  // namespace perdura::preload
