#include "systems/mcas/shard.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "platform/base/error.h"
#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::systems::mcas {

namespace {

// The number of requests that are executed before all of them are answered. A higher number would
// save hardly more of a fence per request, and the first request waits for the last.
constexpr std::size_t kMostTaken = 16;

// Operations that a session may have queued per request in flight: a reply, two pieces of a
// transfer, and a reply that has arrived but whose completion is not known yet.
constexpr std::uint32_t kMostInLine = 4;

// A process waits for its peer only half as long as the shard waits for the process.
std::optional<ado::PeerOptions> peer_of(const Parameters& parameters, const Welcome& limits,
                                        fabric::Address self) {
  if (!parameters.plugin_peer) return std::nullopt;
  if (*parameters.plugin_peer == self) {
    throw UsageError(
        fmt::format("{}: plugin_peer is {}, which is the shard itself", kName, self.node));
  }
  return ado::PeerOptions{*parameters.plugin_peer, limits.longest_request(),
                          parameters.plugin_patience / 2};
}

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
      process_options_{std::move(launcher), name, parameters.plugins, parameters.plugin_patience,
                       peer_of(parameters, limits_, thread.endpoint.address())},
      signals_(parameters.plugin_signals),
      consent_(parameters.plugin_consent) {
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
    processes_.push_back(std::make_unique<PoolProcess>(thread, pools_, growth_, parameters,
                                                       process_options_, members_, slot));
  }
}

Task<> Shard::serve() {
  // Each task keeps what it uses alive, since the tasks may be destroyed in any order.
  const auto self = shared_from_this();
  Executor::current().spawn(rpc::accept_connections(
      thread_.endpoint, [self](fabric::ConnectionRequest& request) { self->accept(request); }));
  if (!processes_.empty()) Executor::current().spawn(end_idle_processes(self));
  for (;;) {
    take(co_await completions_.next());
    while (taken_.size() < kMostTaken) {
      const std::optional<fabric::ReceiveCompletion> next = completions_.try_next();
      if (!next) break;
      take(*next);
    }
    prefetch_keys();
    for (Taken& taken : taken_) {
      Session& session = *taken.job.session;
      if (session.ended) continue;
      charge(Work::dispatch);
      if (!taken.is_request) {
        end(session);
        continue;
      }
      ++statistics_.requests;
      while (!execute(taken)) {
        answer_taken();  // growing takes long, so nothing should wait for it
        Pool& pool = *taken.job.pool;
        if (pool.growing) {
          co_await Growth::until_over(pool);
        } else {
          co_await growth_.grow(pool);
        }
      }
      if (drained_) answer(taken);
    }
    answer_taken();
    release_taken();
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

// A session is given up only when none of its requests is being executed. So until release_taken()
// no other session can have the queue pair by which a completion names its session.
void Shard::take(const fabric::ReceiveCompletion& completion) {
  Session* const session = sessions_.of(completion.queue_pair);
  if (session == nullptr || session->ended) return;
  ++session->tasks;
  Taken& taken = taken_.emplace_back(Taken{{session, completion.buffer_id, {}}});
  if (completion.status != fabric::Status::success) return;
  const auto request = parse(completion.buffer.bytes(), limits_);
  if (!request) return;
  taken.job.request = *request;
  taken.is_request = true;
}

// Lets the cache misses of all taken requests overlap. Modeled memory has no caches to fill, and
// the model would charge for the hashes.
void Shard::prefetch_keys() {
  if (taken_.size() == 1 || pools_.region().model() != nullptr) return;
  for (Taken& taken : taken_) {
    const ParsedRequest& request = taken.job.request;
    const OpenPool* const open = find_handle(*taken.job.session, request.header.pool);
    if (open == nullptr || open->pool->growing) continue;
    taken.prefetching = open->pool->engine.get();
    taken.prefetched = taken.prefetching->prefetch(request.key);
    buffers_->prefetch(reply_buffer(taken.job).offset);
  }
  for (const Taken& taken : taken_) {
    if (taken.prefetching != nullptr) taken.prefetching->prefetch_further(taken.prefetched);
  }
}

void Shard::answer_taken() {
  drain();
  const Pool* noted = nullptr;
  for (Taken& taken : taken_) {
    Pool* const pool = taken.job.pool;
    if (taken.outcome && pool != nullptr && pool != noted) {
      pool->note_space();
      noted = pool;
    }
    answer(taken);
  }
}

// Does nothing if the request has been answered already or a task will answer it.
void Shard::answer(Taken& taken) {
  if (!taken.outcome) return;
  conclude(taken.job, *taken.outcome);
  taken.outcome.reset();
}

void Shard::release_taken() {
  for (const Taken& taken : taken_) leave(*taken.job.session);
  taken_.clear();
}

void Shard::drain() {
  if (!std::exchange(drained_, true)) pools_.memory().drain();
}

void Shard::end(Session& session) {
  session.ended = true;
  for (OpenPool& open : session.handles) close(open);
  session.handles.clear();
  --statistics_.sessions;
}

// Must be called when a task has ended, or a request that was taken has been answered.
void Shard::leave(Session& session) {
  if (--session.tasks == 0 && session.ended) give_up(session);
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
    reply.status = status_of(outcome.error().error);
    reply.value_length = static_cast<std::uint32_t>(outcome.error().reason);
    ++statistics_.failed_requests;
  }
  const fabric::LocalBuffer buffer = reply_buffer(job);
  rpc::write_message(buffer.bytes(), reply);
  rpc::send(*session.queue_pair, buffer.first(static_cast<std::uint32_t>(reply.size())),
            max_inline_);
  // A client that takes no replies would make the shard hold an unbounded number of them.
  if (session.queue_pair->in_line() > std::size_t{kMostInLine} * limits_.queue_depth) {
    return end(session);
  }
  session.requests->post(request_buffer(session, job.buffer), job.buffer);
}

}  // namespace perdura::systems::mcas
