#pragma once

#include <functional>
#include <span>
#include <string>

namespace perdura::harness {

// Takes the cells of one line, of which all lines have as many.
using AddLine = std::function<void(std::span<const std::string> cells)>;

// A table for people: every column as wide as its widest cell, in characters, two blanks apart, and
// no blanks at a line's end. `lines` is called twice, for the widths and for the text, and adds the
// same lines both times: a million lines of cells would fill memory.
std::string text_table(const std::function<void(const AddLine& add)>& lines);

}  // namespace perdura::harness
