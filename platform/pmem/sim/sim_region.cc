#include "platform/pmem/sim/sim_region.h"

#include <algorithm>

#include "platform/sim/kernel/thread.h"

namespace perdura::pmem::sim {

using perdura::sim::SimThread;
using perdura::sim::times;

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

void SimRegion::track(std::shared_ptr<Journal> journal) {
  journal_ = std::move(journal);
  id_ = journal_->attach(file_ ? Medium::disk : Medium::pm, mapping_, base_);
}

void SimRegion::change(Timeline::Writer writer, Bytes offset, std::span<const std::byte> from,
                       LineTimes visible) {
  if (journal_ && !journal_->powered()) [[unlikely]]
    return;
  if (engine_.relaxed()) [[unlikely]] {
    SimThread* const thread = SimThread::running();
    if (writer == Timeline::Writer::cpu && thread != nullptr) return buffer(*thread, offset, from);
    visible = {engine_.now(), {}};
  }
  if (crashed_ != nullptr) [[unlikely]]
    crashed_->before_change(offset, from.size(), timeline_);
  if (file_) [[unlikely]]
    file_->changed(offset, from.size());
  SimThread* const thread = writer == Timeline::Writer::cpu ? SimThread::running() : nullptr;
  timeline_.change(engine_.now(), offset, from, writer, visible,
                   thread != nullptr ? &thread->storing() : nullptr);
  if (crashed_ != nullptr) [[unlikely]]
    crashed_->after_change(timeline_);
}

void SimRegion::buffer(SimThread& thread, Bytes offset, std::span<const std::byte> from) {
  while (!from.empty()) {
    const Bytes part = std::min<Bytes>(from.size(), kWord - offset % kWord);
    std::vector<std::byte> bytes(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(part));
    thread.store_buffer().push({this, offset, bytes, [self = shared_from_this(), offset, bytes] {
                                  self->timeline_.change(self->engine_.now(), offset, bytes,
                                                         Timeline::Writer::cpu,
                                                         {self->engine_.now(), {}});
                                }});
    offset += part;
    from = from.subspan(part);
  }
}

void SimRegion::cpu_read(Bytes offset, std::span<std::byte> into) {
  SimThread* const thread = SimThread::running();
  if (file_) [[unlikely]]
    fetch_from_disk(offset, into.size());
  timeline_.forget_before(engine_.now());
  about_to_read(offset, into.size(), Timeline::Writer::cpu);
  timeline_.cpu_read(offset, into, now(), thread != nullptr ? &thread->storing() : nullptr);
  if (engine_.relaxed() && thread != nullptr) [[unlikely]] {
    thread->store_buffer().forward(this, offset, into);
  }
}

void SimRegion::withdraw(const SimThread& thread, Time from) {
  timeline_.withdraw(thread.storing(), engine_.now(), from);
}

std::uint64_t SimRegion::load(Bytes offset) {
  if (SimThread* thread = SimThread::running()) thread->charge_time(thread->cpu().load);
  std::uint64_t value;
  cpu_read(offset, std::as_writable_bytes(std::span(&value, 1)));
  if (journal_) [[unlikely]]
    journal_->load(SimThread::running(), {id_, offset}, kWord, now());
  return value;
}

Time SimRegion::start_loads(SimThread& thread, Bytes offset, Bytes lines) {
  const std::uint32_t limit = controller_.profile().dimms->loads_under_way;
  Time last{};
  for (Bytes line = 0; line < lines; ++line) {
    thread.spin_until(thread.fill_buffer_free(limit));
    last = controller_.read(engine_.now(), thread.now(), address_ + offset + line * kCacheLine, 1)
               .first;
    thread.fill_buffer_taken_until(last);
  }
  return last;
}

void SimRegion::fetch(Bytes offset, Bytes lines, bool whole) {
  SimThread* const thread = SimThread::running();
  if (thread == nullptr) return;
  if (controller_.has_dimms()) {
    thread->spin_until(start_loads(*thread, offset, lines));
    return;
  }
  const auto [first, last] =
      controller_.read(engine_.now(), thread->now(), address_ + offset, lines);
  thread->spin_until(whole ? last : first);
}

std::uint64_t SimRegion::load_from_memory(Bytes offset) {
  fetch(offset, 1, false);
  std::uint64_t value;
  cpu_read(offset, std::as_writable_bytes(std::span(&value, 1)));
  if (journal_) [[unlikely]]
    journal_->load(SimThread::running(), {id_, offset}, kWord, now());
  return value;
}

void SimRegion::scan(Bytes offset, Bytes length) {
  SimThread* const thread = SimThread::running();
  if (thread != nullptr && controller_.has_dimms()) {
    // Nothing depends on the loaded values, so the thread goes on while the last lines are still
    // being fetched.
    start_loads(*thread, offset, lines_of(offset, length));
  } else {
    fetch(offset, lines_of(offset, length), true);
  }
  if (journal_) [[unlikely]]
    journal_->load(SimThread::running(), {id_, offset}, length, now());
}

void SimRegion::read(Bytes offset, std::span<std::byte> into) {
  // Reading a range is assumed to miss the caches: it takes the memory's time and then the CPU's
  // time for the copy.
  fetch(offset, lines_of(offset, into.size()), true);
  if (SimThread* thread = SimThread::running()) thread->charge(Work::copy, into.size());
  cpu_read(offset, into);
  if (journal_) [[unlikely]]
    journal_->load(SimThread::running(), {id_, offset}, into.size(), now());
}

void SimRegion::store(Bytes offset, std::uint64_t value, const WordLayout& layout) {
  if (ignores_stores_) [[unlikely]]
    return;
  if (SimThread* thread = SimThread::running()) thread->charge_time(thread->cpu().store);
  if (counted()) meter_->word(Cause::local_store, newest(offset), value, layout);
  const auto bytes = std::as_bytes(std::span(&value, 1));
  if (journal_) [[unlikely]]
    journal_->store(SimThread::running(), {id_, offset}, bytes, {now(), {}});
  change(Timeline::Writer::cpu, offset, bytes, {now(), {}});
}

bool SimRegion::compare_exchange(Bytes offset, std::uint64_t& expected, std::uint64_t desired) {
  // A locked instruction begins, and ends, with an empty store buffer.
  SimThread* const thread = engine_.relaxed() ? SimThread::running() : nullptr;
  if (thread != nullptr) [[unlikely]]
    thread->store_buffer().drain();
  const std::uint64_t value = load(offset);
  if (value != expected) {
    expected = value;
    return false;
  }
  store(offset, desired, kWholeWord);
  if (thread != nullptr) [[unlikely]]
    thread->store_buffer().drain();
  return true;
}

void SimRegion::write(Bytes offset, std::span<const std::byte> from, bool streaming) {
  if (ignores_stores_) [[unlikely]]
    return;
  const Time start = now();
  if (counted()) {
    meter_->bytes(Cause::local_store, {base_ + offset, from.size()}, from);
    if (streaming) meter_->lines_written(Cause::local_store, offset, from.size());
  }
  const Bytes lines = lines_of(offset, from.size());
  SimThread* const thread = SimThread::running();
  if (thread != nullptr) {
    thread->charge(Work::copy, from.size());
    thread->charge_time(times(thread->cpu().store, lines));
  }
  if (lines == 0) return;
  const Picoseconds per_line = (now() - start) / static_cast<std::int64_t>(lines);
  const LineTimes visible{start + per_line, per_line};
  if (journal_) [[unlikely]] {
    if (streaming) {
      journal_->stream(thread, {id_, offset}, from, visible);
    } else {
      journal_->store(thread, {id_, offset}, from, visible);
    }
  }
  change(Timeline::Writer::cpu, offset, from, visible);
  if (streaming) write_back(thread, start, offset, lines, true);
}

void SimRegion::flush(Bytes offset, Bytes length) {
  if (file_) [[unlikely]]
    return write_back_to_disk(offset, length);
  if (!counted()) return;
  meter_->flush(offset, length);
  const Bytes lines = lines_of(offset, std::max<Bytes>(length, 1));
  const Time start = now();
  SimThread* const thread = SimThread::running();
  if (journal_) [[unlikely]]
    journal_->flush(thread, {id_, offset}, length, start);
  if (thread != nullptr) {
    thread->charge_time(times(thread->cpu().flush, lines));
  }
  write_back(thread, start, offset, lines, false);
}

// A fence of this thread waits for these write-backs; fences of other threads do not.
void SimRegion::write_back(SimThread* thread, Time start, Bytes offset, Bytes lines,
                           bool streaming) {
  const Picoseconds gap =
      controller_.has_dimms() ? (now() - start) / static_cast<std::int64_t>(lines) : Picoseconds{};
  const Time taken = controller_.write(engine_.now(), start, address_ + offset, lines, gap);
  if (thread == nullptr) return;
  // A store waits until the memory controller's queue has room. For DRAM, whose write-backs no
  // fence waits for, it waits for the memory itself.
  if (controller_.has_dimms() || !counted()) thread->spin_until(taken);
  thread->written_back_by(std::max(now(), taken) + controller_.write_latency(streaming));
}

MemoryController::Read SimRegion::device_reads(Time at, Bytes offset, Bytes lines) {
  return controller_.read(engine_.now(), at, address_ + offset, lines);
}

Time SimRegion::device_writes(Time at, Bytes offset, Bytes lines) {
  return controller_.write(engine_.now(), at, address_ + offset, lines);
}

// A thread's fences do not wait for its write-backs to disk, so the journal treats these as those
// of another writer.
void SimRegion::write_back_to_disk(Bytes offset, Bytes length) {
  SimThread* const thread = SimThread::running();
  if (thread != nullptr) thread->charge_time(file_->system_call());
  if (journal_ && thread != nullptr) [[unlikely]]
    journal_->flush(&thread->storing(), {id_, offset}, length, now());
  file_->write_back(engine_.now(), now(), offset, length);
}

void SimRegion::wait_for_disk() {
  SimThread* const thread = SimThread::running();
  if (thread == nullptr) return;
  thread->charge_time(file_->system_call());
  thread->spin_until(file_->written(now()));
  if (journal_) [[unlikely]]
    journal_->fence(&thread->storing(), now());
}

void SimRegion::fetch_from_disk(Bytes offset, Bytes length) {
  SimThread* const thread = SimThread::running();
  if (thread != nullptr) thread->spin_until(file_->fetch(engine_.now(), now(), offset, length));
}

void SimRegion::drain() {
  if (file_) [[unlikely]]
    return wait_for_disk();
  if (!counted()) return;
  meter_->fence();
  SimThread* const thread = SimThread::running();
  if (thread != nullptr) {
    thread->charge_time(thread->cpu().fence);
    thread->wait_for_write_backs();
  }
  if (journal_) [[unlikely]]
    journal_->fence(thread, now());
}

// Lines that a CPU stores are counted when they are flushed.
void SimRegion::count_placement(Bytes offset, std::span<const std::byte> from, Cause cause) {
  if (!counted()) return;
  meter_->bytes(cause, {base_ + offset, from.size()}, from);
  if (!from.empty() && cause == Cause::one_sided) meter_->lines_written(cause, offset, from.size());
}

void SimRegion::device_write(Journal::Operation operation, Bytes offset,
                             std::span<const std::byte> from, LineTimes visible, Cause cause) {
  count_placement(offset, from, cause);
  if (journal_) [[unlikely]]
    journal_->place(operation, {id_, offset}, from, visible);
  change(Timeline::Writer::device, offset, from, visible);
}

void SimRegion::device_store(Journal::Operation operation, Bytes offset, std::uint64_t value) {
  device_write(operation, offset, std::as_bytes(std::span(&value, 1)), {engine_.now(), {}});
}

void SimRegion::answer_arrived(Bytes offset, std::span<const std::byte> from, Cause cause) {
  count_placement(offset, from, cause);
  if (journal_) [[unlikely]]
    journal_->place_answer({id_, offset}, from);
  change(Timeline::Writer::device, offset, from, {engine_.now(), {}});
}

void SimRegion::begin_device_read(Bytes offset, Bytes length, LineTimes seen) {
  timeline_.begin_device_read(seen.first);
  if (journal_) [[unlikely]]
    journal_->read({id_, offset}, length, seen);
}

void SimRegion::end_device_read(Bytes offset, std::span<std::byte> into, LineTimes seen) {
  timeline_.forget_before(engine_.now());
  about_to_read(offset, into.size(), Timeline::Writer::device);
  timeline_.device_read(offset, into, seen);
  timeline_.end_device_read(seen.first);
}

void SimRegion::device_flush(Journal::Operation operation, Bytes offset, Bytes length) {
  if (journal_) [[unlikely]]
    journal_->cover(operation, {id_, offset}, length);
}

void SimRegion::device_commit(Journal::Operation operation, Bytes offset, Bytes length) {
  if (journal_) [[unlikely]]
    journal_->read({id_, offset}, length, {engine_.now(), {}});
  device_flush(operation, offset, length);
}

std::uint64_t SimRegion::device_load(Bytes offset) {
  about_to_read(offset, kWord, Timeline::Writer::device);
  std::uint64_t value;
  timeline_.device_read(offset, std::as_writable_bytes(std::span(&value, 1)), {engine_.now(), {}});
  return value;
}

}  // namespace perdura::pmem::sim
