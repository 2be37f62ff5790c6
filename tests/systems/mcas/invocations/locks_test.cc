// Which operations of one key exclude each other: those that change it exclude all, and others
// nobody (MCAS, sections 3.1 and 4.2). Every operation that lasts is tried with every other one.
#include <fmt/format.h>

#include <array>
#include <string>

#include "services/objects/pending.h"
#include "tests/systems/mcas/invocations/support.h"

namespace perdura::systems::mcas {
namespace {

using namespace test;
using objects::Result;

constexpr Bytes kValue = 16 * KiB;
constexpr Bytes kPart = 64;
constexpr const char* kKey = "key";

struct Operation {
  enum class Kind : std::uint8_t {
    get,
    get_direct,
    get_direct_offset,
    put,
    erase,
    put_direct,
    put_direct_offset,
    invoke,
    invoke_put
  };
  const char* name;
  Kind kind;
  bool changes;
  bool lasts = false;  // while it has the key
  bool is_invocation = false;
};
using Kind = Operation::Kind;

constexpr std::array<Operation, 10> kOperations{
    {{"get", Kind::get, false},
     {"get_direct", Kind::get_direct, false, true},
     {"get_direct_offset", Kind::get_direct_offset, false, true},
     {"put", Kind::put, true},
     {"erase", Kind::erase, true},
     {"put_direct", Kind::put_direct, true},
     {"put_direct_offset", Kind::put_direct_offset, true, true},
     {"a reading invocation", Kind::invoke, false, true, true},
     {"an invocation", Kind::invoke, true, true, true},
     {"invoke_put", Kind::invoke_put, true, true, true}}};

// A client with memory of two halves: what is got, and what is put.
class OneKey {
 public:
  OneKey(objects::Session& session, objects::Pool& pool, pmem::Region& region)
      : pool_(pool), memory_(*session.register_direct_memory(region)) {}

  Task<> put_old() { EXPECT_TRUE(co_await pool_.put(as_key(kKey), as_key(old_), {})); }

  // In full length, or as short as it can be.
  Task<Result<void>> perform(const Operation& operation, bool full) {
    const Key key = as_key(kKey);
    const Bytes length = full ? kValue : kPart;
    const std::string request = full ? "slow" : "quick";
    switch (operation.kind) {
      case Kind::get:
        co_return without_value(co_await pool_.get(key));
      case Kind::get_direct:
        co_return without_value(co_await pool_.get_direct(key, {memory_, 0, kValue}));
      case Kind::get_direct_offset:
        co_return co_await pool_.get_direct_offset(key, 0, {memory_, 0, length});
      case Kind::put:
        co_return co_await pool_.put(key, as_key(new_), {});
      case Kind::erase:
        co_return co_await pool_.erase(key);
      case Kind::put_direct:
        co_return co_await pool_.put_direct(key, {memory_, kValue, length}, {});
      case Kind::put_direct_offset:
        co_return co_await pool_.put_direct_offset(key, 0, {memory_, kValue, length});
      case Kind::invoke:
        co_return without_value(
            co_await pool_.invoke(key, as_key(request), 0, {.read_only = !operation.changes}));
      case Kind::invoke_put:
        co_return without_value(
            co_await pool_.invoke_put(key, as_key(request), as_key(new_), 0, {}));
    }
    co_return Result<void>{};
  }

 private:
  template <class T>
  static Result<void> without_value(const Result<T>& result) {
    return result ? Result<void>{} : tl::unexpected(result.error());
  }

  objects::Pool& pool_;
  objects::DirectMemory memory_;
  const std::string old_ = std::string(kValue, 'o');
  const std::string new_ = std::string(kPart, 'n');
};

// How many operations that last the shard has begun.
Task<std::uint64_t> begun(objects::Session& session) {
  const objects::ShardStatistics statistics = *co_await session.statistics();
  co_return statistics.direct_transfers + statistics.invocations;
}

TEST(Locks, AreExclusiveForWhatChangesAKeyAndSharedForWhatDoesNot) {
  const auto slow = [](ado::Services&, const ado::Invocation& work) -> Task<ado::Result> {
    if (work.request == "slow") co_await sleep_for(Milliseconds(1));
    co_return ado::Result{{work.request}, {}};
  };
  objects::Config config = config_with(kFunction, {{"direct_piece", 64}});
  config.max_message_value = kValue;
  config.memory = 16 * MiB;
  Cluster cluster("sim", config, function(slow));
  int pairs = 0;
  cluster.run([&](objects::Session& session, Thread& thread) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", 8 * MiB, {});
    const auto region = thread.node.create_region("direct", 2 * kValue, pmem::Medium::dram);
    OneKey key(session, *pool, *region);
    co_await key.put_old();
    // Its process is there from now on.
    EXPECT_TRUE(co_await pool->invoke(as_key(kKey), as_key("quick"), 0, {}));
    for (const Operation& first : kOperations) {
      if (!first.lasts) continue;
      for (const Operation& second : kOperations) {
        // Which takes as long as the first one.
        const bool as_long = second.kind == Kind::get_direct;
        // A process executes one work after the other, whatever locks they have.
        if (first.is_invocation && second.is_invocation) continue;
        co_await key.put_old();
        const std::uint64_t before = co_await begun(session);
        objects::Pending<void> one(key.perform(first, true));
        while (co_await begun(session) == before) {
        }
        EXPECT_FALSE(one.completed()) << first.name;
        objects::Pending<void> other(key.perform(second, false));
        co_await other.wait_for_completion();
        const bool excluded = first.changes || second.changes;
        if (excluded || !as_long) {
          EXPECT_EQ(one.completed(), excluded) << second.name << " during " << first.name;
        }
        co_await one.wait_for_completion();
        EXPECT_TRUE(one.take()) << first.name;
        EXPECT_TRUE(other.take()) << second.name << " after " << first.name;
        ++pairs;
      }
    }
  });
  EXPECT_EQ(pairs, 6 * 10 - 3 * 3);
}

}  // namespace
}  // namespace perdura::systems::mcas
