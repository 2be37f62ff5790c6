// A log of the library's, whose client and server are killed by SIGKILL again and again: what
// append() returned for is there, once, in order.
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "tests/library/processes.h"
#include "tests/support/seed.h"
#include "tests/support/wait_until.h"

namespace perdura::library_test {
namespace {

// What the processes tell each other; it outlives each of them.
struct ToldAcrossKills {
  std::atomic<std::uint64_t> acknowledged{0};  // the last record that append() returned for
  std::atomic<std::uint64_t> applied{0};       // the last record that the server was given
  std::atomic<std::uint64_t> wrong{0};         // records that were not what they should be
  std::atomic<std::uint64_t> wrong_number{0};
};

class KillOfTheLibrary : public testing::TestWithParam<Configuration> {
 protected:
  static std::string record_of(std::uint64_t number) {
    return std::string(number % 500, 'x') + std::to_string(number);
  }
  void start_server() {
    server_ = Child([this] {
      LogServer server(options_, [this](std::uint64_t number, std::string_view record) {
        if (record != record_of(number)) ++told_->wrong;
        // After a failure the last ones may come again; none is left out.
        if (number > told_->applied + 1) ++told_->wrong_number;
        if (number > told_->applied) told_->applied = number;
      });
      server.run();
    });
  }
  void start_client() {
    client_ = Child([this] {
      LogClient log(options_);
      for (;;) {
        const std::uint64_t next = log.tail() + 1;
        if (log.append(record_of(next)) != next) ++told_->wrong_number;
        told_->acknowledged = next;
      }
    });
  }
  // False if they get nowhere.
  bool progress(std::uint64_t records) {
    const std::uint64_t goal = told_->acknowledged + records;
    return test::wait_until([&] { return told_->acknowledged >= goal; });
  }
  // Kills one of them and starts it again, after `least` to ten times as many records.
  void kill_one_after_the_other(int times, std::uint64_t least, std::mt19937& random) {
    for (int i = 0; i < times; ++i) {
      ASSERT_TRUE(progress(least + random() % (9 * least))) << "after kill " << i;
      if (random() % 2 == 0) {
        server_.end();
        start_server();
      } else {
        client_.end();
        start_client();
      }
    }
    ASSERT_TRUE(progress(1));
  }

  Shared<ToldAcrossKills> told_;
  TemporaryJob job_;
  LogOptions options_ = job_.with(GetParam());
  Child server_;
  Child client_;
};

TEST_P(KillOfTheLibrary, EndsEitherSideAgainAndAgain) {
  const unsigned seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  start_server();
  start_client();
  ASSERT_NO_FATAL_FAILURE(kill_one_after_the_other(30, 20, random));
  // Before either side has noticed the death of the other.
  ASSERT_NO_FATAL_FAILURE(kill_one_after_the_other(30, 1, random));
  client_.end();
  // What is in the log is applied; all that was acknowledged is.
  const std::uint64_t acknowledged = told_->acknowledged;
  EXPECT_TRUE(test::wait_until([&] { return told_->applied >= acknowledged; }))
      << "acknowledged up to " << acknowledged << ", applied up to " << told_->applied;
  EXPECT_EQ(told_->wrong, 0U);
  EXPECT_EQ(told_->wrong_number, 0U);
}

constexpr Configuration on(Domain domain, bool ddio, bool buffers_in_pm) {
  return {.domain = domain,
          .ddio = ddio,
          .receive_buffers_in_pm = buffers_in_pm,
          .transport = Transport::infiniband};
}
std::string name_of(const testing::TestParamInfo<Configuration>& cell) {
  const bool wsp = cell.param.domain == Domain::wsp;
  const std::string domain = wsp ? "wsp" : cell.param.domain == Domain::mhp ? "mhp" : "dmp";
  return domain + (*cell.param.ddio ? "_ddio" : "_no_ddio");
}
INSTANTIATE_TEST_SUITE_P(Configurations, KillOfTheLibrary,
                         testing::Values(on(Domain::dmp, true, false),
                                         on(Domain::dmp, false, false), on(Domain::mhp, true, true),
                                         on(Domain::wsp, true, true)),
                         name_of);

}  // namespace
}  // namespace perdura::library_test
