#include "systems/orion/client/stores.h"

#include <fmt/format.h>

#include <algorithm>

#include "rpc/messages.h"
#include "systems/orion/client/timed.h"

namespace perdura::systems::orion {

using fabric::Access;
using fabric::LocalBuffer;

namespace {

// The memory of a connection: for each call, a receive buffer, a request, and a word.
constexpr Bytes kRoom = kCacheLine;
constexpr Picoseconds kShortestPause = Microseconds(20);
constexpr Picoseconds kLongestPause = Milliseconds(10);
// For which a connection waits for a store that may have failed.
constexpr Picoseconds kShortestTimeout = Microseconds(100);
constexpr Picoseconds kLongestTimeout = Milliseconds(100);

}  // namespace

Stores::Stores(Thread& thread, const fs::FsConfig& config, const Parameters& parameters,
               MdsLink& link, pmem::Region* local)
    : thread_(thread),
      parameters_(parameters),
      link_(link),
      local_(local),
      local_right_(thread.node, local),
      next_read_(thread.endpoint.address().port) {
  for (const Parameters::StoreNode& of : parameters.stores) {
    auto store = std::make_unique<Store>();
    store->number = static_cast<std::uint32_t>(stores_.size());
    store->node = of.node;
    store->group = of.group;
    store->is_local = local != nullptr && of.node == thread.node.machine();
    if (store->is_local) {
      own_group_ = of.group;
      own_store_ = store->number;
    }
    stores_.push_back(std::move(store));
  }
  if (config.data_method) {
    durable_ = true;
    method_ = methods::DurableWrite(*config.data_method, thread.endpoint.capabilities());
  }
}

// In a group without one of its stores the others work with strong consistency (section 4.3.4).
bool Stores::is_strong(std::uint32_t group) const {
  const StoreSet all = parameters_.group_members(group);
  return parameters_.strong || (link_.members().members & all) != all;
}

// --- connections

Task<Stores::Connected> Stores::connect(Store& store) {
  while (store.connecting) co_await wait(store.waiting);
  const bool works = store.connection && store.connection->works() &&
                     store.connection->of_session == link_.connection();
  if (works) co_return store.connection;
  if (store.connection && !std::exchange(store.unforced, {}).empty()) store.has_lost = true;
  store.connecting = true;
  store.connection = co_await make_connection(store);
  store.connecting = false;
  store.waiting.wake_all();
  if (store.connection) {
    store.failing_since.reset();
  } else if (!store.failing_since) {
    store.failing_since = thread_.executor.now();
  }
  co_return store.connection;
}

Task<Stores::Connected> Stores::make_connection(Store& store) {
  auto connection = std::make_shared<StoreConnection>();
  const std::uint64_t number = ++store.connections;
  connection->memory =
      thread_.node.create_region(fmt::format("orion store {} of port {}, {}", store.node,
                                             thread_.endpoint.address().port, number),
                                 3 * kCalls * kRoom, pmem::Medium::dram);
  connection->registered = thread_.endpoint.register_memory(*connection->memory, Access::local);
  connection->answers.open(thread_.endpoint, kCalls);
  connection->answers.post_all(
      {connection->registered, 0, kRoom, static_cast<std::uint32_t>(kRoom)}, kCalls);
  connection->calls.open(kCalls);
  connection->sequence = number << kConnectionShift;
  connection->of_session = link_.connection();
  bool has_right = false;
  const Hello hello{.version = kProtocolVersion,
                    .peer = Peer::session,
                    .group = store.group,
                    .number = link_.welcome().session,
                    .id = link_.session(),
                    .epoch = link_.members().epoch,
                    .sequence = connection->sequence};
  const auto bytes = rpc::bytes_of(hello);
  // If the store accepts a session, that has not ended, and may have a right again, as of before.
  if (store.is_local) {
    local_connection_ = 0;
    has_right = local_right_.ask(link_.session(), link_.members().epoch);
  }
  const fabric::Address address{store.node, 0};
  fabric::QueuePairOptions options{connection->answers.queue(), &connection->completions};
  options.connection_timeout =
      std::clamp(parameters_.client_patience / 4, kShortestTimeout, kLongestTimeout);
  std::vector<std::byte> data(bytes.begin(), bytes.end());
  fabric::Connection made = co_await thread_.endpoint.connect(address, options, std::move(data));
  if (made.status != fabric::Status::success) co_return nullptr;
  const auto welcome = rpc::read_message<StoreWelcome>(made.private_data);
  connection->key = fabric::RemoteKey{welcome.pages_key};
  connection->queue_pair = std::move(made.queue_pair);
  if (has_right) local_connection_ = connection->of_session;
  co_return connection;
}

Task<std::errc> Stores::follow_members(std::uint64_t epoch) {
  bool is_read = co_await link_.connect();
  if (is_read) is_read = co_await link_.read_members();
  if (!is_read) co_return std::errc::not_connected;
  if (link_.members().epoch != epoch) co_return std::errc::resource_unavailable_try_again;
  const Time now = thread_.executor.now();
  Picoseconds pause = kShortestPause;
  for (const auto& store : stores_) {
    if (!store->failing_since) continue;
    const Picoseconds failing = now - *store->failing_since;
    if (failing > parameters_.client_patience) co_return std::errc::not_connected;
    pause = std::max(pause, std::min(failing / 4, kLongestPause));
  }
  co_await sleep_for(pause);
  co_return std::errc::resource_unavailable_try_again;
}

// --- reading

Task<bool> Stores::read_from(Store& store, std::uint64_t gpa, LocalBuffer into) {
  if (store.is_local) {
    local_->read(page_of(gpa) * kPage, into.bytes());
    co_return true;
  }
  const Connected connection = co_await connect(store);
  if (!connection) co_return false;
  const fabric::RemoteAddress from{connection->key, page_of(gpa) * kPage};
  const fabric::Completion done = co_await connection->queue_pair->read(into, from);
  co_return static_cast<bool>(done);
}

Task<bool> Stores::read(std::uint64_t gpa, LocalBuffer into) {
  ++reads_;
  return timed(in_reads_, read_from_any(gpa, into));
}

// From one of the stores; end_read() tries all of them.
Task<> Stores::begin_read(std::uint64_t gpa, LocalBuffer into, PageRead& read) {
  ++reads_;
  read.gpa_ = gpa;
  read.into_ = into;
  read.begun_ = thread_.executor.now();
  const std::size_t first = next_read_++;
  for (std::size_t i = 0; i < stores_.size(); ++i) {
    Store& store = *stores_[(first + i) % stores_.size()];
    if (store.is_local || !can_read(store, gpa)) continue;
    const Connected connection = co_await connect(store);
    if (!connection) continue;
    const fabric::RemoteAddress from{connection->key, page_of(gpa) * kPage};
    read.posted_.emplace(
        connection,
        fabric::WorkRequest{.opcode = fabric::Opcode::read, .local = into, .remote = from});
    read.posted_->operation.post();
    co_return;
  }
}

Task<bool> Stores::end_read(PageRead& read) {
  bool done = false;
  if (read.posted_) done = static_cast<bool>(co_await read.posted_->operation);
  if (!done) done = co_await read_from_any(read.gpa_, read.into_);
  in_reads_ += thread_.executor.now() - read.begun_;
  co_return done;
}

Task<bool> Stores::read_from_any(std::uint64_t gpa, LocalBuffer into) {
  for (;;) {
    const std::uint64_t epoch = link_.members().epoch;
    // Reads are spread over the stores that are up to date.
    const std::size_t first = next_read_++;
    for (std::size_t i = 0; i < stores_.size(); ++i) {
      Store& store = *stores_[(first + i) % stores_.size()];
      if (!can_read(store, gpa)) continue;
      const bool done = co_await read_from(store, gpa, into);
      if (done) co_return true;
    }
    const std::errc error = co_await follow_members(epoch);
    if (error == std::errc::not_connected) co_return false;
  }
}

// --- writing

Task<std::errc> Stores::write(std::uint64_t gpa, LocalBuffer from, PagesSent& sent) {
  PageWrite write;
  co_await begin_write(gpa, from, sent, write);
  co_return co_await end_write(write, sent);
}

Task<> Stores::begin_write(std::uint64_t gpa, LocalBuffer from, PagesSent& sent, PageWrite& write) {
  write.begun_ = thread_.executor.now();
  const MembersLine members = link_.members();
  if (sent.epoch == 0) sent.epoch = members.epoch;
  if (sent.epoch != members.epoch) {
    write.error_ = std::errc::resource_unavailable_try_again;
    co_return;
  }
  for (const auto& store : stores_) {
    if (store->group != group_of(gpa) || !contains(members.targets, store->number)) continue;
    // Reading what is written in part only may have taken until the MDS was back.
    if (link_.connection() != sent.connection) {
      write.error_ = std::errc::resource_unavailable_try_again;
      co_return;
    }
    const bool is_under_way = co_await write_to(*store, gpa, from, sent, write);
    if (is_under_way) continue;
    write.error_ = std::errc::not_connected;
    co_return;
  }
}

Task<std::errc> Stores::end_write(PageWrite& write, const PagesSent& sent) {
  for (Posted& posted : write.posted_) {
    const fabric::Completion done = co_await posted.operation;
    if (!done) write.error_ = std::errc::not_connected;
  }
  in_writes_ += thread_.executor.now() - write.begun_;
  if (write.error_ == std::errc::not_connected) co_return co_await follow_members(sent.epoch);
  co_return write.error_;
}

void Stores::begin_session() {
  const bool has_right = local_right_.ask(link_.session(), link_.members().epoch);
  local_connection_ = has_right ? link_.connection() : 0;
}

// Returns false if the session may not do that; then it asks the store for a connection, as others do.
bool Stores::write_locally(std::uint64_t gpa, LocalBuffer from, PagesSent& sent) {
  if (local_connection_ != sent.connection || !local_right_.begin()) return false;
  sent.by_immediates = false;
  local_->write_streaming(page_of(gpa) * kPage, from.bytes());
  local_->drain();
  local_right_.end();
  return true;
}

Task<bool> Stores::write_to(Store& store, std::uint64_t gpa, LocalBuffer from, PagesSent& sent,
                            PageWrite& write) {
  if (store.is_local && write_locally(gpa, from, sent)) co_return true;
  const Connected connection = co_await connect(store);
  if (!connection || connection->of_session != sent.connection) co_return false;
  ++writes_;
  const bool strong = is_strong(store.group);
  // A device without immediates has the store asked instead.
  if (!durable_ && strong && thread_.endpoint.capabilities().write_with_immediate) {
    co_return post_immediate(store, connection, gpa, from, sent, write);
  }
  sent.by_immediates = false;
  if (durable_ || strong) co_return co_await write_durably(*connection, gpa, from);
  write.post(connection, {.opcode = fabric::Opcode::write,
                          .local = from,
                          .remote = {connection->key, page_of(gpa) * kPage}});
  store.unforced.push_back(page_of(gpa));
  co_return true;
}

// All pages of a commit go over one connection, so that the last acknowledgment stands for all.
bool Stores::post_immediate(const Store& store, const Connected& connection, std::uint64_t gpa,
                            LocalBuffer from, PagesSent& sent, PageWrite& write) {
  auto force = std::find_if(sent.forces.begin(), sent.forces.end(),
                            [&](const Force& one) { return one.store == store.number; });
  if (force == sent.forces.end()) {
    force = sent.forces.insert(sent.forces.end(), {store.number, 0});
  }
  const std::uint64_t sequence = connection->sequence + 1;
  if (force->sequence != 0 && force->sequence >> kConnectionShift != sequence >> kConnectionShift) {
    return false;
  }
  // The store counts what arrives, so only what is sent counts.
  force->sequence = connection->sequence = sequence;
  write.post(connection, {.opcode = fabric::Opcode::write_with_immediate,
                          .immediate = static_cast<std::uint32_t>(page_of(gpa)),
                          .local = from,
                          .remote = {connection->key, page_of(gpa) * kPage}});
  return true;
}

Task<bool> Stores::write_durably(StoreConnection& connection, std::uint64_t gpa, LocalBuffer from) {
  const fabric::RemoteAddress to{connection.key, page_of(gpa) * kPage};
  const auto lease = co_await connection.calls.begin();
  const LocalBuffer word = connection.registered.local((2 * kCalls + lease.call()) * kRoom, kWord);
  if (!co_await method_.write(*connection.queue_pair, from, to, word)) co_return false;
  if (durable_ && !method_.asks_responder()) co_return true;
  co_return co_await force(connection, page_of(gpa));
}

Task<bool> Stores::force(StoreConnection& connection, std::uint64_t page) {
  const auto lease = co_await connection.calls.begin();
  const LocalBuffer request =
      connection.registered.local((kCalls + lease.call()) * kRoom, sizeof(ForceRequest));
  rpc::write_message(request.bytes(), ForceRequest{lease.call(), 1, page});
  fabric::RdmaOperation send = connection.queue_pair->send(request);
  connection.calls.expect(lease.call());
  send.post();
  const auto take = [&connection](const fabric::ReceiveCompletion& completion) {
    if (completion.status != fabric::Status::success) return connection.calls.fail();
    const auto forced = rpc::read_message<Forced>(completion.buffer.bytes());
    connection.answers.post(completion.buffer_id);
    if (!connection.calls.deliver(forced.call, forced)) connection.calls.fail();
  };
  const std::optional<Forced> answer =
      co_await connection.calls.answer_to(lease.call(), connection.completions, take);
  const fabric::Completion sent = co_await send;
  if (!sent) connection.calls.fail();
  co_return answer && answer->refused == 0;
}

Task<bool> Stores::force_all() {
  for (const auto& store : stores_) {
    const std::vector<std::uint64_t> pages = std::exchange(store->unforced, {});
    if (pages.empty() && !store->has_lost) continue;
    const Connected connection = store->connection;
    if (!connection || !connection->works() || std::exchange(store->has_lost, false)) {
      co_return false;
    }
    for (const std::uint64_t page : pages) {
      const bool done = co_await force(*connection, page);
      if (!done) co_return false;
    }
  }
  co_return true;
}

}  // namespace perdura::systems::orion
