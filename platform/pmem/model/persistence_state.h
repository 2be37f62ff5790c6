// The persistence model: which crash images of a node's memory a power failure may leave, given
// what has happened so far.
//
// The state is untimed. The caller reports what CPUs and devices do, in an order in which it may
// have happened, and what has become known about it (a completion, a receive, a fence). image()
// then returns one of the memory images that recovery may find if the power fails now. An image
// holds
//
//   - everything that is known to be durable,
//   - any part of the rest that respects the ordering rules: if B is in the image and A must be
//     durable before B, then A is in the image.
//
// The unit of survival is an aligned word of 8 bytes. rules.h lists the rules, docs/persistence.md
// explains them.
//
//   PersistenceState state({.domain = PersistenceDomain::dmp, .ddio = false});
//   state.attach(0, Medium::pm, memory);
//   const auto connection = state.connect();
//   const auto write = state.post(connection, RemoteKind::posted);
//   state.place(write, {0, 64}, bytes);
//   state.completed(state.post(connection, RemoteKind::read));   // now it is durable
//   for (Enumerator all; all.next();) recover(state.image(all));
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "platform/base/units.h"
#include "platform/fabric/order/ordering.h"
#include "platform/pmem/model/choices.h"
#include "platform/pmem/model/persistence.h"
#include "platform/pmem/model/rules.h"

namespace perdura::pmem {

enum class Flush : std::uint8_t { clwb, clflush };  // clflushopt guarantees the same as clwb

// The kinds of operations on a connection that the rules distinguish.
enum class RemoteKind : std::uint8_t {
  posted,             // WRITE, WRITE_WITH_IMM, SEND
  read,               // READ
  flush,              // FLUSH for global visibility
  flush_persistence,  // FLUSH for persistence
  atomic,             // ATOMIC WRITE, compare-and-swap, fetch-and-add
};

struct Loss;  // loss.h
enum class LostIn : std::uint8_t;

struct RemoteFlags {
  bool fenced = false;
  bool relaxed = false;  // the memory is registered with relaxed ordering
};

class PersistenceState {
  friend class ImageSpace;  // another representation of the same images (image_space.h)

 public:
  using Writer = const void*;      // identifies a CPU thread by any address that is unique to it
  using RegionId = std::uint32_t;  // chosen by the caller
  using ConnectionId = std::uint32_t;
  struct Operation {
    ConnectionId connection = 0;
    std::uint32_t index = 0;  // counts the connection's operations in the order issued
    friend bool operator==(const Operation&, const Operation&) = default;
  };
  struct RegionAddress {
    RegionId region = 0;
    Bytes offset = 0;
  };

  explicit PersistenceState(PersistenceModel model, Rules rules = {})
      : model_(model), rules_(rules) {}
  PersistenceState(const PersistenceState&) = delete;
  PersistenceState& operator=(const PersistenceState&) = delete;

  // Adds a region. `memory` is its current content, all of it durable. The caller may or may not
  // apply reported changes to `memory`: the model copies a line before the first change of it.
  // Devices must not change regions on a disk.
  void attach(RegionId region, Medium medium, const std::byte* memory);
  // Announces that `memory` is about to hold a change of these lines that will be reported later.
  void expect(RegionAddress place, Bytes length);
  // Withdraws such an announcement: the change will not be made.
  void expect_no_longer(RegionAddress place, Bytes length);

  // --- what CPUs do ------------------------------------------------------------------------------

  // Stores a range as memcpy does: by stores of 8 bytes, or less at the ends of the range, in any
  // order.
  void store(Writer writer, RegionAddress place, std::span<const std::byte> bytes);
  void stream(Writer writer, RegionAddress place,
              std::span<const std::byte> bytes);  // non-temporal
  void flush(Writer writer, RegionAddress place, Bytes length, Flush kind = Flush::clwb);
  void fence(Writer writer);  // sfence, mfence, a locked instruction

  // --- operations on connections -----------------------------------------------------------------

  // Adds a connection to a device with the model's DDIO setting, or with the given one.
  ConnectionId connect() { return connect(model_.ddio); }
  ConnectionId connect(bool ddio);
  Operation post(ConnectionId connection, RemoteKind kind, RemoteFlags flags = {});
  // Reports a range that the operation changes. An operation may change several ranges.
  void place(Operation operation, RegionAddress place, std::span<const std::byte> bytes);
  // Reports a range that a FLUSH for persistence covers. Within the range it makes durable what was
  // issued before it on its connection, and what is visible when this is called.
  void cover(Operation operation, RegionAddress place, Bytes length);

  // --- what becomes known ------------------------------------------------------------------------

