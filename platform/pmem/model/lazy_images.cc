#include "platform/pmem/model/lazy_images.h"

#include <algorithm>
#include <utility>

#include "platform/base/error.h"

namespace perdura::pmem {

LazyImages::LazyImages(std::vector<ImageSpace> spaces, std::uint64_t seed)
    : spaces_(std::move(spaces)), random_(seed) {
  partial_.reserve(spaces_.size());
  for (const ImageSpace& space : spaces_) {
    partial_.emplace_back(space);
    images_ = saturated_product(images_, partial_.back().completions());
    fates_.emplace_back(space.changes());
  }
}

void LazyImages::begin(Order order) {
  order_ = order;
  path_.clear();
  decisions_.clear();
  for (PartialImage& image : partial_) image.reset();
  for (auto& of_space : fates_) std::fill(of_space.begin(), of_space.end(), Fate::open);
}

bool LazyImages::next() {
  if (exhausted_) return false;
  constexpr Order kOrders[] = {Order::least, Order::most, Order::random};
  begin(kOrders[std::min<std::uint64_t>(runs_, 2)]);
  ++runs_;
  return true;
}

void LazyImages::repeat(const Decisions& decisions) {
  begin(Order::repeat);
  to_repeat_ = decisions;
}

void LazyImages::take(Choices& image) {
  begin(Order::repeat);
  for (PartialImage& partial : partial_) partial.decide_all(image);
}

ImageSpace::WordBytes LazyImages::word(std::size_t space, std::size_t number) {
  return partial_[space].word(
      number, [&](ImageSpace::Bit bit) { return answer(static_cast<std::uint32_t>(space), bit); });
}

// The answer that this run would give if no image was covered yet.
bool LazyImages::wish(std::uint32_t space, ImageSpace::Bit bit) {
  switch (order_) {
    case Order::least:
      return false;
    case Order::most:
      return true;
    case Order::repeat:
      return decisions_.size() < to_repeat_.size() && to_repeat_[decisions_.size()];
    case Order::random:
      break;
  }
  Fate& fate = fates_[space][bit.change];
  if (fate == Fate::open) {
    constexpr Fate kFates[] = {Fate::lost, Fate::torn, Fate::whole};
    fate = kFates[random_.choose(std::size(kFates))];
  }
  return fate == Fate::torn ? random_.choose(2) == 1 : fate == Fate::whole;
}

bool LazyImages::answer(std::uint32_t space, ImageSpace::Bit bit) {
  std::uint32_t number = 0;
  if (path_.empty()) {
    if (questions_.empty()) questions_.push_back({space, bit});
  } else {
    std::uint32_t& next = questions_[path_.back()].next[decisions_.back() ? 1 : 0];
    if (next == 0) {
      next = static_cast<std::uint32_t>(questions_.size());
      questions_.push_back({space, bit});
    }
    number = next;
  }
  const Question& question = questions_[number];
  if (question.space != space || question.bit != bit) {
    differs_ = true;
    return false;
  }
  bool survives = wish(space, bit);
  if (order_ != Order::repeat && question.done[survives ? 1 : 0]) survives = !survives;
  path_.push_back(number);
  decisions_.push_back(survives);
  return survives;
}

void LazyImages::end() {
  if (differs_) {
    throw PlatformError(
        "a recovery reads other words than the one before it: it depends on more "
        "than persistent memory");
  }
  if (order_ == Order::repeat) return;
  covered_ = 1;
  for (const PartialImage& image : partial_) {
    covered_ = saturated_product(covered_, image.completions());
  }
  covered_by_all_ = saturated_sum(covered_by_all_, covered_);
  for (std::size_t i = path_.size(); i-- > 0;) {
    Question& question = questions_[path_[i]];
    question.done[decisions_[i] ? 1 : 0] = true;
    if (!question.done[0] || !question.done[1]) return;
  }
  exhausted_ = true;
}

}  // namespace perdura::pmem
