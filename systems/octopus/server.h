// The server: executes the requests of its clients, one after the other, on one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "rpc/sessions.h"
#include "services/fs/fs.h"
#include "systems/octopus/messages.h"
#include "systems/octopus/parameters.h"
#include "systems/octopus/table.h"

namespace perdura::systems::octopus {

// The order is that of Server::metrics().
inline constexpr std::array kServerMetrics{
    services::Metric{"server_requests", "requests", "Requests that the server has executed"},
    services::Metric{"refused_requests", "requests refused", "Requests that are none"},
};

class Server final : public fs::FsServer, public std::enable_shared_from_this<Server> {
 public:
  // Opens the file system. Throws UsageError if it cannot be used.
  Server(Thread& thread, const std::string& name, const Parameters& parameters);

  Task<> serve(Thread& thread) override;
  std::vector<double> metrics() const override {
    return {static_cast<double>(executed_), static_cast<double>(refused_)};
  }
  bool has_metadata() const override { return true; }
  Task<std::string> audit() override { co_return table_.audit(); }

 private:
  struct ServedClient {
    std::uint32_t number = 0;
    std::uint32_t slots = 0;
    std::uint32_t answers_key = 0;
    std::unique_ptr<fabric::ReceiveQueue> immediates;
    std::unique_ptr<fabric::QueuePair> queue_pair;
    // By slot: the record whose address its last request was given. The client has finished with it
    // when it uses the slot again.
    std::vector<std::optional<RecordNumber>> uses;
    bool is_free() const { return queue_pair == nullptr; }
  };
  // Lives as long as the thread serves.
  struct Serving {
    Server& server;
    ~Serving() { server.clients_.clear(); }
  };

  void accept(fabric::ConnectionRequest& request);
  void handle(const fabric::ReceiveCompletion& completion);
  void end(ServedClient& client);
  void end_use(ServedClient& client, std::uint32_t slot);
  Answer execute(ServedClient& client, std::uint32_t slot, const Request& request,
                 std::string_view path);
  Answer address(ServedClient& client, std::uint32_t slot, const Request& request,
                 std::string_view path);
  Answer stat(std::string_view path) const;
  // Puts the names after the answer.
  Answer list(const Request& request, std::string_view path, std::span<std::byte> names) const;
  void answer(ServedClient& client, std::uint32_t slot, const Answer& answer);

  Bytes pool_slot(const ServedClient& client, std::uint32_t slot) const {
    return (Bytes{client.number} * parameters_.slots + slot) * kRequestRoom;
  }
  fabric::LocalBuffer answer_buffer(const ServedClient& client, std::uint32_t slot,
                                    Bytes length) const {
    return answer_memory_.local((Bytes{client.number} * parameters_.slots + slot) * kAnswerRoom,
                                static_cast<std::uint32_t>(length));
  }

  Thread& thread_;
  Parameters parameters_;
  Table table_;
  std::unique_ptr<pmem::Region> pool_;
  fabric::MemoryRegion pool_memory_;
  std::unique_ptr<pmem::Region> answers_;
  fabric::MemoryRegion answer_memory_;
  fabric::MemoryRegion data_memory_;
  std::uint32_t max_inline_;
  fabric::CompletionQueue completions_;
  rpc::SessionTable<ServedClient> clients_;
  std::uint64_t executed_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace perdura::systems::octopus
