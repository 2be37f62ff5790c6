// What was seen of litmus tests, on which platform, as the rows of a table (docs/memory-model.md).
#pragma once

#include <string>
#include <vector>

#include "platform/litmus/runner.h"

namespace perdura::litmus {

// Which outcomes of a test the results have, by their place in Litmus::outcomes.
std::vector<bool> seen_in(const Litmus& litmus, const Results& results);

// A forbidden outcome that was seen, or null.
const Outcome* forbidden_in(const Litmus& litmus, const std::vector<bool>& seen);
// An allowed outcome that was not seen, or null.
const Outcome* missing_in(const Litmus& litmus, const std::vector<bool>& seen);

// Where a test ran, and what was seen there; empty if it did not run.
struct Column {
  std::string name;  // of the platform
  std::vector<bool> seen;
};

std::string table_head(const std::vector<Column>& columns);
// A row for each outcome of a test.
std::string table_rows(const Litmus& litmus, const std::vector<Column>& columns);

}  // namespace perdura::litmus
