// What tests of the hash indexes look at: memory, layouts, writes and loads.
#pragma once

#include <gtest/gtest.h>

#include <iostream>
#include <vector>

#include "tests/systems/bucket_hash/contents.h"
#include "tests/systems/bucket_hash/explored_memory.h"

namespace perdura::test {

inline Image image_of(const PlainMemory& memory) {
  return {memory.bytes().begin(), memory.bytes().end()};
}

// That no two parts of an index overlap, and that one flush is enough for each.
class UsedBytes {
 public:
  explicit UsedBytes(Bytes size) : used_(size) {}
  void use(Bytes offset, Bytes size) {
    ASSERT_LE(offset + size, used_.size());
    ASSERT_EQ(offset / kCacheLine, (offset + size - 1) / kCacheLine) << "one flush is not enough";
    for (Bytes i = offset; i < offset + size; ++i) {
      ASSERT_FALSE(used_[i]) << "byte " << i;
      used_[i] = true;
    }
  }

 private:
  std::vector<bool> used_;
};

template <class Operation>
pmem::WriteCounts writes_of(Operation operation) {
  const pmem::WriteCounts before = pmem::thread_write_meter().writes().local_store;
  operation();
  pmem::WriteCounts after = pmem::thread_write_meter().writes().local_store;
  after -= before;
  return after;
}

// How full a table is before each resize that inserts make.
template <class Hash>
std::vector<double> loads_before_resizes(const typename Hash::Geometry& geometry) {
  PlainMemory memory(geometry.size());
  typename Hash::Index index(memory.region(), 0, geometry);
  std::vector<double> loads;
  for (std::uint64_t number = 0; loads.size() < geometry.resizes; ++number) {
    const double before = static_cast<double>(index.items()) / static_cast<double>(index.slots());
    EXPECT_TRUE(index.put(item_of(numbered_key(number), "value")));
    if (Hash::table(index) > loads.size()) loads.push_back(before);
  }
  std::cout << Hash::describe(geometry) << ":";
  for (const double load : loads) std::cout << fmt::format(" {:.2f}", load);
  std::cout << "\n";
  return loads;
}

}  // namespace perdura::test
