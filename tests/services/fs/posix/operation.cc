#include "tests/services/fs/posix/operation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <array>
#include <cstring>

#include "services/fs/posix/access_list.h"

namespace perdura::fs::test {
namespace {

constexpr std::array<const char*, static_cast<std::size_t>(Operation::Kind::count)> kNames{
    "open",      "close",       "dup",       "read",     "pread",  "write",   "pwrite", "lseek",
    "seek_data", "truncate",    "ftruncate", "allocate", "fsync",  "mkdir",   "rmdir",  "unlink",
    "link",      "link_open",   "symlink",   "readlink", "rename", "mknod",   "chdir",  "stat",
    "fstat",     "chmod",       "fchmod",    "chown",    "lchown", "utimens", "access", "getxattr",
    "setxattr",  "removexattr", "listxattr", "list",     "umask"};

// How often each is drawn, in the order of Kind.
constexpr std::array<int, static_cast<std::size_t>(Operation::Kind::count)> kWeights{
    14, 5,  1, 4, 3, 8, 5, 3, 3, 4, 4, 4, 1, 14, 5, 7, 7, 1, 5,
    3,  14, 3, 3, 3, 1, 8, 2, 8, 3, 5, 4, 3, 6,  2, 2, 4, 1};

class Drawer {
 public:
  Drawer(std::mt19937& random, const Drawn& drawn, const Known& known)
      : random_(random), drawn_(drawn), known_(known) {}

