// Hash indexes of which every image of every step is recovered: after every store, flush and fence
// of their operations, each that a power failure may leave there. A `Hash` says how an index is
// used here, as in its folder's support.h; besides what index_suite.h needs:
//
//   kSettlesEachStep     of a resize: what a step may leave to recovery, as the checks, is durable
//                        before the next one, so that it does not multiply the images of the next
//   clear_undurable      clears what need not be durable, because recovery computes it anew
//   kRecoversEachCheck   images that differ only in checks are recovered one by one; otherwise one
//                        of them, as recovery computes them all
//   keys, kErasesOneIn   of random histories
#pragma once

#include <gtest/gtest.h>

#include <iostream>
#include <random>

#include "platform/base/error.h"
#include "systems/bucket_hash/readers.h"
#include "systems/flushing.h"
#include "tests/support/explored_text.h"
#include "tests/systems/bucket_hash/contents.h"
#include "tests/systems/bucket_hash/explored_memory.h"
#include "tests/systems/bucket_hash/mistaken_index.h"

namespace perdura::test {

inline constexpr std::array kModels{
    pmem::PersistenceModel{.domain = pmem::PersistenceDomain::dmp, .ddio = false},
    pmem::PersistenceModel{.domain = pmem::PersistenceDomain::mhp, .ddio = false},
};

// Whether a key of either, each asked for once, is such a one: most are of both, and images are
// many.
template <class Predicate>
bool any_key(const Contents& before, const Contents& after, const Predicate& is_such) {
  for (const auto& [key, value] : before) {
    if (is_such(key)) return true;
  }
  for (const auto& [key, value] : after) {
    if (!before.contains(key) && is_such(key)) return true;
  }
  return false;
}

// As recovered_wrong(), if nothing is so wrong that it throws.
template <class Hash>
std::string found_wrong(const Image& image, const typename Hash::Geometry& geometry,
                        const Contents& before, const Contents& after) {
  PlainMemory memory(image);
  typename Hash::Index index(memory.region(), 0, geometry);
  index.recover();
  Contents found;
  std::uint64_t items = 0;
  index.for_each([&](const systems::bucket_hash::Slot& slot) {
    found[as_text(slot.key_bytes())] = as_text(slot.value_bytes());
    ++items;
  });
  if (items != found.size()) {
    return fmt::format("of {} items only {} have different keys", items, found.size());
  }
  if (items != index.items()) {
    return fmt::format("there are {} items, but {} are counted", items, index.items());
  }
  if (found != before && found != after) return difference_text(found, before, after);
  std::string wrong;
  any_key(before, after, [&](const std::string& key) {
    const ClientRead read = Hash::read_as_client(memory.bytes(), geometry, Hash::table(index), key);
    if (read.torn) {
      wrong = fmt::format("a client reads for ever where key {} is", key);
    } else if (read.value != value_in(found, key)) {
      wrong = fmt::format("a client finds '{}' of key {}, the server '{}'",
                          read.value.value_or("nothing"), key,
                          value_in(found, key).value_or("nothing"));
    }
    return !wrong.empty();
  });
  return wrong;
}

// How an image fails to hold what it should, or "".
template <class Hash>
std::string recovered_wrong(const Image& image, const typename Hash::Geometry& geometry,
                            const Contents& before, const Contents& after) {
  try {
    return found_wrong<Hash>(image, geometry, before, after);
  } catch (const std::exception& error) {
    return error.what();
  }
}

// A function of the image in which no check occurs.
template <class Hash>
Image without_checks(Image image, const typename Hash::Geometry& geometry) {
  Hash::clear_checks(image, geometry);
  return image;
}

// Whether a power failure now leaves what is visible, and nothing else. Otherwise to declare that
// durable would hide a missing flush.
template <class Hash>
bool is_durable(const ExploredMemory& memory, const typename Hash::Geometry& geometry) {
  const auto kept = [&](Image image) {
    Hash::clear_undurable(image, geometry);
    return image;
  };
  const Image visible = kept(memory.visible());
  bool durable = true;
  memory.for_each_image(
      [&](const Image& image) { durable = durable && equal_bytes(kept(image), visible); });
  return durable;
}

// An index of which every step of every operation is explored.
template <class Hash>
class Explored {
 public:
  using Geometry = typename Hash::Geometry;
  using Index = typename Hash::Index;
  using Outcome = typename Index::Outcome;

  Explored(const Geometry& geometry, const pmem::PersistenceModel& model,
           Readers readers = Readers::one_sided, const Mistake& mistake = {})
      : geometry_(geometry),
        readers_(readers),
        live_(Image(geometry.size()), model),
        index_(live_, geometry, readers, mistake) {
    live_.memory->after_step = [this] { look(before_, after_); };
  }

