#include "platform/pmem/model/image_space.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "platform/pmem/model/line_mask.h"

namespace perdura::pmem {

namespace {

constexpr std::size_t kWordsOfLine = kCacheLine / kWord;
// The numbers of steps, and of looks at a neighbor within them, after which counting is given up.
constexpr std::size_t kMostSteps = 20'000;
constexpr std::size_t kMostLooks = 4'000'000;

void add_once(std::vector<std::uint32_t>& numbers, std::uint32_t number) {
  if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) numbers.push_back(number);
}

// The words of a change that survive, chosen as PersistenceState::image() chooses them.
unsigned chosen_words(std::uint8_t words, Choices& image) {
  constexpr std::size_t kTorn = 1;
  const int count = std::popcount(words);
  if (count == 1) return image.choose(2) == 0 ? 0 : words;
  const std::size_t fate = image.choose(3);
  if (fate != kTorn) return fate == 0 ? 0 : words;
  const std::size_t chosen = image.choose((std::size_t{1} << count) - 2) + 1;
  unsigned kept = 0;
  std::size_t place = 0;
  for (unsigned word = 1; word <= words; word <<= 1) {
    if ((words & word) == 0) continue;
    if ((chosen >> place & 1) != 0) kept |= word;
    ++place;
  }
  return kept;
}

}  // namespace

std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) {
  return a > kCountless - b ? kCountless : a + b;
}

std::uint64_t saturated_product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kCountless : product;
}

// --- changes that may or may not survive ---------------------------------------------------------

// Pairs of changes of which one is ordered before the other: a bit each. Thousands of changes may
// depend on each other, so that their lists must not be searched.
class ImageSpace::OrderedPairs {
 public:
  explicit OrderedPairs(std::size_t changes) : before_(changes) {}

  // Returns false if the pair was there.
  bool add(std::uint32_t before, std::uint32_t after) {
    std::vector<std::uint64_t>& bits = before_[after];
    if (bits.size() <= before / 64) bits.resize(before / 64 + 1);
    const std::uint64_t bit = std::uint64_t{1} << before % 64;
    if ((bits[before / 64] & bit) != 0) return false;
    bits[before / 64] |= bit;
    return true;
  }
  void remove(std::uint32_t before, std::uint32_t after) {
    before_[after][before / 64] &= ~(std::uint64_t{1} << before % 64);
  }
  // True if all that is before the one change is before the other one, too.
  bool are_all_before(std::uint32_t those_of, std::uint32_t after) const {
    const std::vector<std::uint64_t>& fewer = before_[those_of];
    const std::vector<std::uint64_t>& more = before_[after];
    for (std::size_t i = 0; i < fewer.size(); ++i) {
      if ((fewer[i] & ~(i < more.size() ? more[i] : 0)) != 0) return false;
    }
    return true;
  }

 private:
  std::vector<std::vector<std::uint64_t>> before_;  // by the change that is ordered after them
};

