#include "bench/objects/objects_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/driver/systems.h"
#include "bench/objects/objects_driver.h"
#include "harness/run/interrupt.h"
#include "services/kv/value.h"

namespace perdura::bench {

using harness::Verdict;

namespace {

// The version of the records that are loaded. Operations on parts of values find the rest of them.
constexpr std::uint64_t kLoadedVersion = 0;

template <class T>
objects::Result<Bytes> without_value(const objects::Result<T>& result) {
  if (!result) return tl::unexpected(result.error());
  return Bytes{0};
}

}  // namespace

ObjectsClient::ObjectsClient(const harness::Point& point, std::uint32_t index)
    : point_(point),
      index_(index),
      part_size_(point.settings.number("part_size")),
      workload_(point, index),
      keys_(point.settings.number("key_size"), "", kv::InsertOrder::hashed),
      request_(point.settings.number("request_size")) {
  const Bytes value_size = point.settings.number("value_size");
  const std::uint64_t queue_depth = point.settings.number("queue_depth");
  for (std::uint64_t i = 0; i < queue_depth; ++i) {
    Lane& lane = lanes_.emplace_back();
    lane.key.resize(keys_.size());
    lane.value.resize(value_size);
    lane.received.resize(value_size);
  }
  // Done in advance, so that nothing is allocated or looked up while measuring.
  for (std::size_t i = 0; i < kObjectOperations; ++i) {
    const auto operation = static_cast<ObjectOperation>(i);
    if (workload_.uses(operation)) kinds_[i] = &measurement_.kinds[kind_of(operation)];
  }
}

Task<> ObjectsClient::connect(Thread& thread, const objects::System& system,
                              fabric::Address shard) {
  session_ = co_await system.connect(thread, shard, shard_config(point_));
  if (moves_directly(point_.settings)) {
    const Bytes value_size = point_.settings.number("value_size");
    const Bytes stride = std::max(round_up(value_size, kCacheLine), kCacheLine);
    direct_memory_ = thread.node.create_region(fmt::format("direct-{}", index_),
                                               lanes_.size() * stride, pmem::Medium::dram);
    const auto memory = session_->register_direct_memory(*direct_memory_);
    if (!memory) co_return judge(Verdict::failed, "the memory for transfers is refused");
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i].direct = {*memory, i * stride, value_size};
      lanes_[i].direct_bytes = {direct_memory_->data() + i * stride, value_size};
    }
  }
  const bool shared = pool_is_shared(point_.settings);
  const std::string name = shared ? "pool" : fmt::format("pool-{}", index_);
  auto pool = co_await session_->create_pool(name, pool_size(point_), {});
  if (!pool) {
    co_return judge(Verdict::failed,
                    fmt::format("its pool cannot be created: {}", to_string(pool.error())));
  }
  pool_ = std::move(*pool);
}

Task<> ObjectsClient::load() {
  for (std::uint64_t i = 0; pool_ && i < workload_.own_records(); ++i) {
    if (harness::interrupted()) co_return;
    const auto loaded = co_await load(lanes_.front(), workload_.own_record(i));
    if (!loaded) {
      co_return judge(Verdict::failed, fmt::format("loading ended with '{}' after {} records",
                                                   to_string(loaded.error()), i));
    }
  }
}

Task<objects::Result<void>> ObjectsClient::load(Lane& lane, std::uint64_t record) {
  keys_.write(record, lane.key);
  kv::fill_value(lane.value, record, kLoadedVersion);
  if (!moves_directly(point_.settings)) co_return co_await pool_->put(lane.key, lane.value, {});
  std::copy(lane.value.begin(), lane.value.end(), lane.direct_bytes.begin());
  co_return co_await pool_->put_direct(lane.key, lane.direct, {});
}

Task<> ObjectsClient::run(std::uint64_t operations, Crew* crew) {
  begin_ = Executor::current().now();
  crew_ = crew;
  if (crew_ != nullptr) crew_->begin(begin_);
  const bool ready = pool_ && measurement_.verdict != Verdict::failed;
  remaining_ = ready ? operations : 0;
  lanes_at_work_ = lanes_.size();
  for (Lane& lane : lanes_) Executor::current().spawn(run_lane(lane));
  while (lanes_at_work_ > 0) co_await wait(lanes_ended_);
}

Task<> ObjectsClient::run_lane(Lane& lane) {
  Executor& executor = Executor::current();
  Time last_end = begin_;
  std::exception_ptr problem;
  try {
    while (remaining_ > 0) {
      if (harness::interrupted()) [[unlikely]] {
        measurement_.interrupted = true;
        break;
      }
      --remaining_;
      const ObjectWorkload::Step step = workload_.next();
      prepare(lane, step);
      const Time start = executor.begin();
      const auto done = co_await perform(lane, step);
      last_end = executor.now();
      finish(lane, step, done, start, last_end);
    }
  } catch (...) {
    problem = std::current_exception();
  }
  if (problem) note_problem(problem);
  if (crew_ != nullptr) crew_->end(last_end);
  if (--lanes_at_work_ == 0) lanes_ended_.wake_all();
}

