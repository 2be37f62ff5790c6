#include "systems/erda/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "platform/base/error.h"
#include "platform/fabric/needs.h"
#include "platform/runtime/work.h"
#include "rpc/connect.h"
#include "rpc/messages.h"

namespace perdura::systems::erda {

namespace {
// A get that finds neither version of an entry has raced with updates, and starts over.
constexpr int kAttempts = 64;

PlatformError lost_server(fabric::Address server) {
  return PlatformError(fmt::format("Erda's server at node {}, port {} went away while connecting",
                                   server.node, server.port));
}
}  // namespace

// While such an object lives, the client accesses the head one-sidedly. The server waits for its
// end before it cleans the head.
class ErdaSession::OneSided {
 public:
  OneSided(Connection& connection, std::uint8_t head) : connection_(connection), head_(head) {
    ++connection_.heads[head_ - 1].one_sided;
  }
  ~OneSided() {
    --connection_.heads[head_ - 1].one_sided;
    connection_.acknowledge_if_idle(head_);
  }
  OneSided(const OneSided&) = delete;
  OneSided& operator=(const OneSided&) = delete;

 private:
  Connection& connection_;
  std::uint8_t head_;
};

// --- get -----------------------------------------------------------------------------------------

Task<kv::Result<Bytes>> ErdaSession::get(kv::Key key, std::span<std::byte> into) {
  const auto lease = co_await connection_->calls.begin();
  Lane& lane = connection_->lanes[lease.call()];
  const hopscotch::StoredKey stored = layout_->table().stored(key);
  const std::uint8_t head = layout_->head_of(stored);
  if (!one_sided(head)) co_return co_await get_by_send(lane, stored, into);
  const OneSided access(*connection_, head);
  co_return co_await get_one_sided(lane, stored, into);
}

// Two one-sided READs, no server CPU (section 3.3).
Task<kv::Result<Bytes>> ErdaSession::get_one_sided(Lane& lane, hopscotch::StoredKey key,
                                                   std::span<std::byte> into) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) ++counts_.retries;
    const std::uint64_t before = displacements_;
    const kv::Result<hopscotch::NeighborhoodEntry> entry = co_await find_entry(lane, key);
    if (!entry) co_return tl::unexpected(entry.error());

    // Tries the newest version. If that is incomplete, tries it once more, since its writer may be
    // just about to finish (section 4.3). Then tries the previous version.
    const VersionWord word(entry->word);
    bool changed = false;
    for (const Position version : {word.newest(), word.newest(), word.previous()}) {
      if (!version) break;  // the newest is still being created, and there is no previous one
      const kv::Result<ObjectFormat::Object> object =
          co_await read_version(lane, entry->tag, version);
      if (!object && object.error() == kv::Error::corrupt) {
        ++counts_.torn_reads;
        continue;
      }
      // An object that seems too long may be remains in the place of one that is yet to be written;
      // only the server can tell.
      if (!object && object.error() == kv::Error::too_large) {
        co_return co_await get_by_send(lane, key, into);
      }
      if (!object) co_return tl::unexpected(object.error());
      // The READ of the entry may not have been atomic: it may have paired this entry's version
      // word with the key of an entry that was stored in its place later.
      changed = !equal_bytes(object->key, key.key);
      if (changed) break;
      kv::Result<Bytes> result = tl::unexpected(kv::Error::not_found);
      if (!object->deleted) {
        if (object->value.size() > into.size()) {
          result = tl::unexpected(kv::Error::too_large);
        } else {
          copy_bytes(into.first(object->value.size()), object->value);
          result = object->value.size();
        }
      }
      if (version != word.newest()) co_await report_incomplete(lane, key, entry->word);
      co_return result;
    }
    if (changed || word.previous()) continue;
    // Either the key is being inserted, or its entry was moved while the READ was copying it, and
    // the version word or the head belongs to the entry that was there before.
    const kv::Result<bool> displaced = co_await displaced_since(lane, before);
    if (!displaced) co_return tl::unexpected(displaced.error());
    if (*displaced) continue;
    co_await report_incomplete(lane, key, entry->word);
    co_return tl::unexpected(kv::Error::not_found);
  }
  co_return tl::unexpected(kv::Error::corrupt);
}

