#include "platform/host/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "platform/base/error.h"
#include "platform/base/printable.h"
#include "platform/host/child_shared.h"
#include "platform/host/confinement.h"
#include "platform/host/os_thread.h"
#include "platform/host/thread_executor.h"
#include "platform/pmem/instructions.h"
#include "platform/pmem/mapped/pool_file.h"

namespace perdura {

namespace {

using namespace host;
using pmem::mapped::error_text;
using pmem::mapped::File;
using pmem::mapped::Mapping;

constexpr const char* kProgramsVariable = "PERDURA_PROGRAMS";

std::string find_program(const std::string& file) {
  namespace fs = std::filesystem;
  const char* const folder = std::getenv(kProgramsVariable);
  std::error_code ignored;
  const fs::path path =
      (folder != nullptr ? fs::path(folder)
                         : fs::read_symlink("/proc/self/exe", ignored).parent_path()) /
      file;
  if (::access(path.c_str(), X_OK) == 0) return path;
  const int problem = errno;
  if (problem != ENOENT && problem != ENOTDIR) {
    throw PlatformError(fmt::format("cannot start {}: {}", path.string(), error_text(problem)));
  }
  throw PlatformError(fmt::format(
      "there is no program {}; it belongs beside this one, or into the folder that {} names",
      path.string(), kProgramsVariable));
}

// Moves a descriptor out of the way of the child's descriptors.
File above(File file, std::string_view what) {
  File moved(file ? ::fcntl(file.get(), F_DUPFD_CLOEXEC, kDescriptors) : -1);
  if (!moved) throw PlatformError(fmt::format("cannot make {}: {}", what, error_text(errno)));
  return moved;
}

File shared_memory(Bytes size) {
  File file(::memfd_create("perdura-child", MFD_CLOEXEC));
  if (file && ::ftruncate(file.get(), static_cast<off_t>(size)) != 0) file = File();
  return above(std::move(file), "memory to share with a process");
}

// The child gets only the part of the environment that says where shared objects are.
pid_t spawn(const std::string& path, const File& shared, const File& memory, const File& wake) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  // Its output goes to stderr, since other programs may read the parent's stdout.
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, shared.get(), kShared);
  ::posix_spawn_file_actions_adddup2(&files, memory.get(), kMemory);
  ::posix_spawn_file_actions_adddup2(&files, wake.get(), kWakeParent);
  ::posix_spawn_file_actions_addclosefrom_np(&files, kDescriptors);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::posix_spawnattr_setsigmask(&attributes, &signals);
  ::sigfillset(&signals);
  ::posix_spawnattr_setsigdefault(&attributes, &signals);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string name = path;
  char* arguments[] = {name.data(), nullptr};
  const char* const libraries = std::getenv("LD_LIBRARY_PATH");
  std::string variable = fmt::format("LD_LIBRARY_PATH={}", libraries != nullptr ? libraries : "");
  char* environment[] = {libraries != nullptr ? variable.data() : nullptr, nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, path.c_str(), &files, &attributes, arguments, environment);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    throw PlatformError(fmt::format("cannot start {}: {}", path, error_text(error)));
  }
  return pid;
}

class HostChild final : public ChildProcess, private host::Poller {
 public:
  HostChild(std::string name, std::shared_ptr<Mapping> mapping, RingShape messages, Layout layout,
            File wake)
      : name_(std::move(name)),
        mapping_(std::move(mapping)),
        messages_(messages),
        wake_(std::move(wake)),
        executor_(host::current_thread_executor()),
        inbox_(executor_.inbox()),
        peer_(ring(layout.to_child), ring(layout.to_parent), gone_) {
    executor_.add_poller(*this);
  }
  ~HostChild() override {
    end();
    executor_.remove_poller(*this);
  }

  void watch(pid_t pid) {
    try {
      process_ = File(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
      if (!process_) {
        throw PlatformError(fmt::format("cannot watch {}: {}", name_, error_text(errno)));
      }
      watcher_ = OsThread([this] { watch(); });
    } catch (...) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
      throw;
    }
  }
  Task<> until_ready(Picoseconds limit) {
    const bool in_time = co_await host::until(
        [this] { return shared().ready.load(std::memory_order_seq_cst) != 0 || gone_.load(); },
        limit > Picoseconds{} ? executor_.now() + limit : Time::max());
    if (!in_time) {
      throw PlatformError(fmt::format("{} is not ready after {} ms, and was ended", name_,
                                      std::chrono::floor<Milliseconds>(limit).count()));
    }
    if (shared().ready.load() == 0) throw PlatformError(problem());
  }