ImageSpace::ImageSpace(PersistenceState& state) {
  for (std::size_t rule = 0; rule < kRules; ++rule) {
    if (!state.rules_.holds(static_cast<Rule>(rule))) {
      throw std::logic_error("images are enumerated lazily with all rules of the model alone");
    }
  }
  state.settle();
  std::map<const void*, std::uint32_t> number;
  std::vector<const PersistenceState::Fragment*> open;
  for (const PersistenceState::Fragment* fragment : state.fragments_) {
    if (fragment->durable) continue;
    number.emplace(fragment, static_cast<std::uint32_t>(open.size()));
    open.push_back(fragment);
  }
  changes_.resize(open.size());
  OrderedPairs pairs(open.size());
  const auto order = [&](std::uint32_t before, std::uint32_t after) {
    if (!pairs.add(before, after)) return;
    changes_[after].before.push_back(before);
    changes_[before].after.push_back(after);
  };
  // Only changes that a rule may order are compared: those of a line, those of a connection, and a
  // write-back of a line with later stores of the same thread.
  std::map<const void*, std::vector<std::uint32_t>> of_line;
  std::map<std::uint32_t, std::vector<std::uint32_t>> of_connection;
  std::vector<std::uint32_t> written_back;
  std::vector<PersistenceState::Pushes> pushes(open.size());
  for (std::uint32_t i = 0; i < open.size(); ++i) {
    const PersistenceState::Fragment& fragment = *open[i];
    const bool by_device = fragment.source == PersistenceState::Source::device;
    if (fragment.cached) {
      for (const std::uint32_t other : of_line[fragment.line]) {
        const bool in_order =
            open[other]->visible ||
            (by_device && state.takes_effect_before(open[other]->operation, fragment.operation));
        if (in_order) order(other, i);
      }
      of_line[fragment.line].push_back(i);
    }
    if (fragment.source == PersistenceState::Source::store) {
      for (const std::uint32_t other : written_back) {
        if (open[other]->written_back_by == fragment.writer &&
            open[other]->written_back_before < fragment.sequence) {
          order(other, i);
        }
      }
    }
    if (fragment.written_back_before != PersistenceState::kNever) written_back.push_back(i);
    if (!by_device) continue;
    const auto& connection = state.connections_[fragment.operation.connection];
    const auto& operation = connection.operations[fragment.operation.index];
    pushes[i] = state.pushes_of(connection, fragment);
    for (const std::uint32_t other : of_connection[fragment.operation.connection]) {
      const bool in_order =
          state.ordered_by_visibility()
              ? state.takes_effect_before(open[other]->operation, fragment.operation)
              : pushes[other].before(operation.after);
      if (in_order) order(other, i);
    }
    of_connection[fragment.operation.connection].push_back(i);
  }
  asked_.resize(open.size());
  for (std::uint32_t i = 0; i < open.size(); ++i) {
    asked_[i].before = changes_[i].before;
    for (std::size_t at = 0; at < kWordsOfLine; ++at) {
      const std::uint64_t word = std::uint64_t{0xFF} << (at * kWord);
      if ((open[i]->mask & word) != 0) asked_[i].words |= static_cast<std::uint8_t>(1U << at);
    }
  }
  find_words(state, number);
  for (std::uint32_t i = 0; i < changes_.size(); ++i) {
    if (changes_[i].words == 0) leave_out(i, pairs);
  }
  number_effective();
  find_components();
}

void ImageSpace::find_words(const PersistenceState& state,
                            const std::map<const void*, std::uint32_t>& number) {
  for (const auto& [key, line] : state.lines_) {
    PersistenceState::Survivor& survivor =
        lines_.emplace_back(PersistenceState::Survivor{{key.first, key.second}, line.durable});
    // For each byte, the last change that is durable: earlier changes make no difference.
    std::array<std::size_t, kCacheLine> durable_since{};
    for (std::size_t i = 0; i < line.fragments.size(); ++i) {
      const PersistenceState::Fragment& fragment = *line.fragments[i];
      if (!fragment.durable) continue;
      apply(fragment.mask, fragment.bytes, survivor.bytes);
      for (std::size_t byte = 0; byte < kCacheLine; ++byte) {
        if ((fragment.mask >> byte & 1) != 0) durable_since[byte] = i + 1;
      }
    }
    for (std::size_t at = 0; at < kWordsOfLine; ++at) {
      Word word{{key.first, key.second + at * kWord}, {}, {}};
      std::copy_n(survivor.bytes.begin() + at * kWord, kWord, word.base.begin());
      bool differs = false;
      for (std::size_t i = 0; i < line.fragments.size(); ++i) {
        const PersistenceState::Fragment& fragment = *line.fragments[i];
        if (fragment.durable) continue;
        Layer layer;
        std::copy_n(fragment.bytes.begin() + at * kWord, kWord, layer.content.begin());
        for (std::size_t byte = 0; byte < kWord; ++byte) {
          const std::size_t of_line = at * kWord + byte;
          if ((fragment.mask >> of_line & 1) == 0 || i < durable_since[of_line]) continue;
          layer.bytes = static_cast<std::uint8_t>(layer.bytes | 1U << byte);
          differs = differs || layer.content[byte] != word.base[byte];
        }
        if (layer.bytes == 0) continue;
        layer.bit = {number.at(&fragment), static_cast<std::uint8_t>(1U << at)};
        word.layers.push_back(layer);
      }
      if (!differs) continue;
      for (const Layer& layer : word.layers) {
        std::uint8_t& words = changes_[layer.bit.change].words;
        words = static_cast<std::uint8_t>(words | layer.bit.word);
      }
      words_.push_back(std::move(word));
    }
  }
}

