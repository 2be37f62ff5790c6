#include "platform/pmem/sim/journal.h"

#include <algorithm>

namespace perdura::pmem::sim {

Journal::RegionId Journal::attach(Medium medium, std::shared_ptr<void> mapping,
                                  const std::byte* memory) {
  const auto region = static_cast<RegionId>(mappings_.size());
  mappings_.push_back(std::move(mapping));
  state_.attach(region, medium, memory);
  return region;
}

// --- recording -----------------------------------------------------------------------------------

void Journal::add(Time when, const Fact& fact) {
  if (!powered_) return;
  catch_up();
  if (when <= engine_.now()) {
    tell(engine_.now(), fact);
  } else {
    ahead_.emplace(when, fact);
  }
}

// Records a change of a range as one fact for each of its lines; line i changes at time_of(i).
template <class TimeOfLine>
void Journal::add_lines(const Fact& fact, std::span<const std::byte> bytes,
                        const TimeOfLine& time_of) {
  if (!powered_ || bytes.empty()) return;
  state_.expect(fact.place, bytes.size());
  Fact of_line = fact;
  const Bytes first = fact.place.offset / kCacheLine;
  for (Bytes at = fact.place.offset; !bytes.empty(); at += of_line.length) {
    of_line.place.offset = at;
    of_line.length = std::min<Bytes>(kCacheLine - at % kCacheLine, bytes.size());
    std::copy_n(bytes.begin(), of_line.length, of_line.bytes.begin());
    const Time when = time_of(at / kCacheLine - first);
    if (observer() != nullptr) [[unlikely]]
      observe_change(when, of_line);
    add(when, of_line);
    bytes = bytes.subspan(of_line.length);
  }
}

void Journal::observe_change(Time when, const Fact& fact) const {
  observer()->changed(
      {machine_, fact.place, {fact.bytes.data(), fact.length}, fact.writer, fact.operation, when});
}

void Journal::store(Writer writer, RegionAddress place, std::span<const std::byte> bytes,
                    LineTimes visible) {
  add_lines({.kind = Fact::Kind::store, .writer = writer, .place = place}, bytes,
            [&](Bytes line) { return visible.of(line); });
}

void Journal::stream(Writer writer, RegionAddress place, std::span<const std::byte> bytes,
                     LineTimes visible) {
  add_lines({.kind = Fact::Kind::stream, .writer = writer, .place = place}, bytes,
            [&](Bytes line) { return visible.of(line); });
}

void Journal::flush(Writer writer, RegionAddress place, Bytes length, Time at) {
  if (powered_ && observer() != nullptr) [[unlikely]]
    observer()->flushed(machine_, writer, place, length, at);
  add(at, {.kind = Fact::Kind::flush, .writer = writer, .place = place, .length = length});
}

void Journal::fence(Writer writer, Time at) {
  if (powered_ && observer() != nullptr) [[unlikely]]
    observer()->fenced(machine_, writer, at);
  add(at, {.kind = Fact::Kind::fence, .writer = writer});
}

void Journal::load(Writer writer, RegionAddress place, Bytes length, Time at) {
  if (!powered_ || !state_.may_learn(place, length)) return;
  add(at, {.kind = Fact::Kind::seen, .writer = writer, .place = place, .length = length});
}

void Journal::withdraw(Writer writer, Time from) {
  catch_up();
  if (observer() != nullptr) [[unlikely]]
    observer()->withdrawn(machine_, writer, from);
  std::erase_if(ahead_, [&](const auto& entry) {
    const auto& [when, fact] = entry;
    if (fact.writer != writer || when <= from) return false;
    const bool changes = fact.kind == Fact::Kind::store || fact.kind == Fact::Kind::stream;
    if (changes) state_.expect_no_longer(fact.place, fact.length);
    return true;
  });
}

void Journal::hasten(std::span<const Writer> writers) {
  for (auto next = ahead_.begin(); next != ahead_.end();) {
    const auto fact = next++;
    if (std::find(writers.begin(), writers.end(), fact->second.writer) == writers.end()) continue;
    tell(engine_.now(), ahead_.extract(fact).mapped());
  }
}

Journal::Operation Journal::post(ConnectionId connection, RemoteKind kind, bool fenced) {
  return state_.post(connection, kind, {.fenced = fenced});
}

void Journal::place(Operation operation, RegionAddress place, std::span<const std::byte> bytes,
                    LineTimes visible) {
  const bool from_arrival = durability_.model.domain == PersistenceDomain::wsp;
  add_lines({.kind = Fact::Kind::place, .operation = operation, .place = place}, bytes,
            [&](Bytes line) { return from_arrival ? engine_.now() : visible.of(line); });
}

void Journal::place_answer(RegionAddress where, std::span<const std::byte> bytes) {
  if (!answers_) answers_ = state_.connect();
  const Operation operation = state_.post(*answers_, RemoteKind::posted);
  place(operation, where, bytes, {engine_.now(), {}});
  received(operation, engine_.now());
}

void Journal::cover(Operation operation, RegionAddress place, Bytes length) {
  add(engine_.now(),
      {.kind = Fact::Kind::cover, .operation = operation, .place = place, .length = length});
}

void Journal::read(RegionAddress place, Bytes length, LineTimes seen) {
  const Bytes end = place.offset + length;
  const Bytes first = place.offset / kCacheLine;
  for (Bytes at = place.offset; at < end; at = (at / kCacheLine + 1) * kCacheLine) {
    add(seen.of(at / kCacheLine - first), {.kind = Fact::Kind::seen,
                                           .place = {place.region, at},
                                           .length = std::min(end - at, kCacheLine)});
  }
}

void Journal::completed(Operation operation, Time sent) {
  add(sent, {.kind = Fact::Kind::completed, .operation = operation});
}

void Journal::received(Operation operation, Time at) {
  if (powered_ && observer() != nullptr) [[unlikely]]
    observer()->received(machine_, operation, at);
  add(at, {.kind = Fact::Kind::received, .operation = operation});
}

void Journal::ended(ConnectionId connection, Time at) {
  add(at, {.kind = Fact::Kind::ended, .operation = {connection, 0}});
}

// --- passing on to the persistence state ---------------------------------------------------------

void Journal::catch_up() {
  while (!ahead_.empty() && ahead_.begin()->first <= engine_.now()) {
    const auto first = ahead_.extract(ahead_.begin());
    tell(first.key(), first.mapped());
  }
}

void Journal::tell(Time when, const Fact& fact) {
  const std::uint64_t before = state_.changes();
  const std::span<const std::byte> bytes(fact.bytes.data(), std::min(fact.length, kCacheLine));
  switch (fact.kind) {
    case Fact::Kind::store:
      state_.store(fact.writer, fact.place, bytes);
      break;
    case Fact::Kind::stream:
      state_.stream(fact.writer, fact.place, bytes);
      break;
    case Fact::Kind::flush:
      state_.flush(fact.writer, fact.place, fact.length);
      break;
    case Fact::Kind::fence:
      state_.fence(fact.writer);
      break;
    case Fact::Kind::place:
      state_.place(fact.operation, fact.place, bytes);
      break;
    case Fact::Kind::cover:
      state_.cover(fact.operation, fact.place, fact.length);
      break;
    case Fact::Kind::seen:
      state_.seen(fact.place, fact.length);
      break;
    case Fact::Kind::completed:
      state_.completed(fact.operation);
      break;
    case Fact::Kind::received:
      state_.received(fact.operation);
      break;
    case Fact::Kind::ended:
      state_.ended(fact.operation.connection);
      break;
  }
  if (durability_.list_crash_points && state_.changes() != before)
    durability_.crash_points.insert(when);
}

const std::vector<Journal::Survivor>& Journal::image(Choices& choices) {
  catch_up();
  const std::vector<Survivor>& survivors = state_.image(choices);
  if (observer() != nullptr) [[unlikely]]
    observer()->power_failed(machine_, state_.losses(survivors), engine_.now());
  return survivors;
}

ImageSpace Journal::images() {
  catch_up();
  return ImageSpace(state_);
}

std::uint64_t Journal::changes() {
  catch_up();
  return state_.changes();
}

void Journal::power_off() {
  powered_ = false;
  ahead_.clear();
  mappings_.clear();
}

}  // namespace perdura::pmem::sim
