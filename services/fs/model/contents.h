// The bytes of a file with holes, as blocks of kBlock that copies of the file share.
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

// Does not know the file's size: the bytes after the end of the file are zero.
class Contents {
 public:
  void read(Bytes offset, std::span<std::byte> into) const;  // holes are zeros
  // Gives the range space. New blocks are zero.
  void allocate(Bytes offset, Bytes length);
  void write(Bytes offset, std::span<const std::byte> data);
  // Zeros the range where it has space.
  void zero(Bytes offset, Bytes length);
  // Frees the whole blocks of the range and zeros the rest.
  void punch(Bytes offset, Bytes length);
  // Frees the blocks after `size` and zeros the rest of the block that contains it.
  void cut(Bytes size);

  std::uint64_t blocks() const { return blocks_.size(); }
  // The number of blocks that the range lacks.
  std::uint64_t missing(Bytes offset, Bytes length) const;
  // The first offset from `offset` on that has space, or has none; nothing if there is none.
  std::optional<Bytes> next(Bytes offset, Session::Seek what) const;

  bool operator==(const Contents& other) const;
  std::size_t hash() const;

 private:
  // The hash is kept: thousands of states are hashed that differ in one block.
  struct Block {
    std::array<std::byte, kBlock> bytes{};
    std::size_t hash = 0;
    bool operator==(const Block& other) const { return hash == other.hash && bytes == other.bytes; }
  };
  static std::shared_ptr<const Block> hashed(std::shared_ptr<Block> block);

  std::map<std::uint64_t, std::shared_ptr<const Block>> blocks_;  // by offset / kBlock
};

}  // namespace perdura::fs
