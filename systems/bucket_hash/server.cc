#include "systems/bucket_hash/server.h"

#include <fmt/core.h>

#include <algorithm>

#include "platform/base/error.h"
#include "platform/fabric/needs.h"
#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::systems::bucket_hash {

using fabric::Access;
using fabric::LocalBuffer;
using fabric::ReceiveCompletion;
using fabric::Status;

namespace {

ReplyStatus status_of(const Result<void>& result) {
  if (result) return ReplyStatus::done;
  return result.error() == Error::not_found ? ReplyStatus::not_found : ReplyStatus::out_of_space;
}

fabric::MemoryRegion register_index(Thread& thread, const Server& server) {
  const Server::Readable index = server.readable();
  return thread.endpoint.register_memory(*index.region, index.offset, index.length,
                                         Access::remote_read);
}

}  // namespace

std::uint32_t Server::add_worker() {
  const std::uint32_t number = started_.fetch_add(1, std::memory_order_relaxed);
  if (number >= workers_) {
    throw UsageError(
        fmt::format("pool '{}' has {} workers already; configure more", name_, workers_));
  }
  return number;
}

Worker::Worker(Thread& thread, std::shared_ptr<Server> server)
    : thread_(thread),
      server_(std::move(server)),
      number_(server_->add_worker()),
      lanes_(server_->lanes()),
      index_memory_(register_index(thread, *server_)),
      requests_(thread.node.create_region(fmt::format("{} requests {}", server_->name(), number_),
                                          Bytes{server_->sessions()} * lanes_ * kRequestRoom,
                                          pmem::Medium::dram)),
      requests_memory_(thread.endpoint.register_memory(*requests_, Access::remote_write)),
      replies_(thread.node.create_region(fmt::format("{} replies {}", server_->name(), number_),
                                         Bytes{server_->sessions()} * lanes_ * kReplyRoom,
                                         pmem::Medium::dram)),
      replies_memory_(thread.endpoint.register_memory(*replies_, Access::local)),
      max_inline_(thread.endpoint.capabilities().max_inline),
      sessions_(server_->sessions()) {
  fabric::need_write_with_immediate(thread.endpoint.capabilities(), server_->name());
  for (std::uint32_t i = 0; i < sessions_.size(); ++i) sessions_[i].number = i;
}

Task<> Worker::serve(std::shared_ptr<Worker> self) {
  Executor::current().spawn(accept_connections(self));
  for (;;) {
    const ReceiveCompletion completion = co_await self->completions_.next();
    co_await self->handle(completion);
  }
}

// --- connections ---------------------------------------------------------------------------------

Task<> Worker::accept_connections(std::shared_ptr<Worker> self) {
  for (;;) {
    const std::unique_ptr<fabric::ConnectionRequest> request =
        co_await self->thread_.endpoint.next_connection();
    self->accept(*request);
  }
}

void Worker::accept(fabric::ConnectionRequest& request) {
  const auto free = std::find_if(sessions_.begin() + first_perhaps_free_, sessions_.end(),
                                 [](const Session& session) { return !session.queue_pair; });
  first_perhaps_free_ = free - sessions_.begin();
  const auto hello = rpc::read_message<Hello>(request.private_data());
  if (hello.version != kProtocolVersion || free == sessions_.end()) return request.reject();
  Session& session = *free;
  session.immediates = thread_.endpoint.create_receive_queue(lanes_);
  for (std::uint32_t i = 0; i < lanes_; ++i) session.immediates->post({}, i);
  Welcome welcome;
  welcome.session = session.number;
  welcome.lanes = lanes_;
  welcome.requests_key = requests_memory_.key.value;
  welcome.index_key = index_memory_.key.value;
  welcome.requests_offset = request_offset(session, 0);
  welcome.plan = server_->plan();
  session.queue_pair = request.accept({session.immediates.get(), &completions_, lanes_},
                                      std::as_bytes(std::span(&welcome, 1)));
  session_of_[session.queue_pair.get()] = session.number;
}

void Worker::end(Session& session) {
  session_of_.erase(session.queue_pair.get());
  session.queue_pair.reset();
  session.immediates.reset();
  first_perhaps_free_ = std::min<std::ptrdiff_t>(first_perhaps_free_, session.number);
}

// --- requests ------------------------------------------------------------------------------------

Task<> Worker::handle(ReceiveCompletion completion) {
  const auto found = session_of_.find(completion.queue_pair);
  if (found == session_of_.end()) co_return;
  Session& session = sessions_[found->second];
  charge(Work::dispatch);
  if (completion.status != Status::success) {
    end(session);
    co_return;
  }
  session.immediates->post({}, completion.buffer_id);
  const std::uint32_t lane = completion.immediate.value_or(lanes_);
  if (lane >= lanes_) co_return;
  const auto request = requests_->read_object<Request>(request_offset(session, lane));
  const Result<void> result = request.kind == RequestKind::put
                                  ? co_await server_->put(number_, request.item)
                                  : co_await server_->erase(number_, request.item);
  const LocalBuffer buffer =
      replies_memory_.local((Bytes{session.number} * lanes_ + lane) * kReplyRoom, sizeof(Reply));
  const Reply reply{lane, status_of(result)};
  std::memcpy(buffer.bytes().data(), &reply, sizeof reply);
  fabric::WorkRequest send{.opcode = fabric::Opcode::send};
  send.flags.inlined = sizeof reply <= max_inline_;
  send.local = buffer;
  session.queue_pair->post_unsignaled(send);
}

}  // namespace perdura::systems::bucket_hash
