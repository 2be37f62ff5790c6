// How help texts are laid out.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace perdura {

// A name that ends right before the column of descriptions gets a line of its own, as longer names
// do: with a single blank between name and description neither readers nor the generator of man
// pages could tell them apart.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string text = CLI::Formatter::make_option(option, is_positional);
    const std::size_t column = get_column_width();
    if (text.size() > column && text.find('\n') > column && text[column - 1] == ' ' &&
        text[column - 2] != ' ') {
      text.replace(column - 1, 1, "\n" + std::string(column, ' '));
    }
    return text;
  }
};

}  // namespace perdura
