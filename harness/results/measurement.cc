#include "harness/results/measurement.h"

#include <algorithm>

#include "harness/results/words.h"

namespace perdura::harness {

// --- serialization for another process -----------------------------------------------------------

template <class Archive, class T>
requires IsOf<T, OperationKind>
static void visit(Archive& archive, T& kind) { archive(kind.order, kind.name); }

template <class Archive, class T>
requires IsOf<T, KindMeasurement>
static void visit(Archive& archive, T& kind) {
  archive(kind.operations, kind.errors, kind.not_found, kind.latency, kind.response);
}

template <class Archive, class T>
requires IsOf<T, SpaceUse>
static void visit(Archive& archive, T& space) { archive(space.capacity, space.free); }

template <class Archive, class T>
requires IsOf<T, measure::AtWork>
static void visit(Archive& archive, T& process) {
  archive(process.clock, process.begin, process.end, process.operations);
}

template <class Archive, class T>
requires IsOf<T, pmem::WriteCounts>
static void visit(Archive& archive, T& counts) {
  archive(counts.stores, counts.flushes, counts.fences, counts.field_bits, counts.bytes_issued,
          counts.bytes_programmed, counts.bits_flipped, counts.lines, counts.media_bytes);
}

template <class Archive, class T>
requires IsOf<T, RoleCosts>
static void visit(Archive& archive, T& costs) {
  archive(costs.cpu, costs.writes.local_store, costs.writes.one_sided, costs.traffic.sent,
          costs.traffic.received, costs.peak_memory.dram, costs.peak_memory.pm);
}

template <class Archive, class T>
requires IsOf<T, Timeline::CompletedOperation>
static void visit(Archive& archive, T& operation) { archive(operation.end, operation.latency_ns); }

template <class Archive, class T>
requires IsOf<T, Timeline::Space>
static void visit(Archive& archive, T& space) {
  archive(space.at, space.capacity, space.free, space.cleanings, space.cleanings_now);
}

template <class Archive, class T>
requires IsOf<T, Timeline>
static void visit(Archive& archive, T& timeline) {
  archive(timeline.interval, timeline.begin, timeline.operations, timeline.spaces);
}

template <class Archive, class T>
requires IsOf<T, HostNoise>
static void visit(Archive& archive, T& noise) {
  archive(noise.load_average, noise.runnable_before, noise.runnable, noise.waiting,
          noise.steal_percent, noise.slowdown_percent);
}

template <class Archive, class T>
requires IsOf<T, Measurement>
static void visit(Archive& archive, T& all) {
  archive(all.kinds, all.torn_reads, all.one_sided_reads, all.space, all.elapsed, all.at_work,
          all.arrivals, all.roles, all.declared, all.harness_per_operation, all.timeline, all.noise,
          all.verdict, all.reason, all.method, all.guarantee, all.evidence, all.operations_checked,
          all.interrupted, all.usage_error);
}

std::vector<std::uint64_t> Measurement::serialize() const {
  WordWriter writer;
  visit(writer, *this);
  return writer.take();
}

Measurement Measurement::deserialize(std::span<const std::uint64_t> words) {
  WordReader reader(words);
  Measurement result;
  visit(reader, result);
  if (!reader.at_end()) throw PlatformError("a rank sent more than a measurement");
  return result;
}

// --- what is computed from a measurement ---------------------------------------------------------

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::valid:
      return "valid";
    case Verdict::invalid:
      return "invalid";
    case Verdict::failed:
      return "failed";
  }
  return "failed";
}

void Measurement::judge(Verdict worse, const std::string& why) {
  if (worse <= verdict) return;
  verdict = worse;
  reason = why;
}

void Measurement::note_noise(const HostNoise& more) {
  if (!noise) noise.emplace();
  noise->merge(more);
}

void KindMeasurement::merge(const KindMeasurement& other) {
  operations += other.operations;
  errors += other.errors;
  not_found += other.not_found;
  latency.merge(other.latency);
  if (!other.response) return;
  if (!response) response.emplace();
  response->merge(*other.response);
}

void Measurement::merge(const Measurement& other) {
  for (const auto& [kind, theirs] : other.kinds) kinds[kind].merge(theirs);
  torn_reads += other.torn_reads;
  one_sided_reads += other.one_sided_reads;
  space.capacity += other.space.capacity;
  space.free += other.space.free;
  elapsed = std::max(elapsed, other.elapsed);
  at_work.insert(at_work.end(), other.at_work.begin(), other.at_work.end());
  arrivals = std::max(arrivals, other.arrivals);
  harness_per_operation = std::max(harness_per_operation, other.harness_per_operation);
  for (const auto& [role, costs] : other.roles) roles[role] += costs;
  for (const auto& [column, value] : other.declared) declared[column] += value;
  timeline.merge(other.timeline);
  if (other.noise) note_noise(*other.noise);
  judge(other.verdict, other.reason);
  if (method.empty()) method = other.method;
  if (guarantee.empty()) guarantee = other.guarantee;
  evidence.insert(evidence.end(), other.evidence.begin(), other.evidence.end());
  operations_checked += other.operations_checked;
  interrupted = interrupted || other.interrupted;
  if (usage_error.empty()) usage_error = other.usage_error;
}

RoleCosts& RoleCosts::operator+=(const RoleCosts& other) {
  cpu += other.cpu;
  writes += other.writes;
  traffic += other.traffic;
  peak_memory += other.peak_memory;
  return *this;
}

RoleCosts Measurement::costs_of(std::string_view role) const {
  const auto costs = roles.find(role);
  return costs == roles.end() ? RoleCosts{} : costs->second;
}

pmem::Writes Measurement::writes() const {
  pmem::Writes sum;
  for (const auto& [role, costs] : roles) sum += costs.writes;
  return sum;
}

std::uint64_t Measurement::operations() const {
  std::uint64_t sum = 0;
  for (const auto& [kind, measured] : kinds) sum += measured.operations;
  return sum;
}

std::optional<double> Measurement::throughput() const {
  const auto all = measure::all_at_work(at_work);
  if (!all) return std::nullopt;
  return all->per_second();
}

double Measurement::tail_percent() const {
  const std::uint64_t count = operations();
  if (count == 0) return 0;
  const auto all = measure::all_at_work(at_work);
  // The operations of several processes, assumed to be spread evenly, may add up to slightly more
  // than all.
  const double outside = static_cast<double>(count) - (all ? all->operations : 0);
  return 100 * std::max(0.0, outside) / static_cast<double>(count);
}

std::optional<bool> Measurement::saturated() const {
  if (arrivals == Picoseconds{}) return std::nullopt;
  return static_cast<double>(arrivals.count()) < 0.95 * static_cast<double>(elapsed.count());
}

}  // namespace perdura::harness
