#include "platform/pmem/sim/journal.h"

#include <cstring>

namespace perdura::pmem::sim {

namespace {

// A line that is written again and again and never flushed: as if it were evicted now and then.
constexpr std::size_t kMostWordsOfALine = 4096;

}  // namespace

Time Journal::surely_durable(Kind kind, Time visible, Time accepted) const {
  switch (durability_.model.domain) {
    case PersistenceDomain::dmp:
      // Past the caches a message goes straight to the write-pending queue.
      return kind == Kind::device && !durability_.model.ddio ? visible : kNever;
    case PersistenceDomain::mhp:
      // Write-combining buffers are not part of the caches: they still need the fence.
      return kind == Kind::streaming ? kNever : visible;
    case PersistenceDomain::wsp:
      break;
  }
  return kind == Kind::device ? std::min(visible, accepted) : visible;
}

void Journal::store(Kind kind, Writer writer, Time now, Bytes offset,
                    std::span<const std::byte> bytes, LineTimes visible, Time accepted) {
  if (bytes.empty()) return;
  if (lines_.size() >= fold_at_) fold_all(now);
  const Bytes end = offset + bytes.size();
  for (Bytes begin = offset / kCacheLine * kCacheLine; begin < end; begin += kCacheLine) {
    const Time moment = visible.of(begin / kCacheLine - offset / kCacheLine);
    const Time surely = surely_durable(kind, moment, accepted);
    const auto [found, added] = lines_.try_emplace(begin);
    Line& line = found->second;
    if (added) {
      std::memcpy(line.durable.data(), memory_ + begin, kCacheLine);
    } else {
      fold(line, now);
    }
    for (Bytes at = std::max(begin, offset); at < std::min(begin + kCacheLine, end);) {
      const Bytes next = std::min({(at / kWord + 1) * kWord, begin + kCacheLine, end});
      Word word{moment,
                surely,
                {},
                static_cast<std::uint8_t>(at - begin),
                static_cast<std::uint8_t>(next - at),
                kind,
                writer};
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at - offset), next - at,
                  word.bytes.begin());
      line.words.push_back(word);
      at = next;
    }
    if (kind == Kind::streaming) pending_[writer].streamed.insert(begin);
    note(moment);
    if (surely != kNever) note(surely);
  }
}

void Journal::flush(Writer writer, Bytes offset, Bytes length, Time at) {
  const Bytes end = offset + std::max<Bytes>(length, 1);
  for (auto line = lines_.lower_bound(offset / kCacheLine * kCacheLine);
       line != lines_.end() && line->first < end; ++line) {
    pending_[writer].flushed.push_back({line->first, at});
  }
}

void Journal::fence(Writer writer, Time completed) {
  const auto found = pending_.find(writer);
  if (found == pending_.end()) return;
  for (const Flushed& flushed : found->second.flushed) {
    make_durable(flushed.line, flushed.at, completed);
  }
  for (const Bytes begin : found->second.streamed) {
    const auto line = lines_.find(begin);
    if (line == lines_.end()) continue;
    for (Word& word : line->second.words) {
      if (word.kind == Kind::streaming && word.writer == writer) {
        word.durable = std::min(word.durable, completed);
      }
    }
  }
  pending_.erase(found);
  note(completed);
}

void Journal::device_flush(Bytes offset, Bytes length, Time at) {
  const Bytes end = offset + length;
  for (auto line = lines_.lower_bound(offset / kCacheLine * kCacheLine);
       line != lines_.end() && line->first < end; ++line) {
    make_durable(line->first, at, at);
  }
}

// Durable `from` then on: what was visible of a line when it was written back. A write-back does
// not reach into the write-combining buffers.
void Journal::make_durable(Bytes begin, Time visible_by, Time from) {
  const auto line = lines_.find(begin);
  if (line == lines_.end()) return;
  for (Word& word : line->second.words) {
    if (word.kind != Kind::streaming && word.visible <= visible_by) {
      word.durable = std::min(word.durable, from);
    }
  }
}

void Journal::fold(Line& line, Time now) {
  auto end = line.words.begin();
  while (end != line.words.end() && end->durable <= now) apply(*end++, line.durable);
  line.words.erase(line.words.begin(), end);
  if (line.words.size() < kMostWordsOfALine) return;
  end = line.words.begin() + kMostWordsOfALine / 2;
  const auto later =
      std::find_if(line.words.begin(), end, [now](const Word& word) { return word.visible > now; });
  for (auto word = line.words.begin(); word != later; ++word) apply(*word, line.durable);
  line.words.erase(line.words.begin(), later);
}

void Journal::fold_all(Time now) {
  for (auto line = lines_.begin(); line != lines_.end();) {
    fold(line->second, now);
    line = line->second.words.empty() ? lines_.erase(line) : std::next(line);
  }
  fold_at_ = std::max<std::size_t>(1024, lines_.size() * 2);
}

std::vector<Journal::Survivor> Journal::image(Time at, Choices& choices) const {
  std::vector<Survivor> result;
  for (const auto& [begin, line] : lines_) {
    const bool wsp = durability_.model.domain == PersistenceDomain::wsp;
    std::size_t unsure = 0;
    for (const Word& word : line.words) {
      if (word.kind != Kind::streaming && word.visible <= at && word.durable > at) ++unsure;
    }
    std::size_t prefix = unsure == 0 ? 0 : choices.choose(unsure + 1);
    Survivor& survivor = result.emplace_back(Survivor{begin, line.durable});
    for (const Word& word : line.words) {
      if (word.durable <= at) {
        apply(word, survivor.bytes);
      } else if (word.visible > at) {
        // Not there yet. Of a message that is arriving, the device of a wsp machine has a part.
        if (wsp && word.kind == Kind::device && choices.choose(2) == 1) {
          apply(word, survivor.bytes);
        }
      } else if (word.kind == Kind::streaming) {
        if (choices.choose(2) == 1) apply(word, survivor.bytes);
      } else if (prefix > 0) {
        --prefix;
        apply(word, survivor.bytes);
      }
    }
  }
  return result;
}

}  // namespace perdura::pmem::sim
