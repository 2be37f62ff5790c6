#pragma once

#include <string>
#include <string_view>

namespace perdura::report {

/// Makes gnuplot's SVG fit to stand inside an HTML page beside others: its ids get a prefix (they
/// would clash), its size becomes that of its container, and each color rgb(r,g,b) becomes
/// var(--c-rrggbb, #rrggbb), so that the page's dark mode can choose another.
std::string inline_svg(std::string_view svg, const std::string& id_prefix,
                       const std::string& label);

}  // namespace perdura::report
