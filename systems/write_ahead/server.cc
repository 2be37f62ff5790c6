#include "systems/write_ahead/server.h"

#include <fmt/core.h>

#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::systems::write_ahead {

using fabric::Access;
using fabric::LocalBuffer;
using fabric::ReceiveCompletion;
using fabric::Status;

Server::Server(Thread& thread, const std::string& name, std::string_view system,
               const kv::KvConfig& config, const Parameters& parameters)
    : thread_(thread),
      store_(thread.node, name, system, Shape(config, parameters)),
      queue_depth_(static_cast<std::uint32_t>(parameters.queue_depth)),
      opened_at_(store_.log().tail()),
      request_room_(round_up(request_size(store_.shape().max_key_size), kCacheLine)),
      reply_room_(round_up(reply_size(store_.shape().max_value_size), kCacheLine)),
      buffers_(thread.node.create_region(
          fmt::format("{} messages", name),
          config.sessions * (request_buffers() * request_room_ + queue_depth_ * reply_room_),
          pmem::Medium::dram)),
      buffer_memory_(thread.endpoint.register_memory(*buffers_, Access::local)),
      max_inline_(thread.endpoint.capabilities().max_inline),
      sessions_(config.sessions) {
  // Recovery advances the log's tail, so no epoch of an earlier server is used again.
  for (ServerSession& session : sessions_) session.epoch = store_.log().tail() << 24;
}

std::vector<std::uint64_t> Server::events() const {
  const Log& log = store_.log();
  const hopscotch::Table& table = store_.table();
  return {(log.tail() - opened_at_) / log.slots(), table.movements(), store_.replayed(),
          table.removed_copies()};
}

// --- connections ---------------------------------------------------------------------------------

Task<> Server::accept_connections(std::shared_ptr<Server> self) {
  fabric::Endpoint& endpoint = self->thread_.endpoint;
  return rpc::accept_connections(
      endpoint,
      [self = std::move(self)](fabric::ConnectionRequest& request) { self->accept(request); });
}

void Server::accept(fabric::ConnectionRequest& request) {
  const auto hello = rpc::read_message<Hello>(request.private_data());
  if (hello.version != kProtocolVersion) {
    request.reject();
  } else if (hello.role == Role::log) {
    accept_log(request, hello);
  } else {
    accept_session(request);
  }
}

void Server::accept_session(fabric::ConnectionRequest& request) {
  ServerSession* const free = sessions_.find_free();
  if (free == nullptr) return request.reject();
  ServerSession& session = *free;
  session.request_buffers = thread_.endpoint.create_receive_queue(request_buffers());
  for (std::uint32_t i = 0; i < request_buffers(); ++i) {
    session.request_buffers->post(request_buffer(session, i), i);
  }
  Welcome answer = welcome();
  const Shape& shape = store_.shape();
  answer.session = session.number;
  answer.queue_depth = queue_depth_;
  answer.key_size = static_cast<std::uint32_t>(shape.key_size);
  answer.value_size = static_cast<std::uint32_t>(shape.value_size);
  answer.max_key_size = static_cast<std::uint32_t>(shape.max_key_size);
  answer.max_value_size = static_cast<std::uint32_t>(shape.max_value_size);
  answer.log_slots = shape.log_slots;
  answer.position = store_.log().tail();
  answer.epoch = ++session.epoch;
  session.requests = request.accept({session.request_buffers.get(), &completions_, queue_depth_},
                                    std::as_bytes(std::span(&answer, 1)));
  sessions_.connected(*session.requests, session);
  session.connected = true;
}

void Server::accept_log(fabric::ConnectionRequest& request, const Hello& hello) {
  const std::optional<fabric::QueuePairOptions> options = log_options();
  if (!options || hello.session >= sessions_.size()) return request.reject();
  ServerSession& session = sessions_[hello.session];
  if (!session.connected || session.epoch != hello.epoch || session.log) return request.reject();
  session.log = request.accept(*options, {});
  sessions_.connected(*session.log, session);
}

// A session ends when the first of its connections ends. Its number becomes free only when both
// have ended, since only then has everything arrived that the client had sent.
void Server::connection_ended(ServerSession& session, const fabric::QueuePair* queue_pair) {
  sessions_.forget(*queue_pair);
  if (session.requests.get() == queue_pair) session.requests.reset();
  if (session.log.get() == queue_pair) session.log.reset();
  if (!session.requests) session.request_buffers.reset();
  session.connected = false;
  session_ended(session);
}

// --- requests ------------------------------------------------------------------------------------

void Server::handle(const ReceiveCompletion& completion) {
  ServerSession* const found = sessions_.of(completion.queue_pair);
  if (found == nullptr) return;
  ServerSession& session = *found;
  charge(Work::dispatch);
  if (completion.status != Status::success) {
    connection_ended(session, completion.queue_pair);
  } else if (completion.queue_pair == session.log.get()) {
    record_arrived(session, completion);
  } else {
    request_arrived(session, completion);
  }
}

void Server::request_arrived(ServerSession& session, const ReceiveCompletion& completion) {
  const std::span<const std::byte> message = completion.buffer.bytes();
  const auto header = rpc::read_message<Request>(message);
  const LocalBuffer buffer = request_buffer(session, completion.buffer_id);
  const bool sound = message.size() == request_size(header.key_length) &&
                     header.key_length <= store_.shape().max_key_size && header.id < queue_depth_;
  const Incoming request{header, sound ? message.subspan(sizeof header) : kv::Key{}};
  if (sound) {
    switch (header.kind) {
      case RequestKind::get:
        get_requested(session, request);
        break;
      case RequestKind::erase:
        erase_requested(session, request);
        break;
      case RequestKind::reserve:
        reserve_requested(session, request);
        break;
      case RequestKind::persist:
        persist_requested(session, request);
        break;
    }
  }
  session.request_buffers->post(buffer, completion.buffer_id);
}

void Server::get_requested(ServerSession& session, const Incoming& request) {
  const std::span<std::byte> into =
      reply_buffer(session, request.header.id).bytes().subspan(sizeof(Reply));
  const kv::Result<Bytes> length = store_.get(request.key, into);
  reply(session, request.header.id, length ? ReplyStatus::done : status_of(length.error()),
        store_.log().tail(), length ? static_cast<std::uint32_t>(*length) : 0);
}

void Server::reply(ServerSession& session, std::uint32_t id, ReplyStatus status,
                   std::uint64_t position, std::uint32_t value_length) {
  if (!session.connected) return;
  const LocalBuffer buffer = reply_buffer(session, id);
  rpc::write_message(buffer.bytes(), Reply{position, id, status, value_length, 0});
  rpc::send(*session.requests, buffer.first(static_cast<std::uint32_t>(reply_size(value_length))),
            max_inline_);
}

LocalBuffer Server::request_buffer(const ServerSession& session, std::uint64_t index) const {
  const Bytes offset = (Bytes{session.number} * request_buffers() + index) * request_room_;
  return buffer_memory_.local(offset, static_cast<std::uint32_t>(request_room_));
}

LocalBuffer Server::reply_buffer(const ServerSession& session, std::uint64_t index) const {
  const Bytes offset = sessions_.size() * request_buffers() * request_room_ +
                       (Bytes{session.number} * queue_depth_ + index) * reply_room_;
  return buffer_memory_.local(offset, static_cast<std::uint32_t>(reply_room_));
}

}  // namespace perdura::systems::write_ahead
