// The part of a server that Erda's two baselines, Redo Logging and Read After Write, share:
// sessions, their connections and buffers, and the requests get and delete, which a client SENDs
// and which the server answers with a SEND.
//
// Each session has a reply buffer for each of its `queue_depth` operations in flight, and one
// request buffer more, since a request's buffer is not posted while the request is served. All
// buffers are in DRAM. A request carries an id below `queue_depth`, which no other request of the
// session in flight has. Its reply is composed in the buffer of that number, which is free, since
// the client has received the previous reply from it.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "platform/platform.h"
#include "rpc/sessions.h"
#include "services/kv/kv.h"
#include "systems/write_ahead/messages.h"
#include "systems/write_ahead/store.h"

namespace perdura::systems::write_ahead {

struct ServerSession {
  std::uint32_t number = 0;
  bool connected = false;
  // Increases with each session that has this number, throughout the pool's life.
  std::uint64_t epoch = 0;
  std::unique_ptr<fabric::ReceiveQueue> request_buffers;
  std::unique_ptr<fabric::QueuePair> requests;
  std::unique_ptr<fabric::QueuePair> log;  // Redo Logging only
  bool is_free() const { return !requests && !log; }
};

class Server : public std::enable_shared_from_this<Server> {
 public:
  Server(Thread& thread, const std::string& name, std::string_view system,
         const kv::KvConfig& config, const Parameters& parameters);
  virtual ~Server() = default;

  // Runs until it is destroyed.
  virtual Task<> serve() = 0;
  virtual Task<> settle() = 0;
  // The number of times that the log has wrapped around since the partition was created.
  double log_laps() const {
    const Log& log = store_.log();
    return static_cast<double>(log.tail()) / static_cast<double>(log.slots());
  }
  // KvSystem::events of both baselines.
  std::vector<std::uint64_t> events() const;
  std::string audit() const { return store_.audit(); }

 protected:
  struct Incoming {
    Request header;
    kv::Key key;  // its bytes are in the receive buffer of the request
  };

  // The parts that differ between the baselines.
  virtual void reserve_requested(ServerSession& session, const Incoming& request) = 0;
  virtual void persist_requested(ServerSession& session, const Incoming& request) = 0;
  virtual void erase_requested(ServerSession& session, const Incoming& request) = 0;
  virtual void record_arrived(ServerSession& session,
                              const fabric::ReceiveCompletion& completion) = 0;
  virtual void session_ended(ServerSession& session) = 0;
  // The options of the connection for SENDs to the log, if the baseline has one.
  virtual std::optional<fabric::QueuePairOptions> log_options() = 0;
  virtual Welcome welcome() const = 0;

  static Task<> accept_connections(std::shared_ptr<Server> self);
  void handle(const fabric::ReceiveCompletion& completion);
  void reply(ServerSession& session, std::uint32_t id, ReplyStatus status, std::uint64_t position,
             std::uint32_t value_length = 0);

  Thread& thread_;
  Store store_;
  std::uint32_t queue_depth_;

 private:
  Position opened_at_;  // the tail of the log
  Bytes request_room_;
  Bytes reply_room_;
  std::unique_ptr<pmem::Region> buffers_;
  fabric::MemoryRegion buffer_memory_;

 protected:
  std::uint32_t max_inline_;
  fabric::CompletionQueue completions_;
  rpc::SessionTable<ServerSession> sessions_;

 private:
  void accept(fabric::ConnectionRequest& request);
  void accept_session(fabric::ConnectionRequest& request);
  void accept_log(fabric::ConnectionRequest& request, const Hello& hello);
  void request_arrived(ServerSession& session, const fabric::ReceiveCompletion& completion);
  void get_requested(ServerSession& session, const Incoming& request);
  void connection_ended(ServerSession& session, const fabric::QueuePair* queue_pair);
  std::uint32_t request_buffers() const { return queue_depth_ + 1; }
  fabric::LocalBuffer request_buffer(const ServerSession& session, std::uint64_t index) const;
  fabric::LocalBuffer reply_buffer(const ServerSession& session, std::uint64_t index) const;
};

inline constexpr std::array kPartitionMetrics{
    services::Metric{"log_laps", "laps of the log", "Laps of the log"}};
inline constexpr std::array kEvents{services::Event{"laps of the log"},
                                    services::Event{"displaced entries"},
                                    services::Event{"replayed records", true},
                                    services::Event{"halves of displacements removed", true}};

// The partition that the harness holds. Background tasks share ownership of the server, which lives
// as long as any of them.
class Partition final : public kv::KvPartition {
 public:
  explicit Partition(std::shared_ptr<Server> server) : server_(std::move(server)) {}
  Task<> serve() override { return server_->serve(); }
  Task<> settle() override { return server_->settle(); }
  std::vector<double> metrics() const override { return {server_->log_laps()}; }
  std::vector<std::uint64_t> events() const override { return server_->events(); }
  std::string audit() override { return server_->audit(); }

 private:
  std::shared_ptr<Server> server_;
};

}  // namespace perdura::systems::write_ahead
