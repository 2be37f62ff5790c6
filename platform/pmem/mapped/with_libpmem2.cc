// Implements persistent_source.h in a build with libpmem2.
#include <fmt/format.h>
#include <libpmem2.h>

#include "platform/base/error.h"
#include "platform/pmem/mapped/persistent_source.h"

namespace perdura::pmem::mapped {
namespace {

struct DeleteSource {
  void operator()(pmem2_source* source) const { pmem2_source_delete(&source); }
};
struct DeleteConfig {
  void operator()(pmem2_config* config) const { pmem2_config_delete(&config); }
};
struct DeleteBadBlocks {
  void operator()(pmem2_badblock_context* context) const {
    pmem2_badblock_context_delete(&context);
  }
};
using Source = std::unique_ptr<pmem2_source, DeleteSource>;
using Config = std::unique_ptr<pmem2_config, DeleteConfig>;
using BadBlockContext = std::unique_ptr<pmem2_badblock_context, DeleteBadBlocks>;

// All functions of libpmem2 return 0 on success.
void check(int result, const std::string& path, const char* what) {
  if (result == 0) return;
  throw PlatformError(fmt::format("cannot {} {}: {}", what, path, pmem2_errormsg()));
}

Source source_of(int fd, const std::string& path) {
  pmem2_source* source = nullptr;
  check(pmem2_source_from_fd(&source, fd), path, "use as persistent memory");
  return Source(source);
}

Granularity granularity_of(pmem2_map* map) {
  switch (pmem2_map_get_store_granularity(map)) {
    case PMEM2_GRANULARITY_BYTE:
      return Granularity::byte;
    case PMEM2_GRANULARITY_CACHE_LINE:
      return Granularity::cache_line;
    case PMEM2_GRANULARITY_PAGE:
      return Granularity::page;
  }
  return Granularity::unknown;
}

}  // namespace

bool have_libpmem2() { return true; }

PersistentMap map_persistent(int fd, Extent extent, const std::string& path) {
  const Source source = source_of(fd, path);
  pmem2_config* made = nullptr;
  check(pmem2_config_new(&made), path, "map");
  const Config config(made);
  // Any granularity is accepted here; the caller reports what it means.
  check(pmem2_config_set_required_store_granularity(config.get(), PMEM2_GRANULARITY_PAGE), path,
        "map");
  check(pmem2_config_set_offset(config.get(), extent.offset), path, "map");
  std::size_t whole = 0;
  check(pmem2_source_size(source.get(), &whole), path, "find the size of");
  // A length that is set must be a multiple of the page size, but that of a whole file need not be.
  if (extent != Extent{0, whole}) {
    check(pmem2_config_set_length(config.get(), extent.length), path, "map");
  }
  pmem2_map* map = nullptr;
  check(pmem2_map_new(&map, config.get(), source.get()), path, "map");
  std::shared_ptr<void> handle(map, [](void* mapped) {
    auto* own = static_cast<pmem2_map*>(mapped);
    pmem2_map_delete(&own);
  });
  return {static_cast<std::byte*>(pmem2_map_get_address(map)), extent.length, granularity_of(map),
          std::move(handle)};
}

std::string deep_flush(const PersistentMap& map) {
  if (pmem2_deep_flush(static_cast<pmem2_map*>(map.handle.get()), map.base, map.length) == 0) {
    return "";
  }
  return pmem2_errormsg();
}

DeviceGeometry device_geometry(int fd, const std::string& path) {
  const Source source = source_of(fd, path);
  DeviceGeometry geometry;
  check(pmem2_source_size(source.get(), &geometry.size), path, "find the size of");
  check(pmem2_source_alignment(source.get(), &geometry.alignment), path, "find the alignment of");
  return geometry;
}

BadBlocks bad_blocks_of(int fd) {
  pmem2_source* made = nullptr;
  if (pmem2_source_from_fd(&made, fd) != 0) return {{}, pmem2_errormsg()};
  const Source source(made);
  pmem2_badblock_context* begun = nullptr;
  if (pmem2_badblock_context_new(&begun, source.get()) != 0) return {{}, pmem2_errormsg()};
  const BadBlockContext context(begun);
  BadBlocks found;
  pmem2_badblock block{};
  int result = 0;
  while ((result = pmem2_badblock_next(context.get(), &block)) == 0) {
    found.extents.push_back({block.offset, block.length});
  }
  if (result != PMEM2_E_NO_BAD_BLOCK_FOUND) found.unknown = pmem2_errormsg();
  return found;
}

}  // namespace perdura::pmem::mapped
