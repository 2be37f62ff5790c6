// A process on any file system does what the kernel does, as it does on the specification
// (tests/services/fs/posix/kernel_test.cc): no rule of POSIX is lost between the two.
#include <gtest/gtest.h>

#include <algorithm>

#include "systems/registry/registry.h"
#include "tests/services/fs/posix/comparison.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"

namespace perdura::fs::test {
namespace {

class FsKernelConformance : public testing::TestWithParam<const FsSystem*> {};

TEST_P(FsKernelConformance, HasTheSameResultsErrorsAndTrees) {
  Ground ground;
  if (!ground.why_not().empty()) GTEST_SKIP() << ground.why_not();
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const FsSystem& system = *GetParam();
  // Those of a client wait for servers. What they do is compared with the model, on which processes
  // do what the kernel does (conformance_test.cc).
  if (system.cluster != nullptr) GTEST_SKIP() << "a comparison needs operations that do not wait";
  for (std::uint32_t number = 0; number < 4 && !HasFailure(); ++number) {
    const auto platform = perdura::test::make_platform("shm", 1);
    const auto body = [&](Thread& thread) -> Task<> {
      const FsConfig config{.size = 256 * MiB, .now = Comparison::kBegin};
      co_await system.make(thread, "home", config);
      auto files = co_await system.mount(thread, "home", config);
      auto session = files->attach(thread);
      ground.in_directory([&](const std::string& directory) {
        Comparison comparison(directory, *session);
        EXPECT_EQ(
            comparison.apply_random(seed * 1'000'003 + number, ground.drawn(number % 2 != 0), 2000),
            "")
            << "sequence " << number << " of seed " << seed;
        comparison.leave();
      });
      const std::string audit = co_await files->audit();
      EXPECT_EQ(audit, "");
      session.reset();
      co_await files->unmount();
    };
    platform->start(0, 0, CompletionMode::polling, body);
    platform->run();
  }
}

std::string name_of_system(const testing::TestParamInfo<const FsSystem*>& info) {
  std::string name(info.param->info.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<const FsSystem*> systems_of_table() {
  std::vector<const FsSystem*> all;
  for (const FsSystem& system : systems::fs_systems()) all.push_back(&system);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, FsKernelConformance, testing::ValuesIn(systems_of_table()),
                         name_of_system);

}  // namespace
}  // namespace perdura::fs::test
