#include "platform/host/confinement.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <fstream>
#include <vector>

#include "platform/base/error.h"
#include "platform/pmem/mapped/mapping.h"

namespace perdura {

namespace {

using pmem::mapped::File;

[[noreturn]] void refuse(const std::string& what) {
  throw PlatformError(
      fmt::format("cannot isolate the process: {}; or start it without isolation", what));
}
void require(bool done, std::string_view what) {
  if (!done) refuse(fmt::format("{}: {}", what, pmem::mapped::error_text(errno)));
}

// --- files ---------------------------------------------------------------------------------------

constexpr std::uint64_t kReadFile = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE;
// All rights that the first version of Landlock knows; later ones concern what opening a file for
// writing, and seccomp, refuse anyway.
constexpr std::uint64_t kAllRights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

void allow(const File& rules, const std::string& path, std::uint64_t rights) {
  const File place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place) return;  // whoever needs it will not find it either
  landlock_path_beneath_attr beneath{};
  beneath.allowed_access = rights;
  beneath.parent_fd = place.get();
  require(
      ::syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) == 0,
      "Landlock takes no rule for " + path);
}

// To be enforced when there is nothing left to be opened.
File make_rules(const std::vector<std::string>& readable) {
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = kAllRights;
  File rules(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0)));
  if (!rules) refuse("the kernel has no Landlock; boot one with lsm=landlock,...");
  for (const char* libraries : {"/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64"}) {
    allow(rules, libraries, kReadFile | LANDLOCK_ACCESS_FS_READ_DIR);
  }
  allow(rules, "/etc/ld.so.cache", kReadFile);
  for (const std::string& path : readable) allow(rules, path, kReadFile);
  return rules;
}

// --- system calls --------------------------------------------------------------------------------

// What memory, clocks, waiting, messages on stderr and loading of shared objects need.
constexpr std::uint32_t kCalls[] = {
    SYS_read,          SYS_pread64,        SYS_write,        SYS_writev,      SYS_close,
    SYS_openat,        SYS_newfstatat,     SYS_fstat,        SYS_lseek,       SYS_readlink,
    SYS_getcwd,        SYS_mmap,           SYS_mprotect,     SYS_munmap,      SYS_brk,
    SYS_madvise,       SYS_futex,          SYS_sched_yield,  SYS_nanosleep,   SYS_clock_nanosleep,
    SYS_clock_gettime, SYS_gettimeofday,   SYS_getrandom,    SYS_getpid,      SYS_gettid,
    SYS_rt_sigaction,  SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall,
    SYS_exit,          SYS_exit_group};

void filter_calls() {
  std::vector<sock_filter> program;
  const auto add = [&](unsigned code, std::uint32_t value, std::uint8_t yes, std::uint8_t no) {
    program.push_back({static_cast<std::uint16_t>(code), yes, no, value});
  };
  // Numbers of system calls mean something else to code of another architecture. Those of x32 are
  // none of the list.
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch), 0, 0);
  add(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
  add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr), 0, 0);
  for (const std::uint32_t call : kCalls) {
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
  }
  add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
  const sock_fprog all{static_cast<unsigned short>(program.size()), program.data()};
  require(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all) == 0,
          "the kernel filters no system calls (seccomp)");
}

// --- user and limits -----------------------------------------------------------------------------

void become_nobody(std::uint32_t first_user) {
  if (::geteuid() != 0) refuse("only root can give it a user of its own; run as root");
  const uid_t user = first_user + static_cast<uid_t>(::getpid());
  require(::setgroups(0, nullptr) == 0 && ::setresgid(user, user, user) == 0 &&
              ::setresuid(user, user, user) == 0,
          fmt::format("it cannot be user {}", user));
}

void limit(int resource, rlim_t most, std::string_view what) {
  const rlimit both{most, most};
  require(::setrlimit(static_cast<__rlimit_resource>(resource), &both) == 0, what);
}

// Pages of the process, and of these, private ones that it may write.
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

// Data has a limit of its own, since what is reserved and not accessible counts only there when it
// is made so.
void limit_resources(const InUse& used, Bytes memory) {
  limit(RLIMIT_AS, used.all + memory, "its memory cannot be limited");
  limit(RLIMIT_DATA, used.data + memory, "its memory cannot be limited");
  limit(RLIMIT_CORE, 0, "core dumps cannot be forbidden");
  limit(RLIMIT_FSIZE, 0, "files cannot be limited");
  limit(RLIMIT_MEMLOCK, 0, "locked memory cannot be limited");
  limit(RLIMIT_NPROC, 0, "processes cannot be limited");
}

}  // namespace

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
