#include "systems/nova/directory.h"

#include <algorithm>
#include <array>
#include <bit>

#include "platform/runtime/work.h"

namespace perdura::systems::nova {

std::uint32_t Directory::hash_of(std::string_view name) {
  return static_cast<std::uint32_t>(hash64(std::as_bytes(std::span(name.data(), name.size()))));
}

Name* Directory::find(pmem::Region& region, std::string_view name) {
  if (table_.empty()) return nullptr;
  const std::uint32_t hash = hash_of(name);
  const std::size_t mask = table_.size() - 1;
  for (std::size_t at = hash & mask; table_[at] != 0; at = (at + 1) & mask) {
    Name& found = names_[table_[at] - 1];
    if (found.hash != hash || found.type == 0 || found.length != name.size()) continue;
    std::array<std::byte, fs::kLongestName> stored;
    const auto bytes = std::span(stored).first(found.length);
    region.read(found.offset + sizeof(AddEntry), bytes);
    if (equal_bytes(bytes, std::as_bytes(std::span(name.data(), name.size())))) return &found;
  }
  return nullptr;
}

std::size_t Directory::behind(std::uint64_t cookie) const {
  const auto found = std::upper_bound(names_.begin(), names_.end(), cookie,
                                      [](std::uint64_t c, const Name& n) { return c < n.cookie; });
  return static_cast<std::size_t>(found - names_.begin());
}

Name* Directory::find_cookie(std::uint64_t cookie) {
  const std::size_t index = behind(cookie);
  if (index == 0) return nullptr;
  Name& name = names_[index - 1];
  return name.cookie == cookie && name.type != 0 ? &name : nullptr;
}

void Directory::add(const Name& name) {
  // Removed names keep their slot in the table until it is rebuilt.
  if ((names_.size() + 1) * 2 > table_.size()) rebuild();
  ++live_;
  lines_ += name.lines;
  if (name.is_directory()) ++subdirectories_;
  if (name.cookie < next_cookie_) {
    // It replaced a name whose log page has been freed since.
    names_.insert(names_.begin() + static_cast<std::ptrdiff_t>(behind(name.cookie)), name);
    rebuild();
    return;
  }
  next_cookie_ = name.cookie + 1;
  names_.push_back(name);
  const std::size_t mask = table_.size() - 1;
  std::size_t at = name.hash & mask;
  while (table_[at] != 0) at = (at + 1) & mask;
  table_[at] = static_cast<std::uint32_t>(names_.size());
}

void Directory::remove(Name& name) {
  --live_;
  lines_ -= name.lines;
  if (name.is_directory()) --subdirectories_;
  name.type = 0;
}

void Directory::replace(Name& name, const Name& by) {
  lines_ += by.lines - name.lines;
  subdirectories_ += (by.is_directory() ? 1 : 0) - (name.is_directory() ? 1 : 0);
  name = by;
}

void Directory::rebuild() {
  std::erase_if(names_, [](const Name& name) { return name.type == 0; });
  table_.assign(std::bit_ceil(std::max<std::size_t>(16, (names_.size() + 1) * 4)), 0);
  const std::size_t mask = table_.size() - 1;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    std::size_t at = names_[i].hash & mask;
    while (table_[at] != 0) at = (at + 1) & mask;
    table_[at] = static_cast<std::uint32_t>(i + 1);
  }
}

}  // namespace perdura::systems::nova
