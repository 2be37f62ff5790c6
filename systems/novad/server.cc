#include "systems/novad/server.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::systems::novad {

using fabric::LocalBuffer;
using fabric::ReceiveCompletion;

namespace {

constexpr Bytes kBounce = 64 * KiB;
constexpr Bytes kInline = kMessageRoom - sizeof(ReplyHeader);

Bytes buffer_bytes(const Parameters& parameters) {
  return Bytes{parameters.sessions} * kCalls * kMessageRoom * 2 + kBounce;
}

}  // namespace

Server::Server(Thread& thread, const std::string& name, const Parameters& parameters,
               std::shared_ptr<nova::FileSystem> volume)
    : thread_(thread),
      parameters_(parameters),
      life_(static_cast<std::uint64_t>(thread.executor.now().time_since_epoch().count())),
      volume_(std::move(volume)),
      bindings_(thread, volume_->volume()),
      files_(volume_->attach(thread)),
      requests_(*files_, bindings_, parameters.writes_in_place),
      buffers_(thread.node.create_region(fmt::format("{} messages", name), buffer_bytes(parameters),
                                         pmem::Medium::dram)),
      memory_(thread.endpoint.register_memory(*buffers_, fabric::Access::local)),
      max_inline_(thread.endpoint.capabilities().max_inline),
      sessions_(parameters.sessions) {}

Task<> Server::serve(Thread&) {
  thread_.executor.spawn(rpc::accept_connections(
      thread_.endpoint,
      [self = shared_from_this()](fabric::ConnectionRequest& request) { self->accept(request); }));
  const Serving serving{*this};
  for (;;) {
    const ReceiveCompletion completion = co_await completions_.next();
    handle(completion);
  }
}

LocalBuffer Server::bounce_buffer(Bytes length) const {
  return memory_.local(buffer_bytes(parameters_) - kBounce, static_cast<std::uint32_t>(length));
}

std::vector<std::uint64_t> Server::events() const {
  std::vector<std::uint64_t> events = volume_->events();
  events.resize(kEvents.size());
  events[static_cast<std::size_t>(Counted::changes)] = bindings_.changes();
  return events;
}

Task<std::string> Server::audit() {
  co_await bindings_.settle();
  co_return co_await volume_->audit();
}

// --- connections

void Server::accept(fabric::ConnectionRequest& request) {
  const auto hello = rpc::read_message<Hello>(request.private_data());
  if (hello.version != kProtocolVersion) return request.reject();
  if (hello.purpose > Purpose::local) return request.reject();
  if (hello.purpose == Purpose::files) return accept_reader(request, hello);
  ServedSession* const free = sessions_.find_free();
  if (free == nullptr) return request.reject();
  ServedSession& session = *free;
  session.mount = hello.mount;
  if (session.mount == 0) session.mount = requests_.mounts().new_mount(life_ + 1);
  session.ended = false;
  session.buffers = thread_.endpoint.create_receive_queue(kCalls);
  for (std::uint32_t i = 0; i < kCalls; ++i) session.buffers->post(receive_buffer(session, i), i);
  const Welcome welcome{.version = kProtocolVersion,
                        .server = life_,
                        .mount = session.mount,
                        .largest_write = parameters_.volume.size};
  session.queue_pair =
      request.accept({session.buffers.get(), &completions_, 2 * kCalls}, rpc::bytes_of(welcome));
  sessions_.connected(*session.queue_pair, session);
  requests_.mounts().session_begins(session.mount, hello.purpose == Purpose::local);
}

// A filekey of an earlier life could be that of another file now.
void Server::accept_reader(fabric::ConnectionRequest& request, const Hello& hello) {
  if (hello.server != life_ || readers_.size() >= 2 * sessions_.size()) return request.reject();
  auto queue_pair = request.accept({nullptr, &completions_}, {});
  const fabric::QueuePair* const key = queue_pair.get();
  readers_[key] = std::move(queue_pair);
}

void Server::end(ServedSession& session) {
  if (std::exchange(session.ended, true)) return;
  thread_.executor.spawn(finish(shared_from_this(), session));
}

void Server::refuse(ServedSession& session) {
  ++refused_;
  end(session);
}

// A request that is under way may add a hold.
Task<> Server::finish(std::shared_ptr<Server> self, ServedSession& session) {
  while (session.running > 0) co_await wait(self->ended_);
  co_await self->requests_.end_session(session.mount);
  self->sessions_.forget(*session.queue_pair);
  session.queue_pair.reset();
  session.buffers.reset();
  self->ended_.wake_all();
}

Task<> Server::end_mount(std::uint64_t mount) {
  for (ServedSession& session : sessions_) {
    if (session.is_free() || session.mount != mount) continue;
    end(session);
    while (!session.is_free() && session.mount == mount) co_await wait(ended_);
  }
}

// --- requests

