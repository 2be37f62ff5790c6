#include "systems/orion/mds/network_thread.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::systems::orion {

using fabric::Access;
using fabric::LocalBuffer;
using fabric::ReceiveCompletion;
using fabric::Status;

namespace {

constexpr Bytes kReplyRoom = (sizeof(Reply) + kCacheLine - 1) / kCacheLine * kCacheLine;
constexpr Picoseconds kBetweenEpochLooks = Microseconds(20);
constexpr Picoseconds kBetweenSpaceLooks = Microseconds(1);
constexpr Picoseconds kBetweenTurnLooks = Microseconds(1);
// An inode is reserved for at most so many times twice as long.
constexpr std::uint32_t kMostDoublings = 10;

// True if the request is one that a session executes again when others came first.
bool can_be_refused(Request request) {
  return request == Request::commit || request == Request::update || request == Request::borrow;
}

}  // namespace

NetworkThread::NetworkThread(Thread& thread, const std::string& name, Metadata& metadata,
                             std::span<FsThread> fs_threads, const Parameters& parameters,
                             std::uint32_t context)
    : thread_(thread),
      metadata_(metadata),
      fs_threads_(fs_threads),
      parameters_(parameters),
      context_(context),
      requests_(metadata, context),
      buffers_(thread.node.open_region(buffers_region(name))),
      buffer_memory_(thread.endpoint.register_memory(
          *buffers_, context * parameters.sessions * parameters.session_buffers,
          parameters.sessions * parameters.session_buffers, Access::local)),
      replies_(thread.node.create_region(fmt::format("{} replies {}", name, context),
                                         (parameters.sessions * kCalls + 1) * kReplyRoom,
                                         pmem::Medium::dram)),
      reply_memory_(thread.endpoint.register_memory(*replies_, Access::remote_write)),
      payload_(thread, fmt::format("{} payload {}", name, context), Access::local),
      volume_memory_(thread.endpoint.register_memory(metadata.region(), Access::remote_read)),
      words_memory_(
          thread.endpoint.register_memory(metadata.words().region(), Access::remote_read)),
      max_inline_(thread.endpoint.capabilities().max_inline),
      sessions_(parameters.sessions) {
  StoreLinks::Listener listener{
      .acknowledged = [this](std::uint32_t store, const Ack& ack) { acknowledged(store, ack); },
      .epoch_begins = [this] { forced_.wake_all(); }};
  stores_ = std::make_shared<StoreLinks>(thread, name, metadata, parameters, context, completions_,
                                         std::move(listener));
}

Task<> NetworkThread::serve(bool accepts) {
  if (accepts) {
    thread_.executor.spawn(rpc::accept_connections(
        thread_.endpoint, [self = shared_from_this()](fabric::ConnectionRequest& request) {
          self->accept(request);
        }));
  }
  const Serving serving{*this};
  stores_->start();
  for (;;) {
    const ReceiveCompletion completion = co_await completions_.next();
    const Time begin = thread_.executor.now();
    handle(completion);
    counts_.handling += thread_.executor.now() - begin;
  }
}

// The connections belong to the thread; somebody may still ask for counts when it is gone.
NetworkThread::Serving::~Serving() {
  network.sessions_.clear();
  network.stores_->clear();
  network.metadata_.disconnect();
}

// --- connections

void NetworkThread::accept(fabric::ConnectionRequest& request) {
  const auto hello = rpc::read_message<Hello>(request.private_data());
  if (hello.version != kProtocolVersion || metadata_.has_failed()) return request.reject();
  hello.peer == Peer::store ? stores_->accept(request, hello) : accept_session(request, hello);
}

