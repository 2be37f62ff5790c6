// Memory that counts as persistent and obeys the persistence model: after every store, flush and
// fence a test can see each image that a power failure may leave there. Or it records the steps of
// a program and takes others instead of them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "platform/pmem/model/persistence_state.h"
#include "platform/pmem/region.h"
#include "platform/runtime/work.h"
#include "tests/systems/bucket_hash/steps.h"

namespace perdura::test {

// Images are many and long: nothing hashes them faster than what computes checksums.
struct ImageHash {
  std::size_t operator()(const Image& image) const { return crc32(0, image); }
};
// The comparison of vectors of bytes goes byte by byte.
struct SameImage {
  bool operator()(const Image& a, const Image& b) const { return equal_bytes(a, b); }
};
using DistinctImages = std::unordered_set<Image, ImageHash, SameImage>;

// Memory for a region without a model: what a program finds after a restart. Aligned to words.
class PlainMemory {
 public:
  explicit PlainMemory(Bytes size) : words_(size / kWord), region_(make_region()) {}
  explicit PlainMemory(const Image& image) : PlainMemory(image.size()) {
    std::memcpy(words_.data(), image.data(), image.size());
  }
  pmem::Region& region() { return *region_; }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(words_)); }

 private:
  std::unique_ptr<pmem::Region> make_region() {
    return std::make_unique<pmem::Region>("memory", pmem::Medium::pm,
                                          reinterpret_cast<std::byte*>(words_.data()),
                                          words_.size() * kWord, nullptr, nullptr);
  }
  std::vector<std::uint64_t> words_;
  std::unique_ptr<pmem::Region> region_;
};

class ExploredMemory final : public pmem::RegionModel {
 public:
  ExploredMemory(Image contents, const pmem::PersistenceModel& model)
      : visible_(std::move(contents)), model_(model) {
    settle();
  }

  // Called after each store, flush and fence.
  std::function<void()> after_step;
  // The thread whose they are from now on: a fence waits for nobody else's flushes.
  pmem::PersistenceState::Writer writer = this;

  // All that is visible is durable from now on.
  void settle() {
    steps_ = 0;
    state_ = std::make_unique<pmem::PersistenceState>(model_);
    state_->attach(0, pmem::Medium::pm, visible_.data());
  }

  const Image& visible() const { return visible_; }
  // The last step, and its number since all was durable.
  std::string step_text() const {
    std::string text = fmt::format("step {}, {}", steps_, last_what_);
    if (last_length_ == 0) return text;
    return text + fmt::format(" of bytes {}..{}", last_offset_, last_offset_ + last_length_ - 1);
  }

  // From now on the program alone sees what it stores, until its steps are asked for.
  void record() {
    recorded_.emplace();
    seen_by_program_ = visible_;
  }
  Steps recorded() {
    Steps steps = std::move(recorded_.value());
    recorded_.reset();
    return steps;
  }
  void take(const Steps& steps) {
    for (const Step& step : steps) {
      switch (step.kind) {
        case Step::Kind::write:
          write(step.offset, step.bytes, false);
          break;
        case Step::Kind::flush:
          flush(step.offset, step.length);
          break;
        case Step::Kind::fence:
          drain();
      }
    }
  }

  // Calls `visit(image)` for each image that a power failure may leave now.
  template <class Visit>
  void for_each_image(Visit visit) const {
    Image image = visible_;
    for (pmem::Enumerator all; all.next();) {
      const auto& survivors = state_->image(all);
      for (const auto& survivor : survivors) put_line(image, survivor, survivor.bytes.data());
      visit(image);
      for (const auto& survivor : survivors) {
        put_line(image, survivor, &visible_[survivor.place.offset]);
      }
    }
  }

  // One of them.
  Image image(pmem::Choices& choices) const {
    Image image = visible_;
    for (const auto& survivor : state_->image(choices)) {
      put_line(image, survivor, survivor.bytes.data());
    }
    return image;
  }

  std::uint64_t load(Bytes offset) override {
    std::uint64_t value;
    std::memcpy(&value, &seen()[offset], kWord);
    return value;
  }
  void read(Bytes offset, std::span<std::byte> into) override {
    if (!into.empty()) std::memcpy(into.data(), &seen()[offset], into.size());
  }
  void store(Bytes offset, std::uint64_t value, const pmem::WordLayout&) override {
    write(offset, std::as_bytes(std::span(&value, 1)), false);
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
  // Where what is visible is durable, a failure may come between any two words; elsewhere the model
  // lets any of the words survive.
  void write(Bytes offset, std::span<const std::byte> from, bool streaming) override {
    if (recorded_) return record_write(offset, from, streaming);
    const bool by_word = model_.domain != pmem::PersistenceDomain::dmp;
    while (!from.empty()) {
      const Bytes word = std::min<Bytes>(kWord - offset % kWord, from.size());
      const auto part = from.first(by_word ? word : from.size());
      if (streaming) {
        state_->stream(writer, {0, offset}, part);
      } else {
        state_->store(writer, {0, offset}, part);
      }
      std::memcpy(&visible_[offset], part.data(), part.size());
      step("a store", offset, part.size());
      offset += part.size();
      from = from.subspan(part.size());
    }
  }
  void flush(Bytes offset, Bytes length) override {
    if (recorded_) return recorded_->push_back(Step::flush(offset, length));
    state_->flush(writer, {0, offset}, length);
    step("a flush", offset, length);
  }
  void drain() override {
    if (recorded_) return recorded_->push_back(Step::fence());
    state_->fence(writer);
    step("a fence", 0, 0);
  }

 private:
  const Image& seen() const { return recorded_ ? seen_by_program_ : visible_; }
  void record_write(Bytes offset, std::span<const std::byte> from, bool streaming) {
    if (streaming) throw std::logic_error("steps have no streaming stores yet");
    const auto at = seen_by_program_.begin() + static_cast<std::ptrdiff_t>(offset);
    const auto end = at + static_cast<std::ptrdiff_t>(from.size());
    recorded_->push_back({.kind = Step::Kind::write,
                          .offset = offset,
                          .length = from.size(),
                          .bytes = {from.begin(), from.end()},
                          .before = {at, end}});
    std::copy(from.begin(), from.end(), at);
  }
  void step(std::string_view what, Bytes offset, Bytes length) {
    ++steps_;
    last_what_ = what;
    last_offset_ = offset;
    last_length_ = length;
    if (after_step) after_step();
  }
  static void put_line(Image& image, const pmem::PersistenceState::Survivor& line,
                       const std::byte* from) {
    const Bytes offset = line.place.offset;
    std::memcpy(&image[offset], from, std::min(kCacheLine, image.size() - offset));
  }

  Image visible_;
  Image seen_by_program_;  // while its steps are recorded
  std::optional<Steps> recorded_;
  pmem::PersistenceModel model_;
  std::unique_ptr<pmem::PersistenceState> state_;
  std::uint64_t steps_ = 0;
  std::string_view last_what_ = "none";
  Bytes last_offset_ = 0;
  Bytes last_length_ = 0;
};

// A region of such memory.
struct ExploredRegion {
  ExploredRegion(Image contents, const pmem::PersistenceModel& model)
      : memory(std::make_shared<ExploredMemory>(std::move(contents), model)),
        region("explored", pmem::Medium::pm, const_cast<std::byte*>(memory->visible().data()),
               memory->visible().size(), memory, nullptr) {}
  std::shared_ptr<ExploredMemory> memory;
  pmem::Region region;
};

}  // namespace perdura::test
