#include "systems/mcas/ado/peer_link.h"

#include "platform/runtime/work.h"

namespace perdura::systems::mcas::ado {

PeerLink::PeerLink(Thread& thread, const PeerOptions& options)
    : endpoint_(thread.endpoint),
      options_(options),
      buffers_(thread.node.create_region(
          "a connection of active data objects",
          (kReceives + 1) * round_up(options.longest_message, kCacheLine), pmem::Medium::dram)),
      memory_(endpoint_.register_memory(*buffers_, fabric::Access::local)),
      rows_{memory_, 0, round_up(options.longest_message, kCacheLine),
            static_cast<std::uint32_t>(options.longest_message)},
      received_(endpoint_.create_receive_queue(kReceives)) {
  for (std::uint32_t i = 0; i < kReceives; ++i) received_->post(rows_[i], i);
}

PeerLink::~PeerLink() {
  queue_pair_.reset();
  received_.reset();
  endpoint_.deregister_memory(memory_);
}

Task<std::optional<std::string>> PeerLink::connect(std::string hello) {
  const auto self = shared_from_this();
  const auto bytes = std::as_bytes(std::span(hello));
  fabric::QueuePairOptions options{received_.get(), &completions_};
  options.connection_timeout = options_.connect_patience;
  fabric::Connection connection = co_await endpoint_.connect(
      options_.address, options, std::vector<std::byte>(bytes.begin(), bytes.end()));
  if (connection.status != fabric::Status::success) co_return std::nullopt;
  queue_pair_ = std::move(connection.queue_pair);
  const auto& answer = connection.private_data;
  co_return std::string(reinterpret_cast<const char*>(answer.data()), answer.size());
}

Task<bool> PeerLink::send(std::string message) {
  const auto self = shared_from_this();
  co_await sending_.acquire();
  const fabric::LocalBuffer buffer = rows_[kReceives].first(message.size());
  copy_bytes(buffer.bytes(), std::as_bytes(std::span(message)));
  const fabric::Completion sent = co_await queue_pair_->send(buffer);
  sending_.release();
  co_return static_cast<bool>(sent);
}

Task<std::optional<std::string>> PeerLink::receive() {
  const auto self = shared_from_this();
  const fabric::ReceiveCompletion got = co_await completions_.next();
  if (got.status != fabric::Status::success) {
    // The event is put back, for other tasks that wait.
    close();
    co_return std::nullopt;
  }
  std::string message(got.length, '\0');
  copy_bytes(std::as_writable_bytes(std::span(message)), got.buffer.bytes());
  received_->post(rows_[got.buffer_id], got.buffer_id);
  co_return message;
}

void PeerLink::close() {
  fabric::ReceiveCompletion end;
  end.status = fabric::Status::disconnected;
  completions_.push(end);
}

}  // namespace perdura::systems::mcas::ado
