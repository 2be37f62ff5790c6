#include "services/kv/crash_state.h"

#include <algorithm>

namespace perdura::services {

using history::Kind;
using kv::Error;

// An operation from its beginning to its answer, or to the death of its client, which is not
// reported.
class KvCrashState::UnderWay {
 public:
  UnderWay(KvCrashState& state, const Operation& operation)
      : state_(state),
        place_(state.under_way_.insert(state.under_way_.end(), operation)),
        ended_(false) {
    state_.changed_();
  }
  ~UnderWay() {
    if (!ended_) state_.under_way_.erase(place_);
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  void end(bool changed) {
    if (changed) state_.acknowledged_[place_->key] = place_->version;
    state_.under_way_.erase(place_);
    ended_ = true;
    state_.changed_();
  }

 private:
  KvCrashState& state_;
  std::list<Operation>::iterator place_;
  bool ended_;
};

void KvCrashState::note_read(std::uint64_t key, std::uint64_t version) {
  for (Operation& put : under_way_) {
    if (put.kind != Kind::put || put.key != key || put.version != version) continue;
    put.read = true;
    ++early_reads_;
  }
}

// Notes the result of the inspector's first get of a key.
void KvCrashState::note_found(std::uint64_t key, std::optional<std::uint64_t> version) {
  if (!found_.emplace(key, version.has_value()).second) return;
  const auto known = acknowledged_.find(key);
  if (version.value_or(0) == (known == acknowledged_.end() ? 0 : known->second)) {
    ++newest_found_;
  } else if (version) {
    ++others_found_;
  } else {
    ++lost_;
  }
}

std::uint64_t KvCrashState::steps_begun() const {
  std::uint64_t steps = 0;
  for (const kv::KvPartition* partition : open_) steps += partition->space().steps;
  return steps;
}

void KvCrashState::describe(SystemState& state) const {
  const auto count = [&](auto&& is_meant) {
    constexpr std::ptrdiff_t kSeveral = 2;
    return static_cast<std::uint64_t>(
        std::min(kSeveral, std::count_if(under_way_.begin(), under_way_.end(), is_meant)));
  };
  const auto of_kind = [&](Kind kind) {
    return count([&](const Operation& operation) { return operation.kind == kind; });
  };
  state.add("puts", of_kind(Kind::put));
  state.add("gets", of_kind(Kind::get));
  state.add("erases", of_kind(Kind::erase));
  state.add("read early", count([](const Operation& operation) { return operation.read; }));
  state.add("with the same key", count([&](const Operation& one) {
              return count([&](const Operation& other) { return other.key == one.key; }) > 1;
            }));
  state.add("newest found", std::min<std::uint64_t>(newest_found_, 1));
  state.add("others found", std::min<std::uint64_t>(others_found_, 1));
  state.add("lost", std::min<std::uint64_t>(lost_, 1));
  for (const kv::KvPartition* partition : open_) describe(*partition, state);
}

// Describes how full the store is, and the work that it is doing of its own accord.
void KvCrashState::describe(const kv::KvPartition& partition, SystemState& state) const {
  const kv::KvSpace space = partition.space();
  const auto few = [](std::uint64_t count) { return std::min<std::uint64_t>(3, magnitude(count)); };
  state.add("cleanings", few(space.cleanings));
  state.add("cleanings now", space.cleanings_now);
  state.add("resizing", space.resizing ? 1 : 0);
  if (space.capacity > 0) state.add("free quarters", space.free * 4 / space.capacity);
  const std::vector<double> metrics = partition.metrics();
  for (std::size_t i = 0; i < metrics.size() && i < system_.partition_metrics.size(); ++i) {
    const double number = std::max(metrics[i], 0.0);
    state.add(system_.partition_metrics[i].name, few(static_cast<std::uint64_t>(number)));
  }
}

Task<kv::Result<Bytes>> ObservedSession::get(kv::Key key, std::span<std::byte> into) {
  const std::uint64_t number = format_.key_number(key);
  KvCrashState::UnderWay under_way(state_, {Kind::get, number, 0, false});
  const auto got = co_await session_.get(key, into);
  std::optional<std::uint64_t> version;
  if (got && *got <= into.size()) version = format_.version(key, kv::Value(into.first(*got)));
  if (inspects_) {
    state_.note_found(number, version);
  } else if (version) {
    state_.note_read(number, *version);
  }
  under_way.end(false);
  co_return got;
}

Task<kv::Result<void>> ObservedSession::put(kv::Key key, kv::Value value) {
  const std::uint64_t number = format_.key_number(key);
  const std::uint64_t version = format_.version(key, value).value_or(0);
  KvCrashState::UnderWay under_way(state_, {Kind::put, number, version, false});
  const auto stored = co_await session_.put(key, value);
  under_way.end(stored.has_value());
  co_return stored;
}

Task<kv::Result<void>> ObservedSession::erase(kv::Key key) {
  const std::uint64_t number = format_.key_number(key);
  KvCrashState::UnderWay under_way(state_, {Kind::erase, number, 0, false});
  const auto erased = co_await session_.erase(key);
  under_way.end(erased.has_value());
  co_return erased;
}

}  // namespace perdura::services
