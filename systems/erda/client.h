// Erda's client (Liu et al., sections 3.3, 4.2, 4.3 and 4.4).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "methods/durable_write.h"
#include "platform/fabric/fabric.h"
#include "rpc/calls.h"
#include "rpc/notices.h"
#include "rpc/receive_buffers.h"
#include "services/kv/kv.h"
#include "systems/erda/layout.h"
#include "systems/erda/protocol.h"

namespace perdura::systems::erda {

class ErdaSession final : public kv::KvSession {
 public:
  ~ErdaSession() override { connection_->queue_pair = nullptr; }
  static Task<std::unique_ptr<kv::KvSession>> connect(Thread& thread, fabric::Address server,
                                                      kv::KvConfig config);

  Task<kv::Result<Bytes>> get(kv::Key key, std::span<std::byte> into) override;
  Task<kv::Result<void>> put(kv::Key key, kv::Value value) override;
  Task<kv::Result<void>> erase(kv::Key key) override;
  kv::SessionCounts counts() const override { return counts_; }

 private:
  // The state of an operation, in addition to its call (rpc/calls.h); the lane has the call's
  // number.
  struct Lane {
    std::uint32_t id = 0;
    std::uint16_t sequence = 0;  // sequence number of the lane's last request
    std::span<std::byte> into;   // where a get by SEND puts the value, if it fits
  };

  // The client's knowledge of a head (section 3.3: the head array), and how it may access it at
  // present.
  struct Head {
    bool known = false;
    HeadAccess access;
    // Regions of the chain that the head points to; 0: unknown yet.
    std::vector<std::uint64_t> links;
    std::uint32_t one_sided = 0;  // operations in flight that access the head one-sidedly
    bool owes_acknowledgment = false;
  };
  class OneSided;

  // Shared by the session and its background tasks, which may outlive the session.
  struct Connection {
    std::unique_ptr<pmem::Region> memory;
    fabric::MemoryRegion registered;
    rpc::ReceiveBuffers messages;
    fabric::CompletionQueue completions;
    fabric::QueuePair* queue_pair = nullptr;  // the session's; null once the session is gone
    rpc::Calls<Message> calls;
    std::vector<Lane> lanes = std::vector<Lane>(kLanes);
    std::vector<Head> heads;    // by number - 1
    Bytes acknowledgments = 0;  // offset in memory of one acknowledgment for each head

    // For rpc::receive_always().
    Message message_of(const fabric::ReceiveCompletion& received) const;
    static bool is_notice(const Message& message) { return message.kind == MessageKind::notice; }
    void take_notice(const Message& notice);
    void take_reply(const Message& reply, const fabric::ReceiveCompletion& received);
    void ended() { calls.fail(); }

    void take_access(std::uint8_t head, HeadAccess access);
    void acknowledge_if_idle(std::uint8_t head);
  };

  ErdaSession(Thread& thread, const kv::KvConfig& config);
  ErdaSession(const ErdaSession&) = delete;
  ErdaSession& operator=(const ErdaSession&) = delete;
  Task<> open(fabric::Address server);

  // The one-sided path (section 3.3).
  Task<kv::Result<Bytes>> get_one_sided(Lane& lane, hopscotch::StoredKey key,
                                        std::span<std::byte> into);
  Task<kv::Result<Outcome>> write_one_sided(Lane& lane, RequestKind kind, hopscotch::StoredKey key,
                                            Bytes size);
  Task<kv::Result<void>> persist_by_server(Lane& lane, Bytes size);
  Task<kv::Result<hopscotch::NeighborhoodEntry>> find_entry(Lane& lane, hopscotch::StoredKey key);
  Task<kv::Result<ObjectFormat::Object>> read_version(Lane& lane, std::uint8_t head,
                                                      Position position);
  struct ObjectLocation {
    Bytes offset = 0;  // bytes from the start of the pool
    std::uint32_t life = 0;
  };
  Task<kv::Result<ObjectLocation>> locate(Lane& lane, std::uint8_t head, Position position);
  Task<> report_incomplete(Lane& lane, hopscotch::StoredKey key, std::uint64_t word);
  // True if the server has displaced entries since, or is doing so.
  Task<kv::Result<bool>> displaced_since(Lane& lane, std::uint64_t before);
  Task<bool> read_displacements(Lane& lane);  // false: the connection broke

  fabric::RdmaOperation read(const fabric::LocalBuffer& into, fabric::RemoteAddress from) {
    ++counts_.one_sided_reads;
    return queue_pair_->read(into, from);
  }

  // The path by SEND, while the key's head is being cleaned (section 4.4).
  Task<kv::Result<Bytes>> get_by_send(Lane& lane, hopscotch::StoredKey key,
                                      std::span<std::byte> into);
  Task<kv::Result<void>> write_by_send(Lane& lane, RequestKind kind, hopscotch::StoredKey key,
                                       Bytes size);

  Task<kv::Result<void>> write_object(RequestKind kind, kv::Key key,
                                      std::optional<kv::Value> value);
  // Posts the request when called, not only when awaited. Returns nullopt if the connection broke
  // before the answer.
  Task<std::optional<Message>> answer_to(const Lane& lane, const fabric::WorkRequest& request);
  static kv::Error error_of(Outcome outcome);
  std::uint32_t client_id(const Lane& lane) const { return welcome_.session * kLanes + lane.id; }
  bool one_sided(std::uint8_t head) const {
    return connection_->heads[head - 1].access.one_sided();
  }

  // The buffers of a lane: one for the entry's neighborhood and one for the request, with the
  // object at a fixed distance after the request.
  fabric::LocalBuffer entry_buffer(const Lane& lane, std::uint32_t length) const;
  fabric::LocalBuffer request_buffer(const Lane& lane, std::uint32_t length) const;
  fabric::LocalBuffer object_buffer(const Lane& lane, Bytes length) const;
  Bytes lane_size() const { return entry_size_ + request_size_ + object_size_; }
  static std::uint32_t fill_request(const fabric::LocalBuffer& buffer, const RequestHeader& request,
                                    const hopscotch::StoredKey& key);
  static std::uint16_t next_sequence(Lane& lane) {
    return lane.sequence = static_cast<std::uint16_t>((lane.sequence + 1) % kSequences);
  }

  Thread& thread_;
  std::unique_ptr<PoolLayout> layout_;
  ObjectFormat format_;
  methods::DurableWrite durable_;
  Bytes request_size_ = 0;
  Bytes entry_size_ = 0;
  Bytes object_size_ = 0;
  Bytes first_lane_ = 0;  // offset in the session's memory
  Welcome welcome_;
  std::shared_ptr<Connection> connection_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
  std::uint64_t displacements_ = 0;  // the last displacement counter that was read
  kv::SessionCounts counts_;
};

}  // namespace perdura::systems::erda
