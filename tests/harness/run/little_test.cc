// Little's law: in a closed loop the clients that are at work are throughput times latency. It
// holds for whatever the system does, so what breaks it is how a point is measured.
#include <cmath>
#include <random>

#include "tests/support/seed.h"
#include "timed_run.h"

namespace perdura::bench {
namespace {

class LittleTest : public TimedRunTest {
 protected:
  void clients(std::uint64_t count, std::uint64_t operations_of_each) {
    point_.settings.set("clients", count);
    own_workload(point_).spec.operation_count = count * operations_of_each;
  }
  // Clients that throughput and latency say were at work, as a part of those that there were.
  double share_at_work(const harness::Measurement& measured) const {
    return throughput(measured) * service(measured).mean() * 1e-9 /
           static_cast<double>(point_.settings.number("clients"));
  }
};

// Where a client's operations all end within the time in which all are at work, one of each may
// still lie across its end; and those outside are at most the tail.
TEST_F(LittleTest, HoldsForAnyNumberOfClientsAndOperationsOrTheTailIsSaidToBeLong) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto up_to = [&random](double most) {  // small ones as often as large ones
    return static_cast<std::uint64_t>(
        std::exp(std::uniform_real_distribution(0.0, std::log(most + 1))(random)));
  };
  int short_tails = 0;
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t count = up_to(1000);
    const std::uint64_t each = up_to(100);
    clients(count, each);
    point_.parameters["in_parallel"] = random() % 2;
    point_.parameters["distribution"] = random() % 2;
    const harness::Measurement measured = run();
    const auto what = [&] {
      return testing::Message() << count << " clients, " << each << " operations each, in parallel "
                                << point_.parameters["in_parallel"].number() << ", distribution "
                                << point_.parameters["distribution"].number() << ", tail "
                                << measured.tail_percent() << " %";
    };
    EXPECT_EQ(measured.operations(), count * each) << what();
    if (measured.has_long_tail()) continue;
    ++short_tails;
    const double bound = measured.tail_percent() / 100 + 1 / static_cast<double>(each);
    EXPECT_NEAR(share_at_work(measured), 1, bound) << what();
  }
  EXPECT_GT(short_tails, 0);
}

// A server that is never idle serves as many a second, however many wait and however few operations
// each of them has.
TEST_F(LittleTest, ThroughputOfABusyServerDoesNotFallWithClients) {
  for (const std::uint64_t count : {1U, 10U, 100U, 1000U}) {
    for (const std::uint64_t each : {1U, 2U, 20U, 100U}) {
      clients(count, each);
      point_.roles = client_server(static_cast<NodeId>(count));  // so that all begin at once
      const harness::Measurement measured = run();
      EXPECT_NEAR(throughput(measured), 1e5, 1e5 * 1e-6) << count << " clients of " << each;
      // The first client has ended when the others still wait for their last operation.
      const double tail =
          100.0 * static_cast<double>(count - 1) / static_cast<double>(count * each);
      EXPECT_NEAR(measured.tail_percent(), tail, 1e-9) << count << " clients of " << each;
    }
  }
}

// With half of its clients gone, a system that serves each at once has half of the throughput.
TEST_F(LittleTest, AClientThatEndsEarlyEndsTheTimeInWhichThroughputIsTaken) {
  point_.parameters["in_parallel"] = 1;
  point_.parameters["distribution"] = 2;  // some operations take a hundred times as long
  clients(100, 10);
  const harness::Measurement measured = run();
  EXPECT_TRUE(measured.has_long_tail());
  const double to_the_last_end = static_cast<double>(measured.operations()) /
                                 (static_cast<double>(measured.elapsed.count()) * 1e-12);
  EXPECT_GT(throughput(measured), 2 * to_the_last_end);
}

TEST_F(LittleTest, OneClientsThroughputIsThatOfAllItsOperations) {
  point_.parameters["distribution"] = 1;
  clients(1, 1000);
  const harness::Measurement measured = run();
  EXPECT_EQ(measured.tail_percent(), 0);
  EXPECT_DOUBLE_EQ(throughput(measured),
                   1000 / (static_cast<double>(measured.elapsed.count()) * 1e-12));
}

TEST_F(LittleTest, ClientsWithoutOperationsWereNeverAllAtWork) {
  point_.settings.set("clients", 3);
  own_workload(point_).spec.operation_count = 2;
  const harness::Measurement measured = run();
  EXPECT_EQ(measured.throughput(), std::nullopt);
  EXPECT_EQ(measured.tail_percent(), 100);
}

}  // namespace
}  // namespace perdura::bench
