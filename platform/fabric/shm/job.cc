#include "platform/fabric/shm/job.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <new>
#include <optional>
#include <thread>

#include "platform/base/error.h"
#include "platform/base/node_runs.h"
#include "platform/base/path_kind.h"
#include "platform/base/plain_name.h"
#include "platform/fabric/shm/segment.h"

namespace perdura::fabric::shm {
namespace {

namespace fs = std::filesystem;
using pmem::mapped::error_text;
using pmem::mapped::File;
using pmem::mapped::map_file;

constexpr std::string_view kPrefix = "/dev/shm/perdura-";
constexpr std::string_view kAutomatic = "auto-";
constexpr Microseconds kLookAgainAtJob{50};

using SteadyTime = std::chrono::steady_clock::time_point;

struct flock whole_file_lock() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

SteadyTime after(Picoseconds duration) {
  return std::chrono::steady_clock::now() + std::chrono::ceil<Nanoseconds>(duration);
}

// The generation of the node to which a file belongs; nullopt if the file is incomplete or of
// another version.
std::optional<std::uint64_t> generation_in(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || static_cast<Bytes>(info.st_size) != sizeof(NodeSegment)) {
    return std::nullopt;
  }
  std::uint64_t generation = 0;
  constexpr off_t kPlace = offsetof(NodeSegment, generation);
  if (::pread(fd, &generation, sizeof generation, kPlace) != sizeof generation) return std::nullopt;
  return generation;
}

bool same_file(int fd, const std::string& path) {
  struct stat a {};
  struct stat b {};
  return ::fstat(fd, &a) == 0 && ::stat(path.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

// True if nobody but this user can change what is in the directory. In /dev/shm all users can make
// directories, and links, of any name.
bool is_ours(int directory) {
  struct stat info {};
  return ::fstat(directory, &info) == 0 && info.st_uid == ::geteuid() &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Locks the directory against all other processes that join or leave the job. Returns null, with
// errno, if it cannot be opened, such as when it does not exist, is another user's or no directory,
// or is locked until the deadline.
// The lock is polled, since the kernel would wait without limit for a process that is stopped while
// it holds the lock.
File lock_directory(const std::string& path, SteadyTime deadline) {
  for (;;) {
    File directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory) return {};
    if (!is_ours(directory.get())) {
      errno = EPERM;
      return {};
    }
    while (::flock(directory.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EINTR && errno != EWOULDBLOCK) return {};
      if (std::chrono::steady_clock::now() >= deadline) return {};
      std::this_thread::sleep_for(kLookAgainAtJob);
    }
    if (same_file(directory.get(), path)) return directory;
    // The last user of the directory removed it before it was locked, so try again.
  }
}

// Retrying would not help: all processes of a job belong to one user.
[[noreturn]] void throw_not_ours(const std::string& path, int error) {
  struct stat info {};
  const bool known = ::lstat(path.c_str(), &info) == 0;
  throw PlatformError(fmt::format(
      "cannot join the job in {}: {}{}; it is a directory that only the user of its processes can "
      "change",
      path, error_text(error),
      known ? fmt::format(" (it is of user {}, this process of user {})", info.st_uid, ::geteuid())
            : ""));
}

File make_and_lock_directory(const std::string& path, SteadyTime deadline) {
  for (;;) {
    const bool made = ::mkdir(path.c_str(), 0700) == 0;
    if (!made && errno != EEXIST) {
      throw PlatformError(fmt::format("cannot create {}: {}", path, error_text(errno)));
    }
    if (File directory = lock_directory(path, deadline)) return directory;
    if (errno == EMFILE || errno == ENFILE) {
      const int error = errno;
      if (made) ::rmdir(path.c_str());
      throw PlatformError(fmt::format("cannot open {}: {}", path, error_text(error)));
    }
    if (errno == EACCES || errno == EPERM || errno == ENOTDIR || errno == ELOOP) {
      throw_not_ours(path, errno);
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      throw PlatformError(
          fmt::format("cannot join the job in {}: another process keeps it locked; is one stopped "
                      "in the middle of joining?",
                      path));
    }
  }
}

std::optional<NodeId> node_of_file(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with("node-")) return std::nullopt;
  NodeId node = 0;
  const auto [end, error] = std::from_chars(name.data() + 5, name.data() + name.size(), node);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return node;
}

// A node whose state cannot be determined, such as when this process has used up its descriptors,
// is taken to be alive: its files must not be removed.
bool has_living_node(const std::string& directory) {
  std::error_code problem;
  for (const fs::path& path : names_in(directory, problem)) {
    if (!node_of_file(path)) continue;
    const File file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (file ? is_locked(file.get()) : errno != ENOENT) return true;
  }
  return problem && problem != std::errc::no_such_file_or_directory;
}

void remove_contents(const std::string& directory) {
  std::error_code ignored;
  for (const fs::path& path : names_in(directory, ignored)) {
    // remove_all() opens what it removes, and takes a descriptor for that.
    if (!fs::remove(path, ignored)) fs::remove_all(path, ignored);
  }
}

std::shared_ptr<pmem::mapped::Mapping> create_segment(const std::string& path, Bytes size) {
  const File file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
    throw PlatformError(fmt::format("cannot create {}: {}", path, error_text(errno)));
  }
  return map_file(file.get(), path);
}

// The connection slots that a dead process had used, by the file of its endpoint. They are read,
// not mapped: to touch the others would take memory, which may be what is short.
std::vector<std::uint32_t> used_slots(int file) {
  static_assert(sizeof(ConnectionSlot::state) == sizeof(SlotState));
  using Slots = decltype(EndpointSegment::connections);
  std::vector<std::byte> bytes(sizeof(Slots));
  const off_t at = offsetof(EndpointSegment, connections);
  if (::pread(file, bytes.data(), bytes.size(), at) != static_cast<ssize_t>(bytes.size())) {
    throw PlatformError(fmt::format("cannot read the connections of a process that has died: {}",
                                    error_text(errno)));
  }
  std::vector<std::uint32_t> used;
  for (std::uint32_t slot = 0; slot < kMaxConnections; ++slot) {
    SlotState state{};
    std::memcpy(&state,
                bytes.data() + slot * sizeof(ConnectionSlot) + offsetof(ConnectionSlot, state),
                sizeof state);
    if (state != SlotState::free) used.push_back(slot);
  }
  return used;
}

}  // namespace