// Section 4.4: the server reads the object, from the region that the cleaner's phase prescribes.
Task<kv::Result<Bytes>> ErdaSession::get_by_send(Lane& lane, hopscotch::StoredKey key,
                                                 std::span<std::byte> into) {
  const fabric::LocalBuffer request =
      request_buffer(lane, static_cast<std::uint32_t>(request_size_));
  const std::uint32_t length = fill_request(
      request, {RequestKind::get, key.format, next_sequence(lane), 0, client_id(lane)}, key);
  lane.into = into;
  const std::optional<Message> reply =
      co_await answer_to(lane, {.opcode = fabric::Opcode::send, .local = request.first(length)});
  lane.into = {};
  if (!reply) co_return tl::unexpected(kv::Error::disconnected);
  if (reply->outcome != Outcome::ok) co_return tl::unexpected(error_of(reply->outcome));
  if (reply->value > into.size()) co_return tl::unexpected(kv::Error::too_large);
  co_return reply->value;
}

Task<kv::Result<hopscotch::NeighborhoodEntry>> ErdaSession::find_entry(Lane& lane,
                                                                       hopscotch::StoredKey key) {
  const hopscotch::Geometry& table = layout_->table();
  const auto length = static_cast<std::uint32_t>(table.neighborhood_length());
  const Bytes offset = layout_->table_offset() + table.neighborhood_offset(table.home(key));
  const fabric::LocalBuffer buffer = entry_buffer(lane, length);
  for (;;) {
    const std::uint64_t before = displacements_;
    if (!co_await read(buffer, {welcome_.pool, offset})) {
      co_return tl::unexpected(kv::Error::disconnected);
    }
    if (const auto found = hopscotch::find_in(buffer.bytes(), table, key)) co_return *found;
    // The key may have been moved within its neighborhood while the READ was copying it.
    const kv::Result<bool> displaced = co_await displaced_since(lane, before);
    if (!displaced) co_return tl::unexpected(displaced.error());
    if (!*displaced) co_return tl::unexpected(kv::Error::not_found);
  }
}

// `before` is the last known value at that time. Lanes share it, and another lane may have read a
// newer one since. The counter is odd during a displacement.
Task<kv::Result<bool>> ErdaSession::displaced_since(Lane& lane, std::uint64_t before) {
  if (!co_await read_displacements(lane)) co_return tl::unexpected(kv::Error::disconnected);
  const bool displaced = displacements_ != before || displacements_ % 2 != 0;
  co_return displaced;
}

Task<bool> ErdaSession::read_displacements(Lane& lane) {
  const fabric::LocalBuffer buffer = entry_buffer(lane, kWord);
  if (!co_await read(buffer, {welcome_.control, kDisplacements})) co_return false;
  std::memcpy(&displacements_, buffer.bytes().data(), kWord);
  co_return true;
}

Task<kv::Result<ObjectFormat::Object>> ErdaSession::read_version(Lane& lane, std::uint8_t head,
                                                                 Position position) {
  const kv::Result<ObjectLocation> location = co_await locate(lane, head, position);
  if (!location) co_return tl::unexpected(location.error());
  const Bytes first = format_.typical_size();
  if (!co_await read(object_buffer(lane, first), {welcome_.pool, location->offset})) {
    co_return tl::unexpected(kv::Error::disconnected);
  }
  const Bytes size = format_.size_of(object_buffer(lane, first).bytes());
  if (size > layout_->shape().segment_bytes) co_return tl::unexpected(kv::Error::corrupt);
  if (size > object_size_) co_return tl::unexpected(kv::Error::too_large);
  if (size > first) {
    // The object is longer than the typical one: read the rest.
    const fabric::LocalBuffer rest =
        object_buffer(lane, size).slice(first, static_cast<std::uint32_t>(size - first));
    if (!co_await read(rest, {welcome_.pool, location->offset + first})) {
      co_return tl::unexpected(kv::Error::disconnected);
    }
  }
  const auto object =
      format_.decode(object_buffer(lane, std::max(first, size)).bytes(), location->life);
  if (!object) co_return tl::unexpected(kv::Error::corrupt);
  co_return *object;
}

// The offset in the pool of a position in a head's log, according to the cached head array.
Task<kv::Result<ErdaSession::ObjectLocation>> ErdaSession::locate(Lane& lane, std::uint8_t head,
                                                                  Position position) {
  const Superblock& shape = layout_->shape();
  const std::uint64_t index = position.bytes() / shape.region_bytes;
  if (head < 1 || head > shape.heads || index >= shape.regions) {
    co_return tl::unexpected(kv::Error::corrupt);
  }
  std::uint64_t& word = connection_->heads[head - 1].links[index];
  if (!Link::of(word)) {
    // Either a region has been linked since (figure 5), or the head points to the other chain.
    const fabric::LocalBuffer buffer = request_buffer(lane, kWord);
    const Bytes offset = layout_->link_word(head, connection_->heads[head - 1].access.chain, index);
    if (!co_await read(buffer, {welcome_.pool, offset})) {
      co_return tl::unexpected(kv::Error::disconnected);
    }
    std::memcpy(&word, buffer.bytes().data(), kWord);
  }
  const std::optional<Link> link = Link::of(word);
  if (!link) co_return tl::unexpected(kv::Error::corrupt);
  co_return ObjectLocation{
      layout_->region_offset(link->region) + position.bytes() % shape.region_bytes, link->life};
}

