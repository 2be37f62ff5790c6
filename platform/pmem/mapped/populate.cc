#include "platform/pmem/mapped/populate.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include <algorithm>

namespace perdura::pmem::mapped {

bool is_in_memory(const PoolFile& pool) {
  struct statfs info {};
  return pool.mapping->is_on_dax() ||
         (::statfs(pool.path.c_str(), &info) == 0 && info.f_type == TMPFS_MAGIC);
}

void populate(const PoolFile& pool, const std::stop_token& stop) {
  constexpr Bytes kStep = 16 * MiB;
  if (!is_in_memory(pool)) return;
  const Bytes size = pool.mapping->mapped_size();
  for (Bytes at = 0; at < size && !stop.stop_requested(); at += kStep) {
    const Bytes length = std::min(kStep, size - at);
    // The kernel refuses either all pages or none, unless memory runs out; then the first access to
    // a missing page takes the error.
    if (::madvise(pool.mapping->data() + at, length, MADV_POPULATE_WRITE) != 0) return;
  }
}

}  // namespace perdura::pmem::mapped
