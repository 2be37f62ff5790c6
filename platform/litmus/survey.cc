#include "platform/litmus/survey.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace perdura::litmus {

namespace {

const Outcome* first(const Litmus& litmus, const std::vector<std::uint64_t>& times, bool allowed,
                     bool was_seen) {
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Outcome& outcome = litmus.outcomes[i];
    if (outcome.allowed == allowed && (times[i] > 0) == was_seen) return &outcome;
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

std::string cell(const Column& column, std::size_t outcome) {
  if (column.times.empty()) return "not run";
  const std::uint64_t times = column.times[outcome];
  if (times == 0) return "never";
  return column.shows_times ? fmt::format("{}", times) : "seen";
}

}  // namespace

std::vector<std::uint64_t> times_in(const Litmus& litmus, const Results& results) {
  std::vector<std::uint64_t> times;
  for (const Outcome& outcome : litmus.outcomes) {
    std::uint64_t& of_outcome = times.emplace_back(0);
    for (const auto& [result, seen] : results) {
      if (matches(outcome, result)) of_outcome += seen;
    }
  }
  return times;
}

const Outcome* forbidden_in(const Litmus& litmus, const std::vector<std::uint64_t>& times) {
  return first(litmus, times, false, true);
}

const Outcome* missing_in(const Litmus& litmus, const std::vector<std::uint64_t>& times) {
  return first(litmus, times, true, false);
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
      rows += fmt::format(" {} |", cell(column, i));
    }
    rows += '\n';
  }
  return rows;
}

std::string plain_table(const Litmus& litmus, const std::vector<Column>& columns) {
  std::string text = fmt::format("{} ({})\n  {}\n", litmus.title, litmus.source, memory_of(litmus));
  for (const std::string& program : litmus.program_texts) text += fmt::format("  {}\n", program);
  std::size_t width = std::string_view("outcome").size();
  for (const Outcome& outcome : litmus.outcomes) width = std::max(width, outcome.text.size());
  const auto add = [&](std::string_view first, std::string_view model, const auto& cell_of) {
    std::string line = fmt::format("  {:<{}}  {:<9}", first, width, model);
    for (const Column& column : columns) {
      // "not run" is the longest word besides the platform's name.
      line +=
          fmt::format("  {:<{}}", cell_of(column), std::max<std::size_t>(7, column.name.size()));
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  add("outcome", "model", [](const Column& column) { return column.name; });
  for (std::size_t i = 0; i < litmus.outcomes.size(); ++i) {
    const Outcome& outcome = litmus.outcomes[i];
    add(outcome.text, outcome.allowed ? "allowed" : "forbidden",
        [i](const Column& column) { return cell(column, i); });
  }
  return text + "\n";
}

}  // namespace perdura::litmus
