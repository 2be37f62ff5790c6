// A space-time diagram: what happened in columns, one for each client, CPU, device and memory, in
// the order of time, as text and as SVG.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platform/base/units.h"

namespace perdura::explore {

struct Diagram {
  enum class Tone : std::uint8_t { plain, call, lost, failure };
  static constexpr std::size_t kAllColumns = ~std::size_t{0};

  struct Row {
    std::optional<Time> at{};  // nullopt: the row has no time of its own
    std::size_t column = 0;    // kAllColumns: the row spans all columns
    Tone tone = Tone::plain;
    std::string text;
  };
  // A message from the column of a row to that of a later one.
  struct Arrow {
    std::size_t from = 0;
    std::size_t to = 0;
    Tone tone = Tone::plain;
  };
  // Something that lasts from its first row to its last, in the column of the first: a call, or
  // data that is not durable.
  struct Span {
    std::size_t first = 0;
    std::size_t last = 0;
    Tone tone = Tone::plain;
  };

  std::string title;
  std::vector<std::string> columns;
  std::vector<Row> rows;
  std::vector<Arrow> arrows;
  std::vector<Span> spans;
  std::vector<std::string> conclusions;  // in the order in which they are to be read
};

// A table, at most 200 lines if the diagram has at most kMostRows rows.
std::string as_text(const Diagram& diagram);
// A document of its own, 1200 pixels wide.
std::string as_svg(const Diagram& diagram);

inline constexpr std::size_t kMostRows = 160;

}  // namespace perdura::explore
