// Reports the events in the memory of a simulated node to the persistence model.
//
// The possible results of a power failure are determined by PersistenceState (pmem/model) alone,
// which knows no time. A journal turns the events of a simulation into calls of it, in the order of
// simulated time. A task runs ahead of the engine, so its actions are queued by the moment at which
// they happen, and reported when the engine's time has come there: a failure at a moment T finds
// nothing of what happens after T. Memory already holds what is queued; the model is told to expect
// it.
//
// Simulated time decides when something happens, never whether it is durable. Durability follows
// from what is known by then: a completion has left for the requester, who may act on it even if
// the responder fails meanwhile; the responder's CPU has taken a receive completion; a value has
// been read; a fence has ended. A message is reported line by line as it becomes visible; on `wsp`,
// as soon as it begins to arrive, since the device keeps what it has.
//
// If a CPU that runs ahead reads a line, the model assumes that it has seen what arrives on the
// line in the meantime, although its loads did not.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "platform/pmem/model/image_space.h"
#include "platform/pmem/model/persistence_state.h"
#include "platform/pmem/sim/timeline.h"
#include "platform/sim/kernel/engine.h"
#include "platform/sim/kernel/run_observer.h"

namespace perdura::pmem::sim {

// The state that the journals of a cluster share.
struct Durability {
  PersistenceModel model;
  // If list_crash_points is set: the crash points found so far, the times at which the set of
  // possible crash images changed.
  bool list_crash_points = false;
  std::set<Time> crash_points;
  perdura::sim::RunObserver* observer = nullptr;  // sees all reports to the journals; may be null
};

class Journal {
 public:
  using Writer = PersistenceState::Writer;  // a thread
  using RegionId = PersistenceState::RegionId;
  using ConnectionId = PersistenceState::ConnectionId;
  using Operation = PersistenceState::Operation;
  using RegionAddress = PersistenceState::RegionAddress;
  using Survivor = PersistenceState::Survivor;

  // `machine`: the node that identifies the journal to an observer.
  Journal(const perdura::sim::Engine& engine, Durability& durability, fabric::NodeId machine = 0)
      : engine_(engine), durability_(durability), machine_(machine), state_(durability.model) {}

  // Registers a persistent region, all of which is durable; its mapping lives as long as the power
  // is on. DRAM is not registered, since nothing of it survives.
  RegionId attach(Medium medium, std::shared_ptr<void> mapping, const std::byte* memory);

  // --- CPUs: line i of a range is stored at visible.of(i) --------------------------------------

  void store(Writer writer, RegionAddress place, std::span<const std::byte> bytes,
             LineTimes visible);
  void stream(Writer writer, RegionAddress place, std::span<const std::byte> bytes,
              LineTimes visible);
  void flush(Writer writer, RegionAddress place, Bytes length, Time at);
  void fence(Writer writer, Time at);
  void load(Writer writer, RegionAddress place, Bytes length, Time at);
  // The thread's process has died: its actions after `from` do not happen. hasten() makes the
  // actions before that happen at once, after all threads of the process have been withdrawn.
  void withdraw(Writer writer, Time from);
  void hasten(std::span<const Writer> writers);

  // --- devices ---------------------------------------------------------------------------------

  ConnectionId connect() { return state_.connect(); }
  // Makes a connection whose data is placed in caches, whatever the model's devices do.
  ConnectionId connect_through_caches() { return state_.connect(true); }
  Operation post(ConnectionId connection, RemoteKind kind, bool fenced);
  void place(Operation operation, RegionAddress place, std::span<const std::byte> bytes,
             LineTimes visible);
  // The data that a READ of this node has fetched becomes visible with its completion.
  void place_answer(RegionAddress place, std::span<const std::byte> bytes);
  // A FLUSH for persistence.
  void cover(Operation operation, RegionAddress place, Bytes length);
  // A READ looks at line i at seen.of(i).
  void read(RegionAddress place, Bytes length, LineTimes seen);
  // The completion, or the answer that leads to it, has left for the requester.
  void completed(Operation operation, Time sent);
  // The responder's CPU takes the receive completion.
  void received(Operation operation, Time at);
  // The responder's process is gone (docs/restart.md): its successor sees everything that was
  // placed.
  void ended(ConnectionId connection, Time at);

  // --- power failures --------------------------------------------------------------------------

  // Reports to the model everything that has happened up to the engine's time.
  void catch_up();
  // A crash image of a failure now; see PersistenceState.
  const std::vector<Survivor>& image(Choices& choices);
  // All crash images of a failure now.
  ImageSpace images();
  // Grows whenever the set of images may have changed.
  std::uint64_t changes();
  // The node has lost power: this journal no longer records anything, and a new one takes its
  // place.
  void power_off();
  bool powered() const { return powered_; }

  perdura::sim::RunObserver* observer() const { return durability_.observer; }
  fabric::NodeId machine() const { return machine_; }

  // Lines that the model keeps.
  std::size_t lines() const { return state_.lines(); }

 private:
  struct Fact {
    enum class Kind : std::uint8_t {
      store,
      stream,
      flush,
      fence,
      place,
      cover,
      seen,
      completed,
      received,
      ended
    };
    Kind kind = Kind::fence;
    Writer writer = nullptr;
    Operation operation{};
    RegionAddress place{};
    Bytes length = 0;
    std::array<std::byte, kCacheLine> bytes{};  // the line that a store, stream or place writes
  };

  void add(Time when, const Fact& fact);
  void observe_change(Time when, const Fact& fact) const;
  template <class TimeOfLine>
  void add_lines(const Fact& fact, std::span<const std::byte> bytes, const TimeOfLine& time_of);
  void tell(Time when, const Fact& fact);

  const perdura::sim::Engine& engine_;
  Durability& durability_;
  fabric::NodeId machine_;
  PersistenceState state_;
  std::vector<std::shared_ptr<void>> mappings_;
  std::multimap<Time, Fact> ahead_;  // those of equal times in the order added
  std::optional<ConnectionId> answers_;
  bool powered_ = true;
};

}  // namespace perdura::pmem::sim
