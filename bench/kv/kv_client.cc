#include "bench/kv/kv_client.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/operation_kinds.h"
#include "bench/ycsb/point_workload.h"
#include "harness/run/interrupt.h"
#include "platform/base/error.h"
#include "platform/base/limits.h"
#include "services/kv/value.h"

namespace perdura::bench {

using harness::Verdict;
using ycsb::OperationKind;

namespace {

// `time` must not be negative: unsigned division is faster.
std::uint64_t nanoseconds(Picoseconds time) {
  return static_cast<std::uint64_t>(time.count()) / 1000;
}

}  // namespace

KvClient::KvClient(const harness::Point& point, std::uint32_t index, std::atomic<bool>& stop)
    : point_(point),
      spec_(workload_of(point)),
      index_(index),
      stop_(stop),
      clients_(static_cast<std::uint32_t>(point.settings.number("clients"))),
      open_loop_(point.settings.text("load") != "closed"),
      until_full_(point.settings.flag("until_full")),
      key_format_(spec_.key_format()),
      loader_(spec_, point.seed, index, clients_),
      generator_(spec_, point.seed, index, clients_) {
  const std::uint64_t queue_depth = point.settings.number("queue_depth");
  for (std::uint64_t lane = 0; lane < queue_depth; ++lane) {
    lanes_.emplace_back(spec_.key_size, spec_.max_value_size());
  }
  // Done in advance, so that nothing is allocated or looked up within the measured interval.
  for (std::size_t kind = 0; kind < ycsb::kOperationKinds; ++kind) {
    const auto operation = static_cast<OperationKind>(kind);
    if (!spec_.uses(operation)) continue;
    kinds_[kind] = &measurement_.kinds[kind_of(operation)];
    if (open_loop_) kinds_[kind]->response.emplace();
  }
  measurement_.timeline.interval = point.timeline_interval;
  if (measurement_.timeline.recorded()) {
    measurement_.timeline.operations.reserve(
        ycsb::operations_of_client(spec_.operation_count, index, clients_));
  }
}

KvClient::Lane::Lane(Bytes key_size, Bytes max_value_size)
    : lines_((round_up(key_size, kCacheLine) + 2 * round_up(max_value_size, kCacheLine)) /
             kCacheLine) {
  std::byte* const bytes = reinterpret_cast<std::byte*>(lines_.data());
  std::byte* const values = bytes + round_up(key_size, kCacheLine);
  key = {bytes, key_size};
  written = {values, max_value_size};
  read = {values + round_up(max_value_size, kCacheLine), max_value_size};
}

void KvClient::invalidate(Verdict verdict, const std::string& why) {
  measurement_.judge(verdict, fmt::format("client {}: {}", index_, why));
  if (verdict == Verdict::failed) stop_ = true;
}

void KvClient::give_up(std::exception_ptr problem) {
  stop_ = true;
  try {
    std::rethrow_exception(std::move(problem));
  } catch (const UsageError& error) {
    if (measurement_.usage_error.empty()) measurement_.usage_error = error.what();
  } catch (const std::exception& error) {
    invalidate(Verdict::failed, problem_text(error));
  }
}

bool KvClient::may_go_on() {
  if (harness::interrupted()) [[unlikely]]
    measurement_.interrupted = true;
  return !measurement_.interrupted && !stop_ && (over_ == nullptr || !*over_);
}

Task<> KvClient::load(kv::KvSession& session) {
  Lane& lane = lanes_.front();
  std::uint64_t loaded = 0;
  while (may_go_on()) {
    const auto operation = loader_.next();
    if (!operation) break;
    key_format_.write(operation->key_number, lane.key);
    const auto value = lane.written.first(operation->value_size);
    kv::fill_value(value, operation->key_number, operation->version);
    const auto stored = co_await session.put(lane.key, value);
    if (!stored) {
      invalidate(Verdict::failed, fmt::format("loading ended with '{}' after {} records",
                                              kv::to_string(stored.error()), loaded));
      break;
    }
    ++loaded;
  }
}

Task<> KvClient::run(kv::KvSession& session, KvStretch stretch) {
  remaining_ = stretch.operations;
  measuring_ = stretch.measured;
  over_ = stretch.over;
  crew_ = stretch.crew;
  begin_ = Executor::current().now();
  if (crew_ != nullptr) crew_->begin(begin_);
  deadline_ = stretch.duration < Time::max() - begin_ ? begin_ + stretch.duration : Time::max();
  if (open_loop_) {
    const harness::PointSettings& settings = point_.settings;
    arrivals_.emplace(settings.text("load") == "fixed" ? ycsb::ArrivalProcess::fixed
                                                       : ycsb::ArrivalProcess::poisson,
                      settings.number("offered_load"), point_.seed, index_, clients_, stretches_++);
    awake_before_due_ = stretch.awake_before_due;
  }
  const kv::SessionCounts before = session.counts();
  if (lanes_.size() == 1) {
    co_await run_lane(session, lanes_.front());
  } else {
    lanes_at_work_ = lanes_.size();
    for (Lane& lane : lanes_) Executor::current().spawn(run_lane(session, lane));
    while (lanes_at_work_ > 0) co_await wait(lanes_ended_);
  }
  if (crew_ != nullptr && arrivals_) {
    crew_->end(std::max({begin_, last_end_, deadline_ == Time::max() ? begin_ : deadline_}));
  }
  if (stretch.measured) {
    const kv::SessionCounts after = session.counts();
    measurement_.torn_reads += after.torn_reads - before.torn_reads;
    measurement_.one_sided_reads += after.one_sided_reads - before.one_sided_reads;
    measurement_.declared["retries_per_op"] += static_cast<double>(after.retries - before.retries);
    if (until_full_ && !stop_ && !harness::interrupted()) {
      invalidate(Verdict::invalid, fmt::format("the store was not full after {} operations; raise "
                                               "operations",
                                               stretch.operations));
    }
  } else {
    warmed_up_ = true;
  }
}

// One coroutine performs all operations of a lane: another frame or two per operation would be a
// considerable part of the harness' overhead.
Task<> KvClient::run_lane(kv::KvSession& session, Lane& lane) {
  Executor& executor = Executor::current();
  std::exception_ptr problem;
  Time last_end = begin_;
  try {
    while (remaining_ > 0 && may_go_on()) {
      Times times{};
      if (arrivals_) {
        times.due = begin_ + Picoseconds(static_cast<std::int64_t>(arrivals_->next()));
        if (times.due >= deadline_) break;
        if (measuring_) {
          first_due_ = std::min(first_due_, times.due);
          last_due_ = times.due;
        }
      }
      --remaining_;
      const auto drawn = generator_.next();
      if (!drawn) {
        invalidate(Verdict::invalid,
                   fmt::format("no keys were left with {} operations to go", remaining_ + 1));
        remaining_ = 0;
        break;
      }
      const ycsb::WorkloadOperation& operation = *drawn;
      prepare(lane, operation);
      const kv::Value value = lane.written.first(operation.value_size);
      Done done;
      if (arrivals_ && executor.now() < times.due) {
        co_await arrival_at(times.due - awake_before_due_);
        while (executor.now() < times.due) co_await yield();
        if (!may_go_on()) break;
      }
      times.start = executor.begin();
      switch (operation.kind) {
        case OperationKind::read:
        case OperationKind::read_modify_write: {
          const auto got = co_await session.get(lane.key, lane.read);
          if (!got) {
            done = ended(got.error());
            break;
          }
          done.read = true;
          done.length = *got;
          if (operation.kind == OperationKind::read) break;
          const auto stored = co_await session.put(lane.key, value);
          if (!stored) done = ended(stored.error());
          break;
        }
        case OperationKind::update:
        case OperationKind::insert: {
          const auto stored = co_await session.put(lane.key, value);
          if (!stored) done = ended(stored.error());
          break;
        }
        case OperationKind::erase: {
          const auto erased = co_await session.erase(lane.key);
          if (!erased) done = ended(erased.error());
          break;
        }
        case OperationKind::scan:  // KvDriver::check refuses it
          throw PlatformError("the driver cannot scan");
      }
      times.end = executor.now();
      if (measuring_ && until_full_ && done.outcome == Outcome::error &&
          done.error == kv::Error::out_of_space) {
        stop_ = true;
        break;
      }
      last_end = times.end;
      finish(done, lane, operation, times);
    }
  } catch (...) {
    problem = std::current_exception();
  }
  if (problem) give_up(problem);
  // In an open loop a lane is idle now and then, which does not mean that the client has ended.
  if (crew_ != nullptr && !arrivals_) crew_->end(last_end);
  if (lanes_at_work_ > 0 && --lanes_at_work_ == 0) lanes_ended_.wake_all();
}

void KvClient::prepare(Lane& lane, const ycsb::WorkloadOperation& operation) const {
  key_format_.write(operation.key_number, lane.key);
  kv::fill_value(lane.written.first(operation.value_size), operation.key_number, operation.version);
}

KvClient::Done KvClient::ended(kv::Error error) {
  Done done;
  done.outcome = error == kv::Error::not_found ? Outcome::not_found : Outcome::error;
  done.error = error;
  return done;
}

void KvClient::finish(Done done, const Lane& lane, const ycsb::WorkloadOperation& operation,
                      Times times) {
  done = verified(done, lane, operation.key_number);
  judge(done, operation);
  if (operation.kind == OperationKind::insert && done.outcome == Outcome::success) {
    generator_.acknowledge_insert(operation.key_number);
  }
  // In an open loop the arrivals end by themselves, when the next one is not due within the
  // stretch.
  if (!arrivals_ && times.end >= deadline_) remaining_ = 0;
  if (!measuring_) {
    // No other thread writes it, so a load and a store suffice.
    warm_up_operations_.store(warm_up_operations_.load(std::memory_order_relaxed) + 1,
                              std::memory_order_relaxed);
    return;
  }
  if (!measured_any()) [[unlikely]]
    first_start_ = times.start;
  last_end_ = times.end;
  if (crew_ != nullptr && crew_->were_at_work(times.end)) ++operations_at_work_;
  harness::KindMeasurement& measured = *kinds_[static_cast<std::size_t>(operation.kind)];
  ++measured.operations;
  if (done.outcome != Outcome::success) [[unlikely]] {
    if (done.outcome != Outcome::not_found) {
      ++measured.errors;
      return;
    }
    ++measured.not_found;
  }
  const std::uint64_t latency = nanoseconds(times.end - times.start);
  measured.latency.record(latency);
  if (arrivals_) measured.response->record(nanoseconds(times.end - times.due));
  if (measurement_.timeline.recorded()) [[unlikely]] {
    measurement_.timeline.operations.push_back({times.end, latency});
  }
}

KvClient::Done KvClient::verified(Done done, const Lane& lane, std::uint64_t key_number) const {
  if (!done.read) return done;
  const bool fits = done.length <= lane.read.size();
  const bool whole = spec_.field_length_distribution != ycsb::LengthDistribution::constant ||
                     done.length == spec_.max_value_size();
  if (!fits || !whole || !kv::check_value(lane.read.first(done.length), key_number)) {
    done.outcome = Outcome::wrong_value;
  }
  return done;
}

void KvClient::judge(const Done& done, const ycsb::WorkloadOperation& operation) {
  if (done.outcome == Outcome::success) [[likely]]
    return;
  const auto report = [&](Verdict verdict, std::string_view what) {
    invalidate(verdict,
               fmt::format("{} of key {}{} {}", ycsb::to_string(operation.kind),
                           operation.key_number, measuring_ ? "" : " in the warm-up", what));
  };
  switch (done.outcome) {
    case Outcome::success:
      return;
    case Outcome::wrong_value:
      report(Verdict::invalid, "yielded a value that nobody wrote");
      return;
    case Outcome::not_found:
      // Deletes are drawn so that each finds its record; other operations may meet deleted records.
      if (operation.kind == OperationKind::erase || !spec_.uses(OperationKind::erase)) {
        report(Verdict::invalid, "found nothing, though the record exists");
      }
      return;
    case Outcome::error:
      if (measurement_.verdict == Verdict::failed) return;
      const bool hopeless =
          done.error == kv::Error::out_of_space || done.error == kv::Error::disconnected;
      report(hopeless ? Verdict::failed : Verdict::invalid,
             fmt::format("ended with '{}'", kv::to_string(done.error)));
      return;
  }
}

}  // namespace perdura::bench
