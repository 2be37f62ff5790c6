// The outcomes of litmus tests that were seen, by platform, as the rows of a table
// (docs/memory-model.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform/litmus/runner.h"

namespace perdura::litmus {

// The number of results with each outcome of a test, by its place in Litmus::outcomes.
std::vector<std::uint64_t> times_in(const Litmus& litmus, const Results& results);

// Returns a forbidden outcome that was seen, or null.
const Outcome* forbidden_in(const Litmus& litmus, const std::vector<std::uint64_t>& times);
// Returns an allowed outcome that was not seen, or null.
const Outcome* missing_in(const Litmus& litmus, const std::vector<std::uint64_t>& times);

// The platform on which a test ran, and how often each outcome was seen there; empty if it did not
// run.
struct Column {
  std::string name;  // the platform's name
  std::vector<std::uint64_t> times;
  bool shows_times = false;  // false: shows only which outcomes were seen
};

// A table in Markdown, as on the page: its head, and a row for each outcome of a test.
std::string table_head(const std::vector<Column>& columns);
std::string table_rows(const Litmus& litmus, const std::vector<Column>& columns);
// The table of one test as plain text, for terminals.
std::string plain_table(const Litmus& litmus, const std::vector<Column>& columns);

}  // namespace perdura::litmus
