#include "services/fs/crash/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace perdura::fs {

namespace {

using Kind = Operation::Kind;

constexpr TreeOptions kTree{.times = true};
constexpr Bytes kChunk = 512;  // neighboring chunks of a write hold different bytes

std::vector<std::byte> bytes_of(std::uint64_t content, Bytes offset, Bytes length) {
  std::vector<std::byte> bytes(length);
  for (Bytes done = 0; done < length;) {
    const Bytes at = offset + done;
    const Bytes part = std::min(kChunk - at % kChunk, length - done);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(done), part,
                static_cast<std::byte>(1 + (content * 37 + at / kChunk) % 251));
    done += part;
  }
  return bytes;
}

// "1f*512 20*38": each byte value and its number of repetitions.
std::string text_of(std::span<const std::byte> bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size();) {
    std::size_t end = i;
    while (end < bytes.size() && bytes[end] == bytes[i]) ++end;
    text += fmt::format("{}{:02x}*{}", text.empty() ? "" : " ", bytes[i], end - i);
    i = end;
  }
  return text.empty() ? "no bytes" : text;
}

std::string text_of(const Timestamp& time) {
  return fmt::format("{}.{:09}", time.seconds, time.nanoseconds);
}

// All attributes except the inode number and the blocks, of which one system may need more than
// another.
std::string text_of(const Attributes& attributes) {
  return fmt::format("mode {:o}, owner {}:{}, {} links, device {}, {} B, times {} {} {} {}",
                     attributes.mode, attributes.uid, attributes.gid, attributes.links,
                     attributes.device, attributes.size, text_of(attributes.accessed),
                     text_of(attributes.modified), text_of(attributes.changed),
                     text_of(attributes.created));
}

std::string text_of(InodeId inode) {
  return inode == kRoot ? "the root"
                        : fmt::format("inode {}", static_cast<std::uint64_t>(inode.number));
}

std::string text_of(const Tree& tree) {
  std::string text;
  for (const std::string& problem : tree.problems) text += problem + "; ";
  for (const auto& [path, number] : tree.names) text += fmt::format("{}={} ", path, number);
  for (const TreeFile& file : tree.files) {
    text += fmt::format("| {:o} {}:{} {} links, device {}, {} B, {} {} {}", file.mode, file.uid,
                        file.gid, file.links, file.device, file.size, text_of(file.modified),
                        text_of(file.changed), file.target);
    for (const auto& [name, value] : file.extended) {
      text += fmt::format(" {}=<{}>", name, text_of(std::span(value)));
    }
    for (const Extent& extent : file.data) {
      text += fmt::format(" {}:<{}>", extent.offset, text_of(std::span(extent.bytes)));
    }
  }
  return text;
}

Answer answer_of(const Result<Attributes>& result) {
  if (!result) return {.error = result.error()};
  return {.inodes = {id_of(*result)}, .text = text_of(*result)};
}
Answer answer_of(const Result<void>& result) {
  if (!result) return {.error = result.error()};
  return {};
}
Answer answer_of(const Result<Bytes>& result) {
  if (!result) return {.error = result.error()};
  return {.text = fmt::format("{}", *result)};
}

std::string_view word_of(RenameMode mode) {
  switch (mode) {
    case RenameMode::replace:
      return "";
    case RenameMode::keep:
      return ", keeping what is there";
    case RenameMode::exchange:
      return ", in exchange";
  }
  return "";
}

std::string_view word_of(AllocationMode mode) {
  switch (mode) {
    case AllocationMode::extend:
      return "allocation";
    case AllocationMode::keep_size:
      return "allocation without a size";
    case AllocationMode::punch:
      return "hole punched";
    case AllocationMode::zero:
      return "zeros";
    case AllocationMode::zero_keep_size:
      return "zeros without a size";
  }
  return "";
}

std::string kind_of_file(std::uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "directory";
    case S_IFLNK:
      return "symbolic link";
    case S_IFREG:
      return "file";
    default:
      return "special file";
  }
}

Task<Answer> perform_create(Session& session, const Operation& operation) {
  const std::vector<std::byte> value = bytes_of(operation.content, 0, operation.length);
  std::vector<ExtendedAttribute> extended;
  if (operation.extended == Operation::Extended::set) extended.push_back({"user.x", value});
  NewInode inode;
  inode.mode = operation.mode;
  inode.uid = 7;
  inode.gid = 8;
  if ((operation.mode & S_IFMT) == S_IFCHR) inode.device = 0x103;
  inode.target = operation.target;
  inode.extended = extended;
  if (operation.kind == Kind::create_unnamed) {
    co_return answer_of(co_await session.create_unnamed(inode, operation.now));
  }
  co_return answer_of(
      co_await session.create(operation.inode.number, operation.name, inode, operation.now));
}

