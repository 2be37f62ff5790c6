// A client thread of a key-value run: loads its share of the records, then performs operations with
// a number of lanes, each with one operation under way. In a closed loop a lane begins the next one
// when the last has ended; in an open loop operations are due at times that the seed alone decides,
// and one that finds all lanes busy waits, and begins late.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "bench/kv/crew.h"
#include "harness/results/measurement.h"
#include "harness/run/point.h"
#include "harness/workload/arrivals.h"
#include "harness/workload/generator.h"
#include "platform/runtime/sync.h"
#include "services/kv/kv.h"

namespace perdura::bench {

// A stretch of load. It ends with whatever comes first; operations under way are then awaited.
struct KvStretch {
  std::uint64_t operations = 0;  // of the client
  bool measured = false;         // what is not measured still counts if it goes wrong
  // Operations belong to it that begin, or of an open loop are due, within this time.
  Picoseconds duration = Picoseconds::max();
  const std::atomic<bool>* over = nullptr;  // set by any thread; only for what is not measured
  // How long before an operation of an open loop is due the client stops to sleep, since being
  // woken up takes time. On `sim` it takes none.
  Picoseconds awake_before_due{};
  Crew* crew = nullptr;  // of what is measured: the clients that are at work together
};

// What a client writes for each operation shares no cache line with what other threads use: clients
// must not slow each other down by being measured.
class alignas(kCacheLine) KvClient {
 public:
  // `stop` is shared by the clients of the process: set when going on makes no sense.
  KvClient(const harness::Point& point, std::uint32_t index, std::atomic<bool>& stop);

  // The client's share of the records.
  Task<> load(systems::KvSession& session);
  // The next operations of its sequence.
  Task<> run(systems::KvSession& session, KvStretch stretch);

  // Something outside the operations went wrong, such as connecting.
  void give_up(std::exception_ptr problem);

  // The method of remote persistence that the client's puts take.
  void note_method(std::string name) { measurement_.method = std::move(name); }

  // Of the measured operations.
  Time first_start() const { return first_start_; }
  Time last_end() const { return last_end_; }
  // Of an open loop.
  Time first_due() const { return first_due_; }
  Time last_due() const { return last_due_; }
  // For other threads: operations that were not measured and have ended, and whether such a stretch
  // has.
  std::uint64_t warm_up_operations() const { return warm_up_operations_; }
  bool warmed_up() const { return warmed_up_; }
  // Operations, torn reads and verdict; times of day and costs are the run's.
  const harness::Measurement& measurement() const { return measurement_; }
  // Measured ones that ended while the whole crew was at work.
  std::uint64_t operations_at_work() const { return operations_at_work_; }
  bool measured_any() const { return first_start_ != Time::max(); }

 private:
  enum class Outcome : std::uint8_t { success, not_found, error, wrong_value };
  struct Lane {
    Lane(Bytes key_size, Bytes max_value_size);
    std::span<std::byte> key;
    std::span<std::byte> written;
    std::span<std::byte> read;

   private:
    struct alignas(kCacheLine) Line {
      std::array<std::byte, kCacheLine> bytes;
    };
    std::vector<Line> lines_;  // that the three are in
  };
  struct Done {
    Outcome outcome = Outcome::success;
    systems::Error error{};
    Bytes length = 0;  // of a value read
    bool read = false;
  };

  struct Times {
    Time due;  // of an open loop
    Time start;
    Time end;
  };

  bool may_go_on();
  Task<> run_lane(systems::KvSession& session, Lane& lane);
  void prepare(Lane& lane, const workload::Operation& operation) const;
  static Done ended(systems::Error error);
  // Verifies what was read, and records the operation.
  void finish(Done done, const Lane& lane, const workload::Operation& operation, Times times);
  Done verified(Done done, const Lane& lane, std::uint64_t key_number) const;
  void judge(const Done& done, const workload::Operation& operation);
  void invalidate(harness::Verdict verdict, const std::string& why);

  const harness::Point& point_;
  const workload::WorkloadSpec& spec_;
  std::uint32_t index_;
  std::atomic<bool>& stop_;
  std::uint32_t clients_;  // of the point
  bool open_loop_;
  bool until_full_;
  workload::KeyFormat key_format_;
  workload::LoadGenerator loader_;
  workload::OperationGenerator generator_;
  std::deque<Lane> lanes_;
  std::size_t lanes_at_work_ = 0;
  WaitList lanes_ended_;

  std::uint64_t remaining_ = 0;
  bool measuring_ = false;
  Crew* crew_ = nullptr;
  std::uint64_t operations_at_work_ = 0;
  const std::atomic<bool>* over_ = nullptr;
  Time deadline_{};
  std::optional<workload::Arrivals> arrivals_;  // of an open loop
  std::uint32_t stretches_ = 0;
  Time begin_{};
  Picoseconds awake_before_due_{};
  std::atomic<std::uint64_t> warm_up_operations_{0};
  std::atomic<bool> warmed_up_{false};
  Time first_start_ = Time::max();
  Time last_end_{};
  Time first_due_ = Time::max();
  Time last_due_{};
  harness::Measurement measurement_;
  std::array<harness::KindMeasurement*, workload::kOperationKinds> kinds_{};  // in measurement_
};

}  // namespace perdura::bench
