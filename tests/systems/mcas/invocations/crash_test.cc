// Power failures while active data objects work, at each moment: what is acknowledged is there, and
// what is not is there whole or not at all.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <deque>

#include "platform/sim/failures.h"
#include "systems/mcas/ado/plugins/versioning.h"
#include "tests/systems/mcas/invocations/support.h"

namespace perdura::systems::mcas {
namespace {

using namespace test;
using ado::Versioning;
using Versions = std::deque<std::string>;

constexpr std::size_t kKept = 2;
const char* const kValues[] = {"first", "second, which is longer", ""};

MakePlugins small_versioning() {
  return [](const std::vector<std::string>&) {
    ado::Plugins plugins;
    plugins.push_back(std::make_unique<Versioning>(
        Versioning::Settings{.versions = kKept, .arena = 1024, .log = 256}));
    return plugins;
  };
}

Task<> put(objects::Pool& pool, const std::string& value) {
  const std::string request = Versioning::put_request();
  const auto done = co_await pool.invoke_put(
      as_key("key"), as_key(request), as_key(value), 1024,
      {.create_on_demand = true, .detached = true, .zero_new_value = true});
  EXPECT_EQ(answer_of(done), "") << value;
}

Task<Versions> versions_of(objects::Pool& pool) {
  Versions all;
  for (std::uint64_t back = 0;; ++back) {
    const std::string request = Versioning::get_request(back);
    const auto got = co_await pool.invoke(as_key("key"), as_key(request), 0, {.read_only = true});
    if (!got && got.error() == objects::Error::not_found) co_return all;
    const auto version = Versioning::version_of(answer_of(got));
    if (!version) co_return all;
    all.push_back(*version);
  }
}

Versions with(Versions versions, const std::string& value) {
  versions.push_front(value);
  if (versions.size() > kKept) versions.pop_back();
  return versions;
}

objects::Config small_config(const std::string& engine) {
  return {.memory = 64 * KiB,
          .max_message_value = 256,
          .sessions = 2,
          .parameters = {{"engine", engine},
                         {"plugins", kFunction},
                         {"first_segment", 4},
                         {"heap_region", 4 * KiB},
                         {"pools", 2},
                         {"queue_depth", 2}}};
}

class InvocationsCrash : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Engines, InvocationsCrash, testing::Values("hstore", "hstore-cc"),
                         [](const testing::TestParamInfo<std::string>& test) {
                           return test.param == "hstore" ? "Hstore" : "HstoreCc";
                         });

// Puts with detached values; then everything is opened again.
TEST_P(InvocationsCrash, APutIsThereOrNot) {
  const auto explored = sim::explore_failures(
      {.images = sim::Images::all, .most_images = 30}, [&](sim::Failure& failure) {
        SCOPED_TRACE(failure.text());
        Cluster cluster("sim", small_config(GetParam()), small_versioning());
        cluster.sim().track_durability({pmem::PersistenceDomain::dmp, false});
        failure.enable(false);
        Versions before;
        Versions after;
        bool checked = false;
        cluster.serve();
        cluster.connect([&](objects::Session& session, Thread&) -> Task<> {
          const auto pool = *co_await session.create_pool("pool", 64 * KiB, {});
          failure.enable(true);
          for (const char* value : kValues) {
            after = with(before, value);
            const std::string request = Versioning::put_request();
            const auto done = co_await pool->invoke_put(
                as_key("key"), as_key(request), as_key(value), 1024,
                {.create_on_demand = true, .detached = true, .zero_new_value = true});
            if (failure.happened()) co_return;
            EXPECT_EQ(answer_of(done), "") << value;
            before = after;
          }
          failure.enable(false);
        });
        failure.watch(cluster.sim(), [&](pmem::Choices& choices) {
          cluster.sim().fail_power(kShardNode, choices);
          cluster.serve();
          cluster.connect([&](objects::Session& session, Thread&) -> Task<> {
            const auto pool = *co_await session.open_pool("pool", {});
            const Versions found = co_await versions_of(*pool);
            EXPECT_TRUE(found == before || found == after)
                << fmt::format("{} is neither {} nor {}", found, before, after);
            co_await put(*pool, "new");
            EXPECT_EQ(co_await versions_of(*pool), with(found, "new"));
            checked = true;
          });
        });
        cluster.platform().run();
        EXPECT_EQ(checked, failure.happened());
      });
  EXPECT_GT(explored.runs, 300U);
}

// The value of a key refers to memory that belongs to no key, which holds a text: "set TEXT" puts
// it elsewhere, "get" answers it, and "fill" allocates and overwrites all other memory.
Task<ado::Result> cell(ado::Services& services, const ado::Invocation& work) {
  const Memory memory = services.memory();
  const auto is_in = [&] {
    return ByteRange{memory.region().load(work.value.offset),
                     memory.region().load(work.value.offset + kWord)};
  };
  const auto write = [&](ByteRange range, std::string_view text) {
    memory.region().write(range.offset, as_key(text));
    memory.persist({range.offset, text.size()});
  };
  if (work.request == "fill") {
    const std::string other(100, 'f');
    while (const auto filled = co_await services.allocate_memory(other.size())) {
      write(filled.value, other);
    }
  } else if (work.request != "get") {
    const std::string text = work.request.substr(4);
    const auto range = co_await services.allocate_memory(text.size());
    if (!range) co_return ado::Result{{}, "out of space"};
    const ByteRange before = is_in();
    write(range.value, text);
    // Both words are in one line of a value that is aligned to 16 bytes: durable together or, with
    // the same length, one after the other.
    memory.region().store(work.value.offset + kWord, text.size());
    memory.store_durably(work.value.offset, range.value.offset);
    if (before.offset != 0) co_await services.free_memory(before);
  }
  // A failure may have kept the length alone.
  if (is_in().offset == 0) co_return ado::Result{{""}, {}};
  std::string text(is_in().length, '\0');
  memory.region().read(is_in().offset, std::as_writable_bytes(std::span(text)));
  co_return ado::Result{{text}, {}};
}

// Memory that belongs to no key stays allocated over a restart, and what is freed is free. A
// failure between the two may leave one that nobody refers to.
TEST_P(InvocationsCrash, AllocatedMemoryIsKept) {
  constexpr objects::InvokeFlags kCreate{.create_on_demand = true, .zero_new_value = true};
  const std::string texts[] = {std::string(60, 'a'), std::string(60, 'b'), std::string(60, 'c')};
  const auto explored = sim::explore_failures(
      {.images = sim::Images::all, .most_images = 10}, [&](sim::Failure& failure) {
        SCOPED_TRACE(failure.text());
        Cluster cluster("sim", small_config(GetParam()), function(cell));
        cluster.sim().track_durability({pmem::PersistenceDomain::dmp, false});
        failure.enable(false);
        std::string before;
        std::string after;
        bool checked = false;
        cluster.serve();
        cluster.connect([&](objects::Session& session, Thread&) -> Task<> {
          const auto pool = *co_await session.create_pool("pool", 64 * KiB, {});
          EXPECT_EQ(answer_of(co_await pool->invoke(as_key("key"), as_key("get"), 32, kCreate)),
                    "");
          failure.enable(true);
          for (const std::string& text : texts) {
            after = text;
            const std::string request = "set " + text;
            const auto done = co_await pool->invoke(as_key("key"), as_key(request), 32, {});
            if (failure.happened()) co_return;
            EXPECT_EQ(answer_of(done), text);
            before = text;
          }
          failure.enable(false);
          EXPECT_EQ((co_await pool->attributes())->items, 2U);
        });
        failure.watch(cluster.sim(), [&](pmem::Choices& choices) {
          cluster.sim().fail_power(kShardNode, choices);
          cluster.serve();
          cluster.connect([&](objects::Session& session, Thread&) -> Task<> {
            const auto pool = *co_await session.open_pool("pool", {});
            const auto ask = [&](std::string_view request) {
              return pool->invoke(as_key("key"), as_key(request), 32, {});
            };
            const std::string found = answer_of(co_await ask("get"));
            EXPECT_TRUE(found == before || found == after) << found;
            EXPECT_LE((co_await pool->attributes())->items, 3U);
            EXPECT_EQ(answer_of(co_await ask("fill")), found) << "its memory was given twice";
            checked = true;
          });
        });
        cluster.platform().run();
        EXPECT_EQ(checked, failure.happened());
      });
  EXPECT_GT(explored.runs, 200U);
}

// What plugins create and resize is there whole, or as before; in memory that has had other bytes.
TEST_P(InvocationsCrash, CreatedAndResizedValuesAreWhole) {
  const auto plugin = [](ado::Services& services,
                         const ado::Invocation& work) -> Task<ado::Result> {
    const auto resized = co_await services.resize_value(work.key, 200);
    const auto created = co_await services.create_key("created", 190);
    if (!resized || !created) co_return ado::Result{{}, "out of space"};
    co_return ado::Result{{"done"}, {}};
  };
  const std::string before(40, 'b');
  const std::string after = before + std::string(160, '\0');
  const std::string zeros(190, '\0');
  const auto explored = sim::explore_failures(
      {.images = sim::Images::all, .most_images = 10}, [&](sim::Failure& failure) {
        SCOPED_TRACE(failure.text());
        Cluster cluster("sim", small_config(GetParam()), function(plugin));
        cluster.sim().track_durability({pmem::PersistenceDomain::dmp, false});
        failure.enable(false);
        bool done = false;
        bool checked = false;
        cluster.serve();
        cluster.connect([&](objects::Session& session, Thread&) -> Task<> {
          const auto pool = *co_await session.create_pool("pool", 64 * KiB, {});
          EXPECT_FALSE(error_of(co_await pool->put(as_key("key"), as_key(before), {})));
          const char* const kErased[] = {"1", "2", "3", "4"};
          for (const char* key : kErased) {
            const std::string other(200, 'o');
            EXPECT_FALSE(error_of(co_await pool->put(as_key(key), as_key(other), {})));
          }
          for (const char* key : kErased) co_await pool->erase(as_key(key));
          failure.enable(true);
          const auto answer = co_await pool->invoke(as_key("key"), as_key("?"), 0, {});
          if (failure.happened()) co_return;
          EXPECT_EQ(answer_of(answer), "done");
          done = true;
          failure.enable(false);
        });
        failure.watch(cluster.sim(), [&](pmem::Choices& choices) {
          cluster.sim().fail_power(kShardNode, choices);
          cluster.serve();
          cluster.connect([&](objects::Session& session, Thread&) -> Task<> {
            const auto pool = *co_await session.open_pool("pool", {});
            const std::string found = string_of(*co_await pool->get(as_key("key")));
            EXPECT_TRUE(found == after || (!done && found == before)) << found;
            const auto created = co_await pool->get(as_key("created"));
            EXPECT_TRUE(created || !done);
            EXPECT_EQ(created ? string_of(*created) : zeros, zeros);
            checked = true;
          });
        });
        cluster.platform().run();
        EXPECT_EQ(checked, failure.happened());
      });
  EXPECT_GT(explored.runs, 50U);
}

}  // namespace
}  // namespace perdura::systems::mcas
