// A get is up to four READs, and the table changes in between. Here every get of every key is tried
// with every of its READs after every store of the server: it finds what was there at some moment
// of it, whatever moves meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <set>

#include "tests/systems/bucket_hash/explored_index.h"
#include "tests/systems/level/mistakes.h"
#include "tests/systems/level/support.h"

namespace perdura::systems::level::test {
namespace {

using perdura::test::Mistake;
using perdura::test::MistakenIndex;
using perdura::test::no_mistake;
using perdura::test::Readers;
using perdura::test::run_random;

// What memory holds, and the table, after each store.
struct Moment {
  Image memory;
  std::uint32_t bottom = 0;
};

// A key's gets with the first READ at any moment, and each of the others at the same or a later
// one.
class AllGets {
 public:
  AllGets(const Geometry& geometry, const std::vector<Moment>& moments, std::string key)
      : geometry_(geometry), moments_(moments), key_(std::move(key)) {}

  // Of clients that know the table as it was at most `lag` resizes before.
  void run(std::uint32_t lag) {
    for (std::size_t begin = 0; begin < moments_.size(); ++begin) {
      const std::uint32_t newest = moments_[begin].bottom;
      for (std::uint32_t bottom = newest - std::min(lag, newest); bottom <= newest; ++bottom) {
        seen_.clear();
        go_on(ClientGet(geometry_, bottom, key_), begin);
      }
    }
  }

  // Whatever any of them found.
  const std::set<std::optional<std::string>>& found() const { return found_; }
  std::uint64_t gets() const { return gets_; }

 private:
  void go_on(const ClientGet& get, std::size_t from) {
    if (get.ended()) {
      ++gets_;
      found_.insert(get.value());
      return;
    }
    for (std::size_t i = from; i < moments_.size(); ++i) {
      if (!seen_.insert(std::tuple_cat(get.position(), std::tuple(i))).second) continue;
      ClientGet next = get;
      if (next.read(moments_[i].memory)) go_on(next, i);
    }
  }

  const Geometry& geometry_;
  const std::vector<Moment>& moments_;
  std::string key_;
  std::set<std::tuple<std::uint32_t, Side, bool, std::size_t>> seen_;
  std::set<std::optional<std::string>> found_;
  std::uint64_t gets_ = 0;
};

enum class Direction : std::uint8_t { forwards, backwards };

// A table of which each operation's moments are looked at by all gets, also as if they came one
// after the other backwards.
class Observed {
 public:
  explicit Observed(const Geometry& geometry, const Mistake& mistake = {},
                    Direction direction = Direction::forwards)
      : geometry_(geometry),
        direction_(direction),
        live_(Image(geometry.size()), {.domain = pmem::PersistenceDomain::mhp, .ddio = false}),
        index_(live_, geometry, Readers::one_sided, mistake) {
    live_.memory->after_step = [this] { note(); };
  }

  void put(const std::string& key, const std::string& value) {
    begin();
    const auto before = value_in(contents_, key);
    if (index_.put(item_of(key, value))) contents_[key] = value;
    check(key, before);
  }
  void erase(const std::string& key) {
    begin();
    const auto before = value_in(contents_, key);
    if (index_.erase(item_of(key))) contents_.erase(key);
    check(key, before);
  }

  const std::string& wrong() const { return wrong_; }
  std::uint64_t gets() const { return gets_; }
  const Index& index() const { return index_.index(); }

