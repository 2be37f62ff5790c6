// The workers of a hash index's server. Each worker executes the requests of its sessions one after
// the other; several workers change the index concurrently.
#pragma once

#include <fmt/core.h>

#include <memory>
#include <string>

#include "platform/fabric/needs.h"
#include "platform/platform.h"
#include "platform/runtime/work.h"
#include "rpc/messages.h"
#include "rpc/sessions.h"
#include "systems/bucket_hash/messages.h"
#include "systems/bucket_hash/server.h"

namespace perdura::systems::bucket_hash {

inline ReplyStatus status_of(const kv::Result<void>& result) {
  if (result) return ReplyStatus::done;
  return result.error() == kv::Error::not_found ? ReplyStatus::not_found
                                                : ReplyStatus::out_of_space;
}

// A worker with its sessions, request slots and replies. All of it belongs to one thread.
template <class Server>
class Worker {
 public:
  Worker(Thread& thread, std::shared_ptr<Server> server)
      : thread_(thread),
        server_(std::move(server)),
        number_(server_->add_worker()),
        lanes_(server_->lanes()),
        index_memory_(server_->register_index(thread.endpoint)),
        requests_(make_rows(kRequestRoom, "requests")),
        requests_memory_(thread.endpoint.register_memory(*requests_, fabric::Access::remote_write)),
        replies_(make_rows(kReplyRoom, "replies")),
        replies_memory_(thread.endpoint.register_memory(*replies_, fabric::Access::local)),
        max_inline_(thread.endpoint.capabilities().max_inline),
        sessions_(server_->sessions()) {
    fabric::check_needs(kDeviceNeeds, thread.endpoint.capabilities(), server_->name());
  }

  // Runs until the task is destroyed.
  static Task<> serve(std::shared_ptr<Worker> self) {
    Executor::current().spawn(rpc::accept_connections(
        self->thread_.endpoint,
        [self](fabric::ConnectionRequest& request) { self->accept(request); }));
    for (;;) {
      const fabric::ReceiveCompletion completion = co_await self->completions_.next();
      co_await self->handle(completion);
    }
  }

 private:
  struct ServerSession {
    std::uint32_t number = 0;
    std::unique_ptr<fabric::ReceiveQueue> immediates;
    std::unique_ptr<fabric::QueuePair> queue_pair;
    bool is_free() const { return queue_pair == nullptr; }
  };

  // An array with one element for each lane of each session.
  std::unique_ptr<pmem::Region> make_rows(Bytes room, std::string_view what) const {
    return thread_.node.create_region(fmt::format("{} {} {}", server_->name(), what, number_),
                                      Bytes{server_->sessions()} * lanes_ * room,
                                      pmem::Medium::dram);
  }
  Bytes row(const ServerSession& session, std::uint32_t lane) const {
    return Bytes{session.number} * lanes_ + lane;
  }

  void accept(fabric::ConnectionRequest& request) {
    ServerSession* const free = sessions_.find_free();
    const auto hello = rpc::read_message<Hello>(request.private_data());
    if (hello.version != kProtocolVersion || free == nullptr) return request.reject();
    ServerSession& session = *free;
    session.immediates = thread_.endpoint.create_receive_queue(lanes_);
    for (std::uint32_t i = 0; i < lanes_; ++i) session.immediates->post({}, i);
    Welcome welcome;
    welcome.session = session.number;
    welcome.lanes = lanes_;
    welcome.requests_key = requests_memory_.key.value;
    welcome.index_key = index_memory_.key.value;
    welcome.requests_offset = row(session, 0) * kRequestRoom;
    welcome.plan = server_->plan();
    session.queue_pair =
        request.accept({session.immediates.get(), &completions_, lanes_}, rpc::bytes_of(welcome));
    sessions_.connected(*session.queue_pair, session);
  }

  Task<> handle(fabric::ReceiveCompletion completion) {
    ServerSession* const found = sessions_.of(completion.queue_pair);
    if (found == nullptr) co_return;
    ServerSession& session = *found;
    charge(Work::dispatch);
    if (completion.status != fabric::Status::success) {
      sessions_.forget(*session.queue_pair);
      session.queue_pair.reset();
      session.immediates.reset();
      co_return;
    }
    session.immediates->post({}, completion.buffer_id);
    const std::uint32_t lane = completion.immediate.value_or(lanes_);
    if (lane >= lanes_) co_return;
    const auto request = requests_->read_object<Request>(row(session, lane) * kRequestRoom);
    const kv::Result<void> result = request.kind == RequestKind::put
                                        ? co_await server_->put(number_, request.item)
                                        : co_await server_->erase(number_, request.item);
    const fabric::LocalBuffer buffer =
        replies_memory_.local(row(session, lane) * kReplyRoom, sizeof(Reply));
    rpc::write_message(buffer.bytes(), Reply{lane, status_of(result)});
    rpc::send(*session.queue_pair, buffer, max_inline_);
  }

  Thread& thread_;
  std::shared_ptr<Server> server_;
  std::uint32_t number_;
  std::uint32_t lanes_;
  fabric::MemoryRegion index_memory_;
  std::unique_ptr<pmem::Region> requests_;
  fabric::MemoryRegion requests_memory_;
  std::unique_ptr<pmem::Region> replies_;
  fabric::MemoryRegion replies_memory_;
  std::uint32_t max_inline_;
  fabric::CompletionQueue completions_;
  rpc::SessionTable<ServerSession> sessions_;
};

// The partition that the harness holds. Workers share ownership of the server, which lives as long
// as any of them.
template <class Server>
class Partition final : public kv::KvPartition {
 public:
  Partition(Thread& thread, std::shared_ptr<Server> server)
      : server_(std::move(server)), first_(std::make_shared<Worker<Server>>(thread, server_)) {}
  kv::KvSpace space() const override { return server_->space(); }
  std::vector<std::uint64_t> events() const override { return server_->events(); }
  std::string audit() override { return server_->audit(); }
  Task<> serve() override { return Worker<Server>::serve(first_); }
  Task<> serve_also(Thread& thread) override {
    return Worker<Server>::serve(std::make_shared<Worker<Server>>(thread, server_));
  }
  // A request is answered only when all of its effects are done, so nothing is deferred.
  Task<> settle() override { co_return; }

 private:
  std::shared_ptr<Server> server_;
  std::shared_ptr<Worker<Server>> first_;
};

}  // namespace perdura::systems::bucket_hash
