// What a call of an active data object does with its key, by its flags (MCAS, section 4.1).
#include <fmt/format.h>

#include "systems/mcas/allocations.h"
#include "tests/systems/mcas/invocations/support.h"

namespace perdura::systems::mcas {
namespace {

using namespace test;
using ado::Invocation;
using ado::Services;
using objects::Error;

class Invocations : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Invocations, testing::Values("sim", "shm"), platform_name);

std::string bytes_at(const Services& services, ByteRange range) {
  std::string bytes(range.length, '\0');
  services.memory().region().read(range.offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

// Answers what it was given: whether the key is new, the length of its value, and all of its
// different bytes; and the detached values.
Task<ado::Result> describe(Services& services, const Invocation& work) {
  std::string text = fmt::format("{} {}", work.is_new ? "new" : "old", work.value.length);
  std::string bytes = bytes_at(services, work.value);
  bytes.erase(std::unique(bytes.begin(), bytes.end()), bytes.end());
  if (!bytes.empty()) text += ' ' + (bytes == std::string(1, '\0') ? "zeros" : bytes);
  for (const ByteRange& range : work.detached) {
    text += " with " + bytes_at(services, range);
    co_await services.free_memory(range);
  }
  co_return ado::Result{{text}, {}};
}

TEST_P(Invocations, ReachAllPluginsInTurn) {
  Cluster cluster(GetParam(), config_with("passthru,passthru,passthru"));
  cluster.run([](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    const auto answers =
        co_await pool->invoke(as_key("key"), as_key("hello"), 64, {.create_on_demand = true});
    EXPECT_TRUE(answers.has_value());
    if (!answers) co_return;
    EXPECT_EQ(answers->size(), 3U);
    for (const auto& answer : *answers) EXPECT_EQ(string_of(answer), "hello");
    EXPECT_EQ((co_await session.statistics())->invocations, 1U);
  });
}

TEST_P(Invocations, FlagsSayWhatBecomesOfTheKey) {
  Cluster cluster(GetParam(), config_with(kFunction), function(describe));
  cluster.run([](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    const auto invoke = [&](const char* key, objects::InvokeFlags flags) {
      return pool->invoke(as_key(key), as_key("?"), 100, flags);
    };
    const std::string old(100, 'o');
    co_await pool->put(as_key("old"), as_key(old), {});

    EXPECT_EQ(error_of(co_await invoke("new", {})), Error::not_found);
    EXPECT_EQ(error_of(co_await pool->attributes(as_key("new"))), Error::not_found);
    EXPECT_EQ(answer_of(co_await invoke("old", {})), "old 100 o");
    EXPECT_EQ(answer_of(co_await invoke("old", {.create_on_demand = true})), "old 100 o");
    EXPECT_EQ(error_of(co_await invoke("old", {.create_only = true})), Error::exists);
    EXPECT_EQ(answer_of(co_await invoke("old", {.read_only = true})), "old 100 o");
    EXPECT_EQ(error_of(co_await invoke("new", {.read_only = true})), Error::not_found);
    EXPECT_EQ(answer_of(co_await invoke("new", {.create_on_demand = true, .zero_new_value = true})),
              "new 100 zeros");
    EXPECT_EQ((co_await pool->attributes(as_key("new")))->value_length, 100U);
    EXPECT_EQ(answer_of(co_await invoke("only", {.create_only = true, .zero_new_value = true})),
              "new 100 zeros");
    // What cannot be.
    EXPECT_EQ(error_of(co_await invoke("old", {.create_on_demand = true, .read_only = true})),
              Error::invalid);
    EXPECT_EQ(error_of(co_await invoke("old", {.detached = true})), Error::invalid);
    EXPECT_EQ(error_of(co_await invoke("", {.create_on_demand = true})), Error::invalid);
    EXPECT_EQ(
        error_of(co_await pool->invoke(as_key("old"), as_key("ADO::Signal::post-put"), 0, {})),
        Error::invalid);
  });
}

TEST_P(Invocations, APutComesBeforeTheCall) {
  Cluster cluster(GetParam(), config_with(kFunction), function(describe));
  cluster.run([](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    const auto invoke_put = [&](const char* key, const std::string& value,
                                objects::InvokeFlags flags) {
      return pool->invoke_put(as_key(key), as_key("?"), as_key(value), 200, flags);
    };
    const std::string first(100, 'a');
    const std::string second(150, 'b');
    EXPECT_EQ(answer_of(co_await invoke_put("key", first, {})), "new 100 a");
    EXPECT_EQ(answer_of(co_await invoke_put("key", second, {})), "old 150 b");
    EXPECT_EQ(string_of(*co_await pool->get(as_key("key"))), second);
    EXPECT_EQ(error_of(co_await invoke_put("key", first, {.no_overwrite = true})), Error::exists);
    EXPECT_EQ(error_of(co_await invoke_put("key", first, {.create_only = true})), Error::exists);
    EXPECT_EQ(string_of(*co_await pool->get(as_key("key"))), second);
    EXPECT_EQ(answer_of(co_await invoke_put("other", first, {.no_overwrite = true})), "new 100 a");
    // A small value may be moved, and is none that could be changed in place.
    EXPECT_EQ(answer_of(co_await invoke_put("key", "small", {})), "old 0");
    EXPECT_EQ(string_of(*co_await pool->get(as_key("key"))), "small");
    EXPECT_EQ(error_of(co_await invoke_put("key", first, {.read_only = true})), Error::invalid);

    const objects::InvokeFlags detached{.detached = true, .zero_new_value = true};
    EXPECT_EQ(answer_of(co_await invoke_put("root", "value", detached)),
              "new 200 zeros with value");
    EXPECT_EQ(answer_of(co_await invoke_put("root", "next", detached)), "old 200 zeros with next");
    EXPECT_EQ((co_await pool->attributes(as_key("root")))->value_length, 200U);
    const objects::PoolAttributes before = *co_await pool->attributes();
    EXPECT_EQ(before.items, 3U) << "the plugin has freed what it was given";
    EXPECT_EQ(
        error_of(co_await invoke_put("root", "value", {.detached = true, .no_overwrite = true})),
        Error::exists);
    EXPECT_EQ((co_await pool->attributes())->free, before.free);
  });
}

// Without `zero_new_value` the shard writes nothing to a new value.
TEST_P(Invocations, ANewValueIsZeroOnlyIfAskedFor) {
  Cluster cluster(GetParam(), config_with(kFunction), function(describe));
  cluster.run([](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    for (const bool zero : {false, true}) {
      const std::string erased(100, 'e');
      co_await pool->put(as_key("erased"), as_key(erased), {});
      co_await pool->erase(as_key("erased"));
      const std::string answer = answer_of(co_await pool->invoke(
          as_key("new"), as_key("?"), 100, {.create_only = true, .zero_new_value = zero}));
      EXPECT_EQ(answer, zero ? "new 100 zeros" : "new 100 e");
      co_await pool->erase(as_key("new"));
    }
  });
}

TEST_P(Invocations, HavePermissionsAndLimits) {
  const auto repeat = [](Services&, const Invocation& work) -> Task<ado::Result> {
    co_return ado::Result{{std::string(std::stoul(work.request), 'x')}, {}};
  };
  Cluster cluster(GetParam(), config_with(kFunction), function(repeat));
  cluster.run([](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    const std::string value(100, 'v');
    co_await pool->put(as_key("key"), as_key(value), {});
    const auto reader = *co_await session.open_pool("pool", {.read_only = true});
    EXPECT_EQ(
        answer_of(co_await reader->invoke(as_key("key"), as_key("1"), 0, {.read_only = true})),
        "x");
    EXPECT_EQ(error_of(co_await reader->invoke(as_key("key"), as_key("1"), 0, {})),
              Error::no_permission);
    EXPECT_EQ(error_of(co_await reader->invoke_put(as_key("key"), as_key("1"), {}, 0, {})),
              Error::no_permission);
    // 2 KiB go into a message, with 16 bytes of lengths before each.
    const std::string longest = "1" + std::string(2031, ' ');
    EXPECT_EQ(answer_of(co_await pool->invoke(as_key("key"), as_key(longest), 0, {})), "x");
    const std::string too_long = longest + ' ';
    EXPECT_EQ(error_of(co_await pool->invoke(as_key("key"), as_key(too_long), 0, {})),
              Error::too_large);
    EXPECT_EQ(answer_of(co_await pool->invoke(as_key("key"), as_key("2032"), 0, {})),
              std::string(2032, 'x'));
    EXPECT_EQ(error_of(co_await pool->invoke(as_key("key"), as_key("2033"), 0, {})),
              Error::too_large);
    EXPECT_EQ(error_of(co_await pool->invoke(as_key("key"), as_key("no number"), 0, {})),
              Error::failed);
    EXPECT_EQ(error_of(co_await pool->invoke(as_key("new"), as_key("1"), 64 * MiB,
                                             {.create_on_demand = true})),
              Error::out_of_space);
    EXPECT_EQ(error_of(co_await pool->invoke(as_key("new"), as_key("1"), GiB,
                                             {.create_on_demand = true})),
              Error::out_of_space);
    for (const Bytes length : {GiB + 1, ~Bytes{}}) {
      EXPECT_EQ(error_of(co_await pool->invoke(as_key("new"), as_key("1"), length,
                                               {.create_on_demand = true})),
                Error::too_large);
    }
    EXPECT_EQ(error_of(co_await pool->attributes(as_key("new"))), Error::not_found);
  });
}

TEST_P(Invocations, AreUnsupportedWithoutPlugins) {
  Cluster cluster(GetParam(), config_with(""));
  cluster.run([](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    EXPECT_EQ(
        error_of(co_await pool->invoke(as_key("key"), as_key("?"), 64, {.create_on_demand = true})),
        Error::unsupported);
    EXPECT_EQ(error_of(co_await pool->attributes(as_key("key"))), Error::not_found);
  });
}

// A part of an allocation is none, so that nothing is handed out again that a plugin still has.
TEST_P(Invocations, FreeWholeAllocationsOnly) {
  const auto allocate = [](Services& services, const Invocation&) -> Task<ado::Result> {
    const ByteRange whole = (co_await services.allocate_memory(4096)).value;
    std::string said;
    for (const ByteRange other :
         {ByteRange{whole.offset, 2048}, ByteRange{whole.offset, 8192}, ByteRange{whole.offset, 0},
          ByteRange{whole.offset + 2048, 2048}, ByteRange{whole.offset - 8, 4104}}) {
      const bool is_freed = co_await services.free_memory(other) == ado::CallStatus::done;
      said += is_freed ? "freed " : "kept ";
    }
    const ByteRange next = (co_await services.allocate_memory(4096)).value;
    const bool is_apart = next.offset + 4096 <= whole.offset || whole.offset + 4096 <= next.offset;
    said += is_apart ? "apart" : "the same";
    for (const ByteRange one : {whole, next}) {
      const bool is_freed = co_await services.free_memory(one) == ado::CallStatus::done;
      said += is_freed ? " freed" : " kept";
    }
    co_return ado::Result{{said}, {}};
  };
  Cluster cluster(GetParam(), config_with(kFunction), function(allocate));
  cluster.run([](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    EXPECT_EQ(answer_of(co_await pool->invoke(as_key("key"), as_key("?"), 64,
                                              {.create_on_demand = true})),
              "kept kept kept kept kept apart freed freed");
  });
}

// Plugins and clients see keys alone, and nobody can have the key of an allocation.
TEST_P(Invocations, AllocatedMemoryIsNoKey) {
  const auto allocate = [](Services& services, const Invocation& work) -> Task<ado::Result> {
    if (work.request == "free") {
      const ByteRange never{work.value.offset, 8};
      const ado::CallStatus freed = co_await services.free_memory(never);
      co_return ado::Result{{freed == ado::CallStatus::not_found ? "no" : "yes"}, {}};
    }
    const auto range = co_await services.allocate_memory(100);
    const std::string key = string_of(allocation_key(range.value.offset));
    const auto opened = co_await services.open_key(key, ado::LockMode::write);
    const auto erased = co_await services.erase_key(key);
    const auto created = co_await services.create_key(string_of(allocation_key(1)), 100);
    const auto all = co_await services.get_references();
    std::uint64_t position = 0;
    const auto found = co_await services.find_key("", ado::Matching::prefix, position);
    co_return ado::Result{
        {fmt::format("{} {} {} {} {} {}", key, opened.status == ado::CallStatus::not_found,
                     erased == ado::CallStatus::not_found,
                     created.status == ado::CallStatus::refused, all.value.size(), found.value)},
        {}};
  };
  Cluster cluster(GetParam(), config_with(kFunction), function(allocate));
  cluster.run([](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    EXPECT_FALSE(error_of(co_await pool->configure("AddIndex::VolatileTree")));
    const std::string answer = answer_of(
        co_await pool->invoke(as_key("key"), as_key("allocate"), 64, {.create_on_demand = true}));
    EXPECT_EQ(answer.substr(std::min<std::size_t>(answer.size(), 16)), " true true true 1 key");
    const std::string key = answer.substr(0, 16);
    EXPECT_EQ(error_of(co_await pool->get(as_key(key))), Error::invalid);
    EXPECT_EQ(error_of(co_await pool->put(as_key(key), as_key("value"), {})), Error::invalid);
    EXPECT_EQ(error_of(co_await pool->erase(as_key(key))), Error::invalid);
    EXPECT_EQ(error_of(co_await pool->find("key", objects::Match::next, 0)), Error::not_found);
    // An index that is made anew, and one that is told of changes.
    EXPECT_FALSE(error_of(co_await pool->configure("RemoveIndex::")));
    EXPECT_FALSE(error_of(co_await pool->configure("AddIndex::VolatileTree")));
    EXPECT_EQ((co_await pool->find("", objects::Match::next, 0)).value().position, 0U);
    EXPECT_EQ(error_of(co_await pool->find("", objects::Match::next, 1)), Error::not_found);
    EXPECT_EQ(answer_of(co_await pool->invoke(as_key("key"), as_key("free"), 0, {})), "no");
  });
}

// The secondary index is told of the keys that plugins create and erase.
TEST_P(Invocations, KeysThatComeAndGoAreFoundOrNot) {
  const auto change = [](Services& services, const Invocation& work) -> Task<ado::Result> {
    ado::CallStatus status{};
    if (work.request == "erase") {
      status = co_await services.erase_key("made");
    } else {
      const auto created = co_await services.create_key("made", 100);
      status = created.status;
    }
    co_return ado::Result{{status == ado::CallStatus::done ? "done" : "not done"}, {}};
  };
  Cluster cluster(GetParam(), config_with(kFunction), function(change));
  cluster.run([](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    EXPECT_FALSE(error_of(co_await pool->configure("AddIndex::VolatileTree")));
    const objects::InvokeFlags flags{.create_on_demand = true};
    EXPECT_EQ(answer_of(co_await pool->invoke(as_key("key"), as_key("create"), 64, flags)), "done");
    EXPECT_FALSE(error_of(co_await pool->find("made", objects::Match::exact, 0)));
    EXPECT_EQ(answer_of(co_await pool->invoke(as_key("key"), as_key("erase"), 64, flags)), "done");
    EXPECT_EQ(error_of(co_await pool->find("made", objects::Match::exact, 0)), Error::not_found);
  });
}

}  // namespace
}  // namespace perdura::systems::mcas
