#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace perdura::report {

/// gnuplot's SVG, adapted for an HTML page with several figures: ids get a prefix (they would
/// clash), the size is that of the container, and each color rgb(r,g,b) becomes var(--c-rrggbb,
/// #rrggbb), so that the page's dark mode can replace it.
struct InlineSvg {
  std::string view_box;
  std::string body;  ///< the content of <svg>, including the end tag
};

/// Returns nullopt if the text is not SVG.
std::optional<InlineSvg> inline_svg(std::string_view svg, const std::string& id_prefix);

}  // namespace perdura::report
