// Reads what the help of a command shows.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace perdura::test {

// The names that stand in the list of commands of a help text.
inline std::vector<std::string> listed_commands(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream input(help);
  bool inside = false;
  for (std::string line; std::getline(input, line);) {
    if (line.empty()) inside = false;
    // A long explanation goes on in the next line, further to the right.
    if (inside && line.size() > 2 && line[2] != ' ') {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    if (line == "Subcommands:") inside = true;
  }
  return names;
}

}  // namespace perdura::test
