// What of a node's memory a power failure may leave, given what has happened so far.
//
// The state is untimed. It is told what CPUs and devices do, in an order in which it may have
// happened, and what has become known of it (a completion, a receive, a fence); image() then gives
// one of the memories that recovery may find if the power fails now. An image holds
//
//   - everything that is surely durable,
//   - of the rest any part that the rules allow: whatever must be durable before something else is
//     there if the other is.
//
// The unit is an aligned word of 8 bytes. rules.h has the rules, docs/persistence.md the reasons.
//
//   PersistenceState state({.domain = PersistenceDomain::dmp, .ddio = false});
//   state.attach(0, Medium::pm, memory);
//   const auto connection = state.connect();
//   const auto write = state.post(connection, RemoteKind::posted);
//   state.place(write, {0, 64}, bytes);
//   state.completed(state.post(connection, RemoteKind::read));   // now it is durable
//   for (Enumerator all; all.next();) recover(state.image(all));
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "platform/base/units.h"
#include "platform/pmem/model/choices.h"
#include "platform/pmem/model/persistence.h"
#include "platform/pmem/model/rules.h"

namespace perdura::pmem {

enum class Flush : std::uint8_t { clwb, clflush };  // clflushopt promises what clwb does

// Operations on a connection, as far as persistence is concerned.
enum class RemoteKind : std::uint8_t {
  posted,             // WRITE, WRITE_WITH_IMM, SEND
  read,               // READ, and FLUSH for global visibility
  flush_persistence,  // FLUSH for persistence
  atomic,             // ATOMIC WRITE, compare-and-swap, fetch-and-add
};

struct RemoteFlags {
  bool fenced = false;
  bool relaxed = false;  // of memory that was registered with relaxed ordering
};

class PersistenceState {
 public:
  using Writer = const void*;      // a thread of a CPU, by any address of its own
  using RegionId = std::uint32_t;  // given by the caller
  using ConnectionId = std::uint32_t;
  struct Operation {
    ConnectionId connection = 0;
    std::uint32_t index = 0;  // in the order issued
    friend bool operator==(const Operation&, const Operation&) = default;
  };
  struct Place {
    RegionId region = 0;
    Bytes offset = 0;
  };

  explicit PersistenceState(PersistenceModel model, Rules rules = {})
      : model_(model), rules_(rules) {}
  PersistenceState(const PersistenceState&) = delete;
  PersistenceState& operator=(const PersistenceState&) = delete;

  // `memory` is what the region holds, all of it durable. It may change, or not, with what is told;
  // a line is looked at before the first change of it.
  void attach(RegionId region, Medium medium, const std::byte* memory);
  // Memory is about to hold a change of these lines that will be told later.
  void expect(Place place, Bytes length);

  // --- what CPUs do ------------------------------------------------------------------------------

  // Stores of 8 bytes or, at the ends of the range, less, in any order, as by memcpy.
  void store(Writer writer, Place place, std::span<const std::byte> bytes);
  void stream(Writer writer, Place place, std::span<const std::byte> bytes);  // non-temporal
  void flush(Writer writer, Place place, Bytes length, Flush kind = Flush::clwb);
  void fence(Writer writer);  // sfence, mfence, a locked instruction

  // --- operations on connections -----------------------------------------------------------------

  // By a device that uses the cache as the machine's do, or as told.
  ConnectionId connect() { return connect(model_.ddio); }
  ConnectionId connect(bool ddio);
  Operation post(ConnectionId connection, RemoteKind kind, RemoteFlags flags = {});
  // What the operation changes; an operation may change several ranges.
  void place(Operation operation, Place place, std::span<const std::byte> bytes);
  // What a FLUSH for persistence covers: what was issued before it on its connection, and what is
  // visible there when this is told.
  void cover(Operation operation, Place place, Bytes length);

  // --- what becomes known ------------------------------------------------------------------------

  // The requester has the operation's completion.
  void completed(Operation operation);
  // The responder's CPU has the receive completion of a SEND or WRITE_WITH_IMM.
  void received(Operation operation);
  // Somebody has read a range and seen everything in it, or what this operation put there.
  void seen(Place place, Bytes length);
  void seen(Operation operation, Place place, Bytes length);

  // Whether seeing this range may teach something, now or once what is expected has been told.
  bool may_learn(Place place, Bytes length) const;

  // Whether an operation takes effect after an earlier one in any case.
  bool takes_effect_before(Operation first, Operation second) const;

  // --- what a power failure leaves ---------------------------------------------------------------

  struct Survivor {
    Place place;  // of a line
    std::array<std::byte, kCacheLine> bytes{};
  };
  // One of the images that a failure now may leave: all lines that it may leave other than they are
  // in memory, in the order of addresses. Valid until the next call.
  const std::vector<Survivor>& image(Choices& choices);

  // Where the part of a range is that has come least far and is not surely durable.
  enum class Whereabouts : std::uint8_t { durable, cache, write_combining, device };
  Whereabouts whereabouts(Place place, Bytes length) const;

