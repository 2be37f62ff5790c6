// Names that become parts of paths. A name that comes from a user, a file or another process may
// contain '/' or be "..", and would then lead to a file in another folder. So each name is checked
// by one of these functions before it is used.
#pragma once

#include <cstddef>
#include <string_view>

namespace perdura {

// True if an entry of a folder may have this name: it is not empty, neither "." nor "..", and
// without '/' and '\0'. File systems differ in how long a name may be, so the caller checks that.
bool is_entry_name(std::string_view name);

// True if the name is that of an entry and does not begin with '.'; such entries are hidden, and
// our folders keep what belongs to themselves in them.
bool is_visible_name(std::string_view name);

// True for the letters and digits of ASCII, '-', '_' and '.'.
bool is_plain_character(char character);

// True if the name is a visible one of at most `longest` plain characters. It means the same in a
// path, an address of a web page and a cell of a table.
bool is_plain_name(std::string_view name, std::size_t longest = std::string_view::npos);

}  // namespace perdura
