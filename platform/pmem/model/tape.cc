#include "platform/pmem/model/tape.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "platform/base/error.h"

namespace perdura::pmem {

namespace {

// At least this many zeros are written as one word of the text.
constexpr std::size_t kZerosInOneWord = 3;
constexpr std::string_view kZeros = "0*";
constexpr std::uint64_t kMostZeros = 1'000'000'000;

// FNV-1a, so that streams of one seed are unrelated on every machine.
std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3;
  }
  return hash;
}

std::string_view next_part(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

}  // namespace

std::size_t Tape::Stream::choose(std::size_t n) {
  std::size_t taken = 0;
  if (drawn.size() < recorded.size() && recorded[drawn.size()] != kAnew) {
    // A shrunk tape may hold a choice that was made among more alternatives.
    taken = std::min<std::size_t>(recorded[drawn.size()], n - 1);
  } else if (source != nullptr) {
    taken = source->choose(n);
  } else if (random) {
    taken = random->choose(n);
  }
  drawn.push_back(taken);
  return taken;
}

Choices& Tape::stream(std::string_view name, std::size_t rarity) {
  const auto [place, added] = streams_.try_emplace(std::string(name));
  if (added && seed_) place->second.random.emplace(*seed_ ^ hash_of(name), rarity);
  const auto recorded = recorded_.find(name);
  if (added && recorded != recorded_.end()) {
    place->second.recorded = recorded->second;
  } else if (added && source_) {
    place->second.source = source_(name);
  }
  return place->second;
}

Tape::Streams Tape::drawn() const {
  Streams all;
  for (const auto& [name, stream] : streams_) all.emplace(name, stream.drawn);
  return all;
}

std::string Tape::text() const { return to_string(drawn()); }

std::string to_string(const Tape::Streams& streams) {
  std::string text;
  for (const auto& [name, values] : streams) {
    std::string words;
    std::size_t zeros = 0;  // not yet written
    for (const std::uint64_t value : values) {
      if (value == 0) {
        ++zeros;
        continue;
      }
      if (zeros >= kZerosInOneWord) words += fmt::format(" 0*{}", zeros);
      for (; zeros > 0 && zeros < kZerosInOneWord; --zeros) words += " 0";
      zeros = 0;
      words += fmt::format(" {}", value);
    }
    if (words.empty()) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : "; ", name, words);
  }
  return text;
}

Tape::Streams Tape::streams_in(std::string_view text) {
  Streams streams;
  while (!text.empty()) {
    std::string_view part = next_part(text, ';');
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    const std::string name(next_part(part, ' '));
    std::vector<std::uint64_t>& values = streams[name];
    while (!part.empty()) {
      const std::string_view word = next_part(part, ' ');
      if (word.empty()) continue;
      const bool zeros = word.starts_with(kZeros);
      const std::string_view digits = zeros ? word.substr(kZeros.size()) : word;
      std::uint64_t value = 0;
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error != std::errc() || end != digits.data() + digits.size() ||
          (zeros && value > kMostZeros)) {
        throw UsageError(
            fmt::format("stream '{}' of choices: '{}' is not a whole number", name, word));
      }
      values.insert(values.end(), zeros ? value : 1, zeros ? 0 : value);
    }
  }
  return streams;
}

}  // namespace perdura::pmem
