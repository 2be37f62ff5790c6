#include "platform/pmem/model/tape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "platform/base/error.h"

namespace perdura::pmem {

namespace {

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
  } else if (random) {
    taken = random->choose(n);
  }
  drawn.push_back(taken);
  return taken;
}

Choices& Tape::stream(std::string_view name) {
  const auto [place, added] = streams_.try_emplace(std::string(name));
  if (added && seed_) place->second.random.emplace(*seed_ ^ hash_of(name));
  const auto recorded = recorded_.find(name);
  if (added && recorded != recorded_.end()) place->second.recorded = recorded->second;
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
    const auto last = std::find_if(values.rbegin(), values.rend(), [](auto v) { return v != 0; });
    if (last == values.rend()) continue;
    const auto count = static_cast<std::size_t>(values.rend() - last);
    text += fmt::format(
        "{}{} {}", text.empty() ? "" : "; ", name,
        fmt::join(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count), " "));
  }
  return text;
}

Tape Tape::parse(std::string_view text) {
  Streams streams;
  while (!text.empty()) {
    std::string_view part = next_part(text, ';');
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    const std::string name(next_part(part, ' '));
    std::vector<std::uint64_t>& values = streams[name];
    while (!part.empty()) {
      const std::string_view word = next_part(part, ' ');
      if (word.empty()) continue;
      std::uint64_t value = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
      if (error != std::errc() || end != word.data() + word.size()) {
        throw UsageError(
            fmt::format("stream '{}' of choices: '{}' is not a whole number", name, word));
      }
      values.push_back(value);
    }
  }
  return Tape(std::move(streams));
}

}  // namespace perdura::pmem