  // The requester has received the operation's completion.
  void completed(Operation operation);
  // The responder's CPU has received the receive completion of a SEND or WRITE_WITH_IMM.
  void received(Operation operation);
  // The responder's process is gone; everything that takes effect until its successor begins is
  // visible to the successor.
  void ended(ConnectionId connection);
  // An agent has read a range and seen all changes of it, or those that the given operation made.
  void seen(RegionAddress place, Bytes length);
  void seen(Operation operation, RegionAddress place, Bytes length);

  // True if seen() of this range can add knowledge, now or after expected changes have been
  // reported.
  bool may_learn(RegionAddress place, Bytes length) const;

  // True if `second` takes effect after `first` in every execution.
  bool takes_effect_before(Operation first, Operation second) const;

  // --- what a power failure leaves ---------------------------------------------------------------

  struct Survivor {
    RegionAddress place;  // where the line begins
    std::array<std::byte, kCacheLine> bytes{};
  };
  // One of the images that a failure now may leave: all lines whose surviving content may differ
  // from memory, in the order of addresses. The result is valid until the next call.
  const std::vector<Survivor>& image(Choices& choices);

  // The changes that are lost if the power fails now and leaves `image`, which image() has just
  // returned: for each word, those after the one that survives.
  std::vector<Loss> losses(std::span<const Survivor> image) const;

  // The stage of the part of a range that has progressed least, or `durable` if all of it is known
  // to be durable.
  enum class Whereabouts : std::uint8_t { durable, cache, write_combining, device };
  Whereabouts whereabouts(RegionAddress place, Bytes length) const;

  // A counter that grows whenever a report may have changed the set of possible images.
  std::uint64_t changes() const { return changes_; }

  // The number of lines that are still tracked: those not yet known to be durable as they are in
  // memory.
  std::size_t lines() const { return lines_.size(); }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  enum class Source : std::uint8_t { store, stream, device };
  using LineKey = std::pair<RegionId, Bytes>;

  struct Fragment;
  struct Line {
    LineKey key;
    std::array<std::byte, kCacheLine> durable{};
    std::vector<Fragment*> fragments;  // in the order reported
    std::uint32_t expected = 0;
    // Used while an image is built.
    std::size_t survivor = 0;
    bool broken = false;                       // a visible change of the line was left out
    std::vector<Operation> broken_operations;  // operations of which a part was left out
    // Used while durability is propagated to earlier changes that must have become durable before.
    bool durable_behind = false;
    std::vector<Operation> durable_operations;
  };
  // The change that one store or operation makes to one line.
  struct Fragment {
    Line* line = nullptr;
    std::uint64_t sequence = 0;  // in the order reported
    std::uint64_t mask = 0;      // bytes of the line
    std::uint64_t seen = 0;      // bytes that have been read
    std::array<std::byte, kCacheLine> bytes{};
    Source source = Source::store;
    bool cached = false;                   // it passes through the cache
    bool visible = false;                  // known to be visible
    bool durable = false;                  // known to be durable
    std::uint64_t visible_since = kNever;  // the sequence number of the latest report at that time
    Writer writer = nullptr;
    Writer written_back_by = nullptr;  // the thread whose clflush wrote it back
    // It becomes durable before stores of that thread with a greater sequence number do.
    std::uint64_t written_back_before = kNever;
    Operation operation;
  };
  // The groups of operations that differ in their order: the kinds of fabric/order/ordering.h, and
  // posted operations to memory with relaxed ordering.
  enum class Group : std::uint8_t { posted, read, atomic, flush, relaxed };
  static constexpr std::size_t kGroups = 5;
  static constexpr fabric::WorkKind kind_of(Group group) {
    switch (group) {
      case Group::posted:
      case Group::relaxed:
        break;
      case Group::read:
        return fabric::WorkKind::read;
      case Group::atomic:
        return fabric::WorkKind::atomic;
      case Group::flush:
        return fabric::WorkKind::flush;
    }
    return fabric::WorkKind::posted;
  }
  // An index for each group.
  struct OfEachGroup {
    explicit OfEachGroup(std::uint32_t all) { indices.fill(all); }
    std::uint32_t& operator[](Group group) { return indices[static_cast<std::size_t>(group)]; }
    std::uint32_t operator[](Group group) const { return indices[static_cast<std::size_t>(group)]; }
    void raise_to(const OfEachGroup& other);
    std::uint32_t highest() const { return *std::max_element(indices.begin(), indices.end()); }
    std::array<std::uint32_t, kGroups> indices{};
  };
  struct OperationState {
    RemoteKind kind = RemoteKind::posted;
    Group group = Group::posted;
    // It takes effect after all operations of a group with an index below `after[group]`.
    OfEachGroup after{0};
  };
  // The first READ and the first FLUSH that push a change out of the device to a place where it is
  // durable. They are told apart, since operations overtake a READ that do not overtake a FLUSH.
  struct Pushes {
    std::uint32_t read = kNone;
    std::uint32_t flush = kNone;
    std::uint32_t first() const { return std::min(read, flush); }
    // Returns true if an operation that takes effect after these comes after one of the pushes.
    bool before(const OfEachGroup& after) const {
      return read < after[Group::read] || flush < after[Group::flush];
    }
  };
  struct Cover {
    std::uint32_t by = 0;
    RegionAddress place;
    Bytes length = 0;
    std::uint64_t sequence = 0;  // changes that became visible later may not be covered
    bool holds(const Fragment& fragment) const;
  };
  struct Connection {
    bool ddio = false;
    bool ended = false;  // so everything that takes effect is visible
    std::vector<OperationState> operations;
    std::uint32_t fence_waits_to = 0;  // index of the last operation that a fence waits for, + 1
    // Because of a fence, all later operations take effect after those with smaller indices.
    std::uint32_t fence_horizon = 0;
    // All operations with a smaller index are known to have completed.
    std::uint32_t completed_end = 0;
    std::vector<std::uint32_t> reads;    // indices of READs
    std::vector<std::uint32_t> flushes;  // indices of FLUSHes for visibility
    std::vector<Cover> covers;
    std::vector<Fragment*> fragments;  // in the order of their operations
    // Used while an image is built: the index of the first operation of each group that was left
    // out, and the first pushes of what was left out.
    OfEachGroup broken{kNone};
    Pushes broken_pushes;
    // Used while durability is propagated: operations of each group with a smaller index are
    // durable, and so is what a READ or FLUSH with a smaller index has pushed.
    OfEachGroup durable{0};
    OfEachGroup durable_pushed{0};
  };
  struct WriterState {
    std::vector<Fragment*> pending;  // flushed or streamed; the next fence makes them durable
    std::uint64_t broken = kNever;   // used while an image is built
    std::uint64_t durable = 0;       // used while durability is propagated: the last durable store
  };
  struct RegionState {
    const std::byte* memory = nullptr;
    Medium medium = Medium::pm;
  };

