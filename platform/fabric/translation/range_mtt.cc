#include "platform/fabric/translation/range_mtt.h"

#include <algorithm>
#include <stdexcept>

#include "platform/base/error.h"

namespace perdura::fabric {
namespace {

constexpr std::uint64_t kPages = std::uint64_t{1} << 32;  // that have a number
constexpr std::uint64_t kLongestEntry = kPages - 1;

void check(const RangeEntry& entry) {
  if (entry.pages == 0 || entry.end() > kPages) {
    throw PlatformError("a range of translations has no pages, or pages beyond 32 bits");
  }
}

// True if `second` goes on where `first` ends, and both fit into one entry.
bool adjoin(const RangeEntry& first, const RangeEntry& second) {
  return first.end() == second.base && first.target + first.pages == second.target &&
         std::uint64_t{first.pages} + second.pages <= kLongestEntry;
}

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

}  // namespace

RangeMtt::RangeMtt() { nodes_.emplace_back(); }

// --- nodes -------------------------------------------------------------------------------------

std::uint32_t RangeMtt::make_node(std::uint32_t height) {
  if (free_.empty()) {
    nodes_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(nodes_.size() - 1));
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  nodes_[number].count = 0;
  nodes_[number].height = height;
  return number;
}

// Without branches that depend on keys, which processors would guess wrong half of the time.
std::uint32_t RangeMtt::last_up_to(const Node& node, std::uint32_t page) {
  const std::uint32_t* low = node.key.data();
  for (std::uint32_t left = node.count; left > 1;) {
    const std::uint32_t half = left / 2;
    low = low[half] <= page ? low + half : low;
    left -= half;
  }
  if (node.count == 0 || *low > page) return kNone;
  return static_cast<std::uint32_t>(low - node.key.data());
}

void RangeMtt::move(Node& from, std::uint32_t first, std::uint32_t count, Node& to,
                    std::uint32_t at) {
  const auto part = [&](const auto& source, auto& destination) {
    std::copy_n(source.begin() + first, count, destination.begin() + at);
  };
  part(from.key, to.key);
  part(from.value, to.value);
  part(from.target, to.target);
}

void RangeMtt::make_room(Node& node, std::uint32_t at) {
  const auto shift = [&](auto& part) {
    std::copy_backward(part.begin() + at, part.begin() + node.count, part.begin() + node.count + 1);
  };
  shift(node.key);
  shift(node.value);
  shift(node.target);
  ++node.count;
}

void RangeMtt::close_gap(Node& node, std::uint32_t at) {
  const auto shift = [&](auto& part) {
    std::copy(part.begin() + at + 1, part.begin() + node.count, part.begin() + at);
  };
  shift(node.key);
  shift(node.value);
  shift(node.target);
  --node.count;
}

// --- look-ups ----------------------------------------------------------------------------------

RangeMtt::LookUp RangeMtt::find(std::uint32_t page) const {
  LookUp found;
  for (std::uint32_t number = root_;;) {
    const Node& node = nodes_[number];
    ++found.visits;
    const std::uint32_t i = last_up_to(node, page);
    if (i == kNone) return found;
    if (node.height == 0) {
      if (page - node.key[i] < node.value[i]) found.entry = node.entry(i);
      return found;
    }
    number = node.value[i];
  }
}

std::optional<RangeEntry> RangeMtt::last_before(std::uint32_t page) const {
  for (std::uint32_t number = root_;;) {
    const Node& node = nodes_[number];
    const std::uint32_t i = last_up_to(node, page);
    if (i == kNone) return std::nullopt;
    if (node.height == 0) return node.entry(i);
    number = node.value[i];
  }
}

std::optional<RangeEntry> RangeMtt::first_from(std::uint64_t page) const {
  if (page >= kPages) return std::nullopt;
  const auto wanted = static_cast<std::uint32_t>(page);
  std::optional<RangeEntry> next;  // the one after those up to the page
  std::uint32_t after = kNone;     // the subtree in which it is
  for (std::uint32_t number = root_;;) {
    const Node& node = nodes_[number];
    const std::uint32_t i = last_up_to(node, wanted);
    const std::uint32_t following = i == kNone ? 0 : i + 1;
    if (following < node.count) {
      if (node.height == 0) {
        next = node.entry(following);
      } else {
        after = node.value[following];
      }
    }
    if (node.height == 0) {
      if (i != kNone && node.entry(i).end() > page) return node.entry(i);
      break;
    }
    if (i == kNone) break;
    number = node.value[i];
  }
  if (next || after == kNone) return next;
  while (nodes_[after].height > 0) after = nodes_[after].value[0];
  return nodes_[after].entry(0);
}

void RangeMtt::each(const std::function<void(const RangeEntry&)>& use) const {
  each_below(root_, use);
}

void RangeMtt::each_below(std::uint32_t number,
                          const std::function<void(const RangeEntry&)>& use) const {
  const Node& node = nodes_[number];
  for (std::uint32_t i = 0; i < node.count; ++i) {
    if (node.height == 0) {
      use(node.entry(i));
    } else {
      each_below(node.value[i], use);
    }
  }
}

// --- changes -----------------------------------------------------------------------------------

void RangeMtt::map(const RangeEntry& entry) {
  check(entry);
  unmap(entry.base, entry.pages);
  RangeEntry whole = entry;
  if (entry.base > 0) {
    const std::optional<RangeEntry> before = last_before(entry.base - 1);
    if (before && adjoin(*before, whole)) {
      remove(before->base);
      whole = {before->base, before->pages + whole.pages, before->target};
      ++counts_.merges;
    }
  }
  const std::optional<RangeEntry> after = first_from(entry.end());
  if (after && adjoin(whole, *after)) {
    remove(after->base);
    whole.pages += after->pages;
    ++counts_.merges;
  }
  insert(whole);
}

void RangeMtt::unmap(std::uint32_t base, std::uint64_t count) {
  const std::uint64_t end = std::min(std::uint64_t{base} + count, kPages);
  while (const std::optional<RangeEntry> old = first_from(base)) {
    if (old->base >= end) return;
    const bool keeps_start = old->base < base;
    const bool keeps_rest = old->end() > end;
    if (keeps_start) {
      set_pages(old->base, base - old->base);
    } else {
      remove(old->base);
    }
    if (keeps_rest) {
      insert({static_cast<std::uint32_t>(end), static_cast<std::uint32_t>(old->end() - end),
              old->target + (end - old->base)});
    }
    if (keeps_start && keeps_rest) ++counts_.splits;
  }
}

void RangeMtt::set_pages(std::uint32_t base, std::uint32_t pages) {
  std::uint32_t number = root_;
  while (nodes_[number].height > 0) {
    number = nodes_[number].value[last_up_to(nodes_[number], base)];
  }
  std::uint32_t& now = nodes_[number].value[last_up_to(nodes_[number], base)];
  pages_ = pages_ - now + pages;
  now = pages;
}

void RangeMtt::insert(const RangeEntry& entry) {
  ++counts_.inserts;
  ++entries_;
  pages_ += entry.pages;
  const std::uint32_t right = insert_below(root_, entry);
  if (right == kNone) return;
  const std::uint32_t top = make_node(nodes_[root_].height + 1);
  Node& node = nodes_[top];
  node.count = 2;
  node.key = {nodes_[root_].key[0], nodes_[right].key[0]};
  node.value = {root_, right};
  root_ = top;
}

std::uint32_t RangeMtt::insert_below(std::uint32_t number, const RangeEntry& entry) {
  const std::uint32_t before = last_up_to(nodes_[number], entry.base);
  if (nodes_[number].height == 0) {
    return insert_here(number, before == kNone ? 0 : before + 1, entry.base, entry.pages,
                       entry.target);
  }
  const std::uint32_t i = before == kNone ? 0 : before;
  const std::uint32_t child = nodes_[number].value[i];
  const std::uint32_t right = insert_below(child, entry);
  nodes_[number].key[i] = nodes_[child].key[0];
  if (right == kNone) return kNone;
  return insert_here(number, i + 1, nodes_[right].key[0], right, 0);
}

std::uint32_t RangeMtt::insert_here(std::uint32_t number, std::uint32_t at, std::uint32_t key,
                                    std::uint32_t value, std::uint64_t target) {
  std::uint32_t right = kNone;
  std::uint32_t into = number;
  if (nodes_[number].count == kMost) {
    right = make_node(nodes_[number].height);
    ++counts_.node_splits;
    Node& full = nodes_[number];
    Node& rest = nodes_[right];
    // Files grow at their end: an entry that is inserted there leaves the old node full.
    const std::uint32_t keep = at == kMost ? kMost - 1 : kMost / 2;
    move(full, keep, kMost - keep, rest, 0);
    rest.count = kMost - keep;
    full.count = keep;
    if (at > keep) {
      into = right;
      at -= keep;
    }
  }
  Node& node = nodes_[into];
  make_room(node, at);
  node.key[at] = key;
  node.value[at] = value;
  node.target[at] = target;
  return right;
}

void RangeMtt::remove(std::uint32_t base) {
  ++counts_.removes;
  --entries_;
  remove_below(root_, base);
  if (nodes_[root_].height > 0 && nodes_[root_].count == 1) {
    free_.push_back(root_);
    root_ = nodes_[root_].value[0];
  }
}

void RangeMtt::remove_below(std::uint32_t number, std::uint32_t base) {
  Node& node = nodes_[number];
  const std::uint32_t i = last_up_to(node, base);
  if (node.height == 0) {
    pages_ -= node.value[i];
    close_gap(node, i);
    return;
  }
  remove_below(node.value[i], base);
  const Node& child = nodes_[node.value[i]];
  if (child.count > 0) node.key[i] = child.key[0];
  if (child.count < kLeast) refill(node, i);
}

void RangeMtt::refill(Node& parent, std::uint32_t child) {
  const std::uint32_t left = child > 0 ? child - 1 : child;
  Node& first = nodes_[parent.value[left]];
  Node& second = nodes_[parent.value[left + 1]];
  const std::uint32_t both = first.count + second.count;
  if (both <= kMost) {
    move(second, 0, second.count, first, first.count);
    first.count = both;
    parent.key[left] = first.key[0];
    free_.push_back(parent.value[left + 1]);
    close_gap(parent, left + 1);
    ++counts_.node_merges;
    return;
  }
  // The sibling has more than enough: both get half.
  Node all = second;
  const std::uint32_t half = both / 2;
  if (first.count > half) {
    const std::uint32_t moved = first.count - half;
    move(first, half, moved, second, 0);
    move(all, 0, all.count, second, moved);
  } else {
    const std::uint32_t moved = half - first.count;
    move(all, 0, moved, first, first.count);
    move(all, moved, all.count - moved, second, 0);
  }
  first.count = half;
  second.count = both - half;
  parent.key[left] = first.key[0];
  parent.key[left + 1] = second.key[0];
}

// --- audit -------------------------------------------------------------------------------------

void RangeMtt::audit() const {
  require(audit_below(root_, 0, kPages) == entries_, "entries are counted wrong");
  std::uint64_t pages = 0;
  std::optional<RangeEntry> before;
  each([&](const RangeEntry& entry) {
    require(entry.pages > 0, "an entry has no pages");
    require(!before || before->end() <= entry.base, "entries overlap");
    require(!before || !adjoin(*before, entry), "entries that adjoin are not merged");
    pages += entry.pages;
    before = entry;
  });
  require(pages == pages_, "pages are counted wrong");
}

std::size_t RangeMtt::audit_below(std::uint32_t number, std::uint64_t low,
                                  std::uint64_t high) const {
  const Node& node = nodes_[number];
  require(number == root_ || node.count > 0, "a node is empty");
  require(node.count <= kMost, "a node has too many entries");
  if (node.height == 0) {
    for (std::uint32_t i = 0; i < node.count; ++i) {
      require(node.key[i] >= low && node.key[i] < high, "a key is in the wrong node");
    }
    return node.count;
  }
  std::size_t sum = 0;
  for (std::uint32_t i = 0; i < node.count; ++i) {
    const Node& child = nodes_[node.value[i]];
    require(child.height + 1 == node.height, "leaves have different depths");
    require(child.key[0] == node.key[i], "a key is not the first below it");
    const std::uint64_t until = i + 1 < node.count ? node.key[i + 1] : high;
    sum += audit_below(node.value[i], std::max<std::uint64_t>(low, node.key[i]), until);
  }
  return sum;
}

// --- the flat table ----------------------------------------------------------------------------

std::uint64_t FlatMtt::map(const RangeEntry& entry) {
  check(entry);
  if (targets_.size() < entry.end()) targets_.resize(entry.end(), kHole);
  for (std::uint64_t i = 0; i < entry.pages; ++i) {
    std::uint64_t& target = targets_[entry.base + i];
    if (target == kHole) ++entries_;
    target = entry.target + i;
  }
  return entry.pages;
}

std::uint64_t FlatMtt::unmap(std::uint32_t base, std::uint64_t count) {
  std::uint64_t written = 0;
  const std::uint64_t end = std::min<std::uint64_t>(std::uint64_t{base} + count, targets_.size());
  for (std::uint64_t i = base; i < end; ++i) {
    if (targets_[i] == kHole) continue;
    targets_[i] = kHole;
    --entries_;
    ++written;
  }
  return written;
}

std::optional<std::uint64_t> FlatMtt::find(std::uint32_t page) const {
  if (page >= targets_.size() || targets_[page] == kHole) return std::nullopt;
  return targets_[page];
}

}  // namespace perdura::fabric
