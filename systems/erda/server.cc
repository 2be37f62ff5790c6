#include "systems/erda/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "platform/base/error.h"
#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::systems::erda {

namespace {

// The depth of the receive queue. Its buffers have room for requests with objects; the depth is
// smaller if those are large.
constexpr std::uint32_t kReceiveDepth = 1024;
constexpr std::uint32_t kLeastReceiveDepth = 64;
constexpr Bytes kReceiveMemory = 64 * MiB;
// How long a second writer of a key waits before it checks the first writer's object again.
constexpr Picoseconds kRecheck = Microseconds(2);
std::uint32_t receive_depth(Bytes request_size) {
  const auto fitting = static_cast<std::uint32_t>(kReceiveMemory / request_size);
  return std::clamp(fitting, kLeastReceiveDepth, kReceiveDepth);
}

}  // namespace

ErdaPartition::ErdaPartition(Thread& thread, std::string pool_name, const kv::KvConfig& config)
    : thread_(thread),
      config_(config),
      control_(thread.node.create_region(
          pool_name + ".control",
          request_slot(PoolLayout(shape_for(config)), config.sessions * kLanes),
          pmem::Medium::dram)),
      store_(thread.node, pool_name, config, {control_.get(), kDisplacements}),
      request_size_(largest_request(config, store_.layout())),
      message_size_(round_up(sizeof(Message) + config.max_value_size, kCacheLine)),
      receive_depth_(receive_depth(request_size_)),
      buffers_(thread.node.create_region(
          pool_name + ".buffers",
          receive_depth_ * request_size_ + config.sessions * kLanes * message_size_ +
              rpc::NoticeBuffers<Message>::size(config.sessions, 2 * store_.layout().shape().heads),
          pmem::Medium::dram)),
      pool_memory_(thread.endpoint.register_memory(
          store_.pool(), fabric::Access::remote_read | fabric::Access::remote_write |
                             fabric::Access::remote_flush)),
      control_memory_(thread.endpoint.register_memory(
          *control_, fabric::Access::remote_read | fabric::Access::remote_write)),
      buffer_memory_(thread.endpoint.register_memory(*buffers_, fabric::Access::local)),
      sessions_(config.sessions),
      request_(request_size_),
      object_(store_.make_scratch()),
      cleanings_(store_.layout().shape().heads),
      clean_always_(read_parameters(config).flag("clean_always")),
      client_timeout_(
          Milliseconds(read_parameters(config).number<std::uint64_t>("client_timeout_ms"))),
      cleaner_(store_) {
  requests_.open(thread.endpoint, receive_depth_);
  requests_.post_all({buffer_memory_, 0, request_size_, static_cast<std::uint32_t>(request_size_)},
                     receive_depth_);
  notices_.open(buffer_memory_,
                receive_depth_ * request_size_ + sessions_.size() * kLanes * message_size_,
                2 * store_.layout().shape().heads);
  for (std::uint8_t head = 1; head <= cleanings_.size(); ++head) {
    HeadCleaning& cleaning = cleanings_[head - 1];
    cleaning.access.chain = store_.space().chain(head);
    cleaning.waiting_for.resize(sessions_.size());
    control_->store(kHeadAccess + (head - 1) * kWord, cleaning.access.word());
  }
}

Task<> ErdaPartition::serve() {
  thread_.executor.spawn(rpc::accept_connections(
      thread_.endpoint, [this](fabric::ConnectionRequest& request) { accept(request); }));
  if (clean_always_) {
    for (std::uint8_t head = 1; head <= cleanings_.size(); ++head) start_cleaning(head);
  }
  for (;;) {
    const fabric::ReceiveCompletion message = co_await completions_.next();
    if (message.status != fabric::Status::success) {
      end_session(*message.queue_pair);
      continue;
    }
    take_request(message);
  }
}

std::vector<std::uint64_t> ErdaPartition::events() const {
  const Store::Recovered& recovered = store_.recovered();
  const hopscotch::Table& table = store_.table();
  return {space().cleanings,
          table.movements(),
          recovered.abandoned_cleanings,
          recovered.completed_cleanings,
          recovered.restored_versions,
          table.removed_copies()};
}

void ErdaPartition::accept(fabric::ConnectionRequest& request) {
  ServerSession* const free = sessions_.find_free();
  if (free == nullptr) return request.reject();
  const Welcome welcome{free->number, pool_memory_.key, control_memory_.key};
  free->queue_pair = request.accept(
      {.receive_queue = requests_.queue(), .completions = &completions_}, rpc::bytes_of(welcome));
  sessions_.connected(*free->queue_pair, *free);
}

// --- requests ------------------------------------------------------------------------------------

