/* One way to change a file, one to sync it, one to end: a row of the table in ways_test.cc.
 *
 *   ways FILE CHANGE SYNC END [SIZE]
 *   ways FILE              maps the file, stores, and ends
 *
 * The file gets "newdata" at 0, or is changed otherwise, and nothing is changed that the sync does
 * not cover. When the sync has returned, "synced" is said. If a call is refused, the program says
 * "refused" and ends with code 9.
 */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perdura_mojim.h"

enum { kPage = 4096, kLength = 8 };

static size_t size = 1 << 20;

static const char* program;
static const char* name;
static const char* how; /* it is synced */
static int file;
static char* memory;
static const char kNew[] = "newdata";

static void refused(const char* what) {
  dprintf(1, "refused %s: %s\n", what, strerror(errno));
  _exit(9);
}
static void must(int is_done, const char* what) {
  if (!is_done) refused(what);
}
static void store(void) { memcpy(memory, kNew, kLength); }

static void* store_in_thread(void* none) {
  store();
  return none;
}
static void store_in_handler(int signal) {
  (void)signal;
  store();
}
static void wait_for(pid_t child) {
  int status = 1;
  must(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child");
}
static int other_with_data(void) {
  const int other = memfd_create("other", 0);
  must(write(other, kNew, kLength) == kLength && lseek(other, 0, SEEK_SET) == 0, "memfd");
  return other;
}
/* A system call that no library sees. */
static long by_instruction(long number, long a, long b, long c, long d) {
  register long fourth __asm__("r10") = d;
  register long fifth __asm__("r8") = 0;
  register long sixth __asm__("r9") = 0;
  long result = number;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                   : "rcx", "r11", "memory");
  errno = result < 0 ? (int)-result : 0;
  return result;
}
static void own_handler(int signal) { _exit(100 + signal); }

/* --- how it is changed -------------------------------------------------------------------------
 */

