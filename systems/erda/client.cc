#include "systems/erda/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "platform/error.h"
#include "platform/runtime/work.h"

namespace perdura::systems::erda {

namespace {
// Longer keys than this are refused unless the typical key is longer.
constexpr Bytes kLongestKey = 4 * KiB;
// A get that meets neither of an entry's versions has raced with updates; it looks again.
constexpr int kAttempts = 64;
}  // namespace

// A lane for as long as an operation lasts.
class ErdaSession::LaneGuard {
 public:
  explicit LaneGuard(ErdaSession& session) : session_(session) {
    const auto free =
        std::find_if(session.connection_->lanes.begin(), session.connection_->lanes.end(),
                     [](const Lane& lane) { return !lane.busy; });
    lane_ = &*free;
    lane_->busy = true;
  }
  ~LaneGuard() {
    lane_->busy = false;
    session_.free_lanes_.release();
  }
  LaneGuard(const LaneGuard&) = delete;
  LaneGuard& operator=(const LaneGuard&) = delete;
  Lane& operator*() const { return *lane_; }

 private:
  ErdaSession& session_;
  Lane* lane_;
};

// --- get: two one-sided READs, no server CPU (section 3.3)
// ----------------------------------------

Task<Result<Bytes>> ErdaSession::get(Key key, std::span<std::byte> into) {
  co_await free_lanes_.acquire();
  LaneGuard lane(*this);
  const hopscotch::StoredKey stored = layout_->table().stored(key);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) ++counts_.retries;
    const Result<hopscotch::Found> entry = co_await find_entry(*lane, stored);
    if (!entry) co_return tl::unexpected(entry.error());

    // The newest version; if it is incomplete, once more, since its writer may just be finishing
    // (section 4.3); then the previous one.
    const VersionWord word(entry->word);
    bool changed = false;
    for (const Position version : {word.newest(), word.newest(), word.previous()}) {
      if (!version) break;  // still being created, and nothing before
      const Result<ObjectFormat::Object> object = co_await read_version(*lane, entry->tag, version);
      if (!object && object.error() == Error::corrupt) {
        ++counts_.torn_reads;
        continue;
      }
      if (!object) co_return tl::unexpected(object.error());
      // The READ may have paired this entry's word with the key of the next one in its place.
      changed = !equal_bytes(object->key, key);
      if (changed) break;
      Result<Bytes> result = tl::unexpected(Error::not_found);
      if (!object->deleted) {
        if (object->value.size() > into.size()) {
          result = tl::unexpected(Error::too_large);
        } else {
          copy_bytes(into.first(object->value.size()), object->value);
          result = object->value.size();
        }
      }
      if (version != word.newest()) co_await report_incomplete(*lane, stored, entry->word);
      co_return result;
    }
    if (!changed && !word.previous()) {
      co_await report_incomplete(*lane, stored, entry->word);
      co_return tl::unexpected(Error::not_found);
    }
  }
  co_return tl::unexpected(Error::corrupt);
}

Task<Result<hopscotch::Found>> ErdaSession::find_entry(Lane& lane, hopscotch::StoredKey key) {
  const hopscotch::Geometry& table = layout_->table();
  const auto length = static_cast<std::uint32_t>(table.neighborhood_length());
  const Bytes offset = layout_->table_offset() + table.neighborhood_offset(table.home(key));
  const fabric::LocalBuffer buffer = entry_buffer(lane, length);
  do {
    if (!co_await queue_pair_->read(buffer, {welcome_.pool, offset})) {
      co_return tl::unexpected(Error::disconnected);
    }
    if (const auto found = hopscotch::find_in(buffer.bytes(), table, key)) co_return *found;
  } while (!co_await no_entry_moved(lane));
  co_return tl::unexpected(Error::not_found);
}

// A key that is missing from its neighborhood may have moved within it while the READ went over it.
Task<bool> ErdaSession::no_entry_moved(Lane& lane) {
  const fabric::LocalBuffer buffer = entry_buffer(lane, kWord);
  const std::uint64_t before = displacements_;
  if (!co_await queue_pair_->read(buffer, {welcome_.control, kDisplacements})) co_return true;
  std::memcpy(&displacements_, buffer.bytes().data(), kWord);
  co_return displacements_ == before&& displacements_ % 2 == 0;
}