std::string automatic_name(const std::string& job) { return fmt::format("{}{}", kAutomatic, job); }

void remove_abandoned_jobs() {
  const fs::path prefix{kPrefix};
  const std::string wanted = prefix.filename().string() + std::string(kAutomatic);
  std::error_code ignored;
  std::vector<std::string> found;
  for (const fs::path& path : names_in(prefix.parent_path(), ignored)) {
    if (path.filename().string().starts_with(wanted)) found.push_back(path);
  }
  for (const std::string& path : found) {
    const File lock = lock_directory(path, SteadyTime::min());
    if (!lock || has_living_node(path)) continue;
    remove_contents(path);
    fs::remove(path, ignored);
  }
}

bool is_locked(int fd) {
  struct flock lock = whole_file_lock();
  // If the kernel cannot tell, the node is taken to be alive: to declare a living node dead would
  // break its connections.
  return ::fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

Job::Job(const std::string& name, NodeId node_count, std::span<const NodeId> local_nodes,
         Picoseconds join_timeout)
    : join_timeout_(join_timeout), deadline_(after(join_timeout)) {
  if (node_count == 0 || node_count > kMaxNodes) {
    throw UsageError(fmt::format("{} nodes: choose 1 to {}", node_count, kMaxNodes));
  }
  // An empty name is none; the job then gets an automatic one.
  if (!name.empty() && !is_entry_name(name)) {
    throw UsageError(fmt::format(
        "the job name '{}' names a folder, so it must not contain a slash or a zero, nor be '.' or "
        "'..'",
        name));
  }
  std::string job = name;
  if (job.empty()) {
    static std::atomic<unsigned> next{0};
    job = automatic_name(fmt::format("{}-{}", ::getpid(), next.fetch_add(1)));
  }
  if (job.starts_with(kAutomatic)) remove_abandoned_jobs();
  directory_ = fmt::format("{}{}", kPrefix, job);
  const File lock = make_and_lock_directory(directory_, deadline_);
  if (!has_living_node(directory_)) remove_contents(directory_);
  try {
    found_or_join(node_count);
    find_runs();
    for (const NodeId node : local_nodes) {
      if (node >= node_count) {
        throw UsageError(fmt::format("node {} of a job of {} nodes", node, node_count));
      }
      claim(node);
    }
  } catch (...) {
    leave();
    throw;
  }
}

Job::~Job() {
  // Where memory is short, what the first attempt had of it is free for the second. If that has too
  // little as well, the files stay until the next job.
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      end();
      return;
    } catch (const std::bad_alloc&) {
      continue;
    }
  }
}

