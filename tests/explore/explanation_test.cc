// Explanations of losses: what was lost and by which rule, who was told, and which line of code
// relied on it first; and diagrams as text and as SVG.
#include "explore/explanation/explanation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explore/crash.h"
#include "explore/history_loss.h"
#include "explore/soak.h"
#include "methods/method.h"
#include "platform/sim/sim_platform.h"
#include "services/log/service.h"
#include "systems/registry/registry.h"
#include "systems/remote_log/system.h"
#include "tests/support/platforms.h"
#include "tests/support/temporary_directory.h"

// A system of this test, so that its code counts as a system's.
namespace perdura::systems::planted {
namespace {

using services::Condition;
using services::CrashCall;

// --- a server that stores a value, and perhaps flushes it, before it answers ---------------------

constexpr Bytes kPlace = 128;
constexpr std::uint32_t kLength = 40;

std::vector<std::byte> bytes_of_version(std::uint64_t version) {
  std::vector<std::byte> bytes(kLength);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + version * 31 + 1);
  }
  return bytes;
}

struct RegisterRun {
  explore::Recording recording;
  explore::ExplainedRun story;
};

class RegisterStore {
 public:
  enum class Persist : std::uint8_t { nothing, flush, flush_and_fence };

  explicit RegisterStore(Persist persist) : persist_(persist) {}

  // Two puts, a power failure that leaves as little as may be, and a get.
  std::unique_ptr<RegisterRun> run(const sim::Profile& testbed) {
    auto run = std::make_unique<RegisterRun>();
    sim::SimPlatform platform(testbed, 3);
    platform.track_durability({pmem::PersistenceDomain::dmp, false});
    platform.observe(run->recording);
    const auto start_server = [&] {
      platform.start_service(0, 0, CompletionMode::polling,
                             [this](Thread& thread) { return serve(thread); });
    };
    start_server();
    platform.start(1, 1, CompletionMode::polling, [this](Thread& thread) { return put(thread); });
    const Time failure = Time() + Microseconds(200);
    platform.at(failure, [&] {
      pmem::LeastChoices least;
      platform.fail_power(0, least);
      start_server();
      platform.start(2, 2, CompletionMode::polling, [this](Thread& thread) { return get(thread); });
    });
    platform.run();
    run->story = {.title = "a register",
                  .conclusion = "version 2 is lost",
                  .servers = 1,
                  .clients = 1,
                  .calls = calls_,
                  .failures = {failure},
                  .events = {{failure, "the power of the servers fails"}}};
    return run;
  }

 private:
  Task<> serve(Thread& thread) {
    std::unique_ptr<pmem::Region> pool = thread.node.open_region("register");
    if (pool == nullptr) pool = thread.node.create_region("register", 4096, pmem::Medium::pm);
    const auto buffers = thread.node.create_region("buffers", 4096, pmem::Medium::dram);
    const auto memory = thread.endpoint.register_memory(*pool, fabric::Access::remote_read);
    const auto local = thread.endpoint.register_memory(*buffers, fabric::Access::local);
    const auto receives = thread.endpoint.create_receive_queue(1);
    receives->post(local.local(0, kLength), 0);
    fabric::CompletionQueue completions;
    const auto request = co_await thread.endpoint.next_connection();
    const auto peer =
        request->accept({.receive_queue = receives.get(), .completions = &completions},
                        std::as_bytes(std::span(&memory.key, 1)));
    for (;;) {
      const fabric::ReceiveCompletion message = co_await completions.next();
      if (message.status != fabric::Status::success) continue;
      pool->write(kPlace, message.buffer.bytes());
      if (persist_ != Persist::nothing) pool->flush(kPlace, kLength);
      if (persist_ == Persist::flush_and_fence) pool->drain();
      receives->post(local.local(0, kLength), 0);
      answer(*peer, local.local(kLength, 8));
    }
  }

  // Where the value is taken for durable.
  [[gnu::noinline]] static void answer(fabric::QueuePair& peer, const fabric::LocalBuffer& what) {
    peer.post_unsignaled({.opcode = fabric::Opcode::send, .local = what});
  }

