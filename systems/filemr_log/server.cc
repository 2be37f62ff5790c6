#include "systems/filemr_log/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "platform/base/error.h"
#include "platform/runtime/work.h"
#include "rpc/messages.h"
#include "rpc/sessions.h"
#include "systems/remote_log/log_format.h"

namespace perdura::systems::filemr_log {
namespace {

constexpr std::uint64_t kMagic = 0x474F4C524D454C46;  // "FLEMRLOG"
constexpr Bytes kRoomWord = 8;
constexpr Bytes kLargestWord = 16;

// A copy of the head.
struct Head {
  std::uint64_t number = 0;
  Bytes end = 0;
  std::uint64_t check = 0;

  static Head of(const Position& position) {
    return {position.number, position.end, checksum(position)};
  }
  bool is_whole() const { return check == checksum({number, end}); }

 private:
  static std::uint64_t checksum(const Position& position) {
    // Not the checksum of zeros: memory that was never written is no head.
    return ~std::uint64_t{crc32(0, std::as_bytes(std::span(&position, 1)))};
  }
};
constexpr Bytes kHeadDistance = 32;
static_assert(sizeof(Head) <= kHeadDistance && kHeadsOffset + 2 * kHeadDistance <= kSizeOffset);

// Messages of a client: one is under way at a time.
constexpr std::uint32_t kReceives = 2;
constexpr Bytes kMessageDistance = kCacheLine;
static_assert(sizeof(PersistRequest) <= kMessageDistance);

}  // namespace

LogServer::LogServer(Thread& thread, const std::string& name, const Options& options, Apply apply)
    : thread_(thread),
      options_(options),
      apply_(std::move(apply)),
      region_(thread.node.open_region(name)) {
  check_device(options.persistence, thread.endpoint.capabilities());
  if (region_ == nullptr) {
    region_ = thread.node.create_region(name, kRoomOffset + options.room, pmem::Medium::pm);
  } else {
    // A process that died leaves visible data that may not be durable (docs/restart.md).
    region_->persist(0, region_->size());
  }
  if (region_->load(0) == 0 && region_->size() == kRoomOffset + options.room) make();
  check_shape(name);
  recover();
  std::vector<fabric::Extent> extents;
  for_each_part(head_.end, head_.end + options_.room, [&](Bytes place, Bytes length) {
    const Bytes at = extents.empty() ? head_.end : extents.back().at + extents.back().length;
    extents.push_back({at, place, length});
  });
  mapped_ = head_.end;
  using fabric::Access;
  const Access commits =
      options.persistence == Persistence::commit ? Access::remote_flush : Access::local;
  file_ = thread.endpoint.register_extents(*region_, extents,
                                           Access::remote_read | Access::remote_write | commits);
  thread.endpoint.allow_appends(file_, kSizeOffset, faults_);
  size_ = thread.endpoint.register_memory(*region_, kSizeOffset, kWord,
                                          Access::remote_read | Access::remote_flush);
  messages_ = thread.node.create_region(name + ".messages", (kReceives + 1) * kMessageDistance,
                                        pmem::Medium::dram);
  message_memory_ = thread.endpoint.register_memory(*messages_, Access::local);
}

LogServer::~LogServer() {
  client_.reset();
  thread_.endpoint.deregister_memory(message_memory_);
  thread_.endpoint.deregister_memory(size_);
  thread_.endpoint.deregister_memory(file_);
}

void LogServer::make() {
  region_->store(kRoomWord, options_.room);
  region_->store(kLargestWord, options_.largest_payload);
  region_->persist(kRoomWord, 2 * kWord);
  store_head();
  region_->store(0, kMagic);
  region_->persist(0, kWord);
}

void LogServer::check_shape(const std::string& name) const {
  const std::uint64_t room = region_->load(kRoomWord);
  const std::uint64_t largest = region_->load(kLargestWord);
  const bool is_log = region_->load(0) == kMagic;
  if (is_log && room == options_.room && largest == options_.largest_payload &&
      region_->size() == kRoomOffset + room) {
    return;
  }
  throw UsageError(fmt::format(
      "region '{}' is {}, not a log of {} bytes for records of up to {}; remove it, or ask for "
      "what it is",
      name, is_log ? fmt::format("one of {} for up to {}", room, largest) : "no log of FileMR",
      options_.room, options_.largest_payload));
}

// --- the head and the records ----------------------------------------------------------------

Position LogServer::head_in_memory() const {
  Position newest;
  bool any = false;
  for (const Bytes copy : {kHeadsOffset, kHeadsOffset + kHeadDistance}) {
    const auto head = region_->read_object<Head>(copy);
    if (!head.is_whole()) continue;
    any = true;
    if (head.number >= newest.number) newest = {head.number, head.end};
  }
  if (!any) throw PlatformError("the log is damaged: neither copy of its head is whole");
  return newest;
}

void LogServer::store_head() {
  const Head head = Head::of(head_);
  const Bytes copy = kHeadsOffset + heads_++ % 2 * kHeadDistance;
  region_->write(copy, rpc::bytes_of(head));
  region_->persist(copy, sizeof head);
}

// The size may be beyond the last record, if the data of an APPEND was lost with the power, or
// before it, if the size was.
void LogServer::recover() {
  head_ = head_in_memory();
  // The copy that is not the newest is the next to be overwritten.
  heads_ = region_->read_object<Head>(kHeadsOffset).is_whole() &&
                   region_->read_object<Head>(kHeadsOffset).number == head_.number
               ? 1
               : 0;
  Position last = head_;
  while (const auto record = record_at(last)) {
    last.end += record_size(record->size());
    ++last.number;
  }
  region_->store(kSizeOffset, last.end);
  region_->persist(kSizeOffset, kWord);
}

template <class Visit>
void LogServer::for_each_part(Bytes from, Bytes to, Visit visit) const {
  while (from < to) {
    const Bytes place = from % options_.room;
    const Bytes length = std::min(to - from, options_.room - place);
    visit(kRoomOffset + place, length);
    from += length;
  }
}

// The payload of the record that follows the ones before, if it is whole.
std::optional<std::vector<std::byte>> LogServer::record_at(const Position& before) const {
  const Bytes left = head_.end + options_.room - before.end;
  const Bytes longest = std::min(left, record_size(options_.largest_payload));
  if (longest < sizeof(remote_log::RecordHeader)) return std::nullopt;
  std::vector<std::byte> record(longest);
  Bytes read = 0;
  for_each_part(before.end, before.end + longest, [&](Bytes place, Bytes length) {
    region_->read(place, std::span(record).subspan(read, length));
    read += length;
  });
  const auto length = remote_log::length_of(record, before.number + 1, true);
  if (!length) return std::nullopt;
  record.erase(record.begin(), record.begin() + sizeof(remote_log::RecordHeader));
  record.resize(*length);
  return record;
}

// Applies the next record of those that end at `size`; returns false if there is none.
bool LogServer::apply_next(Bytes size) {
  if (head_.end >= size) return false;
  const auto record = record_at(head_);
  if (!record) {
    throw PlatformError(fmt::format("the log's size is {}, but record {} is not at {}", size,
                                    head_.number + 1, head_.end));
  }
  apply_(head_.number + 1, *record);
  ++head_.number;
  head_.end += record_size(record->size());
  return true;
}

// Applies what has arrived up to the given size, and lets its room be used again.
Task<> LogServer::apply_until(Bytes size) {
  constexpr int kBatch = 16;  // records, before messages are handled again
  while (head_.end < size) {
    for (int i = 0; i < kBatch && apply_next(size); ++i) {
    }
    store_head();
    co_await reuse_room();
  }
}

Task<> LogServer::reuse_room() {
  if (std::exchange(reusing_, true)) co_return;
  while (mapped_ < head_.end) {
    const Bytes end = head_.end;
    co_await thread_.endpoint.unmap_extents(file_, mapped_, end - mapped_);
    std::vector<fabric::Extent> freed;
    Bytes at = mapped_ + options_.room;
    for_each_part(mapped_, end, [&](Bytes place, Bytes length) {
      freed.push_back({at, place, length});
      at += length;
    });
    for (const fabric::Extent& extent : freed) {
      co_await thread_.endpoint.map_extent(file_, extent);
    }
    mapped_ = end;
  }
  reusing_ = false;
}

// --- serving -------------------------------------------------------------------------------------

Task<> LogServer::serve(Picoseconds look) {
  // Each task keeps alive what it uses: the others may be destroyed before it.
  const auto self = shared_from_this();
  Executor& executor = Executor::current();
  executor.spawn(rpc::accept_connections(
      thread_.endpoint, [self](fabric::ConnectionRequest& request) { self->accept(request); }));
  executor.spawn(answer_messages());
  executor.spawn(answer_range_faults());
  for (;;) {
    co_await apply_until(region_->load(kSizeOffset));
    co_await sleep_for(look);
  }
}

Task<> LogServer::answer_range_faults() {
  const auto self = shared_from_this();
  for (;;) {
    co_await faults_.next();
    ++range_faults_;
    co_await apply_until(region_->load(kSizeOffset));
  }
}

void LogServer::accept(fabric::ConnectionRequest& request) {
  const auto hello = rpc::read_message<Hello>(request.private_data());
  const Hello mine{options_.room, options_.largest_payload, options_.persistence};
  const bool agrees = hello.room == mine.room && hello.largest_payload == mine.largest_payload &&
                      hello.persistence == mine.persistence;
  if (!agrees || client_ != nullptr) {
    const Rejection rejection{.reason = agrees ? Reason::busy : Reason::options, .server = mine};
    return request.reject(rpc::bytes_of(rejection));
  }
  // The client before this one is gone, so the size stands still.
  const Bytes size = region_->load(kSizeOffset);
  Position tail = head_;
  while (tail.end < size) {
    const auto record = record_at(tail);
    if (!record) break;
    ++tail.number;
    tail.end += record_size(record->size());
  }
  // The last client may have died before its last record was durable, and what this one appends
  // after it would be lost with it.
  persist({head_.end, tail.end});
  receive_queue_ = thread_.endpoint.create_receive_queue(kReceives);
  for (std::uint32_t i = 0; i < kReceives; ++i) {
    receive_queue_->post(message_memory_.local(i * kMessageDistance, sizeof(PersistRequest)), i);
  }
  const Welcome welcome{.file = file_.key, .size = size_.key, .tail = tail};
  client_ = request.accept({.receive_queue = receive_queue_.get(), .completions = &completions_},
                           rpc::bytes_of(welcome));
}

Task<> LogServer::answer_messages() {
  const auto self = shared_from_this();
  for (;;) {
    const fabric::ReceiveCompletion message = co_await completions_.next();
    if (message.queue_pair != client_.get()) continue;
    if (message.status != fabric::Status::success) {
      client_.reset();
      receive_queue_.reset();
      continue;
    }
    const auto request = rpc::read_message<PersistRequest>(message.buffer.bytes());
    receive_queue_->post(
        message_memory_.local(message.buffer_id * kMessageDistance, sizeof(PersistRequest)),
        message.buffer_id);
    persist(request);
    const fabric::LocalBuffer answer =
        message_memory_.local(kReceives * kMessageDistance, sizeof(Persisted));
    rpc::write_message(answer.bytes(), Persisted{request.to});
    const fabric::Completion sent = co_await client_->send(answer);
    static_cast<void>(sent);  // if it could not be sent, the end of the connection is reported
  }
}

// Records that have been applied meanwhile are durable by their effects.
void LogServer::persist(const PersistRequest& request) {
  const Bytes from = std::max(request.from, head_.end);
  const Bytes to = std::min(request.to, head_.end + options_.room);
  for_each_part(from, to, [&](Bytes place, Bytes length) { region_->flush(place, length); });
  region_->drain();
}

}  // namespace perdura::systems::filemr_log
