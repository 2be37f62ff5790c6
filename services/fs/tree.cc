#include "services/fs/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

namespace perdura::fs {
namespace {

constexpr std::size_t kEntriesAtOnce = 64;
constexpr Bytes kReadAtOnce = 64 * kBlock;

std::string text_of(std::errc error) { return std::make_error_code(error).message(); }

std::string text_of(Timestamp time) {
  return fmt::format("{}.{:09}", time.seconds, time.nanoseconds);
}

std::uint64_t plain(InodeNumber inode) { return static_cast<std::uint64_t>(inode); }

// Appends bytes to the last extent if they are adjacent to it, else as a new extent.
void add_bytes(std::vector<Extent>& data, Bytes offset, std::span<const std::byte> bytes) {
  if (data.empty() || data.back().offset + data.back().bytes.size() != offset) {
    data.push_back({offset, {}});
  }
  data.back().bytes.insert(data.back().bytes.end(), bytes.begin(), bytes.end());
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte byte) { return byte == std::byte{}; });
}

class TreeReader {
 public:
  TreeReader(Session& session, TreeOptions options) : session_(session), options_(options) {}

  Task<Tree> read() {
    const auto root = co_await session_.attributes(kRootInode);
    if (!root) {
      problem("/", fmt::format("attributes: {}", text_of(root.error())));
      co_return std::move(tree_);
    }
    // Depth first, in the order of names.
    pending_.push_back({"/", kRootInode, kRootInode, S_IFDIR});
    while (!pending_.empty()) {
      const Pending next = std::move(pending_.back());
      pending_.pop_back();
      co_await visit(next);
    }
    check_links();
    co_return std::move(tree_);
  }

 private:
  struct Pending {
    std::string path;
    InodeNumber inode;
    InodeNumber parent;
    std::uint32_t type;
  };

  void problem(const std::string& path, const std::string& what) {
    tree_.problems.push_back(path + ": " + what);
  }

  Task<> visit(const Pending& at) {
    const auto known = numbers_.find(at.inode);
    if (known != numbers_.end()) {
      tree_.names[at.path] = known->second;
      ++names_[known->second];
      if (at.type == S_IFDIR) problem(at.path, "a directory with two names");
      co_return;
    }
    const auto attributes = co_await session_.attributes(at.inode);
    if (!attributes) {
      problem(at.path, fmt::format("attributes: {}", text_of(attributes.error())));
      co_return;
    }
    const std::size_t number = tree_.files.size();
    numbers_[at.inode] = number;
    tree_.names[at.path] = number;
    names_.push_back(1);
    const Attributes& is = *attributes;
    TreeFile file{.mode = is.mode,
                  .uid = is.uid,
                  .gid = is.gid,
                  .links = is.links,
                  .device = is.device,
                  .size = is.is_directory() ? 0 : is.size};
    if (options_.times) {
      file.modified = is.modified;
      file.changed = is.changed;
    }
    tree_.files.push_back(std::move(file));
    if (is.inode != at.inode) problem(at.path, "its attributes name another inode");
    if ((is.mode & S_IFMT) != at.type) problem(at.path, "its entry has another type");
    co_await read_extended(at, number);
    if (is.is_symlink()) co_await read_target(at, number);
    if (is.is_regular() && options_.data) co_await read_data(at, number);
    if (is.is_directory()) co_await read_directory(at, number);
  }

  Task<> read_extended(const Pending& at, std::size_t number) {
    const auto names = co_await session_.extended_names(at.inode);
    if (!names) {
      problem(at.path, fmt::format("extended attributes: {}", text_of(names.error())));
      co_return;
    }
    for (const std::string& name : *names) {
      const auto value = co_await session_.extended(at.inode, name);
      if (value) {
        tree_.files[number].extended[name] = *value;
      } else {
        problem(at.path, fmt::format("{}: {}", name, text_of(value.error())));
      }
    }
  }

  Task<> read_target(const Pending& at, std::size_t number) {
    const auto target = co_await session_.read_link(at.inode);
    if (!target) {
      problem(at.path, fmt::format("target: {}", text_of(target.error())));
      co_return;
    }
    tree_.files[number].target = *target;
    if (target->size() != tree_.files[number].size) {
      problem(at.path, "its size is not the length of its target");
    }
  }

