// What a power failure may leave of a simulated region.
//
// The journal holds, for each 64-byte line that is not surely durable as it is, its durable
// contents and the words stored since, each with the moment at which it became visible and the
// moment from which on it is durable whatever happens. A failure at a moment T leaves of a line:
//
//   - nothing of what becomes visible after T: it has not happened;
//   - everything that is surely durable by T;
//   - of other cached stores a prefix, in the order in which memory took them, since the line may
//     have been evicted after any of them; lines are independent of each other;
//   - of other words (non-temporal stores before their fence; on a wsp machine those of a message
//     that was still arriving) any.
//
// What is surely durable is folded into the line, and a line with nothing else is forgotten, so the
// journal stays as small as the data under way.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "platform/pmem/model/choices.h"
#include "platform/pmem/model/persistence.h"
#include "platform/pmem/sim/timeline.h"

namespace perdura::pmem::sim {

// What the journals of a cluster share.
struct Durability {
  PersistenceModel model;
  // If asked for: the moments at which what a failure may leave changes.
  bool list_moments = false;
  std::set<Time> moments;
};

class Journal {
 public:
  enum class Kind : std::uint8_t { cached, streaming, device };
  using Writer = const void*;  // a thread; its fences are for what it flushed and streamed itself

  Journal(Durability& durability, const std::byte* memory)
      : durability_(durability), memory_(memory) {}

  // Bytes about to be stored: line i becomes visible at visible.of(i). `now` is the engine's time.
  // Of a message, `accepted` is when the device has all of it.
  void store(Kind kind, Writer writer, Time now, Bytes offset, std::span<const std::byte> bytes,
             LineTimes visible, Time accepted);
  // The writer starts to write back what is visible of these lines at `at`.
  void flush(Writer writer, Bytes offset, Bytes length, Time at);
  // What the writer has flushed and streamed is durable from `completed` on.
  void fence(Writer writer, Time completed);
  // The device makes what is visible of a range durable.
  void device_flush(Bytes offset, Bytes length, Time at);

  // A line as it may be found after a failure.
  struct Survivor {
    Bytes offset = 0;
    std::array<std::byte, kCacheLine> bytes{};
  };
  // An image that a failure at `at`, the engine's time, may leave: the lines that may differ from
  // memory, in the order of addresses.
  std::vector<Survivor> image(Time at, Choices& choices) const;

  std::size_t lines() const { return lines_.size(); }

 private:
  static constexpr Time kNever = Time::max();

  struct Word {
    Time visible;
    Time durable;  // surely, from then on
    std::array<std::byte, kWord> bytes;
    std::uint8_t begin;  // in its line
    std::uint8_t size;   // within an aligned word
    Kind kind;
    Writer writer;
  };
  struct Line {
    std::array<std::byte, kCacheLine> durable;
    std::vector<Word> words;  // in the order in which memory took them
  };
  struct Flushed {
    Bytes line;
    Time at;
  };
  // What a writer's next fence is for.
  struct Pending {
    std::vector<Flushed> flushed;
    std::set<Bytes> streamed;  // lines
  };

  Time surely_durable(Kind kind, Time visible, Time accepted) const;
  static void apply(const Word& word, std::array<std::byte, kCacheLine>& line) {
    std::copy_n(word.bytes.begin(), word.size, line.begin() + word.begin);
  }
  void make_durable(Bytes line, Time visible_by, Time from);
  void note(Time moment) {
    if (durability_.list_moments) durability_.moments.insert(moment);
  }
  static void fold(Line& line, Time now);
  void fold_all(Time now);

  Durability& durability_;
  const std::byte* memory_;
  std::map<Bytes, Line> lines_;  // by offset; ordered, so that choices come in the same order
  std::map<Writer, Pending> pending_;
  std::size_t fold_at_ = 1024;  // lines, before all are looked at
};

}  // namespace perdura::pmem::sim