// Leaves out a change that makes no difference; the order that it establishes between others stays.
void ImageSpace::leave_out(std::uint32_t number, OrderedPairs& pairs) {
  const EffectiveChange& change = changes_[number];
  for (const std::uint32_t before : change.before) std::erase(changes_[before].after, number);
  for (const std::uint32_t after : change.after) {
    std::erase(changes_[after].before, number);
    pairs.remove(number, after);
    if (pairs.are_all_before(number, after)) continue;
    for (const std::uint32_t before : change.before) {
      if (!pairs.add(before, after)) continue;
      changes_[after].before.push_back(before);
      changes_[before].after.push_back(after);
    }
  }
}

// Numbers the changes that make a difference anew.
void ImageSpace::number_effective() {
  std::vector<std::uint32_t> renumbered(changes_.size());
  std::vector<EffectiveChange> effective;
  for (std::uint32_t i = 0; i < changes_.size(); ++i) {
    if (changes_[i].words == 0) continue;
    renumbered[i] = asked_[i].change = static_cast<std::uint32_t>(effective.size());
    effective.emplace_back().words = changes_[i].words;
  }
  for (std::uint32_t i = 0; i < changes_.size(); ++i) {
    if (changes_[i].words == 0) continue;
    EffectiveChange& change = effective[renumbered[i]];
    for (const std::uint32_t before : changes_[i].before) {
      change.before.push_back(renumbered[before]);
    }
    for (const std::uint32_t after : changes_[i].after) change.after.push_back(renumbered[after]);
  }
  changes_ = std::move(effective);
  for (Word& word : words_) {
    for (Layer& layer : word.layers) layer.bit.change = renumbered[layer.bit.change];
  }
}

void ImageSpace::find_components() {
  for (EffectiveChange& change : changes_) change.component = kNone;
  for (std::uint32_t first = 0; first < changes_.size(); ++first) {
    if (changes_[first].component != kNone) continue;
    const auto component = static_cast<std::uint32_t>(components_.size());
    std::vector<std::uint32_t>& members = components_.emplace_back();
    members.push_back(first);
    changes_[first].component = component;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const EffectiveChange& change = changes_[members[i]];
      for (const auto* neighbors : {&change.before, &change.after}) {
        for (const std::uint32_t other : *neighbors) {
          if (changes_[other].component != kNone) continue;
          changes_[other].component = component;
          members.push_back(other);
        }
      }
    }
    std::sort(members.begin(), members.end());
  }
  const PartialImage undecided(*this);
  for (std::uint32_t component = 0; component < components_.size(); ++component) {
    images_of_component_.push_back(undecided.count(component));
  }
}

// --- an image that is decided word by word -------------------------------------------------------

PartialImage::PartialImage(const ImageSpace& space)
    : space_(space), kept_(space.changes_.size()), lost_(space.changes_.size()) {}

void PartialImage::reset() {
  for (const std::uint32_t change : changed_) kept_[change] = lost_[change] = 0;
  changed_.clear();
}

void PartialImage::touch(std::uint32_t change) {
  if (kept_[change] == 0 && lost_[change] == 0) changed_.push_back(change);
}

void PartialImage::keep(std::uint32_t change, std::uint8_t words) {
  if ((kept_[change] | words) == kept_[change]) return;
  const bool first = kept_[change] == 0;
  touch(change);
  kept_[change] = static_cast<std::uint8_t>(kept_[change] | words);
  if (!first) return;
  for (const std::uint32_t before : space_.changes_[change].before) {
    keep(before, space_.changes_[before].words);
  }
}

void PartialImage::lose(std::uint32_t change, std::uint8_t words) {
  if ((lost_[change] | words) == lost_[change]) return;
  const bool first = lost_[change] == 0;
  touch(change);
  lost_[change] = static_cast<std::uint8_t>(lost_[change] | words);
  if (!first) return;
  for (const std::uint32_t after : space_.changes_[change].after) {
    lose(after, space_.changes_[after].words);
  }
}