static void change(const char* by) {
  struct iovec part = {(void*)(size_t)kNew, kLength};
  char found[kLength];
#define IS(word) (strcmp(by, word) == 0)
  if (IS("store")) {
    store();
  } else if (IS("write")) {
    must(write(file, kNew, kLength) == kLength, by);
  } else if (IS("pwrite")) {
    must(pwrite(file, kNew, kLength, 0) == kLength, by);
  } else if (IS("writev")) {
    must(writev(file, &part, 1) == kLength, by);
  } else if (IS("pwritev")) {
    must(pwritev(file, &part, 1, 0) == kLength, by);
  } else if (IS("pwritev2")) {
    must(pwritev2(file, &part, 1, 0, 0) == kLength, by);
  } else if (IS("sendfile")) {
    must(sendfile(file, other_with_data(), NULL, kLength) == kLength, by);
  } else if (IS("copy_file_range")) {
    off64_t from = kPage, to = 0;
    must(pwrite(file, kNew, kLength, from) == kLength, by);
    must(copy_file_range(file, &from, file, &to, kLength, 0) == kLength, by);
  } else if (IS("splice")) {
    int ends[2];
    must(pipe(ends) == 0 && write(ends[1], kNew, kLength) == kLength, "pipe");
    must(splice(ends[0], NULL, file, NULL, kLength, 0) == kLength, by);
  } else if (IS("stdio")) {
    FILE* const stream = fopen(name, "r+");
    must(stream != NULL && fwrite(kNew, kLength, 1, stream) == 1 && fclose(stream) == 0, by);
  } else if (IS("stdio-emptied")) {
    FILE* const stream = fopen(name, "w");
    must(stream != NULL && fwrite(kNew, kLength, 1, stream) == 1 && fclose(stream) == 0, by);
  } else if (IS("open-emptied")) {
    const int again = open(name, O_RDWR | O_TRUNC);
    must(again >= 0 && write(again, kNew, kLength) == kLength, by);
  } else if (IS("syscall")) {
    must(syscall(SYS_pwrite64, file, kNew, (long)kLength, 0L) == kLength, by);
  } else if (IS("aio_write")) {
    struct aiocb control;
    const struct aiocb* const list[] = {&control};
    memset(&control, 0, sizeof control);
    control.aio_fildes = file;
    control.aio_buf = (void*)(size_t)kNew;
    control.aio_nbytes = kLength;
    must(aio_write(&control) == 0, by);
    while (aio_error(&control) == EINPROGRESS) aio_suspend(list, 1, NULL);
    must(aio_return(&control) == kLength, by);
  } else if (IS("hole")) {
    must(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kPage) == 0, by);
  } else if (IS("truncate")) {
    must(truncate(name, 100) == 0 && pwrite(file, kNew, kLength, 0) == kLength, by);
  } else if (IS("ftruncate")) {
    must(ftruncate(file, 100) == 0 && pwrite(file, kNew, kLength, 0) == kLength, by);
  } else if (IS("truncate-by-number")) {
    must(syscall(SYS_ftruncate, file, 100L) == 0 && pwrite(file, kNew, kLength, 0) == kLength, by);
  } else if (IS("read-into")) {
    must(read(other_with_data(), memory, kLength) == kLength, by);
  } else if (IS("recv-into")) {
    int ends[2];
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 &&
             send(ends[0], kNew, kLength, 0) == kLength,
         "socketpair");
    must(recv(ends[1], memory, kLength, 0) == kLength, by);
  } else if (IS("stat-into")) {
    must(stat("/", (struct stat*)(void*)(memory + kPage)) == 0, by);
    store();
  } else if (IS("thread")) {
    pthread_t thread;
    must(pthread_create(&thread, NULL, store_in_thread, NULL) == 0, by);
    pthread_join(thread, NULL);
  } else if (IS("handler")) {
    signal(SIGUSR1, store_in_handler);
    raise(SIGUSR1);
  } else if (IS("child")) {
    const pid_t child = fork();
    if (child == 0) {
      store();
      _exit(0);
    }
    wait_for(child);
  } else if (IS("grandchild")) {
    const pid_t child = fork();
    if (child == 0) {
      const pid_t its = fork();
      if (its == 0) {
        store();
        _exit(0);
      }
      wait_for(its);
      _exit(0);
    }
    wait_for(child);
  } else if (IS("other-program")) {
    char command[4200];
    snprintf(command, sizeof command, "printf newdata | dd of='%s' conv=notrunc status=none", name);
    must(system(command) == 0, by);
  } else if (IS("protected")) {
    must(mprotect(memory, size, PROT_READ) == 0, by);
    must(mprotect(memory, kPage, PROT_READ | PROT_WRITE) == 0, by);
    store();
  } else if (IS("moved")) {
    char* const place = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory = mremap(memory, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    must(memory == place, by);
    store();
  } else if (IS("smaller")) {
    memory = mremap(memory, size, kPage, MREMAP_MAYMOVE);
    must(memory != MAP_FAILED, by);
    store();
  } else if (IS("remapped")) {
    must(remap_file_pages(memory, kPage, 0, 1, 0) == 0, by);
    store(); /* to the second page of the file */
    must(pread(file, found, kLength, kPage) == kLength && memcmp(found, kNew, kLength) == 0, by);
  } else if (IS("fixed")) {
    char* const place = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory = mmap(place, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    must(memory == place, by);
    store();
  } else if (IS("hole-and-again")) {
    must(mmap(memory, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
              0) == memory,
         by);
    memset(memory, 'x', kPage);
    must(mmap(memory, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == memory,
         by);
    store();
  } else if (IS("unmapped")) {
    char* const other = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    must(other != MAP_FAILED, by);
    memcpy(other, kNew, kLength);
    must(munmap(other, kPage) == 0, by);
  } else if (IS("dropped")) {
    store();
    must(madvise(memory, size, MADV_DONTNEED) == 0, by);
  } else if (IS("removed")) {
    must(madvise(memory, kPage, MADV_REMOVE) == 0, by);
  } else if (IS("closed")) { /* all descriptors, as daemons do */
    must(close_range(3, ~0U, 0) == 0, by);
    file = open(name, O_RDWR);
    store();
  } else if (IS("own-handler")) {
    signal(SIGSEGV, own_handler);
    store();
  } else if (IS("blocked-signals")) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    store();
  } else if (IS("scattered")) { /* more ranges than a request has room for */
    for (int page = 0; page < (int)(size / kPage); ++page) {
      for (int place = 0; place < kPage; place += 128) memory[page * kPage + place] = 'n';
    }
  } else if (IS("contained")) {
    char large[2 * kPage];
    memset(large, 'n', sizeof large);
    must(pwrite(file, large, sizeof large, 0) == sizeof large, by);
    must(pwrite(file, kNew, kLength, 100) == kLength, by);
  } else if (IS("instruction")) {
    must(by_instruction(SYS_pwrite64, file, (long)kNew, kLength, 0) == kLength, by);
  } else if (IS("child-without-library")) { /* whose stores the library does not see */
    char command[9000];
    snprintf(command, sizeof command, "exec '%s_static' '%s'", program, name);
    must(system(command) == 0, by);
  } else if (IS("pages")) { /* a line in each */
    for (size_t page = 0; page < size / kPage; ++page) memory[page * kPage + page % kPage] = 'n';
  } else if (IS("all")) {
    memset(memory, 'n', size);
  } else if (IS("beyond")) {
    must(pwrite(file, kNew, kLength, size) == kLength, by);
  } else if (IS("appended")) {
    const int end = open(name, O_WRONLY | O_APPEND);
    must(write(end, kNew, kLength) == kLength, by);
  } else if (IS("appended-by-stdio")) {
    FILE* const stream = fopen(name, "a");
    must(stream != NULL && fwrite(kNew, kLength, 1, stream) == 1 && fclose(stream) == 0, by);
  } else if (IS("longer")) {
    must(ftruncate(file, 2 * size) == 0, by);
  } else if (IS("renamed-over") || IS("renamed-over-by-another")) {
    char made[4200], command[9000];
    int descriptor;
    snprintf(made, sizeof made, "%s.new", name);
    descriptor = open(made, O_RDWR | O_CREAT, 0644);
    must(write(descriptor, kNew, kLength) == kLength && fsync(descriptor) == 0, by);
    if (IS("renamed-over")) {
      must(rename(made, name) == 0, by);
    } else {
      snprintf(command, sizeof command, "LD_PRELOAD= exec mv '%s' '%s'", made, name);
      must(system(command) == 0, by);
    }
  } else if (IS("removed-and-made")) {
    must(unlink(name) == 0, by);
  } else if (IS("synchronous-mapping")) {
    must(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, file, 0) !=
             MAP_FAILED,
         by);
  } else if (IS("longer-mapping")) {
    must(mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) != MAP_FAILED, by);
  } else {
    _exit(2);
  }
}