  Task<> read_data(const Pending& at, std::size_t number) {
    const Bytes size = tree_.files[number].size;
    std::vector<std::byte> buffer(std::min(kReadAtOnce, size));
    Bytes offset = 0;
    while (offset < size) {
      const auto data = co_await session_.seek(at.inode, offset, Session::Seek::data);
      if (!data) {
        if (data.error() != std::errc::no_such_device_or_address) {
          problem(at.path, fmt::format("seek: {}", text_of(data.error())));
        }
        co_return;
      }
      const auto hole = co_await session_.seek(at.inode, *data, Session::Seek::hole);
      if (!hole || *hole <= *data || *data < offset || *hole > size) {
        problem(at.path, fmt::format("no hole after data at {}", *data));
        co_return;
      }
      for (offset = *data; offset < *hole;) {
        // Reads whole blocks, so that blocks of zeros are noticed.
        const Bytes length = std::min(kReadAtOnce - offset % kBlock, *hole - offset);
        const std::span<std::byte> into = std::span(buffer).first(length);
        const auto read = co_await session_.read(at.inode, offset, into);
        if (!read || *read != length) {
          problem(at.path, fmt::format("{} bytes at {} cannot be read", length, offset));
          co_return;
        }
        note_data(tree_.files[number].data, offset, into);
        offset += length;
      }
    }
  }

  void note_data(std::vector<Extent>& data, Bytes offset, std::span<const std::byte> bytes) const {
    if (options_.holes) return add_bytes(data, offset, bytes);
    for (Bytes done = 0; done < bytes.size();) {
      const Bytes length = std::min<Bytes>(kBlock - (offset + done) % kBlock, bytes.size() - done);
      const auto block = bytes.subspan(done, length);
      if (!is_zero(block)) add_bytes(data, offset + done, block);
      done += length;
    }
  }

  Task<> read_directory(const Pending& at, std::size_t number) {
    const auto parent = co_await session_.parent(at.inode);
    if (!parent || *parent != at.parent) problem(at.path, "its parent is not where it is");
    std::map<std::string, DirectoryEntry> entries;
    std::uint64_t cookie = 0;
    while (true) {
      const auto some = co_await session_.entries(at.inode, cookie, kEntriesAtOnce);
      if (!some) {
        problem(at.path, fmt::format("entries: {}", text_of(some.error())));
        break;
      }
      if (some->empty()) break;
      bool ascending = true;
      for (const DirectoryEntry& entry : *some) {
        ascending &= entry.cookie > cookie;
        cookie = entry.cookie;
        if (!entries.emplace(entry.name, entry).second) {
          problem(at.path, fmt::format("{} is in it twice", entry.name));
        }
      }
      if (!ascending) {
        problem(at.path, "the cookies of its entries do not ascend");
        break;
      }
    }
    std::uint32_t directories = 0;
    // The entry that is pushed last is visited first.
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      const auto& [name, found] = *entry;
      const std::string path = (at.path == "/" ? "" : at.path) + "/" + name;
      const auto looked_up = co_await session_.look_up(at.inode, name);
      if (!looked_up) {
        problem(path, fmt::format("look up: {}", text_of(looked_up.error())));
      } else if (looked_up->inode != found.inode) {
        problem(path, fmt::format("inode {} by its name, and {} by its entry",
                                  plain(looked_up->inode), plain(found.inode)));
      }
      directories += found.type == S_IFDIR;
      pending_.push_back({path, found.inode, at.inode, found.type});
    }
    if (tree_.files[number].links != 2 + directories) {
      problem(at.path, fmt::format("{} links with {} directories in it", tree_.files[number].links,
                                   directories));
    }
  }

  void check_links() {
    std::vector<std::string> first(tree_.files.size());
    for (const auto& [path, number] : tree_.names) {
      if (first[number].empty()) first[number] = path;
    }
    for (std::size_t number = 0; number < tree_.files.size(); ++number) {
      const TreeFile& file = tree_.files[number];
      if (!S_ISDIR(file.mode) && file.links != names_[number]) {
        problem(first[number], fmt::format("{} links with {} names", file.links, names_[number]));
      }
    }
  }

  Session& session_;
  TreeOptions options_;
  Tree tree_;
  std::vector<Pending> pending_;
  std::map<InodeNumber, std::size_t> numbers_;
  std::vector<std::uint32_t> names_;  // by file
};