void ObjectsClient::prepare(Lane& lane, const ObjectWorkload::Step& step) {
  keys_.write(step.record, lane.key);
  switch (step.operation) {
    case ObjectOperation::put:
    case ObjectOperation::invoke_put:
      kv::fill_value(lane.value, step.record, ++version_);
      return;
    case ObjectOperation::put_direct:
    case ObjectOperation::put_direct_offset:
      kv::fill_value(lane.direct_bytes, step.record, ++version_);
      return;
    case ObjectOperation::get_direct_offset:
      kv::fill_value(lane.value, step.record, kLoadedVersion);
      return;
    default:
      return;
  }
}

Task<objects::Result<Bytes>> ObjectsClient::perform(Lane& lane, ObjectWorkload::Step step) {
  objects::DirectBuffer part = lane.direct;
  part.offset += step.offset;
  part.length = part_size_;
  switch (step.operation) {
    case ObjectOperation::put:
      co_return without_value(co_await pool_->put(lane.key, lane.value, {}));
    case ObjectOperation::get:
      co_return co_await pool_->get(lane.key, lane.received);
    case ObjectOperation::erase:
      co_return without_value(co_await pool_->erase(lane.key));
    case ObjectOperation::put_direct:
      co_return without_value(co_await pool_->put_direct(lane.key, lane.direct, {}));
    case ObjectOperation::get_direct:
      co_return co_await pool_->get_direct(lane.key, lane.direct);
    case ObjectOperation::put_direct_offset:
      co_return without_value(co_await pool_->put_direct_offset(lane.key, step.offset, part));
    case ObjectOperation::get_direct_offset:
      co_return without_value(co_await pool_->get_direct_offset(lane.key, step.offset, part));
    case ObjectOperation::invoke:
      co_return without_value(co_await pool_->invoke(lane.key, request_, lane.value.size(), {}));
    case ObjectOperation::invoke_put:
      co_return without_value(
          co_await pool_->invoke_put(lane.key, request_, lane.value, lane.value.size(), {}));
  }
  co_return tl::unexpected(objects::Error::invalid);
}

bool ObjectsClient::is_right(const Lane& lane, const ObjectWorkload::Step& step,
                             Bytes length) const {
  switch (step.operation) {
    case ObjectOperation::get:
      return length == lane.received.size() &&
             kv::check_value(lane.received, step.record).has_value();
    case ObjectOperation::get_direct:
      return length == lane.direct_bytes.size() &&
             kv::check_value(lane.direct_bytes, step.record).has_value();
    case ObjectOperation::get_direct_offset: {
      const auto expected = std::span(lane.value).subspan(step.offset, part_size_);
      return std::equal(expected.begin(), expected.end(),
                        lane.direct_bytes.subspan(step.offset, part_size_).begin());
    }
    default:
      return true;
  }
}

void ObjectsClient::finish(const Lane& lane, const ObjectWorkload::Step& step,
                           const objects::Result<Bytes>& done, Time start, Time end) {
  const auto operation = static_cast<std::size_t>(step.operation);
  const std::string_view name = kObjectWorkloads[operation];
  const bool right = done && is_right(lane, step, *done);
  if (!done) {
    judge(Verdict::failed, fmt::format("{} of record {} ended with '{}'", name, step.record,
                                       to_string(done.error())));
    remaining_ = 0;
  } else if (!right) {
    judge(Verdict::invalid,
          fmt::format("{} of record {} yielded a value that nobody wrote", name, step.record));
  }
  if (crew_ == nullptr) return;
  harness::KindMeasurement& measured = *kinds_[operation];
  ++measured.operations;
  first_start_ = std::min(first_start_, start);
  last_end_ = std::max(last_end_, end);
  if (crew_->were_at_work(end)) ++operations_at_work_;
  if (!right) {
    ++measured.errors;
    return;
  }
  measured.latency.record(
      static_cast<std::uint64_t>(std::chrono::duration_cast<Nanoseconds>(end - start).count()));
}

void ObjectsClient::disconnect() {
  pool_.reset();
  session_.reset();
  direct_memory_.reset();
}

void ObjectsClient::judge(Verdict verdict, const std::string& what) {
  measurement_.judge(verdict, fmt::format("client {}: {}", index_, what));
}

void ObjectsClient::note_problem(std::exception_ptr problem) {
  remaining_ = 0;
  note(std::move(problem), fmt::format("client {}", index_), measurement_);
}

}  // namespace perdura::bench
