// READs and WRITEs by filekey while the file changes, in every order of the steps of both.
//
// The device of the server knows the layout of a bound file, and accesses it without asking. A
// change of the layout takes several steps: nova commits it, the device learns of it, what the
// device has begun ends, and the blocks that were given up go to others. An access may come between
// any two of them. Whichever they are, it reaches no block that others have, and sees all of the
// change or nothing of it.
#include <fmt/format.h>

#include <cstring>

#include "tests/support/orders.h"
#include "tests/support/platforms.h"
#include "tests/systems/novad/owner.h"

namespace perdura::systems::novad::test {
namespace {

using perdura::test::TwoActivities;

using Effect = std::function<Task<>(Owner&)>;

// A change of the file, and what it does to its contents.
struct Change {
  std::string_view name;
  Effect make;
  void (*apply)(Contents&);
  // The device needs several steps for it, between which READs are refused.
  bool has_several_extents = false;
};

constexpr auto kAccess = TwoActivities::kFirst;
constexpr auto kChange = TwoActivities::kSecond;

constexpr Bytes kMiddle = fs::kBlock + 100;

std::vector<std::byte> letters(std::size_t size, char letter) {
  return std::vector<std::byte>(size, static_cast<std::byte>(letter));
}

void put(Contents& contents, Bytes at, Bytes length, int what) {
  if (contents.size() < at + length) contents.resize(at + length, kHole);
  std::fill_n(contents.begin() + static_cast<std::ptrdiff_t>(at), length, what);
}

// The rest of the last block reads as zeros, if that is written.
void grow(Contents& contents, Bytes size) {
  const Bytes end = contents.size();
  const bool has_block = end % fs::kBlock != 0 && contents.back() != kHole;
  contents.resize(size, kHole);
  const Bytes of_block = std::min(size, round_up(end, fs::kBlock)) - end;
  if (has_block) put(contents, end, of_block, 0);
}

Effect writes(Bytes at, Bytes length) {
  return [=](Owner& owner) -> Task<> {
    const auto data = letters(length, kChanged);
    EXPECT_TRUE((co_await owner.files().write(owner.file(), at, data, {})).has_value());
  };
}
Effect truncates(Bytes size) {
  return [=](Owner& owner) -> Task<> {
    EXPECT_TRUE((co_await owner.files().truncate(owner.file(), size, {})).has_value());
  };
}
Effect allocates(fs::AllocationMode mode, Bytes at, Bytes length) {
  return [=](Owner& owner) -> Task<> {
    const auto made = co_await owner.files().allocate(owner.file(), mode, at, length, {});
    EXPECT_TRUE(made.has_value());
  };
}
Task<> remove(Owner& owner) {
  EXPECT_TRUE((co_await owner.files().unlink(fs::kRootInode, "file", {})).has_value());
  co_await owner.give_up();
}
// As many entries of the log as make nova collect what is old in it.
Task<> fill_the_log(Owner& owner) {
  for (int i = 0; i < 200; ++i) {
    const fs::AttributeChange touched{.modified = fs::Timestamp{i}};
    EXPECT_TRUE((co_await owner.files().change(owner.file(), touched)).has_value());
  }
}

const std::vector<Change>& changes() {
  using Mode = fs::AllocationMode;
  static const std::vector<Change> all{
      {"a write of all of it", writes(0, kSize), [](Contents& c) { put(c, 0, kSize, kChanged); }},
      {"a write in the middle", writes(kMiddle, fs::kBlock),
       [](Contents& c) {
         // Blocks are written as a whole, with zeros where there was no data.
         std::replace(c.begin() + fs::kBlock, c.end(), kHole, 0);
         put(c, kMiddle, fs::kBlock, kChanged);
       }},
      {"a write at the end", writes(kSize, 2 * fs::kBlock),
       [](Contents& c) { put(c, kSize, 2 * fs::kBlock, kChanged); }},
      {"a truncation within a block", truncates(kMiddle), [](Contents& c) { c.resize(kMiddle); }},
      {"a truncation to nothing", truncates(0), [](Contents& c) { c.clear(); }},
      {"a longer size", truncates(5 * fs::kBlock), [](Contents& c) { grow(c, 5 * fs::kBlock); }},
      {"a hole", allocates(Mode::punch, fs::kBlock, fs::kBlock),
       [](Contents& c) { put(c, fs::kBlock, fs::kBlock, kHole); }},
      {"a range of zeros", allocates(Mode::zero, fs::kBlock, fs::kBlock),
       [](Contents& c) { put(c, fs::kBlock, fs::kBlock, kHole); }},
      {"zeros in parts of two blocks", allocates(Mode::zero, fs::kBlock - 50, 200),
       [](Contents& c) {
         // A part of a block that has no data yet is zeros anyway.
         put(c, fs::kBlock - 50, 50, kZeroed);
         if (c[fs::kBlock] != kHole) put(c, fs::kBlock, 150, kZeroed);
       },
       true},
      {"space after the end", allocates(Mode::extend, kSize, 2 * fs::kBlock),
       [](Contents& c) { grow(c, kSize + 2 * fs::kBlock); }},
      {"collecting its log", fill_the_log, [](Contents&) {}},
      {"an unlink", remove, [](Contents& c) { c.clear(); }},
      {"a rename over it", [](Owner& owner) { return owner.replace(); },
       [](Contents& c) { c.clear(); }}};
  return all;
}

struct Access {
  bool is_write = false;
  Bytes at = 0;
  std::uint32_t length = 0;
};

// They are of the whole file, of one block, and of parts of two.
std::array<Access, 3> accesses(bool are_writes) {
  return {{{are_writes, 0, static_cast<std::uint32_t>(kSize)},
           {are_writes, fs::kBlock, static_cast<std::uint32_t>(fs::kBlock)},
           {are_writes, 100, static_cast<std::uint32_t>(fs::kBlock)}}};
}

// The histories of one access and one change: the first and the second activity.
class Histories {
 public:
  Histories(const sim::Profile& profile, Shape shape, const Change& change, const Access& access)
      : shape_(shape),
        change_(change),
        access_(access),
        platform_(profile, 2),
        two_(platform_),
        barrier_(platform_.create_barrier(2)) {}

