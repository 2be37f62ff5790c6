// Erda's server (Liu et al., sections 3.3, 4.1 and 4.2): it changes metadata and hands out log
// space; it neither sees nor copies the objects that clients write.
//
// What the paper leaves open, and docs/systems/erda.md explains: while the newest version of a key
// is still being written, a second update would push the incomplete version into the place of the
// previous one, and the last complete version would be lost. So the server remembers the writes
// under way and lets a second writer of the same key wait until the first has finished or is gone.
// And a report of an incomplete object is acted upon only if its writer is gone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "platform/fabric/fabric.h"
#include "systems/erda/layout.h"
#include "systems/erda/log.h"
#include "systems/erda/protocol.h"
#include "systems/hopscotch/table.h"
#include "systems/kv.h"

namespace perdura::systems::erda {

class ErdaPartition final : public KvPartition {
 public:
  // Creates the pool, or opens and recovers it. Throws UsageError if it is damaged or of another
  // shape.
  ErdaPartition(Thread& thread, std::string pool_name, const KvConfig& config);

  Task<> serve() override;
  Task<> settle() override { co_return; }  // nothing is deferred

 private:
  // A version that a client was told to write, until it is known to have finished.
  struct Reservation {
    std::vector<std::byte> key;  // as stored in the entry
    std::uint8_t format = 0;
    std::uint8_t head = 0;
    Position position;
  };
  struct Session {
    std::uint32_t id = 0;
    std::uint64_t generation = 0;  // of the connection; ids are used again
    std::unique_ptr<fabric::QueuePair> queue_pair;
    std::vector<std::optional<Reservation>> lanes{kLanes};
  };

  // Opening.
  static std::unique_ptr<pmem::Region> open_pool(Thread& thread, const std::string& name,
                                                 const Superblock& shape);
  void recover();

  // Serving.
  Task<> accept_sessions();
  void take_request(const fabric::ReceiveCompletion& message);
  Task<> write_when_free(std::uint32_t client, RequestHeader request, std::vector<std::byte> key);
  bool write_now(std::uint32_t client, const RequestHeader& request,
                 const hopscotch::StoredKey& key);
  Outcome begin_version(const RequestHeader& request, const hopscotch::StoredKey& key,
                        const std::optional<hopscotch::Entry>& entry, Reservation& reservation);
  void take_report(const RequestHeader& request, const hopscotch::StoredKey& key);
  void end_session(fabric::QueuePair& queue_pair);
  void answer(std::uint32_t client, Outcome outcome, Bytes object_offset);

  // Versions.
  bool may_be_incomplete(std::uint8_t head, Position position) const;
  bool is_whole(std::uint8_t head, Position position);
  std::optional<ObjectFormat::Object> read_version(std::uint8_t head, Position position);
  void restore(const hopscotch::Entry& entry);
  bool being_written(std::uint8_t head, Position position) const {
    return writing_.contains(place(head, position));
  }
  static std::uint64_t place(std::uint8_t head, Position position) {
    return std::uint64_t{head} << 32 | position.units;
  }

  std::uint8_t head_of(const hopscotch::StoredKey& key) const;
  Session& session_of(std::uint32_t client) { return sessions_[client / kLanes]; }

  Thread& thread_;
  PoolLayout layout_;
  ObjectFormat format_;
  std::unique_ptr<pmem::Region> pool_;
  std::unique_ptr<pmem::Region> control_;  // see protocol.h
  std::unique_ptr<pmem::Region> buffers_;  // receive buffers, then one reply a lane
  hopscotch::Table table_;
  Log log_;
  fabric::MemoryRegion pool_memory_;
  fabric::MemoryRegion control_memory_;
  fabric::MemoryRegion buffer_memory_;
  std::unique_ptr<fabric::ReceiveQueue> receive_queue_;
  fabric::CompletionQueue completions_;
  std::vector<Session> sessions_;
  std::unordered_set<std::uint64_t> writing_;  // places of all reservations
  // Versions before this position of a head were written before the server last started and have
  // not been checked since.
  std::vector<Position> unchecked_before_;
  std::vector<std::byte> request_;  // scratch: the request being looked at
  std::vector<std::byte> object_;   // scratch: the version being looked at
};

}  // namespace perdura::systems::erda
