#include "harness/results/measurement.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "platform/base/error.h"

namespace perdura::harness {
namespace {

using Words = std::vector<std::uint64_t>;

void put_text(Words& words, const std::string& text) {
  words.push_back(text.size());
  const std::size_t start = words.size();
  words.resize(start + (text.size() + 7) / 8);
  if (!text.empty()) std::memcpy(words.data() + start, text.data(), text.size());
}

void put_histogram(Words& words, const measure::Histogram& histogram) {
  const Words own = histogram.serialize();
  words.push_back(own.size());
  words.insert(words.end(), own.begin(), own.end());
}

constexpr std::size_t kOperationWords = sizeof(history::Operation) / sizeof(std::uint64_t);
static_assert(kOperationWords * sizeof(std::uint64_t) == sizeof(history::Operation));
static_assert(std::is_trivially_copyable_v<history::Operation>);

// Ranks run the same program, so an operation travels as it is.
void put_history(Words& words, const std::vector<history::Operation>& history) {
  words.push_back(history.size());
  const std::size_t start = words.size();
  words.resize(start + history.size() * kOperationWords);
  if (!history.empty()) {
    std::memcpy(words.data() + start, history.data(), history.size() * sizeof(history::Operation));
  }
}

constexpr std::array kNoise{
    &HostNoise::load_average, &HostNoise::runnable_before, &HostNoise::runnable,
    &HostNoise::waiting,      &HostNoise::steal_percent,   &HostNoise::slowdown_percent,
};

void put_noise(Words& words, const std::optional<HostNoise>& noise) {
  words.push_back(noise ? 1 : 0);
  if (!noise) return;
  for (const auto number : kNoise) {
    const std::optional<double>& value = (*noise).*number;
    words.push_back(value ? 1 : 0);
    words.push_back(std::bit_cast<std::uint64_t>(value.value_or(0)));
  }
}

class WordReader {
 public:
  explicit WordReader(std::span<const std::uint64_t> words) : words_(words) {}

  std::uint64_t next() { return take(1).front(); }
  std::span<const std::uint64_t> take(std::uint64_t count) {
    if (count > words_.size()) throw PlatformError("a rank sent a measurement that was cut off");
    const auto taken = words_.first(count);
    words_ = words_.subspan(count);
    return taken;
  }
  std::string text() {
    std::string text(next(), '\0');
    const auto words = take((text.size() + 7) / 8);
    if (!text.empty()) std::memcpy(text.data(), words.data(), text.size());
    return text;
  }
  Picoseconds time() { return Picoseconds(static_cast<std::int64_t>(next())); }
  measure::Histogram histogram() {
    auto histogram = measure::Histogram::deserialize(take(next()));
    if (!histogram) throw PlatformError("a rank sent a damaged histogram: " + histogram.error());
    return std::move(*histogram);
  }
  std::optional<HostNoise> noise() {
    if (next() == 0) return std::nullopt;
    HostNoise noise;
    for (const auto number : kNoise) {
      const bool known = next() != 0;
      const auto value = std::bit_cast<double>(next());
      if (known) noise.*number = value;
    }
    return noise;
  }
  std::vector<history::Operation> history() {
    const std::uint64_t count = next();
    if (count > words_.size() / kOperationWords) (void)take(words_.size() + 1);
    std::vector<history::Operation> history(count);
    const auto words = take(count * kOperationWords);
    if (count > 0)
      std::memcpy(static_cast<void*>(history.data()), words.data(), words.size_bytes());
    return history;
  }

 private:
  std::span<const std::uint64_t> words_;
};

constexpr std::array kCounters{
    &pmem::WriteCounts::stores,       &pmem::WriteCounts::flushes,
    &pmem::WriteCounts::fences,       &pmem::WriteCounts::field_bits,
    &pmem::WriteCounts::bytes_issued, &pmem::WriteCounts::bytes_programmed,
    &pmem::WriteCounts::bits_flipped, &pmem::WriteCounts::lines,
    &pmem::WriteCounts::media_bytes,
};

}  // namespace

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
  for (const auto& [role, costs] : other.roles) {
    roles[role].cpu += costs.cpu;
    roles[role].writes += costs.writes;
  }
  for (const auto& [column, value] : other.declared) declared[column] += value;
  timeline.merge(other.timeline);
  if (other.noise) note_noise(*other.noise);
  judge(other.verdict, other.reason);
  if (method.empty()) method = other.method;
  if (guarantee.empty()) guarantee = other.guarantee;
  history.insert(history.end(), other.history.begin(), other.history.end());
  operations_checked += other.operations_checked;
  interrupted = interrupted || other.interrupted;
  if (usage_error.empty()) usage_error = other.usage_error;
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
  // Evenly spread operations of several processes may come to a little more than all.
  const double outside = static_cast<double>(count) - (all ? all->operations : 0);
  return 100 * std::max(0.0, outside) / static_cast<double>(count);
}

