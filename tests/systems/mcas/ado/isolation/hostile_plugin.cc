// A plugin that tries what it is told by its request, and answers what has come of it: "done", what
// it has found, or the name of an error.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sstream>

#include "systems/mcas/ado/plugin.h"

namespace {

using namespace perdura;
using namespace perdura::systems::mcas;
using namespace perdura::systems::mcas::ado;

std::string outcome(long result) { return result < 0 ? ::strerrorname_np(errno) : "done"; }

std::string first_bytes(const void* memory) { return {static_cast<const char*>(memory), 6}; }

// Descriptors of files that have bytes.
std::string open_files() {
  std::string all;
  for (int fd = 0; fd < 1024; ++fd) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) continue;
    if (S_ISREG(info.st_mode) && fd > STDERR_FILENO) all += "file ";
    if (S_ISDIR(info.st_mode) || S_ISSOCK(info.st_mode)) all += "place ";
  }
  return all.empty() ? "none" : all;
}

// Takes memory that it uses, until there is none.
[[noreturn]] void eat() {
  for (;;) {
    void* const memory = std::malloc(MiB);
    std::memset(memory, 1, MiB);
    asm volatile("" : : "r"(memory) : "memory");
  }
}

// The numbers of calls that are not refused, but those that are given.
std::string calls_but(std::istringstream& arguments) {
  std::set<long> given;
  for (long call = 0; arguments >> call;) given.insert(call);
  std::string all;
  for (long call = 0; call < 1000; ++call) {
    if (given.contains(call)) continue;
    if (::syscall(call, -1, 0, 0, 0, 0, 0) != -1 || errno != EPERM) {
      all += std::to_string(call) + ' ';
    }
  }
  return all.empty() ? "none" : all;
}

std::string attempt(pmem::Region& region, const std::string& what, std::istringstream& arguments) {
  std::uint64_t number = 0;
  std::uint64_t second = 0;
  std::string path;
  static char room[8];
  if (what == "count") {  // what the plugin is for
    region.store(0, region.load(0) + 1);
    region.persist(0, 8);
    return std::to_string(region.load(0));
  }
  if (what == "load" && arguments >> number) return std::to_string(region.load(number));
  if (what == "peek" && arguments >> number) return first_bytes(region.data() + number);
  if (what == "read" && arguments >> path) return outcome(::open(path.c_str(), O_RDONLY));
  if (what == "write" && arguments >> path) return outcome(::open(path.c_str(), O_RDWR));
  if (what == "make" && arguments >> path) {
    return outcome(::open(path.c_str(), O_RDWR | O_CREAT, 0600));
  }
  if (what == "files") return open_files();
  if (what == "grow" && arguments >> number >> second) {
    void* const moved = ::mremap(region.data(), number, second, MREMAP_MAYMOVE);
    return moved == MAP_FAILED ? outcome(-1) : first_bytes(static_cast<char*>(moved) + number);
  }
  if (what == "turn" && arguments >> number) {
    const long turned = ::syscall(SYS_remap_file_pages, region.data(), 4096, 0, number / 4096, 0);
    return turned < 0 ? outcome(-1) : first_bytes(region.data());
  }
  if (what == "unlock" && arguments >> number) {
    ::mprotect(region.data() + number, 4096, PROT_READ | PROT_WRITE);
    return first_bytes(region.data() + number);
  }
  if (what == "trace" && arguments >> number) {
    return outcome(::ptrace(PTRACE_ATTACH, static_cast<pid_t>(number), nullptr, nullptr));
  }
  if (what == "steal" && arguments >> number >> second) {
    const iovec mine{room, sizeof room};
    const iovec other{reinterpret_cast<void*>(second), sizeof room};
    return outcome(::process_vm_readv(static_cast<pid_t>(number), &mine, 1, &other, 1, 0));
  }
  if (what == "kill" && arguments >> number) {
    return outcome(::kill(static_cast<pid_t>(number), SIGKILL));
  }
  if (what == "fork") return outcome(::syscall(SYS_fork));
  if (what == "run") return outcome(::execl("/bin/true", "true", nullptr));
  if (what == "root") return outcome(::setuid(0));
  if (what == "socket") return outcome(::socket(AF_UNIX, SOCK_STREAM, 0));
  if (what == "memory") return outcome(::syscall(SYS_memfd_create, "more", 0));
  // A call that another architecture has by this number: getpid.
  if (what == "x32") return outcome(::syscall(0x4000'0000 | SYS_getpid));
  if (what == "i386") {
    long result = 20;
    asm volatile("int $0x80" : "+a"(result) : : "memory");
    return outcome(result);
  }
  if (what == "calls") return calls_but(arguments);
  if (what == "wait" && arguments >> number) {
    return outcome(::syscall(SYS_futex, room, number, 0, nullptr, nullptr, 0));
  }
  if (what == "advise" && arguments >> number) {
    return outcome(::madvise(region.data(), 4096, static_cast<int>(number)));
  }
  if (what == "huge") {
    void* const pages = ::mmap(nullptr, 2 * MiB, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    return outcome(pages == MAP_FAILED ? -1 : 0);
  }
  if (what == "truncate" && arguments >> path) {
    return outcome(::open(path.c_str(), O_RDONLY | O_TRUNC));
  }
  // `second` is added to the descriptor, in bits that the kernel ignores.
  if (what == "seek" && arguments >> number >> second) {
    return outcome(::syscall(SYS_lseek, number + second, 0, SEEK_CUR));
  }
  if (what == "say") return outcome(::write(STDERR_FILENO, "hello\n", 6));
  if (what == "number") return std::to_string(::getpid());
  if (what == "eat") eat();
  if (what == "loop") {
    for (;;) asm volatile("");
  }
  return "what?";
}

class Hostile final : public Plugin {
 public:
  Task<Result> do_work(Services& services, const Invocation& work) override {
    const Memory memory = services.memory();
    std::istringstream arguments(work.request);
    std::string what;
    arguments >> what;
    co_return Result{{attempt(memory.region(), what, arguments)}, {}};
  }
};

}  // namespace

extern "C" const PluginEntry perdura_mcas_plugin{
    kPluginInterface, [](const char* argument) -> Plugin* {
      if (argument != nullptr && std::string_view(argument) == "loop") {
        for (;;) asm volatile("");
      }
      return new Hostile;
    }};
