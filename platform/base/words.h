#pragma once
/// Splits text into words, lines and the members of lists. A stream does not do for that: if memory
/// for a word is refused, the stream only stops, and the text seems to end there. These throw.

#include <string>
#include <string_view>
#include <vector>

namespace perdura {

/// The words between blanks, which are spaces, tabs and ends of lines.
std::vector<std::string> words_of(std::string_view text);

/// The parts between separators. As a line ends with '\n', so a last part may end with a separator:
/// "a,b," has two parts as "a,b" has, and "" has none.
std::vector<std::string> parts_of(std::string_view text, char separator);

}  // namespace perdura
