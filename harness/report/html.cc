#include "harness/report/html.h"

namespace perdura::report {

std::string escaped(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char character : text) {
    switch (character) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += character;
    }
  }
  return safe;
}

}  // namespace perdura::report