Task<Result<ObjectFormat::Object>> ErdaSession::read_version(Lane& lane, std::uint8_t head,
                                                             Position position) {
  const Result<Bytes> place = co_await place_of(lane, head, position);
  if (!place) co_return tl::unexpected(place.error());
  const Bytes first = format_.typical_size();
  if (!co_await queue_pair_->read(object_buffer(lane, first), {welcome_.pool, *place})) {
    co_return tl::unexpected(Error::disconnected);
  }
  const Bytes size = format_.size_of(object_buffer(lane, first).bytes());
  if (size > layout_->shape().segment_bytes) co_return tl::unexpected(Error::corrupt);
  if (size > object_size_) co_return tl::unexpected(Error::too_large);
  if (size > first) {
    // Longer than the typical object: the rest, too.
    const fabric::LocalBuffer rest =
        object_buffer(lane, size).slice(first, static_cast<std::uint32_t>(size - first));
    if (!co_await queue_pair_->read(rest, {welcome_.pool, *place + first})) {
      co_return tl::unexpected(Error::disconnected);
    }
  }
  const auto object = format_.decode(object_buffer(lane, std::max(first, size)).bytes());
  if (!object) co_return tl::unexpected(Error::corrupt);
  co_return *object;
}

// Where a position of a head lies in the pool, by the cached head array.
Task<Result<Bytes>> ErdaSession::place_of(Lane& lane, std::uint8_t head, Position position) {
  const Superblock& shape = layout_->shape();
  const std::uint64_t link = position.bytes() / shape.region_bytes;
  if (head < 1 || head > shape.heads || link >= shape.regions) {
    co_return tl::unexpected(Error::corrupt);
  }
  const std::uint64_t index = (head - 1) * shape.regions + link;
  if (head_array_[index] == 0) {
    // A region was linked since (figure 5).
    const fabric::LocalBuffer buffer = request_buffer(lane, kWord);
    if (!co_await queue_pair_->read(buffer, {welcome_.pool, layout_->chain_word(head, link)})) {
      co_return tl::unexpected(Error::disconnected);
    }
    std::memcpy(&head_array_[index], buffer.bytes().data(), kWord);
    if (head_array_[index] == 0) co_return tl::unexpected(Error::corrupt);
  }
  co_return layout_->region_offset(head_array_[index] - 1) + position.bytes() % shape.region_bytes;
}

Task<> ErdaSession::report_incomplete(Lane& lane, hopscotch::StoredKey key, std::uint64_t word) {
  const auto length = static_cast<std::uint32_t>(sizeof(RequestHeader) + key.bytes().size());
  const fabric::LocalBuffer buffer = request_buffer(lane, length);
  fill_request(buffer, {RequestKind::report, key.format, 0, 0, word}, key);
  co_await queue_pair_->send(buffer);
}

// --- put and erase: a request, and one one-sided WRITE (section 3.3)
// ------------------------------

Task<Result<void>> ErdaSession::put(Key key, Value value) {
  return write_object(RequestKind::put, key, value);
}

Task<Result<void>> ErdaSession::erase(Key key) {
  return write_object(RequestKind::erase, key, std::nullopt);
}

Task<Result<void>> ErdaSession::write_object(RequestKind kind, Key key,
                                             std::optional<Value> value) {
  const Bytes size = format_.object_size(key.size(), value ? value->size() : 0, !value);
  if (size > object_size_ || key.empty()) co_return tl::unexpected(Error::too_large);
  co_await free_lanes_.acquire();
  LaneGuard lane(*this);
  const fabric::LocalBuffer object = object_buffer(*lane, size);
  format_.encode(key, value, object.bytes());

  const hopscotch::StoredKey stored = layout_->table().stored(key);
  const Result<Reply> reply =
      co_await ask(*lane, {kind, stored.format, 0, static_cast<std::uint32_t>(size), 0}, stored);
  if (!reply) co_return tl::unexpected(reply.error());
  switch (reply->outcome) {
    case Outcome::ok:
      break;
    case Outcome::not_found:
      co_return tl::unexpected(Error::not_found);
    case Outcome::out_of_space:
      co_return tl::unexpected(Error::out_of_space);
    case Outcome::too_large:
      co_return tl::unexpected(Error::too_large);
  }
  if (!co_await queue_pair_->write(object, {welcome_.pool, reply->object_offset})) {
    co_return tl::unexpected(Error::disconnected);
  }
  co_return Result<void>();
}

Task<Result<Reply>> ErdaSession::ask(Lane& lane, RequestHeader request, hopscotch::StoredKey key) {
  const auto length = static_cast<std::uint32_t>(sizeof request + key.bytes().size());
  const fabric::LocalBuffer buffer = request_buffer(lane, length);
  fill_request(buffer, request, key);
  const std::uint32_t client = welcome_.session * kLanes + lane.id;
  lane.answered = false;
  queue_pair_->post_unsignaled(
      {.opcode = fabric::Opcode::write_with_immediate,
       .immediate = client,
       .local = buffer,
       .remote = {welcome_.control, request_slot(layout_->table(), client)}});
  while (!lane.answered && connection_->open) co_await wait(lane.waiting);
  if (!lane.answered) co_return tl::unexpected(Error::disconnected);
  co_return lane.reply;
}

