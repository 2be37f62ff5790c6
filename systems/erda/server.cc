#include "systems/erda/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "platform/error.h"
#include "platform/runtime/work.h"

namespace perdura::systems::erda {

namespace {

constexpr std::uint32_t kReceiveDepth = 1024;
// How long a second writer of a key waits before it looks at the first one's object again.
constexpr Picoseconds kRecheck = Microseconds(2);

hopscotch::StoredKey stored_key(std::uint8_t format, std::span<const std::byte> stored) {
  hopscotch::StoredKey key{format, stored, {}};
  if (format == hopscotch::kDigestFormat) {
    std::copy_n(stored.begin(), std::min<std::size_t>(stored.size(), key.digest.size()),
                key.digest.begin());
  }
  return key;
}

}  // namespace

ErdaPartition::ErdaPartition(Thread& thread, std::string pool_name, const KvConfig& config)
    : thread_(thread),
      layout_(shape_for(config)),
      format_(config.key_size, config.value_size),
      pool_(open_pool(thread, pool_name, layout_.shape())),
      control_(thread.node.create_region(pool_name + ".control",
                                         request_slot(layout_.table(), config.sessions * kLanes),
                                         pmem::Medium::dram)),
      buffers_(thread.node.create_region(pool_name + ".buffers",
                                         kReceiveDepth * request_slot_size(layout_.table()) +
                                             config.sessions * kLanes * sizeof(Reply),
                                         pmem::Medium::dram)),
      table_(*pool_, layout_.table_offset(), layout_.table(), {control_.get(), kDisplacements}),
      log_(*pool_, layout_),
      pool_memory_(thread.endpoint.register_memory(
          *pool_, fabric::Access::remote_read | fabric::Access::remote_write)),
      control_memory_(thread.endpoint.register_memory(
          *control_, fabric::Access::remote_read | fabric::Access::remote_write)),
      buffer_memory_(thread.endpoint.register_memory(*buffers_, fabric::Access::local)),
      receive_queue_(thread.endpoint.create_receive_queue(kReceiveDepth)),
      sessions_(config.sessions),
      unchecked_before_(layout_.shape().heads),
      request_(request_slot_size(layout_.table())),
      object_(layout_.shape().segment_bytes) {
  recover();
  const auto slot = static_cast<std::uint32_t>(request_slot_size(layout_.table()));
  for (std::uint32_t i = 0; i < kReceiveDepth; ++i) {
    receive_queue_->post(buffer_memory_.local(Bytes{i} * slot, slot), i);
  }
  for (std::uint32_t id = 0; id < sessions_.size(); ++id) sessions_[id].id = id;
}

// --- opening -------------------------------------------------------------------------------------

std::unique_ptr<pmem::Region> ErdaPartition::open_pool(Thread& thread, const std::string& name,
                                                       const Superblock& shape) {
  const PoolLayout layout(shape);
  std::unique_ptr<pmem::Region> pool = thread.node.open_region(name);
  if (pool == nullptr) {
    pool = thread.node.create_region(name, layout.size(), pmem::Medium::pm);
  } else if (pool->size() < sizeof(Superblock)) {
    throw UsageError(fmt::format("pool '{}' is damaged: it has {} bytes; remove it to start anew",
                                 name, pool->size()));
  }
  const auto found = pool->read_object<Superblock>(0);
  if (found.magic == 0) {
    // New, or a crash came before the superblock's magic, which is stored last.
    pool->write(kWord, std::as_bytes(std::span(&shape, 1)).subspan(kWord));
    pool->persist(0, sizeof shape);
    pool->store(0, shape.magic);
    pool->persist(0, kWord);
    return pool;
  }
  if (found.magic != Superblock::kMagic || found.crc != found.computed_crc()) {
    throw UsageError(
        fmt::format("pool '{}' is damaged or not Erda's: its superblock does not verify; remove it "
                    "to start anew",
                    name));
  }
  if (std::memcmp(&found, &shape, sizeof shape) != 0 || pool->size() < layout.size()) {
    throw UsageError(fmt::format(
        "pool '{}' was made with another configuration (key size {}, value size {}, {} buckets, {} "
        "regions of {} bytes); use the same one, or remove the pool",
        name, found.key_size, found.value_size, found.buckets, found.regions, found.region_bytes));
  }
  for (std::uint64_t i = 0; i < shape.heads * shape.regions; ++i) {
    if (pool->load(PoolLayout::kHeadArray + i * kWord) > shape.regions) {
      throw UsageError(fmt::format(
          "pool '{}' is damaged: its head array names a region that is not there", name));
    }
  }
  return pool;
}

// Section 4.2: after a failure the server checks the objects in the last segment of each head.
// Versions in earlier segments are checked when they are next updated (may_be_incomplete).
void ErdaPartition::recover() {
  table_.recover();
  struct Last {
    Position position;
    bool whole = false;
    Bytes size = 0;
  };
  std::vector<Last> last(layout_.shape().heads);
  table_.for_each([&](const hopscotch::Entry& entry, std::span<const std::byte>) {
    const VersionWord word(entry.word);
    if (entry.tag < 1 || entry.tag > last.size() || !log_.contains(entry.tag, word.newest()) ||
        !log_.contains(entry.tag, word.previous())) {
      throw UsageError(
          fmt::format("pool '{}' is damaged: the entry in bucket {} points outside the log",
                      pool_->name(), entry.bucket));
    }
    Last& head = last[entry.tag - 1];
    head.position = std::max({head.position, word.newest(), word.previous()});
  });
  table_.for_each([&](const hopscotch::Entry& entry, std::span<const std::byte>) {
    const VersionWord word(entry.word);
    Last& head = last[entry.tag - 1];
    if (word.newest() < log_.segment_of(head.position)) return;
    if (!is_whole(entry.tag, word.newest())) {
      restore(entry);
    } else if (word.newest() == head.position) {
      head.whole = true;
      head.size = format_.size_of(object_);
    }
  });
  for (std::size_t h = 0; h < last.size(); ++h) {
    if (!last[h].position) continue;
    std::optional<Position> end;
    if (last[h].whole) {
      end = Position{last[h].position.units +
                     static_cast<std::uint32_t>(round_up(last[h].size, kWord) / kWord)};
    }
    log_.resume(static_cast<std::uint8_t>(h + 1), last[h].position, end);
    unchecked_before_[h] = log_.segment_of(last[h].position);
  }
}

// --- serving -------------------------------------------------------------------------------------

Task<> ErdaPartition::serve() {
  thread_.executor.spawn(accept_sessions());
  for (;;) {
    const fabric::ReceiveCompletion message = co_await completions_.next();
    if (message.status != fabric::Status::success) {
      end_session(*message.queue_pair);
      continue;
    }
    take_request(message);
  }
}

Task<> ErdaPartition::accept_sessions() {
  for (;;) {
    const auto request = co_await thread_.endpoint.next_connection();
    const auto free = std::find_if(sessions_.begin(), sessions_.end(),
                                   [](const Session& s) { return s.queue_pair == nullptr; });
    if (free == sessions_.end()) {
      request->reject();
      continue;
    }
    const Welcome welcome{free->id, pool_memory_.key, control_memory_.key};
    free->queue_pair = request->accept(
        {.receive_queue = receive_queue_.get(), .completions = &completions_, .send_depth = 64},
        std::as_bytes(std::span(&welcome, 1)));
  }
}

void ErdaPartition::take_request(const fabric::ReceiveCompletion& message) {
  charge(Work::dispatch);
  // A put or erase lies in the client's request slot, a report in the receive buffer.
  if (message.immediate) {
    if (*message.immediate >= sessions_.size() * kLanes) return;  // not a client of ours
    control_->read(request_slot(layout_.table(), *message.immediate), request_);
  } else {
    buffers_->read(message.buffer.offset, std::span(request_).first(message.buffer.length));
  }
  const auto slot = static_cast<std::uint32_t>(request_slot_size(layout_.table()));
  receive_queue_->post(buffer_memory_.local(message.buffer_id * slot, slot), message.buffer_id);

  RequestHeader request;
  std::memcpy(&request, request_.data(), sizeof request);
  const hopscotch::StoredKey key =
      stored_key(request.format, std::span<const std::byte>(request_).subspan(
                                     sizeof request, layout_.table().used(request.format)));
  if (request.kind == RequestKind::report) return take_report(request, key);

  const std::uint32_t client = *message.immediate;
  // A lane asks again only after its last write has ended.
  std::optional<Reservation>& ended = session_of(client).lanes[client % kLanes];
  if (ended) {
    writing_.erase(place(ended->head, ended->position));
    ended.reset();
  }
  if (!write_now(client, request, key)) {
    thread_.executor.spawn(
        write_when_free(client, request, {key.bytes().begin(), key.bytes().end()}));
  }
}

Task<> ErdaPartition::write_when_free(std::uint32_t client, RequestHeader request,
                                      std::vector<std::byte> key) {
  const std::uint64_t generation = session_of(client).generation;
  do {
    co_await sleep_for(kRecheck);
    if (session_of(client).generation != generation) co_return;  // gone while it waited
  } while (!write_now(client, request, stored_key(request.format, key)));
}

// False if the newest version of the key is still being written by another client.
bool ErdaPartition::write_now(std::uint32_t client, const RequestHeader& request,
                              const hopscotch::StoredKey& key) {
  std::optional<hopscotch::Entry> entry = table_.find(key);
  if (entry) {
    const Position newest = VersionWord(entry->word).newest();
    if (may_be_incomplete(entry->tag, newest) && !is_whole(entry->tag, newest)) {
      if (being_written(entry->tag, newest)) return false;
      restore(*entry);
      entry = table_.find(key);
    }
  }
  Reservation reservation;
  const Outcome outcome = begin_version(request, key, entry, reservation);
  Bytes offset = 0;
  if (outcome == Outcome::ok) {
    offset = log_.offset_of(reservation.head, reservation.position);
    writing_.insert(place(reservation.head, reservation.position));
    reservation.format = key.format;
    reservation.key.assign(key.bytes().begin(), key.bytes().end());
    session_of(client).lanes[client % kLanes] = std::move(reservation);
  }
  answer(client, outcome, offset);
  return true;
}

// Sections 3.3 and 4.1: reserve space, then let the entry point to it by one atomic store.
Outcome ErdaPartition::begin_version(const RequestHeader& request, const hopscotch::StoredKey& key,
                                     const std::optional<hopscotch::Entry>& entry,
                                     Reservation& reservation) {
  if (request.object_size + kWord > layout_.shape().segment_bytes) return Outcome::too_large;
  if (request.kind == RequestKind::erase) {
    if (!entry) return Outcome::not_found;
    const auto object = read_version(entry->tag, VersionWord(entry->word).newest());
    if (object && object->deleted) return Outcome::not_found;
  }
  reservation.head = entry ? entry->tag : head_of(key);
  const std::optional<Position> position = log_.reserve(reservation.head, request.object_size);
  if (!position) return Outcome::out_of_space;
  reservation.position = *position;
  if (entry) {
    table_.set_word(entry->bucket, VersionWord(entry->word).updated(*position).raw(),
                    kVersionLayout);
    return Outcome::ok;
  }
  const auto created =
      table_.insert(key, reservation.head, VersionWord::created(*position).raw(), kVersionLayout);
  return created ? Outcome::ok : Outcome::out_of_space;
}

// Section 4.2: a reader found the newest object incomplete. It may only be late.
void ErdaPartition::take_report(const RequestHeader& request, const hopscotch::StoredKey& key) {
  const std::optional<hopscotch::Entry> entry = table_.find(key);
  if (!entry || entry->word != request.word) return;
  const Position newest = VersionWord(entry->word).newest();
  if (being_written(entry->tag, newest) || is_whole(entry->tag, newest)) return;
  restore(*entry);
}

void ErdaPartition::end_session(fabric::QueuePair& queue_pair) {
  const auto session = std::find_if(sessions_.begin(), sessions_.end(), [&](const Session& s) {
    return s.queue_pair.get() == &queue_pair;
  });
  session->queue_pair.reset();
  ++session->generation;
  for (std::optional<Reservation>& lane : session->lanes) {
    if (!lane) continue;
    const Reservation gone = std::move(*lane);
    lane.reset();
    writing_.erase(place(gone.head, gone.position));
    const std::optional<hopscotch::Entry> entry = table_.find(stored_key(gone.format, gone.key));
    if (entry && VersionWord(entry->word).newest() == gone.position &&
        !is_whole(gone.head, gone.position)) {
      restore(*entry);
    }
  }
}

void ErdaPartition::answer(std::uint32_t client, Outcome outcome, Bytes object_offset) {
  const Reply reply{client % kLanes, outcome, {}, object_offset};
  const Bytes replies = kReceiveDepth * request_slot_size(layout_.table());
  const fabric::LocalBuffer buffer =
      buffer_memory_.local(replies + client * sizeof reply, sizeof reply);
  std::memcpy(buffer.bytes().data(), &reply, sizeof reply);
  session_of(client).queue_pair->post_unsignaled({.opcode = fabric::Opcode::send, .local = buffer});
}

// --- versions ------------------------------------------------------------------------------------

bool ErdaPartition::may_be_incomplete(std::uint8_t head, Position position) const {
  return being_written(head, position) || position < unchecked_before_[head - 1];
}

std::optional<ObjectFormat::Object> ErdaPartition::read_version(std::uint8_t head,
                                                                Position position) {
  if (!position) return std::nullopt;
  const Bytes offset = log_.offset_of(head, position);
  const Bytes room =
      layout_.shape().segment_bytes - position.bytes() % layout_.shape().segment_bytes;
  const Bytes first = std::min(format_.typical_size(), room);
  pool_->read(offset, std::span(object_).first(first));
  const Bytes size = format_.size_of(object_);
  if (size > room) return std::nullopt;
  if (size > first) pool_->read(offset + first, std::span(object_).subspan(first, size - first));
  return format_.decode(std::span<const std::byte>(object_).first(size));
}

bool ErdaPartition::is_whole(std::uint8_t head, Position position) {
  return read_version(head, position).has_value();
}

void ErdaPartition::restore(const hopscotch::Entry& entry) {
  const VersionWord word(entry.word);
  if (!word.previous()) {
    table_.clear(entry.bucket);  // the key was being created: it never existed
    return;
  }
  table_.set_word(entry.bucket, word.restored().raw(), kVersionLayout);
}

std::uint8_t ErdaPartition::head_of(const hopscotch::StoredKey& key) const {
  return static_cast<std::uint8_t>(1 + layout_.table().home(key) % layout_.shape().heads);
}

}  // namespace perdura::systems::erda
