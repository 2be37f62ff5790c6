// What explorers of power failures say when recovery is wrong: what an image has lost, and how what
// is found differs from what was expected.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "platform/base/units.h"

namespace perdura::test {

// The words in which an image differs from what was visible, by their offsets.
inline std::string lost_text(std::span<const std::byte> image, std::span<const std::byte> visible) {
  constexpr int kMostRanges = 8;
  std::string text;
  int ranges = 0;
  const auto differs = [&](Bytes word) {
    return word + kWord <= image.size() &&
           !std::equal(image.begin() + static_cast<std::ptrdiff_t>(word),
                       image.begin() + static_cast<std::ptrdiff_t>(word + kWord),
                       visible.begin() + static_cast<std::ptrdiff_t>(word));
  };
  for (Bytes begin = 0; begin < image.size(); begin += kWord) {
    if (!differs(begin)) continue;
    Bytes end = begin + kWord;
    while (differs(end)) end += kWord;
    if (++ranges > kMostRanges) return text + " and more are lost";
    text += fmt::format("{}{}..{}", ranges == 1 ? "bytes " : ", ", begin, end - 1);
    begin = end;
  }
  return ranges == 0 ? "nothing is lost" : text + " are lost";
}

// The keys whose value is neither that before an operation nor that after it. Values are text or
// numbers.
template <class Value>
std::string difference_text(const std::map<std::string, Value>& found,
                            const std::map<std::string, Value>& before,
                            const std::map<std::string, Value>& after) {
  const auto value_text = [](const auto& contents, const std::string& key) {
    const auto value = contents.find(key);
    return value == contents.end() ? std::string("nothing") : fmt::format("'{}'", value->second);
  };
  std::map<std::string, bool> keys;
  for (const auto* contents : {&found, &before, &after}) {
    for (const auto& [key, value] : *contents) keys[key] = true;
  }
  std::string text;
  for (const auto& [key, any] : keys) {
    const std::string is = value_text(found, key);
    const std::string was = value_text(before, key);
    const std::string shall = value_text(after, key);
    const std::string expected = was == shall ? was : fmt::format("{} or {}", was, shall);
    if (is != was && is != shall) {
      text += fmt::format("{}key {}: expected {}, found {}", text.empty() ? "" : "; ", key,
                          expected, is);
    }
  }
  return text.empty() ? "a part of an operation has taken effect" : text;
}

}  // namespace perdura::test
