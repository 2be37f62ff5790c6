// A read-only mapping of a file's contents.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "platform/base/units.h"

namespace perdura::preload {

class MappedFile {
 public:
  static constexpr Bytes kPage = 4 * KiB;
  // A file that does not exist is empty. Throws PlatformError if the file cannot be mapped.
  explicit MappedFile(const std::string& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace perdura::preload
