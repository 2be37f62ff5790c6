#include "bench/ycsb/workload_remarks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bench/ycsb/point_workload.h"

namespace perdura::bench {
namespace {

using harness::Point;
using harness::PointSettings;
using ycsb::OperationKind;
using ycsb::RequestDistribution;

class Remarks {
 public:
  explicit Remarks(const std::vector<Point>& points) : points_(points) {}

  void add(const Point& point) {
    point_ = &point;
    clients();
    fields();
    keys();
    const ycsb::AskedOfYcsb& asked = spec().asked;
    if (asked.load_only) {
      say("dotransactions=false", "the records are loaded, and then the operations are run");
    }
    if (asked.insertion_retry_limit) {
      say(fmt::format("core_workload_insertion_retry_limit={}", *asked.insertion_retry_limit),
          "an insertion that fails is an error of the point");
    }
    if (!asked.of_bindings.empty()) {
      say(fmt::format("{}", fmt::join(asked.of_bindings, ", ")),
          "ignored, as for a database binding of YCSB");
    }
  }

  std::vector<std::string> take() { return std::move(lines_); }

 private:
  const ycsb::WorkloadSpec& spec() const { return workload_of(*point_); }

  void clients() {
    const ycsb::AskedOfYcsb& asked = spec().asked;
    const PointSettings& settings = point_->settings;
    if (asked.thread_count && asked.thread_count != settings.number("clients")) {
      say(fmt::format("threadcount={}", *asked.thread_count),
          "the experiment says how many clients there are; set workload.clients, or "
          "matrix.clients");
    }
    if (asked.target && asked.target != given(settings, "offered_load")) {
      say(fmt::format("target={}", *asked.target),
          "the experiment says how many operations a second are offered; set workload.load = "
          "\"fixed\" and workload.offered_load");
    }
    const auto& seconds = asked.max_execution_seconds;
    if (seconds && given(settings, "duration_ms") != *seconds * 1000) {
      say(fmt::format("maxexecutiontime={}", *seconds),
          "the experiment says when a point ends; set workload.duration_ms");
    }
  }

  // Returns nothing also if the driver's points have no such parameter.
  static std::optional<std::uint64_t> given(const PointSettings& settings, std::string_view name) {
    return settings.declares(name) ? settings.number_if_given(name) : std::nullopt;
  }

  void fields() {
    const ycsb::AskedOfYcsb& asked = spec().asked;
    if (asked.field_count < 2) return;
    const bool modifies = spec().uses(OperationKind::read_modify_write);
    if (!asked.write_all_fields && (spec().uses(OperationKind::update) || modifies)) {
      say("writeallfields=false, which is the default", whole_value("written", "an update writes"));
    }
    if (!asked.read_all_fields && (spec().uses(OperationKind::read) || modifies)) {
      say("readallfields=false", whole_value("read", "a read reads"));
    }
  }

  std::string whole_value(std::string_view done, std::string_view doing) const {
    if (spec().field_count == 1) {
      return fmt::format(
          "the file's field sizes are not used, since the experiment sets value_size; {} the whole "
          "value of {} bytes",
          doing, value_sizes());
    }
    return fmt::format(
        "a record is one value here: all {} bytes of it are {}; set "
        "workload.value_size for values of another size",
        spec().max_value_size(), done);
  }

  // The value sizes of all points with this workload, for one line about all of them: "64", "16 to
  // 4096".
  std::string value_sizes() const {
    std::uint32_t least = spec().max_value_size();
    std::uint32_t most = least;
    for (const Point& point : points_) {
      if (workload_name(point) != workload_name(*point_)) continue;
      least = std::min(least, workload_of(point).max_value_size());
      most = std::max(most, workload_of(point).max_value_size());
    }
    return least == most ? fmt::to_string(least) : fmt::format("{} to {}", least, most);
  }

  void keys() {
    const RequestDistribution distribution = spec().request_distribution;
    if (distribution != RequestDistribution::latest &&
        distribution != RequestDistribution::exponential) {
      return;
    }
    if (!spec().uses(OperationKind::insert) || point_->settings.number("clients") < 2) return;
    say(fmt::format("requestdistribution={}", to_string(distribution)),
        "of the new records a client knows its own ones only, and not the newest of all clients");
  }

  void say(std::string_view asked, std::string_view instead) {
    std::string line = fmt::format("workload {}: {}: {}", workload_name(*point_), asked, instead);
    if (std::find(lines_.begin(), lines_.end(), line) == lines_.end()) {
      lines_.push_back(std::move(line));
    }
  }

  const std::vector<Point>& points_;
  const Point* point_ = nullptr;
  std::vector<std::string> lines_{};
};

}  // namespace

std::vector<std::string> remarks_on_workloads(const std::vector<Point>& points) {
  Remarks remarks(points);
  for (const Point& point : points) remarks.add(point);
  return remarks.take();
}

}  // namespace perdura::bench
