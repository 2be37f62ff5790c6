/* Sync points of several ranges for programs that `perdura mojim run` starts: gmsync of "Mojim: A
 * Reliable and Highly-Available Non-Volatile Memory System", section 3.1.1. A program that uses it
 * needs no library to be linked with; without `perdura mojim run` the call syncs one range after
 * the other, as msync(2) does. */
#ifndef PERDURA_MOJIM_H
#define PERDURA_MOJIM_H

#include <stddef.h>
#include <sys/mman.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gmsync_range {
  void* address; /* in memory of one mapped file; of any alignment */
  size_t length;
};

/* Syncs all ranges atomically: copies of the file get all that has been stored to them, or
 * nothing of it. Returns 0; -1 with errno ENOMEM if a range is not in the mapped file, ENOSPC if
 * the ranges do not fit into a log of Mojim (16 MiB) or are more than 1024, EIO if another node has
 * become the primary.
 * The linker mold (1.10) leaves this reference out of programs, which then do without Mojim's
 * gmsync: link them with another linker.
 */
int perdura_gmsync(const struct gmsync_range* ranges, int count) __attribute__((weak));

static inline int gmsync(const struct gmsync_range* ranges, int count) {
  int i;
  if (perdura_gmsync) return perdura_gmsync(ranges, count);
  for (i = 0; i < count; ++i) {
    /* Linux wants whole pages. */
    char* const begin = (char*)((size_t)ranges[i].address & ~(size_t)4095);
    const size_t before = (size_t)((char*)ranges[i].address - begin);
    if (msync(begin, before + ranges[i].length, MS_SYNC) != 0) return -1;
  }
  return 0;
}

#ifdef __cplusplus
}
#endif

#endif
