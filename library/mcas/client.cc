#include <fmt/format.h>

#include "library/mcas/pool.h"

namespace perdura::mcas {

namespace {

// Checks the options before anything is opened.
Network network_of(const ClientOptions& options) {
  const Network network{.rdma = !options.address.empty(), .device = options.device};
  check_shard(network, options.node, options.address);
  return network;
}

}  // namespace

class Client::Impl {
 public:
  explicit Impl(const ClientOptions& options)
      : membership_(
            std::make_shared<Membership>(options.job, network_of(options),
                                         Limits{options.connect_timeout, options.call_timeout})) {
    membership_->add_shard(options.node, options.address);
    shard_ = membership_->shard(options.node, options.queue_depth);
    auto connected =
        membership_->post<std::string>([shard = shard_]() -> Task<Result<std::string>> {
          const auto session = co_await shard->session();
          co_return session != nullptr ? std::string() : shard->problem();
        });
    Result<std::string> problem = connected.wait();
    if (problem.ok() && problem.value().empty()) return;
    std::string why = membership_->problem(options.node);
    if (!why.empty()) {
      why = fmt::format(", at {}: {}", options.address, why);
    } else if (problem.ok()) {
      why = ": " + problem.value();
    }
    throw TimedOut(fmt::format("shard {} of the job '{}' cannot be reached within {} s{}; start it "
                               "(perdura mcas serve), or raise connect_timeout",
                               options.node, options.job,
                               std::chrono::duration<double>(options.connect_timeout).count(), why),
                   false);
  }

  template <class T, class Operation>
  Pending<T> post(Operation operation) {
    return membership_->post<T>([shard = shard_, operation = std::move(operation)]() mutable {
      return on_session<T>(shard, std::move(operation));
    });
  }
  const std::shared_ptr<Membership>& membership() const { return membership_; }
  const std::shared_ptr<ShardConnection>& shard() const { return shard_; }

 private:
  std::shared_ptr<Membership> membership_;
  std::shared_ptr<ShardConnection> shard_;
};

Client::Client(const ClientOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Client::~Client() = default;

Result<Pool> Client::create_pool(std::string_view name, std::uint64_t size, PoolFlags flags) {
  return open(impl_->membership(), impl_->shard(),
              {.name = std::string(name), .flags = flags, .size = size, .creates = true});
}

Result<Pool> Client::open_pool(std::string_view name, PoolFlags flags, std::uint64_t size) {
  return open(impl_->membership(), impl_->shard(),
              {.name = std::string(name), .flags = flags, .size = size});
}

Pending<void> Client::async_delete_pool(std::string_view name) {
  return impl_->post<void>([name = std::string(name)](objects::Session& session) {
    return delete_pool_of(session, name);
  });
}

Pending<Statistics> Client::async_statistics() {
  return impl_->post<Statistics>([](objects::Session& session) -> Task<Result<Statistics>> {
    const auto found = co_await session.statistics();
    if (!found) co_return failure_of<Statistics>(found.error());
    co_return Statistics{.requests = found->requests,
                         .puts = found->puts,
                         .gets = found->gets,
                         .erases = found->erases,
                         .direct_transfers = found->direct_transfers,
                         .invocations = found->invocations,
                         .failed_requests = found->failed_requests,
                         .sessions = found->sessions,
                         .pools = found->pools};
  });
}

Result<DirectMemory> Client::register_direct_memory(std::size_t size) {
  return allocate(impl_->membership(), size);
}

}  // namespace perdura::mcas