ImageSpace::WordBytes PartialImage::word(std::size_t number, const Decide& decide) {
  const ImageSpace::Word& word = space_.words_[number];
  ImageSpace::WordBytes content = word.base;
  unsigned missing = 0xFF;
  // The newest first: changes below one that survives whole make no difference.
  for (auto layer = word.layers.rbegin(); layer != word.layers.rend() && missing != 0; ++layer) {
    const unsigned bytes = layer->bytes & missing;
    if (bytes == 0) continue;
    const auto [change, bit] = layer->bit;
    if ((lost_[change] & bit) != 0) continue;
    if ((kept_[change] & bit) == 0) {
      if (!decide(layer->bit)) {
        lose(change, bit);
        continue;
      }
      keep(change, bit);
    }
    for (std::size_t byte = 0; byte < kWord; ++byte) {
      if ((bytes >> byte & 1) != 0) content[byte] = layer->content[byte];
    }
    missing &= ~bytes;
  }
  return content;
}

std::vector<ImageSpace::Choice> PartialImage::choices() const {
  std::vector<ImageSpace::Choice> choices;
  std::vector<bool> whole(space_.asked_.size());
  for (std::size_t i = 0; i < space_.asked_.size(); ++i) {
    const ImageSpace::Asked& asked = space_.asked_[i];
    const auto is_whole = [&](std::uint32_t before) { return whole[before]; };
    if (!std::all_of(asked.before.begin(), asked.before.end(), is_whole)) continue;
    const unsigned lost = asked.change == ImageSpace::kNone ? 0 : lost_[asked.change];
    const unsigned kept = asked.words & ~lost;
    whole[i] = kept == asked.words;
    const int count = std::popcount(asked.words);
    if (count == 1) {
      choices.push_back({whole[i] ? std::size_t{1} : 0, 2});
      continue;
    }
    const bool torn = kept != 0 && !whole[i];
    choices.push_back({torn ? std::size_t{1} : whole[i] ? 2 : 0, 3});
    if (!torn) continue;
    // The surviving words as bits, counted from the first word that the change has.
    std::size_t chosen = 0;
    std::size_t place = 0;
    for (unsigned word = 1; word <= asked.words; word <<= 1) {
      if ((asked.words & word) == 0) continue;
      if ((kept & word) != 0) chosen |= std::size_t{1} << place;
      ++place;
    }
    choices.push_back({chosen - 1, (std::size_t{1} << count) - 2});
  }
  return choices;
}

void PartialImage::decide_all(Choices& image) {
  std::vector<bool> whole(space_.asked_.size());
  for (std::size_t i = 0; i < space_.asked_.size(); ++i) {
    const ImageSpace::Asked& asked = space_.asked_[i];
    const auto is_whole = [&](std::uint32_t before) { return whole[before]; };
    unsigned kept = 0;
    if (std::all_of(asked.before.begin(), asked.before.end(), is_whole)) {
      kept = chosen_words(asked.words, image);
    }
    whole[i] = kept == asked.words;
    if (asked.change == ImageSpace::kNone) continue;
    const unsigned words = space_.changes_[asked.change].words;
    if ((words & kept) != 0) keep(asked.change, static_cast<std::uint8_t>(words & kept));
    if ((words & ~kept) != 0) lose(asked.change, static_cast<std::uint8_t>(words & ~kept));
  }
}

// The words of a change that are not decided.
std::uint8_t PartialImage::open(std::uint32_t change) const {
  return static_cast<std::uint8_t>(space_.changes_[change].words & ~kept_[change] & ~lost_[change]);
}

// Counts the downward closed sets of changes that depend on each other: distinguishes whether the
// first of them survives whole, and counts independent parts separately.
class PartialImage::Counter {
 public:
  explicit Counter(const PartialImage& image) : image_(image) {}

