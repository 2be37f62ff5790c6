// The bytes that an operation sends: up to kMaxPieces pieces of local memory, one after the other.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "platform/fabric/types.h"

namespace perdura::fabric::shm {

class Payload {
 public:
  using Bytes = std::span<const std::byte>;

  Payload() = default;
  Payload(Bytes only) { append(only); }

  void append(Bytes piece) {
    if (piece.empty()) return;
    pieces_[count_++] = piece;
    size_ += piece.size();
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool is_one() const { return count_ <= 1; }
  const Bytes& first() const { return pieces_[0]; }
  std::span<const Bytes> pieces() const { return {pieces_.data(), count_}; }

  // Returns the `length` bytes from `begin` on, or as many as there are.
  Payload part(std::size_t begin, std::size_t length) const {
    Payload result;
    for (const Bytes& piece : pieces()) {
      const std::size_t skipped = std::min(begin, piece.size());
      const std::size_t taken = std::min(length, piece.size() - skipped);
      result.append(piece.subspan(skipped, taken));
      begin -= skipped;
      length -= taken;
    }
    return result;
  }

 private:
  std::array<Bytes, kMaxPieces> pieces_;
  std::size_t count_ = 0;
  std::size_t size_ = 0;
};

}  // namespace perdura::fabric::shm
