#include "library/mcas/membership.h"

#include <fmt/format.h>

#include <algorithm>

#include "library/signals_blocked.h"
#include "platform/base/error.h"
#include "systems/mcas/mcas.h"

namespace perdura::mcas {

namespace {

constexpr Picoseconds kBetweenAttempts = Milliseconds(1);

// Thrown in the client's own thread to leave the job: the platform then stops at once.
struct Leave {};

void check(const Limits& limits) {
  if (limits.connect.count() < 0 || limits.call.count() < 0) {
    throw std::invalid_argument("a timeout is negative; zero waits for nothing");
  }
}

}  // namespace

std::chrono::milliseconds Limits::total() const {
  constexpr auto kNone = std::chrono::milliseconds::max();
  return connect > kNone - call ? kNone : connect + call;
}

Membership::Membership(const std::string& job, const Network& network, Limits limits)
    : network_(network), limits_(limits) {
  library::check_job(job);
  check(limits);
  const library::SignalsBlocked blocked;
  try {
    member_ = join_as_client(job, network, limits.connect);
  } catch (const UsageError& problem) {
    throw std::runtime_error(problem.what());
  }
  member_->platform().start(member_->node(), 0, CompletionMode::event,
                            [this](Thread& thread) { return live(thread); });
  std::future<std::shared_ptr<host::Inbox>> begun = begun_.get_future();
  thread_ = OsThread([this] { run_platform(); });
  try {
    inbox_ = begun.get();
  } catch (const std::future_error&) {
    thread_.join();
    std::rethrow_exception(error_);
  }
}

Membership::~Membership() {
  // The job is left by an exception, since the events for which tasks wait may never come.
  inbox_->post([]() -> Task<> {
    Executor::current().spawn([]() -> Task<> {
      throw Leave{};
      co_return;
    }());
    co_return;
  });
  thread_.join();
}

// The thread executes the work that is posted to it. When the client leaves, this task ends with
// all others.
Task<> Membership::live(Thread& thread) {
  struct AtTheEnd {
    Membership& membership;
    ~AtTheEnd() { membership.drop_connections(); }
  };
  const AtTheEnd at_the_end{*this};
  thread_of_platform_ = &thread;
  begun_.set_value(host::current_thread_executor().inbox());
  WaitList never;
  co_await wait(never);
}

void Membership::add_shard(std::uint32_t node, const std::string& address) {
  check_shard(network_, node, address);
  try {
    member_->add_shard(node, address);
  } catch (const UsageError& problem) {
    throw std::runtime_error(problem.what());
  }
}

std::shared_ptr<ShardConnection> Membership::shard(std::uint32_t node, unsigned queue_depth) {
  objects::Config config;
  config.parameters["queue_depth"] = queue_depth;
  try {
    systems::kMcasObjects.check(config);
  } catch (const UsageError& problem) {
    throw std::invalid_argument(problem.what());
  }
  const auto shard = std::make_shared<ShardConnection>(thread(), node, std::move(config),
                                                       library::picoseconds(limits_.connect));
  const std::scoped_lock lock(mutex_);
  shards_.push_back(shard);
  return shard;
}

void Membership::drop_connections() {
  const std::scoped_lock lock(mutex_);
  for (const auto& shard : shards_) shard->drop();
}

void Membership::run_platform() {
  try {
    member_->platform().run();
  } catch (const Leave&) {
  } catch (const std::exception& problem) {
    error_ = std::make_exception_ptr(std::runtime_error(problem.what()));
  }
  begun_ = {};  // destroys the promise, so that the constructor does not wait forever
}

// --- the connection to a shard -------------------------------------------------------------------

Task<std::shared_ptr<objects::Session>> ShardConnection::session() {
  const Time begin = thread_.executor.now();
  while (session_ == nullptr) {
    if (connecting_) {
      co_await wait(waiting_);
    } else {
      connecting_ = true;
      try {
        session_ = co_await systems::kMcasObjects.connect(thread_, {node_, kShardPort}, config_);
      } catch (const PlatformError& problem) {
        problem_ = problem.what();
      }
      connecting_ = false;
      waiting_.wake_all();
    }
    if (session_ != nullptr) break;
    if (thread_.executor.now() - begin >= limit_) co_return nullptr;
    co_await sleep_for(kBetweenAttempts);
  }
  co_return session_;
}

void ShardConnection::lost(const std::shared_ptr<objects::Session>& session) {
  if (session_ == session) drop();
}

std::weak_ptr<objects::Pool> ShardConnection::keep(std::unique_ptr<objects::Pool> pool) {
  return pools_.emplace_back(std::move(pool));
}

void ShardConnection::drop() {
  pools_.clear();
  session_ = nullptr;
}

// The service's errors have the same order as the statuses that follow `ok`.
static_assert(static_cast<int>(Status::not_found) ==
              static_cast<int>(objects::Error::not_found) + 1);
static_assert(static_cast<int>(Status::locked) == static_cast<int>(objects::Error::locked) + 1);
static_assert(static_cast<int>(Status::disconnected) ==
              static_cast<int>(objects::Error::disconnected) + 1);

Status status_of(objects::Error error) { return static_cast<Status>(static_cast<int>(error) + 1); }

std::string_view to_string(Status status) {
  switch (status) {
    case Status::ok:
      return "done";
    case Status::unreachable:
      return "unreachable";
    case Status::timed_out:
      return "timed out";
    default:
      return objects::to_string(static_cast<objects::Error>(static_cast<int>(status) - 1));
  }
}

}  // namespace perdura::mcas
