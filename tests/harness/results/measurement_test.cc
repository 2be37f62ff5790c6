#include "harness/results/measurement.h"

#include <gtest/gtest.h>

#include "platform/base/error.h"

namespace perdura::harness {
namespace {

const OperationKind kRead{0, "read"};
const OperationKind kErase{5, "delete"};

Measurement sample_measurement() {
  Measurement measurement;
  KindMeasurement& reads = measurement.kinds[kRead];
  reads.operations = 3;
  reads.errors = 1;
  reads.not_found = 1;
  reads.latency.record(100);
  reads.latency.record(5'000'000);
  reads.response.emplace().record(200);
  measurement.arrivals = Microseconds(9);
  measurement.harness_per_operation = Nanoseconds(60);
  measurement.kinds[kErase].operations = 2;
  measurement.torn_reads = 4;
  measurement.one_sided_reads = 11;
  measurement.space = {4096, 1024};
  measurement.elapsed = Microseconds(10);
  measurement.at_work = {{7, Time(Microseconds(1)), Time(Microseconds(9)), 4}};
  measurement.roles["server"].cpu = Nanoseconds(5);
  measurement.roles["client"].cpu = Nanoseconds(6);
  measurement.declared["retries_per_op"] = 1.5;
  measurement.roles["server"].writes.local_store.field_bits = 33;
  measurement.roles["server"].writes.one_sided.media_bytes = 256;
  measurement.timeline.interval = Microseconds(1);
  measurement.timeline.operations = {{Time(Microseconds(3)), 100}};
  measurement.noise = {.load_average = 0.25, .waiting = 2};
  measurement.judge(Verdict::invalid, "client 0: strange");
  measurement.method = "write-flush";
  measurement.guarantee = "atomic";
  measurement.operations_checked = 7;
  measurement.evidence = {5, 6, 7};
  return measurement;
}

TEST(Measurement, ReachesAnotherProcessWhole) {
  const Measurement sent = sample_measurement();
  const Measurement received = Measurement::deserialize(sent.serialize());
  EXPECT_EQ(received.serialize(), sent.serialize());
  EXPECT_EQ(received.kinds.at(kRead).latency, sent.kinds.at(kRead).latency);
  EXPECT_EQ(received.kinds.at(kRead).response, sent.kinds.at(kRead).response);
  EXPECT_FALSE(received.kinds.at(kErase).response);
  EXPECT_EQ(received.arrivals, Microseconds(9));
  EXPECT_EQ(received.at_work, sent.at_work);
  EXPECT_EQ(received.harness_per_operation, Nanoseconds(60));
  EXPECT_EQ(received.roles, sent.roles);
  EXPECT_EQ(received.declared, sent.declared);
  EXPECT_EQ(received.timeline.operations.size(), 1U);
  EXPECT_EQ(received.noise, sent.noise);
  EXPECT_EQ(received.reason, "client 0: strange");
  EXPECT_EQ(received.method, "write-flush");
  EXPECT_EQ(received.guarantee, "atomic");
  EXPECT_EQ(received.verdict, Verdict::invalid);
  EXPECT_EQ(received.operations_checked, 7U);
  EXPECT_EQ(received.evidence, sent.evidence);
}

TEST(Measurement, ThatWasCutOffIsRefused) {
  auto words = sample_measurement().serialize();
  words.resize(words.size() - 1);
  EXPECT_THROW(Measurement::deserialize(words), PlatformError);
}

TEST(Measurement, SharesAddUpAndTheLongestIntervalCounts) {
  Measurement whole = sample_measurement();
  Measurement other = sample_measurement();
  other.elapsed = Microseconds(12);
  other.judge(Verdict::failed, "client 1: full");
  other.arrivals = Microseconds(11);
  other.harness_per_operation = Nanoseconds(70);
  whole.merge(other);
  EXPECT_EQ(whole.operations(), 10U);
  EXPECT_EQ(whole.kinds.at(kRead).response->count(), 2U);
  EXPECT_FALSE(whole.kinds.at(kErase).response);
  EXPECT_EQ(whole.arrivals, Microseconds(11));
  EXPECT_EQ(whole.harness_per_operation, Nanoseconds(70));
  EXPECT_EQ(whole.kinds.at(kRead).latency.count(), 4U);
  EXPECT_EQ(whole.torn_reads, 8U);
  EXPECT_EQ(whole.one_sided_reads, 22U);
  EXPECT_EQ(whole.space.used_percent(), 75.0);
  EXPECT_EQ(whole.operations_checked, 14U);
  EXPECT_EQ(whole.evidence.size(), 6U);
  EXPECT_EQ(whole.timeline.operations.size(), 2U);
  EXPECT_EQ(whole.elapsed, Microseconds(12));
  EXPECT_DOUBLE_EQ(whole.throughput().value(), 1e6) << "both did four operations in 8 us";
  EXPECT_DOUBLE_EQ(whole.tail_percent(), 20) << "8 of 10 ended meanwhile";
  EXPECT_EQ(whole.costs_of("client").cpu, Nanoseconds(12));
  EXPECT_EQ(whole.writes().total().field_bits, 66U);
  EXPECT_EQ(whole.declared.at("retries_per_op"), 3);
  EXPECT_EQ(whole.verdict, Verdict::failed);
  EXPECT_EQ(whole.reason, "client 1: full");
}

// The server's process has no client, and knows nothing of what its operations cost.
TEST(Measurement, WhatOneShareDoesNotKnowAnotherDoes) {
  Measurement server;
  server.merge(sample_measurement());
  EXPECT_EQ(server.harness_per_operation, Nanoseconds(60));
  EXPECT_EQ(server.kinds.at(kRead).response->count(), 1U);
  Measurement client = sample_measurement();
  client.merge(Measurement{});
  EXPECT_EQ(client.harness_per_operation, Nanoseconds(60));
  EXPECT_EQ(client.kinds.at(kRead).response->count(), 1U);
}

TEST(Measurement, IsSaturatedBelow95PercentOfTheRateThatWasDue) {
  Measurement measurement;
  measurement.elapsed = Microseconds(1000);
  EXPECT_EQ(measurement.saturated(), std::nullopt) << "a closed loop";
  measurement.arrivals = Microseconds(951);
  EXPECT_EQ(measurement.saturated(), false);
  measurement.arrivals = Microseconds(949);
  EXPECT_EQ(measurement.saturated(), true);
}

TEST(Measurement, ATailIsLongFromATenthOfTheOperationsOn) {
  Measurement measurement;
  EXPECT_FALSE(measurement.has_long_tail()) << "nothing was done";
  measurement.kinds[kRead].operations = 100;
  EXPECT_TRUE(measurement.has_long_tail()) << "clients never were all at work";
  for (const std::uint64_t within : {100, 90, 89}) {
    measurement.at_work = {{0, Time(), Time(Microseconds(1)), within}};
    EXPECT_EQ(measurement.has_long_tail(), within < 90) << within;
  }
}

TEST(Measurement, TheFirstReasonForTheWorstVerdictStays) {
  Measurement measurement;
  measurement.judge(Verdict::invalid, "first");
  measurement.judge(Verdict::invalid, "second");
  EXPECT_EQ(measurement.reason, "first");
  measurement.judge(Verdict::failed, "third");
  measurement.judge(Verdict::invalid, "fourth");
  EXPECT_EQ(measurement.reason, "third");
}

}  // namespace
}  // namespace perdura::harness
