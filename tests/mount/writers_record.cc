#include "tests/mount/writers_record.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <new>

#include "platform/base/error.h"
#include "platform/pmem/mapped/mapping.h"

namespace perdura::fs::test {

std::shared_ptr<WritersRecord> map_record(const std::string& path) {
  const pmem::mapped::File file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) throw PlatformError(fmt::format("{}: {}", path, pmem::mapped::error_text(errno)));
  const auto mapping = pmem::mapped::map_file(file.get(), path);
  if (mapping->size() < sizeof(WritersRecord)) {
    throw PlatformError(fmt::format("{}: has {} bytes; a record needs {}", path, mapping->size(),
                                    sizeof(WritersRecord)));
  }
  return {mapping, std::launder(reinterpret_cast<WritersRecord*>(mapping->data()))};
}

}  // namespace perdura::fs::test
