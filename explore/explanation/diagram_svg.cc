#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "explore/explanation/diagram.h"

namespace perdura::explore {

namespace {

using Tone = Diagram::Tone;

// In pixels. Each row has a height of its own, so that no two texts meet.
constexpr double kWidth = 1200;
constexpr double kLeft = 90;  // the margin for the times
constexpr double kRow = 28;
constexpr double kTop = 84;               // room for the title and the headings
constexpr double kLetter = 6.7;           // the width of one, at most, on average
constexpr double kBoldLetter = 8.2;       // the same for the bold text of failures
constexpr std::size_t kLineLength = 165;  // letters of a conclusion

std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        // Control characters cannot be written in XML 1.0.
        result += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
    }
  }
  return result;
}

std::string_view color_of(Tone tone) {
  switch (tone) {
    case Tone::plain:
      return "#222222";
    case Tone::call:
      return "#1f4e8c";
    case Tone::lost:
    case Tone::failure:
      return "#c00000";
  }
  return "";
}

// Breaks a text at spaces.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (text.size() > kLineLength) {
    std::size_t end = text.rfind(' ', kLineLength);
    if (end == std::string_view::npos || end == 0) end = kLineLength;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  lines.emplace_back(text);
  return lines;
}

class Drawing {
 public:
  explicit Drawing(const Diagram& diagram) : diagram_(diagram) {
    for (const std::string& conclusion : diagram.conclusions) {
      for (std::string& line : lines_of(conclusion)) below_.push_back(std::move(line));
    }
  }

  std::string document() {
    const double height =
        y_of(diagram_.rows.size()) + kRow * static_cast<double>(below_.size() + 2);
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
        "viewBox=\"0 0 {0} {1}\" font-family=\"DejaVu Sans, Arial, sans-serif\" "
        "font-size=\"11\">\n"
        "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" "
        "markerHeight=\"7\" orient=\"auto\"><path d=\"M0,0L8,4L0,8z\" fill=\"#555555\"/>"
        "</marker></defs>\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
        kWidth, height);
    text(16, 26, Tone::plain, "start", diagram_.title, "font-size=\"15\" font-weight=\"bold\"");
    lifelines();
    for (const Diagram::Span& span : diagram_.spans) draw(span);
    for (const Diagram::Row& row : diagram_.rows) {
      if (row.tone == Tone::failure) bar(row);
    }
    for (const Diagram::Arrow& arrow : diagram_.arrows) draw(arrow);
    for (const Diagram::Row& row : diagram_.rows) draw(row);
    double y = y_of(diagram_.rows.size()) + kRow;
    for (const std::string& line : below_) {
      text(16, y, Tone::plain, "start", line, "font-size=\"12\"");
      y += kRow;
    }
    return svg_ + "</svg>\n";
  }

 private:
  std::size_t number_of(const Diagram::Row& row) const {
    return static_cast<std::size_t>(&row - diagram_.rows.data());
  }
  double x_of(std::size_t column) const {
    const double each = (kWidth - kLeft) / static_cast<double>(diagram_.columns.size());
    return kLeft + each * (static_cast<double>(column) + 0.5);
  }
  static double y_of(std::size_t row) { return kTop + kRow * (static_cast<double>(row) + 0.5); }

  // White around letters keeps them legible where they cross a line.
  void text(double x, double y, Tone tone, std::string_view anchor, std::string_view what,
            std::string_view more = "") {
    svg_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\" text-anchor=\"{}\" stroke=\"white\" "
        "stroke-width=\"4\" paint-order=\"stroke\" {}>{}</text>\n",
        x, y, color_of(tone), anchor, more, escaped(what));
  }

  void line(double x1, double y1, double x2, double y2, std::string_view color, double width,
            std::string_view more = "") {
    svg_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
        "stroke-width=\"{}\" {}/>\n",
        x1, y1, x2, y2, color, width, more);
  }

  void lifelines() {
    text(kLeft - 24, kTop - 16, Tone::plain, "end", "time, us");
    for (std::size_t column = 0; column < diagram_.columns.size(); ++column) {
      text(x_of(column), kTop - 16, Tone::plain, "middle", diagram_.columns[column],
           "font-size=\"13\" font-weight=\"bold\"");
      line(x_of(column), kTop - 6, x_of(column), y_of(diagram_.rows.size()), "#999999", 1);
    }
  }

  void bar(const Diagram::Row& row) {
    const double y = y_of(number_of(row));
    line(kLeft - 16, y, kWidth - 8, y, color_of(row.tone), 5);
    svg_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"20\" fill=\"white\" "
        "stroke=\"{}\"/>\n",
        kLeft, y - 10, 20 + kBoldLetter * static_cast<double>(row.text.size()), color_of(row.tone));
  }

  void draw(const Diagram::Span& span) {
    const Diagram::Row& first = diagram_.rows[span.first];
    const double x = x_of(first.column);
    const double y = y_of(span.first);
    const double height = y_of(span.last) - y;
    if (span.tone == Tone::lost) {
      line(x, y, x, y + height, color_of(span.tone), 6, "stroke-opacity=\"0.6\"");
      return;
    }
    svg_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"{:.1f}\" fill=\"#dce8f7\" "
        "stroke=\"{}\"/>\n",
        x - 6, y, std::max(height, 4.0), color_of(span.tone));
  }

  void draw(const Diagram::Arrow& arrow) {
    const Diagram::Row& from = diagram_.rows[arrow.from];
    const Diagram::Row& to = diagram_.rows[arrow.to];
    line(x_of(from.column), y_of(arrow.from), x_of(to.column), y_of(arrow.to),
         arrow.tone == Tone::lost ? color_of(arrow.tone) : "#555555", 1.2,
         "marker-end=\"url(#head)\"");
  }

  void draw(const Diagram::Row& row) {
    const double y = y_of(number_of(row));
    if (row.at) {
      text(kLeft - 24, y + 4, Tone::plain, "end",
           fmt::format("{:.3f}", to_microseconds(row.at->time_since_epoch())));
    }
    if (row.column == Diagram::kAllColumns) {
      const bool fails = row.tone == Tone::failure;
      text(kLeft + 10, y + 4, row.tone, "start", row.text,
           fails ? "font-weight=\"bold\" font-size=\"13\"" : "");
      return;
    }
    // Beside its line, on the side on which there is room. Arrows go downward: the text stands
    // above one that leaves on its side, and below one that comes from there.
    const double x = x_of(row.column);
    const bool right = x + 10 + kLetter * static_cast<double>(row.text.size()) < kWidth - 8;
    const double baseline = gets_arrow_from(right, row) ? y + 11 : y - 3;
    svg_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"/>\n", x, y,
                        color_of(row.tone));
    text(right ? x + 10 : x - 10, baseline, row.tone, right ? "start" : "end", row.text);
  }

  bool gets_arrow_from(bool right, const Diagram::Row& row) const {
    return std::any_of(diagram_.arrows.begin(), diagram_.arrows.end(),
                       [&](const Diagram::Arrow& arrow) {
                         const std::size_t source = diagram_.rows[arrow.from].column;
                         return arrow.to == number_of(row) && (source > row.column) == right;
                       });
  }

  const Diagram& diagram_;
  std::vector<std::string> below_;
  std::string svg_;
};

}  // namespace

std::string as_svg(const Diagram& diagram) { return Drawing(diagram).document(); }

}  // namespace perdura::explore