Task<> ErdaSession::report_incomplete(Lane& lane, hopscotch::StoredKey key, std::uint64_t word) {
  const fabric::LocalBuffer buffer =
      request_buffer(lane, static_cast<std::uint32_t>(request_size_));
  const std::uint32_t length =
      fill_request(buffer, {RequestKind::report, key.format, 0, 0, word}, key);
  co_await queue_pair_->send(buffer.first(length));
}

// --- put and erase -------------------------------------------------------------------------------

Task<kv::Result<void>> ErdaSession::put(kv::Key key, kv::Value value) {
  return write_object(RequestKind::put, key, value);
}

Task<kv::Result<void>> ErdaSession::erase(kv::Key key) {
  return write_object(RequestKind::erase, key, std::nullopt);
}

Task<kv::Result<void>> ErdaSession::write_object(RequestKind kind, kv::Key key,
                                                 std::optional<kv::Value> value) {
  const Bytes size = format_.object_size(key.size(), value ? value->size() : 0, !value);
  if (size > object_size_ || key.empty()) co_return tl::unexpected(kv::Error::too_large);
  const auto lease = co_await connection_->calls.begin();
  Lane& lane = connection_->lanes[lease.call()];
  format_.encode(key, value, object_buffer(lane, size).bytes());

  const hopscotch::StoredKey stored = layout_->table().stored(key);
  const std::uint8_t head = layout_->head_of(stored);
  if (one_sided(head)) {
    const OneSided access(*connection_, head);
    const kv::Result<Outcome> outcome = co_await write_one_sided(lane, kind, stored, size);
    if (!outcome) co_return tl::unexpected(outcome.error());
    if (*outcome == Outcome::ok) co_return kv::Result<void>();
    if (*outcome != Outcome::use_send) co_return tl::unexpected(error_of(*outcome));
  }
  co_return co_await write_by_send(lane, kind, stored, size);
}

// A request, followed by one one-sided WRITE (section 3.3).
Task<kv::Result<Outcome>> ErdaSession::write_one_sided(Lane& lane, RequestKind kind,
                                                       hopscotch::StoredKey key, Bytes size) {
  const fabric::LocalBuffer request =
      request_buffer(lane, static_cast<std::uint32_t>(request_size_));
  const std::uint32_t length = fill_request(
      request, {kind, key.format, next_sequence(lane), static_cast<std::uint32_t>(size), 0}, key);
  const std::uint32_t client = client_id(lane);
  const std::optional<Message> reply =
      co_await answer_to(lane, {.opcode = fabric::Opcode::write_with_immediate,
                                .immediate = client,
                                .local = request.first(length),
                                .remote = {welcome_.control, request_slot(*layout_, client)}});
  if (!reply) co_return tl::unexpected(kv::Error::disconnected);
  if (reply->outcome != Outcome::ok) co_return reply->outcome;
  const fabric::LocalBuffer object = object_buffer(lane, size);
  ObjectFormat::reseal(object.bytes(), 0, reply->life);
  if (!co_await durable_.write(*queue_pair_, object, {welcome_.pool, reply->value},
                               entry_buffer(lane, kWord))) {
    co_return tl::unexpected(kv::Error::disconnected);
  }
  if (durable_.asks_responder()) {
    const kv::Result<void> persisted = co_await persist_by_server(lane, size);
    if (!persisted) co_return tl::unexpected(persisted.error());
  }
  co_return Outcome::ok;
}

Task<kv::Result<void>> ErdaSession::persist_by_server(Lane& lane, Bytes size) {
  const fabric::LocalBuffer request = request_buffer(lane, sizeof(RequestHeader));
  const RequestHeader header{.kind = RequestKind::persist,
                             .head_or_sequence = next_sequence(lane),
                             .object_size = static_cast<std::uint32_t>(size),
                             .word = client_id(lane)};
  std::memcpy(request.bytes().data(), &header, sizeof header);
  const std::optional<Message> reply =
      co_await answer_to(lane, {.opcode = fabric::Opcode::send, .local = request});
  if (!reply) co_return tl::unexpected(kv::Error::disconnected);
  co_return kv::Result<void>();
}