void Server::handle(const ReceiveCompletion& completion) {
  charge(Work::dispatch);
  ServedSession* const found = sessions_.of(completion.queue_pair);
  if (found == nullptr) {
    readers_.erase(completion.queue_pair);
    return;
  }
  if (found->ended) return;
  ServedSession& session = *found;
  if (completion.status != fabric::Status::success) return end(session);
  const std::span<const std::byte> message = completion.buffer.bytes();
  const auto header = rpc::read_message<MessageHeader>(message);
  const bool is_message = !completion.immediate && message.size() >= sizeof header &&
                          static_cast<std::uint32_t>(header.request) < kRequests &&
                          header.call < kCalls;
  const std::span<const std::byte> inlined =
      message.subspan(is_message ? sizeof header : message.size());
  // The longest request is a write of as much as the volume has room for.
  const bool is_whole = header.is_in_room != 0
                            ? header.length <= header.room_size &&
                                  header.length <= parameters_.volume.size + kMessageRoom
                            : header.length == inlined.size();
  const bool ends_itself = header.request == Request::leave && header.inode == session.mount;
  if (!is_message || !is_whole || ends_itself || header.room_size > kLongestRead) {
    return refuse(session);
  }
  // The buffer is posted again at once, so the request is copied.
  std::vector<std::byte> body(inlined.begin(), inlined.end());
  charge(Work::copy, body.size());
  session.buffers->post(receive_buffer(session, completion.buffer_id), completion.buffer_id);
  ++session.running;
  thread_.executor.spawn(call(shared_from_this(), session, header, std::move(body)));
}

Task<> Server::call(std::shared_ptr<Server> self, ServedSession& session, MessageHeader header,
                    std::vector<std::byte> body) {
  bool is_there = true;
  if (header.is_in_room != 0) is_there = co_await fetch(session, header, body);
  if (is_there && header.request == Request::leave) {
    co_await end_mount(header.inode);
    co_await answer(session, header, 0, {});
  } else if (is_there) {
    Encoder results;
    const std::optional<std::int32_t> error = co_await execute(session, header, body, results);
    ++executed_;
    if (error) {
      co_await answer(session, header, *error, results.bytes());
    } else {
      refuse(session);
    }
  }
  --session.running;
  self->ended_.wake_all();
}

// The effect of the operation, and its time, are those of the thread when it suspends.
Task<std::optional<std::int32_t>> Server::execute(ServedSession& session,
                                                  const MessageHeader& header,
                                                  std::span<const std::byte> body,
                                                  Encoder& results) {
  const Bytes room = std::max(kInline, header.room_size);
  co_await bindings_.settle();
  const auto error = co_await requests_.execute(session.mount, header, body, room, results);
  co_await bindings_.settle();
  co_return error;
}

Task<bool> Server::fetch(ServedSession& session, const MessageHeader& header,
                         std::vector<std::byte>& body) {
  body.resize(header.length);
  std::span<std::byte> rest = body;
  fabric::RemoteAddress from{{header.room_key}, 0};
  co_await bounce_turn_.acquire();
  bool is_read = true;
  while (is_read && !rest.empty()) {
    const LocalBuffer into = bounce_buffer(std::min<Bytes>(rest.size(), kBounce));
    is_read = !session.ended;
    if (is_read) is_read = static_cast<bool>(co_await session.queue_pair->read(into, from));
    copy_bytes(rest.first(into.length), into.bytes());
    charge(Work::copy, into.length);
    rest = rest.subspan(into.length);
    from = from + into.length;
  }
  bounce_turn_.release();
  co_return is_read;
}

Task<bool> Server::put(ServedSession& session, const MessageHeader& header,
                       std::span<const std::byte> results) {
  fabric::RemoteAddress to{{header.room_key}, 0};
  co_await bounce_turn_.acquire();
  bool is_written = true;
  while (is_written && !results.empty()) {
    const LocalBuffer from = bounce_buffer(std::min<Bytes>(results.size(), kBounce));
    copy_bytes(from.bytes(), results.first(from.length));
    charge(Work::copy, from.length);
    is_written = !session.ended;
    if (is_written) is_written = static_cast<bool>(co_await session.queue_pair->write(from, to));
    results = results.subspan(from.length);
    to = to + from.length;
  }
  bounce_turn_.release();
  co_return is_written;
}

Task<> Server::answer(ServedSession& session, const MessageHeader& header, std::int32_t error,
                      std::span<const std::byte> results) {
  ReplyHeader reply{.call = header.call, .error = error, .length = results.size()};
  // A mount that has not opened the file is not told its key.
  if (const auto rights = requests_.mounts().rights(session.mount, header.inode); rights != 0) {
    reply.file = bindings_.state(header.inode, rights);
  }
  if (error != 0) results = {};
  if (results.size() > kInline) {
    const bool is_written = co_await put(session, header, results);
    if (!is_written) co_return;
    reply.is_in_room = 1;
    results = {};
  }
  if (session.ended) co_return;
  const LocalBuffer message = reply_buffer(session, header.call)
                                  .first(static_cast<std::uint32_t>(sizeof reply + results.size()));
  rpc::write_message(message.bytes(), reply);
  copy_bytes(message.bytes().subspan(sizeof reply), results);
  charge(Work::copy, results.size());
  rpc::send(*session.queue_pair, message, max_inline_);
}

}  // namespace perdura::systems::novad
