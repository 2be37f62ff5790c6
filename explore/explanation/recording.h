// All that happened in one simulated run, for its explanation (explanation.h).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "explore/explanation/call_site.h"
#include "platform/sim/kernel/run_observer.h"

namespace perdura::explore {

class Recording final : public sim::RunObserver {
 public:
  // A range of a machine's persistent memory.
  struct Range {
    NodeId machine = 0;
    std::uint32_t region = 0;  // an index into regions()
    Bytes offset = 0;
    Bytes length = 0;

    bool overlaps(const Range& other) const {
      return machine == other.machine && region == other.region &&
             offset < other.offset + other.length && other.offset < offset + length;
    }
    // True if the other one begins where this one ends.
    bool is_before(const Range& other) const {
      return machine == other.machine && region == other.region && offset + length == other.offset;
    }
  };
  struct Message {
    Posted what;
    CallStack posted_by;  // followed by the tasks that await its completion
    std::optional<Time> arrived{};
    std::optional<Time> received{};  // when the responder's CPU received it
    std::optional<Time> executed{};
    Range range{};  // where it was executed; empty if that was not in persistent memory
    std::optional<Time> completed{};
    bool succeeded = false;
  };
  // A change of a part of one line.
  struct LineChange {
    Range range;
    std::vector<std::byte> bytes;
    Time at{};
    bool happened = true;                // false if a failure prevented it
    Model::Writer writer = nullptr;      // null: a device placed it
    std::optional<std::size_t> message;  // the one that a device placed, if it is of a connection
    CallStack stored_by;                 // if a thread stored it
  };
  struct Flush {
    Range range;
    Time at{};
    Model::Writer writer = nullptr;
    CallStack flushed_by;
  };
  struct Fence {
    NodeId machine = 0;
    Time at{};
    Model::Writer writer = nullptr;
  };
  struct Lost {
    std::size_t change = 0;  // an index into changes()
    std::uint64_t mask = 0;  // the lost bytes of the line, a bit each
    pmem::LostIn where{};
    pmem::Rule rule{};
  };
  struct PowerFailure {
    NodeId machine = 0;
    Time at{};
    std::vector<Lost> lost;
  };
  struct NodeEvent {
    NodeId node = 0;
    Time at{};
  };

  const std::vector<Message>& messages() const { return messages_; }
  const std::vector<LineChange>& changes() const { return changes_; }
  const std::vector<Flush>& flushes() const { return flushes_; }
  const std::vector<Fence>& fences() const { return fences_; }
  const std::vector<PowerFailure>& power_failures() const { return power_failures_; }
  const std::vector<NodeEvent>& deaths() const { return deaths_; }
  const std::vector<NodeEvent>& starts() const { return starts_; }
  const std::vector<std::string>& regions() const { return regions_; }

 private:
  void started(NodeId node, Time at) override;
  void died(NodeId node, Time at) override;
  void attached(NodeId machine, Model::RegionId region, std::string_view name) override;
  MessageId posted(const Posted& message) override;
  void sent(MessageId message, NodeId machine, Model::Operation known_as) override;
  void arrived(MessageId message, Time at) override;
  void executed(MessageId message, Model::RegionAddress place, Bytes length, Time at) override;
  void completed(MessageId message, fabric::Status status, Time at,
                 std::coroutine_handle<> awaited_by) override;
  void received(NodeId machine, Model::Operation operation, Time at) override;
  void changed(const RunObserver::MemoryChange& change) override;
  void flushed(NodeId machine, Model::Writer writer, Model::RegionAddress place, Bytes length,
               Time at) override;
  void fenced(NodeId machine, Model::Writer writer, Time at) override;
  void withdrawn(NodeId machine, Model::Writer writer, Time from) override;
  void power_failed(NodeId machine, std::span<const pmem::Loss> losses, Time at) override;

  struct OperationKey {
    NodeId machine;
    std::uint32_t connection;
    std::uint32_t index;
    friend auto operator<=>(const OperationKey&, const OperationKey&) = default;
  };
  Range range_of(NodeId machine, Model::RegionAddress place, Bytes length);
  std::optional<std::size_t> message_of(NodeId machine, Model::Operation operation) const;
  std::optional<std::size_t> change_of(NodeId machine, const pmem::Loss& loss, Time at);
  void add_what_the_device_held(PowerFailure& failure) const;
  Message& message(MessageId id) { return messages_[id - 1]; }

  std::vector<Message> messages_;
  std::map<MessageId, NodeId> machine_of_;          // the responder's machine
  std::map<OperationKey, std::size_t> operations_;  // indices in messages_, since the power failed
  std::vector<LineChange> changes_;
  std::vector<Flush> flushes_;
  std::vector<Fence> fences_;
  std::vector<PowerFailure> power_failures_;
  std::vector<NodeEvent> deaths_;
  std::vector<NodeEvent> starts_;
  std::vector<std::string> regions_;
  std::map<std::pair<NodeId, Model::RegionId>, std::uint32_t> region_of_;
};

}  // namespace perdura::explore
