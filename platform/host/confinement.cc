#include "platform/host/confinement.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/futex.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <vector>

#include "platform/base/error.h"
#include "platform/pmem/mapped/mapping.h"

namespace perdura {

namespace {

using pmem::mapped::File;

// The number of files that the process may have open at once.
constexpr std::uint32_t kMostFiles = 1024;

[[noreturn]] void refuse(const std::string& what) {
  throw PlatformError(
      fmt::format("cannot isolate the process: {}; or start it without isolation", what));
}
void require(bool done, std::string_view what) {
  if (!done) refuse(fmt::format("{}: {}", what, pmem::mapped::error_text(errno)));
}

// --- files ---------------------------------------------------------------------------------------

constexpr std::uint64_t kReadFile = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE;
// All rights that the first version of Landlock knows. Later ones concern operations that the
// restrictions on opening files for writing, and seccomp, forbid anyway.
constexpr std::uint64_t kAllRights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

void allow(const File& rules, const std::string& path, std::uint64_t rights) {
  const File place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place) return;  // those who need it will not find it either
  landlock_path_beneath_attr beneath{};
  beneath.allowed_access = rights;
  beneath.parent_fd = place.get();
  require(
      ::syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) == 0,
      "Landlock takes no rule for " + path);
}

constexpr const char* kNoLandlock = "the kernel has no Landlock; boot one with lsm=landlock,...";

// Makes the Landlock rules, which must be enforced last, when nothing else has to be opened.
File make_rules(const std::vector<std::string>& readable) {
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = kAllRights;
  File rules(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0)));
  if (!rules) refuse(kNoLandlock);
  for (const char* libraries : {"/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64"}) {
    allow(rules, libraries, kReadFile | LANDLOCK_ACCESS_FS_READ_DIR);
  }
  allow(rules, "/etc/ld.so.cache", kReadFile);
  for (const std::string& path : readable) allow(rules, path, kReadFile);
  return rules;
}

// --- system calls --------------------------------------------------------------------------------

// The calls that memory, clocks, waiting, messages on stderr and loading of shared objects need,
// whatever the arguments are.
constexpr int kCalls[] = {
    SCMP_SYS(write),           SCMP_SYS(writev),       SCMP_SYS(close),
    SCMP_SYS(newfstatat),      SCMP_SYS(fstat),        SCMP_SYS(getcwd),
    SCMP_SYS(mprotect),        SCMP_SYS(munmap),       SCMP_SYS(brk),
    SCMP_SYS(sched_yield),     SCMP_SYS(nanosleep),    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(clock_gettime),   SCMP_SYS(gettimeofday), SCMP_SYS(getrandom),
    SCMP_SYS(getpid),          SCMP_SYS(gettid),       SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),  SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack),
    SCMP_SYS(restart_syscall), SCMP_SYS(exit),         SCMP_SYS(exit_group)};

using Filter = std::unique_ptr<void, decltype(&seccomp_release)>;

// libseccomp returns the negated errno.
void require_filter(int result) {
  errno = -result;
  require(result == 0, "the kernel filters no system calls (seccomp)");
}
template <class... Comparisons>
void allow(const Filter& filter, int call, Comparisons... comparisons) {
  require_filter(
      seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, sizeof...(comparisons), comparisons...));
}
// The argument, restricted to `mask`, must equal `bits`. The kernel takes an `int` from the low
// half of a register, so masks have no more bits; otherwise a call would be judged by bits that the
// kernel ignores.
scmp_arg_cmp has_bits(unsigned argument, std::uint32_t mask, std::uint32_t bits) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, bits};
}

// The process shares its stderr with its shard, and must neither read it nor move its position. So
// only descriptors from 3 on are allowed: 3, or a number with one of the higher bits.
void allow_of_own_files(const Filter& filter, int call) {
  allow(filter, call, has_bits(0, 3, 3));
  for (std::uint32_t bit = 4; bit < kMostFiles; bit *= 2)
    allow(filter, call, has_bits(0, bit, bit));
}

void filter_calls() {
  const Filter filter(seccomp_init(SCMP_ACT_ERRNO(EPERM)), &seccomp_release);
  if (!filter) refuse("libseccomp makes no filter");
  // In 32-bit and x32 code the numbers stand for other calls.
  require_filter(seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS));
  for (const int call : kCalls) allow(filter, call);
#if defined(__SANITIZE_ADDRESS__)
  // UndefinedBehaviorSanitizer uses a pipe to find out whether memory can be read, and reports
  // objects that it cannot examine as invalid.
  allow(filter, SCMP_SYS(pipe2));