  std::string end() override {
    if (watcher_.joinable()) {
      ::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
      watcher_.join();
    }
    return how_it_ended();
  }

  Bytes longest_message() const override { return messages_.message_size; }
  bool try_send(std::span<const std::byte> message) override { return peer_.try_send(message); }
  Task<> send(std::span<const std::byte> message) override { return peer_.send(message); }
  Task<std::optional<Bytes>> receive(std::span<std::byte> into) override {
    return peer_.receive(into);
  }

 private:
  Shared& shared() const { return *reinterpret_cast<Shared*>(mapping_->data()); }
  MappedRing ring(Bytes offset) {
    return {mapping_->data() + offset, messages_, mapping_,
            [&shared = shared()](RingEnd&) { shared.bell.ring(); }};
  }

  bool poll() override { return false; }
  int arm() override {
    shared().parent_sleeps.exchange(1, std::memory_order_seq_cst);
    return -1;
  }

  // Runs on a thread of its own: the executor's thread sleeps on a futex, and the child can wake
  // only itself that way.
  void watch() {
    pollfd both[] = {{process_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    while ((both[0].revents & POLLIN) == 0) {
      if (::poll(both, std::size(both), -1) < 0) continue;
      eventfd_t ignored;
      if ((both[1].revents & POLLIN) != 0) ::eventfd_read(wake_.get(), &ignored);
      if ((both[0].revents & POLLIN) == 0) inbox_->ring();
    }
    ::waitid(P_PIDFD, static_cast<id_t>(process_.get()), &end_, WEXITED);
    gone_.exchange(true, std::memory_order_seq_cst);
    inbox_->ring();
  }

  // To be called after its end, like how_it_ended().
  std::string problem() const {
    const auto& text = shared().problem;
    const std::string said = printable({text.data(), ::strnlen(text.data(), text.size())});
    return said.empty() ? how_it_ended() : said;
  }
  // Uses only the kernel's information: the process may have written anything to the memory.
  std::string how_it_ended() const {
    if (end_.si_code == CLD_EXITED) {
      return fmt::format("{} has ended with code {}", name_, end_.si_status);
    }
    const char* const signal = ::sigdescr_np(end_.si_status);
    return fmt::format("{} was ended by signal {} ({})", name_, end_.si_status,
                       signal == nullptr ? "unknown" : signal);
  }

  std::string name_;
  std::shared_ptr<Mapping> mapping_;
  RingShape messages_;
  File wake_;
  host::ThreadExecutor& executor_;
  std::shared_ptr<host::Inbox> inbox_;
  std::atomic<bool> gone_{false};
  Peer peer_;
  File process_;
  siginfo_t end_{};
  OsThread watcher_;
};

}  // namespace

void check_host_child(const std::string& program, Isolation isolation) {
  find_program(program);
  if (isolation == Isolation::full) check_confinement();
}

Task<std::unique_ptr<ChildProcess>> start_host_child(runtime::HostClock clock, std::string program,
                                                     std::string path, ChildOrder order) {
  check_ring_shape(order.memory, order.messages);
  const std::string file = find_program(program);
  pmem::mapped::PoolSource memory = pmem::mapped::pool_source(path);
  check_parts(order.parts, memory.extent.length, order.memory);
  const auto mapped = pmem::mapped::open_pool_file(path);
  const bool visible = mapped && mapped->mapping->granularity() == pmem::mapped::Granularity::byte;
  const RingShape messages = order.messages;
  const Picoseconds start = order.limits.start;
  const std::string text =
      encoded({.order = std::move(order),
               .parent = ::getpid(),
               .offset = memory.extent.offset,
               .size = memory.extent.length,
               .durable = visible ? pmem::Durable::when_visible : pmem::Durable::when_flushed,
               .write_latency = pmem::write_latency()});
  const Layout layout(messages, text.size());
  const File shared_file = shared_memory(layout.end);
  auto mapping =
      pmem::mapped::map_file(shared_file.get(), "the memory that is shared with a process");
  auto& shared = *reinterpret_cast<Shared*>(mapping->data());
  shared.version = kVersion;
  shared.clock = clock;
  shared.messages = messages;
  shared.order_length = static_cast<std::uint32_t>(text.size());
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(&shared + 1));
  File wake = above(File(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), "an eventfd");
  const File memory_file = above(std::move(memory.file), "a descriptor");
  auto child = std::make_unique<HostChild>(std::move(program), std::move(mapping), messages, layout,
                                           File(::fcntl(wake.get(), F_DUPFD_CLOEXEC, 0)));
  child->watch(spawn(file, shared_file, memory_file, wake));
  co_await child->until_ready(start);
  co_return child;
}

}  // namespace perdura