Task<Answer> perform_change(Session& session, const Operation& operation) {
  const std::vector<std::byte> value = bytes_of(operation.content, 0, operation.length);
  AttributeChange change;
  if (operation.mode != 0) change.permissions = operation.mode;
  if (operation.owner) {
    change.uid = static_cast<std::uint32_t>(operation.content);
    change.gid = static_cast<std::uint32_t>(operation.content + 1);
    change.accessed = Timestamp{operation.now.seconds + 1, 1};
    change.modified = Timestamp{operation.now.seconds + 2, 2};
  }
  change.changed = operation.now;
  if (operation.extended != Operation::Extended::none) {
    change.extended.emplace();
    change.extended->name = "user.x";
    if (operation.extended == Operation::Extended::set) {
      change.extended->value = std::span<const std::byte>(value);
    }
  }
  co_return answer_of(co_await session.change(operation.inode.number, change));
}

Task<Answer> perform_read(Session& session, const Operation& operation) {
  std::vector<std::byte> into(operation.length);
  const Result<Bytes> read = co_await session.read(operation.inode.number, operation.offset, into);
  if (!read) co_return Answer{.error = read.error()};
  co_return Answer{.text = text_of(std::span(into).first(*read))};
}

Task<Answer> perform_write(Session& session, const Operation& operation) {
  const std::vector<std::byte> bytes =
      bytes_of(operation.content, operation.offset, operation.length);
  const WriteOptions options{operation.now, operation.clear_set_id};
  const InodeNumber inode = operation.inode.number;
  if (operation.kind == Kind::append) {
    co_return answer_of(co_await session.append(inode, bytes, options));
  }
  co_return answer_of(co_await session.write(inode, operation.offset, bytes, options));
}

// Where clients of one file system have mounts of their own, another one may have removed the inode,
// and its number may be that of a new one.
Task<Answer> perform_hold(Session& session, const Operation& operation) {
  const InodeNumber inode = operation.inode.number;
  const Result<void> held = co_await session.hold(inode);
  if (!held || operation.mount == 0) co_return answer_of(held);
  const Result<Attributes> found = co_await session.attributes(inode);
  if (!found) co_return Answer{.error = found.error()};
  if (id_of(*found) == operation.inode) co_return Answer{};
  co_await session.release(inode);
  co_return Answer{.error = std::errc::no_such_file_or_directory};
}

Task<Answer> perform_set_extended(Session& session, const Operation& operation) {
  const std::vector<std::byte> value = bytes_of(operation.content, 0, operation.length);
  co_return answer_of(co_await session.set_extended(operation.inode.number, operation.name, value,
                                                    AttributeMode::create_or_replace,
                                                    operation.now));
}

}  // namespace

InodeId id_of(const Attributes& attributes) {
  if (attributes.inode == kRootInode) return kRoot;
  return {attributes.inode, attributes.generation};
}

bool changes(const Operation& operation) {
  switch (operation.kind) {
    case Kind::look_up:
    case Kind::attributes:
    case Kind::read:
    case Kind::sync:
    case Kind::sync_all:
    case Kind::read_tree:
      return false;
    default:
      return true;
  }
}

bool may_need_space(const Operation& operation) {
  switch (operation.kind) {
    case Kind::unlink:
    case Kind::remove_directory:
    case Kind::remove_extended:
    case Kind::hold:
    case Kind::release:
    case Kind::remount:
    case Kind::unmount:
      return false;
    default:
      return changes(operation);
  }
}

bool takes_name(const Operation& operation) {
  switch (operation.kind) {
    case Kind::look_up:
    case Kind::create:
    case Kind::unlink:
    case Kind::remove_directory:
    case Kind::rename:
      return true;
    default:
      return false;
  }
}

