// The log under power failures: what the paper's methods keep, and that wrong ones are found out.
#include <gtest/gtest.h>

#include "explore/crash.h"
#include "explore/explored.h"
#include "methods/method.h"
#include "methods/proof.h"
#include "services/log/service.h"
#include "systems/filemr_log/filemr_log.h"
#include "systems/registry/registry.h"
#include "systems/remote_log/system.h"
#include "tests/support/platforms.h"

namespace perdura::explore::test {
namespace {

using pmem::PersistenceDomain;
using pmem::PersistenceModel;
using services::Condition;
using services::GuaranteeLevel;

const sim::Profile& connectx3() {
  static const sim::Profile profile =
      sim::load_profile(perdura::test::profile_path("erda-connectx3"));
  return profile;
}

TEST(LogCrashes, LeaveEveryAcknowledgedRecordByTheMethodsOfThePaper) {
  const services::ServedSystem log = systems::find_system("remote-log").value();
  for (const ExploredSetting& setting : explored_settings(log.info)) {
    for (const PersistenceModel& model : explored_models()) {
      CrashOptions options{.setup = {.model = model}, .recoveries = 3};
      options.setup.parameters = setting.parameters;
      options.setup.correct = setting.correct;
      if (!refusal(log.info, options.setup, connectx3().nic).empty()) continue;
      const CrashResult result = explore_crashes(log, connectx3(), options);
      EXPECT_TRUE(result[Condition::durable].held)
          << explored_name(log.info, setting) << " on " << explored_name(model) << "\n"
          << result[Condition::durable].first_loss;
      EXPECT_GT(result.crash_points, 50U);
      EXPECT_GE(result.events.at("laps of the log"), 3U);
    }
  }
}

// By a method that is right on another server than this one.
CrashResult by_method_for(const PersistenceModel& other, const PersistenceModel& model) {
  static PersistenceModel believed;
  believed = other;
  services::LogSystem wrong = systems::kRemoteLog;
  wrong.published = [](const PersistenceModel&, const GivenParameters&) {
    return methods::method_of_paper({believed, pmem::Medium::dram}, methods::Update::single,
                                    methods::Carrier::write);
  };
  const services::LogService service(std::span(&wrong, 1));
  return explore_crashes({&service, wrong.info}, connectx3(),
                         {.setup = {.model = model}, .recoveries = 3});
}

TEST(LogCrashes, FindAMethodThatIsForAnotherServer) {
  const PersistenceModel wsp{PersistenceDomain::wsp, true};
  const PersistenceModel mhp{PersistenceDomain::mhp, true};
  const PersistenceModel dmp{PersistenceDomain::dmp, true};
  EXPECT_EQ(by_method_for(wsp, wsp).strongest(), GuaranteeLevel::durable);
  EXPECT_EQ(by_method_for(mhp, mhp).strongest(), GuaranteeLevel::durable);
  // A WRITE that has completed may still be in the device.
  EXPECT_LT(by_method_for(wsp, mhp).strongest(), GuaranteeLevel::durable);
  // A FLUSH for visibility leaves it in a cache that is lost.
  const CrashResult lost = by_method_for(mhp, dmp);
  EXPECT_LT(lost.strongest(), GuaranteeLevel::durable);
  EXPECT_FALSE(lost[Condition::acknowledged].held);
  for (const std::string_view part :
       {"crash point ", "append of ", "the server fails at", "=> impossible: read of "}) {
    EXPECT_NE(lost[Condition::acknowledged].first_loss.find(part), std::string::npos)
        << part << " is missing in:\n"
        << lost[Condition::acknowledged].first_loss;
  }
}

// An APPEND, and what follows it, leaves as much as a WRITE does and the same steps after it. Where
// that is not enough, the last record is lost and no other.
TEST(FileMrLogCrashes, LeaveWhatTheSameMethodLeavesOfAWrite) {
  const services::ServedSystem log = systems::find_system("filemr-log").value();
  std::size_t durable = 0;
  std::size_t explored = 0;
  for (const ExploredSetting& setting : explored_settings(log.info)) {
    for (const PersistenceModel& model : explored_models()) {
      CrashOptions options{.setup = {.model = model}, .recoveries = 3};
      options.setup.parameters = setting.parameters;
      options.setup.correct = setting.correct;
      if (!refusal(log.info, options.setup, connectx3().nic).empty()) continue;
      const bool is_right = setting.correct ||
                            methods::prove(systems::kFileMrLog.published(model, setting.parameters),
                                           {model, pmem::Medium::dram}, {.to_the_end = false})
                                    .correctness == methods::Correctness::right;
      const CrashResult result = explore_crashes(log, connectx3(), options);
      EXPECT_EQ(result.strongest(), is_right ? GuaranteeLevel::durable : GuaranteeLevel::ordered)
          << explored_name(log.info, setting) << " on " << explored_name(model) << "\n"
          << result[Condition::durable].first_loss;
      EXPECT_GT(result.crash_points, 40U);
      EXPECT_GE(result.events.at("laps of the log"), 3U);
      ++explored;
      durable += is_right ? 1 : 0;
    }
  }
  EXPECT_GT(durable, 0U);
  EXPECT_LT(durable, explored);
}

// The server's CPU has made a record durable before it answers, on every kind of server.
TEST(RpcLogCrashes, LeaveEveryAcknowledgedRecord) {
  const services::ServedSystem log = systems::find_system("rpc-log").value();
  for (const ExploredSetting& setting : explored_settings(log.info)) {
    for (const PersistenceModel& model : explored_models()) {
      CrashOptions options{.setup = {.model = model}, .recoveries = 3};
      options.setup.parameters = setting.parameters;
      const CrashResult result = explore_crashes(log, connectx3(), options);
      EXPECT_EQ(result.strongest(), GuaranteeLevel::durable)
          << explored_name(log.info, setting) << " on " << explored_name(model) << "\n"
          << result[Condition::durable].first_loss;
      EXPECT_GT(result.crash_points, 50U);
      EXPECT_GE(result.events.at("laps of the log"), 3U);
    }
  }
}

}  // namespace
}  // namespace perdura::explore::test
