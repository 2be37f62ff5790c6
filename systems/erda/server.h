// Erda's server (Liu et al., sections 3.3, 4.1, 4.2 and 4.4). It updates metadata and allocates log
// space; normally it neither reads nor copies the objects that clients write.
//
// The paper leaves one case open (docs/systems/erda.md): while the newest version of a key is still
// being written, a second update would make the incomplete version the previous one, and the last
// complete version would be lost. So the server keeps track of the writes in flight and makes a
// second writer of the same key wait until the first has finished or has disconnected. For the same
// reason it acts on a report of an incomplete object only if the object's writer is gone.
//
// server.cc    sessions, and requests of the normal phase
// cleaning.cc  requests by SEND; when a head is cleaned, and how clients learn of it
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "platform/fabric/fabric.h"
#include "rpc/notices.h"
#include "rpc/receive_buffers.h"
#include "rpc/sessions.h"
#include "services/kv/kv.h"
#include "systems/erda/cleaner.h"
#include "systems/erda/protocol.h"
#include "systems/erda/store.h"

namespace perdura::systems::erda {

class ErdaPartition final : public kv::KvPartition {
 public:
  // Creates the pool, or opens and recovers it. Throws UsageError if it is damaged or has another
  // shape.
  ErdaPartition(Thread& thread, std::string pool_name, const kv::KvConfig& config);

  Task<> serve() override;
  Task<> settle() override { co_return; }  // nothing is deferred
  kv::KvSpace space() const override { return store_.space().gauge(); }
  std::vector<std::uint64_t> events() const override;
  std::string audit() override { return store_.audit(); }

 private:
  // A version that a client has been told to write, and whose write may not have finished as far as
  // the server knows.
  struct Reservation {
    std::vector<std::byte> key;  // the key as the entry stores it
    std::uint8_t format = 0;
    std::uint8_t head = 0;
    Position position;
  };
  struct ServerSession {
    std::uint32_t number = 0;
    std::uint64_t generation = 0;  // generation of the connection, since session numbers are reused
    std::unique_ptr<fabric::QueuePair> queue_pair;
    std::vector<std::optional<Reservation>> lanes{kLanes};
    // The sequence number of each lane's last request.
    std::array<std::optional<std::uint16_t>, kLanes> last_sequence{};
    bool is_free() const { return queue_pair == nullptr; }
  };
  // The last announcement to the clients of a head, and the sessions that have not acknowledged it.
  struct HeadCleaning {
    HeadAccess access;
    std::vector<bool> waiting_for;  // by session number
    std::size_t sessions_waited_for = 0;
    WaitList all_acknowledged;
  };
  // A received request with everything that it refers to.
  struct Request {
    std::uint32_t client = 0;
    RequestHeader header;
    hopscotch::StoredKey key;
    std::span<std::byte> object;
  };
  enum class Progress : std::uint8_t { done, newest_is_being_written, waits_for_space };

  // --- server.cc
  void accept(fabric::ConnectionRequest& request);
  void take_request(const fabric::ReceiveCompletion& message);
  static hopscotch::StoredKey stored_key(std::uint8_t format, std::span<const std::byte> stored);
  Request parse(std::span<std::byte> bytes) const;
  // Retries a request that has to wait. `bytes` is a copy of the request. Gives up if the session
  // ends, which changes its generation.
  Task<> retry(std::uint32_t client, std::uint64_t generation, std::vector<std::byte> bytes,
               bool by_send, Progress progress, std::uint64_t cleanings_before);
  Progress begin_write(const Request& request);
  void persist(const Reservation& written, const Request& request);
  bool newest_is_being_written(const hopscotch::StoredKey& key,
                               std::optional<hopscotch::TableEntry>& entry);
  void take_report(const Request& request);
  void end_reservations(ServerSession& session, std::optional<std::uint8_t> head);
  void end_session(fabric::QueuePair& queue_pair);
  void answer(const Request& request, Message message, std::span<const std::byte> value = {});
  bool being_written(std::uint8_t head, Position position) const {
    return writing_.contains(log_position(head, position));
  }
  static std::uint64_t log_position(std::uint8_t head, Position position) {
    return std::uint64_t{head} << 32 | position.units;
  }
  ServerSession& session_of(const fabric::QueuePair& queue_pair) {
    return *sessions_.of(&queue_pair);
  }
  ServerSession& session_of(std::uint32_t client) { return sessions_[client / kLanes]; }

  // --- cleaning.cc
  Progress serve_by_send(const Request& request) {
    return request.header.kind == RequestKind::get ? read(request) : write(request);
  }
  Progress write(const Request& request);
  Progress read(const Request& request);
  void acknowledge(ServerSession& session, const RequestHeader& header);
  void acknowledged(std::uint32_t session, std::uint8_t head);
  bool announced(std::uint8_t head) const { return !cleanings_[head - 1].access.one_sided(); }
  // True if waiting may help a request for which there was no space.
  bool reclaim(std::uint8_t head);
  void clean_if_due(std::uint8_t head);
  bool start_cleaning(std::uint8_t head);
  Task<> clean(std::uint8_t head);
  void announce(std::uint8_t head);
  Task<> end_slow_sessions(std::uint8_t head, std::uint32_t generation);
  void notify_all(std::uint8_t head);

  Thread& thread_;
  kv::KvConfig config_;
  std::unique_ptr<pmem::Region> control_;  // the control region (protocol.h)
  Store store_;
  Bytes request_size_;  // size of a receive buffer
  Bytes message_size_;  // size of a message to a client, including the largest value
  std::uint32_t receive_depth_;
  // Receive buffers, followed by one reply per lane, and two notices per session and head.
  std::unique_ptr<pmem::Region> buffers_;
  fabric::MemoryRegion pool_memory_;
  fabric::MemoryRegion control_memory_;
  fabric::MemoryRegion buffer_memory_;
  rpc::ReceiveBuffers requests_;
  rpc::NoticeBuffers<Message> notices_;  // per head: for a cleaning's beginning, and for its end
  fabric::CompletionQueue completions_;
  rpc::SessionTable<ServerSession> sessions_;
  std::unordered_set<std::uint64_t> writing_;  // positions of all reservations
  std::vector<std::byte> request_;             // buffer of the request being served
  Scratch object_;                             // buffer of the version being examined
  std::vector<HeadCleaning> cleanings_;        // by head - 1
  std::uint64_t cleanings_ended_ = 0;
  WaitList cleaning_ended_;
  bool clean_always_;
  Picoseconds client_timeout_;
  Cleaner cleaner_;
  // Declared last, so that it ends before the members that it uses are destroyed.
  std::unique_ptr<BackgroundThread> cleaner_thread_;
};

}  // namespace perdura::systems::erda
