// What is left when something else than the power fails: a server's process, a client, a
// connection.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iostream>

#include "explore/crash.h"
#include "platform/base/error.h"
#include "platform/runtime/work.h"
#include "rpc/connect.h"
#include "rpc/messages.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

namespace perdura::explore::test {
namespace {

using fabric::Access;
using pmem::PersistenceDomain;
using services::Condition;
using services::CrashScenario;
using services::CrashSetup;
using services::Verdict;

// Nothing is durable here that nobody flushes.
constexpr pmem::PersistenceModel kDmp{PersistenceDomain::dmp, true};

const sim::Profile& failing_testbed() {
  static const sim::Profile profile =
      sim::load_profile(perdura::test::profile_path("erda-connectx3"));
  return profile;
}

// --- all systems ---------------------------------------------------------------------------------

struct FailureCase {
  std::string system;
  FailureKind failure;
};

std::vector<FailureCase> failure_cases() {
  std::vector<FailureCase> cases;
  for (const services::ServedSystem& system : systems::all_systems()) {
    for (const FailureKind failure :
         {FailureKind::process, FailureKind::client, FailureKind::connection}) {
      cases.push_back({std::string(system.info.name), failure});
    }
  }
  return cases;
}

class Failing : public testing::TestWithParam<FailureCase> {};

// Also with persistence as in the paper, on servers that it does not suit: caches survive. A system
// that acknowledges what is in one process's memory alone keeps no more than it promises.
TEST_P(Failing, LosesNothing) {
  const services::ServedSystem system = systems::find_system(GetParam().system).value();
  for (const bool correct : {false, true}) {
    if (correct && !system.info.chooses_method) continue;
    CrashOptions options{.setup = {.model = kDmp, .correct = correct}};
    options.fails.kind = GetParam().failure;
    const auto make = system.service->crash_history(system.info.name, options.setup,
                                                    system.service->schedules().front());
    const bool is_thread_of_server = !make()->has_node_of_its_own(0);
    if (is_thread_of_server &&
        (options.fails.kind == FailureKind::client ||
         (options.fails.kind == FailureKind::connection && make()->servers() == 1))) {
      EXPECT_THROW(explore_crashes(system, failing_testbed(), options), UsageError);
      continue;
    }
    const CrashResult result = explore_crashes(system, failing_testbed(), options);
    const bool promises_less = system.info.level == services::GuaranteeLevel::ordered ||
                               system.info.level == services::GuaranteeLevel::none;
    EXPECT_GE(result.strongest(),
              promises_less ? system.info.level : services::GuaranteeLevel::durable)
        << result[Condition::durable].first_loss;
    // Only a connection may not be there yet, or not any more, to fail at a crash point.
    if (options.fails.kind == FailureKind::connection) {
      if (result.coverage.recoveries == 0) {
        GTEST_SKIP() << "its connections are those of threads that have no port of a client";
      }
      EXPECT_LT(result.coverage.recoveries, result.crash_points);
      EXPECT_GT(result.coverage.recoveries, 20U);
    } else {
      EXPECT_EQ(result.coverage.recoveries, result.crash_points)
          << "there is one image at each crash point";
    }
    EXPECT_GT(result.crash_points, 20U);
  }
}

// --- systems of several nodes, of which one fails ------------------------------------------------

struct NodeCase {
  std::string system;
  FailureKind failure;
};

std::vector<NodeCase> node_cases() {
  std::vector<NodeCase> cases;
  for (const services::MemorySystem& system : systems::memory_systems()) {
    if (system.copies.least == 0) continue;
    for (const FailureKind failure : {FailureKind::power, FailureKind::process}) {
      cases.push_back({std::string(system.info.name), failure});
    }
  }
  return cases;
}

class OneNode : public testing::TestWithParam<NodeCase> {};

// "Mojim can tolerate N - 1 node failures" (section 3.1.2). Each node in turn fails and comes back.
TEST_P(OneNode, TakesNothingThatWasPromised) {
  const services::ServedSystem system = systems::find_system(GetParam().system).value();
  for (const bool ddio : {false, true}) {
    CrashOptions options;
    options.setup.model = {PersistenceDomain::dmp, ddio};
    options.setup.correct = true;
    options.recoveries = 2;
    options.stride = 3;
    options.fails.kind = GetParam().failure;
    options.fails.servers = 1;
    const CrashResult result = explore_crashes(system, failing_testbed(), options);
    EXPECT_GE(result.strongest(), system.info.level)
        << result[Condition::durable].first_loss << result[Condition::ordered].first_loss;
    EXPECT_GT(result.crash_points, 200U);
  }
}

INSTANTIATE_TEST_SUITE_P(All, OneNode, testing::ValuesIn(node_cases()), [](const auto& test) {
  std::string name = test.param.system + "_" + std::string(to_string(test.param.failure));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

INSTANTIATE_TEST_SUITE_P(All, Failing, testing::ValuesIn(failure_cases()), [](const auto& test) {
  std::string name = test.param.system + "_" + std::string(to_string(test.param.failure));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// --- a service that is small enough to be wrong in a known way -----------------------------------

constexpr std::uint64_t kPuts = 6;

// What is wrong with the server of a register.
enum class Fault : std::uint8_t {
  none,                    // it stores, never flushes, and answers
  answers_before_storing,  // a death in between loses what was acknowledged
  opens_a_new_register,    // what its predecessor has stored is gone
  serves_one_client_only,  // nobody can use it once its client is gone
};

// One client puts 1, 2, 3, ... into a register of a word.
class RegisterScenario final : public CrashScenario {
 public:
  explicit RegisterScenario(Fault fault) : fault_(fault) {}

  std::uint32_t clients() const override { return 1; }
  std::uint64_t planned_calls(std::size_t) const override { return 0; }  // it is not generated

  Task<> serve(Thread& thread) override {
    auto region = thread.node.open_region("register");
    if (region != nullptr && fault_ == Fault::opens_a_new_register) {
      region.reset();
      thread.node.remove_region("register");
    }
    if (region == nullptr) {
      region = thread.node.create_region("register", kCacheLine, pmem::Medium::pm);
    }
    const auto memory = thread.endpoint.register_memory(*region, Access::remote_all);
    const auto buffer = thread.node.create_region("buffer", kCacheLine, pmem::Medium::dram);
    const auto buffers = thread.endpoint.register_memory(*buffer, Access::local);
    for (int clients = 0; clients < 1 || fault_ != Fault::serves_one_client_only; ++clients) {
      const auto receives = thread.endpoint.create_receive_queue(1);
      receives->post(buffers.local(0, kWord), 0);
      fabric::CompletionQueue completions;
      const auto request = co_await thread.endpoint.next_connection();
      const auto client =
          request->accept({receives.get(), &completions}, rpc::bytes_of(memory.key));
      for (;;) {
        const fabric::ReceiveCompletion put = co_await completions.next();
        if (put.status != fabric::Status::success) break;
        const std::uint64_t value = buffer->load(0);
        receives->post(buffers.local(0, kWord), 0);
        const auto answer = buffers.local(kWord, kWord);
        if (fault_ != Fault::answers_before_storing) region->store(0, value);
        static_cast<void>(co_await client->send(answer));
        if (fault_ == Fault::answers_before_storing) region->store(0, value);
      }
    }
    for (;;) co_await sleep_for(std::chrono::seconds(1));
  }

  Task<> use(Thread& thread, std::uint32_t) override {
    const auto buffer = thread.node.create_region("buffer", kCacheLine, pmem::Medium::dram);
    const auto buffers = thread.endpoint.register_memory(*buffer, Access::local);
    const auto receives = thread.endpoint.create_receive_queue(1);
    fabric::CompletionQueue completions;
    const auto made = co_await rpc::connect(thread.endpoint, "the register", {0, 0},
                                            {receives.get(), &completions}, {});
    for (std::uint64_t value = 1; value <= kPuts; ++value) {
      receives->post(buffers.local(kWord, kWord), 0);
      buffer->store(0, value);
      static_cast<void>(co_await made.queue_pair->send(buffers.local(0, kWord)));
      if ((co_await completions.next()).status != fabric::Status::success) co_return;
      acknowledged_ = value;
    }
  }

  Task<> inspect(Thread& thread) override {
    while (clients_at_work() > 0) co_await sleep_for(Microseconds(20));
    const auto buffer = thread.node.create_region("buffer", kCacheLine, pmem::Medium::dram);
    const auto buffers = thread.endpoint.register_memory(*buffer, Access::local);
    const auto made = co_await rpc::connect(thread.endpoint, "the register", {0, 0}, {}, {});
    const auto key = rpc::read_message<fabric::RemoteKey>(made.private_data);
    const auto read = co_await made.queue_pair->read(buffers.local(0, kWord), {key, 0});
    if (read.status != fabric::Status::success) note_problem("the register cannot be read");
    found_ = buffer->load(0);
  }

  Verdict judge(std::span<const services::ServerFailure> failures,
                const services::ToJudge&) const override {
    Verdict verdict;
    const bool lost = found_ && *found_ != acknowledged_ && *found_ != acknowledged_ + 1;
    const services::Loss loss{!problem().empty() ? problem()
                              : lost             ? "an acknowledged put is lost"
                                                 : ""};
    verdict.set(Condition::durable, loss);
    verdict.set(Condition::acknowledged, loss);
    if (failures.empty()) verdict.break_all(loss);
    return verdict;
  }

 protected:
  void snapshot_observations() override {}  // only the inspector finds anything afterwards
  void restore_observations() override { found_.reset(); }
  std::string observations_since_snapshot() const override {
    return found_ ? std::to_string(*found_) : "";
  }

 private:
  const Fault fault_;
  std::uint64_t acknowledged_ = 0;
  std::optional<std::uint64_t> found_;
};

class RegisterService final : public services::Service {
 public:
  explicit RegisterService(Fault fault) : fault_(fault) {}
  std::string_view name() const override { return "register"; }
  std::string_view what() const override { return "a word is put"; }
  std::vector<services::SystemInfo> systems() const override { return {info()}; }
  std::string_view acknowledged() const override { return "acknowledged puts"; }
  std::string_view observed() const override { return "what reads returned"; }
  std::span<const services::CrashSchedule> schedules() const override { return kSchedules; }
  services::CrashHistory crash_history(std::string_view, const CrashSetup&,
                                       const services::CrashSchedule&) const override {
    return [fault = fault_] { return std::make_unique<RegisterScenario>(fault); };
  }
  // Its history is always the same.
  std::unique_ptr<services::CrashScenario> generated_scenario(std::string_view, const CrashSetup&,
                                                              pmem::Tape&,
                                                              std::uint32_t) const override {
    return std::make_unique<RegisterScenario>(fault_);
  }
  static services::SystemInfo info() {
    services::SystemInfo info;
    info.name = "register";
    return info;
  }

 private:
  static constexpr services::CrashSchedule kSchedules[] = {{"puts", "a client puts"}};
  Fault fault_;
};

// Whether nothing is lost.
bool survives(Fault fault, FailureKind failure) {
  const RegisterService service(fault);
  CrashOptions options{.setup = {.model = kDmp}};
  options.fails.kind = failure;
  const CrashResult result =
      explore_crashes({&service, RegisterService::info()}, failing_testbed(), options);
  EXPECT_EQ(result[Condition::durable].held, result[Condition::durable].first_loss.empty());
  return result[Condition::durable].held;
}

TEST(Failures, CachesOutliveAProcessAndNotThePower) {
  EXPECT_TRUE(survives(Fault::none, FailureKind::process));
  EXPECT_TRUE(survives(Fault::none, FailureKind::client));
  EXPECT_TRUE(survives(Fault::none, FailureKind::connection));
  EXPECT_FALSE(survives(Fault::none, FailureKind::power));
}

TEST(Failures, ADeathShowsWhatIsAcknowledgedTooEarlyOrForgotten) {
  EXPECT_FALSE(survives(Fault::answers_before_storing, FailureKind::process));
  EXPECT_TRUE(survives(Fault::answers_before_storing, FailureKind::client));
  EXPECT_FALSE(survives(Fault::opens_a_new_register, FailureKind::process));
}

TEST(Failures, TheEndOfAClientShowsWhatTheServerDoesNotGiveBack) {
  EXPECT_FALSE(survives(Fault::serves_one_client_only, FailureKind::client));
  EXPECT_FALSE(survives(Fault::serves_one_client_only, FailureKind::connection));
}

}  // namespace
}  // namespace perdura::explore::test
