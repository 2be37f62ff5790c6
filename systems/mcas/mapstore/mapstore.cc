#include "systems/mcas/mapstore/mapstore.h"

#include <string_view>
#include <vector>

namespace perdura::systems::mcas::mapstore {

namespace {

std::string_view text_of(Key key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

}  // namespace

Engine::Recovered Mapstore::recover(Bytes) {
  heap_.recover([](ByteRange) {});
  return {};
}

std::optional<ByteRange> Mapstore::get(Key key) const {
  const auto found = values_.find(text_of(key));
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

PutOutcome Mapstore::put(Key key, Value value) {
  const std::optional<ByteRange> range = heap_.allocate(value.size());
  if (!range) return PutOutcome::out_of_space;
  memory_.region().write(range->offset, value);
  refer(key, *range);
  return PutOutcome::done;
}

PutOutcome Mapstore::put_reserved(Key key, ByteRange value) {
  heap_.own(value);
  refer(key, value);
  return PutOutcome::done;
}

void Mapstore::refer(Key key, ByteRange value) {
  const auto found = values_.find(text_of(key));
  if (found == values_.end()) {
    values_.emplace(text_of(key), value);
    return;
  }
  heap_.free(found->second);
  found->second = value;
}

bool Mapstore::erase(Key key) {
  const auto found = values_.find(text_of(key));
  if (found == values_.end()) return false;
  heap_.free(found->second);
  values_.erase(found);
  return true;
}

void Mapstore::iterate(const std::function<void(Key, ByteRange)>& visit) const {
  for (const auto& [key, value] : values_) visit(std::as_bytes(std::span(key)), value);
}

EngineStatistics Mapstore::statistics() const {
  EngineStatistics result = heap_.statistics();
  result.items = values_.size();
  return result;
}

std::string Mapstore::audit() const {
  std::vector<ByteRange> objects;
  for (const auto& [key, value] : values_) objects.push_back(value);
  return heap_.audit(std::move(objects));
}

}  // namespace perdura::systems::mcas::mapstore
