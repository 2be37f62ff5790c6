#include "harness/run/sweep.h"

#include <fmt/format.h>

#include <cstdio>
#include <set>

#include "harness/config/section.h"
#include "harness/results/result_writer.h"
#include "harness/run/heartbeat.h"
#include "harness/run/interrupt.h"
#include "harness/run/last_words.h"
#include "harness/run/platform_factory.h"
#include "harness/run/progress.h"
#include "platform/error.h"

namespace perdura::harness {
namespace {

constexpr std::uint64_t kNoMorePoints = ~std::uint64_t{0};

const Driver& find_driver(std::span<const Driver* const> drivers, const Located& name) {
  std::vector<std::string_view> known;
  for (const Driver* driver : drivers) {
    if (driver->name() == name.text) return *driver;
    known.push_back(driver->name());
  }
  throw UsageError(fmt::format("{}: unknown driver '{}'; known are: {}", name.where, name.text,
                               join_names(known)));
}

class Sweep {
 public:
  Sweep(const RunRequest& request, const Experiment& experiment, PlatformFactory& platforms,
        const Driver& driver, std::vector<Point> points, Ranks& ranks)
      : request_(request),
        experiment_(experiment),
        platforms_(platforms),
        driver_(driver),
        points_(std::move(points)),
        ranks_(ranks),
        progress_(points_.size(), ranks.is_root() && !request.quiet),
        heartbeat_(ranks, request.heartbeat, [this](auto index) { return points_[index].label; }) {}

  ExitCode run();

 private:
  bool open_results();
  void run_together();
  void run_shared_out();
  void take_results_of_others();
  void begin(std::size_t index);
  Measurement run_point(const Point& point);
  void record(std::size_t index, Measurement measurement);
  bool stopped() const { return !usage_error_.empty() || cut_short_ || interrupted(); }
  std::string kept() const;
  std::string why_not_whole() const;
  ExitCode finish();