// The first byte in which two files' contents differ, in words; empty if they are equal. A hole
// reads as zeros; but if the extents were read with their holes, a hole differs from zeros.
std::string data_difference(const TreeFile& found, const TreeFile& expected) {
  const auto pair = std::mismatch(found.data.begin(), found.data.end(), expected.data.begin(),
                                  expected.data.end());
  if (pair.first == found.data.end()) {
    return pair.second == expected.data.end()
               ? ""
               : fmt::format("a hole instead of data at {}", pair.second->offset);
  }
  if (pair.second == expected.data.end()) {
    return fmt::format("data at {} instead of a hole", pair.first->offset);
  }
  const Extent& one = *pair.first;
  const Extent& two = *pair.second;
  if (one.offset < two.offset) return fmt::format("data at {} instead of a hole", one.offset);
  if (one.offset > two.offset) return fmt::format("a hole instead of data at {}", two.offset);
  const auto byte =
      std::mismatch(one.bytes.begin(), one.bytes.end(), two.bytes.begin(), two.bytes.end());
  const Bytes offset = one.offset + static_cast<Bytes>(byte.first - one.bytes.begin());
  if (byte.first == one.bytes.end()) return fmt::format("a hole instead of data at {}", offset);
  if (byte.second == two.bytes.end()) return fmt::format("data at {} instead of a hole", offset);
  return fmt::format("byte {} is {:#04x} instead of {:#04x}", offset,
                     std::to_integer<int>(*byte.first), std::to_integer<int>(*byte.second));
}

std::string extended_difference(const TreeFile& found, const TreeFile& expected) {
  for (const auto& [name, value] : found.extended) {
    const auto other = expected.extended.find(name);
    if (other == expected.extended.end()) return "it has " + name;
    if (other->second != value) return name + " has another value";
  }
  for (const auto& [name, value] : expected.extended) {
    if (!found.extended.contains(name)) return "it lacks " + name;
  }
  return "";
}

std::string file_difference(const TreeFile& found, const TreeFile& expected) {
  if (found.mode != expected.mode) {
    return fmt::format("mode {:o} instead of {:o}", found.mode, expected.mode);
  }
  const auto number = [](std::string_view what, std::uint64_t is, std::uint64_t shall) {
    return is == shall ? std::string() : fmt::format("{} {} instead of {}", what, is, shall);
  };
  for (const std::string& text :
       {number("owner", found.uid, expected.uid), number("group", found.gid, expected.gid),
        number("links", found.links, expected.links),
        number("device", found.device, expected.device), number("size", found.size, expected.size),
        found.target == expected.target
            ? std::string()
            : fmt::format("target '{}' instead of '{}'", found.target, expected.target),
        data_difference(found, expected), extended_difference(found, expected)}) {
    if (!text.empty()) return text;
  }
  const auto time = [](std::string_view what, Timestamp is, Timestamp shall) {
    return is == shall ? std::string()
                       : fmt::format("{} {} instead of {}", what, text_of(is), text_of(shall));
  };
  const std::string modified = time("modified", found.modified, expected.modified);
  return modified.empty() ? time("changed", found.changed, expected.changed) : modified;
}

}  // namespace

Task<Tree> read_tree(Session& session, TreeOptions options) {
  TreeReader reader(session, options);
  co_return co_await reader.read();
}

std::string difference(const Tree& found, const Tree& expected) {
  if (found == expected) return "";
  if (found.problems != expected.problems) {
    return found.problems.empty() ? "it is whole instead of " + expected.problems.front()
                                  : found.problems.front();
  }
  for (const auto& [path, number] : expected.names) {
    if (!found.names.contains(path)) return path + " is missing";
  }
  for (const auto& [path, number] : found.names) {
    const auto other = expected.names.find(path);
    if (other == expected.names.end()) return path + " should not exist";
  }
  for (const auto& [path, number] : found.names) {
    const std::string text = file_difference(found.files[number], expected.at(path));
    if (!text.empty()) return path + ": " + text;
  }
  for (const auto& [path, number] : found.names) {
    if (number != expected.names.at(path)) return path + " is a name of another file";
  }
  return "";
}

}  // namespace perdura::fs
