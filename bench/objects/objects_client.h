// A client of one shard: it has an open pool, loads its records, and performs operations on them in
// a closed loop, `queue_depth` of them at a time. What it gets is verified, outside of the time
// that an operation takes.
#pragma once

#include <array>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "bench/driver/crew.h"
#include "bench/objects/objects_workload.h"
#include "harness/results/measurement.h"
#include "harness/run/point.h"
#include "platform/runtime/sync.h"
#include "services/kv/key_format.h"
#include "services/objects/objects.h"

namespace perdura::bench {

class ObjectsClient {
 public:
  // `index`: among the clients of all shards. The point outlives this object.
  ObjectsClient(const harness::Point& point, std::uint32_t index);

  // To the shard at this address. Throws PlatformError if that fails.
  Task<> connect(Thread& thread, const objects::System& system, fabric::Address shard);
  Task<> load();
  // Returns when so many operations have ended, or one has failed. `crew`: they are measured.
  Task<> run(std::uint64_t operations, Crew* crew);
  // On its thread, which the session belongs to.
  void disconnect();
  void note_problem(std::exception_ptr problem);

  const harness::Measurement& measurement() const { return measurement_; }
  Time first_start() const { return first_start_; }  // when the first measured operation began
  Time last_end() const { return last_end_; }
  std::uint64_t operations_at_work() const { return operations_at_work_; }

 private:
  // The buffers of one operation at a time.
  struct Lane {
    std::vector<std::byte> key;
    std::vector<std::byte> value;       // to be put, or expected
    std::vector<std::byte> received;    // the result of a get
    objects::DirectBuffer direct;       // buffer for a whole value
    std::span<std::byte> direct_bytes;  // likewise
  };

  Task<> run_lane(Lane& lane);
  // Makes key and value of an operation.
  void prepare(Lane& lane, const ObjectWorkload::Step& step);
  // Returns the length of what was got, else 0.
  Task<objects::Result<Bytes>> perform(Lane& lane, ObjectWorkload::Step step);
  Task<objects::Result<void>> load(Lane& lane, std::uint64_t record);
  bool is_right(const Lane& lane, const ObjectWorkload::Step& step, Bytes length) const;
  void finish(const Lane& lane, const ObjectWorkload::Step& step,
              const objects::Result<Bytes>& done, Time start, Time end);
  void judge(harness::Verdict verdict, const std::string& what);

  const harness::Point& point_;
  std::uint32_t index_;
  Bytes part_size_;
  ObjectWorkload workload_;
  kv::KeyFormat keys_;
  std::vector<std::byte> request_;
  std::uint64_t version_ = 0;  // the version of the last value that this client has put
  std::deque<Lane> lanes_;

  std::unique_ptr<pmem::Region> direct_memory_;
  std::unique_ptr<objects::Session> session_;
  std::unique_ptr<objects::Pool> pool_;

  std::uint64_t remaining_ = 0;
  Crew* crew_ = nullptr;
  std::size_t lanes_at_work_ = 0;
  WaitList lanes_ended_;
  Time begin_{};
  Time first_start_ = Time::max();
  Time last_end_ = Time::min();
  std::uint64_t operations_at_work_ = 0;
  harness::Measurement measurement_;
  // Pointers into measurement_; null for operations that the workload does not have.
  std::array<harness::KindMeasurement*, kObjectOperations> kinds_{};
};

}  // namespace perdura::bench
