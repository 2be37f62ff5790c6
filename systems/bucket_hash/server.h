// The server of a partition as far as the hash indexes share it: sessions, requests and replies. An
// index adds what it does with a request. The partition's one worker serves them one after the
// other, so what the papers have locks for needs none.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "platform/platform.h"
#include "systems/bucket_hash/messages.h"
#include "systems/kv.h"

namespace perdura::systems::bucket_hash {

class Server : public std::enable_shared_from_this<Server> {
 public:
  virtual ~Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until it is destroyed.
  Task<> serve();
  // May be called on any thread.
  virtual KvSpace space() const = 0;

 protected:
  Server(Thread& thread, const std::string& name, std::uint32_t sessions, std::uint32_t lanes);

  // Either may suspend, while other requests wait. `out_of_space` and `not_found` are the only
  // errors.
  virtual Task<Result<void>> put(Slot item) = 0;
  virtual Task<Result<void>> erase(Slot key) = 0;
  virtual Plan plan() const = 0;
  virtual fabric::RemoteKey index_key() const = 0;

  Thread& thread_;

 private:
  struct Session {
    std::uint32_t number = 0;
    std::unique_ptr<fabric::ReceiveQueue> immediates;
    std::unique_ptr<fabric::QueuePair> queue_pair;
  };

  static Task<> accept_connections(std::shared_ptr<Server> self);
  void accept(fabric::ConnectionRequest& request);
  Task<> handle(fabric::ReceiveCompletion completion);
  void end(Session& session);
  Bytes request_offset(const Session& session, std::uint32_t lane) const {
    return (Bytes{session.number} * lanes_ + lane) * kRequestRoom;
  }

  std::uint32_t lanes_;
  std::unique_ptr<pmem::Region> requests_;
  fabric::MemoryRegion requests_memory_;
  std::unique_ptr<pmem::Region> replies_;
  fabric::MemoryRegion replies_memory_;
  std::uint32_t max_inline_;
  fabric::CompletionQueue completions_;
  std::vector<Session> sessions_;
  std::unordered_map<const fabric::QueuePair*, std::uint32_t> session_of_;
};

// The partition that the harness holds; background tasks keep the server itself as long as they
// need it.
class Partition final : public KvPartition {
 public:
  explicit Partition(std::shared_ptr<Server> server) : server_(std::move(server)) {}
  KvSpace space() const override { return server_->space(); }
  Task<> serve() override { return server_->serve(); }
  // Requests are answered when all that they cause is done.
  Task<> settle() override { co_return; }

 private:
  std::shared_ptr<Server> server_;
};

}  // namespace perdura::systems::bucket_hash
