// APPENDs in every order of their steps and those of whatever else happens to the same file:
// another APPEND, a READ of it, and changes of its layout by its owner.
//
// An APPEND takes several steps at the device: it takes the size, finds the memory after it, places
// the data there, and stores the new size. Whichever of them something else comes between: an
// APPEND that has completed is there once, whoever reads the size finds the data before it, and no
// APPEND reaches memory that has been given to others.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "tests/support/orders.h"
#include "tests/support/platforms.h"

namespace perdura::sim::test {
namespace {

using fabric::Access;
using fabric::Extent;
using perdura::test::TwoActivities;

constexpr Bytes kPage = 4 * KiB;
constexpr Bytes kPages = 8;  // the file's
// The region: the file's pages, as many where it may be moved to, and the word with its size.
constexpr Bytes kElsewhere = kPages * kPage;
constexpr Bytes kSizeWord = 2 * kPages * kPage;
constexpr Bytes kRegion = kSizeWord + kPage;
constexpr Bytes kOld = kPage + 1000;  // bytes that the file has at first
constexpr char kOldLetter = 'a';
constexpr char kOthers = '!';

// That happens beside an APPEND.
enum class Beside : std::uint8_t {
  append,      // another client makes one
  read,        // another client READs the size, and all bytes up to it
  longer,      // the owner maps memory where there was none
  cut,         // the owner takes all memory away and starts anew with other memory
  move,        // the owner moves the last page to other memory
  deregister,  // the key ends
};
constexpr std::array kNames{"an APPEND", "a READ", "more memory",
                            "a cut",     "a move", "the end of the key"};

struct AppendCase {
  Beside beside{};
  bool is_apart = false;  // no two pages of the file adjoin in memory
  Bytes length = 0;
  Bytes second = 0;  // bytes of the other APPEND
  // The owner maps memory only when an APPEND needs it, a page at a time.
  bool is_on_demand = false;
};

std::vector<AppendCase> append_cases() {
  std::vector<AppendCase> cases;
  for (std::size_t beside = 0; beside < kNames.size(); ++beside) {
    for (const bool is_apart : {false, true}) {
      // Within a page, up to the end of one, and over three.
      for (const Bytes length : {Bytes{1000}, 2 * kPage - kOld, 2 * kPage + 500}) {
        cases.push_back({static_cast<Beside>(beside), is_apart, length, length});
        // One that is short may overtake the data of one that is long.
        if (cases.back().beside != Beside::append) continue;
        cases.push_back({Beside::append, is_apart, length, 10});
        cases.push_back({Beside::append, is_apart, length, length, true});
      }
    }
  }
  return cases;
}

std::vector<std::byte> filled(Bytes size, char letter) {
  return std::vector<std::byte>(size, static_cast<std::byte>(letter));
}

std::string text_in(const pmem::Region& region, Bytes at, Bytes length) {
  std::string text(length, '\0');
  region.read(at, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

// A client's connection, and memory with one letter.
struct Peer {
  std::unique_ptr<pmem::Region> memory;
  fabric::MemoryRegion local;
  std::unique_ptr<fabric::QueuePair> queue_pair;
  char letter = 0;
};

// An APPEND is the first activity, what happens beside it the second.
class Appends {
 public:
  Appends(const Profile& profile, const AppendCase& one)
      : one_(one),
        platform_(with_retries(profile), 3),
        two_(platform_),
        barrier_(platform_.create_barrier(3)) {}

  void run(int between, std::uint32_t deviations) {
    platform_.start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      owner_ = &thread;
      region_ = thread.node.create_region("file", kRegion, pmem::Medium::pm);
      size_ = thread.endpoint.register_memory(*region_, kSizeWord, kWord, Access::remote_read);
      thread.executor.spawn(accept(thread));
      co_await two_.each(between, deviations, [this] { return history(); });
      is_over_ = true;
      co_await barrier_->arrive_and_wait();
    });
    for (const NodeId node : {1, 2}) {
      platform_.start(node, 0, CompletionMode::polling,
                      [this](Thread& thread) { return client(thread); });
    }
    platform_.run();
  }
  const TwoActivities& tried() const { return two_; }

 private:
  // An APPEND that waits for ever would never end.
  static Profile with_retries(Profile profile) {
    profile.retry.rnr_retries = 6;  // 7 stands for no end
    return profile;
  }
  static constexpr auto kAppend = TwoActivities::kFirst;
  static constexpr auto kBeside = TwoActivities::kSecond;

  // --- the owner

  Task<> accept(Thread& thread) {
    for (;;) {
      auto request = co_await thread.endpoint.next_connection();
      connections_.push_back(request->accept({}, {}));
    }
  }

  // Where a page is. Those that are apart are in the opposite order.
  Bytes place_of(Bytes page) const { return (one_.is_apart ? kPages - 1 - page : page) * kPage; }
  bool is_of_owner() const { return one_.beside > Beside::read; }

  Task<> history() {
    region_->write(0, filled(kSizeWord, '?'));
    region_->store(kSizeWord, kOld);
    extents_.clear();
    // Without the memory of a third page two of the APPENDs have to wait.
    const Bytes mapped = one_.beside == Beside::longer || one_.is_on_demand ? 2 : kPages;
    for (Bytes page = 0; page < mapped; ++page) {
      extents_.push_back({page * kPage, place_of(page), kPage});
      if (page * kPage >= kOld) continue;
      region_->write(place_of(page), filled(std::min(kPage, kOld - page * kPage), kOldLetter));
    }
    file_ = owner_->endpoint.register_extents(*region_, extents_, Access::remote_all);
    faults_.emplace_back();
    owner_->endpoint.allow_appends(file_, kSizeWord, faults_.back());
    others_.clear();
    if (one_.is_on_demand) owner_->executor.spawn(map_on_demand(faults_.back()));
    co_await yield();
    co_await barrier_->arrive_and_wait();  // the clients connect
    co_await barrier_->arrive_and_wait();
    two_.prepared(owner_->executor.now() + Microseconds(10));
    co_await barrier_->arrive_and_wait();
    if (is_of_owner()) co_await two_.perform(kBeside, [this] { return change(); });
    // The clients learn that all has been placed; an APPEND without memory would wait for ever.
    if (one_.beside == Beside::longer && !two_.does(kBeside)) co_await map_more();
    co_await barrier_->arrive_and_wait();
    two_.performed();
    check();
    if (one_.beside != Beside::deregister) owner_->endpoint.deregister_memory(file_);
  }

  Task<> change() {
    switch (one_.beside) {
      case Beside::longer:
        return map_more();
      case Beside::cut:
        return cut();
      case Beside::move:
        return move();
      default:
        return end_key();
    }
  }

  Task<> map(const Extent& extent) {
    extents_.push_back(extent);
    return owner_->endpoint.map_extent(file_, extent);
  }
  Task<> map_more() {
    for (Bytes page = 2; page < kPages; ++page) {
      co_await map({page * kPage, place_of(page), kPage});
    }
  }
  Task<> map_on_demand(fabric::RangeFaults& faults) {
    for (Bytes page = 2; page < kPages; ++page) {
      co_await faults.next();
      co_await map({page * kPage, place_of(page), kPage});
    }
  }
  Task<> cut() {
    co_await owner_->endpoint.unmap_extents(file_, 0, kPages * kPage);
    region_->store(kSizeWord, 0);
    give_to_others(0, kPages * kPage);
    extents_.clear();
    for (Bytes page = 0; page < kPages; ++page) {
      co_await map({page * kPage, kElsewhere + place_of(page), kPage});
    }
  }
  // The page in which the file ends.
  Task<> move() {
    const Bytes page = kOld / kPage;
    co_await owner_->endpoint.unmap_extents(file_, page * kPage, kPage);
    std::vector<std::byte> bytes(kPage);
    region_->read(place_of(page), bytes);
    region_->write(kElsewhere, bytes);
    give_to_others(place_of(page), kPage);
    std::erase_if(extents_, [&](const Extent& each) { return each.at == page * kPage; });
    co_await map({page * kPage, kElsewhere, kPage});
  }
  Task<> end_key() {
    co_await owner_->endpoint.unmap_extents(file_, 0, kPages * kPage);
    owner_->endpoint.deregister_memory(file_);
    // The file stays; what it has lost are pages that it does not use.
    const Bytes size = region_->load(kSizeWord);
    for (Bytes page = (size + kPage - 1) / kPage; page < kPages; ++page) {
      give_to_others(place_of(page), kPage);
    }
  }

  void give_to_others(Bytes at, Bytes length) {
    others_.emplace_back(*region_, at, length, kOthers);
  }

  // --- what must hold

  void check() {
    for (const perdura::test::TakenMemory& each : others_) {
      EXPECT_TRUE(each.is_intact()) << "others have lost their data: " << where();
    }
    const std::string found = contents();
    std::vector<std::string> possible;
    const std::string old(kOld, kOldLetter);
    const std::string first = two_.does(kAppend) && done_[0] ? std::string(one_.length, 'A') : "";
    const bool is_cut = one_.beside == Beside::cut && two_.does(kBeside);
    const bool has_second = one_.beside == Beside::append && two_.does(kBeside);
    const std::string second = has_second ? std::string(one_.second, 'B') : "";
    if (is_cut) {
      if (!two_.precedes(kAppend, kBeside)) possible.push_back(first);
      if (!two_.precedes(kBeside, kAppend)) possible.emplace_back();
    } else {
      if (!two_.precedes(kBeside, kAppend)) possible.push_back(old + first + second);
      if (!two_.precedes(kAppend, kBeside)) possible.push_back(old + second + first);
      if (!has_second) possible.push_back(old + first);
    }
    EXPECT_TRUE(std::find(possible.begin(), possible.end(), found) != possible.end())
        << "the file has " << found.size() << " bytes: " << where();
    check_completions(found);
  }

  void check_completions(const std::string& found) const {
    const bool has_key = one_.beside != Beside::deregister || !two_.does(kBeside);
    EXPECT_TRUE(done_[0] || !has_key || !two_.does(kAppend)) << "an APPEND failed: " << where();
    const bool is_cut = one_.beside == Beside::cut && two_.does(kBeside);
    for (const std::size_t i : {0, 1}) {
      const bool has_appended =
          i == 0 ? two_.does(kAppend) : one_.beside == Beside::append && two_.does(kBeside);
      if (!has_appended || !done_.at(i) || is_cut) continue;
      const Bytes length = length_of(i);
      EXPECT_EQ(found.substr(std::min(at_.at(i), found.size()), length),
                std::string(length, static_cast<char>('A' + i)))
          << "an APPEND is not where its completion says: " << where();
    }
    for (const std::size_t i : {0, 1}) {
      const bool has_read = one_.beside == Beside::append ? two_.does(i == 0 ? kAppend : kBeside)
                                                          : one_.beside == Beside::read && i == 1;
      if (!has_read || (i == 1 && !two_.does(kBeside))) continue;
      EXPECT_EQ(read_.at(i), found.substr(0, read_.at(i).size()))
          << "a size without its data: " << where();
      EXPECT_GE(read_.at(i).size(), least_read(i)) << where();
    }
  }

  // A READ after an APPEND sees it, be it of the same client or not.
  Bytes least_read(std::size_t number) const {
    if (one_.beside == Beside::append) return at_.at(number) + length_of(number);
    return two_.precedes(kAppend, kBeside) ? kOld + one_.length : kOld;
  }

  // The bytes of the file up to its size, by the owner's layout.
  std::string contents() const {
    const Bytes size = region_->load(kSizeWord);
    std::string text(size, '?');
    for (const Extent& each : extents_) {
      if (each.at >= size) continue;
      const Bytes length = std::min(each.length, size - each.at);
      text.replace(each.at, length, text_in(*region_, each.offset, length));
    }
    return text;
  }

  std::string where() const {
    return fmt::format("an APPEND of {} bytes to a file in pages that {}adjoin{}, and {}; {}",
                       one_.length, one_.is_apart ? "do not " : "",
                       one_.is_on_demand ? " and are mapped on demand" : "",
                       kNames.at(static_cast<std::size_t>(one_.beside)), two_.text());
  }

  // --- the clients

  Task<> client(Thread& thread) {
    const std::size_t number = thread.node.id() - 1;
    Peer peer;
    peer.letter = static_cast<char>('A' + number);
    peer.memory = thread.node.create_region("memory", 2 * kPages * kPage, pmem::Medium::dram);
    peer.local = thread.endpoint.register_memory(*peer.memory, Access::local);
    for (;;) {
      co_await barrier_->arrive_and_wait();
      if (is_over_) co_return;
      if (peer.queue_pair == nullptr || !peer.queue_pair->connected()) {
        auto connection = co_await thread.endpoint.connect({0, 0}, {}, {});
        peer.queue_pair = std::move(connection.queue_pair);
      }
      peer.memory->write(0, filled(kPages * kPage, peer.letter));
      co_await yield();
      co_await barrier_->arrive_and_wait();
      co_await barrier_->arrive_and_wait();
      if (number == 0) co_await two_.perform(kAppend, [&] { return append(peer, 0); });
      if (number == 1 && one_.beside == Beside::append) {
        co_await two_.perform(kBeside, [&] { return append(peer, 1); });
      }
      if (number == 1 && one_.beside == Beside::read) {
        co_await two_.perform(kBeside, [&] { return read(peer, 1); });
      }
      co_await barrier_->arrive_and_wait();
    }
  }

  Bytes length_of(std::size_t number) const { return number == 0 ? one_.length : one_.second; }

  // The READ after the APPEND tells that it has arrived.
  Task<> append(Peer& peer, std::size_t number) {
    const auto length = static_cast<std::uint32_t>(length_of(number));
    const auto done = co_await peer.queue_pair->append(peer.local.local(0, length), file_.key);
    done_.at(number) = static_cast<bool>(done);
    at_.at(number) = done.old_value;
    if (!done) co_return;
    if (one_.beside == Beside::append) co_return co_await read(peer, number);
    const auto arrived =
        co_await peer.queue_pair->read(peer.local.local(kPages * kPage, kWord), {size_.key, 0});
    EXPECT_TRUE(arrived) << where();
  }

  // The size, and then all bytes up to it.
  Task<> read(Peer& peer, std::size_t number) {
    const Bytes to = kPages * kPage;
    const auto sized = co_await peer.queue_pair->read(peer.local.local(to, kWord), {size_.key, 0});
    EXPECT_TRUE(sized) << where();
    const auto size = static_cast<std::uint32_t>(peer.memory->load(to));
    const auto done = co_await peer.queue_pair->read(peer.local.local(to, size), {file_.key, 0});
    EXPECT_TRUE(done) << where();
    read_.at(number) = text_in(*peer.memory, to, size);
  }

  const AppendCase one_;
  SimPlatform platform_;
  TwoActivities two_;
  std::unique_ptr<Platform::Barrier> barrier_;
  Thread* owner_ = nullptr;
  std::unique_ptr<pmem::Region> region_;
  fabric::MemoryRegion size_;
  std::vector<std::unique_ptr<fabric::QueuePair>> connections_;
  std::deque<fabric::RangeFaults> faults_;  // registrations refer to them
  bool is_over_ = false;
  // The history under way.
  fabric::ExtentMap file_;
  std::vector<Extent> extents_;  // the file's, by its owner
  std::deque<perdura::test::TakenMemory> others_;
  std::array<bool, 2> done_{};
  std::array<Bytes, 2> at_{};  // where the completions say that the APPENDs are
  std::array<std::string, 2> read_;
};

void try_all_appends(const Profile& profile, int between, std::uint32_t deviations) {
  std::uint64_t orders = 0;
  std::uint64_t schedules = 0;
  for (const AppendCase& one : append_cases()) {
    Appends appends(profile, one);
    appends.run(between, deviations);
    orders += appends.tried().orders();
    schedules += appends.tried().schedules();
    if (testing::Test::HasFailure()) return;
  }
  fmt::print("{} orders, and {} schedules with up to {} late steps\n", orders, schedules,
             deviations);
}

TEST(AppendOrders, AreThereOnceAndReachNobodyElse) {
  try_all_appends(perdura::test::erda_testbed(), 1, 1);
}

TEST(AppendManyOrders, OnDevicesWhoseLayoutChangesSlowly) {
  try_all_appends(load_profile(perdura::test::profile_path("optane-connectx3")), 7, 1);
}

TEST(AppendManyOrders, WhereTwoStepsAreLate) {
  try_all_appends(perdura::test::erda_testbed(), 15, 2);
}

}  // namespace
}  // namespace perdura::sim::test
