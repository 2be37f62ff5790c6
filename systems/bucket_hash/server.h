// The server of a partition as far as the hash indexes share it: what an index does with requests,
// and the workers that take them from their sessions. Each worker serves its requests one after the
// other; several workers change the index at the same time, under its locks.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "platform/platform.h"
#include "systems/bucket_hash/locks.h"
#include "systems/bucket_hash/messages.h"
#include "systems/kv.h"

namespace perdura::systems::bucket_hash {

// An index as its workers see it. All of it may be called on the threads of several workers.
class Server {
 public:
  virtual ~Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // For the worker of this number. Either may suspend, while the worker's other requests wait.
  // `out_of_space` and `not_found` are the only errors.
  virtual Task<Result<void>> put(std::uint32_t worker, Slot item) = 0;
  virtual Task<Result<void>> erase(std::uint32_t worker, Slot key) = 0;
  virtual Plan plan() const = 0;
  virtual KvSpace space() const = 0;

  // What clients may READ.
  struct Readable {
    pmem::Region* region = nullptr;
    Bytes offset = 0;
    Bytes length = 0;
  };
  virtual Readable readable() const = 0;

  const std::string& name() const { return name_; }
  std::uint32_t sessions() const { return sessions_; }
  std::uint32_t lanes() const { return lanes_; }
  // The number of one more worker. Throws UsageError if there are as many as were configured.
  std::uint32_t add_worker();

 protected:
  // `lanes`: requests of a session under way at once.
  Server(std::string name, const KvConfig& config, std::uint32_t lanes)
      : locks_(config.workers),
        name_(std::move(name)),
        sessions_(config.sessions),
        lanes_(lanes),
        workers_(config.workers) {}

  LockTable locks_;

 private:
  std::string name_;
  std::uint32_t sessions_;
  std::uint32_t lanes_;
  std::uint32_t workers_;
  std::atomic<std::uint32_t> started_{0};  // workers
};

// A worker: its sessions, requests and replies. Lives on one thread.
class Worker : public std::enable_shared_from_this<Worker> {
 public:
  Worker(Thread& thread, std::shared_ptr<Server> server);

  // Serves until it is destroyed.
  static Task<> serve(std::shared_ptr<Worker> self);

 private:
  struct Session {
    std::uint32_t number = 0;
    std::unique_ptr<fabric::ReceiveQueue> immediates;
    std::unique_ptr<fabric::QueuePair> queue_pair;
  };

  static Task<> accept_connections(std::shared_ptr<Worker> self);
  void accept(fabric::ConnectionRequest& request);
  Task<> handle(fabric::ReceiveCompletion completion);
  void end(Session& session);
  Bytes request_offset(const Session& session, std::uint32_t lane) const {
    return (Bytes{session.number} * lanes_ + lane) * kRequestRoom;
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
  std::vector<Session> sessions_;
  std::ptrdiff_t first_perhaps_free_ = 0;  // those before it are connected
  std::unordered_map<const fabric::QueuePair*, std::uint32_t> session_of_;
};

// The partition that the harness holds; workers keep the server itself as long as they need it.
class Partition final : public KvPartition {
 public:
  Partition(Thread& thread, std::shared_ptr<Server> server)
      : server_(std::move(server)), first_(std::make_shared<Worker>(thread, server_)) {}
  KvSpace space() const override { return server_->space(); }
  Task<> serve() override { return Worker::serve(first_); }
  Task<> serve_also(Thread& thread) override {
    return Worker::serve(std::make_shared<Worker>(thread, server_));
  }
  // Requests are answered when all that they cause is done.
  Task<> settle() override { co_return; }

 private:
  std::shared_ptr<Server> server_;
  std::shared_ptr<Worker> first_;
};

// How a system opens a partition with its own kind of server.
template <class Server, class Parameters>
std::unique_ptr<KvPartition> open_partition(Thread& thread, std::string name,
                                            const KvConfig& config) {
  return std::make_unique<Partition>(
      thread, std::make_shared<Server>(thread.node, name, config, Parameters::of(config)));
}

}  // namespace perdura::systems::bucket_hash
