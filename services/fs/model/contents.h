// The bytes of a file with holes, as blocks of kBlock that copies share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "services/fs/fs.h"

namespace perdura::fs {

// Knows nothing of the file's size: what is behind the end of the file is zero.
class Contents {
 public:
  void read(Bytes offset, std::span<std::byte> into) const;  // holes are zeros
  // Gives the range space. What was not there is zero.
  void allocate(Bytes offset, Bytes length);
  void write(Bytes offset, std::span<const std::byte> data);
  // Zeros the range where it has space.
  void zero(Bytes offset, Bytes length);
  // Frees the whole blocks of the range and zeros the rest.
  void punch(Bytes offset, Bytes length);
  // Frees the blocks that lie behind `size` and zeros the rest of its own.
  void cut(Bytes size);

  std::uint64_t blocks() const { return blocks_.size(); }
  // How many blocks the range lacks.
  std::uint64_t missing(Bytes offset, Bytes length) const;
  // The first byte from `offset` on that has space, or has none.
  std::optional<Bytes> next(Bytes offset, Session::Seek what) const;

  bool operator==(const Contents& other) const;
  std::size_t hash() const;

 private:
  // Its hash is kept: states that differ in one block are hashed by the thousand.
  struct Block {
    std::array<std::byte, kBlock> bytes{};
    std::size_t hash = 0;
    bool operator==(const Block& other) const { return hash == other.hash && bytes == other.bytes; }
  };
  static std::shared_ptr<const Block> hashed(std::shared_ptr<Block> block);

  std::map<std::uint64_t, std::shared_ptr<const Block>> blocks_;  // by offset / kBlock
};

}  // namespace perdura::fs