/* --- how it is synced --------------------------------------------------------------------------
 */

static void* sync_in_thread(void* none) {
  must(fsync(file) == 0, how);
  return none;
}
static void sync_in_handler(int signal) {
  (void)signal;
  must(fsync(file) == 0, how);
}

static void sync_it(const char* by) {
  if (IS("none")) return;
  if (IS("msync")) {
    must(msync(memory, kPage, MS_SYNC) == 0, by);
  } else if (IS("msync-all")) {
    must(msync(memory, size, MS_SYNC) == 0, by);
  } else if (IS("msync-async")) {
    must(msync(memory, kPage, MS_ASYNC) == 0, by);
  } else if (IS("fsync")) {
    must(fsync(file) == 0, by);
  } else if (IS("fdatasync")) {
    must(fdatasync(file) == 0, by);
  } else if (IS("fsync-of-a-reader")) {
    must(fsync(open(name, O_RDONLY)) == 0, by);
  } else if (IS("sync")) {
    sync();
  } else if (IS("syncfs")) {
    must(syncfs(file) == 0, by);
  } else if (IS("sync_file_range")) {
    must(sync_file_range(
             file, 0, kPage,
             SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER) == 0,
         by);
  } else if (IS("aio_fsync")) {
    struct aiocb control;
    const struct aiocb* const list[] = {&control};
    memset(&control, 0, sizeof control);
    control.aio_fildes = file;
    must(aio_fsync(O_SYNC, &control) == 0, by);
    while (aio_error(&control) == EINPROGRESS) aio_suspend(list, 1, NULL);
    must(aio_return(&control) == 0, by);
  } else if (IS("syscall-fsync")) {
    must(syscall(SYS_fsync, file) == 0, by);
  } else if (IS("syscall-msync")) {
    must(syscall(SYS_msync, memory, (long)kPage, (long)MS_SYNC) == 0, by);
  } else if (IS("instruction-fsync")) {
    must(by_instruction(SYS_fsync, file, 0, 0, 0) == 0, by);
  } else if (IS("instruction-msync")) {
    must(by_instruction(SYS_msync, (long)memory, kPage, MS_SYNC, 0) == 0, by);
  } else if (IS("instruction-sync")) {
    by_instruction(SYS_sync, 0, 0, 0, 0);
  } else if (IS("instruction-O_DSYNC")) {
    const long again = by_instruction(SYS_open, (long)name, O_RDWR | O_DSYNC, 0, 0);
    must(again >= 0 && pwrite((int)again, kNew, kLength, 0) == kLength, by);
  } else if (IS("io_uring")) {
    char parameters[120] = {0};
    must(by_instruction(SYS_io_uring_setup, 4, (long)parameters, 0, 0) >= 0, by);
  } else if (IS("kernel-aio")) { /* as libaio does */
    unsigned long context = 0;
    must(by_instruction(SYS_io_setup, 4, (long)&context, 0, 0) == 0, by);
  } else if (IS("gmsync-of-too-much")) { /* and the program does not look whether it failed */
    const struct gmsync_range all = {memory, size};
    if (gmsync(&all, 1) == 0) _exit(2);
  } else if (IS("gmsync-of-too-many") || IS("gmsync-of-too-many-and-fsync")) {
    static struct gmsync_range ranges[1025];
    for (int i = 0; i < 1025; ++i) ranges[i] = (struct gmsync_range){memory + i * 128, 1};
    if (gmsync(ranges, 1025) == 0) _exit(2);
    if (!IS("gmsync-of-too-many")) must(fsync(file) == 0, by);
  } else if (IS("gmsync")) {
    const struct gmsync_range ranges[] = {{memory, kLength}, {memory + kPage, 1}};
    must(gmsync(ranges, 2) == 0, by);
  } else if (IS("gmsync-elsewhere")) {
    char other[kLength];
    const struct gmsync_range ranges[] = {{memory, kLength}, {other, kLength}};
    must(gmsync(ranges, 2) == 0, by);
  } else if (IS("thread")) {
    pthread_t thread;
    must(pthread_create(&thread, NULL, sync_in_thread, NULL) == 0, by);
    pthread_join(thread, NULL);
  } else if (IS("handler")) {
    signal(SIGUSR2, sync_in_handler);
    raise(SIGUSR2);
  } else if (IS("child")) {
    const pid_t child = fork();
    if (child == 0) _exit(fsync(file) != 0);
    wait_for(child);
  } else if (IS("other-program")) {
    char command[4200];
    snprintf(command, sizeof command, "exec sync '%s'", name);
    must(system(command) == 0, by);
  } else if (IS("O_SYNC") || IS("O_DSYNC")) {
    const int again = open(name, O_RDWR | (IS("O_SYNC") ? O_SYNC : O_DSYNC));
    must(pwrite(again, kNew, kLength, 0) == kLength, by);
  } else if (IS("stdio-O_SYNC")) {
    FILE* const stream = fdopen(open(name, O_RDWR | O_SYNC), "r+");
    must(stream != NULL && fwrite(kNew, kLength, 1, stream) == 1 && fflush(stream) == 0, by);
  } else if (IS("aio_write-O_SYNC")) {
    struct aiocb control;
    memset(&control, 0, sizeof control);
    control.aio_fildes = open(name, O_RDWR | O_SYNC);
    control.aio_buf = (void*)(size_t)kNew;
    control.aio_nbytes = kLength;
    must(aio_write(&control) == 0, by);
    while (aio_error(&control) == EINPROGRESS) continue;
  } else if (IS("dprintf-O_SYNC")) {
    must(dprintf(open(name, O_RDWR | O_SYNC), "%.*s", (int)kLength, kNew) == (int)kLength, by);
  } else if (IS("RWF_DSYNC")) {
    struct iovec part = {(void*)(size_t)kNew, kLength};
    must(pwritev2(file, &part, 1, 0, RWF_DSYNC) == kLength, by);
  } else {
    _exit(2);
  }
}

