# Writes a source file with the texts of the page's templates, so that a copied program has them.
#
#   cmake -D OUT=FILE -D TEMPLATES=FILE;FILE... -P embed_templates.cmake
set(entries "")
foreach(file IN LISTS TEMPLATES)
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" text)
  string(APPEND entries "    {\"${name}\", R\"template(${text})template\"},\n")
endforeach()
file(WRITE "${OUT}" "// Made from templates/ by embed_templates.cmake.
#include <array>
#include <span>
#include <string_view>
#include <utility>

namespace perdura::report {

std::span<const std::pair<std::string_view, std::string_view>> embedded_templates() {
  static constexpr std::pair<std::string_view, std::string_view> kTemplates[] = {
${entries}  };
  return kTemplates;
}

}  // namespace perdura::report
")
