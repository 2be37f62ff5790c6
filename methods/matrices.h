// The tables of proven properties of the paper's methods, for reports and
// docs/persistence-tables.md. Methods that publish are in docs/remote-persistence.md.
#pragma once

#include <string>
#include <vector>

#include "methods/proof.h"

namespace perdura::methods {

struct Matrix {
  std::string name;  // file name without extension
  std::string title;
  std::string caption;
  bool verdicts = true;  // cells are verdicts
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // each has as many cells as the header
};

// The configurations that are the columns of a matrix: the twelve of Table 1, and on iWARP the four
// under WSP, since the transport makes a difference for those only.
std::vector<Configuration> matrix_configurations();

// For each cell of Tables 2 and 3: the method, and "right" or how it goes wrong.
Matrix cells_matrix();
// For each step of each method of the tables, on the configurations for which the method is used:
// what happens without the step.
Matrix steps_matrix();
// For each method on each configuration: "right", "wasteful" (right, but also without some step),
// or how it goes wrong.
Matrix transfer_matrix();

}  // namespace perdura::methods