  void run(int between, std::uint32_t deviations) {
    platform_.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      thread.executor.spawn(accept(thread));
      co_await two_.each(between, deviations, [&] { return history(thread); });
      is_over_ = true;
      co_await barrier_->arrive_and_wait();
    });
    platform_.start(1, 0, CompletionMode::polling, [&](Thread& thread) { return access(thread); });
    platform_.run();
  }
  const TwoActivities& tried() const { return two_; }
  std::uint64_t refused() const { return refused_; }
  // The histories in which others got blocks.
  std::uint64_t reused() const { return reused_; }

 private:
  // --- the server

  Task<> accept(Thread& thread) {
    for (;;) {
      auto request = co_await thread.endpoint.next_connection();
      peers_.push_back(request->accept({}, {}));
    }
  }

  Task<> history(Thread& thread) {
    owner_ = co_await Owner::open(thread);
    co_await owner_->make_file(shape_, access_.is_write);
    key_ = owner_->key();
    co_await barrier_->arrive_and_wait();  // the client connects
    co_await barrier_->arrive_and_wait();
    co_await two_.perform(kChange, [this] { return owner_->execute(change_.make); });
    co_await barrier_->arrive_and_wait();
    two_.performed();
    // An acknowledged WRITE whose connection has broken may still be on its way to memory.
    co_await sleep_for(Microseconds(100));
    co_await check();
    co_await owner_->remove_file();
    EXPECT_EQ(owner_->audit(), "") << where();
    owner_.reset();
  }

