// The server of Read After Write, which allocates the slots of the ring buffer and polls them.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "systems/write_ahead/server.h"

namespace perdura::systems::read_after_write {

inline constexpr std::string_view kName = "read-after-write";
inline constexpr std::uint64_t kLeastLogSlots = 2;

class RingServer final : public write_ahead::Server {
 public:
  RingServer(Thread& thread, const std::string& name, const kv::KvConfig& config);

  Task<> serve() override;
  Task<> settle() override;

 private:
  using ServerSession = write_ahead::ServerSession;

  // A request that cannot be served yet, because the ring is full or because it must wait for a
  // record. Later requests of the same kinds queue after it.
  struct Waiting {
    std::uint32_t session;
    write_ahead::Request header;
    std::vector<std::byte> key;
  };

  void reserve_requested(ServerSession& session, const Incoming& request) override;
  void persist_requested(ServerSession& session, const Incoming& request) override;
  void erase_requested(ServerSession& session, const Incoming& request) override;
  void record_arrived(ServerSession& session, const fabric::ReceiveCompletion& completion) override;
  void session_ended(ServerSession& session) override;
  std::optional<fabric::QueuePairOptions> log_options() override { return std::nullopt; }
  write_ahead::Welcome welcome() const override;

  void wait_in_line(ServerSession& session, const Incoming& request);
  void serve_waiting();
  // Returns false if the request has to wait.
  bool reserve(ServerSession& session, const Incoming& request);
  bool erase(ServerSession& session, const Incoming& request);

  // How the poller checks whether a record has arrived: by the first word of its slot, or by the
  // whole checksum.
  enum class Look : std::uint8_t { glance, thorough };
  bool apply_next(Look look);
  static Task<> poll_ring(std::shared_ptr<RingServer> self);

  fabric::MemoryRegion log_memory_;
  std::deque<Waiting> waiting_;
  WaitList reserved_;  // the poller waits here while no slot is allocated
};

}  // namespace perdura::systems::read_after_write