hopscotch::StoredKey ErdaPartition::stored_key(std::uint8_t format,
                                               std::span<const std::byte> stored) {
  hopscotch::StoredKey key{format, stored, {}};
  if (format == hopscotch::kDigestFormat) {
    std::copy_n(stored.begin(), std::min<std::size_t>(stored.size(), key.digest.size()),
                key.digest.begin());
  }
  return key;
}

ErdaPartition::Request ErdaPartition::parse(std::span<std::byte> bytes) const {
  Request request;
  std::memcpy(&request.header, bytes.data(), sizeof request.header);
  const Bytes key_length = store_.layout().table().used(request.header.format);
  request.key = stored_key(request.header.format, bytes.subspan(sizeof request.header, key_length));
  const Bytes fixed = request_slot_size(store_.layout().table());
  if (bytes.size() > fixed) request.object = bytes.subspan(fixed);
  return request;
}

void ErdaPartition::take_request(const fabric::ReceiveCompletion& message) {
  charge(Work::dispatch);
  // Normally the request slot of the client holds a put or an erase; every other request is in the
  // receive buffer.
  Bytes length = request_slot_size(store_.layout().table());
  if (message.immediate) {
    // This is not one of the server's clients.
    if (*message.immediate >= sessions_.size() * kLanes) return;
    control_->read(request_slot(store_.layout(), *message.immediate),
                   std::span(request_).first(length));
  } else {
    length = message.buffer.length;
    buffers_->read(message.buffer.offset, std::span(request_).first(length));
  }
  requests_.post(message.buffer_id);

  Request request = parse(std::span(request_).first(length));
  switch (request.header.kind) {
    case RequestKind::report:
      return take_report(request);
    case RequestKind::acknowledge:
      return acknowledge(session_of(*message.queue_pair), request.header);
    case RequestKind::put:
    case RequestKind::erase:
    case RequestKind::get:
    case RequestKind::persist:
      break;
  }
  const bool by_send = !message.immediate;
  if (by_send && request.header.word >= sessions_.size() * kLanes) return;
  request.client = by_send ? static_cast<std::uint32_t>(request.header.word) : *message.immediate;
  ServerSession& session = session_of(request.client);
  // Ignore it: the sender is not the client that its message names.
  if (session.queue_pair.get() != message.queue_pair) return;
  std::optional<std::uint16_t>& last = session.last_sequence[request.client % kLanes];
  if (last == request.header.head_or_sequence) return;  // a duplicate
  last = request.header.head_or_sequence;
  // A lane sends its next request only after its last write has ended.
  if (const auto ended = std::exchange(session.lanes[request.client % kLanes], std::nullopt)) {
    if (request.header.kind == RequestKind::persist) persist(*ended, request);
    writing_.erase(log_position(ended->head, ended->position));
  }
  if (request.header.kind == RequestKind::persist) return;
  const Progress progress = by_send ? serve_by_send(request) : begin_write(request);
  if (progress == Progress::done) return;
  const auto begin = request_.begin();
  thread_.executor.spawn(retry(request.client, session.generation,
                               {begin, begin + static_cast<std::ptrdiff_t>(length)}, by_send,
                               progress, cleanings_ended_));
}

Task<> ErdaPartition::retry(std::uint32_t client, std::uint64_t generation,
                            std::vector<std::byte> bytes, bool by_send, Progress progress,
                            std::uint64_t cleanings_before) {
  std::size_t cleanings = 0;
  while (progress != Progress::done) {
    if (progress == Progress::waits_for_space) {
      // A cleaning may have ended since the attempt.
      while (cleanings_ended_ == cleanings_before) co_await wait(cleaning_ended_);
      ++cleanings;
    } else {
      co_await sleep_for(kRecheck);
    }
    // The client left while its request waited.
    if (session_of(client).generation != generation) co_return;
    Request request = parse(bytes);
    request.client = client;
    cleanings_before = cleanings_ended_;
    progress = by_send ? serve_by_send(request) : begin_write(request);
    // Every head has been cleaned, and other requests took the space that was reclaimed.
    if (progress == Progress::waits_for_space && cleanings > 2 * cleanings_.size()) {
      answer(request, {.outcome = Outcome::out_of_space});
      co_return;
    }
  }
}