  Task<> check() {
    const Contents before = contents_of(shape_, access_.is_write);
    Contents after = before;
    if (two_.does(kChange)) change_.apply(after);
    EXPECT_TRUE(owner_->others_have_theirs()) << "others have lost their data: " << where();
    if (owner_->blocks_of_others() > 0) ++reused_;
    if (!two_.does(kAccess)) co_return;
    if (!is_done_) ++refused_;
    if (access_.is_write) {
      const std::string text = co_await owner_->text();
      check_write(before, after, text);
    } else {
      check_read(before, after);
    }
  }

  bool can_be_read(const Contents& contents) const {
    const Bytes end = access_.at + access_.length;
    if (end > contents.size()) return false;
    const auto from = contents.begin() + static_cast<std::ptrdiff_t>(access_.at);
    return std::find(from, from + access_.length, kHole) == from + access_.length;
  }
  bool is_read(const Contents& contents) const {
    return can_be_read(contents) &&
           std::equal(found_.begin(), found_.end(),
                      contents.begin() + static_cast<std::ptrdiff_t>(access_.at),
                      [](char one, int other) { return one == letter_of(other); });
  }

  // A READ that begins after the answer to the change sees it; one that has ended before does not.
  void check_read(const Contents& before, const Contents& after) {
    std::vector<const Contents*> possible;
    if (!two_.precedes(kChange, kAccess)) possible.push_back(&before);
    if (!two_.precedes(kAccess, kChange)) possible.push_back(&after);
    if (is_done_) {
      const bool is_one = std::any_of(possible.begin(), possible.end(),
                                      [this](const Contents* one) { return is_read(*one); });
      EXPECT_TRUE(is_one) << "a READ saw " << summary(found_) << ": " << where();
    } else {
      const bool may_fail = change_.has_several_extents ||
                            std::any_of(possible.begin(), possible.end(),
                                        [this](const Contents* one) { return !can_be_read(*one); });
      EXPECT_TRUE(may_fail) << "a READ was refused that could always be done: " << where();
    }
  }

  // Where both write to the same bytes, either may be there, unless one came after the other.
  void check_write(const Contents& before, const Contents& after, const std::string& text) {
    EXPECT_EQ(text.size(), after.size()) << where();
    const bool may_be_over = !two_.precedes(kAccess, kChange);
    const bool may_be_under = !two_.precedes(kChange, kAccess);
    for (Bytes at = 0; at < std::min(text.size(), after.size()); ++at) {
      const char changed = letter_of(after[at]);
      const bool is_in_range = at >= access_.at && at < access_.at + access_.length;
      const bool both = at >= before.size() || before[at] != after[at];
      bool is_right = text[at] == changed;
      if (is_done_ && is_in_range) {
        is_right =
            (is_right && both && may_be_under) || (text[at] == kWritten && (!both || may_be_over));
      }
      if (is_right) continue;
      ADD_FAILURE() << "byte " << at << " is " << text[at] << ": " << where();
      return;
    }
  }

  static std::string summary(const std::string& bytes) {
    std::string runs;
    for (std::size_t begin = 0; begin < bytes.size();) {
      const std::size_t end = std::min(bytes.find_first_not_of(bytes[begin], begin), bytes.size());
      runs += fmt::format("{}{} of {:#x}", runs.empty() ? "" : ", ", end - begin,
                          static_cast<int>(bytes[begin]));
      begin = end;
    }
    return runs;
  }

  std::string where() const {
    return fmt::format("a {} of {} bytes at {} of a file {}, and {}; {}",
                       access_.is_write ? "WRITE" : "READ", access_.length, access_.at,
                       to_string(shape_), change_.name, two_.text());
  }

  // --- the client