#endif
  for (const int call : {SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(lseek)}) {
    allow_of_own_files(filter, call);
  }
  // Landlock controls reading and writing, but lets a process truncate any file that it may read.
  allow(filter, SCMP_SYS(openat), has_bits(2, O_TRUNC, 0));
  // Huge pages belong to the machine, and other processes rely on them.
  allow(filter, SCMP_SYS(mmap), has_bits(3, MAP_HUGETLB, 0));
  // The advice that allocators give. MADV_REMOVE is excluded: it takes blocks from the pool's file,
  // and a shard that writes there when the device is full would be ended by SIGBUS.
  for (const std::uint32_t advice : {MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE, MADV_NOHUGEPAGE}) {
    allow(filter, SCMP_SYS(madvise), has_bits(2, ~0U, advice));
  }
  // The operations of futexes without priority inheritance.
  constexpr std::uint32_t kOperation = ~std::uint32_t{FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME};
  for (const std::uint32_t operation : {FUTEX_WAIT, FUTEX_WAKE, FUTEX_REQUEUE, FUTEX_CMP_REQUEUE,
                                        FUTEX_WAIT_BITSET, FUTEX_WAKE_BITSET}) {
    allow(filter, SCMP_SYS(futex), has_bits(1, kOperation, operation));
  }
  require_filter(seccomp_load(filter.get()));
}

// --- user and limits -----------------------------------------------------------------------------

void require_root() {
  if (::geteuid() != 0) refuse("only root can give it a user of its own; run as root");
}

void become_nobody(std::uint32_t first_user) {
  require_root();
  const uid_t user = first_user + static_cast<uid_t>(::getpid());
  require(::setgroups(0, nullptr) == 0 && ::setresgid(user, user, user) == 0 &&
              ::setresuid(user, user, user) == 0,
          fmt::format("it cannot be user {}", user));
}

void limit(int resource, rlim_t most, std::string_view what) {
  const rlimit both{most, most};
  require(::setrlimit(static_cast<__rlimit_resource>(resource), &both) == 0, what);
}

// The pages of the process, and the private writable ones among them.
struct InUse {
  Bytes all = 0;
  Bytes data = 0;
};
InUse memory_in_use() {
  std::ifstream file("/proc/self/statm");
  Bytes size = 0;
  Bytes ignored = 0;
  Bytes data = 0;
  file >> size >> ignored >> ignored >> ignored >> ignored >> data;
  if (!file) refuse("/proc/self/statm cannot be read");
  const auto page = static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
  return {size * page, data * page};
}

// Data has a limit of its own, since memory that is reserved without access counts as data only
// when it is made accessible.
void limit_resources([[maybe_unused]] const InUse& used, [[maybe_unused]] Bytes memory) {
  limit(RLIMIT_NOFILE, kMostFiles, "open files cannot be limited");
  // AddressSanitizer waits forever for a lock that it holds itself if it is refused memory for a
  // report.
#if !defined(__SANITIZE_ADDRESS__)
  limit(RLIMIT_AS, used.all + memory, "its memory cannot be limited");
  limit(RLIMIT_DATA, used.data + memory, "its memory cannot be limited");
#endif
  limit(RLIMIT_CORE, 0, "core dumps cannot be forbidden");
  // A write to stderr then fails if stderr is a file, and the signal would end the process.
  limit(RLIMIT_FSIZE, 0, "files cannot be limited");
  ::signal(SIGXFSZ, SIG_IGN);
  limit(RLIMIT_MEMLOCK, 0, "locked memory cannot be limited");
  limit(RLIMIT_NPROC, 0, "processes cannot be limited");
}

}  // namespace

void check_confinement() {
  require_root();
  const long landlock =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (landlock < 1) refuse(kNoLandlock);
  // Seccomp exists if an invalid filter is refused because of its address only.
  const bool filters =
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr, 0UL, 0UL) == 0 || errno == EFAULT;
  require(filters, "the kernel filters no system calls (seccomp)");
}

void confine(const ChildLimits& limits, const std::function<void()>& user_changed) {
  const File rules = make_rules(limits.readable);
  const InUse used = memory_in_use();
  become_nobody(limits.first_user);
  user_changed();
  require(::prctl(PR_SET_DUMPABLE, 0UL, 0UL, 0UL, 0UL) == 0, "it could be traced");
  require(::prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) == 0, "it could gain privileges");
  limit_resources(used, limits.memory);
  require(::syscall(SYS_landlock_restrict_self, rules.get(), 0) == 0,
          "Landlock cannot be enforced");
  filter_calls();
}

}  // namespace perdura