  Task<> put(Thread& thread) {
    const auto memory = thread.node.create_region("client", 4096, pmem::Medium::dram);
    const auto local = thread.endpoint.register_memory(*memory, fabric::Access::local);
    const auto receives = thread.endpoint.create_receive_queue(2);
    fabric::CompletionQueue completions;
    const fabric::Connection server = co_await thread.endpoint.connect(
        {0, 0}, {.receive_queue = receives.get(), .completions = &completions}, {});
    for (std::uint64_t version = 1; version <= 2; ++version) {
      receives->post(local.local(kLength, 8), 0);
      const std::size_t call = begin(0, true, fmt::format("put of version {}", version));
      calls_[call].values = {{version, bytes_of_version(version)}};
      const fabric::LocalBuffer value = local.local(0, kLength);
      std::copy_n(calls_[call].values.front().bytes.begin(), kLength, value.bytes().begin());
      server.queue_pair->post_unsignaled({.opcode = fabric::Opcode::send, .local = value});
      const fabric::ReceiveCompletion answered = co_await completions.next();
      if (answered.status != fabric::Status::success) co_return;
      end(call, "done");
    }
    co_await sleep_until(Time() + Microseconds(201));  // the failure belongs to the run
  }

  Task<> get(Thread& thread) {
    const auto memory = thread.node.create_region("inspector", 4096, pmem::Medium::dram);
    const auto local = thread.endpoint.register_memory(*memory, fabric::Access::local);
    const fabric::Connection server = co_await thread.endpoint.connect({0, 0}, {}, {});
    fabric::RemoteKey key;
    std::memcpy(&key, server.private_data.data(), sizeof key);
    const std::size_t call = begin(1, false, "get");
    const fabric::LocalBuffer into = local.local(0, kLength);
    const bool read = static_cast<bool>(co_await server.queue_pair->read(into, {key, kPlace}));
    EXPECT_TRUE(read);
    end(call, "not found");
    for (std::uint64_t version = 1; version <= 2; ++version) {
      std::vector<std::byte> bytes = bytes_of_version(version);
      if (!std::equal(bytes.begin(), bytes.end(), into.bytes().begin())) continue;
      calls_[call].told = fmt::format("version {}", version);
      calls_[call].values = {{version, std::move(bytes)}};
    }
  }

  std::size_t begin(std::uint32_t client, bool changes, std::string what) {
    CrashCall& call = calls_.emplace_back();
    call.client = client;
    call.start = Executor::current().now();
    call.changes = changes;
    call.what = std::move(what);
    return calls_.size() - 1;
  }
  void end(std::size_t call, std::string told) {
    calls_[call].end = Executor::current().now();
    calls_[call].told = std::move(told);
  }

  Persist persist_;
  std::vector<CrashCall> calls_;
};

}  // namespace
}  // namespace perdura::systems::planted

