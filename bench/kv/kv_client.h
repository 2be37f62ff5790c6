// A client thread of a key-value run. It loads its share of the records, then performs operations
// on a number of lanes; each lane has one operation in flight. In a closed loop a lane begins its
// next operation when the previous one has ended. In an open loop operations are due at times that
// the seed alone decides, and an operation that finds all lanes busy waits and begins late.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "bench/driver/crew.h"
#include "bench/ycsb/arrivals.h"
#include "bench/ycsb/generator.h"
#include "harness/results/measurement.h"
#include "harness/run/point.h"
#include "platform/runtime/sync.h"
#include "services/kv/kv.h"

namespace perdura::bench {

// A stretch of load. It ends when the first of its limits is reached; operations in flight are then
// awaited.
struct KvStretch {
  std::uint64_t operations = 0;  // per client
  bool measured = false;         // errors of unmeasured operations count, too
  // An operation belongs to the stretch if it begins (closed loop) or is due (open loop) within
  // this time from the stretch's start.
  Picoseconds duration = Picoseconds::max();
  // Ends the stretch when any thread sets it; only for unmeasured stretches.
  const std::atomic<bool>* over = nullptr;
  // Open loop: how long before an operation is due the client stops sleeping and polls, since a
  // wake-up takes time. On `sim` a wake-up of the client costs nothing.
  Picoseconds awake_before_due{};
  Crew* crew = nullptr;  // in a measured stretch, the clients that are at work together
};

// Aligned to avoid false sharing: what a client writes for each operation shares no cache line with
// the data of other threads, so that measuring does not make clients slow each other down.
class alignas(kCacheLine) KvClient {
 public:
  // `stop` is shared by the clients of the process and set when continuing would be pointless.
  KvClient(const harness::Point& point, std::uint32_t index, std::atomic<bool>& stop);

  // Loads the client's share of the records.
  Task<> load(kv::KvSession& session);
  // Performs the next operations of the client's sequence.
  Task<> run(kv::KvSession& session, KvStretch stretch);

  // Reports a failure outside of the operations, such as one of connecting.
  void give_up(std::exception_ptr problem);

  // Records the name of the remote-persistence method that the client's puts use.
  void note_method(std::string name) { measurement_.method = std::move(name); }

  // The time at which the first measured operation started.
  Time first_start() const { return first_start_; }
  Time last_end() const { return last_end_; }
  // The time at which the first measured operation was due; open loop only.
  Time first_due() const { return first_due_; }
  Time last_due() const { return last_due_; }
  // May be called by other threads: how many unmeasured operations have ended, and whether an
  // unmeasured stretch has ended.
  std::uint64_t warm_up_operations() const { return warm_up_operations_; }
  bool warmed_up() const { return warmed_up_; }
  // Operations, torn reads and verdict. The run fills in times of day and costs.
  const harness::Measurement& measurement() const { return measurement_; }
  // How many measured operations ended while the whole crew was at work.
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
    std::vector<Line> lines_;  // the cache lines that hold the three buffers
  };
  struct Done {
    Outcome outcome = Outcome::success;
    kv::Error error{};
    Bytes length = 0;  // length of the value that was read
    bool read = false;
  };

  struct Times {
    Time due;  // only set in an open loop
    Time start;
    Time end;
  };

  bool may_go_on();
  Task<> run_lane(kv::KvSession& session, Lane& lane);
  void prepare(Lane& lane, const ycsb::WorkloadOperation& operation) const;
  static Done ended(kv::Error error);
  // Verifies the value that was read and records the operation.
  void finish(Done done, const Lane& lane, const ycsb::WorkloadOperation& operation, Times times);
  Done verified(Done done, const Lane& lane, std::uint64_t key_number) const;
  void judge(const Done& done, const ycsb::WorkloadOperation& operation);
  void invalidate(harness::Verdict verdict, const std::string& why);

  const harness::Point& point_;
  const ycsb::WorkloadSpec& spec_;
  std::uint32_t index_;
  std::atomic<bool>& stop_;
  std::uint32_t clients_;  // number of clients of the point
  bool open_loop_;
  bool until_full_;
  kv::KeyFormat key_format_;
  ycsb::LoadGenerator loader_;
  ycsb::OperationGenerator generator_;
  std::deque<Lane> lanes_;
  std::size_t lanes_at_work_ = 0;
  WaitList lanes_ended_;

  std::uint64_t remaining_ = 0;
  bool measuring_ = false;
  Crew* crew_ = nullptr;
  std::uint64_t operations_at_work_ = 0;
  const std::atomic<bool>* over_ = nullptr;
  Time deadline_{};
  std::optional<ycsb::Arrivals> arrivals_;  // only in an open loop
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
  std::array<harness::KindMeasurement*, ycsb::kOperationKinds> kinds_{};  // within measurement_
};

}  // namespace perdura::bench
