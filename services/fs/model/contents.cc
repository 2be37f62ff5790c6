#include "services/fs/model/contents.h"

#include <algorithm>
#include <string_view>

#include "services/fs/model/hash.h"

namespace perdura::fs {
namespace {

// The part of a range that is in one block.
struct Part {
  std::uint64_t block;
  Bytes begin;     // offset in the block
  Bytes length;    // at least 1
  Bytes in_range;  // offset in the range
};

// Calls `visit` with each block's part of the range.
template <class Visit>
void for_each_part(Bytes offset, Bytes length, const Visit& visit) {
  for (Bytes done = 0; done < length;) {
    const Bytes at = offset + done;
    const Bytes part = std::min(kBlock - at % kBlock, length - done);
    visit(Part{at / kBlock, at % kBlock, part, done});
    done += part;
  }
}

}  // namespace

std::shared_ptr<const Contents::Block> Contents::hashed(std::shared_ptr<Block> block) {
  const std::string_view bytes(reinterpret_cast<const char*>(block->bytes.data()), kBlock);
  block->hash = std::hash<std::string_view>()(bytes);
  return block;
}

void Contents::read(Bytes offset, std::span<std::byte> into) const {
  std::fill(into.begin(), into.end(), std::byte{0});
  if (into.empty()) return;
  const std::uint64_t last = (offset + into.size() - 1) / kBlock;
  for (auto at = blocks_.lower_bound(offset / kBlock); at != blocks_.end() && at->first <= last;
       ++at) {
    const Bytes block_begin = at->first * kBlock;
    const Bytes begin = std::max(offset, block_begin);
    const Bytes end = std::min<Bytes>(offset + into.size(), block_begin + kBlock);
    std::copy_n(at->second->bytes.begin() + (begin - block_begin), end - begin,
                into.begin() + static_cast<std::ptrdiff_t>(begin - offset));
  }
}

void Contents::allocate(Bytes offset, Bytes length) {
  static const auto kZeros = hashed(std::make_shared<Block>());
  for_each_part(offset, length, [&](const Part& part) { blocks_.try_emplace(part.block, kZeros); });
}

void Contents::write(Bytes offset, std::span<const std::byte> data) {
  for_each_part(offset, data.size(), [&](const Part& part) {
    std::shared_ptr<const Block>& old = blocks_[part.block];
    auto changed = old ? std::make_shared<Block>(*old) : std::make_shared<Block>();
    std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(part.in_range), part.length,
                changed->bytes.begin() + part.begin);
    old = hashed(std::move(changed));
  });
}

void Contents::zero(Bytes offset, Bytes length) {
  if (length == 0) return;
  const std::uint64_t last = (offset + length - 1) / kBlock;
  for (auto at = blocks_.lower_bound(offset / kBlock); at != blocks_.end() && at->first <= last;
       ++at) {
    const Bytes block_begin = at->first * kBlock;
    const Bytes begin = std::max(offset, block_begin);
    const Bytes end = std::min(offset + length, block_begin + kBlock);
    auto changed = std::make_shared<Block>(*at->second);
    std::fill_n(changed->bytes.begin() + (begin - block_begin), end - begin, std::byte{0});
    at->second = hashed(std::move(changed));
  }
}

void Contents::punch(Bytes offset, Bytes length) {
  zero(offset, length);
  const std::uint64_t first = (offset + kBlock - 1) / kBlock;
  const std::uint64_t end = (offset + length) / kBlock;
  if (first < end) blocks_.erase(blocks_.lower_bound(first), blocks_.lower_bound(end));
}

void Contents::cut(Bytes size) {
  blocks_.erase(blocks_.lower_bound((size + kBlock - 1) / kBlock), blocks_.end());
  if (size % kBlock != 0) zero(size, kBlock - size % kBlock);
}

std::uint64_t Contents::missing(Bytes offset, Bytes length) const {
  if (length == 0) return 0;
  const std::uint64_t first = offset / kBlock;
  const std::uint64_t last = (offset + length - 1) / kBlock;
  const auto present = std::distance(blocks_.lower_bound(first), blocks_.upper_bound(last));
  return last - first + 1 - static_cast<std::uint64_t>(present);
}

std::optional<Bytes> Contents::next(Bytes offset, Session::Seek what) const {
  auto at = blocks_.lower_bound(offset / kBlock);
  if (what == Session::Seek::data) {
    if (at == blocks_.end()) return std::nullopt;
    return std::max(offset, at->first * kBlock);
  }
  std::uint64_t block = offset / kBlock;
  for (; at != blocks_.end() && at->first == block; ++at) ++block;
  return std::max(offset, block * kBlock);
}

bool Contents::operator==(const Contents& other) const {
  return std::equal(blocks_.begin(), blocks_.end(), other.blocks_.begin(), other.blocks_.end(),
                    [](const auto& one, const auto& two) {
                      return one.first == two.first &&
                             (one.second == two.second || *one.second == *two.second);
                    });
}

std::size_t Contents::hash() const {
  std::size_t hash = 0;
  for (const auto& [number, block] : blocks_) {
    add_to_hash(hash, number, block->hash);
  }
  return hash;
}

}  // namespace perdura::fs
