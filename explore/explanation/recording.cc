#include "explore/explanation/recording.h"

#include <algorithm>

#include "platform/pmem/model/line_mask.h"

namespace perdura::explore {

namespace {

Bytes line_of(Bytes offset) { return offset / kCacheLine * kCacheLine; }

}  // namespace

void Recording::started(NodeId node, Time at) { starts_.push_back({node, at}); }
void Recording::died(NodeId node, Time at) { deaths_.push_back({node, at}); }

void Recording::attached(NodeId machine, Model::RegionId region, std::string_view name) {
  auto known = std::find(regions_.begin(), regions_.end(), name);
  if (known == regions_.end()) known = regions_.emplace(regions_.end(), name);
  region_of_[{machine, region}] = static_cast<std::uint32_t>(known - regions_.begin());
}

Recording::Range Recording::range_of(NodeId machine, Model::RegionAddress place, Bytes length) {
  return {machine, region_of_[{machine, place.region}], place.offset, length};
}

// --- messages ------------------------------------------------------------------------------------

Recording::MessageId Recording::posted(const Posted& message) {
  messages_.push_back({.what = message, .posted_by = call_stack()});
  add_task(messages_.back().posted_by, message.awaited_by);
  return messages_.size();
}

void Recording::sent(MessageId id, NodeId machine, Model::Operation known_as) {
  machine_of_[id] = machine;
  operations_[{machine, known_as.connection, known_as.index}] = id - 1;
}

void Recording::arrived(MessageId id, Time at) { message(id).arrived = at; }

void Recording::executed(MessageId id, Model::RegionAddress place, Bytes length, Time at) {
  message(id).executed = at;
  const auto machine = machine_of_.find(id);
  if (length == 0 || machine == machine_of_.end()) return;
  message(id).range = range_of(machine->second, place, length);
}

void Recording::completed(MessageId id, fabric::Status status, Time at,
                          std::coroutine_handle<> awaited_by) {
  if (!message(id).what.awaited_by) add_task(message(id).posted_by, awaited_by);
  message(id).completed = at;
  message(id).succeeded = status == fabric::Status::success;
}

std::optional<std::size_t> Recording::message_of(NodeId machine, Model::Operation operation) const {
  const auto found = operations_.find({machine, operation.connection, operation.index});
  if (found == operations_.end()) return std::nullopt;
  return found->second;
}

void Recording::received(NodeId machine, Model::Operation operation, Time at) {
  if (const auto found = message_of(machine, operation)) messages_[*found].received = at;
}

// --- persistent memory ---------------------------------------------------------------------------

void Recording::changed(const RunObserver::MemoryChange& change) {
  const Range range = range_of(change.machine, change.place, change.bytes.size());
  LineChange& added = changes_.emplace_back();
  added.range = range;
  added.bytes.assign(change.bytes.begin(), change.bytes.end());
  added.at = change.at;
  added.writer = change.writer;
  if (change.writer == nullptr) {
    added.message = message_of(change.machine, change.operation);
  } else {
    added.stored_by = call_stack();
  }
}

void Recording::flushed(NodeId machine, Model::Writer writer, Model::RegionAddress place,
                        Bytes length, Time at) {
  const Bytes begin = line_of(place.offset);
  const Bytes end = round_up(place.offset + std::max<Bytes>(length, 1), kCacheLine);
  flushes_.push_back(
      {range_of(machine, {place.region, begin}, end - begin), at, writer, call_stack()});
}

void Recording::fenced(NodeId machine, Model::Writer writer, Time at) {
  fences_.push_back({machine, at, writer});
}

void Recording::withdrawn(NodeId machine, Model::Writer writer, Time from) {
  const auto is_withdrawn = [&](const auto& what, NodeId of) {
    return of == machine && what.writer == writer && what.at > from;
  };
  for (LineChange& one : changes_) {
    if (is_withdrawn(one, one.range.machine)) one.happened = false;
  }
  std::erase_if(flushes_, [&](const Flush& one) { return is_withdrawn(one, one.range.machine); });
  std::erase_if(fences_, [&](const Fence& one) { return is_withdrawn(one, one.machine); });
}

// The last recorded change that the loss can be.
std::optional<std::size_t> Recording::change_of(NodeId machine, const pmem::Loss& loss, Time at) {
  const Range line = range_of(machine, loss.place, kCacheLine);
  const auto message = loss.writer == nullptr ? message_of(machine, loss.operation) : std::nullopt;
  for (std::size_t i = changes_.size(); i-- > 0;) {
    const LineChange& change = changes_[i];
    if (!change.happened || change.at > at || change.writer != loss.writer ||
        change.message != message || !line.overlaps(change.range)) {
      continue;
    }
    const Bytes begin = change.range.offset - line.offset;
    const bool equal = std::equal(change.bytes.begin(), change.bytes.end(),
                                  loss.bytes.begin() + static_cast<std::ptrdiff_t>(begin));
    if (equal && (pmem::mask_of(begin, change.bytes.size()) & loss.mask) != 0) return i;
  }
  return std::nullopt;
}

// Adds the messages that had arrived and would have been placed later.
void Recording::add_what_the_device_held(PowerFailure& failure) const {
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const LineChange& change = changes_[i];
    if (change.range.machine != failure.machine || !change.message || !change.happened ||
        change.at <= failure.at) {
      continue;
    }
    const Bytes begin = change.range.offset - line_of(change.range.offset);
    failure.lost.push_back({i, pmem::mask_of(begin, change.bytes.size()), pmem::LostIn::device,
                            pmem::Rule::accepted_is_not_visible});
  }
}

void Recording::power_failed(NodeId machine, std::span<const pmem::Loss> losses, Time at) {
  PowerFailure failure{machine, at, {}};
  for (const pmem::Loss& loss : losses) {
    if (const auto change = change_of(machine, loss, at)) {
      failure.lost.push_back({*change, loss.mask, loss.where, loss.rule});
    }
  }
  add_what_the_device_held(failure);
  power_failures_.push_back(std::move(failure));
  // Tasks may run ahead of simulated time; their actions after the failure have not happened.
  const auto is_ahead = [&](const auto& what, NodeId of) { return of == machine && what.at > at; };
  for (LineChange& one : changes_) {
    if (is_ahead(one, one.range.machine)) one.happened = false;
  }
  std::erase_if(flushes_, [&](const Flush& one) { return is_ahead(one, one.range.machine); });
  std::erase_if(fences_, [&](const Fence& one) { return is_ahead(one, one.machine); });
  std::erase_if(operations_, [&](const auto& one) { return one.first.machine == machine; });
}

}  // namespace perdura::explore
