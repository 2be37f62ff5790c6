#include "platform/pmem/sim/sim_region.h"

#include <algorithm>

#include "platform/sim/thread.h"

namespace perdura::pmem::sim {

using perdura::sim::SimThread;
using perdura::sim::transfer_time;

namespace {

Bytes lines_of(Bytes offset, Bytes length) {
  return length == 0 ? 0 : (offset + length - 1) / kCacheLine - offset / kCacheLine + 1;
}

}  // namespace

Time SimRegion::now() const {
  SimThread* thread = SimThread::running();
  return thread != nullptr ? thread->now() : engine_.now();
}

std::uint64_t SimRegion::newest(Bytes offset) const {
  std::uint64_t value;
  std::memcpy(&value, base_ + offset, kWord);
  return value;
}

void SimRegion::change(Journal::Kind kind, Bytes offset, std::span<const std::byte> from,
                       LineTimes visible, Time accepted) {
  if (!powered_) [[unlikely]]
    return;
  if (journal_) [[unlikely]]
    journal_->store(kind, SimThread::running(), engine_.now(), offset, from, visible, accepted);
  timeline_.change(engine_.now(), offset, from,
                   kind == Journal::Kind::device ? Timeline::Writer::device : Timeline::Writer::cpu,
                   visible);
}

std::uint64_t SimRegion::load(Bytes offset) {
  if (SimThread* thread = SimThread::running()) thread->charge_time(thread->cpu().load);
  std::uint64_t value;
  timeline_.cpu_read(offset, std::as_writable_bytes(std::span(&value, 1)), now());
  return value;
}

void SimRegion::read(Bytes offset, std::span<std::byte> into) {
  // A range is taken to miss the caches: one latency, then the bandwidth of the memory, which other
  // cores and the device share, and the CPU's own cost of copying.
  if (SimThread* thread = SimThread::running()) {
    const Picoseconds transfer = transfer_time(lines_of(offset, into.size()) * kCacheLine,
                                               controller_.profile.read_bandwidth);
    const Time start = controller_.reads.take(thread->now(), transfer);
    thread->spin_until(start + controller_.profile.read_latency + transfer);
    thread->charge(Work::copy, into.size());
  }
  timeline_.cpu_read(offset, into, now());
}

void SimRegion::store(Bytes offset, std::uint64_t value, const WordLayout& layout) {
  if (SimThread* thread = SimThread::running()) thread->charge_time(thread->cpu().store);
  if (counted()) meter_->word(Cause::local_store, newest(offset), value, layout);
  change(Journal::Kind::cached, offset, std::as_bytes(std::span(&value, 1)), {now(), {}}, now());
}

bool SimRegion::compare_exchange(Bytes offset, std::uint64_t& expected, std::uint64_t desired) {
  const std::uint64_t value = load(offset);
  if (value != expected) {
    expected = value;
    return false;
  }
  store(offset, desired, kWholeWord);
  return true;
}

void SimRegion::write(Bytes offset, std::span<const std::byte> from, bool streaming) {
  const Time start = now();
  if (counted()) {
    meter_->bytes(Cause::local_store, {base_ + offset, from.size()}, from);
    if (streaming) meter_->lines_written(Cause::local_store, offset, from.size());
  }
  const Bytes lines = lines_of(offset, from.size());
  if (SimThread* thread = SimThread::running()) {
    thread->charge(Work::copy, from.size());
    thread->charge_time(thread->cpu().store * static_cast<std::int64_t>(lines));
  }
  if (lines == 0) return;
  const Picoseconds per_line = (now() - start) / static_cast<std::int64_t>(lines);
  change(streaming ? Journal::Kind::streaming : Journal::Kind::cached, offset, from,
         {start + per_line, per_line}, now());
  if (streaming) {
    const Picoseconds transfer =
        transfer_time(lines * kCacheLine, controller_.profile.write_bandwidth);
    const Time begin = controller_.writes.take(start, transfer);
    written_back_ = std::max(written_back_,
                             std::max(now(), begin + transfer) + controller_.profile.write_latency);
  }
}

void SimRegion::flush(Bytes offset, Bytes length) {
  if (!counted()) return;
  meter_->flush(offset, length);
  const Bytes lines = lines_of(offset, std::max<Bytes>(length, 1));
  const Time start = now();
  if (journal_) [[unlikely]]
    journal_->flush(SimThread::running(), offset, length, start);
  if (SimThread* thread = SimThread::running()) {
    thread->charge_time(thread->cpu().flush * static_cast<std::int64_t>(lines));
  }
  const Picoseconds transfer =
      transfer_time(lines * kCacheLine, controller_.profile.write_bandwidth);
  const Time begin = controller_.writes.take(start, transfer);
  written_back_ = std::max(written_back_,
                           std::max(now(), begin + transfer) + controller_.profile.write_latency);
}

void SimRegion::drain() {
  if (!counted()) return;
  meter_->fence();
  if (SimThread* thread = SimThread::running()) {
    thread->charge_time(thread->cpu().fence);
    thread->spin_until(written_back_);
  }
  if (journal_) [[unlikely]]
    journal_->fence(SimThread::running(), now());
}

void SimRegion::device_write(Bytes offset, std::span<const std::byte> from, LineTimes visible,
                             Time accepted) {
  if (counted()) {
    meter_->bytes(Cause::one_sided, {base_ + offset, from.size()}, from);
    if (!from.empty()) meter_->lines_written(Cause::one_sided, offset, from.size());
  }
  change(Journal::Kind::device, offset, from, visible, accepted);
}

void SimRegion::device_store(Bytes offset, std::uint64_t value) {
  device_write(offset, std::as_bytes(std::span(&value, 1)), {engine_.now(), {}}, engine_.now());
}

void SimRegion::device_flush(Bytes offset, Bytes length) {
  if (journal_) [[unlikely]]
    journal_->device_flush(offset, length, engine_.now());
}

std::uint64_t SimRegion::device_load(Bytes offset) const {
  std::uint64_t value;
  timeline_.device_read(offset, std::as_writable_bytes(std::span(&value, 1)), {engine_.now(), {}});
  return value;
}

}  // namespace perdura::pmem::sim