  // Grows whenever something was told that may change what a failure leaves.
  std::uint64_t changes() const { return changes_; }

  // Lines that have not been found durable and in memory as such.
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
    std::vector<Fragment*> fragments;  // in the order told
    std::uint32_t expected = 0;
    // While an image is made.
    std::size_t survivor = 0;
    bool broken = false;                       // something visible was left out
    std::vector<Operation> broken_operations;  // or parts of these were
    // While what is durable is followed to what it came after.
    bool durable_behind = false;
    std::vector<Operation> durable_operations;
  };
  // What one store or operation changes of one line.
  struct Fragment {
    Line* line = nullptr;
    std::uint64_t sequence = 0;  // in the order told
    std::uint64_t mask = 0;      // bytes of the line
    std::uint64_t seen = 0;      // of these, by somebody
    std::array<std::byte, kCacheLine> bytes{};
    Source source = Source::store;
    bool cached = false;                   // its way is through the cache
    bool visible = false;                  // surely
    bool durable = false;                  // surely
    std::uint64_t visible_since = kNever;  // that is, what was told last when it became so
    Writer writer = nullptr;
    Writer written_back_by = nullptr;            // by a clflush
    std::uint64_t written_back_before = kNever;  // anything that thread was told to do later
    Operation operation;
  };
  struct OperationState {
    RemoteKind kind = RemoteKind::posted;
    bool relaxed = false;
    // Takes effect after all posted operations, and after all operations, of smaller indices.
    std::uint32_t after_posted = 0;
    std::uint32_t after_all = 0;
  };
  struct Cover {
    std::uint32_t by = 0;
    Place place;
    Bytes length = 0;
    std::uint64_t sequence = 0;  // what is visible since then, it may have missed
    bool holds(const Fragment& fragment) const;
  };
  struct Connection {
    bool ddio = false;
    std::vector<OperationState> operations;
    std::uint32_t non_posted_end = 0;  // behind the last non-posted operation
    std::uint32_t fence_horizon = 0;   // what posted operations come after because of a fence
    std::uint32_t completed_end = 0;   // completions have told of all operations before
    std::vector<std::uint32_t> reads;  // and FLUSHes for visibility
    std::vector<Cover> covers;
    std::vector<Fragment*> fragments;  // in the order of their operations
    // While an image is made: the first of each that was left out.
    std::uint32_t broken_posted = kNone;
    std::uint32_t broken_any = kNone;
    std::uint32_t broken_pushed = kNone;  // what pushes it
    // While what is durable is followed: what comes before these is durable.
    std::uint32_t durable_posted = 0;
    std::uint32_t durable_any = 0;
    std::uint32_t durable_pushed = 0;
  };
  struct WriterState {
    std::vector<Fragment*> pending;  // flushed or streamed: the next fence is for them
    std::uint64_t broken = kNever;   // while an image is made
    std::uint64_t durable = 0;       // while what is durable is followed: the last store
  };
  struct RegionState {
    const std::byte* memory = nullptr;
    Medium medium = Medium::pm;
  };

  bool ordered_by_visibility() const {
    return model_.domain != PersistenceDomain::dmp ||
           !rules_.holds(Rule::visible_order_is_not_durable_order);
  }
  bool is_lost(Place place) const;
  Line& line_of(LineKey key);
  template <class Function>
  void each_fragment(Place place, Bytes length, const Function& function);
  template <class Function>
  void each_up_to(Operation operation, const Function& function);
  // Calls function(fragment) for each new one.
  template <class Function>
  void add(const Fragment& what, Place place, std::span<const std::byte> bytes,
           const Function& function);
  void make_visible(Fragment& fragment);
  void make_durable(Fragment& fragment);
  void make_seen(Fragment& fragment);
  void complete(Operation operation);
  bool follows_from_durable(const Fragment& fragment) const;
  void follow_durable();
  void settle();
  std::uint32_t pushed_by(const Connection& connection, const Fragment& fragment) const;
  bool may_survive(const Fragment& fragment) const;
  std::uint64_t choose_words(const Fragment& fragment, Choices& choices) const;
  void leave_out(const Fragment& fragment);

  PersistenceModel model_;
  Rules rules_;
  std::map<RegionId, RegionState> regions_;
  std::map<LineKey, Line> lines_;
  std::deque<Fragment> pool_;
  std::vector<Fragment*> free_;
  std::vector<Fragment*> fragments_;  // not surely durable, or behind such, in the order told
  std::size_t settle_at_ = 256;       // fragments
  std::vector<Connection> connections_;
  std::map<Writer, WriterState> writers_;
  std::uint64_t sequence_ = 0;
  std::uint64_t changes_ = 0;
  bool changed_ = false;  // since it was last settled
  std::vector<Survivor> survivors_;
};

// "" if durable, else such as " (it may be in the cache only)".
std::string_view to_string(PersistenceState::Whereabouts whereabouts);

}  // namespace perdura::pmem