  // Returns nullopt if it takes too long.
  std::optional<std::uint64_t> count(const std::vector<std::uint32_t>& members) {
    std::vector<std::uint32_t> undecided;
    for (const std::uint32_t change : members) {
      if (image_.open(change) != 0) undecided.push_back(change);
    }
    const std::uint64_t images = of_all(undecided);
    if (takes_too_long()) return std::nullopt;
    return images;
  }

 private:
  using Set = std::vector<std::uint32_t>;  // sorted

  const ImageSpace::EffectiveChange& change(std::uint32_t number) const {
    return image_.space_.changes_[number];
  }
  std::uint64_t ways(std::uint32_t number) const {
    return std::uint64_t{1} << std::popcount(image_.open(number));
  }
  static bool has(const Set& set, std::uint32_t number) {
    return std::binary_search(set.begin(), set.end(), number);
  }

  std::uint64_t of_all(Set set) {
    std::uint64_t product = 1;
    while (!set.empty() && !takes_too_long()) {
      Set part{set.front()};
      std::vector<bool> in_part(set.size());
      in_part[0] = true;
      for (std::size_t i = 0; i < part.size(); ++i) {
        for (const auto* neighbors : {&change(part[i]).before, &change(part[i]).after}) {
          looks_ += neighbors->size();
          for (const std::uint32_t other : *neighbors) {
            const auto found = std::lower_bound(set.begin(), set.end(), other);
            if (found == set.end() || *found != other) continue;
            const auto place = static_cast<std::size_t>(found - set.begin());
            if (in_part[place]) continue;
            in_part[place] = true;
            part.push_back(other);
          }
        }
      }
      std::sort(part.begin(), part.end());
      product = saturated_product(product, of_part(part));
      Set rest;
      for (std::size_t i = 0; i < set.size(); ++i) {
        if (!in_part[i]) rest.push_back(set[i]);
      }
      set = std::move(rest);
    }
    return product;
  }

  // Steps may be many, and a single one long where hundreds of changes depend on each other.
  bool takes_too_long() const { return steps_ > kMostSteps || looks_ > kMostLooks; }

  // Counts the sets of changes that depend on each other.
  std::uint64_t of_part(const Set& part) {
    ++steps_;
    if (part.size() == 1) return ways(part.front());
    if (const auto known = known_.find(part); known != known_.end()) return known->second;
    std::uint32_t first = part.front();
    std::size_t most = 0;
    for (const std::uint32_t candidate : part) {
      const auto in_part = [&](std::uint32_t other) { return has(part, other); };
      const auto& before = change(candidate).before;
      if (std::any_of(before.begin(), before.end(), in_part)) continue;
      const auto& after = change(candidate).after;
      looks_ += before.size() + after.size();
      const auto behind =
          static_cast<std::size_t>(std::count_if(after.begin(), after.end(), in_part));
      if (behind > most) first = candidate, most = behind;
    }
    Set without = part;
    std::erase(without, first);
    const std::uint64_t whole = of_all(without);
    Set lost{first};
    for (std::size_t i = 0; i < lost.size(); ++i) {
      for (const std::uint32_t after : change(lost[i]).after) add_once(lost, after);
    }
    std::erase_if(without, [&](std::uint32_t other) {
      return std::find(lost.begin(), lost.end(), other) != lost.end();
    });
    const std::uint64_t torn = saturated_product(ways(first) - 1, of_all(std::move(without)));
    return known_[part] = saturated_sum(whole, torn);
  }

  const PartialImage& image_;
  std::map<Set, std::uint64_t> known_;
  std::size_t steps_ = 0;
  std::size_t looks_ = 0;  // at a change that another one depends on, or that depends on it
};

std::uint64_t PartialImage::count(std::uint32_t component) const {
  return Counter(*this).count(space_.components_[component]).value_or(1);
}

std::uint64_t PartialImage::completions() const {
  std::vector<bool> decided(space_.components_.size());
  for (const std::uint32_t change : changed_) decided[space_.changes_[change].component] = true;
  std::uint64_t product = 1;
  for (std::uint32_t component = 0; component < decided.size(); ++component) {
    product = saturated_product(
        product, decided[component] ? count(component) : space_.images_of_component_[component]);
  }
  return product;
}

}  // namespace perdura::pmem
