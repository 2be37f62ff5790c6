#include "tests/services/fs/posix/comparison.h"

#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "tests/services/fs/posix/difference.h"
#include "tests/support/leftovers.h"

namespace perdura::fs::test {
namespace {

using Kind = Operation::Kind;

// Whether file systems disagree on the time of change: of an attribute that is set to what it is,
// of a list that is removed and is not there, or that says no more than the mode.
bool may_change_nothing(const Operation& operation) {
  if (operation.kind == Kind::removexattr) return operation.other.starts_with("system.");
  return operation.kind == Kind::setxattr &&
         (operation.other.starts_with("system.") || operation.data.empty());
}

bool is_sticky_special(const Operation& operation, const Outcome& by_process,
                       const Outcome& by_kernel) {
  return operation.kind == Kind::open && (operation.flags & O_CREAT) != 0 &&
         (by_process.error == ELOOP || by_process.error == ENXIO || by_process.error == EPERM) &&
         by_kernel.error == EACCES;
}

}  // namespace

int kernel_setting(const std::string& name) {
  int value = 0;
  std::ifstream("/proc/sys/fs/" + name) >> value;
  return value;
}

Process::Options options_of_kernel() {
  Process::Options options{.protected_hard_links = kernel_setting("protected_hardlinks") != 0};
  std::string folder = "/dev/shm/perdura-kernel-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return options;
  const std::string socket = folder + "/socket";
  options.user_attributes_on_sockets = mknod(socket.c_str(), S_IFSOCK | 0600, 0) == 0 &&
                                       setxattr(socket.c_str(), "user.x", "", 0, 0) == 0;
  std::filesystem::remove_all(folder);
  return options;
}

std::uint32_t never_with_sticky() {
  std::uint32_t permissions = 0;
  if (kernel_setting("protected_symlinks") != 0) permissions |= 02;
  if (kernel_setting("protected_regular") != 0) permissions |= 022;
  return permissions;
}

std::map<std::string, Times::Change> Times::changes(const Picture& picture) {
  std::map<std::string, Change> found;
  std::map<std::uint64_t, Seen> now;
  for (const auto& [path, seen] : picture) {
    const auto before = last_.find(seen.inode);
    const bool is_new = before == last_.end();
    found[path] = {.modified = is_new || before->second.modified != seen.modified,
                   .changed = is_new || before->second.changed != seen.changed,
                   .size = is_new || before->second.size != seen.size};
    now[seen.inode] = seen;
  }
  last_ = std::move(now);
  return found;
}

Comparison::Comparison(const std::string& directory, Session& session)
    : process_(session, options_of_kernel()), kernel_(directory) {
  compare_pictures(false);
}

std::string Comparison::apply(const Operation& operation) {
  const Outcome by_process = process_.apply(operation);
  ++outcomes_[{operation.kind, by_process.error}];
  // The kernel would wait for the other end of a pipe.
  if (by_process.error == EOPNOTSUPP && operation.kind == Kind::open) return "";
  timespec clock{};
  clock_gettime(CLOCK_REALTIME_COARSE, &clock);
  begun_ = {clock.tv_sec, static_cast<std::uint32_t>(clock.tv_nsec)};
  const Outcome by_kernel = kernel_.apply(operation);
  std::string difference;
  if (by_process != by_kernel && !is_sticky_special(operation, by_process, by_kernel)) {
    difference = text_of(by_process) + " instead of " + text_of(by_kernel);
  } else {
    difference =
        compare_pictures(operation.kind != Kind::truncate && !may_change_nothing(operation));
    if (difference.empty()) difference = compare_access_list(process_, kernel_, operation);
  }
  return difference.empty() ? "" : text_of(operation) + ": " + difference;
}

std::string Comparison::apply_random(std::uint32_t seed, const Drawn& drawn,
                                     std::int64_t operations) {
  std::mt19937 random(seed);
  for (std::int64_t i = 0; i < operations; ++i) {
    if (process_.is_lost()) {
      const Operation home{.kind = Kind::chdir, .path = "/"};
      process_.apply(home);
      kernel_.apply(home);
    }
    known_.slots = process_.open_slots();
    std::string difference = apply(draw(random, drawn, known_));
    if (difference.empty() && i % 100 == 99) difference = compare_data();
    if (!difference.empty()) return "operation " + std::to_string(i) + ", " + difference;
  }
  return "";
}

std::string Comparison::compare_pictures(bool with_same_size) {
  const Picture process = process_.picture();
  const Picture kernel = kernel_.picture();
  for (const auto& [path, seen] : kernel) {
    if (!process.contains(path)) return path + " is missing";
  }
  std::map<std::uint64_t, std::uint64_t> inodes;
  known_.paths.clear();
  for (const auto& [path, seen] : process) {
    known_.paths.push_back(path);
    const auto found = kernel.find(path);
    if (found == kernel.end()) return path + " should not exist";
    const Seen& other = found->second;
    const auto number = [&](const char* what, std::uint64_t is, std::uint64_t shall) {
      return is == shall ? std::string()
                         : path + ": " + what + " " + std::to_string(is) + " instead of " +
                               std::to_string(shall);
    };
    for (const std::string& text :
         {number("mode", seen.mode, other.mode), number("uid", seen.uid, other.uid),
          number("gid", seen.gid, other.gid), number("links", seen.links, other.links),
          number("device", seen.device, other.device), number("size", seen.size, other.size)}) {
      if (!text.empty()) return text;
    }
    const auto [same, is_new] = inodes.emplace(seen.inode, other.inode);
    if (!is_new && same->second != other.inode) return path + " is another file's name";
    if (is_given(seen.modified) && seen.modified != other.modified) {
      return path + ": another time of modification";
    }
  }
  const auto changes = process_times_.changes(process);
  const auto expected = kernel_times_.changes(kernel);
  for (const auto& [path, change] : changes) {
    if (!with_same_size && !change.size) continue;
    const Times::Change& other = expected.at(path);
    const Seen& seen = kernel.at(path);
    // The kernel's clock stands still between its ticks, so a time may be set to what it was.
    if (change.modified ? seen.modified < begun_ && !other.modified : other.modified) {
      return path + (change.modified ? ": modified" : ": not modified");
    }
    if (change.changed ? seen.changed < begun_ && !other.changed : other.changed) {
      return path + (change.changed ? ": changed" : ": not changed");
    }
  }
  return "";
}

std::string Comparison::compare_data() {
  return test::compare_data(process_, kernel_, process_.picture());
}

// --- where

Ground::Ground() {
  const char* const given = std::getenv("PERDURA_FS_DIRECTORY");
  const std::filesystem::path where = given == nullptr ? "/dev/shm" : given;
  perdura::test::remove_leftovers(where);
  parent_ = where / ("perdura-" + perdura::test::job_name("kernel"));
  if (geteuid() != 0) {
    why_not_ = "only root can act for several users";
    return;
  }
  struct statfs status {};
  constexpr long kTmpfs = 0x01021994;
  if (statfs(where.c_str(), &status) == 0) is_tmpfs_ = status.f_type == kTmpfs;
  // What this kernel or its file system may lack, or a container may forbid.
  const std::filesystem::path probe = new_directory();
  const std::string device = probe / "device";
  const std::vector<std::byte> list = AccessList{
      {{AccessList::Tag::owner, 7, 0},
       {AccessList::Tag::owning_group, 7, 0},
       {AccessList::Tag::mask, 7, 0},
       {AccessList::Tag::other, 7, 0}}}.format();
  if (mknod(device.c_str(), S_IFCHR | 0644, 259) != 0) why_not_ = "no devices can be made";
  if (setxattr(probe.c_str(), "user.x", "", 0, 0) != 0 ||
      setxattr(probe.c_str(), "trusted.x", "", 0, 0) != 0 ||
      setxattr(probe.c_str(), std::string(kAccessList).c_str(), list.data(), list.size(), 0) != 0) {
    why_not_ = where.string() + " lacks extended attributes: " + std::strerror(errno);
  }
  std::filesystem::remove_all(parent_);
}

Drawn Ground::drawn(bool allocation) const {
  return {.allocation = allocation,
          .zero_range = !is_tmpfs_,
          .others_remove_lists = !is_tmpfs_,
          // That of ext4 is 2^44.
          .largest = is_tmpfs_ ? static_cast<std::int64_t>(kLargestFile) : 1LL << 43,
          .never_with_sticky = never_with_sticky()};
}

std::filesystem::path Ground::new_directory() {
  const std::filesystem::path made = parent_ / std::to_string(++directories_);
  std::filesystem::create_directories(made);
  chmod(parent_.c_str(), 0755);
  chmod(made.c_str(), 0755);
  return made;
}

void Ground::in_directory(const std::function<void(const std::string&)>& compare) {
  const std::filesystem::path directory = new_directory();
  std::thread([&] { compare(directory); }).join();
  std::filesystem::remove_all(parent_);
}

}  // namespace perdura::fs::test