// Sections 3.3 and 4.1: tells the client where to write.
ErdaPartition::Progress ErdaPartition::begin_write(const Request& request) {
  const std::scoped_lock lock(store_.lock());
  const bool erase = request.header.kind == RequestKind::erase;
  const std::uint8_t head = store_.layout().head_of(request.key);
  if (announced(head)) {
    answer(request, {.outcome = Outcome::use_send});
    return Progress::done;
  }
  std::optional<hopscotch::TableEntry> entry = store_.table().find(request.key);
  if (newest_is_being_written(request.key, entry)) return Progress::newest_is_being_written;
  const Store::Begun begun =
      store_.begin_version(erase, request.key, entry, request.header.object_size, object_);
  if (begun.outcome == Outcome::out_of_space && reclaim(head)) {
    answer(request, {.outcome = Outcome::use_send});
    return Progress::done;
  }
  if (begun.outcome != Outcome::ok) {
    answer(request, {.outcome = begun.outcome});
    return Progress::done;
  }
  const Log& log = store_.space().region_1(head);
  writing_.insert(log_position(head, begun.position));
  Reservation reservation{{request.key.bytes().begin(), request.key.bytes().end()},
                          request.key.format,
                          head,
                          begun.position};
  session_of(request.client).lanes[request.client % kLanes] = std::move(reservation);
  answer(request, {.life = log.life_of(begun.position), .value = log.offset_of(begun.position)});
  clean_if_due(head);
  return Progress::done;
}

// The client's WRITE has reached memory, since this message was sent after it on the same
// connection.
void ErdaPartition::persist(const Reservation& written, const Request& request) {
  const std::scoped_lock lock(store_.lock());
  store_.persist_written(written.head, written.position, request.header.object_size);
  answer(request, {});
}

// Also returns false if the writer of an incomplete newest version is gone; that version has then
// been restored, and `entry` is the table's new entry.
bool ErdaPartition::newest_is_being_written(const hopscotch::StoredKey& key,
                                            std::optional<hopscotch::TableEntry>& entry) {
  if (!entry) return false;
  const Position newest = VersionWord(entry->word).newest();
  const bool written = being_written(entry->tag, newest);
  if (!written && !store_.unverified(entry->tag, newest)) return false;
  if (store_.is_whole(entry->tag, newest, object_)) return false;
  if (written) return true;
  store_.restore(*entry);
  entry = store_.table().find(key);
  return false;
}

// Section 4.2: a reader found the newest object incomplete. Its writer may only be slow.
void ErdaPartition::take_report(const Request& request) {
  const std::scoped_lock lock(store_.lock());
  const std::optional<hopscotch::TableEntry> entry = store_.table().find(request.key);
  if (!entry || entry->word != request.header.word) return;
  if (store_.space().phase(entry->tag) != Phase::normal)
    return;  // the cleaner examines all objects of the head
  const Position newest = VersionWord(entry->word).newest();
  if (being_written(entry->tag, newest) || store_.is_whole(entry->tag, newest, object_)) return;
  store_.restore(*entry);
}

// --- the end of sessions -------------------------------------------------------------------------

// Ends the client's writes, to one head or to all: the client said that they are done, or it is
// gone.
void ErdaPartition::end_reservations(ServerSession& session, std::optional<std::uint8_t> head) {
  const std::scoped_lock lock(store_.lock());
  for (std::optional<Reservation>& lane : session.lanes) {
    if (!lane || (head && lane->head != *head)) continue;
    const Reservation ended = std::move(*lane);
    lane.reset();
    writing_.erase(log_position(ended.head, ended.position));
    const auto entry = store_.table().find(stored_key(ended.format, ended.key));
    if (entry && VersionWord(entry->word).newest() == ended.position &&
        !store_.is_whole(ended.head, ended.position, object_)) {
      store_.restore(*entry);
    }
  }
}

void ErdaPartition::end_session(fabric::QueuePair& queue_pair) {
  ServerSession& session = session_of(queue_pair);
  sessions_.forget(queue_pair);
  session.queue_pair.reset();
  ++session.generation;
  session.last_sequence = {};
  end_reservations(session, std::nullopt);
  for (std::uint8_t head = 1; head <= cleanings_.size(); ++head) acknowledged(session.number, head);
}

void ErdaPartition::answer(const Request& request, Message message,
                           std::span<const std::byte> value) {
  const std::uint32_t client = request.client;
  message.target = reply_target(client % kLanes, request.header.head_or_sequence);
  const Bytes offset = receive_depth_ * request_size_ + client * message_size_;
  const fabric::LocalBuffer buffer =
      buffer_memory_.local(offset, static_cast<std::uint32_t>(sizeof message + value.size()));
  std::memcpy(buffer.bytes().data(), &message, sizeof message);
  if (!value.empty()) copy_bytes(buffer.bytes().subspan(sizeof message), value);
  session_of(client).queue_pair->post_unsignaled({.opcode = fabric::Opcode::send, .local = buffer});
}

}  // namespace perdura::systems::erda
