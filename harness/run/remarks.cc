#include "harness/run/remarks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace perdura::harness {
namespace {

using workload::OperationKind;
using workload::RequestDistribution;

class Remarks {
 public:
  void add(const Point& point) {
    point_ = &point;
    clients();
    fields();
    keys();
    const workload::AskedOfYcsb& asked = spec().asked;
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
  const workload::WorkloadSpec& spec() const { return point_->workload; }

  void clients() {
    const workload::AskedOfYcsb& asked = spec().asked;
    const PointSettings& settings = point_->settings;
    if (asked.thread_count && asked.thread_count != settings.clients) {
      say(fmt::format("threadcount={}", *asked.thread_count),
          "the experiment says how many clients there are; set workload.clients, or "
          "matrix.clients");
    }
    if (asked.target && asked.target != settings.offered_load) {
      say(fmt::format("target={}", *asked.target),
          "the experiment says how many operations a second are offered; set workload.load = "
          "\"fixed\" and workload.offered_load");
    }
    const auto& seconds = asked.max_execution_seconds;
    if (seconds && settings.duration_ms != *seconds * 1000) {
      say(fmt::format("maxexecutiontime={}", *seconds),
          "the experiment says when a point ends; set workload.duration_ms");
    }
  }

  void fields() {
    const workload::AskedOfYcsb& asked = spec().asked;
    if (spec().field_count < 2) return;
    const auto whole = [&](std::string_view verb) {
      return fmt::format(
          "a record is one value here: all {} bytes of it are {}; set "
          "workload.value_size for values of another size",
          spec().max_value_size(), verb);
    };
    if (!asked.write_all_fields &&
        (spec().uses(OperationKind::update) || spec().uses(OperationKind::read_modify_write))) {
      say("writeallfields=false, which is the default", whole("written"));
    }
    if (!asked.read_all_fields &&
        (spec().uses(OperationKind::read) || spec().uses(OperationKind::read_modify_write))) {
      say("readallfields=false", whole("read"));
    }
  }

  void keys() {
    const RequestDistribution distribution = spec().request_distribution;
    if (distribution != RequestDistribution::latest &&
        distribution != RequestDistribution::exponential) {
      return;
    }
    if (!spec().uses(OperationKind::insert) || point_->settings.clients < 2) return;
    say(fmt::format("requestdistribution={}", to_string(distribution)),
        "of the new records a client knows its own ones only, and not the newest of all clients");
  }

  void say(std::string_view asked, std::string_view instead) {
    std::string line = fmt::format("workload {}: {}: {}", point_->workload_name, asked, instead);
    if (std::find(lines_.begin(), lines_.end(), line) == lines_.end()) {
      lines_.push_back(std::move(line));
    }
  }

  const Point* point_ = nullptr;
  std::vector<std::string> lines_{};
};

}  // namespace

std::vector<std::string> remarks_on_workloads(const std::vector<Point>& points) {
  Remarks remarks;
  for (const Point& point : points) remarks.add(point);
  return remarks.take();
}

}  // namespace perdura::harness
