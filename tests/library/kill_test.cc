// A log of the library's, whose client and server are killed by SIGKILL again and again: what
// append() returned for is there, once, in order.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <random>

#include "perdura.h"
#include "tests/support/wait_until.h"

namespace perdura {
namespace {

// What the processes tell each other; it outlives each of them.
struct Shared {
  std::atomic<std::uint64_t> acknowledged{0};  // the last record that append() returned for
  std::atomic<std::uint64_t> applied{0};       // the last record that the server was given
  std::atomic<std::uint64_t> wrong{0};         // records that were not what they should be
  std::atomic<std::uint64_t> wrong_number{0};
};

class KillOfTheLibrary : public testing::TestWithParam<Configuration> {
 protected:
  KillOfTheLibrary()
      : shared_(new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared) {
    options_.job = "library-kill-" + std::to_string(getpid());
    options_.directory = "/dev/shm/perdura-" + options_.job + "-pm";
    options_.configuration = GetParam();
    options_.records = 64;
    std::filesystem::create_directories(options_.directory);
  }
  ~KillOfTheLibrary() override {
    for (const pid_t process : {server_, client_}) {
      if (process > 0) end(process);
    }
    std::filesystem::remove_all(options_.directory);
    munmap(shared_, sizeof(Shared));
  }

  static std::string record_of(std::uint64_t number) {
    return std::string(number % 500, 'x') + std::to_string(number);
  }

  template <class Body>
  static pid_t start(const Body& body) {
    const pid_t process = fork();
    if (process != 0) return process;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      body();
    } catch (const std::exception& error) {
      fprintf(stderr, "%s\n", error.what());
    }
    _exit(1);
  }
  void start_server() {
    server_ = start([this] {
      LogServer server(options_, [this](std::uint64_t number, std::string_view record) {
        if (record != record_of(number)) ++shared_->wrong;
        // After a failure the last ones may come again; none is left out.
        if (number > shared_->applied + 1) ++shared_->wrong_number;
        if (number > shared_->applied) shared_->applied = number;
      });
      server.run();
    });
  }
  void start_client() {
    client_ = start([this] {
      LogClient log(options_);
      for (;;) {
        const std::uint64_t next = log.tail() + 1;
        if (log.append(record_of(next)) != next) ++shared_->wrong_number;
        shared_->acknowledged = next;
      }
    });
  }
  static void end(pid_t process) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  // False if they get nowhere.
  bool progress(std::uint64_t records) {
    const std::uint64_t goal = shared_->acknowledged + records;
    return test::wait_until([&] { return shared_->acknowledged >= goal; });
  }

  Shared* shared_;
  LogOptions options_;
  pid_t server_ = 0;
  pid_t client_ = 0;
};

TEST_P(KillOfTheLibrary, EndsEitherSideAgainAndAgain) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  start_server();
  start_client();
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(progress(20 + random() % 200)) << "after kill " << i;
    if (random() % 2 == 0) {
      end(server_);
      start_server();
    } else {
      end(client_);
      start_client();
    }
  }
  ASSERT_TRUE(progress(1));
  end(client_);
  client_ = 0;
  // What is in the log is applied; all that was acknowledged is.
  const std::uint64_t acknowledged = shared_->acknowledged;
  EXPECT_TRUE(test::wait_until([&] { return shared_->applied >= acknowledged; }))
      << "acknowledged up to " << acknowledged << ", applied up to " << shared_->applied;
  EXPECT_EQ(shared_->wrong, 0U);
  EXPECT_EQ(shared_->wrong_number, 0U);
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
}  // namespace perdura
