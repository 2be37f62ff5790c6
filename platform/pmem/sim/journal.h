// Tells the persistence model what happens to the memory of a simulated node.
//
// What a power failure may leave is decided by PersistenceState (pmem/model) alone, which knows no
// time. A journal turns what happens on `sim` into calls of it, in the order of simulated time. A
// task runs ahead of the engine, so what it does is queued, by the moment at which it happens, and
// told when the engine's time has come there: a failure at a moment T finds nothing of what lies
// behind T. Memory already holds what is queued; the model is told to expect it.
//
// Simulated time decides when something happens, never whether it is durable. That follows from
// what has become known by then: a completion has left for the requester, who may act on it even if
// the responder fails meanwhile; the responder's CPU has taken a receive completion; somebody has
// read a value; a fence has ended. A message is told line by line as it becomes visible, on `wsp`
// as soon as it begins to arrive, for there the device keeps what it has.
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
  // If list_moments is set: the crash points found so far, the times at which the set of possible
  // crash images changed.
  bool list_moments = false;
  std::set<Time> moments;
  perdura::sim::RunObserver* observer = nullptr;  // of all that is told to the journals, if any
};

class Journal {
 public:
  using Writer = PersistenceState::Writer;  // a thread
  using RegionId = PersistenceState::RegionId;
  using ConnectionId = PersistenceState::ConnectionId;
  using Operation = PersistenceState::Operation;
  using Place = PersistenceState::Place;
  using Survivor = PersistenceState::Survivor;

  // `machine` is the node by which an observer knows the journal.
  Journal(const perdura::sim::Engine& engine, Durability& durability, fabric::NodeId machine = 0)
      : engine_(engine), durability_(durability), machine_(machine), state_(durability.model) {}

  // A persistent region, all of it durable; its mapping lives as long as the power is on. DRAM is
  // not told of, since nothing of it survives.
  RegionId attach(Medium medium, std::shared_ptr<void> mapping, const std::byte* memory);

  // --- CPUs: line i of a range is stored at visible.of(i) --------------------------------------

  void store(Writer writer, Place place, std::span<const std::byte> bytes, LineTimes visible);
  void stream(Writer writer, Place place, std::span<const std::byte> bytes, LineTimes visible);
  void flush(Writer writer, Place place, Bytes length, Time at);
  void fence(Writer writer, Time at);
  void load(Writer writer, Place place, Bytes length, Time at);
  // The thread's process has died: what it would have done after `from` does not happen. What it
  // would have done before happens at once, if all threads of the process have been withdrawn.
  void withdraw(Writer writer, Time from);
  void hasten(std::span<const Writer> writers);

  // --- devices ---------------------------------------------------------------------------------

  ConnectionId connect() { return state_.connect(); }
  // Of a connection whose data is placed in caches, whatever the model says of devices.
  ConnectionId connect_through_caches() { return state_.connect(true); }
  Operation post(ConnectionId connection, RemoteKind kind, bool fenced);
  void place(Operation operation, Place place, std::span<const std::byte> bytes, LineTimes visible);
  // The data that a READ of this node has fetched becomes visible with its completion.
  void place_answer(Place place, std::span<const std::byte> bytes);
  // A FLUSH for persistence.
  void cover(Operation operation, Place place, Bytes length);
  // A READ looks at line i at seen.of(i).
  void read(Place place, Bytes length, LineTimes seen);
  // The completion, or what it will be made of, has left for the requester.
  void completed(Operation operation, Time sent);
  // The responder's CPU takes the receive completion.
  void received(Operation operation, Time at);
  // The responder's process is gone (docs/restart.md): its successor sees all that was placed.
  void ended(ConnectionId connection, Time at);

  // --- power failures --------------------------------------------------------------------------

  // Tells the model everything that has happened up to the engine's time.
  void catch_up();
  // A crash image of a failure at this moment; see PersistenceState.
  const std::vector<Survivor>& image(Choices& choices);
  // All of them.
  ImageSpace images();
  // Grows whenever the set of images may have changed.
  std::uint64_t changes();
  // The node has lost power: this journal records nothing any more, and a new one takes its place.
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
    Place place{};
    Bytes length = 0;
    std::array<std::byte, kCacheLine> bytes{};  // of a store, stream or place, which is of one line
  };

  void add(Time when, const Fact& fact);
  void observe_change(Time when, const Fact& fact) const;
  template <class Moment>
  void add_lines(const Fact& fact, std::span<const std::byte> bytes, const Moment& moment);
  void tell(Time when, const Fact& fact);

  const perdura::sim::Engine& engine_;
  Durability& durability_;
  fabric::NodeId machine_;
  PersistenceState state_;
  std::vector<std::shared_ptr<void>> mappings_;
  std::multimap<Time, Fact> ahead_;  // of equal moments in the order added
  std::optional<ConnectionId> answers_;
  bool powered_ = true;
};

}  // namespace perdura::pmem::sim
