#include "systems/mcas/shard.h"

#include <fmt/core.h>

#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::systems::mcas {

Shard::Shard(Thread& thread, const std::string& name, const KvConfig& config,
             const Parameters& parameters)
    : thread_(thread),
      pool_(thread.node, name, config, parameters),
      engine_(pool_.engine()),
      queue_depth_(parameters.queue_depth),
      max_key_size_(parameters.max_key_size),
      max_value_size_(parameters.max_value_size),
      max_inline_(thread.endpoint.capabilities().max_inline),
      sessions_(config.sessions),
      capacity_(engine_.statistics().capacity) {
  const Bytes request = sizeof(Request) + max_key_size_ + max_value_size_;
  const Bytes reply = sizeof(Reply) + max_value_size_;
  const Bytes request_room = round_up(request, kCacheLine);
  const Bytes reply_room = round_up(reply, kCacheLine);
  const Bytes of_requests = Bytes{config.sessions} * request_buffers() * request_room;
  const Bytes of_replies = Bytes{config.sessions} * queue_depth_ * reply_room;
  buffers_ = thread.node.create_region(fmt::format("{} messages", name), of_requests + of_replies,
                                       pmem::Medium::dram);
  const fabric::MemoryRegion memory =
      thread.endpoint.register_memory(*buffers_, fabric::Access::local);
  requests_ = {memory, 0, request_room, static_cast<std::uint32_t>(request)};
  replies_ = {memory, of_requests, reply_room, static_cast<std::uint32_t>(reply)};
  note_space();
}

// --- sessions ------------------------------------------------------------------------------------

Task<> Shard::serve() {
  Executor::current().spawn(rpc::accept_connections(
      thread_.endpoint,
      [self = shared_from_this()](fabric::ConnectionRequest& request) { self->accept(request); }));
  for (;;) {
    const fabric::ReceiveCompletion completion = co_await completions_.next();
    co_await handle(completion);
  }
}

void Shard::accept(fabric::ConnectionRequest& request) {
  const auto hello = rpc::read_message<Hello>(request.private_data());
  Session* const free = sessions_.find_free();
  if (hello.version != kProtocolVersion || free == nullptr) return request.reject();
  Session& session = *free;
  session.requests = thread_.endpoint.create_receive_queue(request_buffers());
  for (std::uint32_t i = 0; i < request_buffers(); ++i) {
    session.requests->post(request_buffer(session, i), i);
  }
  const Welcome welcome{session.number, queue_depth_, max_key_size_, max_value_size_};
  session.queue_pair =
      request.accept({session.requests.get(), &completions_, queue_depth_}, rpc::bytes_of(welcome));
  sessions_.connected(*session.queue_pair, session);
}

// A session is given up here only, so it remains while its request is executed.
Task<> Shard::handle(fabric::ReceiveCompletion completion) {
  Session* const session = sessions_.of(completion.queue_pair);
  if (session == nullptr) co_return;
  charge(Work::dispatch);
  if (completion.status != fabric::Status::success) {
    sessions_.forget(*session->queue_pair);
    session->queue_pair.reset();
    session->requests.reset();
    co_return;
  }
  co_await execute(*session, completion.buffer.bytes());
  session->requests->post(request_buffer(*session, completion.buffer_id), completion.buffer_id);
}

// --- requests ------------------------------------------------------------------------------------

Task<> Shard::execute(Session& session, std::span<const std::byte> message) {
  const auto request = rpc::read_message<Request>(message);
  if (message.size() != request.size() || request.key_length > max_key_size_ ||
      request.value_length > max_value_size_ || request.id >= queue_depth_) {
    co_return;
  }
  const Key key = message.subspan(sizeof request, request.key_length);
  const Value value = message.subspan(sizeof request + request.key_length);
  const fabric::LocalBuffer buffer = reply_buffer(session, request.id);
  Reply reply{.id = request.id};
  switch (request.kind) {
    case RequestKind::put:
      reply.status = co_await put(key, value);
      break;
    case RequestKind::get:
      get(key, buffer.bytes().subspan(sizeof reply), reply);
      break;
    case RequestKind::erase:
      if (!engine_.erase(key)) reply.status = ReplyStatus::not_found;
      break;
  }
  note_space();
  rpc::write_message(buffer.bytes(), reply);
  rpc::send(*session.queue_pair, buffer.first(static_cast<std::uint32_t>(reply.size())),
            max_inline_);
}

Task<ReplyStatus> Shard::put(Key key, Value value) {
  for (;;) {
    const PutOutcome outcome = engine_.put(key, value);
    if (outcome == PutOutcome::done) co_return ReplyStatus::done;
    if (outcome == PutOutcome::out_of_space) co_return ReplyStatus::out_of_space;
    growing_.store(true, std::memory_order_relaxed);
    do {
      growth_steps_.fetch_add(1, std::memory_order_relaxed);
      co_await yield();
    } while (engine_.grow_step());
    growing_.store(false, std::memory_order_relaxed);
  }
}

void Shard::get(Key key, std::span<std::byte> into, Reply& reply) {
  const std::optional<Place> value = engine_.get(key);
  if (!value) {
    reply.status = ReplyStatus::not_found;
    return;
  }
  pool_.region().read_unchanging(value->offset, into.first(value->length));
  reply.value_length = static_cast<std::uint32_t>(value->length);
}

// --- what it tells of itself ---------------------------------------------------------------------

void Shard::note_space() { free_.store(engine_.statistics().free, std::memory_order_relaxed); }

KvSpace Shard::space() const {
  KvSpace space;
  space.capacity = capacity_;
  space.free = free_.load(std::memory_order_relaxed);
  space.resizing = growing_.load(std::memory_order_relaxed);
  space.steps = growth_steps_.load(std::memory_order_relaxed);
  return space;
}

std::vector<std::uint64_t> Shard::events() const {
  const EngineStatistics counts = engine_.statistics();
  return {counts.segments_added,
          counts.moved_items,
          counts.regions_added,
          counts.heap_regions_returned,
          pool_.undone_region_change() ? 1U : 0U,
          pool_.recovered().stale_hops,
          pool_.recovered().stale_entries};
}

std::vector<double> Shard::metrics() const {
  const EngineStatistics counts = engine_.statistics();
  return {static_cast<double>(counts.segments_added), static_cast<double>(counts.moved_items),
          static_cast<double>(counts.heap_regions_returned)};
}

}  // namespace perdura::systems::mcas
