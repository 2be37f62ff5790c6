#include "systems/filemr_log/client.h"

#include <fmt/format.h>

#include <cstring>

#include "methods/remote_persister.h"
#include "platform/base/error.h"
#include "rpc/messages.h"
#include "systems/remote_log/log_format.h"

namespace perdura::systems::filemr_log {

using services::LogError;

namespace {

constexpr Bytes kMessage = 0;
constexpr Bytes kAnswer = kCacheLine;
constexpr Bytes kRecord = 2 * kCacheLine;

[[noreturn]] void refused(const fabric::Connection& connection, fabric::Address server) {
  const std::string who =
      fmt::format("the log's server at node {}, port {} ", server.node, server.port);
  if (connection.private_data.size() < sizeof(Rejection)) {
    throw PlatformError(
        fmt::format("{}cannot be reached: {}", who, fabric::to_string(connection.status)));
  }
  const auto rejection = rpc::read_message<Rejection>(connection.private_data);
  if (rejection.reason == Reason::busy) {
    throw methods::RefusedForNow(who + "has another client", methods::Rejection::Reason::busy);
  }
  throw UsageError(
      fmt::format("{}has {} bytes for records of up to {}; give both sides the same options", who,
                  rejection.server.room, rejection.server.largest_payload));
}

}  // namespace

LogClient::LogClient(Thread& thread, const Options& options)
    : thread_(thread),
      options_(options),
      memory_(thread.node.create_region(
          "log-client", kRecord + record_size(options.largest_payload), pmem::Medium::dram)),
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
  check_device(options_.persistence, thread_.endpoint.capabilities());
  receive_queue_ = thread_.endpoint.create_receive_queue(1);
  const Hello hello{options_.room, options_.largest_payload, options_.persistence};
  const auto bytes = rpc::bytes_of(hello);
  fabric::Connection connection = co_await thread_.endpoint.connect(
      server, {.receive_queue = receive_queue_.get(), .completions = &completions_},
      {bytes.begin(), bytes.end()});
  if (connection.queue_pair == nullptr) refused(connection, server);
  const auto welcome = rpc::read_message<Welcome>(connection.private_data);
  queue_pair_ = std::move(connection.queue_pair);
  file_ = welcome.file;
  size_ = welcome.size;
  tail_ = welcome.tail;
}

Task<tl::expected<std::uint64_t, LogError>> LogClient::append(std::span<const std::byte> payload) {
  if (payload.size() > options_.largest_payload) co_return tl::unexpected(LogError::too_large);
  const auto size = static_cast<std::uint32_t>(record_size(payload.size()));
  const fabric::LocalBuffer record = registered_.local(kRecord, size);
  const std::span<std::byte> bytes = record.bytes();
  std::memcpy(bytes.data() + sizeof(remote_log::RecordHeader), payload.data(), payload.size());
  const std::size_t end = remote_log::write_header(bytes, tail_.number + 1, payload.size(), true);
  std::memset(bytes.data() + end, 0, size - end);

  fabric::RdmaOperation append =
      queue_pair_->append(record, file_, {.commit = options_.persistence == Persistence::commit});
  append.post();
  const bool is_flushed = co_await flush();
  const fabric::Completion done = co_await append;
  if (!done || !is_flushed) co_return tl::unexpected(LogError::disconnected);
  const Bytes at = done.old_value;
  if (at != tail_.end) {
    throw PlatformError(
        fmt::format("the log's end was {}, not {}: it has another writer", at, tail_.end));
  }
  tail_ = {tail_.number + 1, at + size};
  if (options_.persistence == Persistence::message) {
    const bool is_persisted = co_await ask_to_persist(at, at + size);
    if (!is_persisted) co_return tl::unexpected(LogError::disconnected);
  }
  co_return tail_.number;
}

// Posted while the APPEND is under way, after which it takes effect: it pushes in front of it all
// that the connection has written. It is aimed at the size, since the record itself may have been
// applied and unmapped by then.
Task<bool> LogClient::flush() {
  if (options_.persistence != Persistence::flush) co_return true;
  fabric::Completion flushed;
  if (thread_.endpoint.capabilities().flush) {
    flushed = co_await queue_pair_->flush({size_, 0}, kWord, fabric::Placement::global_visibility);
  } else {
    flushed = co_await queue_pair_->read(registered_.local(kAnswer, kWord), {size_, 0});
  }
  co_return flushed.status == fabric::Status::success;
}

Task<bool> LogClient::ask_to_persist(Bytes from, Bytes to) {
  receive_queue_->post(registered_.local(kAnswer, sizeof(Persisted)), 0);
  const fabric::LocalBuffer message = registered_.local(kMessage, sizeof(PersistRequest));
  rpc::write_message(message.bytes(), PersistRequest{from, to});
  const fabric::Completion sent = co_await queue_pair_->send(message);
  if (!sent) co_return false;
  const fabric::ReceiveCompletion answer = co_await completions_.next();
  co_return answer.status == fabric::Status::success;
}

}  // namespace perdura::systems::filemr_log