std::optional<bool> Measurement::saturated() const {
  if (arrivals == Picoseconds{}) return std::nullopt;
  return static_cast<double>(arrivals.count()) < 0.95 * static_cast<double>(elapsed.count());
}

std::vector<std::uint64_t> Measurement::serialize() const {
  Words words;
  words.push_back(kinds.size());
  for (const auto& [kind, measured] : kinds) {
    words.insert(words.end(), {static_cast<std::uint64_t>(kind), measured.operations,
                               measured.errors, measured.not_found});
    put_histogram(words, measured.latency);
    words.push_back(measured.response ? 1 : 0);
    if (measured.response) put_histogram(words, *measured.response);
  }
  words.insert(words.end(), {torn_reads, one_sided_reads, space.capacity, space.free});
  for (const Picoseconds time : {elapsed, arrivals}) {
    words.push_back(static_cast<std::uint64_t>(time.count()));
  }
  words.push_back(at_work.size());
  for (const measure::AtWork& process : at_work) {
    words.push_back(process.clock);
    for (const Time time : {process.begin, process.end}) {
      words.push_back(static_cast<std::uint64_t>(time.time_since_epoch().count()));
    }
    words.push_back(process.operations);
  }
  words.push_back(harness_per_operation ? 1 : 0);
  words.push_back(
      static_cast<std::uint64_t>(harness_per_operation.value_or(Picoseconds{}).count()));
  words.push_back(roles.size());
  for (const auto& [role, costs] : roles) {
    put_text(words, role);
    words.push_back(static_cast<std::uint64_t>(costs.cpu.count()));
    for (const pmem::WriteCounts& counts : {costs.writes.local_store, costs.writes.one_sided}) {
      for (const auto counter : kCounters) words.push_back(counts.*counter);
    }
  }
  words.push_back(declared.size());
  for (const auto& [column, value] : declared) {
    put_text(words, column);
    words.push_back(std::bit_cast<std::uint64_t>(value));
  }
  const Words over_time = timeline.serialize();
  words.push_back(over_time.size());
  words.insert(words.end(), over_time.begin(), over_time.end());
  put_noise(words, noise);
  words.push_back(static_cast<std::uint64_t>(verdict));
  words.push_back(interrupted ? 1 : 0);
  put_text(words, reason);
  put_text(words, method);
  put_text(words, guarantee);
  put_text(words, usage_error);
  words.push_back(operations_checked);
  put_history(words, history);
  return words;
}

Measurement Measurement::deserialize(std::span<const std::uint64_t> words) {
  WordReader reader(words);
  Measurement result;
  for (std::uint64_t kinds_left = reader.next(); kinds_left > 0; --kinds_left) {
    KindMeasurement& measured = result.kinds[static_cast<workload::OperationKind>(reader.next())];
    measured.operations = reader.next();
    measured.errors = reader.next();
    measured.not_found = reader.next();
    measured.latency = reader.histogram();
    if (reader.next() != 0) measured.response = reader.histogram();
  }
  result.torn_reads = reader.next();
  result.one_sided_reads = reader.next();
  result.space.capacity = reader.next();
  result.space.free = reader.next();
  for (Picoseconds* time : {&result.elapsed, &result.arrivals}) *time = reader.time();
  for (std::uint64_t left = reader.next(); left > 0; --left) {
    measure::AtWork& process = result.at_work.emplace_back();
    process.clock = reader.next();
    process.begin = Time(reader.time());
    process.end = Time(reader.time());
    process.operations = reader.next();
  }
  const bool harness_known = reader.next() != 0;
  const Picoseconds harness = reader.time();
  if (harness_known) result.harness_per_operation = harness;
  for (std::uint64_t left = reader.next(); left > 0; --left) {
    RoleCosts& costs = result.roles[reader.text()];
    costs.cpu = reader.time();
    for (pmem::WriteCounts* counts : {&costs.writes.local_store, &costs.writes.one_sided}) {
      for (const auto counter : kCounters) counts->*counter = reader.next();
    }
  }
  for (std::uint64_t left = reader.next(); left > 0; --left) {
    double& value = result.declared[reader.text()];
    value = std::bit_cast<double>(reader.next());
  }
  result.timeline = Timeline::deserialize(reader.take(reader.next()));
  result.noise = reader.noise();
  result.verdict = static_cast<Verdict>(reader.next());
  result.interrupted = reader.next() != 0;
  result.reason = reader.text();
  result.method = reader.text();
  result.guarantee = reader.text();
  result.usage_error = reader.text();
  result.operations_checked = reader.next();
  result.history = reader.history();
  return result;
}

}  // namespace perdura::harness
