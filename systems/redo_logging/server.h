// The server of Redo Logging. The slots of the log are the receive buffers of one receive queue
// that all sessions share. So records land in the log in the order of their arrival, and the
// server's CPU finds them there.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "systems/write_ahead/server.h"

namespace perdura::systems::redo_logging {

inline constexpr std::string_view kName = "redo-logging";

// At least half of the log is always posted, and all sessions together never have more SENDs in
// flight than that half has slots. So the receive queue never runs empty, and no record is refused
// twice because of its lap.
constexpr std::uint64_t least_log_slots(std::uint32_t sessions) {
  return 2 * std::uint64_t{sessions};
}

class RedoServer final : public write_ahead::Server {
 public:
  RedoServer(Thread& thread, const std::string& name, const kv::KvConfig& config);
  ~RedoServer() override;

  Task<> serve() override;
  Task<> settle() override;

 private:
  using Position = write_ahead::Position;
  using ServerSession = write_ahead::ServerSession;

  // The state of the receive buffer that is a slot of the log. If a sender dies, a buffer that its
  // message had taken may return to the receive queue out of order. It is then a stray: any message
  // that lands in it is refused, and the log skips its slot until the buffer can be posted in order
  // again.
  struct Slot {
    bool posted = false;   // it is in the receive queue
    bool stray = false;    // posted out of order
    bool passed = false;   // the current position of this slot has no buffer
    bool arrived = false;  // a message has landed and waits for its turn
    std::uint32_t session = 0;
    std::uint64_t epoch = 0;
    std::uint32_t length = 0;
  };

  void reserve_requested(ServerSession& session, const Incoming& request) override;
  void persist_requested(ServerSession& session, const Incoming& request) override {
    reserve_requested(session, request);
  }
  void erase_requested(ServerSession& session, const Incoming& request) override;
  void record_arrived(ServerSession& session, const fabric::ReceiveCompletion& completion) override;
  void session_ended(ServerSession& session) override;
  std::optional<fabric::QueuePairOptions> log_options() override;
  write_ahead::Welcome welcome() const override;

  void take_arrived();
  void take(const Slot& message);
  write_ahead::ReplyStatus admit(Position p, const Slot& message);
  void refuse_stray(Slot& slot, Position p);
  void answer(const Slot& message, write_ahead::ReplyStatus status);
  void keep_slots_posted();
  Position position_of(std::uint64_t slot) const;
  std::uint32_t window() const;

  fabric::MemoryRegion log_memory_;
  std::unique_ptr<pmem::Region> answers_;  // as many for each session as its window allows
  fabric::MemoryRegion answer_memory_;
  std::vector<std::uint64_t> answered_;
  std::unique_ptr<fabric::ReceiveQueue> log_queue_;
  std::vector<Slot> slots_;
  bool flushes_records_;         // true: it flushes records before it acknowledges them
  Position posted_end_;          // end of the positions that have been posted
  Position perhaps_lost_until_;  // before this position a broken connection may have taken slots
  std::uint64_t arrived_ = 0;    // messages that wait for their turn
};

}  // namespace perdura::systems::redo_logging
