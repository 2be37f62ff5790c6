#include "systems/octopus/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura::systems::octopus {

using tl::unexpected;

namespace {

constexpr std::uint64_t kMagic = 0x6f63746f70757331;  // "octopus1"
constexpr Bytes kPathRoom = 256;
constexpr std::array<std::byte, 4 * KiB> kZeros{};

struct Superblock {
  std::uint64_t magic = 0;
  std::uint64_t size = 0;
  std::uint64_t extent_bytes = 0;
  std::uint64_t directory_entries = 0;
};

Superblock superblock_of(const Parameters& parameters) {
  return {kMagic, parameters.size, parameters.extent_bytes, parameters.directory_entries};
}

std::span<const std::byte> bytes_of_path(std::string_view path) {
  return std::as_bytes(std::span(path));
}

std::string_view parent_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == path.npos ? std::string_view() : path.substr(0, slash);
}

UsageError damaged(const pmem::Region& region, std::string_view what) {
  return UsageError(
      fmt::format("octopus: '{}' is damaged: {}; make it again", region.name(), what));
}

}  // namespace

bool is_sound(std::string_view path) {
  if (path.size() > kLongestPath || path.find('\0') != path.npos) return false;
  while (!path.empty()) {
    const std::size_t end = path.find('/');
    const std::string_view name = path.substr(0, end);
    if (name.empty() || name == "." || name == "..") return false;
    if (end == path.npos) return true;
    path.remove_prefix(end + 1);
    if (path.empty()) return false;
  }
  return true;
}

TableGeometry::TableGeometry(const Parameters& parameters)
    : extent_bytes(parameters.extent_bytes),
      directory_entries(parameters.directory_entries),
      record_bytes(sizeof(RecordHeader) + kPathRoom +
                   round_up(Bytes{directory_entries} * kWord, kCacheLine)) {
  constexpr Bytes kRounding = 3 * kCacheLine;
  if (parameters.size < kRounding) return;
  const Bytes each = kWord + record_bytes + extent_bytes;
  records = std::min<std::uint64_t>((parameters.size - kRounding) / each, ~RecordNumber{0});
  first_record = kCacheLine + round_up(records * kWord, kCacheLine);
  first_extent = first_record + records * record_bytes;
}

Bytes TableGeometry::path(RecordNumber number) const {
  return record(number) + sizeof(RecordHeader);
}

Bytes TableGeometry::entry(RecordNumber directory, std::uint32_t position) const {
  return path(directory) + kPathRoom + Bytes{position} * kWord;
}

void Table::make(Node& node, const std::string& name, const Parameters& parameters,
                 std::uint64_t now) {
  const auto region = node.create_region(name, parameters.size, pmem::Medium::pm);
  const TableGeometry geometry(parameters);
  const RecordHeader root{.modified = now, .kind = RecordKind::directory};
  region->write_object(geometry.record(kRootRecord), root);
  region->persist(geometry.record(kRootRecord), sizeof root);
  region->write_object(0, superblock_of(parameters));
  region->persist(0, sizeof(Superblock));
}

Table::Table(Node& node, const std::string& name, const Parameters& parameters)
    : geometry_(parameters), region_(node.open_region(name)) {
  if (!region_) throw UsageError(fmt::format("octopus: there is no file system '{}'", name));
  const auto found = region_->read_object<Superblock>(0);
  const Superblock expected = superblock_of(parameters);
  if (found.magic != expected.magic || found.size != expected.size ||
      found.extent_bytes != expected.extent_bytes ||
      found.directory_entries != expected.directory_entries) {
    throw UsageError(
        fmt::format("octopus: '{}' was made with other parameters; make it again", name));
  }
  recover();
}

// --- recovery

void Table::recover() {
  states_.resize(geometry_.records);
  states_[kRootRecord].is_linked = true;
  for (std::uint64_t bucket = 0; bucket < geometry_.records; ++bucket) recover_chain(bucket);
  recover_entries();
  free_.reserve(geometry_.records);
  for (RecordNumber number = geometry_.records; number > 0; --number) {
    if (!states_[number - 1].is_linked) free_.push_back(number - 1);
  }
}

void Table::recover_chain(std::uint64_t bucket) {
  std::uint64_t next = region_->load(geometry_.bucket(bucket));
  while (next != 0) {
    if (next > geometry_.records || states_[next - 1].is_linked) {
      throw damaged(*region_, "a chain of the table has no end");
    }
    states_[next - 1].is_linked = true;
    const RecordHeader found = header(next - 1);
    const bool makes_sense =
        (found.kind == RecordKind::file || found.is_directory()) && found.path_length > 0 &&
        found.path_length <= kLongestPath && found.parent < geometry_.records &&
        found.position < geometry_.directory_entries && found.size <= geometry_.extent_bytes;
    if (!makes_sense) throw damaged(*region_, "a record makes no sense");
    next = found.next;
  }
}

