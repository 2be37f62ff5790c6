#include "report/svg.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

namespace perdura::report {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

void remove_elements(std::string& text, const std::string& name) {
  const std::string open = "<" + name + ">";
  const std::string close = "</" + name + ">";
  for (std::size_t at = 0; (at = text.find(open, at)) != std::string::npos;) {
    const auto end = text.find(close, at);
    if (end == std::string::npos) return;
    text.erase(at, end + close.size() - at);
  }
}

void name_colors(std::string& text) {
  for (std::size_t at = 0; (at = text.find("rgb(", at)) != std::string::npos;) {
    const auto end = text.find(')', at);
    if (end == std::string::npos) return;
    std::array<long, 3> parts{};
    const char* cursor = text.c_str() + at + 4;
    for (long& part : parts) {
      char* stopped = nullptr;
      part = std::strtol(cursor, &stopped, 10);
      cursor = stopped + (*stopped == ',' ? 1 : 0);
    }
    const std::string hex = fmt::format("{:02x}{:02x}{:02x}", parts[0], parts[1], parts[2]);
    const std::string named = fmt::format("var(--c-{0}, #{0})", hex);
    text.replace(at, end + 1 - at, named);
    at += named.size();
  }
}

}  // namespace

std::optional<InlineSvg> inline_svg(std::string_view svg, const std::string& id_prefix) {
  std::string text(svg);
  const auto root = text.find("<svg");
  const auto box = text.find("viewBox=\"", root);
  const auto body = text.find('>', root);
  if (root == std::string::npos || box == std::string::npos || body == std::string::npos) {
    return std::nullopt;
  }
  const auto box_start = box + std::string_view("viewBox=\"").size();
  const std::string view_box = text.substr(box_start, text.find('"', box_start) - box_start);
  text.erase(0, body + 1);

  remove_elements(text, "title");
  remove_elements(text, "desc");
  replace_all(text, "id=\"", fmt::format("id=\"{}-", id_prefix));
  replace_all(text, "id='", fmt::format("id='{}-", id_prefix));
  replace_all(text, "xlink:href='#", fmt::format("href='#{}-", id_prefix));
  replace_all(text, "xlink:href=\"#", fmt::format("href=\"#{}-", id_prefix));
  replace_all(text, "url(#", fmt::format("url(#{}-", id_prefix));
  replace_all(text, "\"black\"", "\"currentColor\"");
  replace_all(text, " font-family=\"sans-serif\" ", " ");
  name_colors(text);
  return InlineSvg{view_box, text};
}

}  // namespace perdura::report
