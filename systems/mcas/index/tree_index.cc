// The volatile tree: the paper's is the standard library's map; this one also counts, so that the
// key at a position is found without a walk from the first key.
#include <re2/re2.h>

#include <algorithm>
#include <boost/multi_index/identity.hpp>
#include <boost/multi_index/ranked_index.hpp>
#include <boost/multi_index_container.hpp>
#include <string>

#include "systems/mcas/index/key_index.h"

namespace perdura::systems::mcas::index {

namespace {

// The number of keys compared with a regular expression in one call.
constexpr std::uint64_t kMostComparisons = 1000;

std::string_view text_of(Key key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

// Compares bytes as unsigned numbers, as memcmp() does.
struct Less {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const { return a < b; }
};

class TreeIndex final : public KeyIndex {
 public:
  bool insert(Key key) override { return keys_.emplace(text_of(key)).second; }
  bool erase(Key key) override {
    const auto found = keys_.find(text_of(key));
    if (found == keys_.end()) return false;
    keys_.erase(found);
    return true;
  }
  std::uint64_t count() const override { return keys_.size(); }

  FindResult find(std::string_view expression, Match match, std::uint64_t position) const override {
    switch (match) {
      case Match::exact: {
        const FindResult found = at(keys_.lower_bound(expression), position);
        return text_of(found.key) == expression ? found : FindResult{};
      }
      case Match::prefix: {
        const FindResult found = at(keys_.lower_bound(expression), position);
        return text_of(found.key).starts_with(expression) ? found : FindResult{};
      }
      case Match::next:
        return at(expression.empty() ? keys_.begin() : keys_.upper_bound(expression), position);
      case Match::regular_expression:
        return find_regular(expression, position);
    }
    return {};
  }

 private:
  using Keys =
      boost::multi_index_container<std::string,
                                   boost::multi_index::indexed_by<boost::multi_index::ranked_unique<
                                       boost::multi_index::identity<std::string>, Less>>>;

  // The given key, or the key at `position` if that is later in the order.
  FindResult at(Keys::iterator key, std::uint64_t position) const {
    const std::uint64_t rank = std::max<std::uint64_t>(keys_.rank(key), position);
    if (rank >= keys_.size()) return {};
    return {FindResult::Outcome::found, std::as_bytes(std::span(*keys_.nth(rank))), rank};
  }

  FindResult find_regular(std::string_view expression, std::uint64_t position) const {
    RE2::Options options(RE2::Latin1);  // a character is a byte
    options.set_log_errors(false);
    options.set_dot_nl(true);
    // RE2's own type of string view: newer versions of the library do not take the standard's.
    const RE2 pattern({expression.data(), expression.size()}, options);
    if (!pattern.ok()) return {.outcome = FindResult::Outcome::invalid};
    std::uint64_t compared = 0;
    for (auto key = keys_.nth(position); key != keys_.end(); ++key, ++position, ++compared) {
      if (compared == kMostComparisons) {
        return {.outcome = FindResult::Outcome::more, .position = position};
      }
      if (!RE2::FullMatch(*key, pattern)) continue;
      return {FindResult::Outcome::found, std::as_bytes(std::span(*key)), position};
    }
    return {};
  }

  Keys keys_;
};

}  // namespace

std::unique_ptr<KeyIndex> make_index(std::string_view name) {
  if (name == "VolatileTree") return std::make_unique<TreeIndex>();
  return nullptr;
}

}  // namespace perdura::systems::mcas::index