void Job::end() {
  // Without the lock another process may be using the files. It will remove them when it finds that
  // the nodes have died.
  if (const File lock = lock_directory(directory_, after(join_timeout_)); lock) {
    leave();
  } else {
    local_nodes_.clear();
  }
}

// Must be called while the directory is locked.
void Job::leave() {
  std::error_code ignored;
  for (LocalNode& node : local_nodes_) {
    for (const std::string& path : files_of(node.id)) fs::remove(path, ignored);
  }
  local_nodes_.clear();
  // An empty directory is nobody's; to look into it would take a descriptor, which may be what this
  // process lacks.
  if (::rmdir(directory_.c_str()) == 0) return;
  if (has_living_node(directory_)) return;
  remove_contents(directory_);
  fs::remove(directory_, ignored);
}

void Job::found_or_join(NodeId node_count) {
  const std::string path = directory_ + "/control";
  File file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file) {
    struct stat info {};
    if (::fstat(file.get(), &info) != 0 || static_cast<Bytes>(info.st_size) != sizeof(Control)) {
      throw PlatformError(fmt::format("{} is of another version of this program", path));
    }
    control_ = map_file(file.get(), path);
  } else {
    control_ = create_segment(path, sizeof(Control));
    take_memory(control_->data(), sizeof(Control), path);
    control().clock = runtime::HostClock::start();
    control().node_count = node_count;
    control().version = kLayoutVersion;
  }
  if (control().version != kLayoutVersion) {
    throw PlatformError(fmt::format("{} is of another version of this program", path));
  }
  if (control().node_count != node_count) {
    throw UsageError(fmt::format("the job in {} has {} nodes, not {}", directory_,
                                 control().node_count.load(), node_count));
  }
}

void Job::find_runs() {
  std::optional<std::uint32_t> fewest;
  for (NodeId node = 0; node < control().node_count; ++node) {
    const File file(::open(node_path(node).c_str(), O_RDWR | O_CLOEXEC));
    if (!file || !is_locked(file.get())) continue;
    // This does not use ended_runs: this node's threads may have ended in a run that the other
    // nodes have yet to begin.
    const std::uint32_t runs = control().nodes[node].whole_runs;
    fewest = std::min(fewest.value_or(runs), runs);
  }
  runs_before_ = fewest.value_or(0);
}

