#include "systems/rpc_log/local_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "platform/base/error.h"

namespace perdura::systems::rpc_log {
namespace {

constexpr std::uint64_t kMagic = 0x474F4C4C41434F4C;  // "LOCALLOG"
constexpr Bytes kSlotsWord = 8;
constexpr Bytes kLargestWord = 16;
constexpr Bytes kTailWord = 64;
constexpr Bytes kHeadWord = 128;
constexpr Bytes kSlots = 192;

}  // namespace

LocalLog::LocalLog(Node& node, const std::string& name, const LocalLogOptions& options)
    : options_(options), region_(node.open_region(name)), record_(options.slot_size()) {
  const Bytes size = kSlots + options.slots * options.slot_size();
  if (region_ == nullptr) {
    region_ = node.create_region(name, size, pmem::Medium::pm);
  } else {
    // A process that died leaves visible data that may not be durable (docs/restart.md).
    region_->persist(0, region_->size());
  }
  if (region_->load(0) == 0 && region_->size() == size) make();
  check_shape(name);
  tail_ = region_->load(kTailWord);
  head_ = region_->load(kHeadWord);
}

void LocalLog::make() {
  region_->store(kSlotsWord, options_.slots);
  region_->store(kLargestWord, options_.largest_payload);
  region_->persist(kSlotsWord, 2 * kWord);
  region_->store(0, kMagic);
  region_->persist(0, kWord);
}

void LocalLog::check_shape(const std::string& name) const {
  const bool is_log = region_->load(0) == kMagic;
  const std::uint64_t slots = region_->load(kSlotsWord);
  const std::uint64_t largest = region_->load(kLargestWord);
  if (is_log && slots == options_.slots && largest == options_.largest_payload) return;
  throw UsageError(fmt::format(
      "region '{}' is {}, not a log of {} records of up to {} bytes; remove it, or ask for what it "
      "is",
      name, is_log ? fmt::format("one of {} of up to {}", slots, largest) : "no such log",
      options_.slots, options_.largest_payload));
}

Bytes LocalLog::slot_offset(std::uint64_t number) const {
  return kSlots + (number - 1) % options_.slots * options_.slot_size();
}

void LocalLog::store_count(Bytes word, std::uint64_t count) {
  region_->store(word, count);
  region_->persist(word, kWord);
}

std::uint64_t LocalLog::append(std::span<const std::byte> payload) {
  const Bytes slot = slot_offset(tail_ + 1);
  region_->store(slot, payload.size());
  if (!payload.empty()) region_->write(slot + kWord, payload);
  region_->persist(slot, kWord + payload.size());
  store_count(kTailWord, ++tail_);
  return tail_;
}

std::uint64_t LocalLog::apply_some(std::uint64_t most, const Apply& apply) {
  const std::uint64_t count = std::min(most, tail_ - head_);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Bytes slot = slot_offset(head_ + 1);
    const std::uint64_t length = region_->load(slot);
    if (length > options_.largest_payload) {
      throw PlatformError(
          fmt::format("record {} of the log is damaged: its length is {}", head_ + 1, length));
    }
    const std::span payload = std::span(record_).first(length);
    region_->read(slot + kWord, payload);
    apply(++head_, payload);
  }
  if (count > 0) store_count(kHeadWord, head_);
  return count;
}

void LocalLog::rewind() {
  head_ = tail_;
  store_count(kHeadWord, head_);
}

}  // namespace perdura::systems::rpc_log
