// The files that are mapped at an address of this process, as the kernel says: a program may have
// mapped, moved, replaced or unmapped it in any way.
#pragma once

#include <cstdint>
#include <optional>

namespace perdura::mojim {

struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::uint64_t offset = 0;  // of `begin`, in the file
  std::uint64_t inode = 0;   // 0: no file
  bool is_shared = false;
};

// The mapping that holds this address, or else the first after it; nothing if there is none.
// Neither allocates memory nor takes a lock.
std::optional<Mapping> mapping_at(std::uintptr_t address);

// The mappings of files, one after the other.
class MappingsOfFiles {
 public:
  MappingsOfFiles();
  ~MappingsOfFiles();
  MappingsOfFiles(const MappingsOfFiles&) = delete;
  MappingsOfFiles& operator=(const MappingsOfFiles&) = delete;

  // The first that ends after the address. `unknown`: the kernel cannot tell, or not quickly.
  enum class Next : std::uint8_t { found, end, unknown };
  Next next(std::uintptr_t address, Mapping& mapping) const;

 private:
  int descriptor_;
};

}  // namespace perdura::mojim