void NetworkThread::accept_session(fabric::ConnectionRequest& request, const Hello& hello) {
  MdsSession* const free = sessions_.find_free();
  if (free == nullptr) return request.reject();
  MdsSession& session = *free;
  session.id = hello.id;
  if (session.id.mount == 0) session.id.mount = metadata_.mounts().new_mount();
  session.ended = false;
  session.forced.assign(parameters_.stores.size(), 0);
  session.buffers = thread_.endpoint.create_receive_queue(receive_buffers());
  for (std::uint32_t i = 0; i < receive_buffers(); ++i) {
    session.buffers->post(receive_buffer(session, i), i);
  }
  const nova::Geometry& geometry = metadata_.volume().geometry();
  const Welcome welcome{.version = kProtocolVersion,
                        .session = number_of(session),
                        .volume_key = volume_memory_.key.value,
                        .words_key = words_memory_.key.value,
                        .size = geometry.size,
                        .inodes = geometry.inodes,
                        .pages = parameters_.pages,
                        .mount = session.id.mount,
                        .log_page_bytes = static_cast<std::uint32_t>(geometry.log_page_bytes),
                        .groups = static_cast<std::uint16_t>(parameters_.groups),
                        .chunk_pages = static_cast<std::uint16_t>(parameters_.chunk_pages)};
  session.queue_pair =
      request.accept({session.buffers.get(), &completions_, kCalls + 2}, rpc::bytes_of(welcome));
  sessions_.connected(*session.queue_pair, session);
  metadata_.mounts().session_begins(session.id.mount);
}

void NetworkThread::end(MdsSession& session) {
  if (std::exchange(session.ended, true)) return;
  metadata_.reservations().end_session(number_of(session));
  forced_.wake_all();
  thread_.executor.spawn(finish(shared_from_this(), session));
}

// The holds of the session are released when its last request has ended: a request may add one.
Task<> NetworkThread::finish(std::shared_ptr<NetworkThread> self, MdsSession& session) {
  while (session.running > 0) co_await wait(self->ended_);
  co_await self->stores_->fence(session.id);
  co_await self->metadata_.begin_change();
  self->requests_.end_session(self->requester_of(session));
  self->metadata_.end_change();
  co_await self->metadata_.settle();
  self->sessions_.forget(*session.queue_pair);
  session.queue_pair.reset();
  session.buffers.reset();
  self->ended_.wake_all();
}

Task<> NetworkThread::end_mount(std::uint64_t mount) {
  for (MdsSession& session : sessions_) {
    if (session.is_free() || session.id.mount != mount) continue;
    end(session);
    while (!session.is_free() && session.id.mount == mount) co_await wait(ended_);
  }
}

// --- requests

void NetworkThread::handle(const ReceiveCompletion& completion) {
  charge(Work::dispatch);
  if (stores_->received(completion)) return;
  MdsSession* const session = sessions_.of(completion.queue_pair);
  if (session == nullptr || session->ended) return;
  if (completion.status != Status::success) return end(*session);
  received(*session, completion);
}

void NetworkThread::received(MdsSession& session, const ReceiveCompletion& completion) {
  const std::span<const std::byte> bytes = completion.buffer.bytes();
  ParsedRequest request;
  const auto is_store = [this](const Force& force) {
    return force.store < parameters_.stores.size();
  };
  if (completion.immediate || !parse(bytes, request) || request.header.call >= kCalls ||
      !std::all_of(request.forces.begin(), request.forces.end(), is_store)) {
    ++counts_.malformed;
    return end(session);
  }
  if (request.header.request == Request::commit && request.forces.empty() &&
      commit(session, request)) {
    session.buffers->post(receive_buffer(session, completion.buffer_id), completion.buffer_id);
    return;
  }
  // The buffer is posted again at once, so the request is copied.
  std::vector<std::byte> message(bytes.begin(), bytes.end());
  charge(Work::copy, message.size());
  session.buffers->post(receive_buffer(session, completion.buffer_id), completion.buffer_id);
  ++session.running;
  thread_.executor.spawn(call(shared_from_this(), session, std::move(message)));
}