  bool put(const std::string& key, const std::string& value) {
    begin(fmt::format("put {} = '{}'", key, value));
    const auto item = item_of(key, value);
    while (wrong_.empty()) {
      after_[key] = value;
      const Outcome outcome = index_.try_put(item);
      if (outcome == Outcome::done) break;
      after_ = before_;
      if (outcome == Outcome::out_of_space) break;
      resize();
    }
    return acknowledged();
  }
  bool erase(const std::string& key) {
    begin(fmt::format("delete {}", key));
    const bool known = after_.erase(key) != 0;
    if (index_.erase(item_of(key)).has_value() != known) {
      note(known ? "the key is not found" : "a key is found that is not there");
    }
    return acknowledged();
  }

  const std::string& wrong() const { return wrong_; }
  std::uint64_t images() const { return images_; }
  const Index& index() const { return index_.index(); }
  const Contents& contents() const { return before_; }

 private:
  void begin(std::string operation) {
    operation_ = std::move(operation);
    ++operations_;
  }
  void note(const std::string& what) {
    if (!wrong_.empty()) return;
    wrong_ = fmt::format("operation {}, {}; {}: {}", operations_, operation_,
                         live_.memory->step_text(), what);
  }
  bool acknowledged() {
    ended();
    before_ = after_;
    live_.memory->settle();
    return wrong_.empty();
  }
  // What has been done is durable.
  void ended() {
    look(after_, after_);
    if (wrong_.empty() && !is_durable<Hash>(*live_.memory, geometry_)) {
      note("it has ended and is not durable");
    }
  }
  void resize() {
    operation_ += ", in a resize";
    index_.begin_resize();
    do {
      step_ended();
    } while (wrong_.empty() && index_.resize_step());
    step_ended();
  }
  void step_ended() {
    ended();
    if (Hash::kSettlesEachStep) live_.memory->settle();
  }
  void look(const Contents& before, const Contents& after) {
    if (!wrong_.empty()) return;
    const Contents& least = is_read(before, after) ? after : before;
    DistinctImages seen;
    live_.memory->for_each_image([&](const Image& image) {
      if (!wrong_.empty()) return;
      if (!Hash::kRecoversEachCheck && !seen.insert(without_checks<Hash>(image, geometry_)).second)
        return;
      ++images_;
      const std::string wrong = recovered_wrong<Hash>(image, geometry_, least, after);
      if (wrong.empty()) return;
      note(fmt::format("{}: {}", lost_text(image, live_.memory->visible()), wrong));
    });
  }
  // Whether a client reads now what the operation under way changes: then it must stay.
  bool is_read(const Contents& before, const Contents& after) const {
    if (readers_ == Readers::none) return false;
    return any_key(before, after, [&](const std::string& key) {
      const auto changed = value_in(after, key);
      if (value_in(before, key) == changed) return false;
      const ClientRead read =
          Hash::read_as_client(live_.memory->visible(), geometry_, Hash::table(index()), key);
      return !read.torn && read.value == changed;
    });
  }

  Geometry geometry_;
  Readers readers_;
  ExploredRegion live_;
  MistakenIndex<Hash> index_;
  Contents before_;
  Contents after_;
  std::string operation_;
  std::uint64_t operations_ = 0;
  std::string wrong_;
  std::uint64_t images_ = 0;
};

// Until something is wrong, or for as many operations. What is tested is Explored, or has the same
// members.
template <class Hash, class Subject>
void run_random(Subject& subject, std::uint64_t seed, int operations) {
  std::mt19937_64 random(seed);
  const std::uint64_t keys = Hash::keys(subject.index());
  for (int i = 0; i < operations && subject.wrong().empty(); ++i) {
    const std::string key = numbered_key(random() % keys);
    if (random() % Hash::kErasesOneIn == 0) {
      subject.erase(key);
    } else {
      subject.put(key, numbered_value(random() % 1000));
    }
  }
}

// What histories had in them: "images", "resizes" and what is rare.
using Amounts = std::map<std::string, std::uint64_t>;

// Of each geometry as many histories as seeds, none of them wrong.
template <class Hash>
Amounts explore_histories(const pmem::PersistenceModel& model,
                          const std::vector<typename Hash::Geometry>& geometries,
                          std::uint64_t seeds, const std::vector<int>& operations,
                          Readers readers = Readers::one_sided) {
  Amounts amounts;
  for (std::size_t i = 0; i < geometries.size(); ++i) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      SCOPED_TRACE(fmt::format("{}, {}, seed {}", pmem::to_string(model.domain),
                               Hash::describe(geometries[i]), seed));
      Explored<Hash> explored(geometries[i], model, readers);
      run_random<Hash>(explored, seed, operations[i % operations.size()]);
      EXPECT_EQ(explored.wrong(), "");
      if (!explored.wrong().empty()) return amounts;
      EXPECT_EQ(contents_of(explored.index()), explored.contents());
      amounts["images"] += explored.images();
      amounts["resizes"] += Hash::table(explored.index());
      for (const auto& [name, count] : Hash::rare(explored.index())) amounts[name] += count;
    }
  }
  std::cout << pmem::to_string(model.domain) << ":";
  for (const auto& [name, amount] : amounts) std::cout << " " << amount << " " << name;
  std::cout << "\n";
  return amounts;
}

