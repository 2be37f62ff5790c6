#include "systems/mojim/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/base/error.h"
#include "rpc/messages.h"

namespace perdura::systems::mojim {

using services::MemoryRange;
using services::SyncError;

namespace {

// The range, extended to whole units of flushing.
MemoryRange widened(MemoryRange range, Bytes unit, Bytes size) {
  const Bytes first = range.offset / unit * unit;
  return {first, std::min(round_up(range.offset + range.length, unit), size) - first};
}

class Mapped final : public services::MappedMemory {
 public:
  explicit Mapped(std::shared_ptr<SyncSession> session) : session_(std::move(session)) {}
  pmem::Region& region() override { return session_->region(); }
  Task<tl::expected<void, SyncError>> sync(std::span<const MemoryRange> ranges) override {
    return session_->sync(ranges);
  }
  Task<> settle() override { return session_->settle(); }
  std::vector<double> metrics() const override { return session_->metrics(); }

 private:
  std::shared_ptr<SyncSession> session_;
};

}  // namespace

SyncSession::SyncSession(Thread& thread, std::shared_ptr<Primary> primary, std::uint32_t number,
                         bool gives_contents)
    : thread_(thread),
      primary_(std::move(primary)),
      channel_(primary_->channel_of(number)),
      number_(number),
      slot_size_(primary_->copies_data() || gives_contents ? primary_->shape().slot_size()
                                                           : sizeof(RequestHeader)),
      staging_(thread.node.create_region(fmt::format("mojim staging {}", number),
                                         kAreas * kBatch * slot_size_, pmem::Medium::dram)) {}

// The endpoint of an application's thread goes away with it, so its connections have to end first.
SyncSession::~SyncSession() {
  if (primary_->posts_itself()) channel_.disconnect();
  primary_->give_back(number_);
}

// Keeps the connections of a background thread until its tasks are destroyed, which is before its
// endpoint is.
Task<> keep_connected(Primary::Channel& channel) {
  struct Connected {
    Primary::Channel& channel;
    ~Connected() { channel.disconnect(); }
  } connected{channel};
  WaitList for_ever;
  co_await wait(for_ever);
}

Task<std::unique_ptr<services::MappedMemory>> SyncSession::open(Thread& thread,
                                                                std::shared_ptr<Primary> primary) {
  co_return std::make_unique<Mapped>(co_await connect(thread, std::move(primary), false));
}

Task<std::shared_ptr<SyncSession>> SyncSession::connect(Thread& thread,
                                                        std::shared_ptr<Primary> primary,
                                                        bool gives_contents,
                                                        const CopyingSteps& steps) {
  const std::uint32_t number = co_await primary->take_number();
  std::shared_ptr<SyncSession> session(
      new SyncSession(thread, std::move(primary), number, gives_contents));
  if (session->primary_->copies().empty()) co_return session;
  if (session->primary_->posts_itself()) {
    co_await session->prepare(thread);
  } else {
    BackgroundThread& posting = *session->channel_.thread;
    co_await posting.run(session->prepare(posting.thread()));
  }
  if (session->primary_->begin_copying()) {
    if (steps.begins) steps.begins(session);
    co_await session->copy_region(steps);
  }
  co_await session->primary_->wait_for_copying();
  co_return session;
}

// On the thread that posts.
Task<> SyncSession::prepare(Thread& posting) {
  posting.endpoint.register_memory(*staging_, fabric::Access::local);
  posting.endpoint.register_memory(primary_->region(), fabric::Access::local);
  co_await primary_->connect(posting, channel_, number_);
  if (channel_.thread && !std::exchange(channel_.is_kept, true))
    Executor::current().spawn(keep_connected(channel_));
}

// --- sync points ---------------------------------------------------------------------------------

Task<tl::expected<void, SyncError>> SyncSession::sync(std::span<const MemoryRange> ranges) {
  return sync(Sending{.ranges = ranges});
}

Task<tl::expected<void, SyncError>> SyncSession::sync(std::span<const MemoryRange> ranges,
                                                      std::span<const std::byte> contents) {
  return sync(Sending{.ranges = ranges, .contents = contents});
}

Task<tl::expected<void, SyncError>> SyncSession::sync(Sending sending) {
  const std::span<const MemoryRange> ranges = sending.ranges;
  for (const MemoryRange& range : ranges) {
    const Bytes size = region().size();
    if (range.offset > size || range.length > size - range.offset) {
      co_return tl::unexpected(SyncError::outside);
    }
  }
  ++counts_.syncs;
  if (!primary_->mode().is_replicated()) {
    flush(ranges, kPage);  // the least that an msync of Linux flushes (section 3.4.3)
    co_return tl::expected<void, SyncError>{};
  }
  sending.count = requests_of(ranges);
  if (sending.count == 0) co_return tl::expected<void, SyncError>{};
  if (sending.count > primary_->shape().slots) co_return tl::unexpected(SyncError::too_large);
  if (primary_->is_replaced()) co_return tl::unexpected(SyncError::replaced);
  const bool flushes = primary_->mode().flushes || primary_->keeps_own();
  if (flushes) {
    flush(ranges, kCacheLine);
    if (primary_->is_alone()) co_return tl::expected<void, SyncError>{};
  } else {
    primary_->note_unflushed(ranges);
  }
  counts_.requests += sending.count;
  co_await send(sending);
  if (!primary_->has_complete_copy()) {
    // Perhaps no copy has it, and another thread flushed before it was noted as unflushed.
    if (!flushes) flush(ranges, kCacheLine);
    co_await primary_->wait_until_own();
  }
  if (primary_->begin_copying()) co_await copy_region();
  if (primary_->is_replaced()) co_return tl::unexpected(SyncError::replaced);
  co_return tl::expected<void, SyncError>{};
}

Task<> SyncSession::send(Sending& sending) {
  sending.area = next_area_;
  next_area_ = (next_area_ + 1) % kAreas;
  while (used_[sending.area]) co_await wait(freed_);
  used_[sending.area] = true;
  // The id is taken first, so that what is gathered later holds all that was stored before.
  sending.turn = primary_->take_turn(channel_, sending.count);
  sending.is_staged = sending.count <= kBatch;
  if (sending.is_staged) {
    for_each_request(sending.ranges, [&](std::uint32_t index, MemoryRange range, Bytes at) {
      stage(sending, index, range, at);
    });
  }
  if (!primary_->mode().waits && sending.is_staged) {
    thread_.executor.spawn(
        send_later(shared_from_this(), sending, {sending.ranges.begin(), sending.ranges.end()}));
    co_return;
  }
  if (primary_->posts_itself()) {
    co_await transmit(sending);
  } else {
    co_await channel_.thread->run(transmit(sending));
  }
  used_[sending.area] = false;
  freed_.wake_all();
}

// Gives the whole region to copies that hold something else.
Task<> SyncSession::copy_region(const CopyingSteps& steps) {
  const Bytes most = primary_->shape().slot_bytes;
  const Bytes size = region().size();
  std::uint64_t last_id = 0;
  for (Bytes done = 0; done < size; done += most) {
    const MemoryRange range{done, std::min(most, size - done)};
    if (steps.ends && done + most >= size) co_await steps.ends();
    Sending sending{.ranges = std::span(&range, 1), .count = 1};
    sending.copied = done + most < size ? kOfCopy : kEndOfCopy;
    co_await send(sending);
    last_id = sending.turn.first_id;
  }
  co_await settle();
  primary_->end_copying(last_id);
}

Task<> SyncSession::send_later(std::shared_ptr<SyncSession> self, Sending sending,
                               std::vector<MemoryRange> ranges) {
  sending.ranges = ranges;
  co_await self->channel_.thread->run(self->transmit(sending));
  self->used_[sending.area] = false;
  self->freed_.wake_all();
}

Task<> SyncSession::settle() {
  while (std::find(used_.begin(), used_.end(), true) != used_.end()) co_await wait(freed_);
}

// On the thread that posts. Waits for the sync point's turn, so that its requests are consecutive
// in each log.
Task<> SyncSession::transmit(const Sending& sending) {
  while (channel_.serving != sending.turn.number) co_await wait(channel_.waiting);
  for (std::size_t copy = 0; copy < channel_.senders.size(); ++copy) {
    if (!primary_->is_lost(copy)) co_await transmit_to(copy, sending);
  }
  primary_->end_turn(channel_);
}

Task<> SyncSession::transmit_to(std::size_t copy, const Sending& sending) {
  Sender& sender = *channel_.senders[copy];
  const std::uint64_t last = sending.turn.first_id + sending.count - 1;
  for (std::uint32_t attempt = 0; attempt <= primary_->parameters().resends; ++attempt) {
    if (!sender.connected()) {
      const std::optional<Refusal> refusal = co_await primary_->connect_again(sender);
      if (primary_->is_replaced()) co_return;
      if (!refusal || refusal->reason != Refusal::Reason::none) continue;
      ++counts_.resent;
    }
    bool sent = false;
    if (sender.last_id() >= last) {
      sent = co_await sender.wait_for(last);
    } else {
      sent = co_await try_to_send(sender, sending);
    }
    if (sent || primary_->is_lost(copy)) co_return;
  }
  co_await copy_is_lost(copy);
}

Task<bool> SyncSession::try_to_send(Sender& sender, const Sending& sending) {
  std::uint32_t first = 0;
  while (first < sending.count) {
    const std::uint32_t end = std::min(first + kBatch, sending.count);
    for_each_request(sending.ranges, [&](std::uint32_t index, MemoryRange range, Bytes at) {
      if (index < first || index >= end) return;
      if (!sending.is_staged) stage(sending, index, range, at);
      batch_[index - first] = pieces_of(sending, index, range);
    });
    const std::span<const fabric::LocalPieces> requests = std::span(batch_).first(end - first);
    if (requests.size() > 1) {
      const bool posted = co_await sender.post(requests.first(requests.size() - 1));
      if (!posted) co_return false;
    }
    // The next batch uses the same staging memory, so this is waited for at the end of each batch.
    const bool done = co_await sender.finish(requests.back(), sending.turn.first_id + end - 1,
                                             end == sending.count);
    if (!done) co_return false;
    first = end;
  }
  co_return true;
}

// --- requests ------------------------------------------------------------------------------------

template <class Use>
void SyncSession::for_each_request(std::span<const MemoryRange> ranges, Use use) const {
  const Bytes most = primary_->shape().slot_bytes;
  std::uint32_t index = 0;
  Bytes before = 0;
  for (const MemoryRange& range : ranges) {
    for (Bytes done = 0; done < range.length; done += most) {
      use(index++, MemoryRange{range.offset + done, std::min(most, range.length - done)},
          before + done);
    }
    before += range.length;
  }
}

std::uint32_t SyncSession::requests_of(std::span<const MemoryRange> ranges) const {
  const Bytes most = primary_->shape().slot_bytes;
  Bytes count = 0;
  for (const MemoryRange& range : ranges) count += (range.length + most - 1) / most;
  return static_cast<std::uint32_t>(std::min<Bytes>(count, ~std::uint32_t{0}));
}

Bytes SyncSession::slot_of(const Sending& sending, std::uint32_t index) const {
  return (sending.area * kBatch + index % kBatch) * slot_size_;
}

void SyncSession::stage(const Sending& sending, std::uint32_t index, MemoryRange range, Bytes at) {
  const Bytes slot = slot_of(sending, index);
  RequestHeader header{.id = sending.turn.first_id + index,
                       .offset = range.offset,
                       .length = static_cast<std::uint32_t>(range.length),
                       .index = index,
                       .count = sending.count,
                       .copied = sending.copied};
  if (primary_->copies_data() || !sending.contents.empty()) {
    const std::span<std::byte> data(staging_->data() + slot + sizeof header, range.length);
    if (sending.contents.empty()) {
      region().read(range.offset, data);
    } else {
      copy_bytes(data, sending.contents.subspan(at, range.length));
    }
    if (primary_->is_checked()) header.crc = checksum(header, data);
  }
  rpc::write_message(std::span(staging_->data() + slot, sizeof header), header);
}

fabric::LocalPieces SyncSession::pieces_of(const Sending& sending, std::uint32_t index,
                                           MemoryRange range) const {
  const auto length = static_cast<std::uint32_t>(range.length);
  const auto header = static_cast<std::uint32_t>(sizeof(RequestHeader));
  const Bytes slot = slot_of(sending, index);
  if (primary_->copies_data() || !sending.contents.empty()) {
    return fabric::LocalBuffer{staging_.get(), slot, header + length};
  }
  return {fabric::LocalBuffer{staging_.get(), slot, header},
          fabric::LocalBuffer{&primary_->region(), range.offset, length}};
}

void SyncSession::flush(std::span<const MemoryRange> ranges, Bytes unit) {
  for (const MemoryRange& range : ranges) {
    if (range.length == 0) continue;
    const MemoryRange whole = widened(range, unit, region().size());
    region().flush(whole.offset, whole.length);
  }
  region().drain();
}

// Gives up a copy. If no complete one is left, what only copies had safe becomes durable here
// (section 3.1.3, "Sync").
Task<> SyncSession::copy_is_lost(std::size_t copy) {
  const Time since = thread_.executor.now();
  co_await primary_->note_lost(copy);
  if (!primary_->is_alone()) co_return;
  counts_.vulnerable += thread_.executor.now() - since;
}

std::vector<double> SyncSession::metrics() const {
  std::uint64_t stalls = 0;
  for (const auto& sender : channel_.senders) stalls += sender->stalls();
  return {static_cast<double>(counts_.requests), static_cast<double>(stalls),
          static_cast<double>(counts_.resent), to_microseconds(counts_.vulnerable)};
}

}  // namespace perdura::systems::mojim