 private:
  void begin() {
    moments_.clear();
    note();
  }
  void note() {
    const Image& memory = live_.memory->visible();
    if (!moments_.empty() && moments_.back().memory == memory) return;
    moments_.push_back({memory, index().bottom()});
  }
  void check(const std::string& changed, const std::optional<std::string>& before) {
    note();
    live_.memory->settle();
    if (direction_ == Direction::backwards) std::ranges::reverse(moments_);
    // A resize has more moments than gets can be tried at; a movement has all.
    constexpr std::size_t kMost = 80;
    if (moments_.size() > kMost) thin_out(kMost);
    std::set<std::string> keys{changed};
    for (const auto& [key, value] : contents_) keys.insert(key);
    for (const std::string& key : keys) {
      AllGets gets(geometry_, moments_, key);
      gets.run(1);
      gets_ += gets.gets();
      std::set<std::optional<std::string>> allowed{value_in(contents_, key)};
      if (key == changed) allowed.insert(before);
      for (const auto& found : gets.found()) {
        if (allowed.contains(found)) continue;
        wrong_ = fmt::format("{} is found as {}", key, found.value_or("nothing"));
      }
    }
  }
  // Evenly, with another beginning each time.
  void thin_out(std::size_t most) {
    std::vector<Moment> some;
    const std::size_t stride = moments_.size() / most + 1;
    for (std::size_t i = thinned_++ % stride; i < moments_.size(); i += stride) {
      some.push_back(std::move(moments_[i]));
    }
    moments_ = std::move(some);
  }

  Geometry geometry_;
  Direction direction_;
  ExploredRegion live_;
  MistakenIndex<LevelHash> index_;
  Contents contents_;
  std::vector<Moment> moments_;
  std::size_t thinned_ = 0;
  std::string wrong_;
  std::uint64_t gets_ = 0;
};

TEST(LevelReaders, MissNothingWhateverMoves) {
  std::uint64_t movements = 0;
  std::uint64_t overwritten = 0;
  std::uint64_t resizes = 0;
  std::uint64_t gets = 0;
  for (const Geometry& geometry : {Geometry{2, 0}, Geometry{2, 2}, Geometry{4, 0}}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(testing::Message() << geometry.buckets << " buckets, seed " << seed);
      Observed observed(geometry);
      run_random<LevelHash>(observed, seed, 100 * static_cast<int>(geometry.buckets));
      ASSERT_EQ(observed.wrong(), "");
      movements += observed.index().movements();
      overwritten += observed.index().overwrites();
      resizes += observed.index().bottom();
      gets += observed.gets();
    }
  }
  std::cout << movements << " movements, " << overwritten << " overwritten slots, " << resizes
            << " resizes, " << gets << " gets\n";
  EXPECT_GT(movements, 10U);
  EXPECT_GT(overwritten, 100U);
  EXPECT_GE(resizes, 5U);
}

// --- the test notices wrong orders ---------------------------------------------------------------

bool noticed(const Mistake& mistake, const Geometry& geometry) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Observed observed(geometry, mistake);
    run_random<LevelHash>(observed, seed, 150);
    if (!observed.wrong().empty()) return true;
  }
  return false;
}

TEST(LevelReaders, WrongOrdersAreNoticed) {
  EXPECT_FALSE(noticed(no_mistake, {2, 1}));
  EXPECT_TRUE(noticed(moves_by_deleting_first, {2, 0}));
  EXPECT_TRUE(noticed(does_not_seal, {2, 1}));
  EXPECT_TRUE(noticed(seals_too_late, {2, 1}));
}

// As published: from either bucket to the other one. Seen backwards, a movement to the second
// bucket is one to the first. Nothing else is wrong backwards.
TEST(LevelReaders, AMovementBackIsNoticed) {
  std::uint64_t noticed = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Observed observed({2, 0}, {}, Direction::backwards);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 150 && observed.wrong().empty(); ++i) {
      const std::uint64_t movements = observed.index().movements();
      const std::string key = numbered_key(random() % 30);
      if (random() % 4 == 0) {
        observed.erase(key);
      } else {
        observed.put(key, numbered_value(random() % 1000));
      }
      if (observed.wrong().empty()) continue;
      ++noticed;
      EXPECT_EQ(observed.index().movements(), movements + 1) << observed.wrong();
    }
  }
  EXPECT_GT(noticed, 0U);
}

}  // namespace
}  // namespace perdura::systems::level::test
