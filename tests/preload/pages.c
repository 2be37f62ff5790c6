/* Programs that know nothing of Mojim, but for gmsync: one that changes several pages at each sync
 * point, and others that read them in a copy. Each word of the pages is the number of the sync
 * point, so that who reads words one after the other, in the order in which they are written, never
 * meets a smaller one, unless it sees a sync point in part.
 *
 *   pages write FILE LAST      says each number when its sync point has returned
 *   pages end FILE LAST        the same, and stops itself (SIGSTOP) before the last one
 *   pages map FILE UNTIL       reads mapped pages until it meets this number, and says each first one
 *   pages private FILE UNTIL   the same with MAP_PRIVATE
 *   pages fork FILE UNTIL      the same in two processes
 *   pages send FILE UNTIL      gives mapped pages to system calls
 *   pages read FILE UNTIL      reads all pages by one system call, in which all words must be equal
 *   pages store FILE 0         maps the file to store to it
 *   pages open FILE 0          changes a mapping so that it could store to it
 *   pages overwrite FILE 0     writes to the file
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perdura_mojim.h"

enum { kPages = 4, kPageBytes = 4096, kWords = kPageBytes / 8, kBetween = 50, kSize = 4 << 20 };

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static int open_file(const char* file, int access) {
  const int descriptor = open(file, access, 0644);
  if (descriptor < 0) fail(file);
  return descriptor;
}

static void* map(const char* file, int access, int protection, int flags) {
  const int descriptor = open_file(file, access);
  void* memory;
  if ((access & O_CREAT) != 0 && ftruncate(descriptor, kSize) != 0) fail(file);
  memory = mmap(NULL, kSize, protection, flags, descriptor, 0);
  if (memory == MAP_FAILED) fail(file);
  close(descriptor);
  return memory;
}

static int write_pages(const char* file, uint64_t last, int stops) {
  uint64_t* const memory = map(file, O_RDWR | O_CREAT, PROT_READ | PROT_WRITE, MAP_SHARED);
  struct gmsync_range ranges[kPages];
  uint64_t number;
  int page;
  int word;
  for (page = 0; page < kPages; ++page) {
    ranges[page].address = memory + (size_t)page * kBetween * kWords;
    ranges[page].length = kPageBytes;
  }
  for (number = memory[0] + 1; number <= last; ++number) {
    if (stops && number == last) raise(SIGSTOP);
    for (page = 0; page < kPages; ++page) {
      for (word = 0; word < kWords; ++word) ((uint64_t*)ranges[page].address)[word] = number;
    }
    if (gmsync(ranges, kPages) != 0) fail("gmsync");
    dprintf(1, "%lu\n", (unsigned long)number);
  }
  return 0;
}

static uint64_t newest; /* that has been met */

static void meet(uint64_t number, int page, int word, int only_equal) {
  if (number < newest || (only_equal && number != newest)) {
    dprintf(1, "page %d, word %d: %lu behind %lu\n", page, word, (unsigned long)number,
            (unsigned long)newest);
    exit(1);
  }
  newest = number;
}

static void say_newest(uint64_t before) {
  if (newest != before) dprintf(1, "%lu\n", (unsigned long)newest);
}

static int read_mapped(const volatile uint64_t* memory, uint64_t until) {
  dprintf(1, "reads\n");
  while (newest < until) {
    const uint64_t before = newest;
    int page;
    int word;
    for (page = 0; page < kPages; ++page) {
      for (word = 0; word < kWords; ++word) {
        meet(memory[(size_t)page * kBetween * kWords + word], page, word, 0);
      }
    }
    say_newest(before);
  }
  return 0;
}

static int read_in_two(const volatile uint64_t* memory, uint64_t until) {
  const pid_t child = fork();
  int status = 0;
  if (child < 0) fail("fork");
  if (child == 0) _exit(read_mapped(memory, until));
  if (read_mapped(memory, until) != 0) return 1;
  if (waitpid(child, &status, 0) != child) fail("waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int read_at_once(const char* file, uint64_t until) {
  const int descriptor = open_file(file, O_RDONLY);
  const size_t length = ((size_t)(kPages - 1) * kBetween + 1) * kPageBytes;
  uint64_t* const memory = malloc(length);
  dprintf(1, "reads\n");
  while (newest < until) {
    const uint64_t before = newest;
    int page;
    int word;
    if (pread(descriptor, memory, length, 0) != (ssize_t)length) fail("pread");
    for (page = 0; page < kPages; ++page) {
      for (word = 0; word < kWords; ++word) {
        meet(memory[(size_t)page * kBetween * kWords + word], page, word, page + word > 0);
      }
    }
    say_newest(before);
  }
  return 0;
}

static int send_mapped(const uint64_t* memory, uint64_t until) {
  uint64_t sent[kWords];
  int ends[2];
  FILE* stream;
  if (pipe(ends) != 0 || (stream = fdopen(dup(ends[1]), "w")) == NULL) fail("pipe");
  setvbuf(stream, NULL, _IONBF, 0);
  dprintf(1, "reads\n");
  while (newest < until) {
    const uint64_t before = newest;
    int page;
    int word;
    for (page = 0; page < kPages; ++page) {
      const char* const begin = (const char*)(memory + (size_t)page * kBetween * kWords);
      size_t done = 0;
      if (page % 2 == 0) {
        if (fwrite(begin, 1, kPageBytes, stream) != kPageBytes) fail("fwrite");
      }
      while (page % 2 != 0 && done < kPageBytes) {
        const ssize_t length = write(ends[1], begin + done, kPageBytes - done);
        if (length < 0) fail("write");
        done += (size_t)length;
      }
      for (done = 0; done < kPageBytes;) {
        const ssize_t length = read(ends[0], (char*)sent + done, kPageBytes - done);
        if (length <= 0) fail("read");
        done += (size_t)length;
      }
      for (word = 0; word < kWords; ++word) meet(sent[word], page, word, 0);
    }
    say_newest(before);
  }
  return 0;
}

int main(int count, char** arguments) {
  const char* how;
  const char* file;
  uint64_t number;
  if (count != 4) return 2;
  how = arguments[1];
  file = arguments[2];
  number = strtoull(arguments[3], NULL, 10);
  if (strcmp(how, "write") == 0) return write_pages(file, number, 0);
  if (strcmp(how, "end") == 0) return write_pages(file, number, 1);
  if (strcmp(how, "map") == 0) return read_mapped(map(file, O_RDONLY, PROT_READ, MAP_SHARED), number);
  if (strcmp(how, "private") == 0) {
    return read_mapped(map(file, O_RDONLY, PROT_READ, MAP_PRIVATE), number);
  }
  if (strcmp(how, "fork") == 0) return read_in_two(map(file, O_RDONLY, PROT_READ, MAP_SHARED), number);
  if (strcmp(how, "send") == 0) return send_mapped(map(file, O_RDONLY, PROT_READ, MAP_SHARED), number);
  if (strcmp(how, "read") == 0) return read_at_once(file, number);
  if (strcmp(how, "store") == 0) {
    map(file, O_RDWR, PROT_READ | PROT_WRITE, MAP_SHARED);
    return 0;
  }
  if (strcmp(how, "open") == 0) {
    return mprotect(map(file, O_RDWR, PROT_READ, MAP_SHARED), kPageBytes, PROT_READ | PROT_WRITE);
  }
  if (strcmp(how, "overwrite") == 0) return write(open_file(file, O_RDWR), "x", 1) != 1;
  return 2;
}