  Operation draw() {
    Operation drawn;
    do {
      drawn.kind = kind();
    } while (drawn.kind ==
             (drawn_.allocation ? Operation::Kind::seek_data : Operation::Kind::allocate));
    drawn.user = one_in(2) ? 0 : below(kUsers.size());
    drawn.path = path();
    drawn.other = path();
    const bool known = !known_.slots.empty() && drawn.kind != Operation::Kind::open && !one_in(8);
    drawn.slot = known ? known_.slots[below(known_.slots.size())] : below(kSlots);
    drawn.mode = mode();
    drawn.follow = !one_in(3);
    drawn.offset = offset();
    drawn.length = static_cast<std::int64_t>(one_in(8) ? 0 : below(9000));
    using enum Operation::Kind;
    switch (drawn.kind) {
      case open:
        drawn.flags = open_flags();
        break;
      case write:
      case pwrite:
        drawn.data.resize(static_cast<std::size_t>(drawn.length));
        for (char& byte : drawn.data) byte = static_cast<char>('a' + below(26));
        break;
      case lseek:
        drawn.flags = std::array{SEEK_SET, SEEK_CUR, SEEK_END}[below(3)];
        if (one_in(4)) drawn.offset = -drawn.offset;
        break;
      case seek_data:
        drawn.flags = one_in(2) ? SEEK_DATA : SEEK_HOLE;
        break;
      case truncate:
      case ftruncate:
        if (one_in(20)) drawn.offset = -1;
        break;
      case allocate:
        drawn.flags = static_cast<int>(below(drawn_.zero_range ? 5 : 3));
        drawn.offset = static_cast<std::int64_t>(below(30'000));
        break;
      case link_open:
        drawn.other = "/" + name();
        break;
      case symlink:
        if (one_in(2)) drawn.other = name();
        break;
      case rename:
        drawn.flags = one_in(2) ? 0 : static_cast<int>(below(3));
        break;
      case mknod:
        drawn.mode |=
            std::array{S_IFIFO, S_IFSOCK, S_IFREG, S_IFCHR, S_IFBLK, S_IFDIR, S_IFLNK, 0}[below(8)];
        break;
      case access:
        drawn.mode = below(one_in(20) ? 16 : 8);
        break;
      case chown:
      case lchown:
        drawn.uid = owner();
        drawn.gid = owner();
        if (!drawn_.owner_of_nothing && !drawn.uid && !drawn.gid) drawn.gid = 1000;
        break;
      case utimens:
        drawn.accessed = time();
        drawn.modified = time();
        break;
      case getxattr:
      case setxattr:
      case removexattr:
        drawn.other = attribute();
        drawn.flags = static_cast<int>(below(4));  // XATTR_CREATE, XATTR_REPLACE, both
        // Another value each time: ext4 takes the same one for no change.
        drawn.data = std::to_string(random_()) + std::string(below(40), 'v');
        if (one_in(10)) drawn.data.clear();
        if (drawn.other.starts_with("system.posix") && !one_in(10)) drawn.data = access_list();
        if (drawn.other == kAccessList && !drawn_.others_remove_lists &&
            (drawn.kind == removexattr || drawn.data.size() <= 4)) {
          drawn.user = 0;
        }
        break;
      default:
        break;
    }
    return drawn;
  }

 private:
  std::uint32_t below(std::size_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
  bool one_in(std::size_t times) { return below(times) == 0; }

  Operation::Kind kind() {
    static const std::discrete_distribution<int> kKinds(kWeights.begin(), kWeights.end());
    auto kinds = kKinds;
    return static_cast<Operation::Kind>(kinds(random_));
  }

  std::string name() {
    if (one_in(400)) return std::string(one_in(2) ? 255 : 256, 'n');
    if (one_in(25)) return one_in(2) ? "." : "..";
    return std::string(1, static_cast<char>('a' + below(4)));
  }

  std::string path() {
    if (one_in(500)) return "";
    if (one_in(500)) {
      std::string dots;
      while (dots.size() < 4094 + below(2)) dots += "./";
      return dots + "a";
    }
    std::string drawn = one_in(5) ? "/" : "";
    if (one_in(2)) {
      drawn = known_.paths[below(known_.paths.size())];
      if (one_in(2)) return drawn;
      drawn += '/';
    }
    for (std::size_t names = 1 + below(one_in(3) ? 3 : 2); names > 0; --names) {
      drawn += name();
      if (names > 1) drawn += one_in(20) ? "//" : "/";
    }
    if (one_in(15)) drawn += '/';
    return drawn;
  }

  std::uint32_t mode() {
    std::uint32_t drawn = one_in(2) ? 0777 : below(01000);
    if (one_in(3)) drawn |= below(010) << 9;
    if ((drawn & S_ISVTX) != 0) drawn &= ~drawn_.never_with_sticky;
    return drawn;
  }

  std::int64_t offset() {
    if (one_in(40)) return drawn_.largest - static_cast<std::int64_t>(below(3) * below(5000));
    return static_cast<std::int64_t>(one_in(6) ? 0 : below(30'000));
  }

  int open_flags() {
    int flags = std::array{O_RDONLY, O_WRONLY, O_RDWR}[below(3)];
    if (one_in(12)) return flags | O_TMPFILE | (one_in(3) ? O_EXCL : 0);
    if (one_in(2)) flags |= O_CREAT;
    for (const int flag : {O_EXCL, O_TRUNC, O_APPEND, O_NOFOLLOW}) {
      if (one_in(5)) flags |= flag;
    }
    for (const int flag : {O_DIRECTORY, O_NOATIME, O_PATH}) {
      if (one_in(12)) flags |= flag;
    }
    // Otherwise, O_EXCL is undefined.
    return (flags & O_CREAT) != 0 ? flags : flags & ~O_EXCL;
  }

  std::optional<std::uint32_t> owner() {
    if (one_in(4)) return std::nullopt;
    return std::array{0U, 1000U, 1001U, 2000U, 2001U}[below(5)];
  }

  NewTime time() {
    switch (below(5)) {
      case 0:
        return {.omit = true};
      case 1:
      case 2:
        return {.now = true};
      default:
        // Past 2038, and 2106 as far as ext4 stores it; sometimes no time at all.
        return {.time = {static_cast<std::int64_t>(below(1000)) * 9'000'000 + 1,
                         one_in(20) ? 1'000'000'000 : below(1'000'000'000)}};
    }
  }

  std::string attribute() {
    static const std::array<std::string, 11> kAttributes{"user.a",
                                                         "user.a",
                                                         "user.b",
                                                         "trusted.a",
                                                         "security.a",
                                                         "system.posix_acl_access",
                                                         "system.posix_acl_access",
                                                         "system.posix_acl_default",
                                                         "foo.a",
                                                         "user.",
                                                         "user"};
    return one_in(100) ? "user." + std::string(251, 'x') : kAttributes[below(kAttributes.size())];
  }

  // Well formed, mostly.
  std::string access_list() {
    using Tag = AccessList::Tag;
    AccessList list;
    const auto permissions = [&] { return static_cast<std::uint16_t>(one_in(2) ? 7 : below(8)); };
    list.entries.push_back({Tag::owner, permissions(), 0});
    for (const std::uint32_t user : {1000U, 1001U}) {
      if (one_in(3)) list.entries.push_back({Tag::user, permissions(), user});
    }
    list.entries.push_back({Tag::owning_group, permissions(), 0});
    for (const std::uint32_t group : {1000U, 2000U}) {
      if (one_in(3)) list.entries.push_back({Tag::group, permissions(), group});
    }
    if (list.entries.size() > 2 ? !one_in(20) : one_in(5)) {
      list.entries.push_back({Tag::mask, permissions(), 0});
    }
    if (!one_in(20)) list.entries.push_back({Tag::other, permissions(), 0});
    if (one_in(20)) std::swap(list.entries.front(), list.entries.back());
    if (one_in(20)) list.entries.clear();
    const std::vector<std::byte> value = list.format();
    return {reinterpret_cast<const char*>(value.data()), value.size()};
  }

  std::mt19937& random_;
  const Drawn& drawn_;
  const Known& known_;
};

std::string text_of(const NewTime& time) {
  if (time.now) return "now";
  return time.omit ? "omit" : fmt::format("{}.{:09}", time.time.seconds, time.time.nanoseconds);
}

std::string shortened(const std::string& text) {
  return text.size() <= 60 ? text : fmt::format("{}...({})", text.substr(0, 20), text.size());
}

}  // namespace

Operation draw(std::mt19937& random, const Drawn& drawn, const Known& known) {
  return Drawer(random, drawn, known).draw();
}

std::string text_of(const Operation& operation) {
  return fmt::format(
      "user {}: {} '{}' '{}' slot {} flags {:#o} mode {:o} offset {} length {}{} uid {} gid {} "
      "times "
      "{} {}",
      kUsers[operation.user].uid, kNames[static_cast<std::size_t>(operation.kind)],
      shortened(operation.path), shortened(operation.other), operation.slot, operation.flags,
      operation.mode, operation.offset, operation.length, operation.follow ? "" : " nofollow",
      static_cast<int>(operation.uid.value_or(-1)), static_cast<int>(operation.gid.value_or(-1)),
      text_of(operation.accessed), text_of(operation.modified));
}

std::string text_of(const Outcome& outcome) {
  if (outcome.error != 0) return std::strerror(outcome.error);
  return fmt::format("{} '{}'", outcome.value, shortened(outcome.data));
}

}  // namespace perdura::fs::test
