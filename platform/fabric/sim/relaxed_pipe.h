// One direction of a connection in a simulation in which time decides nothing (SimPlatform::relax):
// the operations that an end has posted, each divided into the memory accesses that the two devices
// make for it, and the rules for the order of these accesses.
//
//   WRITE, SEND   fetch (local memory is read), place (remote memory is written); then a message is
//                 reported
//   READ          sample (remote memory is read), return (local memory is written)
//   atomics       sample, place; between the two no other atomic of the device
//   FLUSH         has no accesses, only its place in the order
//
// All complete, in the order posted. Data is handled in parts: single cache lines, or several lines
// for large operations, so that none has more than kMostParts. The parts of an operation come in
// any order. Operations of different connections are not ordered with each other. Which operation
// may overtake which at the responder is in fabric/order/ordering.h; docs/memory-model.md has all
// rules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform/fabric/fabric.h"

namespace perdura::fabric::sim {

class End;
struct Flight;
class RelaxedPipe;

// A possible next step of a device.
struct RelaxedStep {
  enum class Kind : std::uint8_t { fetch, place, sample, put_back, report, complete };

  RelaxedPipe* pipe = nullptr;
  std::uint32_t operation = 0;  // its place in the pipe
  std::uint32_t part = 0;
  Kind kind = Kind::complete;

  void take() const;
};

class RelaxedPipe {
 public:
  static constexpr std::uint32_t kMostParts = 8;

  explicit RelaxedPipe(End& end) : end_(end) {}
  ~RelaxedPipe();
  RelaxedPipe(const RelaxedPipe&) = delete;
  RelaxedPipe& operator=(const RelaxedPipe&) = delete;

  // The thread's CPU posts an operation through its store buffer, after its earlier stores.
  void post(Flight& flight);
  void list(std::vector<RelaxedStep>& steps);
  void take(const RelaxedStep& step);

  // The end has an error or is closed: drops everything that has not left it.
  void flush();
  // The responder's end has an error or is about to go: its device finishes what it has begun, and
  // nothing else takes effect.
  void finish();

  void append_state(std::string& state) const;

 private:
  // Sets of parts are bit masks.
  using Parts = std::uint32_t;
  struct Posted {
    Flight* flight = nullptr;
    std::uint32_t number = 0;  // how many were posted before it
    std::uint32_t parts = 1;
    Bytes part = 0;  // bytes of each part but the last
    Parts fetched = 0;
    Parts placed = 0;
    Parts sampled = 0;
    Parts put_back = 0;
    bool admitted = false;  // the responder has found the memory, or a receive buffer
    bool reported = false;
    bool completed = false;
    LocalPieces buffer{};  // the receive buffer of a message
    std::uint64_t buffer_id = 0;
    bool needs_report = false;
    Parts all() const { return (Parts{1} << parts) - 1; }
  };
  struct Earlier;

  void enter(Flight& flight);
  void list_posted(const Posted& posted, std::uint32_t at, const Earlier& earlier,
                   std::vector<RelaxedStep>& steps) const;
  void list_read(const Posted& posted, std::uint32_t at, const Earlier& earlier,
                 std::vector<RelaxedStep>& steps) const;
  void list_non_posted(const Posted& posted, std::uint32_t at, const Earlier& earlier,
                       std::vector<RelaxedStep>& steps) const;
  bool admissible(const Posted& posted) const;
  void admit(Posted& posted);
  void refuse(Posted& posted, Status status) const;
  void fetch(Posted& posted, std::uint32_t part) const;
  void place(Posted& posted, std::uint32_t part);
  void sample(Posted& posted, std::uint32_t part);
  void put_back(Posted& posted, std::uint32_t part) const;
  void report(Posted& posted) const;
  void complete(Posted& posted) const;
  static bool done(const Posted& posted);
  static bool effective(const Posted& posted);
  void forget_done();

  End& end_;
  std::vector<Posted> posted_;  // in order, without those that are done
  std::uint32_t count_ = 0;     // posted so far
};

}  // namespace perdura::fabric::sim