// Appends a commit at once. Returns false if it has to wait, as for space or for its turn.
bool NetworkThread::commit(MdsSession& session, const ParsedRequest& request) {
  if (metadata_.is_paused() || request.header.refusals >= kMostRefusals ||
      !metadata_.reservations().is_free(request.header.inode)) {
    return false;
  }
  const Appended appended = requests_.append(number_of(session), request.header, request.payload);
  if (appended.error == std::errc::no_space_on_device) return false;
  const Reply reply = reply_of(appended);
  if (!metadata_.has_mirror()) {
    answer(session, request.header, reply);
  } else {
    ++session.running;
    thread_.executor.spawn(settle(shared_from_this(), session, request.header, reply));
  }
  if (!appended.waits) return true;
  if (fs_threads_.empty()) {
    requests_.catch_up(request.header.inode);
  } else {
    thread_.executor.spawn(catch_up(shared_from_this(), request.header.inode));
  }
  return true;
}

// The file-system thread of the inode applies what was appended to its log (section 4.2.2).
Task<> NetworkThread::catch_up(std::shared_ptr<NetworkThread> self, std::uint64_t inode) {
  FsThread& own = self->fs_threads_[inode % self->fs_threads_.size()];
  const auto work = [](Requests& requests, std::uint64_t number) -> Task<> {
    requests.catch_up(number);
    co_await yield();
  };
  co_await self->metadata_.begin_change();
  co_await own.thread->run(work(*own.requests, inode));
  self->metadata_.end_change();
}

Task<> NetworkThread::settle(std::shared_ptr<NetworkThread> self, MdsSession& session,
                             MessageHeader header, Reply reply) {
  co_await self->settle_and_answer(session, header, reply);
  --session.running;
  self->ended_.wake_all();
}

Task<> NetworkThread::settle_and_answer(MdsSession& session, const MessageHeader& header,
                                        const Reply& reply) {
  const bool is_settled = co_await metadata_.settle();
  is_settled ? answer(session, header, reply) : stop();
}

void NetworkThread::stop() {
  stores_->clear();
  for (MdsSession& session : sessions_) {
    if (!session.is_free()) end(session);
  }
}

// A session that has ended meanwhile may have other successors.
void NetworkThread::acknowledged(std::uint32_t store, const Ack& ack) {
  ++counts_.forces;
  const std::uint64_t number = ack.session - number_of(sessions_[0]);
  if (number >= sessions_.size()) return;
  MdsSession& session = sessions_[number];
  if (session.is_free() || session.id != ack.id) return;
  session.forced[store] = std::max(session.forced[store], ack.sequence);
  forced_.wake_all();
}

// An acknowledgment may never come: the connection over which the page came has broken, and the store
// lives on. So the client is told to write again after a while.
Task<bool> NetworkThread::await_forces(const MdsSession& session, const ParsedRequest& request) {
  const Time until = thread_.executor.now() + parameters_.store_patience;
  const auto have_forced = [&] {
    return std::all_of(request.forces.begin(), request.forces.end(), [&](const Force& force) {
      const std::uint64_t forced = session.forced[force.store];
      return forced >= force.sequence &&
             forced >> kConnectionShift == force.sequence >> kConnectionShift;
    });
  };
  const auto is_over = [&] {
    return session.ended || metadata_.pages().accepted() != request.header.epoch ||
           thread_.executor.now() >= until;
  };
  ++awaiting_;
  while (!have_forced() && !is_over()) {
    if (!std::exchange(looks_, true)) thread_.executor.spawn(look_for_epochs(shared_from_this()));
    co_await wait(forced_);
  }
  --awaiting_;
  co_return have_forced();
}

// Network thread 0 begins epochs; commits of others learn of them in this way, and all of the time.
Task<> NetworkThread::look_for_epochs(std::shared_ptr<NetworkThread> self) {
  const Picoseconds pause =
      self->context_ == 0 ? self->parameters_.store_patience / 4 : kBetweenEpochLooks;
  while (self->awaiting_ > 0) {
    co_await sleep_for(pause);
    self->forced_.wake_all();
  }
  self->looks_ = false;
}