namespace perdura::explore::test {
namespace {

using pmem::PersistenceDomain;
using pmem::PersistenceModel;
using services::GuaranteeLevel;
using systems::planted::RegisterStore;

const sim::Profile& explained_testbed() {
  static const sim::Profile profile =
      sim::load_profile(perdura::test::profile_path("erda-connectx3"));
  return profile;
}

testing::AssertionResult holds(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is missing in:\n" << text;
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Call sites that do not depend on lines of this file.
std::vector<CallSite> somewhere(std::span<const CallStack> stacks) {
  return std::vector<CallSite>(stacks.size(), CallSite{"somewhere", "file.cc:7"});
}

TEST(Explanation, NamesTheLineThatAnsweredBeforeTheValueWasFlushed) {
  const auto run = RegisterStore(RegisterStore::Persist::nothing).run(explained_testbed());
  const Diagram diagram = explain(run->recording, run->story);
  const std::string text = as_text(diagram);
  EXPECT_TRUE(holds(text, "in the CPU's cache, not flushed [flush_and_fence_persist]"));
  EXPECT_TRUE(holds(text, "register, which hold the value"));
  EXPECT_TRUE(holds(text, "Told: client 0 at "));
  EXPECT_TRUE(holds(text, "Found: client 1 at "));
  EXPECT_TRUE(holds(text, "First relied on by "));
  EXPECT_TRUE(holds(text, "RegisterStore::answer()"));
}

TEST(Explanation, SaysThatAFenceIsMissing) {
  const auto run = RegisterStore(RegisterStore::Persist::flush).run(explained_testbed());
  const std::string text = as_text(explain(run->recording, run->story));
  EXPECT_TRUE(holds(text, "flushed, but not fenced [flush_waits_for_fence]"));
  EXPECT_TRUE(holds(text, "flushes 0x80, 64 B"));
}

TEST(Explanation, OfARunThatLosesNothingNamesNoLine) {
  const auto run = RegisterStore(RegisterStore::Persist::flush_and_fence).run(explained_testbed());
  const Diagram diagram = explain(run->recording, run->story);
  const std::string text = as_text(diagram);
  EXPECT_EQ(text.find("lost:"), std::string::npos) << text;
  EXPECT_EQ(text.find("relied"), std::string::npos) << text;
}

// --- systems -------------------------------------------------------------------------------------

// The first run that keeps less than `expected` and whose explanation says all of this, as small as
// shrinking makes it. Other runs may have other reasons, and a get that finds nothing has read no
// line that could be named.
Diagram explained_finding(std::string_view system, std::string_view setting,
                          std::string_view server, GuaranteeLevel expected,
                          const std::vector<std::string_view>& said) {
  constexpr std::uint64_t kMostSchedules = 20'000;
  for (SoakCase one : soak_cases({systems::find_system(system).value()}, explained_testbed())) {
    if (one.setting.name != setting || explored_name(one.model) != server) continue;
    one.expected = expected;
    CaseSoak soak(one, explained_testbed(), 1);
    while (soak.counts().schedules < kMostSchedules) {
      const auto found = soak.next();
      if (!found) continue;
      pmem::Tape tape = pmem::Tape::parse(found->tape);
      Diagram diagram = explain(one, explained_testbed(), tape);
      const std::string text = as_text(diagram);
      if (std::all_of(said.begin(), said.end(), [&](std::string_view each) {
            return text.find(each) != std::string::npos;
          })) {
        return diagram;
      }
    }
  }
  ADD_FAILURE() << "nothing was found that is explained by: "
                << fmt::format("{}", fmt::join(said, ", "));
  return {};
}

// A get of Erda returns what is in the cache.
TEST(Explanation, OfADirtyReadNamesTheReadThatSawTheLine) {
  const Diagram diagram =
      explained_finding("erda", "persistence = correct", "dmp ddio", GuaranteeLevel::durable,
                        {"First relied on by systems/erda/client.", "which hold the value"});
  const std::string text = as_text(diagram);
  // Whichever of the two the search has met first.
  const std::string_view lost =
      text.find("[ddio_stays_in_cache]") != std::string::npos
          ? "in the last-level cache, where DDIO had placed it [ddio_stays_in_cache]"
          : "Rule flush_waits_for_fence: before the fence, a flush guarantees nothing.";
  EXPECT_TRUE(holds(text, lost));
  EXPECT_TRUE(holds(text, "READ of client "));
  EXPECT_LE(lines_in(text), 200U) << text;
}

// As in LogCrashes: a log with the method for a server whose caches survive, on one where they do
// not.
TEST(Explanation, OfALogWithAMethodForAnotherServer) {
  services::LogSystem wrong = systems::kRemoteLog;
  wrong.published = [](const PersistenceModel&, const GivenParameters&) {
    return methods::method_of_paper({{PersistenceDomain::mhp, true}, pmem::Medium::dram},
                                    methods::Update::single, methods::Carrier::write);
  };
  const services::LogService service(std::span(&wrong, 1));
  const services::ServedSystem log{&service, wrong.info};
  const CrashOptions options{.setup = {.model = {PersistenceDomain::dmp, true}}, .recoveries = 3};
  const CrashResult result = explore_crashes(log, explained_testbed(), options);
  ASSERT_FALSE(result[Condition::acknowledged].held);
  const std::string text = as_text(
      explain(loss_of(log, options, result, Condition::acknowledged), explained_testbed()).value());
  EXPECT_TRUE(holds(text, "Told: client 0 at "));
  EXPECT_TRUE(holds(text, "\nTimes: here recovery begins when the power is back; "));
  EXPECT_TRUE(holds(text, "[ddio_stays_in_cache]"));
  EXPECT_TRUE(holds(text, "First relied on after methods/"));
  EXPECT_LE(lines_in(text), 200U) << text;
}

// --- diagrams ------------------------------------------------------------------------------------

// Whether an XML parser takes it.
bool is_well_formed(const std::string& svg) {
  const perdura::test::TemporaryDirectory folder(testing::TempDir(), "diagram");
  const std::filesystem::path file = folder.path() / "diagram.svg";
  std::ofstream(file) << svg;
  const std::string command = fmt::format(
      "python3 -c 'import sys, xml.dom.minidom as dom; dom.parse(sys.argv[1])' {} 2>/dev/null",
      file.string());
  return std::system(command.c_str()) == 0;
}

Diagram odd_texts() {
  Diagram diagram;
  diagram.title = "a < b && c > \"d\" 'e' \x01";
  diagram.columns = {"<client>", "server"};
  diagram.rows = {{Time() + Microseconds(1), 0, Diagram::Tone::call, "<put> & \"get\""},
                  {Time() + Microseconds(2), 1, Diagram::Tone::plain, "]]> & <!-- x"},
                  {Time() + Microseconds(3), Diagram::kAllColumns, Diagram::Tone::failure, "<&>"}};
  diagram.arrows = {{0, 1}};
  diagram.spans = {{0, 2, Diagram::Tone::call}};
  diagram.conclusions = {"operator<() & operator>()"};
  return diagram;
}

TEST(Diagram, EscapesWhatWouldBeMarkup) {
  const std::string svg = as_svg(odd_texts());
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_TRUE(holds(svg, "&lt;put&gt; &amp; &quot;get&quot;"));
  EXPECT_FALSE(is_well_formed("<svg><text>a < b</text></svg>"));
}

// Texts that stand below each other have rows of their own.
TEST(Diagram, HasOneTextInEachRow) {
  const auto run = RegisterStore(RegisterStore::Persist::nothing).run(explained_testbed());
  const std::string svg = as_svg(explain(run->recording, run->story, somewhere));
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_TRUE(holds(svg, "stroke-width=\"5\""));  // the failure
  EXPECT_TRUE(holds(svg, "marker-end"));
}

// Whatever happens, a text has at most 200 lines.
TEST(Diagram, LeavesOutEarlyEventsOfALongRun) {
  const auto run = RegisterStore(RegisterStore::Persist::nothing).run(explained_testbed());
  const Time begin = run->story.calls.front().start;
  for (int i = 0; i < 1000; ++i) {
    run->story.events.emplace_back(begin + Microseconds(1), fmt::format("event {}", i));
  }
  const std::string text = as_text(explain(run->recording, run->story, somewhere));
  EXPECT_LE(lines_in(text), 200U);
  EXPECT_TRUE(holds(text, " events are left out"));
  EXPECT_TRUE(holds(text, "lost: 0x80"));
}

// The server stores version 2, answers, and has never flushed it.
TEST(Diagram, IsTheSameTextForTheSameRun) {
  constexpr std::string_view kText =
      R"(a register

  time, us  client 0          client 1      server CPU              server device  server memory
     0.750  put of version 1
     2.708                                                                         0x80, 40 B stored
     4.625  -> done
     4.625  put of version 2
     4.775  #1 SEND, 40 B
     5.955                                                          #1 arrives
     6.567                                  takes #1
     6.582                                                                         0x80, 40 B stored
     6.732                                  #2 SEND, 8 B
     8.500  #2 is there
     8.500  -> done
   200.000  ==== the power of the servers fails ====
            lost: 0x80, 40 B, in the CPU's cache, not flushed [flush_and_fence_persist]
   200.000                                  starts again, recovers
   200.750                    get
   203.025                    -> not found

Wrong: version 2 is lost
Told: client 0 at 8.500 us ("put of version 2" -> done).
Found: client 1 at 203.025 us ("get" -> not found).
Lost: 0x80, 40 B of register, which hold the value, in the CPU's cache, not flushed; written at 6.582 us by the CPU, in file.cc:7, somewhere().
Lost besides, of no importance here: 1 change of lines.
Rule flush_and_fence_persist: a store is durable after a flush of its line and then a fence, not before.
First relied on by file.cc:7, somewhere(): #2 (SEND of server CPU) was sent at 6.732 us, when 0x80 was not durable.
)";
  for (int i = 0; i < 2; ++i) {
    const auto run = RegisterStore(RegisterStore::Persist::nothing).run(explained_testbed());
    EXPECT_EQ(as_text(explain(run->recording, run->story, somewhere)), kText);
  }
}

}  // namespace
}  // namespace perdura::explore::test
