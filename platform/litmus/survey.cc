#include "platform/litmus/survey.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace perdura::litmus {

namespace {

const Outcome* first(const Litmus& litmus, const std::vector<bool>& seen, bool allowed,
                     bool was_seen) {
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const Outcome& outcome = litmus.outcomes[i];
    if (outcome.allowed == allowed && seen[i] == was_seen) return &outcome;
  }
  return nullptr;
}

std::string memory_of(const Litmus& litmus) {
  std::string text;
  for (const Location& location : litmus.locations) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", location.name);
    if (location.lines > 1) text += fmt::format("[{}]", location.lines);
    text += fmt::format("@{}", location.node);
    if (location.initially != 0) text += fmt::format("={}", location.initially);
  }
  return text;
}

}  // namespace

std::vector<bool> seen_in(const Litmus& litmus, const Results& results) {
  std::vector<bool> seen;
  for (const Outcome& outcome : litmus.outcomes) {
    seen.push_back(std::any_of(results.begin(), results.end(), [&outcome](const auto& entry) {
      return matches(outcome, entry.first);
    }));
  }
  return seen;
}

const Outcome* forbidden_in(const Litmus& litmus, const std::vector<bool>& seen) {
  return first(litmus, seen, false, true);
}

const Outcome* missing_in(const Litmus& litmus, const std::vector<bool>& seen) {
  return first(litmus, seen, true, false);
}

std::string table_head(const std::vector<Column>& columns) {
  std::string names = "| Test | Outcome | Model |";
  std::string rule = "| --- | --- | --- |";
  for (const Column& column : columns) {
    names += fmt::format(" {} |", column.name);
    rule += " --- |";
  }
  return names + "\n" + rule + "\n";
}

std::string table_rows(const Litmus& litmus, const std::vector<Column>& columns) {
  std::string rows;
  for (std::size_t i = 0; i < litmus.outcomes.size(); ++i) {
    const Outcome& outcome = litmus.outcomes[i];
    if (i == 0) {
      rows += fmt::format("| **{}**<br>`{}`<br>`{}`<br>*{}* |", litmus.title, memory_of(litmus),
                          fmt::join(litmus.program_texts, "`<br>`"), litmus.source);
    } else {
      rows += "| |";
    }
    rows += fmt::format(" `{}` | {} |", outcome.text, outcome.allowed ? "allowed" : "forbidden");
    for (const Column& column : columns) {
      rows += column.seen.empty() ? " not run |" : column.seen[i] ? " seen |" : " never |";
    }
    rows += '\n';
  }
  return rows;
}

}  // namespace perdura::litmus
