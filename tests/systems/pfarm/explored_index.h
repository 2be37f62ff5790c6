// An index of which every image of every step is recovered: after every store, flush and fence of
// its operations, each that a power failure may leave there.
#pragma once

#include <random>
#include <unordered_set>

#include "tests/systems/pfarm/support.h"

namespace perdura::systems::pfarm::test {

using perdura::test::ExploredMemory;
using perdura::test::ExploredRegion;
using perdura::test::Image;
using perdura::test::PlainMemory;

inline constexpr std::array kModels{
    pmem::PersistenceModel{.domain = pmem::PersistenceDomain::dmp, .ddio = false},
    pmem::PersistenceModel{.domain = pmem::PersistenceDomain::mhp, .ddio = false},
};

// How an image fails to hold what it should, or "".
inline std::string recovered_wrong(const Image& image, const Geometry& geometry,
                                   const Contents& before, const Contents& after) {
  PlainMemory memory(image);
  Index index(memory.region(), 0, geometry);
  try {
    index.recover();
  } catch (const std::exception& error) {
    return error.what();
  }
  Contents found;
  std::uint64_t items = 0;
  index.for_each([&](const Slot& slot) {
    found[as_text(slot.key_bytes())] = as_text(slot.value_bytes());
    ++items;
  });
  if (items != found.size()) return "a key is there twice";
  if (items != index.items()) return "items are miscounted";
  if (found != before && found != after) return "other contents";
  for (const Contents* contents : {&before, &after}) {
    for (const auto& [key, value] : *contents) {
      const ClientRead read = read_as_client(memory.bytes(), geometry, index.level(), key);
      const auto expected = found.find(key);
      if (read.torn) return "a client reads for ever";
      if (read.value.has_value() != (expected != found.end())) {
        return "a client finds something else";
      }
      if (read.value && *read.value != expected->second) return "a client finds another value";
    }
  }
  return "";
}

// A function of the image in which no check occurs: recovery computes them all.
inline std::string without_checks(Image image, const Geometry& geometry) {
  for (std::uint32_t level = 0; level <= geometry.resizes; ++level) {
    const Table table = geometry.table(level);
    for (std::uint64_t bucket = 0; bucket < table.all_buckets(); ++bucket) {
      std::memset(&image[table.bucket_offset(bucket) + kCheckOffset], 0, kWord);
    }
  }
  return as_text(image);
}

// An index of which every step of every operation is explored.
template <class Tested>
class Explored {
 public:
  Explored(const Geometry& geometry, const pmem::PersistenceModel& model)
      : geometry_(geometry),
        live_(Image(geometry.size()), model),
        index_(live_.region, 0, geometry) {
    live_.memory->after_step = [this] { look(before_, after_); };
  }

  bool put(const std::string& key, const std::string& value) {
    after_[key] = value;
    const Slot item = item_of(key, value);
    while (wrong_.empty()) {
      const Index::Outcome outcome = index_.try_put(item);
      if (outcome == Index::Outcome::done) break;
      after_ = before_;
      if (outcome == Index::Outcome::out_of_space) break;
      resize();
      after_[key] = value;
    }
    return acknowledged();
  }
  bool erase(const std::string& key) {
    const bool known = after_.erase(key) != 0;
    if (index_.erase(item_of(key)).has_value() != known && wrong_.empty()) {
      wrong_ = "a delete finds something else";
    }
    return acknowledged();
  }

  const std::string& wrong() const { return wrong_; }
  std::uint64_t images() const { return images_; }
  const Index& index() const { return index_; }
  const Contents& contents() const { return before_; }

 private:
  // What has been acknowledged is durable.
  bool acknowledged() {
    look(after_, after_);
    before_ = after_;
    live_.memory->settle();
    return wrong_.empty();
  }
  // Each step is durable, too, except for checks, which would only multiply the images of the next.
  void resize() {
    index_.begin_resize();
    do {
      acknowledged();
    } while (index_.resize_step());
    acknowledged();
  }
  void look(const Contents& before, const Contents& after) {
    if (!wrong_.empty()) return;
    const Contents& least = is_read(before, after) ? after : before;
    std::unordered_set<std::string> seen;
    live_.memory->for_each_image([&](const Image& image) {
      if (!wrong_.empty() || !seen.insert(without_checks(image, geometry_)).second) return;
      ++images_;
      wrong_ = recovered_wrong(image, geometry_, least, after);
    });
  }
  // Whether a client reads now what the operation under way changes: then it must stay.
  bool is_read(const Contents& before, const Contents& after) const {
    const auto value_in = [](const Contents& contents, const std::string& key) {
      const auto found = contents.find(key);
      return found == contents.end() ? std::nullopt : std::optional(found->second);
    };
    for (const Contents* contents : {&before, &after}) {
      for (const auto& [key, value] : *contents) {
        if (value_in(before, key) == value_in(after, key)) continue;
        const ClientRead read =
            read_as_client(live_.memory->visible(), geometry_, index_.level(), key);
        if (!read.torn && read.value == value_in(after, key)) return true;
      }
    }
    return false;
  }

  Geometry geometry_;
  ExploredRegion live_;
  Tested index_;
  Contents before_;
  Contents after_;
  std::string wrong_;
  std::uint64_t images_ = 0;
};

// Until something is wrong, or for as many operations.
template <class Tested>
void run_random(Explored<Tested>& explored, std::uint64_t seed, int operations) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < operations; ++i) {
    const std::string key = numbered_key(random() % 24);
    const bool good = random() % 5 == 0 ? explored.erase(key)
                                        : explored.put(key, numbered_value(random() % 1000));
    if (!good) return;
  }
}

}  // namespace perdura::systems::pfarm::test