  bool ordered_by_visibility() const {
    return model_.domain != PersistenceDomain::dmp ||
           !rules_.holds(Rule::visible_order_is_not_durable_order);
  }
  bool is_lost(RegionAddress place) const;
  bool is_durable_when_visible(const Fragment& fragment) const;
  Line& line_of(LineKey key);
  template <class Function>
  void each_fragment(RegionAddress place, Bytes length, const Function& function);
  template <class Function>
  void each_up_to(Operation operation, const Function& function);
  // Adds the fragments of a change and calls function(fragment) for each of them.
  template <class Function>
  void add(const Fragment& what, RegionAddress place, std::span<const std::byte> bytes,
           const Function& function);
  void make_visible(Fragment& fragment);
  void make_durable(Fragment& fragment);
  void make_seen(Fragment& fragment);
  void complete(Operation operation);
  bool follows_from_durable(const Fragment& fragment) const;
  void follow_durable();
  void settle();
  static Group group_of(RemoteKind kind, bool relaxed);
  bool is_kept(Group earlier, Group later) const;
  Pushes pushes_of(const Connection& connection, const Fragment& fragment) const;
  bool may_survive(const Fragment& fragment) const;
  std::uint64_t choose_words(const Fragment& fragment, Choices& choices) const;
  void leave_out(const Fragment& fragment);
  std::pair<LostIn, Rule> cause_of_loss(const Fragment& fragment) const;

  PersistenceModel model_;
  Rules rules_;
  std::map<RegionId, RegionState> regions_;
  std::map<LineKey, Line> lines_;
  std::deque<Fragment> pool_;
  std::vector<Fragment*> free_;
  // Not yet merged into Line::durable, in the order reported.
  std::vector<Fragment*> fragments_;
  std::size_t settle_at_ = 256;  // number of fragments at which settle() is called
  std::vector<Connection> connections_;
  std::map<Writer, WriterState> writers_;
  std::uint64_t sequence_ = 0;
  std::uint64_t changes_ = 0;
  bool changed_ = false;  // something changed since the last settle()
  std::vector<Survivor> survivors_;
};

// Returns an empty string if durable, else a remark, such as "   (perhaps no further than the
// device)".
std::string_view to_string(PersistenceState::Whereabouts whereabouts);

}  // namespace perdura::pmem