Task<> ErdaSession::take_replies(std::shared_ptr<Connection> connection) {
  for (;;) {
    const fabric::ReceiveCompletion message = co_await connection->completions.next();
    if (message.status != fabric::Status::success) break;
    Reply reply;
    connection->memory->read(message.buffer.offset, std::as_writable_bytes(std::span(&reply, 1)));
    connection->receive_queue->post(
        connection->registered.local(message.buffer.offset, sizeof reply), message.buffer_id);
    Lane& lane = connection->lanes[reply.lane];
    lane.reply = reply;
    lane.answered = true;
    lane.waiting.wake_one();
  }
  connection->open = false;
  for (Lane& lane : connection->lanes) lane.waiting.wake_all();
}

// --- connecting ----------------------------------------------------------------------------------

ErdaSession::ErdaSession(Thread& thread, const KvConfig& config)
    : thread_(thread), format_(config.key_size, config.value_size) {
  layout_ = std::make_unique<PoolLayout>(shape_for(config));
  request_size_ = request_slot_size(layout_->table());
  entry_size_ = round_up(layout_->table().neighborhood_length(), kCacheLine);
  object_size_ = round_up(
      kLongHeader + std::max(config.key_size, kLongestKey) + config.max_value_size, kCacheLine);
  object_size_ = std::min(object_size_, layout_->shape().segment_bytes - kWord);
  connection_ = std::make_shared<Connection>();
  const Bytes replies = kLanes * sizeof(Reply);
  connection_->memory =
      thread.node.create_region("erda.session", kLanes * lane_size() + replies, pmem::Medium::dram);
  connection_->registered =
      thread.endpoint.register_memory(*connection_->memory, fabric::Access::local);
  connection_->receive_queue = thread.endpoint.create_receive_queue(kLanes);
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    connection_->lanes[i].id = i;
    connection_->receive_queue->post(
        connection_->registered.local(kLanes * lane_size() + i * sizeof(Reply), sizeof(Reply)), i);
  }
}

Task<std::unique_ptr<KvSession>> ErdaSession::connect(Thread& thread, fabric::Address server,
                                                      KvConfig config) {
  std::unique_ptr<ErdaSession> session(new ErdaSession(thread, config));
  co_await session->open(server);
  co_return session;
}

Task<> ErdaSession::open(fabric::Address server) {
  fabric::Connection connection =
      co_await thread_.endpoint.connect(server,
                                        {.receive_queue = connection_->receive_queue.get(),
                                         .completions = &connection_->completions,
                                         .send_depth = 64},
                                        {});
  if (connection.status != fabric::Status::success) {
    throw PlatformError(fmt::format("cannot connect to Erda's server at node {}, port {}: {}",
                                    server.node, server.port, to_string(connection.status)));
  }
  queue_pair_ = std::move(connection.queue_pair);
  std::memcpy(&welcome_, connection.private_data.data(), sizeof welcome_);
  thread_.executor.spawn(take_replies(connection_));

  Lane& lane = connection_->lanes[0];
  const fabric::LocalBuffer buffer = object_buffer(lane, sizeof(Superblock));
  co_await queue_pair_->read(buffer, {welcome_.pool, 0});
  Superblock served;
  std::memcpy(&served, buffer.bytes().data(), sizeof served);
  if (std::memcmp(&served, &layout_->shape(), sizeof served) != 0) {
    throw UsageError("erda: client and server were given different configurations");
  }
  // Section 3.3: once connected, the client has the head array; regions linked later are looked up.
  head_array_.resize(served.heads * served.regions);
  co_await no_entry_moved(lane);
}

fabric::LocalBuffer ErdaSession::request_buffer(const Lane& lane, std::uint32_t length) const {
  return connection_->registered.local(lane.id * lane_size(), length);
}

fabric::LocalBuffer ErdaSession::entry_buffer(const Lane& lane, std::uint32_t length) const {
  return connection_->registered.local(lane.id * lane_size() + request_size_, length);
}

fabric::LocalBuffer ErdaSession::object_buffer(const Lane& lane, Bytes length) const {
  return connection_->registered.local(lane.id * lane_size() + request_size_ + entry_size_,
                                       static_cast<std::uint32_t>(length));
}

void ErdaSession::fill_request(const fabric::LocalBuffer& buffer, const RequestHeader& request,
                               const hopscotch::StoredKey& key) {
  std::memcpy(buffer.bytes().data(), &request, sizeof request);
  copy_bytes(buffer.bytes().subspan(sizeof request, key.bytes().size()), key.bytes());
}

}  // namespace perdura::systems::erda
