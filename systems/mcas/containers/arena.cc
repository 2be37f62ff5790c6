#include "systems/mcas/containers/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <stdexcept>

#include "platform/base/error.h"

namespace perdura::systems::mcas::containers {

namespace {

constexpr std::uint64_t kMagic = 0x414E455241534143;  // "CASARENA"

}  // namespace

struct Arena::Header {
  std::uint64_t magic = 0;
  std::uint64_t size = 0;
  std::uint64_t log = 0;
  std::uint64_t roots = 0;
  std::uint64_t transaction = 0;
};

// --- layout --------------------------------------------------------------------------------------

// The bitmap takes its memory from the heap that it describes; rounding may leave a few units of
// the heap unused.
Arena::Layout Arena::layout_of(Bytes size, Sizes sizes) {
  Layout layout;
  layout.log = {kCacheLine, round_up(sizes.log, kCacheLine)};
  layout.roots = {layout.log.end(), round_up(sizes.roots, kCacheLine)};
  layout.bitmap = layout.roots.end();
  if (size < layout.bitmap + kCacheLine + kUnit) return layout;
  const Bytes heap = size - layout.bitmap;
  layout.units = (heap - kCacheLine) * 8 / (kUnit * 8 + 1);
  layout.first_unit = layout.bitmap + round_up((layout.units + 7) / 8, kCacheLine);
  layout.units = std::min(layout.units, (size - layout.first_unit) / kUnit);
  return layout;
}

Arena::Layout Arena::layout_at(const Piece& piece) {
  if (piece.size() < sizeof(Header)) return {};
  const auto header = piece.read_object<Header>(0);
  if (header.magic != kMagic || header.size != piece.size()) return {};
  return layout_of(header.size, {header.log, header.roots});
}

Piece Arena::piece_at(const Memory& memory, ByteRange range) {
  if (range.offset % kCacheLine != 0) {
    throw UsageError(fmt::format(
        "an arena begins at a multiple of {} bytes; a value of 64 bytes or more does", kCacheLine));
  }
  return {memory, range};
}

Arena::Layout Arena::layout_of_existing(const Piece& piece) {
  const Layout layout = layout_at(piece);
  if (layout.units == 0) throw UsageError("there is no arena in this piece of a pool's memory");
  return layout;
}

void Arena::format(const Memory& memory, ByteRange range, Sizes sizes) {
  const Piece piece = piece_at(memory, range);
  const Layout layout = layout_of(range.length, sizes);
  if (layout.units == 0) {
    throw UsageError(fmt::format("{} bytes are too few for an arena with a log of {} bytes",
                                 range.length, layout.log.length));
  }
  piece.store_durably(offsetof(Header, magic), 0);
  const Header header{0, range.length, sizes.log, sizes.roots, 0};
  piece.write(0, std::as_bytes(std::span(&header, 1)));
  const ByteRange rest{layout.roots.offset, layout.first_unit - layout.roots.offset};
  piece.write(rest.offset, std::vector<std::byte>(rest.length));
  piece.flush({0, sizeof header});
  piece.flush(rest);
  UndoLog::format(piece, layout.log, offsetof(Header, transaction));
  piece.store_durably(offsetof(Header, magic), kMagic);
}

bool Arena::exists(const Memory& memory, ByteRange range) {
  return range.offset % kCacheLine == 0 && layout_at({memory, range}).units > 0;
}

Arena::Arena(const Memory& memory, ByteRange range)
    : piece_(piece_at(memory, range)),
      layout_(layout_of_existing(piece_)),
      log_(piece_, layout_.log, offsetof(Header, transaction)) {
  // A process that died leaves what is visible, not what is durable (docs/restart.md). If the
  // visible transaction number were lost in a later failure, the completed transaction that it
  // belongs to would be undone.
  piece_.persist({0, sizeof(Header)});
  undone_ = log_.undo();
}

Bytes Arena::root(Bytes offset, Bytes length) const {
  if (offset > layout_.roots.length || length > layout_.roots.length - offset) {
    throw std::out_of_range("the root of a container lies outside of the arena's roots");
  }
  return layout_.roots.offset + offset;
}

// --- transactions --------------------------------------------------------------------------------

void Arena::begin() {
  if (running_) throw std::logic_error("a transaction within a transaction");
  running_ = true;
}

void Arena::write(Bytes offset, std::span<const std::byte> bytes) {
  if (!running_) throw std::logic_error("a change outside of a transaction");
  const ByteRange range{offset, bytes.size()};
  if (bytes.empty()) return;
  if (!kept_.contains(range)) {
    if (!log_.save(range)) throw OutOfSpace{};
    kept_.add(range);
  }
  piece_.write(offset, bytes);
  const Bytes line = offset / kCacheLine * kCacheLine;
  changed_.add({line, std::min(round_up(range.end(), kCacheLine), piece_.size()) - line});
}

void Arena::commit() {
  changed_.for_each([this](ByteRange range) { piece_.flush(range); });
  if (!changed_.empty()) piece_.drain();
  if (!log_.empty()) log_.clear();
  end();
}

void Arena::roll_back() {
  log_.undo();
  end();
}

void Arena::end() {
  running_ = false;
  kept_.clear();
  changed_.clear();
  freed_.clear();
}

// --- heap ----------------------------------------------------------------------------------------

Bytes Arena::allocate(Bytes length) {
  const std::uint64_t wanted = std::max<Bytes>(1, round_up(length, kUnit) / kUnit);
  std::uint64_t run = 0;
  std::uint64_t word = 0;
  for (std::uint64_t unit = 0; unit < layout_.units; ++unit) {
    if (unit % kBits == 0) word = bitmap_word(unit / kBits);
    const ByteRange range{layout_.first_unit + unit * kUnit, kUnit};
    const bool used = (word >> unit % kBits & 1) != 0 || freed_.contains(range);
    run = used ? 0 : run + 1;
    if (run < wanted) continue;
    const Bytes block = range.end() - wanted * kUnit;
    mark(block, length, true);
    kept_.add(units_of({block, length}));
    return block;
  }
  throw OutOfSpace{};
}

void Arena::free(ByteRange block) {
  mark(block.offset, block.length, false);
  freed_.add(units_of(block));
}

void Arena::mark(Bytes block, Bytes length, bool used) {
  std::uint64_t unit = (block - layout_.first_unit) / kUnit;
  std::uint64_t left = std::max<Bytes>(1, round_up(length, kUnit) / kUnit);
  while (left > 0) {
    const std::uint64_t first = unit % kBits;
    const std::uint64_t count = std::min(left, kBits - first);
    const std::uint64_t bits = ~std::uint64_t{0} >> (kBits - count) << first;
    const std::uint64_t before = bitmap_word(unit / kBits);
    write(layout_.bitmap + unit / kBits * kWord, used ? before | bits : before & ~bits);
    unit += count;
    left -= count;
  }
}

Bytes Arena::free_bytes() const {
  Bytes used = 0;
  for (std::uint64_t unit = 0; unit < layout_.units; unit += kBits) {
    used += static_cast<Bytes>(std::popcount(bitmap_word(unit / kBits)));
  }
  return (layout_.units - used) * kUnit;
}

std::string Arena::audit_blocks(std::span<const ByteRange> blocks) const {
  std::vector<std::uint64_t> words((layout_.units + kBits - 1) / kBits);
  for (const ByteRange& block : blocks) {
    const ByteRange range = units_of(block);
    if (range.offset < layout_.first_unit || (range.offset - layout_.first_unit) % kUnit != 0 ||
        range.end() > layout_.first_unit + layout_.units * kUnit) {
      return "a block lies outside of the arena's heap";
    }
    for (Bytes at = range.offset; at < range.end(); at += kUnit) {
      const std::uint64_t unit = (at - layout_.first_unit) / kUnit;
      const std::uint64_t bit = std::uint64_t{1} << unit % kBits;
      if ((words[unit / kBits] & bit) != 0) return "two blocks of the arena overlap";
      words[unit / kBits] |= bit;
    }
  }
  for (std::uint64_t i = 0; i < words.size(); ++i) {
    const std::uint64_t marked = bitmap_word(i);
    if ((words[i] & ~marked) != 0) return "the arena counts the memory of a block as free";
    if ((marked & ~words[i]) != 0) return "memory of the arena is neither free nor in use";
  }
  return {};
}

}  // namespace perdura::systems::mcas::containers
