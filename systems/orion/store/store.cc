#include "systems/orion/store/store.h"

#include <fmt/format.h>

#include <algorithm>

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
constexpr std::uint32_t kMdsBuffers = 72;
constexpr std::uint32_t kToMds = 4;  // buffers for messages to each network thread
constexpr Picoseconds kBetweenConnects = Microseconds(200);
constexpr Picoseconds kBetweenIdleLooks = Microseconds(5);

StoreHeader header_of(const Parameters& parameters, std::uint32_t group) {
  StoreHeader header{.magic = kStoreMagic, .group = group, .pages = parameters.pages};
  header.crc = crc32(kSeed, nova::bytes_of(header).subspan(offsetof(StoreHeader, group)));
  return header;
}

bool has_peers(const Parameters& parameters, std::uint32_t group) {
  const StoreSet members = parameters.group_members(group);
  return (members & (members - 1)) != 0;
}

}  // namespace

void make_store(Node& node, const std::string& name, const Parameters& parameters,
                std::uint32_t group) {
  const auto region =
      node.create_region(pages_region(name), parameters.pages * kPage, pmem::Medium::pm);
  region->write_object(0, header_of(parameters, group));
  region->persist(0, sizeof(StoreHeader));
  if (has_peers(parameters, group)) Journal::make(node, name, parameters.journal_records);
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

namespace {

std::shared_ptr<void> own_pages(Node& node, const std::string& name) {
  std::shared_ptr<void> ownership = node.own_region(pages_region(name));
  if (ownership != nullptr) return ownership;
  throw UsageError(fmt::format("the pages of '{}' are being served already", name));
}

}  // namespace

Store::Store(Thread& thread, std::string name, const Parameters& parameters, NodeId mds,
             std::uint32_t group)
    : name_(std::move(name)),
      parameters_(parameters),
      mds_(mds),
      group_(group),
      pages_(open_pages(thread.node, name_, parameters, group)),
      ownership_(own_pages(thread.node, name_)),
      sessions_(parameters.sessions * parameters.network_threads +
                static_cast<std::uint32_t>(parameters.stores.size())),
      epoch_(pages_->load(kStoreEpochOffset)),
      catch_up_(thread, name_, parameters, group, pages_memory_),
      local_rights_(thread.node, *pages_) {
  local_rights_.close();
  // A process that died leaves visible data that may not be durable, and that logs may refer to.
  pages_->persist(0, pages_->size());
  if (has_peers(parameters, group)) {
    journal_ = std::make_unique<Journal>(thread.node, name_, parameters.journal_records);
  }
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
  if (journal_) {
    journal_memory_ = thread.endpoint.register_memory(journal_->region(), Access::remote_read);
  }
  acks_ = thread.node.create_region(fmt::format("{} acknowledgments", name_),
                                    parameters_.network_threads * kAcks * sizeof(Ack),
                                    pmem::Medium::dram);
  ack_memory_ = thread.endpoint.register_memory(*acks_, Access::local);
  mds_connections_.resize(parameters_.network_threads);
  thread.executor.spawn(stay_connected(shared_from_this()));
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

// --- the MDS

bool Store::is_connected() const {
  return std::all_of(mds_connections_.begin(), mds_connections_.end(), [](const auto& connection) {
    return connection.queue_pair && connection.queue_pair->connected();
  });
}

// The MDS may start later, and may come back after a failure. If one of the connections breaks, the
// store begins anew: it may have missed the end of a session.
Task<> Store::stay_connected(std::shared_ptr<Store> self) {
  for (;;) {
    while (self->is_connected() || self->is_catching_up_) co_await wait(self->mds_changed_);
    for (StoreSession& session : self->sessions_) {
      if (!session.is_free()) self->disconnect(session);
    }
    self->local_rights_.close();
    co_await self->until_sessions_are_idle();
    self->fenced_.clear();
    self->since_ = 0;
    self->state_ = StoreState::out;
    for (MdsConnection& connection : self->mds_connections_) connection.queue_pair.reset();
    // The connection to network thread 0 makes the store a member.
    bool connects = true;
    for (std::uint32_t thread = self->parameters_.network_threads; thread > 0 && connects;) {
      connects = co_await self->connect_mds(--thread);
    }
    if (connects) continue;
    self->mds_ = self->parameters_.other_mds(self->mds_);
    co_await sleep_for(kBetweenConnects);
  }
}

Task<bool> Store::connect_mds(std::uint32_t network_thread) {
  const Hello hello{.version = kProtocolVersion,
                    .peer = Peer::store,
                    .group = group_,
                    .number = thread_->node.id(),
                    .epoch = epoch_};
  fabric::QueuePairOptions options{mds_buffers_.get(), &completions_};
  if (parameters_.mirror) options.connection_timeout = parameters_.takeover_after;
  const auto port = static_cast<fabric::Port>(parameters_.first_mds_port() + network_thread);
  fabric::Connection made = co_await thread_->endpoint.connect(
      {mds_, port}, options, {rpc::bytes_of(hello).begin(), rpc::bytes_of(hello).end()});
  if (made.status != Status::success) co_return false;
  MdsConnection& connection = mds_connections_[network_thread];
  connection.welcome = rpc::read_message<MdsWelcome>(made.private_data);
  connection.acks = 0;
  connection.queue_pair = std::move(made.queue_pair);
  co_return true;
}

void Store::tell_mds(std::uint32_t network_thread, MdsBuffer which, const StoreNews& news) {
  const LocalBuffer from = to_mds(network_thread, which);
  rpc::write_message(from.bytes(), news);
  rpc::send(*mds_connections_[network_thread].queue_pair, from.first(sizeof news), max_inline_);
}

void Store::received_from_mds(std::uint32_t thread, const ReceiveCompletion& completion) {
  if (completion.status != Status::success) return mds_changed_.wake_all();
  const auto news = rpc::read_message<StoreNews>(completion.buffer.bytes());
  mds_buffers_->post(mds_buffer(completion.buffer_id), completion.buffer_id);
  switch (news.news) {
    case News::fence:
      end_session(news.session);
      if (local_rights_.are_idle()) return tell_mds(thread, MdsBuffer::ends, news);
      return thread_->executor.spawn(answer_fence(shared_from_this(), thread, news));
    case News::epoch:
      begin_epoch(news);
      return tell_mds(thread, MdsBuffer::epoch, news);
    case News::probe:
      return tell_mds(thread, MdsBuffer::epoch, news);
    case News::catch_up:
      answer_ = news;
      return mds_changed_.wake_all();
    case News::caught_up:
      return;
  }
}

Task<> Store::until_sessions_are_idle() {
  while (!local_rights_.are_idle()) co_await sleep_for(kBetweenIdleLooks);
}

// The MDS tells of the next end when this one is answered. If the connection is another one by then, the
// answer means nothing there.
Task<> Store::answer_fence(std::shared_ptr<Store> self, std::uint32_t network_thread,
                           StoreNews news) {
  co_await self->until_sessions_are_idle();
  const MdsConnection& connection = self->mds_connections_[network_thread];
  if (!connection.queue_pair || !connection.queue_pair->connected()) co_return;
  self->tell_mds(network_thread, MdsBuffer::ends, news);
}

void Store::end_session(SessionId id) {
  fenced_.insert(id);
  local_rights_.revoke(id);
  for (StoreSession& session : sessions_) {
    if (!session.is_free() && session.id == id) disconnect(session);
  }
}

// Whatever is forced from now on follows the beginning of the epoch in the journal.
void Store::begin_epoch(const StoreNews& news) {
  state_ = news.state;
  if (since_ == 0) {
    since_ = news.epoch;
    local_rights_.open(since_);
  }
  if (state_ == StoreState::up_to_date) {
    if (journal_) journal_->add_epoch(news.epoch, !std::exchange(has_gap_, false));
    epoch_ = news.epoch;
    pages_->store(kStoreEpochOffset, epoch_);
    pages_->persist(kStoreEpochOffset, kWord);
  }
  if (state_ == StoreState::out && !std::exchange(is_catching_up_, true)) {
    thread_->executor.spawn(catch_up(shared_from_this()));
  }
}

// --- catching up

Task<> Store::catch_up(std::shared_ptr<Store> self) {
  const bool fetched = co_await self->fetch_missing();
  self->is_catching_up_ = false;
  // Begins anew, with another peer perhaps.
  if (!fetched) self->mds_connections_.front().queue_pair.reset();
  self->mds_changed_.wake_all();
}

Task<bool> Store::fetch_missing() {
  // The answer to the epoch goes first.
  co_await yield();
  for (;;) {
    if (!is_connected()) co_return false;
    answer_.reset();
    tell_mds(0, MdsBuffer::catch_up, {.news = News::catch_up});
    while (!answer_ && is_connected()) co_await wait(mds_changed_);
    if (!answer_) co_return false;
    if (answer_->refused == 0) break;
    co_await sleep_for(kBetweenConnects);
  }
  has_gap_ = true;
  MdsConnection& mds = mds_connections_.front();
  const CatchUp::Missing missing{.mds = *mds.queue_pair,
                                 .in_use = fabric::RemoteKey{mds.welcome.in_use_key},
                                 .peer = answer_->peer,
                                 .everything = answer_->everything != 0,
                                 .since = epoch_};
  const std::optional<std::uint64_t> fetched = co_await catch_up_.fetch(missing);
  if (!fetched || !is_connected()) co_return false;
  fetched_ += *fetched;
  ++catch_ups_;
  // The fetched pages are durable only then.
  co_await yield();
  tell_mds(0, MdsBuffer::caught_up, {.news = News::caught_up});
  co_return true;
}

// --- sessions

void Store::accept(fabric::ConnectionRequest& request) {
  const auto hello = rpc::read_message<Hello>(request.private_data());
  StoreSession* const free = sessions_.find_free();
  const bool may_come =
      hello.peer == Peer::store
          ? state_ == StoreState::up_to_date && hello.group == group_
          : state_ != StoreState::out && hello.epoch >= since_ && !fenced_.contains(hello.id);
  if (hello.version != kProtocolVersion || free == nullptr || since_ == 0 || !may_come) {
    return request.reject();
  }
  free->id = hello.id;
  free->at_mds = hello.number;
  free->sequence = hello.sequence;
  free->buffers = thread_->endpoint.create_receive_queue(kReceiveBuffers);
  for (std::uint32_t i = 0; i < kReceiveBuffers; ++i) {
    free->buffers->post(receive_buffer(*free, i), i);
  }
  const StoreWelcome welcome{.version = kProtocolVersion,
                             .pages_key = pages_memory_.key.value,
                             .pages = parameters_.pages,
                             .journal_key = journal_memory_.key.value};
  free->queue_pair = request.accept({free->buffers.get(), &completions_}, rpc::bytes_of(welcome));
  sessions_.connected(*free->queue_pair, *free);
}

void Store::handle(const ReceiveCompletion& completion) {
  charge(Work::dispatch);
  StoreSession* const session = sessions_.of(completion.queue_pair);
  if (session == nullptr) {
    const auto of_mds = std::find_if(
        mds_connections_.begin(), mds_connections_.end(), [&](const MdsConnection& connection) {
          return connection.queue_pair && connection.queue_pair.get() == completion.queue_pair;
        });
    // Nobody takes what comes over a connection that has ended.
    if (of_mds == mds_connections_.end()) return;
    return received_from_mds(static_cast<std::uint32_t>(of_mds - mds_connections_.begin()),
                             completion);
  }
  if (completion.status != Status::success) return disconnect(*session);
  if (completion.immediate) {
    force_immediate(*session, *completion.immediate);
    if (session->is_free()) return;
  } else {
    const auto request = rpc::read_message<ForceRequest>(completion.buffer.bytes());
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

bool Store::force(std::uint64_t page, std::uint64_t count) {
  if (page == 0 || page >= parameters_.pages || count > parameters_.pages - page) return false;
  pages_->persist(page * kPage, count * kPage);
  forced_ += count;
  return true;
}

// The record of the journal is durable with the page, before the acknowledgment leaves.
void Store::force_immediate(StoreSession& session, std::uint32_t page) {
  ++session.sequence;
  if (journal_) journal_->add_page(page);
  if (!force(page, 1)) return disconnect(session);
  acknowledge(session, page);
}

// If the connection is gone, so is the epoch in which the page was written.
void Store::acknowledge(const StoreSession& session, std::uint32_t page) {
  const std::uint64_t thread = network_thread_of(session.id, parameters_.network_threads);
  MdsConnection& mds = mds_connections_[thread];
  if (!mds.queue_pair || !mds.queue_pair->connected()) return;
  const Bytes slot = mds.acks++ % kAcks * sizeof(Ack);
  const LocalBuffer from = ack_memory_.local(thread * kAcks * sizeof(Ack) + slot, sizeof(Ack));
  rpc::write_message(
      from.bytes(), Ack{.id = session.id, .session = session.at_mds, .sequence = session.sequence});
  fabric::WorkRequest request{.opcode = fabric::Opcode::write_with_immediate,
                              .immediate = page,
                              .remote = {fabric::RemoteKey{mds.welcome.acks_key}, slot}};
  request.flags.inlined = max_inline_ >= sizeof(Ack);
  request.local = from;
  mds.queue_pair->post_unsignaled(request);
}

// The buffers: those of sessions, each first for requests and then for answers; those for messages of
// the MDS, and for messages to its network threads.
std::uint64_t Store::buffer_count() const {
  return sessions_.size() * (kReceiveBuffers + kAnswers) + kMdsBuffers +
         parameters_.network_threads * kToMds;
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

LocalBuffer Store::to_mds(std::uint32_t network_thread, MdsBuffer which) const {
  return mds_buffer(kMdsBuffers + std::uint64_t{network_thread} * kToMds +
                    static_cast<std::uint32_t>(which));
}

}  // namespace perdura::systems::orion
