#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/report.h"
#include "tests/support/temporary_directory.h"

namespace perdura::report {

/// Cells of one row of points.csv that differ from a plain valid row.
using Cells = std::map<std::string, std::string>;

/// The header of points.csv.
const std::vector<std::string>& schema();

/// A points.csv of these rows.
std::string points_csv(const std::vector<Cells>& rows);

/// A claims.csv of these rows: of paper "p", measured by experiment "test", with ids "c1", "c2"...
std::string claims_csv(const std::vector<Cells>& rows);
/// A latency in microseconds that a figure shows, within 5 %.
Cells number_claim(const std::string& figure, const std::string& workload,
                   const std::string& system, const std::string& value);
/// That the mean latency is lower where `lower` holds than where `higher` does.
Cells order_claim(const std::string& lower, const std::string& higher);

/// That nothing measures, and why.
Cells not_covered_claim(const std::string& reason);

/// The cells of a measured row, to be completed.
Cells measured(Cells cells);

/// Rows of the three systems over value sizes 16 and 64, mean latency given per system.
std::vector<Cells> latency_rows();

/// A latency figure of workloadc; `more` are further lines of its TOML.
std::string latency_figure(const std::string& id, const std::string& more = "");

/// A folder that vanishes with the test.
class ReportTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// Writes a complete result folder below root().
  void result(const std::string& name, const std::vector<Cells>& rows, const std::string& toml);
  /// Makes its sweep one that ended early, or was killed.
  void interrupt(const std::string& name, const std::string& status = "interrupted");
  void write(const std::filesystem::path& relative, const std::string& text);
  std::string read(const std::filesystem::path& relative) const;

  const std::filesystem::path& root() const { return root_; }
  ReportOptions options() const;

  /// The report's page; fails the test if there is none.
  std::string page();
  /// The one line of the error; fails the test if there is no error.
  std::string error();

 private:
  std::optional<test::TemporaryDirectory> directory_;
  std::filesystem::path root_;
};

std::size_t count(const std::string& text, const std::string& part);

}  // namespace perdura::report
