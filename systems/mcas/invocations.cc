#include "systems/mcas/invocations.h"

#include <fmt/core.h>

#include <algorithm>

#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura::systems::mcas {

namespace {

// Returns why there is no value of this length.
std::optional<objects::Error> error_of(ado::CallStatus status, Bytes length) {
  if (status == ado::CallStatus::done) return std::nullopt;
  if (status != ado::CallStatus::refused) return objects::Error::out_of_space;
  // A client's request is valid at this point, so a value that is not too long is refused only if
  // the pool is found to be damaged.
  return length > kLongestValue ? objects::Error::too_large : objects::Error::failed;
}

// Returns nothing for operations of which plugins are not told.
std::optional<ado::Signal> signal_of(RequestKind kind) {
  switch (kind) {
    case RequestKind::put:
    case RequestKind::put_direct:
    case RequestKind::put_direct_offset:
      return ado::Signal::put;
    case RequestKind::get:
    case RequestKind::get_direct:
    case RequestKind::get_direct_offset:
      return ado::Signal::get;
    case RequestKind::erase:
      return ado::Signal::erase;
    default:
      return std::nullopt;
  }
}

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

Invocations::Invocations(Thread& thread, const std::string& name, const Parameters& parameters,
                         std::shared_ptr<ado::Launcher> launcher, Pools& pools, Growth& growth,
                         KeyRequests& keys, ShardSessions& sessions)
    : pools_(pools),
      keys_(keys),
      sessions_(sessions),
      process_options_{std::move(launcher), name, parameters.plugins, parameters.plugin_patience,
                       peer_of(parameters, sessions.limits(), thread.endpoint.address())},
      signals_(parameters.plugin_signals),
      consent_(parameters.plugin_consent) {
  if (!process_options_.launcher || parameters.plugins.empty()) return;
  for (Catalog::SlotNumber slot = 0; slot < parameters.pools; ++slot) {
    processes_.push_back(std::make_unique<PoolProcess>(thread, pools, growth, parameters,
                                                       process_options_, members_, slot));
  }
}

// --- invocations ---------------------------------------------------------------------------------

Task<JobOutcome> Invocations::execute(const Job& job) {
  if (processes_.empty()) co_return tl::unexpected(objects::Error::unsupported);
  const ParsedRequest& request = job.request;
  const bool reads = !request.changes();
  const LockMode lock_mode = reads ? LockMode::shared : LockMode::exclusive;
  // No task is started if there is nothing to wait for: an invocation should take little longer
  // than a get.
  std::optional<KeyLocks::Lock> lock = job.pool->locks.try_lock(request.key, lock_mode);
  if (!lock) lock = co_await job.pool->locks.lock(request.key, lock_mode);
  if (job.session->ended) co_return tl::unexpected(objects::Error::disconnected);
  if (job.pool->growing) co_await Growth::until_over(*job.pool);
  PoolProcess& process = process_of(*job.pool);
  PoolCallbacks& pool = process.of(*job.pool);
  ado::WorkMessage order;
  if (const auto error = co_await prepare(job, pool, order)) co_return tl::unexpected(*error);
  const std::vector<ByteRange> detached = order.detached;
  const ado::LockMode mode = reads ? ado::LockMode::read : ado::LockMode::write;
  pool.hold(order.key, mode, std::move(*lock));
  Task<ado::CompletionMessage> working = process.work(std::move(order), mode);
  const ado::CompletionMessage completion = co_await std::move(working);
  // A failed invocation has kept none of the memory that it was given. If the invocation is lost,
  // nobody knows, so the memory is not freed.
  if (completion.status == ado::WorkStatus::failed) {
    co_await Growth::until_over(*job.pool);
    for (const ByteRange& range : detached) pool.free(range);
  }
  co_return answered(job, completion);
}

Task<std::optional<objects::Error>> Invocations::prepare(const Job& job, PoolCallbacks& pool,
                                                         ado::WorkMessage& order) {
  const ParsedRequest& request = job.request;
  const std::uint8_t flags = request.header.flags;
  const bool puts = request.header.kind == RequestKind::invoke_put;
  const bool detached = (flags & kDetached) != 0;
  order.key = text_of(request.key);
  order.request = text_of(request.call_request());
  order.is_new = !job.pool->engine->get(request.key);
  if (!order.is_new && (flags & (kCreateOnly | kNoOverwrite)) != 0)
    co_return objects::Error::exists;
  if (order.is_new && !puts && (flags & (kCreateOnly | kCreateOnDemand)) == 0) {
    co_return objects::Error::not_found;
  }
  if (puts && !detached) {
    const JobOutcome outcome = co_await keys_.put(job, request.call_value());
    co_return outcome ? std::nullopt : std::optional(outcome.error().error);
  }
  ado::Created kept;
  if (detached) {
    kept = co_await pool.keep(request.call_value());
    if (kept.status != ado::CallStatus::done) {
      co_return error_of(kept.status, request.call_value().size());
    }
    order.detached.push_back(kept.value);
  }
  if (!order.is_new) co_return std::nullopt;
  const ado::Created created = co_await pool.create_value(order.key, request.call().value_length,
                                                          (flags & kZeroNewValue) != 0);
  if (created.status != ado::CallStatus::done && detached) pool.free(kept.value);
  co_return error_of(created.status, request.call().value_length);
}

JobOutcome Invocations::answered(const Job& job, const ado::CompletionMessage& completion) const {
  if (completion.status == ado::WorkStatus::too_long) {
    return tl::unexpected(objects::Error::too_large);
  }
  if (completion.status != ado::WorkStatus::done) return failed(job, completion);
  ado::Encoder encoder;
  encoder(completion.responses);
  const std::string answers = encoder.take();
  const std::span<std::byte> reply = sessions_.reply_value(job);
  if (answers.size() > reply.size()) return tl::unexpected(objects::Error::too_large);
  copy_bytes(reply.first(answers.size()), std::as_bytes(std::span(answers)));
  return answers.size();
}

JobOutcome Invocations::failed(const Job& job, const ado::CompletionMessage& completion) const {
  return sessions_.explained(job, completion.error);
}

// --- signals (section 4.1.1) ---------------------------------------------------------------------

bool Invocations::tells_of(const Job& job, const JobOutcome& outcome) const {
  return signals_ && !processes_.empty() && outcome &&
         signal_of(job.request.header.kind).has_value();
}

// The operation has been carried out. Its answer does not depend on the outcome of the signal,
// unless plugins must consent.
Task<> Invocations::signal(Job job, JobOutcome outcome, [[maybe_unused]] Keeper keeper) {
  KeyLocks::Lock lock = co_await job.pool->locks.lock(job.request.key, LockMode::shared);
  PoolProcess& process = process_of(*job.pool);
  ado::WorkMessage order;
  order.key = text_of(job.request.key);
  const ado::Signal kind = *signal_of(job.request.header.kind);
  order.request = ado::signal_request(kind);
  process.of(*job.pool).hold(order.key, ado::LockMode::read, std::move(lock));
  Task<ado::CompletionMessage> telling = process.work(std::move(order), ado::LockMode::read);
  const ado::CompletionMessage told = co_await std::move(telling);
  const bool refused = consent_ && kind != ado::Signal::get && told.status != ado::WorkStatus::done;
  sessions_.finish(job, refused ? failed(job, told) : outcome);
}

// --- processes -----------------------------------------------------------------------------------

void Invocations::cluster_event(const objects::MemberEvent& event) {
  const ado::ClusterEvent told = members_.note(event);
  for (const auto& process : processes_) process->cluster_event(told);
}

Task<> Invocations::end_idle_processes([[maybe_unused]] std::shared_ptr<const void> shard) {
  for (;;) {
    const auto idle = std::find_if(processes_.begin(), processes_.end(),
                                   [](const auto& one) { return one->is_idle(); });
    if (idle == processes_.end()) {
      co_await wait(sessions_.pool_left());
    } else {
      co_await (*idle)->stop();
    }
  }
}

Task<> Invocations::end_process_of(std::string_view name) {
  while (!processes_.empty()) {
    const Pool* const pool = pools_.opened(name);
    if (pool == nullptr || pool->users > 0 || !process_of(*pool).is_idle()) break;
    co_await process_of(*pool).stop();
  }
}

}  // namespace perdura::systems::mcas
