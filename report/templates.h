// The templates of the page: the files of templates/, which the build embeds into the program.
#pragma once

#include <kainjow/mustache.hpp>
#include <string>

namespace perdura::report {

/// The values that a template shows, by name. A text is escaped where the template has {{name}}; an
/// absent name yields nothing.
using Data = kainjow::mustache::data;
using DataList = kainjow::mustache::list;

/// The results of `make` for each element, in order.
template <class Range, class Make>
DataList list_of(const Range& range, Make make) {
  DataList list;
  for (const auto& each : range) list.push_back(make(each));
  return list;
}

/// Fills in the template with that file name. Templates may include each other: {{> table.html}}.
/// Precondition: it exists.
std::string render(const std::string& name, Data data);

/// The text with & < > " ' escaped, as templates escape it.
inline std::string escaped(const std::string& text) {
  return kainjow::mustache::html_escape<std::string>(text);
}

}  // namespace perdura::report
