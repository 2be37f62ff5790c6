#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace perdura::report {

/// Gnuplot's SVG, fit to stand inside an HTML page beside others: its ids have a prefix (they would
/// clash), its size is that of its container, and each color rgb(r,g,b) is var(--c-rrggbb,
/// #rrggbb), so that the page's dark mode can choose another.
struct InlineSvg {
  std::string view_box;
  std::string body;  ///< what stands in <svg>, with its end
};

/// Nothing if the text is no SVG.
std::optional<InlineSvg> inline_svg(std::string_view svg, const std::string& id_prefix);

}  // namespace perdura::report
