#include "report/templates.h"

#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace perdura::report {

/// File names and texts; the build writes it (embed_templates.cmake).
std::span<const std::pair<std::string_view, std::string_view>> embedded_templates();

std::string render(const std::string& name, Data data) {
  std::string text;
  for (const auto& [file, content] : embedded_templates()) {
    data[std::string(file)] =
        kainjow::mustache::partial([content] { return std::string(content); });
    if (file == name) text = content;
  }
  kainjow::mustache::mustache page(text);
  std::string rendered = page.render(data);
  if (!page.is_valid()) throw std::logic_error("template " + name + ": " + page.error_message());
  return rendered;
}

}  // namespace perdura::report
