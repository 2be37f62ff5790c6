// Memory whose possible contents after a power failure a test can see, after every single store.
// What was flushed and drained is durable; of everything else, any subset of aligned words may be.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "platform/pmem/region.h"

namespace perdura::test {

inline std::span<const std::byte> as_key(const std::string& text) {
  return std::as_bytes(std::span(text));
}

using Image = std::vector<std::byte>;

class CrashMemory final : public pmem::RegionModel {
 public:
  explicit CrashMemory(Image contents) : visible(std::move(contents)), durable(visible) {}

  // Called after each store of a word or of a part of one.
  std::function<void()> after_store;

  Image visible;  // what a process finds that dies alone
  Image durable;  // what a power failure leaves at least

  // One of the images that a power failure may leave.
  Image possible_image(std::mt19937_64& random) const {
    Image image = durable;
    for (const Bytes word : dirty_) {
      if (random() % 2 == 0) std::memcpy(&image[word], &visible[word], kWord);
    }
    return image;
  }

  std::uint64_t load(Bytes offset) override {
    std::uint64_t value;
    std::memcpy(&value, &visible[offset], kWord);
    return value;
  }
  void read(Bytes offset, std::span<std::byte> into) override {
    if (!into.empty()) std::memcpy(into.data(), &visible[offset], into.size());
  }
  void store(Bytes offset, std::uint64_t value, const pmem::WordLayout&) override {
    place(offset, std::as_bytes(std::span(&value, 1)));
  }
  bool compare_exchange(Bytes offset, std::uint64_t& expected, std::uint64_t desired) override {
    const std::uint64_t before = load(offset);
    if (before != expected) {
      expected = before;
      return false;
    }
    store(offset, desired, pmem::kWholeWord);
    return true;
  }
  void write(Bytes offset, std::span<const std::byte> from, bool streaming) override {
    const Bytes end = offset + from.size();
    for (Bytes at = offset; at < end;) {
      const Bytes next = std::min(end, at / kWord * kWord + kWord);
      place(at, from.subspan(at - offset, next - at));
      at = next;
    }
    if (streaming) flush(offset, from.size());
  }
  void flush(Bytes offset, Bytes length) override {
    const Bytes end = round_up(offset + length, kCacheLine);
    for (Bytes word = offset / kCacheLine * kCacheLine; word < end; word += kWord) {
      if (dirty_.contains(word)) flushed_.insert(word);
    }
  }
  void drain() override {
    for (const Bytes word : flushed_) {
      std::memcpy(&durable[word], &visible[word], kWord);
      dirty_.erase(word);
    }
    flushed_.clear();
  }

 private:
  void place(Bytes offset, std::span<const std::byte> bytes) {
    std::memcpy(&visible[offset], bytes.data(), bytes.size());
    const Bytes word = offset / kWord * kWord;
    dirty_.insert(word);
    flushed_.erase(word);
    if (after_store) after_store();
  }

  std::set<Bytes> dirty_;
  std::set<Bytes> flushed_;
};

// A region of such memory.
struct CrashRegion {
  explicit CrashRegion(Image contents)
      : memory(std::make_shared<CrashMemory>(std::move(contents))),
        region("crash", pmem::Medium::pm, memory->visible.data(), memory->visible.size(), memory,
               nullptr) {}
  std::shared_ptr<CrashMemory> memory;
  pmem::Region region;
};

}  // namespace perdura::test
