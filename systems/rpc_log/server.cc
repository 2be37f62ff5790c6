#include "systems/rpc_log/server.h"

#include "platform/runtime/work.h"
#include "rpc/messages.h"
#include "rpc/sessions.h"

namespace perdura::systems::rpc_log {
namespace {

using remote_log::RecordHeader;

constexpr std::uint32_t kBuffers = 2;  // for requests; one is under way at a time
constexpr std::uint64_t kBatch = 16;   // records applied before requests are handled again
constexpr Picoseconds kPoll = Nanoseconds(100);

// Offsets in the server's memory: the answer, and after it the buffers.
constexpr Bytes kAnswerAt = 0;
constexpr Bytes kBuffersAt = kCacheLine;
constexpr Bytes kNumberAt = kBuffersAt + offsetof(RecordHeader, number);

Bytes distance(const Options& options) { return round_up(options.request_size(), kCacheLine); }

}  // namespace

LogServer::LogServer(Thread& thread, const std::string& name, const Options& options,
                     LocalLog::Apply apply)
    : thread_(thread),
      options_(options),
      apply_(std::move(apply)),
      log_(thread.node, name, options.log),
      memory_(thread.node.create_region(
          name + ".requests", kBuffersAt + kBuffers * distance(options), pmem::Medium::dram)),
      registered_(thread.endpoint.register_memory(*memory_, fabric::Access::local)),
      request_(options.request_size()) {
  if (!options.polls) return;
  polled_ = thread.endpoint.register_memory(*memory_, kBuffersAt, distance(options),
                                            fabric::Access::remote_write);
}

LogServer::~LogServer() {
  client_.reset();
  if (options_.polls) thread_.endpoint.deregister_memory(polled_);
  thread_.endpoint.deregister_memory(registered_);
}

Task<> LogServer::serve(Picoseconds look) {
  // Each task keeps alive what it uses: the others may be destroyed before it.
  const auto self = shared_from_this();
  Executor& executor = Executor::current();
  executor.spawn(rpc::accept_connections(
      thread_.endpoint, [self](fabric::ConnectionRequest& request) { self->accept(request); }));
  executor.spawn(take_messages());
  if (options_.polls) executor.spawn(poll_requests());
  for (;;) {
    while (log_.apply_some(kBatch, apply_) == kBatch) co_await yield();
    co_await sleep_for(look);
  }
}

void LogServer::accept(fabric::ConnectionRequest& request) {
  const Hello mine = Hello::of(options_);
  const bool agrees = rpc::read_message<Hello>(request.private_data()) == mine;
  if (!agrees || client_ != nullptr) {
    return request.reject(rpc::bytes_of(Rejection{.is_busy = agrees ? 1U : 0U, .server = mine}));
  }
  // The request of a client that is gone, which was not taken, must not be taken for one of this
  // client's.
  if (options_.polls) memory_->store(kNumberAt, 0);
  receive_queue_ = thread_.endpoint.create_receive_queue(kBuffers);
  for (std::uint32_t i = 0; i < kBuffers && !options_.polls; ++i) {
    receive_queue_->post(
        registered_.local(kBuffersAt + i * distance(options_), options_.request_size()), i);
  }
  client_ = request.accept({.receive_queue = receive_queue_.get(), .completions = &completions_},
                           rpc::bytes_of(Welcome{.tail = log_.tail(), .requests = polled_.key}));
}

Task<> LogServer::take_messages() {
  const auto self = shared_from_this();
  for (;;) {
    const fabric::ReceiveCompletion message = co_await completions_.next();
    if (message.queue_pair != client_.get()) continue;
    if (message.status != fabric::Status::success) {
      client_.reset();
      receive_queue_.reset();
      continue;
    }
    take(message.buffer.bytes());
    receive_queue_->post(registered_.local(kBuffersAt + message.buffer_id * distance(options_),
                                           options_.request_size()),
                         message.buffer_id);
  }
}

Task<> LogServer::poll_requests() {
  const auto self = shared_from_this();
  for (;;) {
    const std::uint64_t next = log_.tail() + 1;
    if (client_ != nullptr && memory_->load(kNumberAt) == next) {
      memory_->read(kBuffersAt, request_);
      // A request that is not whole yet is looked at again.
      if (remote_log::length_of(request_, next, true)) take(request_);
    }
    co_await sleep_for(kPoll);
  }
}

void LogServer::take(std::span<const std::byte> request) {
  charge(Work::dispatch);
  const auto header = rpc::read_message<RecordHeader>(request);
  if (request.size() < sizeof header + header.length || header.number != log_.tail() + 1) {
    client_.reset();  // it does not follow the protocol
    return;
  }
  while (log_.is_full()) log_.apply_some(kBatch, apply_);
  const Answer answer{log_.append(request.subspan(sizeof header, header.length))};
  const fabric::LocalBuffer message = registered_.local(kAnswerAt, sizeof answer);
  rpc::write_message(message.bytes(), answer);
  rpc::send(*client_, message, thread_.endpoint.capabilities().max_inline);
}

}  // namespace perdura::systems::rpc_log