Task<> NetworkThread::call(std::shared_ptr<NetworkThread> self, MdsSession& session,
                           std::vector<std::byte> message) {
  ParsedRequest request;
  parse(message, request);
  std::vector<std::byte> payload;
  if (request.header.request == Request::leave) {
    co_await self->end_mount(request.arguments.device);
  }
  Reply reply{.error = static_cast<std::int32_t>(std::errc::invalid_argument)};
  bool is_whole = (request.header.flags & kByReference) == 0;
  if (!is_whole) is_whole = co_await self->fetch_payload(session, request, payload);
  // If the client is gone, what the stores have forced is committed: it may have been told so.
  if (is_whole && !request.forces.empty()) {
    is_whole = co_await self->await_forces(session, request);
    if (!is_whole) reply.error = kOtherMembers;
  }
  if (is_whole) reply = co_await self->execute(session, request);
  co_await self->settle_and_answer(session, request.header, reply);
  --session.running;
  self->ended_.wake_all();
}

Task<bool> NetworkThread::fetch_payload(MdsSession& session, ParsedRequest& request,
                                        std::vector<std::byte>& payload) {
  const Arguments& given = request.arguments;
  if (given.payload_length > kLargestPayload || session.ended) co_return false;
  co_await payload_.turn.acquire();
  const LocalBuffer into = payload_.memory().local(0, given.payload_length);
  const fabric::RemoteAddress from{fabric::RemoteKey{given.payload_key}, given.payload_offset};
  const fabric::Completion read = co_await session.queue_pair->read(into, from);
  if (read) {
    const std::span<const std::byte> bytes = into.bytes();
    payload.assign(bytes.begin(), bytes.end());
    charge(Work::copy, payload.size());
    request.payload = payload;
  }
  payload_.turn.release();
  co_return static_cast<bool>(read);
}

Task<Reply> NetworkThread::execute_now(MdsSession& session, const ParsedRequest& request) {
  const Requester requester = requester_of(session);
  Reply reply;
  co_await metadata_.begin_change();
  if (fs_threads_.empty() || request.header.request == Request::commit) {
    reply = requests_.execute(requester, request);
  } else {
    FsThread& own = fs_threads_[request.header.inode % fs_threads_.size()];
    Picoseconds taken{};
    const auto work = [](Requests& requests, const Requester& from, const ParsedRequest& what,
                         Reply& into, Picoseconds& time) -> Task<> {
      const Time begin = Executor::current().now();
      into = requests.execute(from, what);
      time = Executor::current().now() - begin;
      // The request has taken this thread's time, and its effect is durable only then.
      co_await yield();
    };
    co_await own.thread->run(work(*own.requests, requester, request, reply, taken));
    counts_.executing += taken;
  }
  metadata_.end_change();
  co_return reply;
}

// Whoever changes the same inode may belong to another network thread.
Task<> NetworkThread::until_turn(Reservations::Ticket ticket) {
  while (!metadata_.reservations().is_turn(ticket, thread_.executor.now())) {
    co_await sleep_for(kBetweenTurnLooks);
  }
}

Task<Reservations::Ticket> NetworkThread::take_turn(MdsSession& session,
                                                    const ParsedRequest& request) {
  Reservations& reservations = metadata_.reservations();
  if (reservations.are_none()) co_return 0;
  if (can_be_refused(request.header.request)) {
    const Reservations::Ticket own =
        reservations.take_up(number_of(session), request.header.inode, thread_.executor.now());
    if (own != 0) co_return own;
  }
  for (;;) {
    const std::vector<std::uint64_t> inodes = requests_.changed_by(request);
    if (inodes.empty()) co_return 0;
    const Reservations::Ticket ticket = reservations.enter(inodes);
    co_await until_turn(ticket);
    // A name may have been given to another inode meanwhile.
    if (requests_.changed_by(request) == inodes) co_return ticket;
    reservations.leave(ticket);
  }
}