// The record decides. A word that names no child of the directory is from an operation that did not
// come to its end, and so is a child that no word names.
void Table::recover_entries() {
  for (RecordNumber number = 1; number < geometry_.records; ++number) {
    if (!states_[number].is_linked) continue;
    const RecordHeader found = header(number);
    if (!states_[found.parent].is_linked) throw damaged(*region_, "a path has no parent");
    ++states_[found.parent].children;
    const Bytes word = geometry_.entry(found.parent, found.position);
    if (region_->load(word) != number + 1) store_word(word, number + 1);
  }
  for (RecordNumber number = 0; number < geometry_.records; ++number) {
    if (!states_[number].is_linked || !header(number).is_directory()) continue;
    for (std::uint32_t position = 0; position < geometry_.directory_entries; ++position) {
      const std::uint64_t word = region_->load(geometry_.entry(number, position));
      if (word == 0) continue;
      bool is_child = word <= geometry_.records && states_[word - 1].is_linked;
      if (is_child) {
        const RecordHeader child = header(word - 1);
        is_child = word - 1 != kRootRecord && child.parent == number && child.position == position;
      }
      if (!is_child) store_word(geometry_.entry(number, position), 0);
    }
  }
}

// --- names

std::optional<LinkedRecord> Table::find(std::string_view path) const {
  if (path.empty()) return LinkedRecord{kRootRecord, header(kRootRecord), 0};
  const std::uint64_t hash = hash64(bytes_of_path(path));
  LinkedRecord found;
  found.link = geometry_.bucket(hash);
  std::uint64_t next = region_->load(found.link);
  while (next != 0) {
    found.number = next - 1;
    found.header = header(found.number);
    if (found.header.hash == hash && found.header.path_length == path.size() &&
        has_path(found.number, path)) {
      return found;
    }
    found.link = geometry_.record(found.number);  // its `next`
    next = found.header.next;
  }
  return std::nullopt;
}

bool Table::has_path(RecordNumber number, std::string_view path) const {
  std::array<std::byte, kPathRoom> stored;
  const auto bytes = std::span(stored).first(path.size());
  region_->read(geometry_.path(number), bytes);
  return equal_bytes(bytes, bytes_of_path(path));
}

std::string Table::path_of(RecordNumber number, const RecordHeader& header) const {
  std::string path(header.path_length, '\0');
  region_->read(geometry_.path(number), std::as_writable_bytes(std::span(path)));
  return path;
}

Table::Result<void> Table::create(std::string_view path, RecordKind kind, std::uint64_t now) {
  if (path.empty() || find(path)) return unexpected(std::errc::file_exists);
  const auto parent = find(parent_of(path));
  if (!parent) return unexpected(std::errc::no_such_file_or_directory);
  if (!parent->header.is_directory()) return unexpected(std::errc::not_a_directory);
  if (free_.empty() || states_[parent->number].children == geometry_.directory_entries) {
    return unexpected(std::errc::no_space_on_device);
  }
  const RecordNumber number = free_.back();
  free_.pop_back();
  RecordHeader record{.hash = hash64(bytes_of_path(path)),
                      .modified = now,
                      .kind = kind,
                      .path_length = static_cast<std::uint32_t>(path.size()),
                      .parent = parent->number,
                      .position = free_position(parent->number)};
  const Bytes bucket = geometry_.bucket(record.hash);
  record.next = region_->load(bucket);
  region_->write_object(geometry_.record(number), record);
  region_->write(geometry_.path(number), bytes_of_path(path));
  region_->persist(geometry_.record(number), sizeof record + path.size());
  store_word(bucket, number + 1);
  states_[number] = {.is_linked = true};
  ++states_[parent->number].children;
  region_->store(geometry_.record(parent->number) + offsetof(RecordHeader, modified), now);
  region_->flush(geometry_.record(parent->number), kCacheLine);
  store_word(geometry_.entry(parent->number, record.position), number + 1);
  return {};
}

// There is one: the directory is not full.
std::uint32_t Table::free_position(RecordNumber directory) {
  std::uint32_t& position = states_[directory].perhaps_free;
  while (region_->load(geometry_.entry(directory, position)) != 0) ++position;
  return position;
}