  const RunRequest& request_;
  const Experiment& experiment_;
  PlatformFactory& platforms_;
  const Driver& driver_;
  std::vector<Point> points_;
  Ranks& ranks_;
  Progress progress_;
  std::optional<ResultWriter> results_;  // of the root
  std::string usage_error_;
  bool cut_short_ = false;  // a rank was interrupted
  bool ranks_lost_ = false;
  std::set<int> ranks_at_work_;  // of the others
  std::size_t not_valid_ = 0;
  Heartbeat heartbeat_;  // last, since its thread looks at points_
};

// Only the root writes; when it cannot, the others must not begin.
bool Sweep::open_results() {
  std::exception_ptr problem;
  if (ranks_.is_root()) {
    try {
      const auto folder = request_.out.empty() ? next_result_folder("out", experiment_.name,
                                                                    std::string(platforms_.name()))
                                               : request_.out;
      results_.emplace(folder, experiment_.text,
                       Manifest{.experiment = experiment_.name,
                                .platform = std::string(platforms_.name()),
                                .modelled = platforms_.modelled(),
                                .profile = platforms_.profile_name(),
                                .profile_text = platforms_.profile_text(),
                                .seed = experiment_.seed,
                                .repetitions = experiment_.repetitions,
                                .mpi_ranks = ranks_.size(),
                                .points = points_.size(),
                                .started = utc_now(),
                                .command_line = request_.command_line,
                                .machine = this_machine()});
    } catch (...) {
      problem = std::current_exception();
    }
  }
  const bool opened = ranks_.broadcast(problem ? 0 : 1) == 1;
  if (problem) std::rethrow_exception(problem);
  return opened;
}

ExitCode Sweep::run() {
  if (!open_results()) return ExitCode::failed;
  if (ranks_.is_root()) heartbeat_.kept(kept());
  try {
    if (platforms_.collective()) {
      run_together();
    } else {
      run_shared_out();
    }
  } catch (const RanksLost&) {
    ranks_lost_ = true;
    heartbeat_.stop();
  }
  const ExitCode code = ranks_.is_root() ? finish() : ExitCode::done;
  if (ranks_lost_) ranks_.abort(static_cast<int>(ExitCode::failed));
  // Watched until nobody needs anybody any more.
  if (!ranks_.meet()) {
    heartbeat_.stop();
    if (const auto lost = heartbeat_.lost(); !lost.empty()) {
      fmt::print(stderr, "perdura: {}; {}\n", lost, kept());
    }
    ranks_.abort(static_cast<int>(ExitCode::failed));
  }
  return code;
}

void Sweep::begin(std::size_t index) {
  const std::string& label = points_[index].label;
  progress_.begin(label);
  heartbeat_.running(index);
  set_last_words(fmt::format("point {} ({})", index + 1, label));
}

Measurement Sweep::run_point(const Point& point) {
  Measurement measurement;
  try {
    const auto platform = platforms_.create(point);
    measurement = driver_.run(*platform, point);
  } catch (const UsageError& error) {
    measurement.usage_error = error.what();
  } catch (const std::exception& error) {
    measurement.judge(Verdict::failed, error.what());
  }
  return measurement;
}

void Sweep::run_together() {
  for (std::size_t index = 0; index < points_.size(); ++index) {
    if (ranks_.broadcast(stopped() ? 0 : 1) == 0) return;
    begin(index);
    const Measurement own = run_point(points_[index]);
    const auto shares = ranks_.gather(own.serialize());
    if (!ranks_.is_root()) continue;
    Measurement whole;
    for (const auto& share : shares) whole.merge(Measurement::deserialize(share));
    driver_.conclude(points_[index], whole);
    record(index, std::move(whole));
  }
}

void Sweep::run_shared_out() {
  const auto step = static_cast<std::size_t>(ranks_.size());
  for (int rank = 1; rank < ranks_.size(); ++rank) ranks_at_work_.insert(rank);
  for (auto index = static_cast<std::size_t>(ranks_.rank()); index < points_.size();
       index += step) {
    if (stopped() || (!ranks_.is_root() && heartbeat_.asked_to_stop())) break;
    begin(index);
    Measurement measurement = run_point(points_[index]);
    driver_.conclude(points_[index], measurement);
    if (ranks_.is_root()) {
      record(index, std::move(measurement));
      take_results_of_others();
    } else {
      auto words = measurement.serialize();
      words.push_back(index);
      ranks_.send_to_root(std::move(words));
    }
  }
  if (!ranks_.is_root()) {
    ranks_.send_to_root({static_cast<std::uint64_t>(ranks_.rank()), kNoMorePoints});
    ranks_.finish_sending();
    return;
  }
  while (!ranks_at_work_.empty()) {
    if (stopped()) heartbeat_.ask_to_stop();
    take_results_of_others();
    ranks_.pause();
  }
}

void Sweep::take_results_of_others() {
  while (auto words = ranks_.try_receive()) {
    const std::uint64_t index = words->back();
    words->pop_back();
    if (index == kNoMorePoints) {
      ranks_at_work_.erase(static_cast<int>(words->back()));
    } else {
      record(index, Measurement::deserialize(*words));
    }
  }
}

void Sweep::record(std::size_t index, Measurement measurement) {
  const Point& point = points_[index];
  if (!measurement.usage_error.empty()) {
    if (usage_error_.empty()) {
      usage_error_ =
          fmt::format("{}: {}: {}", experiment_.file, point.label, measurement.usage_error);
    }
    return;
  }
  if (measurement.interrupted) {
    cut_short_ = true;
    return;
  }
  if (measurement.verdict != Verdict::valid) ++not_valid_;
  progress_.end(point.label, measurement);
  results_->add(index, {{.experiment = experiment_.name,
                         .platform = std::string(platforms_.name()),
                         .modelled = platforms_.modelled(),
                         .profile = platforms_.profile_name(),
                         .system = point.system_name,
                         .workload = point.workload_name,
                         .key_size = point.workload.key_size,
                         .value_size = point.workload.max_value_size(),
                         .records = point.workload.loaded_keys(),
                         .clients = point.settings.clients,
                         .queue_depth = point.settings.queue_depth,
                         .server_threads = point.settings.server_threads,
                         .load = point.settings.load,
                         .offered_load = point.settings.offered_load,
                         .domain = point.settings.domain,
                         .ddio = point.settings.ddio,
                         .receive_buffers = point.settings.receive_buffers,
                         .transport = point.settings.transport,
                         .update = point.settings.update,
                         .persistence = point.settings.persistence,
                         .seed = point.seed,
                         .repetition = point.repetition,
                         .accounting = point.accounting},
                        std::move(measurement)});
  heartbeat_.kept(kept());
}

std::string Sweep::kept() const {
  return fmt::format("{} of {} points are in {}", results_->done(), points_.size(),
                     results_->folder().string());
}

std::string Sweep::why_not_whole() const {
  if (!ranks_lost_) return "interrupted";
  if (auto lost = heartbeat_.lost(); !lost.empty()) return lost;
  std::string silent;
  for (const int rank : ranks_at_work_) {
    silent +=
        fmt::format("; {} does not answer{}", ranks_.describe(rank), heartbeat_.last_seen(rank));
  }
  return "interrupted" + (silent.empty() ? "; not all ranks answer" : silent);
}

ExitCode Sweep::finish() {
  progress_.close();
  if (!usage_error_.empty() && results_->done() == 0) {
    // Nothing was run, so nothing is left behind that would be in the way of the corrected command.
    results_->discard();
    fmt::print(stderr, "perdura: {}\n", usage_error_);
    return ExitCode::usage;
  }
  const bool whole = results_->done() == points_.size();
  results_->finish(whole                  ? RunStatus::complete
                   : usage_error_.empty() ? RunStatus::interrupted
                                          : RunStatus::failed);
  if (!usage_error_.empty()) {
    fmt::print(stderr, "perdura: {}\n", usage_error_);
    return ExitCode::usage;
  }
  if (!whole) {
    fmt::print(stderr, "perdura: {}; {}\n", why_not_whole(), kept());
    return ExitCode::failed;
  }
  fmt::print("{}\n", results_->folder().string());
  if (not_valid_ > 0) {
    fmt::print(stderr, "perdura: {} of {} points are not valid; see verdict and reason in {}\n",
               not_valid_, points_.size(), (results_->folder() / "points.csv").string());
    return ExitCode::failed;
  }
  return ExitCode::done;
}

}  // namespace

ExitCode run_experiment(const RunRequest& request, const Locations& locations,
                        std::span<const Driver* const> drivers, Ranks& ranks) {
  const auto file = locations.find(FileKind::experiment, {request.experiment, ""});
  const Experiment experiment = load_experiment(file, request.overrides);
  const Driver& driver = find_driver(drivers, experiment.driver);
  const auto platforms = create_platform_factory(experiment, locations, ranks);
  std::vector<Point> points =
      plan_points(experiment, locations, driver, platforms->default_client_nodes());
  for (const Point& point : points) platforms->check_client_nodes(point.client_nodes);
  watch_for_interrupts();
  promise_last_words(ranks.describe(ranks.rank()));
  return Sweep(request, experiment, *platforms, driver, std::move(points), ranks).run();
}

}  // namespace perdura::harness
