#include "systems/rpc_log/client.h"

#include <fmt/format.h>

#include "methods/remote_persister.h"
#include "platform/base/error.h"
#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::systems::rpc_log {

using services::LogError;

namespace {

constexpr Bytes kAnswer = 0;
constexpr Bytes kRequest = kCacheLine;

[[noreturn]] void not_accepted(const fabric::Connection& connection, fabric::Address server) {
  const std::string who =
      fmt::format("the log's server at node {}, port {} ", server.node, server.port);
  if (connection.private_data.size() < sizeof(Rejection)) {
    throw PlatformError(
        fmt::format("{}cannot be reached: {}", who, fabric::to_string(connection.status)));
  }
  const auto rejection = rpc::read_message<Rejection>(connection.private_data);
  if (rejection.is_busy != 0) {
    throw methods::RefusedForNow(who + "has another client", methods::Rejection::Reason::busy);
  }
  throw UsageError(fmt::format(
      "{}has {} records of up to {} bytes and {} requests; give both sides the same options", who,
      rejection.server.slots, rejection.server.largest_payload,
      rejection.server.polls != 0 ? "polls for" : "receives"));
}

}  // namespace

LogClient::LogClient(Thread& thread, const Options& options)
    : thread_(thread),
      options_(options),
      memory_(thread.node.create_region("log-client", kRequest + options.request_size(),
                                        pmem::Medium::dram)),
      registered_(thread.endpoint.register_memory(*memory_, fabric::Access::local)) {}

LogClient::~LogClient() {
  queue_pair_.reset();
  thread_.endpoint.deregister_memory(registered_);
}

Task<std::unique_ptr<LogClient>> LogClient::connect(Thread& thread, fabric::Address server,
                                                    const Options& options) {
  std::unique_ptr<LogClient> client(new LogClient(thread, options));
  co_await client->open(server);
  co_return client;
}

Task<> LogClient::open(fabric::Address server) {
  receive_queue_ = thread_.endpoint.create_receive_queue(1);
  const Hello hello = Hello::of(options_);
  const auto bytes = rpc::bytes_of(hello);
  fabric::Connection connection = co_await thread_.endpoint.connect(
      server, {.receive_queue = receive_queue_.get(), .completions = &completions_},
      {bytes.begin(), bytes.end()});
  if (connection.queue_pair == nullptr) not_accepted(connection, server);
  const auto welcome = rpc::read_message<Welcome>(connection.private_data);
  queue_pair_ = std::move(connection.queue_pair);
  requests_ = welcome.requests;
  tail_ = welcome.tail;
}

Task<tl::expected<std::uint64_t, LogError>> LogClient::append(std::span<const std::byte> payload) {
  using remote_log::RecordHeader;
  if (payload.size() > options_.log.largest_payload) {
    co_return tl::unexpected(LogError::too_large);
  }
  const auto size = static_cast<std::uint32_t>(sizeof(RecordHeader) + payload.size());
  const fabric::LocalBuffer request = registered_.local(kRequest, size);
  copy_bytes(request.bytes().subspan(sizeof(RecordHeader)), payload);
  remote_log::write_header(request.bytes(), tail_ + 1, payload.size(), options_.polls);

  receive_queue_->post(registered_.local(kAnswer, sizeof(Answer)), 0);
  fabric::RdmaOperation sent =
      options_.polls ? queue_pair_->write(request, {requests_, 0}) : queue_pair_->send(request);
  sent.post();
  const fabric::ReceiveCompletion answered = co_await completions_.next();
  const fabric::Completion done = co_await sent;
  if (answered.status != fabric::Status::success || !done) {
    co_return tl::unexpected(LogError::disconnected);
  }
  tail_ = rpc::read_message<Answer>(answered.buffer.bytes()).number;
  co_return tail_;
}

}  // namespace perdura::systems::rpc_log