// Section 4.4: the request carries the object, and the server writes it.
Task<kv::Result<void>> ErdaSession::write_by_send(Lane& lane, RequestKind kind,
                                                  hopscotch::StoredKey key, Bytes size) {
  const fabric::LocalBuffer request =
      request_buffer(lane, static_cast<std::uint32_t>(request_size_ + size));
  fill_request(
      request,
      {kind, key.format, next_sequence(lane), static_cast<std::uint32_t>(size), client_id(lane)},
      key);
  const std::optional<Message> reply =
      co_await answer_to(lane, {.opcode = fabric::Opcode::send, .local = request});
  if (!reply) co_return tl::unexpected(kv::Error::disconnected);
  if (reply->outcome != Outcome::ok) co_return tl::unexpected(error_of(reply->outcome));
  co_return kv::Result<void>();
}

kv::Error ErdaSession::error_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::not_found:
      return kv::Error::not_found;
    case Outcome::out_of_space:
      return kv::Error::out_of_space;
    case Outcome::too_large:
      return kv::Error::too_large;
    case Outcome::ok:
    case Outcome::use_send:
      break;  // not errors
  }
  return kv::Error::corrupt;
}

Task<std::optional<Message>> ErdaSession::answer_to(const Lane& lane,
                                                    const fabric::WorkRequest& request) {
  connection_->calls.expect(lane.id);
  queue_pair_->post_unsignaled(request);
  return connection_->calls.answer_to(lane.id);
}

// --- messages from the server --------------------------------------------------------------------

Message ErdaSession::Connection::message_of(const fabric::ReceiveCompletion& received) const {
  Message message;
  memory->read(received.buffer.offset, std::as_writable_bytes(std::span(&message, 1)));
  return message;
}

void ErdaSession::Connection::take_notice(const Message& notice) {
  take_access(static_cast<std::uint8_t>(notice.target), HeadAccess::of(notice.value));
}

void ErdaSession::Connection::take_reply(const Message& message,
                                         const fabric::ReceiveCompletion& received) {
  const Lane& lane = lanes[message.target % kLanes];
  // Otherwise it is a duplicate of an earlier answer.
  const bool expected =
      calls.expects(lane.id) && message.target == reply_target(lane.id, lane.sequence);
  const Bytes value = received.buffer.length - sizeof message;
  if (expected && value > 0 && value <= lane.into.size()) {
    memory->read(received.buffer.offset + sizeof message, lane.into.first(value));
  }
  messages.post(received.buffer_id);
  if (expected) calls.deliver(lane.id, message);
}

// Called for notices, and with the control region's state when connecting. Notices may be
// duplicated or arrive late.
void ErdaSession::Connection::take_access(std::uint8_t head_id, HeadAccess access) {
  Head& head = heads[head_id - 1];
  const auto newer = static_cast<std::int32_t>(access.generation - head.access.generation);
  if (head.known && newer < 0) return;
  if (!head.known || newer > 0) {
    head.known = true;
    head.access = access;
    // Section 4.4: one-sided access again, through the new pointer.
    if (access.one_sided()) std::fill(head.links.begin(), head.links.end(), 0);
  }
  if (access.one_sided()) return;
  head.owes_acknowledgment = true;
  acknowledge_if_idle(head_id);
}

void ErdaSession::Connection::acknowledge_if_idle(std::uint8_t head_id) {
  Head& head = heads[head_id - 1];
  if (!head.owes_acknowledgment || head.one_sided > 0 || queue_pair == nullptr) return;
  head.owes_acknowledgment = false;
  const RequestHeader header{.kind = RequestKind::acknowledge,
                             .head_or_sequence = head_id,
                             .word = head.access.generation};
  const fabric::LocalBuffer buffer =
      registered.local(acknowledgments + (head_id - 1) * sizeof header, sizeof header);
  std::memcpy(buffer.bytes().data(), &header, sizeof header);
  queue_pair->post_unsignaled({.opcode = fabric::Opcode::send, .local = buffer});
}

// --- connecting ----------------------------------------------------------------------------------

