// The same system calls, at random and of several users, on ext4 and through a mount: equal results
// and errors, equal trees. Of a system with servers, through two mounts in turn.
//
//   PERDURA_FS_OPERATIONS=100000 build/.../perdura_mount_test --gtest_filter='*Differential*'
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <thread>

#include "tests/mount/two_mounts.h"
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

// Two mounts of one file system in turn. An open file is used through the mount where it was opened,
// and both have the same working directory.
class InTurn final : public Side {
 public:
  InTurn(const std::string& a, const std::string& b) : a_(a), b_(b) {}

  Outcome apply(const Operation& operation) override {
    using enum Operation::Kind;
    std::size_t& of_slot = slots_[operation.slot];
    switch (operation.kind) {
      case chdir:
      case umask:
        side(0).apply(operation);
        return side(1).apply(operation);
      case open: {
        Operation closing{.kind = close, .user = operation.user, .slot = operation.slot};
        const std::size_t turn = next();
        const Outcome opened = side(turn).apply(operation);
        if (opened.error != 0) return opened;
        if (of_slot != turn) side(of_slot).apply(closing);
        of_slot = turn;
        return opened;
      }
      case dup: {
        const std::size_t copy = (operation.slot + 1) % fs::test::kSlots;
        Operation closing{.kind = close, .user = operation.user, .slot = copy};
        const Outcome made = side(of_slot).apply(operation);
        if (made.error != 0) return made;
        if (slots_[copy] != of_slot) side(slots_[copy]).apply(closing);
        slots_[copy] = of_slot;
        return made;
      }
      case rename: {
        // As mv(1) does. Otherwise the kernel would not find a directory that the other mount has
        // moved to another one: it cannot move its own entry of it during a rename.
        Side& mount = side(next());
        for (const std::string& path : {operation.path, operation.other}) {
          mount.apply({.kind = stat, .user = operation.user, .path = path, .follow = false});
        }
        return mount.apply(operation);
      }
      default:
        return side(is_of_open_file(operation) ? of_slot : next()).apply(operation);
    }
  }
  Picture picture() override { return side(next()).picture(); }
  bool is_lost() override { return side(next()).is_lost(); }
  std::vector<fs::Extent> data_of(const std::string& path) override {
    return side(next()).data_of(path);
  }
  std::string bytes_of(const std::string& path, Bytes offset, Bytes length) override {
    return side(next()).bytes_of(path, offset, length);
  }

 private:
  static bool is_of_open_file(const Operation& operation) {
    using enum Operation::Kind;
    switch (operation.kind) {
      case close:
      case read:
      case pread:
      case write:
      case pwrite:
      case lseek:
      case seek_data:
      case ftruncate:
      case allocate:
      case fsync:
      case link_open:
      case fstat:
      case fchmod:
        return true;
      default:
        return false;
    }
  }
  std::size_t next() { return ++turns_ % 2; }
  Side& side(std::size_t number) { return number == 0 ? a_ : b_; }

  OnThread a_;
  OnThread b_;
  std::size_t turns_ = 0;
  std::array<std::size_t, fs::test::kSlots> slots_{};
};

std::string run_sequence(const std::string& a, const std::string& b, const std::string& reference,
                         std::uint32_t seed, const Drawn& drawn) {
  std::mt19937 random(seed);
  const std::unique_ptr<Side> side =
      a == b ? std::unique_ptr<Side>(new OnThread(a)) : std::make_unique<InTurn>(a, b);
  Side& found = *side;
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
    // The kernel has a pipe for each mount, so who writes finds no reader of the other mount.
    const bool is_pipe = operation.kind == Operation::Kind::mknod && S_ISFIFO(operation.mode);
    if (is_pipe && a != b) operation.mode ^= S_IFIFO ^ S_IFSOCK;
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
  const AnyMounts mounts(GetParam());
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
    for (const auto& path : {mounts.a() / name, reference.path() / name}) {
      std::filesystem::create_directory(path);
      ASSERT_EQ(chmod(path.c_str(), 0755), 0);
    }
    EXPECT_EQ(run_sequence(mounts.a() / name, mounts.b() / name, reference.path() / name,
                           seed + number, drawn),
              "")
        << "sequence " << number;
    std::filesystem::remove_all(mounts.a() / name);
    std::filesystem::remove_all(reference.path() / name);
  }
}

INSTANTIATE_TEST_SUITE_P(Systems, FsDifferentialTest, testing::ValuesIn(ways_to_mount()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace perdura::test