// Whether what an index does that makes this mistake is found out in any of some histories.
template <class Hash>
bool is_noticed(const Mistake& mistake, const pmem::PersistenceModel& model,
                const std::vector<typename Hash::Geometry>& geometries, std::uint64_t seeds,
                int operations, Readers readers = Readers::one_sided) {
  for (const auto& geometry : geometries) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      Explored<Hash> explored(geometry, model, readers, mistake);
      run_random<Hash>(explored, seed, operations);
      if (!explored.wrong().empty()) return true;
    }
  }
  return false;
}

// Explores the recovery from every image of some operations, those after begin(): from each of its
// own steps it can be done again.
template <class Hash>
class RecoveryExplored {
 public:
  using Geometry = typename Hash::Geometry;
  using Outcome = typename Hash::Index::Outcome;

  RecoveryExplored(const Geometry& geometry, const pmem::PersistenceModel& model)
      : geometry_(geometry),
        model_(model),
        live_(Image(geometry.size()), model),
        index_(live_.region, 0, geometry) {}

  void begin() {
    settle();
    live_.memory->after_step = [this] {
      live_.memory->for_each_image([this](const Image& image) {
        if (is_new(once_, image)) explore_recovery(image);
      });
    };
  }
  // Does not resize.
  Outcome put(const std::string& key, const std::string& value) {
    operation_ = fmt::format("put {} = '{}'", key, value);
    after_[key] = value;
    const Outcome outcome = Hash::try_put(index_, item_of(key, value));
    if (outcome != Outcome::done) after_ = before_;
    settle();
    return outcome;
  }
  void erase(const std::string& key) {
    operation_ = fmt::format("delete {}", key);
    after_.erase(key);
    EXPECT_TRUE(index_.erase(item_of(key)));
    settle();
  }
  void resize() {
    operation_ = "resize";
    index_.begin_resize();
    do {
      if (Hash::kSettlesEachStep) settle();
    } while (index_.resize_step());
    settle();
  }

  const typename Hash::Index& index() const { return index_; }
  void expect_right(std::size_t least_images, std::size_t least_of_recoveries) const {
    EXPECT_EQ(wrong_, "");
    std::cout << once_.size() << " images, " << twice_.size() << " of their recoveries\n";
    EXPECT_GT(once_.size(), least_images);
    EXPECT_GT(twice_.size(), least_of_recoveries);
  }

 private:
  void settle() {
    if (!is_durable<Hash>(*live_.memory, geometry_) && wrong_.empty()) {
      wrong_ = fmt::format("{}: it has ended and is not durable", operation_);
    }
    before_ = after_;
    live_.memory->settle();
  }
  bool is_new(DistinctImages& seen, const Image& image) const {
    return seen.insert(without_checks<Hash>(image, geometry_)).second;
  }
  void explore_recovery(const Image& image) {
    ExploredRegion second(image, model_);
    second.memory->after_step = [&] {
      second.memory->for_each_image([&](const Image& again) {
        if (!is_new(twice_, again) || !wrong_.empty()) return;
        const std::string wrong = recovered_wrong<Hash>(again, geometry_, before_, after_);
        if (wrong.empty()) return;
        wrong_ =
            fmt::format("{}; {}, {}; recovery, {}, {}: {}", operation_, live_.memory->step_text(),
                        lost_text(image, live_.memory->visible()), second.memory->step_text(),
                        lost_text(again, second.memory->visible()), wrong);
      });
    };
    typename Hash::Index recovering(second.region, 0, geometry_);
    recovering.recover();
  }

  Geometry geometry_;
  pmem::PersistenceModel model_;
  ExploredRegion live_;
  typename Hash::Index index_;
  Contents before_;
  Contents after_;
  DistinctImages once_;
  DistinctImages twice_;
  std::string operation_ = "nothing yet";
  std::string wrong_;
};

// Words in memory that is zero otherwise.
using Damage = std::vector<std::pair<Bytes, std::uint64_t>>;

template <class Hash>
void expect_damage_refused(const typename Hash::Geometry& geometry,
                           const std::vector<Damage>& damages) {
  for (std::size_t i = 0; i < damages.size(); ++i) {
    PlainMemory memory(geometry.size());
    for (const auto& [offset, word] : damages[i]) memory.region().store(offset, word);
    typename Hash::Index index(memory.region(), 0, geometry);
    try {
      index.recover();
      ADD_FAILURE() << "damage " << i << " was recovered";
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

}  // namespace perdura::test
