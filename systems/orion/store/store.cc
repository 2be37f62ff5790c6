#include "systems/orion/store/store.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "platform/runtime/work.h"
#include "rpc/connect.h"
#include "rpc/messages.h"
#include "systems/orion/protocol/counted.h"
#include "systems/orion/protocol/layout.h"

namespace perdura::systems::orion {

using fabric::Access;
using fabric::LocalBuffer;
using fabric::ReceiveCompletion;
using fabric::Status;

namespace {

constexpr std::uint32_t kSeed = 0x53544F52;
// A session may have this many WRITEs with immediates, and requests, under way.
constexpr std::uint32_t kReceiveBuffers = 64;
constexpr std::uint32_t kAnswers = 32;  // to each session, by call
constexpr std::uint32_t kBufferRoom = kCacheLine;
constexpr std::uint32_t kMdsBuffers = 64;
constexpr Picoseconds kBetweenConnects = Milliseconds(1);

StoreHeader header_of(const Parameters& parameters, std::uint32_t group) {
  StoreHeader header{.magic = kStoreMagic, .group = group, .pages = parameters.pages};
  header.crc = crc32(kSeed, nova::bytes_of(header).subspan(offsetof(StoreHeader, group)));
  return header;
}

}  // namespace

void make_store(Node& node, const std::string& name, const Parameters& parameters,
                std::uint32_t group) {
  const auto region =
      node.create_region(pages_region(name), parameters.pages * kPage, pmem::Medium::pm);
  region->write_object(0, header_of(parameters, group));
  region->persist(0, sizeof(StoreHeader));
}

std::unique_ptr<pmem::Region> open_pages(Node& node, const std::string& name,
                                         const Parameters& parameters, std::uint32_t group) {
  auto region = node.open_region(pages_region(name));
  if (region == nullptr) {
    throw UsageError(
        fmt::format("there are no pages of a file system '{}' on node {}", name, node.id()));
  }
  const auto found = region->read_object<StoreHeader>(0);
  const StoreHeader expected = header_of(parameters, group);
  if (found.magic != expected.magic || found.crc != expected.crc) {
    throw UsageError(
        fmt::format("the pages of '{}' on node {} are not those of group {} with {} bytes", name,
                    node.id(), group, parameters.pages * kPage));
  }
  return region;
}

Store::Store(Thread& thread, std::string name, const Parameters& parameters, NodeId mds,
             std::uint32_t group)
    : name_(std::move(name)),
      parameters_(parameters),
      mds_(mds),
      group_(group),
      pages_(open_pages(thread.node, name_, parameters, group)),
      sessions_(parameters.sessions * parameters.network_threads) {
  // A process that died leaves visible data that may not be durable, and that logs may refer to.
  pages_->persist(0, pages_->size());
}

Task<> Store::serve(Thread& thread) {
  thread_ = &thread;
  pages_memory_ = thread.endpoint.register_memory(*pages_, Access::remote_all);
  buffers_ = thread.node.create_region(fmt::format("{} store buffers", name_),
                                       buffer_count() * kBufferRoom, pmem::Medium::dram);
  buffer_memory_ = thread.endpoint.register_memory(*buffers_, Access::local);
  max_inline_ = thread.endpoint.capabilities().max_inline;
  mds_buffers_ = thread.endpoint.create_receive_queue(kMdsBuffers);
  for (std::uint32_t i = 0; i < kMdsBuffers; ++i) mds_buffers_->post(mds_buffer(i), i);
  thread.executor.spawn(connect_mds(shared_from_this()));
  thread.executor.spawn(rpc::accept_connections(
      thread.endpoint,
      [self = shared_from_this()](fabric::ConnectionRequest& request) { self->accept(request); }));
  const Serving serving{*this};
  for (;;) handle(co_await completions_.next());
}

// The connections belong to the thread; somebody may still ask for counts when it is gone.
Store::Serving::~Serving() {
  store.sessions_.clear();
  store.mds_connections_.clear();
  store.mds_buffers_.reset();
}

std::vector<std::uint64_t> Store::events() const { return std::vector<std::uint64_t>(kEventCount); }

// The MDS may start later, and may come back after a failure.
Task<> Store::connect_mds(std::shared_ptr<Store> self) {
  fabric::Endpoint& endpoint = self->thread_->endpoint;
  const std::uint32_t count = self->parameters_.network_threads;
  self->mds_connections_.resize(count);
  self->mds_places_.resize(count);
  for (;;) {
    for (std::uint32_t port = 0; port < count; ++port) {
      std::unique_ptr<fabric::QueuePair>& connection = self->mds_connections_[port];
      if (connection && connection->connected()) continue;
      connection.reset();
      const Hello hello{.version = kProtocolVersion, .peer = Peer::store, .group = self->group_};
      fabric::QueuePairOptions options{self->mds_buffers_.get(), &self->completions_};
      fabric::Connection made =
          co_await endpoint.connect({self->mds_, static_cast<fabric::Port>(port)}, options,
                                    {rpc::bytes_of(hello).begin(), rpc::bytes_of(hello).end()});
      if (made.status != Status::success) continue;
      const auto welcome = rpc::read_message<StoreWelcome>(made.private_data);
      self->mds_places_[port] = {fabric::RemoteKey{welcome.pages_key}, 0};
      connection = std::move(made.queue_pair);
      for (const std::uint32_t page : std::exchange(self->unacknowledged_, {})) {
        self->acknowledge(page);
      }
    }
    co_await sleep_for(kBetweenConnects);
  }
}

void Store::accept(fabric::ConnectionRequest& request) {
  const auto hello = rpc::read_message<Hello>(request.private_data());
  StoreSession* const free = sessions_.find_free();
  if (hello.version != kProtocolVersion || hello.peer != Peer::session || free == nullptr ||
      fenced_.contains(hello.session)) {
    return request.reject();
  }
  free->id = hello.session;
  free->buffers = thread_->endpoint.create_receive_queue(kReceiveBuffers);
  for (std::uint32_t i = 0; i < kReceiveBuffers; ++i) {
    free->buffers->post(receive_buffer(*free, i), i);
  }
  const StoreWelcome welcome{.version = kProtocolVersion,
                             .pages_key = pages_memory_.key.value,
                             .pages = parameters_.pages};
  free->queue_pair = request.accept({free->buffers.get(), &completions_}, rpc::bytes_of(welcome));
  sessions_.connected(*free->queue_pair, *free);
}

void Store::handle(const ReceiveCompletion& completion) {
  charge(Work::dispatch);
  StoreSession* const session = sessions_.of(completion.queue_pair);
  if (session == nullptr) return received_from_mds(completion);
  if (completion.status != Status::success) return disconnect(*session);
  if (completion.immediate) {
    if (force(*completion.immediate, 1)) acknowledge(*completion.immediate);
  } else {
    const auto request = rpc::read_message<Force>(completion.buffer.bytes());
    Forced answer{.call = request.call};
    if (!force(request.page, request.count)) answer.refused = 1;
    const LocalBuffer buffer = answer_buffer(*session, request.call % kAnswers);
    rpc::write_message(buffer.bytes(), answer);
    rpc::send(*session->queue_pair, buffer.first(sizeof answer), max_inline_);
  }
  session->buffers->post(receive_buffer(*session, completion.buffer_id), completion.buffer_id);
}

void Store::disconnect(StoreSession& session) {
  sessions_.forget(*session.queue_pair);
  session.queue_pair.reset();
  session.buffers.reset();
}

void Store::received_from_mds(const ReceiveCompletion& completion) {
  // connect_mds() makes a broken connection again.
  if (completion.status != Status::success) return;
  const auto fence = rpc::read_message<Fence>(completion.buffer.bytes());
  fenced_.insert(fence.session);
  for (StoreSession& session : sessions_) {
    if (!session.is_free() && session.id == fence.session) disconnect(session);
  }
  // A network thread sends the next one when it has the answer.
  const LocalBuffer answer = fence_answer(completion.queue_pair->peer().port);
  rpc::write_message(answer.bytes(), fence);
  rpc::send(*completion.queue_pair, answer.first(sizeof fence), max_inline_);
  mds_buffers_->post(mds_buffer(completion.buffer_id), completion.buffer_id);
}

bool Store::force(std::uint64_t page, std::uint64_t count) {
  if (page == 0 || page >= parameters_.pages || count > parameters_.pages - page) return false;
  pages_->persist(page * kPage, count * kPage);
  forced_ += count;
  return true;
}

void Store::acknowledge(std::uint32_t page) {
  bool told = false;
  for (std::size_t i = 0; i < mds_connections_.size(); ++i) {
    fabric::QueuePair* const connection = mds_connections_[i].get();
    if (connection == nullptr || !connection->connected()) continue;
    fabric::WorkRequest request{.opcode = fabric::Opcode::write_with_immediate,
                                .immediate = page,
                                .remote = mds_places_[i]};
    request.flags.inlined = max_inline_ >= kWord;
    request.local = buffer(buffer_count() - 1).first(kWord);
    connection->post_unsignaled(request);
    told = true;
  }
  if (!told) unacknowledged_.push_back(page);
}

// The buffers: those of sessions, each first for requests and then for answers; those for messages of
// the MDS, the answers to its network threads, and a word from which acknowledgments are sent.
std::uint64_t Store::buffer_count() const {
  return sessions_.size() * (kReceiveBuffers + kAnswers) + kMdsBuffers +
         parameters_.network_threads + 1;
}

LocalBuffer Store::buffer(std::uint64_t index) const {
  return buffer_memory_.local(index * kBufferRoom, kBufferRoom);
}

LocalBuffer Store::receive_buffer(const StoreSession& session, std::uint64_t index) const {
  return buffer(Bytes{session.number} * (kReceiveBuffers + kAnswers) + index);
}

LocalBuffer Store::answer_buffer(const StoreSession& session, std::uint32_t call) const {
  return receive_buffer(session, kReceiveBuffers + call);
}

LocalBuffer Store::mds_buffer(std::uint64_t index) const {
  return buffer(sessions_.size() * (kReceiveBuffers + kAnswers) + index);
}

LocalBuffer Store::fence_answer(std::uint32_t network_thread) const {
  return mds_buffer(kMdsBuffers + network_thread);
}

}  // namespace perdura::systems::orion
