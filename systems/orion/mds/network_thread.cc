#include "systems/orion/mds/network_thread.h"

#include <fmt/format.h>

#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::systems::orion {

using fabric::Access;
using fabric::LocalBuffer;
using fabric::ReceiveCompletion;
using fabric::Status;

namespace {

constexpr Bytes kReplyRoom = (sizeof(Reply) + kCacheLine - 1) / kCacheLine * kCacheLine;
constexpr std::uint32_t kMostStores = 256;
// Receive buffers for the acknowledgments of all stores.
constexpr std::uint32_t kStoreBuffers = 1024;
constexpr Bytes kStoreRoom = kCacheLine;

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
      payload_(thread.node.create_region(fmt::format("{} payload {}", name, context),
                                         kLargestPayload, pmem::Medium::dram)),
      payload_memory_(thread.endpoint.register_memory(*payload_, Access::local)),
      volume_memory_(thread.endpoint.register_memory(metadata.region(), Access::remote_read)),
      words_memory_(
          thread.endpoint.register_memory(metadata.words().region(), Access::remote_read)),
      max_inline_(thread.endpoint.capabilities().max_inline),
      sessions_(parameters.sessions),
      store_memory_(thread.node.create_region(fmt::format("{} stores {}", name, context),
                                              (kStoreBuffers + kMostStores) * kStoreRoom,
                                              pmem::Medium::dram)),
      store_registered_(thread.endpoint.register_memory(*store_memory_, Access::local)),
      store_buffers_(thread.endpoint.create_receive_queue(kStoreBuffers)),
      stores_(kMostStores) {
  for (std::uint32_t i = 0; i < kStoreBuffers; ++i) store_buffers_->post(store_buffer(i), i);
}

Task<> NetworkThread::serve() {
  thread_.executor.spawn(rpc::accept_connections(
      thread_.endpoint,
      [self = shared_from_this()](fabric::ConnectionRequest& request) { self->accept(request); }));
  const Serving serving{*this};
  for (;;) handle(co_await completions_.next());
}

// The connections belong to the thread; somebody may still ask for counts when it is gone.
NetworkThread::Serving::~Serving() {
  network.sessions_.clear();
  network.stores_.clear();
  network.store_buffers_.reset();
}

// --- connections

void NetworkThread::accept(fabric::ConnectionRequest& request) {
  const auto hello = rpc::read_message<Hello>(request.private_data());
  if (hello.version != kProtocolVersion) return request.reject();
  hello.peer == Peer::store ? accept_store(request, hello) : accept_session(request, hello);
}

void NetworkThread::accept_session(fabric::ConnectionRequest& request, const Hello& hello) {
  MdsSession* const free = sessions_.find_free();
  if (free == nullptr) return request.reject();
  MdsSession& session = *free;
  session.id = hello.session;
  if (session.id.mount == 0) session.id.mount = metadata_.mounts().new_mount();
  session.ended = false;
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

void NetworkThread::accept_store(fabric::ConnectionRequest& request, const Hello& hello) {
  StoreConnection* const free = stores_.find_free();
  if (free == nullptr || hello.group >= parameters_.groups) return request.reject();
  const StoreWelcome welcome{.version = kProtocolVersion, .pages_key = reply_memory_.key.value};
  free->group = hello.group;
  free->queue_pair = request.accept({store_buffers_.get(), &completions_}, rpc::bytes_of(welcome));
  stores_.connected(*free->queue_pair, *free);
}

void NetworkThread::end(MdsSession& session) {
  if (std::exchange(session.ended, true)) return;
  forces_.wake();
  thread_.executor.spawn(finish(shared_from_this(), session));
}

// The holds of the session are released when its last request has ended: a request may add one.
Task<> NetworkThread::finish(std::shared_ptr<NetworkThread> self, MdsSession& session) {
  while (session.running > 0) co_await wait(self->ended_);
  co_await self->fence(session.id);
  self->requests_.end_session(self->requester_of(session));
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
  if (StoreConnection* const store = stores_.of(completion.queue_pair)) {
    return received_from(*store, completion);
  }
  MdsSession* const session = sessions_.of(completion.queue_pair);
  if (session == nullptr || session->ended) return;
  if (completion.status != Status::success) return end(*session);
  received(*session, completion);
}

void NetworkThread::received_from(StoreConnection& store, const ReceiveCompletion& completion) {
  if (completion.status != Status::success) {
    stores_.forget(*completion.queue_pair);
    store.queue_pair.reset();
    store.fencing.clear();
    return fenced_.wake_all();
  }
  if (completion.immediate) {
    ++counts_.forces;
    forces_.acknowledged(gpa_of(store.group, *completion.immediate));
  } else {
    store.fencing.erase(rpc::read_message<Fence>(completion.buffer.bytes()).session);
    fenced_.wake_all();
  }
  store_buffers_->post(store_buffer(completion.buffer_id), completion.buffer_id);
}

// A store that is not connected has failed, and with it the connections of sessions to it.
Task<> NetworkThread::fence(SessionId session) {
  for (StoreConnection& store : stores_) {
    while (!store.is_free() && !store.fencing.empty()) co_await wait(fenced_);
    if (store.is_free()) continue;
    store.fencing.insert(session);
    const LocalBuffer buffer = store_buffer(kStoreBuffers + store.number);
    rpc::write_message(buffer.bytes(), Fence{session});
    rpc::send(*store.queue_pair, buffer.first(sizeof(Fence)), max_inline_);
  }
  for (StoreConnection& store : stores_) {
    while (!store.is_free() && store.fencing.contains(session)) co_await wait(fenced_);
  }
}

void NetworkThread::received(MdsSession& session, const ReceiveCompletion& completion) {
  const std::span<const std::byte> bytes = completion.buffer.bytes();
  ParsedRequest request;
  if (completion.immediate || !parse(bytes, request) || request.header.call >= kCalls) {
    ++counts_.malformed;
    return end(session);
  }
  if (request.header.request == Request::commit && request.header.forces == 0 &&
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

// Appends a commit at once. Returns false if there is no space for it, which may come.
bool NetworkThread::commit(MdsSession& session, const ParsedRequest& request) {
  const Reply reply = requests_.append(number_of(session), request.header, request.payload);
  if (reply.error == static_cast<std::int32_t>(std::errc::no_space_on_device)) return false;
  answer(session, request.header, reply);
  return true;
}

// Waits until the stores have forced the pages that the entries say are written.
Task<bool> NetworkThread::await_forces(const MdsSession& session, const ParsedRequest& request) {
  bool forced = true;
  for (std::size_t at = 0; at + kCacheLine <= request.payload.size() && forced; at += kCacheLine) {
    nova::WriteEntry entry;
    std::memcpy(static_cast<void*>(&entry), request.payload.data() + at, sizeof entry);
    if (entry.header.type != nova::EntryType::write || entry.block == 0 ||
        (entry.header.flags & nova::kUnwritten) != 0) {
      continue;
    }
    for (std::uint64_t i = 0; i < entry.count && forced; ++i) {
      forced = co_await forces_.await(entry.block + i, request.header.forces,
                                      [&session] { return session.ended; });
    }
  }
  co_return forced;
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
  if (is_whole && request.header.forces > 0) {
    is_whole = co_await self->await_forces(session, request);
  }
  if (is_whole) reply = co_await self->execute(session, request);
  if (request.header.request == Request::take_chunk) self->forces_.forget(reply.value, reply.count);
  self->answer(session, request.header, reply);
  --session.running;
  self->ended_.wake_all();
}

Task<bool> NetworkThread::fetch_payload(MdsSession& session, ParsedRequest& request,
                                        std::vector<std::byte>& payload) {
  const Arguments& given = request.arguments;
  if (given.payload_length > kLargestPayload || session.ended) co_return false;
  co_await payload_turn_.acquire();
  const LocalBuffer into = payload_memory_.local(0, given.payload_length);
  const fabric::RemoteAddress from{fabric::RemoteKey{given.payload_key}, given.payload_offset};
  const fabric::Completion read = co_await session.queue_pair->read(into, from);
  if (read) {
    const std::span<const std::byte> bytes = into.bytes();
    payload.assign(bytes.begin(), bytes.end());
    charge(Work::copy, payload.size());
    request.payload = payload;
  }
  payload_turn_.release();
  co_return static_cast<bool>(read);
}

Task<Reply> NetworkThread::execute(MdsSession& session, const ParsedRequest& request) {
  const Requester requester = requester_of(session);
  nova::Volume& volume = metadata_.volume();
  for (;;) {
    Reply reply;
    if (fs_threads_.empty() || request.header.request == Request::commit) {
      reply = requests_.execute(requester, request);
    } else {
      FsThread& own = fs_threads_[request.header.inode % fs_threads_.size()];
      const auto work = [](Requests& requests, const Requester& from, const ParsedRequest& what,
                           Reply& into) -> Task<> {
        into = requests.execute(from, what);
        // The request has taken this thread's time, and its effect is durable only then.
        co_await yield();
      };
      co_await own.thread->run(work(*own.requests, requester, request, reply));
    }
    // Space that was freed a moment ago may be used soon; numbers of inodes are free at once.
    if (reply.error != static_cast<std::int32_t>(std::errc::no_space_on_device) ||
        volume.numbers().free_count() == 0) {
      co_return reply;
    }
    const std::optional<Time> when = volume.next_free();
    if (!when || session.ended) co_return reply;
    if (*when > thread_.executor.now()) co_await sleep_until(*when);
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

LocalBuffer NetworkThread::store_buffer(std::uint64_t index) const {
  return store_registered_.local(index * kStoreRoom, static_cast<std::uint32_t>(kStoreRoom));
}

LocalBuffer NetworkThread::reply_buffer(const MdsSession& session, std::uint32_t call) const {
  return reply_memory_.local((Bytes{session.number} * kCalls + call + 1) * kReplyRoom,
                             static_cast<std::uint32_t>(kReplyRoom));
}

}  // namespace perdura::systems::orion
