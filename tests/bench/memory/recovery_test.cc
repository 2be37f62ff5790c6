// Failures within a point: whoever takes over ends with the same region as the others, what a
// recovery takes is in the results, and one that does not end is no measurement.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/memory/failure.h"
#include "bench/memory/sync_points.h"
#include "tests/bench/memory/points.h"

namespace perdura::bench {
namespace {

using harness::Measurement;
using harness::Point;
using harness::Verdict;

std::string failure_is(std::string_view failure) {
  return fmt::format("workload.failure=\"{}\"", failure);
}

Measurement measure_failure(std::string_view system, std::string_view failure,
                            const std::string& platform = "sim",
                            std::vector<std::string> changes = {}) {
  changes.push_back(system_is(system));
  changes.push_back(failure_is(failure));
  return tested().measure(plan(changes).front(), platform);
}

struct Case {
  std::string_view system;
  std::string_view failure;
};

// All systems that have copies, and all failures that have somebody who takes over.
constexpr Case kCases[] = {
    {"m-sync", "primary-restarts"},      {"m-sync", "mirror-restarts"},
    {"m-sync", "mirror-replaced"},       {"m-async", "mirror-restarts"},
    {"m-syncflush", "mirror-replaced"},  {"m-syncsec", "primary-restarts"},
    {"m-syncsec", "mirror-restarts"},    {"m-syncsec", "mirror-replaced"},
    {"m-syncsec", "backup-restarts"},    {"e-chain", "mirror-replaced"},
    {"e-chain", "backup-restarts"},      {"e-broadcast", "mirror-replaced"},
    {"e-broadcast", "backup-replaced"},  {"m-syncsec", "backup-replaced"},
    {"e-chain", "backup-replaced"},      {"m-syncseceth", "mirror-replaced"},
    {"m-syncseceth", "backup-replaced"}, {"m-syncseceth", "mirror-restarts"},
    {"m-syncseceth", "backup-restarts"}, {"m-syncdisk", "mirror-restarts"},
    {"m-syncdisk", "mirror-replaced"},   {"m-syncdisk", "primary-restarts"},
};

class RecoveryOn : public testing::TestWithParam<std::string> {};

TEST_P(RecoveryOn, LeavesEqualCopiesAndSaysWhatItTook) {
  for (const auto& [system, failure] : kCases) {
    SCOPED_TRACE(fmt::format("{} {}", system, failure));
    // Where threads are real there are more of them than cores, and those that poll would wait for
    // each other's time slices.
    const std::string_view completion = GetParam() == "sim" ? "polling" : "event";
    const Measurement result = measure_failure(
        system, failure, GetParam(), {fmt::format("workload.completion=\"{}\"", completion)});
    EXPECT_EQ(result.usage_error, "");
    EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
    EXPECT_TRUE(result.evidence.empty());
    EXPECT_GE(result.operations(), 300U);
    EXPECT_EQ(result.kinds.at(kSync).errors, 0U);
    ASSERT_TRUE(result.declared.contains("recovery_us"));
    EXPECT_GT(result.declared.at("recovery_open_us"), 0);
    EXPECT_GT(result.declared.at("recovery_us"), result.declared.at("recovery_open_us"));
    const bool is_copied = failure.ends_with("replaced") || failure == "primary-restarts";
    EXPECT_EQ(result.declared.contains("recovery_us_per_mb"), is_copied);
    if (is_copied) {
      EXPECT_EQ(result.declared.at("recovery_bytes"), 65536 + kCacheLine);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Platforms, RecoveryOn, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& one) { return one.param; });

// With what makes it durable, copies are not equal by chance of what was in caches.
TEST(Recovery, LeavesEqualCopiesAlsoWhereTheyAreDurable) {
  const std::vector<std::string> server{
      "workload.domain=\"dmp\"", "workload.ddio=\"on\"", "workload.receive_buffers=\"pm\"",
      "workload.transport=\"ib\"", "workload.persistence=\"correct\""};
  for (const char* failure : {"primary-restarts", "mirror-restarts", "mirror-replaced"}) {
    const Measurement result = measure_failure("m-syncsec", failure, "sim", server);
    EXPECT_EQ(result.verdict, Verdict::valid) << failure << ": " << result.reason;
    EXPECT_NE(result.method, "");
  }
}

double copy_time(std::vector<std::string> changes) {
  changes.emplace_back("systems.m-sync.log_slots=16");
  const Measurement result =
      measure_failure("m-sync", "mirror-replaced", "sim", std::move(changes));
  EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
  return result.declared.at("recovery_us");
}

// A new mirror is given the region by one request after the other.
TEST(Recovery, CopyingTakesTheTimeOfItsRequests) {
  const double small = copy_time({"workload.region_size=1048576"});
  EXPECT_GT(copy_time({"workload.region_size=4194304"}), 3 * small);
  EXPECT_LT(copy_time({"workload.region_size=1048576", "systems.m-sync.slot_bytes=65536"}), small);
}

// Section 3.1.3: with M-syncflush nothing is safe only on the mirror.
TEST(Recovery, FlushesWhatOnlyALostMirrorHad) {
  const auto vulnerable = [](const char* system) {
    const Measurement result = measure_failure(system, "mirror-lost");
    EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
    EXPECT_FALSE(result.declared.contains("recovery_us"));
    return result.declared.at("vulnerable_us");
  };
  EXPECT_GT(vulnerable("m-sync"), 10 * vulnerable("m-syncflush"));
}

// The primary gives up a mirror that does not answer at once, so nobody gives the region to the
// next one.
TEST(Recovery, OneThatDoesNotEndIsInvalid) {
  const Measurement result =
      measure_failure("m-sync", "mirror-replaced", "sim",
                      {"systems.m-sync.resends=0", "systems.m-sync.timeout_us=100"});
  EXPECT_EQ(result.verdict, Verdict::invalid);
  EXPECT_EQ(result.reason, "the mirror does not become complete after its failure");
  EXPECT_FALSE(result.declared.contains("recovery_us"));
}

TEST(Recovery, HasColumnsOnlyWhereSomethingFails) {
  const auto has = [](const std::vector<std::string>& changes, std::string_view column) {
    return schema_of(driver(), plan(changes)).in_points(column);
  };
  const std::vector<std::string> both{"matrix.failure=[\"none\", \"mirror-restarts\"]"};
  for (const char* column : {"failure", "recovery_us", "recovery_open_us", "recovery_bytes"}) {
    EXPECT_FALSE(has({}, column)) << column;
    EXPECT_FALSE(has({failure_is("none")}, column)) << column;
    EXPECT_TRUE(has({failure_is("mirror-lost")}, column)) << column;
    EXPECT_TRUE(has(both, column)) << column;
  }
}

TEST(Recovery, RefusesFailuresThatCannotBe) {
  EXPECT_NE(tested()
                .refusal({system_is("s-unreplicated"), failure_is("mirror-restarts")})
                .find("failure = \"mirror-restarts\": s-unreplicated has no copies"),
            std::string::npos);
  EXPECT_NE(tested()
                .refusal({failure_is("backup-restarts")})
                .find("failure = \"backup-restarts\": m-sync has no backup"),
            std::string::npos);
  EXPECT_NE(tested()
                .refusal({failure_is("mirror-lost"), "workload.threads=2"})
                .find("a recovery is measured with threads = 1"),
            std::string::npos);
  for (const char* system : {"m-syncsec", "m-syncseceth", "e-chain"}) {
    EXPECT_NE(tested()
                  .refusal({system_is(system), failure_is("mirror-lost")})
                  .find("get nothing without the mirror"),
              std::string::npos);
  }
  EXPECT_EQ(tested().refusal({system_is("e-broadcast"), failure_is("mirror-lost")}), "no error");
  EXPECT_NE(tested().refusal({failure_is("fire")}).find("failure"), std::string::npos);
}

}  // namespace
}  // namespace perdura::bench
