#include "services/fs/crash/step.h"

#include <fmt/format.h>

#include <algorithm>

namespace perdura::fs {

namespace {

using Kind = Operation::Kind;

constexpr std::uint32_t kFile = S_IFREG | 0644;
constexpr std::uint32_t kDirectory = S_IFDIR | 0755;
constexpr std::size_t kUnnamed = 0;  // slot
constexpr std::size_t kOpen = 1;     // slot

Step on(std::string path, Operation operation) {
  return {.operation = std::move(operation), .path = std::move(path)};
}
Step on_slot(std::size_t slot, Operation operation) {
  return {.operation = std::move(operation), .slot = slot};
}

Operation create(std::uint32_t mode) { return {.kind = Kind::create, .mode = mode}; }
Operation create_symlink(std::size_t length) {
  return {.kind = Kind::create, .mode = S_IFLNK | 0777, .target = std::string(length, 't')};
}
Operation write(Bytes offset, Bytes length) {
  return {.kind = Kind::write, .offset = offset, .length = length};
}
Operation append(Bytes length) { return {.kind = Kind::append, .length = length}; }
Operation truncate(Bytes size) { return {.kind = Kind::truncate, .length = size}; }
Operation allocate(AllocationMode mode, Bytes offset, Bytes length) {
  return {.kind = Kind::allocate, .offset = offset, .length = length, .allocation = mode};
}
Operation set_extended(std::string name, Bytes length) {
  return {.kind = Kind::set_extended, .name = std::move(name), .length = length};
}

Step link(std::string path, std::string new_path) {
  return {
      .operation = {.kind = Kind::link}, .path = std::move(path), .new_path = std::move(new_path)};
}
Step rename(std::string path, std::string new_path, RenameMode mode = RenameMode::replace) {
  return {.operation = {.kind = Kind::rename, .renaming = mode},
          .path = std::move(path),
          .new_path = std::move(new_path)};
}

std::vector<Step> make_set_up() {
  Operation with_attribute = create(kFile);
  with_attribute.extended = Operation::Extended::set;
  with_attribute.length = 20;
  return {
      on("A", create(kDirectory)),
      on("B", create(kDirectory)),
      on("E", create(kDirectory)),
      on("A/sub", create(kDirectory)),
      on("A/foo", with_attribute),
      on("A/foo", write(0, 5000)),
      on("B/bar", create(kFile)),
      on("B/bar", write(0, 4096)),
      on("B/bar", write(8192, 4096)),
      on("bar", create(kFile)),
      on("bar", write(0, 100)),
      link("bar", "B/hard"),
      on("ln", create_symlink(5)),
      {.operation = {.kind = Kind::create_unnamed, .mode = kFile}, .into = kUnnamed},
      on_slot(kUnnamed, write(0, 300)),
  };
}

void add_names(std::vector<Step>& all) {
  Operation with_attribute = create(kFile);
  with_attribute.extended = Operation::Extended::set;
  with_attribute.length = 40;
  const Operation unlink{.kind = Kind::unlink};
  const Operation remove{.kind = Kind::remove_directory};
  using enum RenameMode;
  const std::vector<Step> names{
      on("new", create(kFile)),
      on("A/new", create(kFile)),
      on("A/foo", create(kFile)),  // exists
      on("B/new", with_attribute),
      on("A/new", create(kDirectory)),
      on("dir", create(kDirectory)),
      on("B/new", create(S_IFIFO | 0600)),
      on("A/new", create(S_IFCHR | 0600)),
      on("new", create_symlink(10)),
      on("B/new", create_symlink(600)),
      {.operation = {.kind = Kind::create_unnamed, .mode = kFile}, .into = kOpen},
      link("bar", "A/new"),
      link("A/foo", "new"),
      link("A/foo", "bar"),  // exists
      {.operation = {.kind = Kind::link}, .new_path = "B/new", .slot = kUnnamed},
      {.operation = {.kind = Kind::link}, .new_path = "A/new", .slot = kOpen},
      on("bar", unlink),
      on("A/foo", unlink),
      on("B/bar", unlink),
      on("ln", unlink),
      on("A/new", unlink),
      on("new", unlink),
      on("A/sub", remove),
      on("E", remove),
      on("A", remove),  // is not empty
      on("A/new", remove),
      rename("A/foo", "A/new"),
      rename("A/foo", "new"),
      rename("A/foo", "bar"),
      rename("bar", "B/bar"),
      rename("new", "B/bar"),
      rename("bar", "B/hard"),  // the same file
      rename("A/sub", "B/new"),
      rename("A/sub", "E"),
      rename("B", "A/sub"),
      rename("A", "E"),
      rename("A", "A/sub/new"),  // into itself
      rename("A/foo", "B/new", keep),
      rename("A/foo", "bar", keep),  // exists
      rename("A/foo", "bar", exchange),
      rename("A/foo", "B/hard", exchange),
      rename("A/sub", "E", exchange),
      rename("A", "B/bar", exchange),
      {.operation = {.kind = Kind::hold}, .path = "A/foo", .into = kOpen},
      on_slot(kOpen, {.kind = Kind::release}),
      on_slot(kUnnamed, {.kind = Kind::release}),
  };
  all.insert(all.end(), names.begin(), names.end());
}

void add_data(std::vector<Step>& all) {
  Operation clearing = write(10, 10);
  clearing.clear_set_id = true;
  using enum AllocationMode;
  const std::vector<Step> data{
      on("A/foo", write(0, 10)),      // within a block
      on("A/foo", write(0, 4096)),    // a whole one
      on("A/foo", write(4090, 20)),   // across two
      on("A/foo", write(4990, 100)),  // extending
      on("A/foo", write(4090, 9000)),
      on("A/foo", write(20000, 50)),  // beyond the end
      on("A/foo", clearing),
      on("B/bar", write(5000, 100)),  // in a hole
      on("new", write(0, 5000)),
      on_slot(kUnnamed, write(100, 8000)),
      on_slot(kOpen, write(0, 10)),
      on("A/foo", append(10)),
      on("bar", append(5000)),
      on_slot(kOpen, append(4096)),
      on("A/foo", truncate(0)),
      on("A/foo", truncate(100)),
      on("A/foo", truncate(4096)),
      on("A/foo", truncate(50000)),
      on("B/bar", truncate(4100)),
      on_slot(kOpen, truncate(10)),
      on("A/foo", allocate(extend, 4000, 10000)),
      on("A/foo", allocate(keep_size, 8192, 4096)),
      on("A/foo", allocate(punch, 0, 4096)),
      on("A/foo", allocate(punch, 100, 4500)),
      on("B/bar", allocate(extend, 4096, 4096)),
      on("B/bar", allocate(punch, 0, 12288)),
      on("A/foo", allocate(zero, 50, 4096)),
      on("A/foo", allocate(zero, 4096, 9000)),
      on("A/foo", allocate(zero_keep_size, 4096, 9000)),
      on_slot(kOpen, allocate(extend, 0, 9000)),
      on("A/foo", {.kind = Kind::sync}),
      on("", {.kind = Kind::sync_all}),
      on("", {.kind = Kind::remount}),
  };
  all.insert(all.end(), data.begin(), data.end());
}

void add_attributes(std::vector<Step>& all) {
  using Extended = Operation::Extended;
  Operation with_attribute{.kind = Kind::change, .mode = 0640, .length = 30};
  with_attribute.extended = Extended::set;
  Operation without_attribute{.kind = Kind::change, .mode = 06711};
  without_attribute.extended = Extended::remove;
  const std::vector<Step> attributes{
      on("A/foo", {.kind = Kind::change, .mode = 06755}),
      on("bar", {.kind = Kind::change, .owner = true}),
      on("A", {.kind = Kind::change, .mode = 0700, .owner = true}),
      on("A/foo", with_attribute),
      on("A/foo", without_attribute),
      on("A/foo", set_extended("user.x", 20)),
      on("A/foo", set_extended("user.x", 3000)),
      on("A/foo", set_extended("user.long", 10000)),
      on("bar", set_extended("user.x", 0)),
      on("A", set_extended("user.x", 100)),
      on("A/foo", {.kind = Kind::remove_extended, .name = "user.x"}),
      on("bar", {.kind = Kind::remove_extended, .name = "user.x"}),
  };
  all.insert(all.end(), attributes.begin(), attributes.end());
}

std::vector<Step> make_all() {
  std::vector<Step> all;
  add_names(all);
  add_data(all);
  add_attributes(all);
  return all;
}

std::string word_of(const Operation& operation) {
  switch (operation.kind) {
    case Kind::create:
      switch (operation.mode & S_IFMT) {
        case S_IFDIR:
          return "mkdir";
        case S_IFLNK:
          return fmt::format("symlink of {} B", operation.target.size());
        case S_IFREG:
          return operation.extended == Operation::Extended::set ? "create with user.x" : "create";
        default:
          return "mknod";
      }
    case Kind::create_unnamed:
      return "create without a name";
    case Kind::link:
      return "link";
    case Kind::unlink:
      return "unlink";
    case Kind::remove_directory:
      return "rmdir";
    case Kind::rename:
      return operation.renaming == RenameMode::exchange ? "exchange"
             : operation.renaming == RenameMode::keep   ? "rename without replacing"
                                                        : "rename";
    case Kind::change:
      return fmt::format("change of{}{}{}", operation.mode != 0 ? " mode" : "",
                         operation.owner ? " owner" : "",
                         operation.extended != Operation::Extended::none ? " user.x" : "");
    case Kind::set_extended:
      return fmt::format("setxattr {} to {} B", operation.name, operation.length);
    case Kind::remove_extended:
      return "removexattr " + operation.name;
    case Kind::write:
      return fmt::format("write {} at {}", operation.length, operation.offset);
    case Kind::append:
      return fmt::format("append {}", operation.length);
    case Kind::truncate:
      return fmt::format("truncate to {}", operation.length);
    case Kind::allocate:
      return fmt::format("{} {} at {}",
                         operation.allocation == AllocationMode::punch    ? "punch"
                         : operation.allocation == AllocationMode::extend ? "fallocate"
                         : operation.allocation == AllocationMode::keep_size
                             ? "fallocate keeping the size"
                         : operation.allocation == AllocationMode::zero ? "zero"
                                                                        : "zero keeping the size",
                         operation.length, operation.offset);
    case Kind::sync:
      return "fsync";
    case Kind::sync_all:
      return "sync";
    case Kind::remount:
      return "remount";
    case Kind::hold:
      return "open";
    case Kind::release:
      return "close";
    default:
      return "read";
  }
}

}  // namespace

std::string text_of(const Step& step) {
  std::string text = word_of(step.operation);
  if (step.slot) text += fmt::format(" inode {}", *step.slot);
  if (!step.path.empty()) text += " " + step.path;
  if (!step.new_path.empty()) text += " " + step.new_path;
  if (step.into) text += fmt::format(" as inode {}", *step.into);
  return text;
}

std::size_t calls_of(const Step& step) {
  const auto slashes = [](const std::string& path) {
    return static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
  };
  const bool finds_object = !step.path.empty() && !takes_name(step.operation);
  return slashes(step.path) + (finds_object ? 1 : 0) + slashes(step.new_path) + 1;
}

SplitPath split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

std::span<const Step> set_up_steps() {
  static const std::vector<Step> steps = make_set_up();
  return steps;
}

std::span<const Step> all_steps() {
  static const std::vector<Step> steps = make_all();
  return steps;
}

}  // namespace perdura::fs