std::string text_of(const Operation& operation) {
  const std::string inode = text_of(operation.inode);
  const std::string range = fmt::format("{} B at {}", operation.length, operation.offset);
  switch (operation.kind) {
    case Kind::look_up:
      return fmt::format("look-up of {} in {}", operation.name, inode);
    case Kind::create:
      return fmt::format("create of {} {} in {}", kind_of_file(operation.mode), operation.name,
                         inode);
    case Kind::create_unnamed:
      return fmt::format("create of a {} without a name", kind_of_file(operation.mode));
    case Kind::link:
      return fmt::format("link of {} as {} in {}", inode, operation.new_name,
                         text_of(operation.directory));
    case Kind::unlink:
      return fmt::format("unlink of {} in {}", operation.name, inode);
    case Kind::remove_directory:
      return fmt::format("removal of directory {} in {}", operation.name, inode);
    case Kind::rename:
      return fmt::format("rename of {} in {} to {} in {}{}", operation.name, inode,
                         operation.new_name, text_of(operation.directory),
                         word_of(operation.renaming));
    case Kind::attributes:
      return fmt::format("attributes of {}", inode);
    case Kind::change:
      return fmt::format("change of{}{}{} of {}", operation.mode != 0 ? " permissions" : "",
                         operation.owner ? " owner and times" : "",
                         operation.extended != Operation::Extended::none ? " user.x" : "", inode);
    case Kind::set_extended:
      return fmt::format("{} of {} set to {} B", operation.name, inode, operation.length);
    case Kind::remove_extended:
      return fmt::format("{} of {} removed", operation.name, inode);
    case Kind::read:
      return fmt::format("read of {} of {}", range, inode);
    case Kind::write:
      return fmt::format("write of {} of {}", range, inode);
    case Kind::append:
      return fmt::format("append of {} B to {}", operation.length, inode);
    case Kind::truncate:
      return fmt::format("truncate of {} to {} B", inode, operation.length);
    case Kind::allocate:
      return fmt::format("{} of {} of {}", word_of(operation.allocation), range, inode);
    case Kind::sync:
      return fmt::format("sync of {}", inode);
    case Kind::sync_all:
      return "sync of all";
    case Kind::hold:
      return fmt::format("hold of {}", inode);
    case Kind::release:
      return fmt::format("release of {}", inode);
    case Kind::remount:
      return "unmount and mount";
    case Kind::unmount:
      return "unmount";
    case Kind::read_tree:
      return "read of all that can be reached";
  }
  return "";
}

std::string text_of(const Operation& operation, const Answer& answer) {
  std::string text = text_of(operation) + ": ";
  if (answer.error != std::errc()) return text + std::make_error_code(answer.error).message();
  if (answer.inodes.empty() && answer.text.empty()) return text + "done";
  if (answer.tree) return text + fmt::format("{} names", answer.tree->names.size());
  for (const InodeId& inode : answer.inodes) text += text_of(inode) + ", ";
  return text + answer.text;
}

Task<Answer> perform(Session& session, const Operation& operation) {
  const InodeNumber inode = operation.inode.number;
  const InodeNumber directory = operation.directory.number;
  const Timestamp now = operation.now;
  const WriteOptions options{now, operation.clear_set_id};
  switch (operation.kind) {
    case Kind::look_up:
      co_return answer_of(co_await session.look_up(inode, operation.name));
    case Kind::create:
    case Kind::create_unnamed:
      co_return co_await perform_create(session, operation);
    case Kind::link:
      co_return answer_of(co_await session.link(inode, directory, operation.new_name, now));
    case Kind::unlink:
      co_return answer_of(co_await session.unlink(inode, operation.name, now));
    case Kind::remove_directory:
      co_return answer_of(co_await session.remove_directory(inode, operation.name, now));
    case Kind::rename:
      co_return answer_of(co_await session.rename(inode, operation.name, directory,
                                                  operation.new_name, operation.renaming, now));
    case Kind::attributes:
      co_return answer_of(co_await session.attributes(inode));
    case Kind::change:
      co_return co_await perform_change(session, operation);
    case Kind::set_extended:
      co_return co_await perform_set_extended(session, operation);
    case Kind::remove_extended:
      co_return answer_of(co_await session.remove_extended(inode, operation.name, now));
    case Kind::read:
      co_return co_await perform_read(session, operation);
    case Kind::write:
    case Kind::append:
      co_return co_await perform_write(session, operation);
    case Kind::truncate:
      co_return answer_of(co_await session.truncate(inode, operation.length, options));
    case Kind::allocate:
      co_return answer_of(co_await session.allocate(inode, operation.allocation, operation.offset,
                                                    operation.length, options));
    case Kind::sync:
      co_return answer_of(co_await session.sync(inode));
    case Kind::sync_all:
      co_return answer_of(co_await session.sync_all());
    case Kind::hold:
      co_return co_await perform_hold(session, operation);
    case Kind::release:
      co_await session.release(inode);
      co_return Answer{};
    case Kind::remount:
    case Kind::unmount:
    case Kind::read_tree:
      break;
  }
  const auto tree = std::make_shared<const Tree>(co_await read_tree(session, kTree));
  co_return Answer{.text = text_of(*tree), .tree = tree};
}

}  // namespace perdura::fs
