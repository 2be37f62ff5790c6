/* The example of "Mojim: A Reliable and Highly-Available Non-Volatile Memory System", figure 3.1: a log in a mapped file,
 * to which each run appends an entry. What it costs to have the file on another node as well is a command:
 *
 *   cc -I preload -o append_log examples/mojim/append_log.c
 *   perdura mojim run --mode m-sync --size 64KiB --primary a/log --mirror b/log -- ./append_log a/log "the first entry"
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perdura_mojim.h"

enum { kSize = 65536 };

struct log {
  unsigned long accesses;
  unsigned long size; /* of the entries */
  char entries[kSize - 2 * sizeof(unsigned long)];
};

int main(int count, char** arguments) {
  int file;
  struct log* log;
  size_t length;
  if (count != 3) {
    fprintf(stderr, "usage: append_log FILE ENTRY\n");
    return 2;
  }
  file = open(arguments[1], O_RDWR | O_CREAT, 0644);
  if (file < 0 || ftruncate(file, kSize) != 0) {
    perror(arguments[1]);
    return 1;
  }
  log = mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (log == MAP_FAILED) {
    perror(arguments[1]);
    return 1;
  }

  log->accesses += 1;
  if (msync(log, sizeof log->accesses, MS_SYNC) != 0) perror("msync");

  length = strlen(arguments[2]) + 1;
  if (length > sizeof log->entries - log->size) {
    fprintf(stderr, "%s: the log is full\n", arguments[1]);
    return 1;
  }
  memcpy(log->entries + log->size, arguments[2], length);
  {
    /* Nobody sees the entry without its size, or the size without the entry. */
    const struct gmsync_range both[] = {{log->entries + log->size, length}, {&log->size, sizeof log->size}};
    log->size += length;
    if (gmsync(both, 2) != 0) perror("gmsync");
  }
  printf("%lu accesses, %lu bytes\n", log->accesses, log->size);
  return 0;
}
