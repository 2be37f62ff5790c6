// The tables of what is proven of the methods: for the report, for docs/persistence-tables.md.
#pragma once

#include <string>
#include <vector>

#include "persistence/proof.h"

namespace perdura::persistence {

struct Matrix {
  std::string name;  // of a file
  std::string title;
  std::string caption;
  bool verdicts = true;  // cells say how something ends
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // as many cells each as the header has
};

// The columns of a matrix over configurations: the twelve of Table 1, and on iWARP the four under
// WSP, the only ones for which it makes a difference.
std::vector<Configuration> matrix_configurations();

// Each cell of Tables 2 and 3: "right", or how the method goes wrong, and the method.
Matrix cells_matrix();
// Each step of each method of the tables, on the configurations for which they use it: what happens
// without it.
Matrix steps_matrix();
// Each method on each configuration: "right", "wasteful" (right, also without some step), or wrong.
Matrix transfer_matrix();

}  // namespace perdura::persistence
