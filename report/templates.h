// The templates of the page: the files of templates/, which the build puts into the program.
#pragma once

#include <kainjow/mustache.hpp>
#include <string>

namespace perdura::report {

/// What a template shows, by the names that stand in it. A text is escaped wherever the template
/// has {{name}}; of an absent name nothing is shown.
using Data = kainjow::mustache::data;
using DataList = kainjow::mustache::list;

/// What `make` gives for each, in their order.
template <class Range, class Make>
DataList list_of(const Range& range, Make make) {
  DataList list;
  for (const auto& each : range) list.push_back(make(each));
  return list;
}

/// The template of that file name, filled in. Each may include the others: {{> table.html}}.
/// Precondition: there is one of that name.
std::string render(const std::string& name, Data data);

/// The text with & < > " ' escaped, as templates do it.
inline std::string escaped(const std::string& text) {
  return kainjow::mustache::html_escape<std::string>(text);
}

}  // namespace perdura::report