ErdaSession::ErdaSession(Thread& thread, const kv::KvConfig& config)
    : thread_(thread), format_(config.key_size, config.value_size) {
  fabric::check_needs(erda::kDeviceNeeds, thread.endpoint.capabilities(), "erda");
  layout_ = std::make_unique<PoolLayout>(shape_for(config));
  if (config.put_method) durable_ = {*config.put_method, thread.endpoint.capabilities()};
  request_size_ = request_slot_size(layout_->table());
  entry_size_ = round_up(
      std::max(layout_->table().neighborhood_length(), layout_->shape().heads * kWord), kCacheLine);
  object_size_ = largest_object(config, *layout_);
  connection_ = std::make_shared<Connection>();
  const Superblock& shape = layout_->shape();
  connection_->heads.resize(shape.heads);
  for (Head& head : connection_->heads) head.links.resize(shape.regions);
  // Receive buffers for the answers, and for each head's notices of a beginning and of an end.
  const auto messages = static_cast<std::uint32_t>(kLanes + 2 * shape.heads);
  const auto message_size =
      static_cast<std::uint32_t>(round_up(sizeof(Message) + config.max_value_size, kCacheLine));
  connection_->acknowledgments = Bytes{messages} * message_size;
  // Memory that every operation uses comes first, and lanes that only a long queue needs come last,
  // so that most sessions touch only the first page.
  first_lane_ =
      connection_->acknowledgments + round_up(shape.heads * sizeof(RequestHeader), kCacheLine);
  connection_->memory = thread.node.create_region(
      "erda.session", first_lane_ + kLanes * lane_size(), pmem::Medium::dram);
  connection_->registered =
      thread.endpoint.register_memory(*connection_->memory, fabric::Access::local);
  connection_->messages.open(thread.endpoint, messages);
  connection_->messages.post_all({connection_->registered, 0, message_size, message_size},
                                 messages);
  connection_->calls.open(kLanes);
  for (std::uint32_t i = 0; i < kLanes; ++i) connection_->lanes[i].id = i;
}

Task<std::unique_ptr<kv::KvSession>> ErdaSession::connect(Thread& thread, fabric::Address server,
                                                          kv::KvConfig config) {
  std::unique_ptr<ErdaSession> session(new ErdaSession(thread, config));
  co_await session->open(server);
  co_return session;
}

Task<> ErdaSession::open(fabric::Address server) {
  fabric::Connection connection = co_await rpc::connect(
      thread_.endpoint, "Erda's server", server,
      {.receive_queue = connection_->messages.queue(), .completions = &connection_->completions},
      {});
  queue_pair_ = std::move(connection.queue_pair);
  connection_->queue_pair = queue_pair_.get();
  welcome_ = rpc::read_message<Welcome>(connection.private_data);
  thread_.executor.spawn(rpc::receive_always(connection_));

  Lane& lane = connection_->lanes[0];
  const fabric::LocalBuffer buffer = object_buffer(lane, sizeof(Superblock));
  if (!co_await queue_pair_->read(buffer, {welcome_.pool, 0})) throw lost_server(server);
  Superblock served;
  std::memcpy(&served, buffer.bytes().data(), sizeof served);
  if (std::memcmp(&served, &layout_->shape(), sizeof served) != 0) {
    throw UsageError("erda: client and server were given different configurations");
  }
  // Section 3.3: once connected, the client reads the state of the heads; regions are looked up
  // when they are first needed. A head may be under cleaning at this time.
  const auto length = static_cast<std::uint32_t>(served.heads * kWord);
  const fabric::LocalBuffer access = entry_buffer(lane, length);
  if (!co_await queue_pair_->read(access, {welcome_.control, kHeadAccess})) {
    throw lost_server(server);
  }
  for (std::uint8_t head = 1; head <= served.heads; ++head) {
    std::uint64_t word = 0;
    std::memcpy(&word, access.bytes().data() + (head - 1) * kWord, kWord);
    connection_->take_access(head, HeadAccess::of(word));
  }
  if (!co_await read_displacements(lane)) throw lost_server(server);
}

fabric::LocalBuffer ErdaSession::entry_buffer(const Lane& lane, std::uint32_t length) const {
  return connection_->registered.local(first_lane_ + lane.id * lane_size(), length);
}

fabric::LocalBuffer ErdaSession::request_buffer(const Lane& lane, std::uint32_t length) const {
  return connection_->registered.local(first_lane_ + lane.id * lane_size() + entry_size_, length);
}

fabric::LocalBuffer ErdaSession::object_buffer(const Lane& lane, Bytes length) const {
  return request_buffer(lane, 0).slice(request_size_, static_cast<std::uint32_t>(length));
}

std::uint32_t ErdaSession::fill_request(const fabric::LocalBuffer& buffer,
                                        const RequestHeader& request,
                                        const hopscotch::StoredKey& key) {
  std::memcpy(buffer.bytes().data(), &request, sizeof request);
  copy_bytes(buffer.bytes().subspan(sizeof request, key.bytes().size()), key.bytes());
  return static_cast<std::uint32_t>(sizeof request + key.bytes().size());
}

}  // namespace perdura::systems::erda
