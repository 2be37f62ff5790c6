#pragma once

#include <functional>
#include <span>
#include <string>

namespace perdura::harness {

// Adds a line with these cells; all lines have the same number of cells.
using AddLine = std::function<void(std::span<const std::string> cells)>;

// A table for people: every column is as wide as its widest cell, in characters; columns are two
// blanks apart, and lines have no trailing blanks. `lines` is called twice, for the widths and for
// the text, and must add the same lines both times: keeping the cells of a million lines would fill
// memory.
std::string text_table(const std::function<void(const AddLine& add)>& lines);

}  // namespace perdura::harness
