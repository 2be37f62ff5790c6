#include "platform/fabric/tcp/pieces.h"

#include <algorithm>
#include <stdexcept>

#include "platform/pmem/region.h"

namespace perdura::fabric::tcp {
namespace {

// Calls `each(region, offset, bytes of the span)` for the parts of pieces that the span covers.
template <class Bytes_, class Each>
void walk(const LocalPieces& pieces, Bytes position, Bytes_ span, Each each) {
  for (const LocalBuffer& piece : pieces.all()) {
    if (span.empty()) return;
    if (position >= piece.length) {
      position -= piece.length;
      continue;
    }
    const auto part = span.first(std::min<std::size_t>(piece.length - position, span.size()));
    each(*piece.region, piece.offset + position, part);
    span = span.subspan(part.size());
    position = 0;
  }
}

}  // namespace

void check_pieces(const LocalPieces& pieces) {
  for (const LocalBuffer& piece : pieces.all()) {
    if (piece.length == 0) continue;
    if (piece.region == nullptr || piece.offset > piece.region->size() ||
        piece.length > piece.region->size() - piece.offset) {
      throw std::out_of_range("a local buffer is outside its region");
    }
  }
}

void gather(const LocalPieces& pieces, Bytes position, std::span<std::byte> into) {
  walk(pieces, position, into, [](pmem::Region& region, Bytes offset, std::span<std::byte> part) {
    region.read(offset, part);
  });
}

void scatter(const LocalPieces& pieces, Bytes position, std::span<const std::byte> from) {
  walk(pieces, position, from,
       [](pmem::Region& region, Bytes offset, std::span<const std::byte> part) {
         region.write(offset, part);
       });
}

std::size_t whole_words(const LocalPieces& pieces, Bytes position, std::size_t length) {
  Bytes end = position + length;  // counted from the start of `piece`
  for (const LocalBuffer& piece : pieces.all()) {
    if (end <= piece.length) {
      // The piece begins there, or a word of it does.
      const Bytes over = std::min(end, (piece.offset + end) % kWord);
      return end == piece.length ? length : length - std::min<std::size_t>(length, over);
    }
    end -= piece.length;
  }
  return length;
}

bool is_persistent(const LocalPieces& pieces) {
  return std::any_of(pieces.all().begin(), pieces.all().end(), [](const LocalBuffer& piece) {
    return piece.length != 0 && piece.region->medium() == pmem::Medium::pm;
  });
}

}  // namespace perdura::fabric::tcp
