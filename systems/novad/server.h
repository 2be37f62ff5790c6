// The server: executes the requests of its clients on a volume of nova in its persistent memory,
// one after the other, on one thread. Programs of its node may use the volume on other threads
// (local.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "rpc/sessions.h"
#include "services/fs/fs.h"
#include "systems/nova/session.h"
#include "systems/novad/counted.h"
#include "systems/novad/parameters.h"
#include "systems/novad/requests.h"

namespace perdura::systems::novad {

class Server final : public fs::FsServer, public std::enable_shared_from_this<Server> {
 public:
  // `volume` is mounted, and used by nobody but this server and its local sessions.
  Server(Thread& thread, const std::string& name, const Parameters& parameters,
         std::shared_ptr<nova::FileSystem> volume);
  ~Server() override { bindings_.clear(); }

  Task<> serve(Thread& thread) override;
  std::vector<std::uint64_t> events() const override;
  std::vector<double> metrics() const override {
    return {static_cast<double>(executed_), static_cast<double>(refused_)};
  }
  bool has_metadata() const override { return true; }
  std::string damage() const override { return volume_->damage(); }
  Task<std::string> audit() override;

  // For a program of this node: a session of the volume, on another thread of the process. After an
  // operation that leaves is_settled() false, the program has to ask the server by a request.
  std::unique_ptr<fs::Session> attach(Thread& thread) { return volume_->attach(thread); }
  bool is_settled() const { return bindings_.is_settled(); }

 private:
  struct ServedSession {
    std::uint32_t number = 0;
    std::uint64_t mount = 0;
    std::unique_ptr<fabric::ReceiveQueue> buffers;
    std::unique_ptr<fabric::QueuePair> queue_pair;
    std::uint32_t running = 0;  // requests under way
    bool ended = false;         // the connection is gone, but requests may still be under way
    bool is_free() const { return queue_pair == nullptr; }
  };
  // Lives as long as the thread serves. Its connections and registrations end with it, while
  // programs of its node may go on with the volume.
  struct Serving {
    Server& server;
    ~Serving() {
      server.bindings_.clear();
      server.sessions_.clear();
      server.readers_.clear();
    }
  };

  void accept(fabric::ConnectionRequest& request);
  void accept_reader(fabric::ConnectionRequest& request, const Hello& hello);
  void handle(const fabric::ReceiveCompletion& completion);
  void end(ServedSession& session);
  void refuse(ServedSession& session);
  Task<> finish(std::shared_ptr<Server> self, ServedSession& session);
  Task<> end_mount(std::uint64_t mount);
  // Executes a request and answers it.
  Task<> call(std::shared_ptr<Server> self, ServedSession& session, MessageHeader header,
              std::vector<std::byte> body);
  // READs the rest of a request, and WRITEs the rest of an answer; false if the client is gone.
  Task<bool> fetch(ServedSession& session, const MessageHeader& header,
                   std::vector<std::byte>& body);
  Task<bool> put(ServedSession& session, const MessageHeader& header,
                 std::span<const std::byte> results);
  Task<> answer(ServedSession& session, const MessageHeader& header, std::int32_t error,
                std::span<const std::byte> results);
  // Executes a request; nullopt if it is none.
  Task<std::optional<std::int32_t>> execute(ServedSession& session, const MessageHeader& header,
                                            std::span<const std::byte> body, Encoder& results);

  fabric::LocalBuffer receive_buffer(const ServedSession& session, std::uint64_t index) const {
    return memory_.local((Bytes{session.number} * kCalls + index) * kMessageRoom,
                         static_cast<std::uint32_t>(kMessageRoom));
  }
  fabric::LocalBuffer reply_buffer(const ServedSession& session, std::uint32_t call) const {
    return memory_.local(
        (Bytes{parameters_.sessions + session.number} * kCalls + call) * kMessageRoom,
        static_cast<std::uint32_t>(kMessageRoom));
  }
  fabric::LocalBuffer bounce_buffer(Bytes length) const;

  Thread& thread_;
  Parameters parameters_;
  std::uint64_t life_;  // Welcome::server
  std::shared_ptr<nova::FileSystem> volume_;
  Bindings bindings_;
  std::unique_ptr<fs::Session> files_;
  Requests requests_;
  // Receive buffers and replies of the sessions, then the bounce buffer.
  std::unique_ptr<pmem::Region> buffers_;
  fabric::MemoryRegion memory_;
  Semaphore bounce_turn_{1};
  std::uint32_t max_inline_;
  fabric::CompletionQueue completions_;
  rpc::SessionTable<ServedSession> sessions_;
  // Connections over which files are READ, without requests. The mounts' numbers are not needed: a
  // filekey is all that a READ shows.
  std::map<const fabric::QueuePair*, std::unique_ptr<fabric::QueuePair>> readers_;
  WaitList ended_;
  std::uint64_t executed_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace perdura::systems::novad
