#include "services/fs/posix/access_list.h"

#include <algorithm>
#include <cstring>

namespace perdura::fs {
namespace {

// The format of the attribute's value. Numbers are little endian, as are all machines we run on.
//
//   | version 2 (4) | tag (2) | permissions (2) | id (4) | tag ...
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kHeaderSize = 4;
constexpr std::uint32_t kNoId = 0xFFFFFFFF;

struct StoredEntry {
  std::uint16_t tag;
  std::uint16_t permissions;
  std::uint32_t id;
};
static_assert(sizeof(StoredEntry) == 8);

bool has_id(AccessList::Tag tag) {
  return tag == AccessList::Tag::user || tag == AccessList::Tag::group;
}

}  // namespace

Result<std::optional<AccessList>> AccessList::parse(std::span<const std::byte> value) {
  if (value.empty()) return std::optional<AccessList>();
  std::uint32_t version = 0;
  if (value.size() < kHeaderSize) return tl::unexpected(std::errc::invalid_argument);
  std::memcpy(&version, value.data(), kHeaderSize);
  if (version != kVersion) return tl::unexpected(std::errc::operation_not_supported);
  value = value.subspan(kHeaderSize);
  if (value.size() % sizeof(StoredEntry) != 0) return tl::unexpected(std::errc::invalid_argument);
  if (value.empty()) return std::optional<AccessList>();
  AccessList list;
  for (; !value.empty(); value = value.subspan(sizeof(StoredEntry))) {
    StoredEntry stored{};
    std::memcpy(&stored, value.data(), sizeof stored);
    const Tag tag{stored.tag};
    switch (tag) {
      case Tag::user:
      case Tag::group:
        list.entries.push_back({tag, stored.permissions, stored.id});
        break;
      case Tag::owner:
      case Tag::owning_group:
      case Tag::mask:
      case Tag::other:
        list.entries.push_back({tag, stored.permissions, 0});
        break;
      default:
        return tl::unexpected(std::errc::invalid_argument);
    }
  }
  return list;
}

// Tags must ascend, tags without an id must be there once, and the mask if there are entries to
// mask.
bool AccessList::is_valid() const {
  using enum Tag;
  std::uint16_t seen = 0;
  for (const AclEntry& entry : entries) {
    const auto tag = static_cast<std::uint16_t>(entry.tag);
    if (tag < seen || (tag == seen && !has_id(entry.tag))) return false;
    if (entry.permissions > 7 || (has_id(entry.tag) && entry.id == kNoId)) return false;
    seen = tag;
  }
  const auto count = [&](Tag tag) {
    return std::count_if(entries.begin(), entries.end(),
                         [&](const auto& entry) { return entry.tag == tag; });
  };
  return count(owner) == 1 && count(owning_group) == 1 && count(other) == 1 &&
         (count(mask) == 1 || count(user) + count(group) == 0);
}

std::vector<std::byte> AccessList::format() const {
  std::vector<std::byte> value(kHeaderSize + entries.size() * sizeof(StoredEntry));
  std::memcpy(value.data(), &kVersion, kHeaderSize);
  std::byte* at = value.data() + kHeaderSize;
  for (const AclEntry& entry : entries) {
    const StoredEntry stored{static_cast<std::uint16_t>(entry.tag), entry.permissions,
                             has_id(entry.tag) ? entry.id : kNoId};
    std::memcpy(at, &stored, sizeof stored);
    at += sizeof stored;
  }
  return value;
}

AccessList::AclEntry* AccessList::find(Tag tag) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const AclEntry& entry) { return entry.tag == tag; });
  return found == entries.end() ? nullptr : &*found;
}

AccessList::AclEntry& AccessList::group_class() {
  AclEntry* const mask = find(Tag::mask);
  return mask != nullptr ? *mask : *find(Tag::owning_group);
}

bool AccessList::is_mode() const { return entries.size() == 3; }

std::uint32_t AccessList::permissions() const {
  const std::uint32_t owner = find(Tag::owner)->permissions;
  const std::uint32_t group = const_cast<AccessList*>(this)->group_class().permissions;
  return owner << 6 | group << 3 | find(Tag::other)->permissions;
}

void AccessList::set_permissions(std::uint32_t permissions) {
  find(Tag::owner)->permissions = permissions >> 6 & 7;
  group_class().permissions = permissions >> 3 & 7;
  find(Tag::other)->permissions = permissions & 7;
}

void AccessList::restrict_to(std::uint32_t permissions) {
  set_permissions(this->permissions() & permissions);
}

bool AccessList::permits(const Credentials& credentials, std::uint32_t owner, std::uint32_t group,
                         std::uint32_t wanted) const {
  const auto grants = [&](std::uint32_t permissions) { return (permissions & wanted) == wanted; };
  const AclEntry* const mask = find(Tag::mask);
  const auto masked = [&](std::uint32_t permissions) {
    return grants(permissions & (mask == nullptr ? 7 : mask->permissions));
  };
  if (credentials.uid == owner) return grants(find(Tag::owner)->permissions);
  for (const AclEntry& entry : entries) {
    if (entry.tag == Tag::user && entry.id == credentials.uid) return masked(entry.permissions);
  }
  // It suffices that one of the process's groups grants the access.
  bool in_group = false;
  for (const AclEntry& entry : entries) {
    const bool is_group = entry.tag == Tag::owning_group || entry.tag == Tag::group;
    if (!is_group || !credentials.is_in(entry.tag == Tag::group ? entry.id : group)) continue;
    in_group = true;
    if (grants(entry.permissions)) return masked(entry.permissions);
  }
  return !in_group && grants(find(Tag::other)->permissions);
}

}  // namespace perdura::fs
