#include "systems/mcas/shard.h"

#include "platform/runtime/work.h"

namespace perdura::systems::mcas {

namespace {

// The number of requests that are executed before all of them are answered. A higher number would
// save hardly more of a fence per request, and the first request waits for the last.
constexpr std::size_t kMostTaken = 16;

}  // namespace

Shard::Shard(Thread& thread, const std::string& name, const Parameters& parameters,
             std::shared_ptr<ado::Launcher> launcher)
    : thread_(thread),
      memory_(open_memory(thread.node, name, parameters)),
      pools_(*memory_, parameters),
      sessions_(thread, name, parameters, statistics_),
      keys_(pools_, growth_, sessions_, statistics_),
      transfers_(thread, pools_, growth_, sessions_, parameters),
      invocations_(thread, name, parameters, std::move(launcher), pools_, growth_, keys_,
                   sessions_),
      pool_requests_(pools_, sessions_, invocations_) {}

Task<> Shard::serve() {
  // Each task keeps what it uses alive, since the tasks may be destroyed in any order.
  const auto self = shared_from_this();
  Executor::current().spawn(rpc::accept_connections(
      thread_.endpoint,
      [self](fabric::ConnectionRequest& request) { self->sessions_.accept(request); }));
  if (invocations_.are_possible()) {
    Executor::current().spawn(invocations_.end_idle_processes(self));
  }
  for (;;) {
    take(co_await sessions_.completions().next());
    while (taken_.size() < kMostTaken) {
      const std::optional<fabric::ReceiveCompletion> next = sessions_.completions().try_next();
      if (!next) break;
      take(*next);
    }
    prefetch_keys();
    for (Taken& taken : taken_) {
      ShardSession& session = *taken.job.session;
      if (session.ended) continue;
      charge(Work::dispatch);
      if (!taken.is_request) {
        sessions_.end(session);
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
      if (keys_.is_drained()) answer(taken);
    }
    answer_taken();
    release_taken();
  }
}

// A session is given up only when none of its requests is being executed. So until release_taken()
// no other session can have the queue pair by which a completion names its session.
void Shard::take(const fabric::ReceiveCompletion& completion) {
  ShardSession* const session = sessions_.of(completion.queue_pair);
  if (session == nullptr || session->ended) return;
  ++session->tasks;
  Taken& taken = taken_.emplace_back(Taken{{session, completion.buffer_id, {}}});
  if (completion.status != fabric::Status::success) return;
  const auto request = parse(completion.buffer.bytes(), sessions_.limits());
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
    const OpenHandle* const open =
        ShardSessions::find_handle(*taken.job.session, request.header.pool);
    if (open == nullptr || open->pool->growing) continue;
    taken.prefetching = open->pool->engine.get();
    taken.prefetched = taken.prefetching->prefetch(request.key);
    sessions_.prefetch_reply(taken.job);
  }
  for (const Taken& taken : taken_) {
    if (taken.prefetching != nullptr) taken.prefetching->prefetch_further(taken.prefetched);
  }
}

void Shard::answer_taken() {
  keys_.drain();
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
  for (const Taken& taken : taken_) sessions_.leave(*taken.job.session);
  taken_.clear();
}

void Shard::conclude(const Job& job, const JobOutcome& outcome) {
  if (!invocations_.tells_of(job, outcome)) return sessions_.finish(job, outcome);
  Executor::current().spawn(invocations_.signal(job, outcome, keeper_of(job)));
}

}  // namespace perdura::systems::mcas
