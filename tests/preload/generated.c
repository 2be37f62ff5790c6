/* A random program on a file, with a model of what its copies hold: after each sync point they have
 * the pages that it names as they are, and of the others what they had.
 *
 *   generated FILE MODEL SEED SYNCS      ends by SIGKILL after so many sync points, and leaves the
 * model
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perdura_mojim.h"

enum { kSize = 4 << 20, kPage = 4096, kMost = 9000 };

static const char* name;
static int file;
static char* memory;
static char* model;
static char data[kMost];
static uint64_t state;

static size_t below(size_t limit) { /* splitmix64 */
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (size_t)((z ^ (z >> 31)) % limit);
}

static void must(int is_done, const char* what) {
  if (is_done) return;
  perror(what);
  _exit(3);
}

static void change(void) {
  const size_t length = 1 + below(kMost);
  const size_t at = below(kSize - length);
  const ssize_t wanted = (ssize_t)length;
  struct iovec part = {data, length};
  int ends[2];
  pid_t child;
  FILE* stream;
  char* other;
  off64_t from, to;
  memset(data, (int)below(5), length); /* often what is there */
  data[below(length)] = (char)below(256);
  switch (below(12)) {
    case 0:
    case 1:
    case 2:
      memcpy(memory + at, data, length);
      break;
    case 3:
      must(pwrite(file, data, length, (off_t)at) == wanted, "pwrite");
      break;
    case 4:
      must(lseek(file, (off_t)at, SEEK_SET) >= 0 && write(file, data, length) == wanted, "write");
      break;
    case 5:
      must(pwritev2(file, &part, 1, (off_t)at, 0) == wanted, "pwritev2");
      break;
    case 6:
      stream = fopen(name, "r+");
      must(stream != NULL && fseek(stream, (long)at, SEEK_SET) == 0 &&
               fwrite(data, length, 1, stream) == 1 && fclose(stream) == 0,
           "stdio");
      break;
    case 7:
      from = (off64_t)at;
      to = (off64_t)((at + kSize / 2) % kSize);
      if (to + (off64_t)length > kSize) to = 0;
      if (llabs(from - to) < (off64_t)length) break; /* they may not overlap */
      must(copy_file_range(file, &from, file, &to, length, 0) == wanted, "copy_file_range");
      break;
    case 8:
      must(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, wanted) == 0,
           "hole");
      break;
    case 9: /* only some programs, since nothing is known of their stores from then on */
      if (state % 8 != 0) break;
      child = fork();
      if (child == 0) {
        memcpy(memory + at, data, length);
        _exit(0);
      }
      must(waitpid(child, NULL, 0) == child, "fork");
      break;
    case 10:
      must(pipe(ends) == 0 && write(ends[1], data, length) == wanted &&
               read(ends[0], memory + at, length) == wanted,
           "read");
      close(ends[0]);
      close(ends[1]);
      break;
    default:
      other = mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      must(other != MAP_FAILED, "mmap");
      memcpy(other + at, data, length);
      must(munmap(other, kSize) == 0, "munmap");
  }
}

static void copied(size_t begin, size_t length) {
  size_t end = (begin + length + kPage - 1) / kPage * kPage;
  if (end > kSize) end = kSize;
  begin = begin / kPage * kPage;
  memcpy(model + begin, memory + begin, end - begin);
}

static void sync_some(void) {
  struct gmsync_range ranges[3];
  size_t at, length, i;
  const size_t count = 1 + below(3);
  int again;
  switch (below(4)) {
    case 0:
      must(fsync(file) == 0, "fsync");
      copied(0, kSize);
      break;
    case 1: /* one that holds another, or a part of it */
      for (i = 0; i < count; ++i) {
        length = 1 + below(below(4) == 0 ? kSize / 2 : 4 * kPage);
        at = below(kSize - length);
        ranges[i].address = memory + at;
        ranges[i].length = length;
      }
      must(gmsync(ranges, (int)count) == 0, "gmsync");
      for (i = 0; i < count; ++i) {
        copied((size_t)((char*)ranges[i].address - memory), ranges[i].length);
      }
      break;
    case 2:
      at = below(kSize / kPage) * kPage;
      length = 1 + below(kSize - at);
      must(msync(memory + at, length, MS_SYNC) == 0, "msync");
      copied(at, length);
      break;
    default:
      again = open(name, O_RDWR | O_DSYNC);
      at = below(kSize);
      must(again >= 0 && pwrite(again, "x", 1, (off_t)at) == 1 && close(again) == 0, "O_DSYNC");
      copied(0, kSize);
  }
}

int main(int count, char** arguments) {
  long syncs;
  FILE* made;
  if (count != 5) return 2;
  name = arguments[1];
  state = strtoull(arguments[3], NULL, 10);
  syncs = atol(arguments[4]);
  file = open(name, O_RDWR | O_CREAT, 0644);
  must(file >= 0 && ftruncate(file, kSize) == 0, name);
  memory = mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  must(memory != MAP_FAILED, "mmap");
  model = calloc(1, kSize);
  copied(0, kSize); /* the copies are given it as it is */
  for (; syncs > 0; --syncs) {
    size_t changes = below(6);
    while (changes-- > 0) change();
    sync_some();
  }
  made = fopen(arguments[2], "w");
  must(made != NULL && fwrite(model, kSize, 1, made) == 1 && fclose(made) == 0, arguments[2]);
  raise(SIGKILL);
  return 2;
}
