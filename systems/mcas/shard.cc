#include "systems/mcas/shard.h"

#include <fmt/core.h>

#include <algorithm>

#include "platform/base/error.h"
#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::systems::mcas {

namespace {

// Of a session's operations, for each of its requests that may be in flight: a reply, two pieces of
// a transfer, and a reply that has arrived and is not yet known to have.
constexpr std::uint32_t kMostInLine = 4;

}  // namespace

Shard::Shard(Thread& thread, const std::string& name, const Parameters& parameters,
             std::shared_ptr<ado::Launcher> launcher)
    : thread_(thread),
      memory_(open_memory(thread.node, name, parameters)),
      pools_(*memory_, parameters),
      limits_{0, parameters.queue_depth, parameters.max_key_size, parameters.max_value_size},
      direct_piece_(
          std::min<Bytes>(parameters.direct_piece, thread.endpoint.capabilities().max_message)),
      max_inline_(thread.endpoint.capabilities().max_inline),
      sessions_(parameters.sessions),
      process_options_{std::move(launcher), name, parameters.plugins, parameters.plugin_patience},
      signals_(parameters.plugin_signals) {
  const Bytes request = limits_.longest_request();
  const Bytes reply = limits_.longest_reply();
  const Bytes message = thread.endpoint.capabilities().max_message;
  if (std::max(request, reply) > message) {
    throw UsageError(fmt::format(
        "shard '{}': a key of {} bytes and a value of {} are more than a message of this device "
        "has, {} bytes; lower max_key_size or the values that travel in messages",
        name, limits_.max_key_size, limits_.longest_value(), message));
  }
  const Bytes request_room = round_up(request, kCacheLine);
  const Bytes reply_room = round_up(reply, kCacheLine);
  const Bytes of_requests = Bytes{parameters.sessions} * request_buffers() * request_room;
  const Bytes of_replies = Bytes{parameters.sessions} * limits_.queue_depth * reply_room;
  buffers_ = thread.node.create_region(fmt::format("{} messages", name), of_requests + of_replies,
                                       pmem::Medium::dram);
  const fabric::MemoryRegion memory =
      thread.endpoint.register_memory(*buffers_, fabric::Access::local);
  requests_ = {memory, 0, request_room, static_cast<std::uint32_t>(request)};
  replies_ = {memory, of_requests, reply_room, static_cast<std::uint32_t>(reply)};
  pool_memory_ = thread.endpoint.register_memory(pools_.region(), fabric::Access::local);
  if (!process_options_.launcher || parameters.plugins.empty()) return;
  for (Catalog::SlotNumber slot = 0; slot < parameters.pools; ++slot) {
    processes_.push_back(
        std::make_unique<PoolProcess>(thread, pools_, growth_, parameters, process_options_, slot));
  }
}

Task<> Shard::serve() {
  Executor::current().spawn(rpc::accept_connections(
      thread_.endpoint,
      [self = shared_from_this()](fabric::ConnectionRequest& request) { self->accept(request); }));
  if (!processes_.empty()) Executor::current().spawn(end_idle_processes(shared_from_this()));
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
  session.ended = false;
  session.requests = thread_.endpoint.create_receive_queue(request_buffers());
  for (std::uint32_t i = 0; i < request_buffers(); ++i) {
    session.requests->post(request_buffer(session, i), i);
  }
  Welcome welcome = limits_;
  welcome.session = session.number;
  session.queue_pair = request.accept({session.requests.get(), &completions_, limits_.queue_depth},
                                      rpc::bytes_of(welcome));
  sessions_.connected(*session.queue_pair, session);
  ++statistics_.sessions;
}

// A session is given up when none of its requests is being executed. The one that is executed here
// is none of them: nothing else gives up a session meanwhile.
Task<> Shard::handle(fabric::ReceiveCompletion completion) {
  Session* const session = sessions_.of(completion.queue_pair);
  if (session == nullptr || session->ended) co_return;
  charge(Work::dispatch);
  if (completion.status != fabric::Status::success) co_return end(*session);
  const auto request = parse(completion.buffer.bytes(), limits_);
  if (!request) co_return end(*session);
  Job job{session, completion.buffer_id, *request};
  if (const auto outcome = co_await execute(job)) conclude(job, *outcome);
}

void Shard::end(Session& session) {
  session.ended = true;
  for (OpenPool& open : session.handles) close(open);
  session.handles.clear();
  --statistics_.sessions;
  if (session.tasks == 0) give_up(session);
}

void Shard::leave(Pool& pool) {
  if (--pool.users == 0) pool_left_.wake_all();
}

void Shard::give_up(Session& session) {
  sessions_.forget(*session.queue_pair);
  session.queue_pair.reset();
  session.requests.reset();
}

void Shard::finish(const Job& job, const Outcome& outcome) {
  Session& session = *job.session;
  if (session.ended) return;
  Reply reply{.id = job.request.header.id};
  if (outcome) {
    reply.value_length = static_cast<std::uint32_t>(*outcome);
  } else {
    reply.status = status_of(outcome.error());
    ++statistics_.failed_requests;
  }
  const fabric::LocalBuffer buffer = reply_buffer(job);
  rpc::write_message(buffer.bytes(), reply);
  rpc::send(*session.queue_pair, buffer.first(static_cast<std::uint32_t>(reply.size())),
            max_inline_);
  // Who takes no replies would have the shard keep any number of them.
  if (session.queue_pair->in_line() > std::size_t{kMostInLine} * limits_.queue_depth) {
    return end(session);
  }
  session.requests->post(request_buffer(session, job.buffer), job.buffer);
}

}  // namespace perdura::systems::mcas