Table::Result<void> Table::remove(std::string_view path, RecordKind kind, std::uint64_t now) {
  if (path.empty()) return unexpected(std::errc::device_or_resource_busy);
  const auto found = find(path);
  if (!found) return unexpected(std::errc::no_such_file_or_directory);
  if (found->header.kind != kind) {
    return unexpected(kind == RecordKind::file ? std::errc::is_a_directory
                                               : std::errc::not_a_directory);
  }
  if (states_[found->number].children > 0) return unexpected(std::errc::directory_not_empty);
  store_word(found->link, found->header.next);
  const RecordNumber parent = found->header.parent;
  region_->store(geometry_.record(parent) + offsetof(RecordHeader, modified), now);
  region_->flush(geometry_.record(parent), kCacheLine);
  store_word(geometry_.entry(parent, found->header.position), 0);
  RecordState& above = states_[parent];
  --above.children;
  above.perhaps_free = std::min(above.perhaps_free, found->header.position);
  states_[found->number].is_linked = false;
  if (states_[found->number].users == 0) free(found->number);
  return {};
}

Table::Result<LinkedRecord> Table::file(std::string_view path) const {
  const auto found = find(path);
  if (!found) return unexpected(std::errc::no_such_file_or_directory);
  if (found->header.is_directory()) return unexpected(std::errc::is_a_directory);
  return *found;
}

std::optional<Table::DirectoryName> Table::child(RecordNumber directory,
                                                 std::uint32_t position) const {
  const std::uint64_t word = region_->load(geometry_.entry(directory, position));
  if (word == 0) return std::nullopt;
  const RecordHeader found = header(word - 1);
  const std::string path = path_of(word - 1, found);
  return DirectoryName{path.substr(path.rfind('/') + 1), found.is_directory()};
}

void Table::free(RecordNumber number) {
  states_[number] = {};
  free_.push_back(number);
}

void Table::store_word(Bytes offset, std::uint64_t value) {
  region_->store(offset, value);
  region_->persist(offset, kWord);
}

// --- data

void Table::extend(const LinkedRecord& file, Bytes size, std::uint64_t now) {
  if (size <= file.header.size) return;
  const Bytes extent = geometry_.extent(file.number);
  for (Bytes from = file.header.size; from < size;) {
    const Bytes piece = std::min<Bytes>(kZeros.size(), size - from);
    region_->write_streaming(extent + from, std::span(kZeros).first(piece));
    from += piece;
  }
  region_->drain();
  const Bytes record = geometry_.record(file.number);
  region_->store(record + offsetof(RecordHeader, modified), now);
  region_->store(record + offsetof(RecordHeader, size), size);
  region_->persist(record, kCacheLine);
}

void Table::set_times(const LinkedRecord& record, std::uint64_t now) {
  store_word(geometry_.record(record.number) + offsetof(RecordHeader, modified), now);
}

void Table::begin_use(RecordNumber number, Bytes offset, Bytes written) {
  RecordState& state = states_[number];
  ++state.users;
  if (written == 0) return;
  const bool is_clean = state.dirty_from == state.dirty_to;
  state.dirty_from = is_clean ? offset : std::min(state.dirty_from, offset);
  state.dirty_to = is_clean ? offset + written : std::max(state.dirty_to, offset + written);
}

void Table::end_use(RecordNumber number) {
  RecordState& state = states_[number];
  if (--state.users == 0 && !state.is_linked) free(number);
}

// Data that others are writing may arrive after this.
void Table::sync(const LinkedRecord& file) {
  RecordState& state = states_[file.number];
  if (state.dirty_from == state.dirty_to) return;
  region_->persist(geometry_.extent(file.number) + state.dirty_from,
                   state.dirty_to - state.dirty_from);
  if (state.users == 0) state.dirty_from = state.dirty_to = 0;
}

// --- audit

std::string Table::audit() const {
  std::uint64_t linked = 0;
  std::uint64_t in_use = 0;
  for (RecordNumber number = 0; number < geometry_.records; ++number) {
    const RecordState& state = states_[number];
    if (!state.is_linked) {
      in_use += state.users > 0;
      continue;
    }
    ++linked;
    const RecordHeader record = header(number);
    if (number != kRootRecord) {
      const std::string path = path_of(number, record);
      const auto found = find(path);
      if (!found || found->number != number) return fmt::format("'{}' is not found", path);
      if (region_->load(geometry_.entry(record.parent, record.position)) != number + 1) {
        return fmt::format("'{}' is not in its directory", path);
      }
    }
    std::uint32_t children = 0;
    for (std::uint32_t position = 0; position < geometry_.directory_entries; ++position) {
      children += record.is_directory() && region_->load(geometry_.entry(number, position)) != 0;
    }
    if (children != state.children) {
      return fmt::format("the directory of record {} has {} children and {} entries", number,
                         state.children, children);
    }
  }
  if (linked + in_use + free_.size() == geometry_.records) return {};
  return fmt::format("of {} records {} have a path, {} are in use and {} free", geometry_.records,
                     linked, in_use, free_.size());
}

}  // namespace perdura::systems::octopus