/* --- how it ends -------------------------------------------------------------------------------
 */

static void* sync_for_ever(void* none) {
  for (;;) {
    ++memory[kPage];
    fsync(file);
  }
  return none;
}

static void end(const char* by) {
  if (IS("kill")) raise(SIGKILL);
  if (IS("exit")) exit(0);
  if (IS("_exit")) _exit(0);
  if (IS("quick_exit")) quick_exit(0);
  if (IS("abort")) abort();
  if (IS("exec")) execl("/bin/true", "true", (char*)NULL);
  if (IS("exit-while-others-sync")) {
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, sync_for_ever, NULL);
    for (int i = 0; i < 50; ++i) fsync(file);
    exit(0);
  }
  _exit(2);
}

/* What follows is done by a process that outlives the one that the run has started. */
static void go_on_elsewhere(int is_killed) {
  int ends[2];
  char none;
  pid_t child;
  must(pipe(ends) == 0, "pipe");
  child = fork();
  must(child >= 0, "fork");
  if (child == 0 && !is_killed) { /* as daemons do */
    setsid();
    child = fork();
    if (child != 0) _exit(0);
  }
  if (child != 0) {
    if (is_killed) raise(SIGKILL);
    wait_for(child);
    exit(0);
  }
  close(ends[1]);
  if (read(ends[0], &none, 1) != 0) _exit(2); /* nobody else has the other end any more */
}

int main(int count, char** arguments) {
  if (count != 2 && count != 5 && count != 6) return 2;
  program = arguments[0];
  name = arguments[1];
  if (count == 2) {
    file = open(name, O_RDWR);
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return 9;
    store();
    return 0;
  }
  if (count == 6) size = strtoul(arguments[5], NULL, 10);
  how = arguments[3];
  file = open(name, O_RDWR | O_CREAT, 0644);
  must(file >= 0 && ftruncate(file, size) == 0, "open");
  memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  must(memory != MAP_FAILED, "mmap");
  memset(memory, 'o', size);
  /* All is at the copies, and what is stored from now on is found. */
  must(fsync(file) == 0 && fsync(file) == 0, "fsync");
  if (strncmp(arguments[4], "daemon-", 7) == 0 || strncmp(arguments[4], "orphan-", 7) == 0) {
    go_on_elsewhere(arguments[4][0] == 'o');
    arguments[4] += 7;
  }
  change(arguments[2]);
  sync_it(how);
  dprintf(1, "synced\n");
  end(arguments[4]);
  return 2;
}
