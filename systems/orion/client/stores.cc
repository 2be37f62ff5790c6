#include "systems/orion/client/stores.h"

#include <fmt/format.h>

#include "rpc/messages.h"

namespace perdura::systems::orion {

using fabric::Access;
using fabric::LocalBuffer;

namespace {

// The memory of a connection: for each call, a receive buffer, a request, and a word.
constexpr Bytes kRoom = kCacheLine;

}  // namespace

Stores::Stores(Thread& thread, const fs::FsConfig& config, const Parameters& parameters,
               std::uint64_t mount, pmem::Region* local)
    : thread_(thread), mount_(mount), parameters_(parameters), local_(local) {
  for (const fs::FsServerNode& server : config.servers) {
    if (server.role != fs::FsRole::store) continue;
    auto member = std::make_unique<Member>();
    member->node = server.node;
    member->group = server.group;
    member->is_local = local != nullptr && server.node == thread.node.id();
    if (member->is_local) own_group_ = server.group;
    members_.push_back(std::move(member));
  }
  if (config.data_method) {
    durable_ = true;
    method_ = methods::DurableWrite(*config.data_method, thread.endpoint.capabilities());
  }
}

std::uint32_t Stores::others(std::uint64_t gpa) const {
  std::uint32_t count = 0;
  for (const auto& member : members_) {
    if (member->group == group_of(gpa) && !member->is_local) ++count;
  }
  return count;
}

// A device without immediates has the store asked instead.
bool Stores::notices() const {
  return !durable_ && parameters_.strong && thread_.endpoint.capabilities().write_with_immediate;
}

Task<bool> Stores::connect(Member& member) {
  while (member.connecting) co_await wait(member.waiting);
  if (member.queue_pair) {
    if (!member.queue_pair->connected() || member.calls.broken()) member.failed = true;
    co_return !member.failed;
  }
  if (member.failed) co_return false;
  member.connecting = true;
  member.memory = thread_.node.create_region(
      fmt::format("orion store {} of port {}", member.node, thread_.endpoint.address().port),
      3 * kCalls * kRoom, pmem::Medium::dram);
  member.registered = thread_.endpoint.register_memory(*member.memory, Access::local);
  member.answers.open(thread_.endpoint, kCalls);
  member.answers.post_all({member.registered, 0, kRoom, static_cast<std::uint32_t>(kRoom)}, kCalls);
  member.calls.open(kCalls);
  const Hello hello{.version = kProtocolVersion,
                    .peer = Peer::session,
                    .group = member.group,
                    .session = {mount_, thread_.endpoint.address().port}};
  const auto bytes = rpc::bytes_of(hello);
  const fabric::Address store{member.node, 0};
  const fabric::QueuePairOptions options{member.answers.queue(), &member.completions};
  std::vector<std::byte> data(bytes.begin(), bytes.end());
  fabric::Connection made = co_await thread_.endpoint.connect(store, options, std::move(data));
  if (made.status == fabric::Status::success) {
    const auto welcome = rpc::read_message<StoreWelcome>(made.private_data);
    member.key = fabric::RemoteKey{welcome.pages_key};
    member.queue_pair = std::move(made.queue_pair);
  } else {
    member.failed = true;
  }
  member.connecting = false;
  member.waiting.wake_all();
  co_return !member.failed;
}

Task<bool> Stores::read(std::uint64_t gpa, LocalBuffer into) {
  ++reads_;
  // Sessions start with different members of a group.
  const std::size_t first = thread_.endpoint.address().port;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Member& member = *members_[(first + i) % members_.size()];
    if (member.group != group_of(gpa) || !co_await connect(member)) continue;
    const fabric::RemoteAddress from{member.key, page_of(gpa) * kPage};
    const fabric::Completion done = co_await member.queue_pair->read(into, from);
    if (done) co_return true;
    member.failed = true;
  }
  co_return false;
}

Task<bool> Stores::write_to(Member& member, std::uint64_t gpa, LocalBuffer from) {
  if (member.is_local) {
    local_->write_streaming(page_of(gpa) * kPage, from.bytes());
    local_->drain();
    co_return true;
  }
  if (!co_await connect(member)) co_return false;
  ++writes_;
  const fabric::RemoteAddress to{member.key, page_of(gpa) * kPage};
  if (notices()) {
    fabric::RdmaOperation write =
        member.queue_pair->write_with_immediate(from, to, static_cast<std::uint32_t>(page_of(gpa)));
    const fabric::Completion done = co_await write;
    co_return static_cast<bool>(done);
  }
  if (durable_ || parameters_.strong) {
    const auto lease = co_await member.calls.begin();
    const LocalBuffer word = member.registered.local((2 * kCalls + lease.call()) * kRoom, kWord);
    if (!co_await method_.write(*member.queue_pair, from, to, word)) co_return false;
    if (durable_ && !method_.asks_responder()) co_return true;
  } else {
    const fabric::Completion done = co_await member.queue_pair->write(from, to);
    member.unforced.push_back(page_of(gpa));
    co_return static_cast<bool>(done);
  }
  co_return co_await force(member, page_of(gpa));
}

Task<bool> Stores::force(Member& member, std::uint64_t page) {
  const auto lease = co_await member.calls.begin();
  const LocalBuffer request =
      member.registered.local((kCalls + lease.call()) * kRoom, sizeof(Force));
  rpc::write_message(request.bytes(), Force{lease.call(), 1, page});
  fabric::RdmaOperation send = member.queue_pair->send(request);
  member.calls.expect(lease.call());
  send.post();
  const auto take = [&member](const fabric::ReceiveCompletion& completion) {
    if (completion.status != fabric::Status::success) return member.calls.fail();
    const auto forced = rpc::read_message<Forced>(completion.buffer.bytes());
    member.answers.post(completion.buffer_id);
    if (!member.calls.deliver(forced.call, forced)) member.calls.fail();
  };
  const std::optional<Forced> answer =
      co_await member.calls.answer_to(lease.call(), member.completions, take);
  const fabric::Completion sent = co_await send;
  if (!sent) member.calls.fail();
  co_return answer && answer->refused == 0;
}

Task<std::optional<Written>> Stores::write(std::uint64_t gpa, LocalBuffer from) {
  for (const auto& member : members_) {
    if (member->group != group_of(gpa)) continue;
    if (!co_await write_to(*member, gpa, from)) co_return std::nullopt;
  }
  if (others(gpa) == 0 || durable_) co_return Written::durable;
  if (!parameters_.strong) co_return Written::sent;
  co_return notices() ? Written::noticed : Written::durable;
}

Task<bool> Stores::force_all() {
  for (const auto& member : members_) {
    for (const std::uint64_t page : std::exchange(member->unforced, {})) {
      if (!co_await connect(*member) || !co_await force(*member, page)) co_return false;
    }
  }
  co_return true;
}

}  // namespace perdura::systems::orion
