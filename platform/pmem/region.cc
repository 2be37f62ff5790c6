#include "platform/pmem/region.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "platform/pmem/instructions.h"
#include "platform/pmem/word_copy.h"

namespace perdura::pmem {
namespace {

// The fill byte is not zero, since some processors do not write zeros back over zeros.
constexpr auto kFillByte = std::byte{0xA5};
// Memory with a model is filled by copies of this block.
constexpr auto kFill = [] {
  std::array<std::byte, 16 * KiB> bytes{};
  bytes.fill(kFillByte);
  return bytes;
}();

void count_streaming(const std::byte* base, Bytes offset, std::span<const std::byte> from) {
  WriteMeter& meter = thread_write_meter();
  pmem::count_write(meter, Cause::local_store, base + offset, from);
  meter.lines_written(Cause::local_store, offset, from.size());
}

}  // namespace

void Region::out_of_range(Bytes offset, Bytes length) const {
  throw std::out_of_range(fmt::format("access to bytes {}..{} of region {}, which has {}", offset,
                                      offset + length, name_, size_));
}

void Region::read(Bytes offset, std::span<std::byte> into) const {
  check(offset, into.size());
  if (model_) [[unlikely]]
    return model_->read(offset, into);
  pmem::copy_from_shared(into, base_ + offset);
}

std::uint64_t Region::scan(Bytes offset, Bytes length) const {
  check(offset, length);
  if (model_) [[unlikely]] {
    model_->scan(offset, length);
    return 0;
  }
  return pmem::sum_lines(base_ + offset, length);
}

bool Region::compare_exchange(Bytes offset, std::uint64_t& expected, std::uint64_t desired) {
  check(offset, kWord);
  if (model_) [[unlikely]]
    return model_->compare_exchange(offset, expected, desired);
  const std::uint64_t before = expected;
  if (!std::atomic_ref(word(offset)).compare_exchange_strong(expected, desired)) return false;
  if (medium_ == Medium::pm) {
    thread_write_meter().word(Cause::local_store, before, desired, kWholeWord);
  }
  return true;
}

void Region::write(Bytes offset, std::span<const std::byte> from) {
  check(offset, from.size());
  if (model_) [[unlikely]]
    return model_->write(offset, from, false);
  if (medium_ == Medium::pm) {
    pmem::count_write(thread_write_meter(), Cause::local_store, base_ + offset, from);
  }
  pmem::copy_to_shared(base_ + offset, from);
}

void Region::write_streaming(Bytes offset, std::span<const std::byte> from) {
  check(offset, from.size());
  if (model_) [[unlikely]]
    return model_->write(offset, from, true);
  if (medium_ == Medium::pm) count_streaming(base_, offset, from);
  pmem::stream_to_shared(base_ + offset, from);
}

void Region::fill_streaming(Bytes offset, Bytes length) {
  check(offset, length);
  for (Bytes done = 0; done < length; done += kFill.size()) {
    const auto piece = std::span(kFill).first(std::min<Bytes>(kFill.size(), length - done));
    if (model_) [[unlikely]] {
      model_->write(offset + done, piece, true);
      continue;
    }
    if (medium_ == Medium::pm) count_streaming(base_, offset + done, piece);
    pmem::fill_lines(base_ + offset + done, piece.size(), kFillByte);
  }
}

void Region::flush(Bytes offset, Bytes length) {
  check(offset, length);
  if (model_) [[unlikely]]
    return model_->flush(offset, length);
  if (!needs_flush_) [[unlikely]]
    return flush_for_nothing(offset, length);
  thread_write_meter().flush(offset, length);
  pmem::flush_lines(base_ + offset, length);
}

void Region::flush_for_nothing(Bytes offset, Bytes length) {
  if (disk_) return disk_->begin(offset, length);
  if (medium_ == Medium::pm) thread_write_meter().flush(offset, length);
}

void Region::drain() {
  if (model_) [[unlikely]]
    return model_->drain();
  if (disk_) return disk_->finish();
  if (medium_ == Medium::dram) return;
  thread_write_meter().fence();
  pmem::drain();
}

}  // namespace perdura::pmem