Task<> NetworkThread::end_turn(MdsSession& session, const ParsedRequest& request,
                               const Reply& reply, Reservations::Ticket ticket) {
  Reservations& reservations = metadata_.reservations();
  const MessageHeader& header = request.header;
  const bool borrows = header.request == Request::borrow;
  const bool is_refused =
      can_be_refused(header.request) &&
      (reply.error == kStale || reply.error == kOtherMembers ||
       reply.error == static_cast<std::int32_t>(std::errc::resource_unavailable_try_again));
  const bool goes_on = is_refused || (borrows && reply.error == 0);
  if (header.refusals < kMostRefusals || !goes_on) co_return reservations.leave(ticket);
  // Whoever has borrowed the pages must have a turn to commit them.
  if (borrows && is_refused) {
    reservations.leave(ticket);
    ticket = 0;
  }
  if (ticket == 0) {
    ticket = reservations.enter(std::span(&header.inode, 1));
    co_await until_turn(ticket);
  }
  if (session.ended) co_return reservations.leave(ticket);
  const std::uint32_t doublings = std::min(header.refusals - kMostRefusals, kMostDoublings);
  reservations.reserve(ticket, number_of(session),
                       thread_.executor.now() + parameters_.reservation * (1 << doublings));
}

Task<Reply> NetworkThread::execute(MdsSession& session, const ParsedRequest& request) {
  nova::Volume& volume = metadata_.volume();
  for (;;) {
    const Reservations::Ticket ticket = co_await take_turn(session, request);
    const Reply reply = co_await execute_now(session, request);
    co_await end_turn(session, request, reply, ticket);
    // Space that was freed a moment ago may be used soon; numbers of inodes are free at once.
    if (reply.error != static_cast<std::int32_t>(std::errc::no_space_on_device) ||
        volume.numbers().free_count() == 0) {
      co_return reply;
    }
    if (session.ended) co_return reply;
    if (metadata_.pages().has_kept()) {
      co_await sleep_for(kBetweenEpochLooks);
      continue;
    }
    const std::optional<Time> when = volume.next_free();
    if (!when) co_return reply;
    const bool is_settled = co_await metadata_.settle();
    if (!is_settled) co_return reply;
    co_await sleep_until(std::max(*when, thread_.executor.now() + kBetweenSpaceLooks));
    volume.free_waiting(thread_.executor.now());
  }
}

void NetworkThread::answer(MdsSession& session, const MessageHeader& header, Reply reply) {
  ++(header.request == Request::commit ? counts_.commits : counts_.rpcs);
  if ((header.flags & kSpeculative) != 0) {
    if (reply.error != 0) ++counts_.dropped;
    return;
  }
  if (session.ended) return;
  reply.call = header.call;
  const LocalBuffer buffer = reply_buffer(session, header.call);
  rpc::write_message(buffer.bytes(), reply);
  const bool is_short = header.request == Request::commit || header.request == Request::update ||
                        header.request == Request::release;
  rpc::send(*session.queue_pair,
            buffer.first(is_short ? offsetof(Reply, attributes) : sizeof(Reply)), max_inline_);
}

LocalBuffer NetworkThread::receive_buffer(const MdsSession& session, std::uint64_t index) const {
  return buffer_memory_.local((Bytes{session.number} * receive_buffers() + index) * kMessageRoom,
                              static_cast<std::uint32_t>(kMessageRoom));
}

LocalBuffer NetworkThread::reply_buffer(const MdsSession& session, std::uint32_t call) const {
  return reply_memory_.local((Bytes{session.number} * kCalls + call + 1) * kReplyRoom,
                             static_cast<std::uint32_t>(kReplyRoom));
}

}  // namespace perdura::systems::orion