  Task<> access(Thread& thread) {
    const auto memory =
        thread.node.create_region("memory", round_up(kSize, kCacheLine), pmem::Medium::dram);
    const auto local = thread.endpoint.register_memory(*memory, fabric::Access::local);
    std::unique_ptr<fabric::QueuePair> peer;
    for (;;) {
      co_await barrier_->arrive_and_wait();
      if (is_over_) co_return;
      if (peer == nullptr || !peer->connected()) {
        auto connection = co_await thread.endpoint.connect({0, 0}, {}, {});
        peer = std::move(connection.queue_pair);
      }
      memory->write(0, letters(kSize, access_.is_write ? kWritten : '?'));
      co_await yield();
      two_.prepared(thread.executor.now() + Microseconds(10));
      co_await barrier_->arrive_and_wait();
      co_await two_.perform(kAccess, [&] { return access_once(*peer, local); });
      co_await barrier_->arrive_and_wait();
    }
  }

  // A READ tells that a WRITE has arrived, if it can be done.
  Task<> access_once(fabric::QueuePair& peer, const fabric::MemoryRegion& local) {
    const fabric::RemoteAddress there{key_, access_.at};
    if (!access_.is_write) {
      const auto read = co_await peer.read(local.local(0, access_.length), there);
      is_done_ = static_cast<bool>(read);
      found_.resize(access_.length);
      local.region->read(0, std::as_writable_bytes(std::span(found_.data(), found_.size())));
      co_return;
    }
    const auto written = co_await peer.write(local.local(0, access_.length), there);
    is_done_ = static_cast<bool>(written);
    if (!is_done_) co_return;
    const auto arrived = co_await peer.read(local.local(0, 1), there);
    static_cast<void>(arrived);
  }

  const Shape shape_;
  const Change& change_;
  const Access access_;
  sim::SimPlatform platform_;
  TwoActivities two_;
  std::unique_ptr<Platform::Barrier> barrier_;
  std::unique_ptr<Owner> owner_;
  std::vector<std::unique_ptr<fabric::QueuePair>> peers_;
  bool is_over_ = false;
  std::uint64_t refused_ = 0;
  std::uint64_t reused_ = 0;
  // The history under way.
  fabric::RemoteKey key_;
  bool is_done_ = false;
  std::string found_;
};

// Tries all, and says how many.
void try_all(const sim::Profile& profile, bool are_writes, int between, std::uint32_t deviations) {
  std::uint64_t orders = 0;
  std::uint64_t schedules = 0;
  std::uint64_t refused = 0;
  std::uint64_t reused = 0;
  for (const Shape shape : kShapes) {
    for (const Change& change : changes()) {
      for (const Access& access : accesses(are_writes)) {
        Histories histories(profile, shape, change, access);
        histories.run(between, deviations);
        orders += histories.tried().orders();
        schedules += histories.tried().schedules();
        refused += histories.refused();
        reused += histories.reused();
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GT(refused, 0U);
  EXPECT_LT(refused, orders + schedules);
  EXPECT_GT(reused, 0U);
  fmt::print(
      "{} orders, and {} schedules with up to {} late steps; {} accesses were refused, "
      "and others got blocks {} times\n",
      orders, schedules, deviations, refused, reused);
}

sim::Profile slow_changes() {
  return sim::load_profile(perdura::test::profile_path("optane-connectx3"));
}

TEST(NovadOrders, AReadSeesAllOfAChangeOrNothingOfIt) {
  try_all(perdura::test::erda_testbed(), false, 1, 1);
}

TEST(NovadOrders, AWriteInPlaceReachesTheFileOnly) {
  try_all(perdura::test::erda_testbed(), true, 1, 1);
}

class NovadManyOrders : public testing::TestWithParam<bool> {};

TEST_P(NovadManyOrders, OnDevicesWhoseLayoutChangesSlowly) {
  try_all(slow_changes(), GetParam(), 7, 1);
}

TEST_P(NovadManyOrders, WhereTwoStepsAreLate) {
  try_all(perdura::test::erda_testbed(), GetParam(), 15, 2);
}

INSTANTIATE_TEST_SUITE_P(Soak, NovadManyOrders, testing::Bool(),
                         [](const auto& one) { return one.param ? "writes" : "reads"; });

}  // namespace
}  // namespace perdura::systems::novad::test
