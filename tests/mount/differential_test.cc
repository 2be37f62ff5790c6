// The same system calls, at random and of several users, on ext4 and through a mount: equal results
// and errors, equal trees.
//
//   PERDURA_FS_OPERATIONS=100000 build/.../perdura_mount_test --gtest_filter='*Differential*'
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <functional>
#include <future>
#include <set>
#include <thread>

#include "tests/mount/mounted.h"
#include "tests/services/fs/posix/difference.h"
#include "tests/services/fs/posix/sides.h"
#include "tests/support/seed.h"

namespace perdura::test {
namespace {

using fs::test::Drawn;
using fs::test::KernelSide;
using fs::test::Known;
using fs::test::Operation;
using fs::test::Outcome;
using fs::test::Picture;
using fs::test::Side;

constexpr std::int64_t kOperations = 10'000;
constexpr std::int64_t kSequence = 1'000;  // then anew, or trees grow without bounds
constexpr std::int64_t kBetweenPictures = 20;
constexpr std::int64_t kBetweenContents = 200;

// Of a thread of its own, which has another root.
class OnThread final : public Side {
  // Before those whose results follow from its own.
  template <class Function>
  auto call(const Function& function) {
    std::promise<decltype(function(std::declval<Side&>()))> result;
    work_.set_value([&](Side& side) { result.set_value(function(side)); });
    return result.get_future().get();
  }

 public:
  explicit OnThread(std::string directory)
      : thread_([this, of = std::move(directory)] {
          KernelSide side(of);
          while (true) {
            auto work = work_.get_future().get();
            if (!work) break;
            work_ = {};
            work(side);
          }
        }) {}
  ~OnThread() override {
    work_.set_value({});
    thread_.join();
  }
  OnThread(const OnThread&) = delete;
  OnThread& operator=(const OnThread&) = delete;

  Outcome apply(const Operation& operation) override {
    return call([&](Side& side) { return side.apply(operation); });
  }
  Picture picture() override {
    return call([](Side& side) { return side.picture(); });
  }
  bool is_lost() override {
    return call([](Side& side) { return side.is_lost(); });
  }
  std::vector<fs::Extent> data_of(const std::string& path) override {
    return call([&](Side& side) { return side.data_of(path); });
  }
  std::string bytes_of(const std::string& path, Bytes offset, Bytes length) override {
    return call([&](Side& side) { return side.bytes_of(path, offset, length); });
  }

 private:
  std::promise<std::function<void(Side&)>> work_;
  std::thread thread_;
};

std::string run_sequence(const std::string& mounted, const std::string& reference,
                         std::uint32_t seed, const Drawn& drawn) {
  std::mt19937 random(seed);
  OnThread found(mounted);
  OnThread expected(reference);
  Known known{.paths = {"/"}, .slots = {}};
  std::set<std::size_t> open_slots;
  for (std::int64_t i = 1; i <= kSequence; ++i) {
    known.slots.assign(open_slots.begin(), open_slots.end());
    Operation operation = expected.is_lost()
                              ? Operation{.kind = Operation::Kind::chdir, .path = "/"}
                              : draw(random, drawn, known);
    // A pipe would wait for its other end.
    if (operation.kind == Operation::Kind::open) operation.flags |= O_NONBLOCK;
    const Outcome is = found.apply(operation);
    const Outcome shall = expected.apply(operation);
    if (operation.kind == Operation::Kind::open && shall.error == 0) {
      open_slots.insert(operation.slot);
    } else if (operation.kind == Operation::Kind::close) {
      open_slots.erase(operation.slot);
    }
    std::string difference;
    if (is != shall) difference = text_of(is) + " instead of " + text_of(shall);
    if (difference.empty()) difference = compare_access_list(found, expected, operation);
    if (difference.empty() && i % kBetweenPictures == 0) {
      const Picture now = expected.picture();
      known.paths.clear();
      for (const auto& [path, seen] : now) known.paths.push_back(path);
      difference = compare_pictures(found.picture(), now);
      if (i % kBetweenContents == 0) {
        if (difference.empty()) difference = compare_data(found, expected, now);
        if (difference.empty()) difference = compare_attributes(found, expected, now);
      }
    }
    if (!difference.empty()) {
      return "operation " + std::to_string(i) + ", " + text_of(operation) + ": " + difference;
    }
  }
  return "";
}

class FsDifferentialTest : public testing::TestWithParam<std::string> {};

TEST_P(FsDifferentialTest, EqualsExt4InResultsAndTrees) {
  if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  const char* const given = std::getenv("PERDURA_FS_OPERATIONS");
  const std::int64_t operations = given == nullptr ? kOperations : std::atoll(given);
  const std::uint32_t seed = random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Reference reference;
  const Mounted mounted(GetParam());
  for (std::int64_t done = 0; done < operations && !HasFailure(); done += kSequence) {
    const auto number = static_cast<std::uint32_t>(done / kSequence);
    const Drawn drawn{.allocation = number % 2 != 0,
                      .zero_range = reference.is_ext4(),
                      .others_remove_lists = reference.is_ext4(),
                      // Of a file with set-user-ID, that is refused to others than its owner. The
                      // kernel asks FUSE for it in the same words as before a write, which is not.
                      .owner_of_nothing = false,
                      .largest = 1LL << 30};
    const std::string name = std::to_string(number);
    for (const auto& path : {mounted.path() / name, reference.path() / name}) {
      std::filesystem::create_directory(path);
      ASSERT_EQ(chmod(path.c_str(), 0755), 0);
    }
    EXPECT_EQ(run_sequence(mounted.path() / name, reference.path() / name, seed + number, drawn),
              "")
        << "sequence " << number;
    std::filesystem::remove_all(mounted.path() / name);
    std::filesystem::remove_all(reference.path() / name);
  }
}

INSTANTIATE_TEST_SUITE_P(Systems, FsDifferentialTest, testing::ValuesIn(mounted_systems()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace perdura::test
