// Determines what the storage guarantees that persistent memory is mapped from, so that results can
// be interpreted: a run on DAX and a run on tmpfs look alike, but only the data on DAX survives a
// power failure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "platform/pmem/mapped/persistent_source.h"

namespace perdura::pmem::mapped {

enum class StorageKind : std::uint8_t {
  device_dax,
  dax_file_system,
  tmpfs,
  page_cache,  // any other file system
};
std::string_view to_string(StorageKind kind);

struct Storage {
  StorageKind kind = StorageKind::page_cache;
  Granularity granularity = Granularity::unknown;
  // True if data that is flushed there survives a power failure; nullopt if that is not known.
  std::optional<bool> persistent{};
  // The guarantee as text, such as "file-system DAX with MAP_SYNC; a flushed line is durable" or
  // "tmpfs; survives processes, not power".
  std::string promise{};
};
std::string_view to_string(Granularity granularity);

struct DaxMemory;
// The storage that is a DAX device with such memory; `geometry`: the device's size, as text for the
// promise.
Storage storage_on_device(const DaxMemory& memory, Granularity granularity,
                          const std::string& geometry);

// Determines the storage of a directory or a DAX device by mapping memory there. Throws what
// DaxDevice() throws.
Storage storage_of(const std::string& path);

}  // namespace perdura::pmem::mapped