void Job::claim(NodeId node) {
  const std::string path = node_path(node);
  if (const File old(::open(path.c_str(), O_RDWR | O_CLOEXEC)); old) {
    if (is_locked(old.get())) {
      throw NodeRuns(fmt::format("node {} of the job in {} is running already", node, directory_));
    }
    declare_dead(node, generation_in(old.get()).value_or(0));
  }
  auto segment = create_segment(path, sizeof(NodeSegment));
  take_memory(segment->data(), offsetof(NodeSegment, regions), path);
  File lock(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct flock request = whole_file_lock();
  if (!lock || ::fcntl(lock.get(), F_OFD_SETLK, &request) != 0) {
    throw PlatformError(fmt::format("cannot lock {}: {}", path, error_text(errno)));
  }
  auto& shared = *reinterpret_cast<NodeSegment*>(segment->data());
  shared.generation = control().last_generation.fetch_add(1) + 1;
  shared.version = kLayoutVersion;
  control().nodes[node].ended_runs = runs_before_;
  control().nodes[node].whole_runs = runs_before_;
  control().nodes[node].failed = 0;
  control().nodes[node].joined = 1;
  local_nodes_.push_back({node, std::move(lock), std::move(segment)});
}

bool Job::lives(std::uint64_t life) const {
  const File file(::open(node_path(node_of_life(life)).c_str(), O_RDWR | O_CLOEXEC));
  return file && is_locked(file.get()) && generation_in(file.get()) == generation_of_life(life);
}

// Waits for the end of an operation that a peer has under way through this connection. The peer may
// have no core at the moment, or it may have died in the middle of the operation, and another
// process may have become its node since.
void Job::wait_for_change(const ConnectionSlot& slot) const {
  for (;;) {
    const std::uint64_t life = slot.changing.load(std::memory_order_seq_cst);
    if (life == 0 || !lives(life)) return;
    if (std::chrono::steady_clock::now() >= deadline_) {
      throw PlatformError(fmt::format(
          "cannot join the job in {}: node {} does not end an operation on the memory of the one "
          "that was here before; is its process stopped?",
          directory_, node_of_life(life)));
    }
    std::this_thread::sleep_for(kLookAgainAtJob);
  }
}

// Breaks the connections of the process that was this node before, so that no peer touches the
// node's memory through them any more. Then removes that process's files.
void Job::declare_dead(NodeId node, std::uint64_t generation) {
  std::error_code ignored;
  for (const std::string& path : files_of(node)) {
    if (path.find(".port-") != std::string::npos) {
      const File file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
      struct stat info {};
      if (file && ::fstat(file.get(), &info) == 0 &&
          static_cast<Bytes>(info.st_size) == kSegmentSize) {
        const auto mapping = map_file(file.get(), path);
        auto& segment = *reinterpret_cast<EndpointSegment*>(mapping->data());
        segment.closed = 1;
        for (const std::uint32_t used : used_slots(file.get())) {
          ConnectionSlot& slot = segment.connections[used];
          slot.state = SlotState::closed;
          wait_for_change(slot);
        }
      }
    }
    fs::remove(path, ignored);
  }
  for (DoorbellSlot& slot : control().doorbells) {
    std::uint64_t owner = generation;
    slot.owner.compare_exchange_strong(owner, 0);
  }
}

std::vector<std::string> Job::files_of(NodeId node) const {
  const std::string name = fs::path(node_path(node)).filename().string();
  std::vector<std::string> files;
  std::error_code ignored;
  for (const fs::path& path : names_in(directory_, ignored)) {
    const std::string file = path.filename().string();
    if (file == name || file.starts_with(name + ".")) files.push_back(path.string());
  }
  return files;
}

std::shared_ptr<NodeSegment> Job::node(NodeId local) const {
  const auto found = std::find_if(local_nodes_.begin(), local_nodes_.end(),
                                  [local](const LocalNode& node) { return node.id == local; });
  return {found->segment, reinterpret_cast<NodeSegment*>(found->segment->data())};
}

std::string Job::node_path(NodeId node) const {
  return fmt::format("{}/node-{}", directory_, node);
}

std::string Job::endpoint_path(Address address) const {
  return fmt::format("{}/node-{}.port-{}", directory_, address.node, address.port);
}

std::uint32_t Job::allocate_doorbell(NodeId local) {
  const std::uint64_t generation = node(local)->generation;
  for (std::uint32_t i = 0; i < kMaxThreads; ++i) {
    std::uint64_t free = 0;
    DoorbellSlot& slot = control().doorbells[i];
    if (!slot.owner.compare_exchange_strong(free, generation)) continue;
    slot.bell.sleeping = 0;  // its last user may have been killed while it slept
    return i;
  }
  throw PlatformError(fmt::format("more than {} threads in one job", kMaxThreads));
}

void Job::ring_all() {
  for (DoorbellSlot& slot : control().doorbells) {
    if (slot.owner.load(std::memory_order_seq_cst) != 0) slot.bell.ring();
  }
}

void Job::release_doorbell(std::uint32_t index) { control().doorbells[index].owner = 0; }

}  // namespace perdura::fabric::shm
