#include "tests/report/fixture.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "harness/schema/csv_table.h"

namespace perdura::report {

const std::vector<std::string>& schema() {
  static const std::vector<std::string> columns{"schema_version",
                                                "experiment",
                                                "platform",
                                                "provenance",
                                                "profile",
                                                "system",
                                                "workload",
                                                "key_size",
                                                "value_size",
                                                "records",
                                                "clients",
                                                "queue_depth",
                                                "server_threads",
                                                "resizes",
                                                "load",
                                                "offered_load",
                                                "domain",
                                                "ddio",
                                                "receive_buffers",
                                                "transport",
                                                "update",
                                                "persistence",
                                                "seed",
                                                "repetition",
                                                "operation",
                                                "verdict",
                                                "reason",
                                                "method",
                                                "guarantee",
                                                "operations",
                                                "errors",
                                                "not_found",
                                                "torn_reads",
                                                "elapsed_s",
                                                "throughput_ops_s",
                                                "tail_percent",
                                                "long_tail",
                                                "saturated",
                                                "latency_mean_us",
                                                "latency_min_us",
                                                "latency_p50_us",
                                                "latency_p90_us",
                                                "latency_p99_us",
                                                "latency_p999_us",
                                                "latency_p9999_us",
                                                "latency_max_us",
                                                "latency_mean_low_us",
                                                "latency_mean_high_us",
                                                "latency_p50_low_us",
                                                "latency_p50_high_us",
                                                "latency_p90_low_us",
                                                "latency_p90_high_us",
                                                "latency_p99_low_us",
                                                "latency_p99_high_us",
                                                "latency_p999_low_us",
                                                "latency_p999_high_us",
                                                "latency_p9999_low_us",
                                                "latency_p9999_high_us",
                                                "response_mean_us",
                                                "response_min_us",
                                                "response_p50_us",
                                                "response_p90_us",
                                                "response_p99_us",
                                                "response_p999_us",
                                                "response_p9999_us",
                                                "response_max_us",
                                                "response_mean_low_us",
                                                "response_mean_high_us",
                                                "response_p50_low_us",
                                                "response_p50_high_us",
                                                "response_p90_low_us",
                                                "response_p90_high_us",
                                                "response_p99_low_us",
                                                "response_p99_high_us",
                                                "response_p999_low_us",
                                                "response_p999_high_us",
                                                "response_p9999_low_us",
                                                "response_p9999_high_us",
                                                "harness_ns_per_op",
                                                "server_cpu_us_per_op",
                                                "client_cpu_us_per_op",
                                                "nvm_field_bytes_per_op",
                                                "nvm_bytes_issued_per_op",
                                                "nvm_bytes_programmed_per_op",
                                                "nvm_bits_flipped_per_op",
                                                "nvm_flushes_per_op",
                                                "nvm_fences_per_op",
                                                "nvm_lines_per_op",
                                                "nvm_media_bytes_per_op",
                                                "nvm_local_bytes_per_op",
                                                "nvm_one_sided_bytes_per_op",
                                                "one_sided_reads_per_op",
                                                "space_used_percent"};
  return columns;
}

std::string points_csv(const std::vector<Cells>& rows) {
  static const Cells plain{
      {"schema_version", "5"},    {"experiment", "test"}, {"platform", "sim"},
      {"provenance", "modelled"}, {"profile", "bench"},   {"system", "erda"},
      {"workload", "workloadc"},  {"key_size", "16"},     {"value_size", "16"},
      {"records", "1000"},        {"clients", "4"},       {"queue_depth", "1"},
      {"server_threads", "2"},    {"load", "closed"},     {"seed", "7"},
      {"repetition", "0"},        {"operation", "all"},   {"verdict", "valid"}};
  std::string text;
  const auto add_line = [&text](const std::vector<std::string>& cells) {
    for (const std::string& cell : cells) {
      text += schema::csv_cell(cell);
      text += ',';
    }
    text.back() = '\n';
  };
  // The columns of real platforms, where a row has one of them.
  std::vector<std::string> columns = schema();
  for (const std::string column :
       {"noise", "load_average", "runnable_before_per_core", "runnable_per_core", "waiting_threads",
        "steal_percent", "slowdown_percent"}) {
    const bool given = std::any_of(rows.begin(), rows.end(),
                                   [&](const Cells& row) { return row.contains(column); });
    if (given) columns.push_back(column);
  }
  add_line(columns);
  for (const Cells& row : rows) {
    Cells cells = row;
    cells.insert(plain.begin(), plain.end());
    std::vector<std::string> line;
    for (const std::string& column : columns) line.push_back(cells[column]);
    add_line(line);
  }
  return text;
}

std::string claims_csv(const std::vector<Cells>& rows) {
  const std::vector<std::string> columns{
      "id",         "paper", "section", "figure", "quantity",   "workload",
      "system",     "value", "unit",    "kind",   "tolerance",  "tolerance_reason",
      "experiment", "y",     "where",   "lower",  "higher",     "any",
      "same",       "over",  "basis",   "note",   "not_covered"};
  const Cells plain{{"paper", "p"},
                    {"section", "1"},
                    {"quantity", "latency"},
                    {"experiment", "test"},
                    {"basis", "prediction"}};
  std::string text;
  for (const std::string& column : columns)
    text += column + (column == columns.back() ? "\n" : ",");
  std::size_t number = 0;
  for (Cells row : rows) {
    row.insert(plain.begin(), plain.end());
    std::string id = "c";
    id += std::to_string(++number);
    row.insert({"id", id});
    for (const std::string& column : columns) {
      text += schema::csv_cell(row[column]) + (column == columns.back() ? "\n" : ",");
    }
  }
  return text;
}

Cells number_claim(const std::string& figure, const std::string& workload,
                   const std::string& system, const std::string& value) {
  return {{"figure", figure}, {"workload", workload},
          {"system", system}, {"value", value},
          {"unit", "us"},     {"kind", "exact"},
          {"tolerance", "5"}, {"tolerance_reason", "a reason"}};
}

Cells order_claim(const std::string& lower, const std::string& higher) {
  return {{"kind", "order"}, {"y", "latency_mean_us"}, {"lower", lower}, {"higher", higher}};
}

Cells not_covered_claim(const std::string& reason) {
  return {{"not_covered", reason}, {"experiment", ""}, {"basis", ""}};
}

Cells measured(Cells cells) {
  cells.insert({{"platform", "shm"}, {"provenance", "measured"}, {"profile", "host"}});
  return cells;
}

std::vector<Cells> latency_rows() {
  std::vector<Cells> rows;
  const std::vector<std::pair<std::string, int>> systems{
      {"erda", 60}, {"redo-logging", 90}, {"read-after-write", 120}};
  for (const auto& [system, latency] : systems) {
    for (const int size : {16, 64}) {
      rows.push_back({{"system", system},
                      {"value_size", std::to_string(size)},
                      {"latency_mean_us", std::to_string(latency + (size == 64 ? 2 : 0))}});
    }
  }
  return rows;
}

std::string latency_figure(const std::string& id, const std::string& more) {
  return "[[figure]]\nid = \"" + id +
         "\"\ntitle = \"Latency of YCSB-C\"\nplot = \"latency-over-value-size\"\n"
         "x = \"value_size\"\ny = \"latency_mean_us\"\n"
         "where = { workload = \"workloadc\", operation = \"all\" }\n" +
         more + "\n";
}

void ReportTest::SetUp() {
  directory_.emplace(std::filesystem::temp_directory_path(), "report");
  root_ = directory_->path();
}

void ReportTest::TearDown() { directory_.reset(); }

void ReportTest::result(const std::string& name, const std::vector<Cells>& rows,
                        const std::string& toml) {
  write(name + "/points.csv", points_csv(rows));
  write(name + "/experiment.toml", "name = \"test\"\n" + toml);
  write(name + "/manifest.json", R"({"version": "0.1.0", "machine": {"cpu": "a <b> & c"}})");
}

void ReportTest::interrupt(const std::string& name, const std::string& status) {
  write(name + "/manifest.json",
        R"({"version": "0.1.0", "status": ")" + status + R"(", "points": 60, "points_done": 23})");
}

void ReportTest::write(const std::filesystem::path& relative, const std::string& text) {
  std::filesystem::create_directories((root_ / relative).parent_path());
  std::ofstream(root_ / relative, std::ios::binary) << text;
}

std::string ReportTest::read(const std::filesystem::path& relative) const {
  std::ifstream input(root_ / relative, std::ios::binary);
  return {std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
}

ReportOptions ReportTest::options() const {
  return {root_, PERDURA_PLOTS, PERDURA_CLAIMS, PERDURA_NOTES, {}, "gnuplot"};
}

std::string ReportTest::page() {
  const auto written = write_report(options());
  EXPECT_TRUE(written) << written.error().message;
  return written ? read("report/index.html") : "";
}

std::string ReportTest::error() {
  const auto written = write_report(options());
  EXPECT_FALSE(written) << "a report was written";
  return written ? "" : written.error().message;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) {
    ++found;
  }
  return found;
}

}  // namespace perdura::report
