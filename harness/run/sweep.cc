#include "harness/run/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <set>

#include "harness/results/host_noise.h"
#include "harness/results/interrupted_sweep.h"
#include "harness/results/result_writer.h"
#include "harness/run/crash_message.h"
#include "harness/run/heartbeat.h"
#include "harness/run/interrupt.h"
#include "harness/run/launcher.h"
#include "harness/run/progress.h"
#include "harness/text/printable.h"
#include "platform/base/error.h"
#include "platform/base/limits.h"
#include "platform/base/path_kind.h"

namespace perdura::harness {
namespace {

// The roles of the points' nodes, without duplicates, in the order of the points.
std::vector<std::string> nodes_of(const std::vector<Point>& points) {
  std::vector<std::string> all;
  for (const Point& point : points) {
    std::string nodes = point.roles.to_text();
    if (std::find(all.begin(), all.end(), nodes) == all.end()) all.push_back(std::move(nodes));
  }
  return all;
}

constexpr std::uint64_t kNoMorePoints = ~std::uint64_t{0};
// The time for other ranks to end their points when results can no longer be kept.
constexpr std::chrono::seconds kTimeToEndPoint{4};
// The time for the main thread to finish writing before another thread writes its results.
constexpr std::chrono::seconds kTimeToEndWriting{4};

// Performs a step that only the root can do. If it fails, the other ranks must not begin: the root
// throws, and the others get the exit code.
std::optional<ExitCode> on_root(Ranks& ranks, const std::function<void()>& work) {
  std::exception_ptr problem;
  auto code = ExitCode::done;
  if (ranks.is_root()) {
    try {
      work();
    } catch (const UsageError&) {
      problem = std::current_exception();
      code = ExitCode::usage;
    } catch (...) {
      problem = std::current_exception();
      code = ExitCode::failed;
    }
  }
  code = static_cast<ExitCode>(ranks.broadcast(static_cast<int>(code)));
  if (problem) std::rethrow_exception(problem);
  if (code == ExitCode::done) return std::nullopt;
  return code;
}

class Sweep {
 public:
  Sweep(const RunRequest& request, PreparedSweep prepared, std::optional<InterruptedSweep> begun,
        Ranks& ranks)
      : request_(request),
        prepared_(std::move(prepared)),
        experiment_(prepared_.experiment),
        platforms_(*prepared_.platforms),
        driver_(*prepared_.driver),
        points_(prepared_.points),
        begun_(std::move(begun)),
        ranks_(ranks),
        heartbeat_(
            ranks, request.heartbeat, [this](auto index) { return points_[index].label; },
            platforms_.collective()) {}

  ExitCode run();

 private:
  struct Finished {
    Measurement measurement;
    std::chrono::nanoseconds wall{};
  };
  struct WriteProblem {
    std::string text;
    std::chrono::steady_clock::time_point since;
  };

  void open_results();
  std::optional<FileSystem> persistent_memory() const;
  MediaWrites media_writes_now() const;
  Manifest manifest() const;
  Identity identity() const;
  void run_together();
  void run_shared_out();
  HostNoise before_point();
  void keep_slower(HostNoise& noise);
  void take_results_of_others();
  void begin(std::size_t index);
  Finished run_point(const Point& point);
  PointTime time_of(const Point& point, std::chrono::nanoseconds wall) const;
  PointResult result_of(const Point& point, Measurement measurement) const;
  void record(std::size_t index, Finished finished);
  bool stopped() const {
    return !usage_error_.empty() || write_problem_ || cut_short_ || interrupted();
  }
  void note_write_problem(const std::exception& problem);
  std::string kept() const;
  std::optional<std::string> keep();
  // Valid at the root only, until ranks are allowed to end.
  bool rank_has_died() const { return !heartbeat_.lost().empty() || !ranks_.ended().empty(); }
  std::string why_not_whole() const;
  ExitCode finish();

  const RunRequest& request_;
  const PreparedSweep prepared_;
  const Experiment& experiment_;
  PlatformFactory& platforms_;
  const Driver& driver_;
  const std::vector<Point>& points_;
  std::optional<InterruptedSweep> begun_;  // set at the root if a sweep is continued
  Ranks& ranks_;
  std::vector<std::string> machines_;  // at the root, like the next two
  std::optional<FileSystem> persistent_memory_;
  MediaWrites media_writes_before_;
  std::optional<ResultWriter> results_;  // at the root
  std::optional<Progress> progress_;     // visible at the root only
  std::vector<std::uint64_t> missing_;   // indices of the points to run
  std::string usage_error_;
  // At the root: set when results can no longer be kept.
  std::optional<WriteProblem> write_problem_;
  bool cut_short_ = false;  // a rank was interrupted
  bool ranks_lost_ = false;
  std::set<int> ranks_at_work_;  // ranks other than the root
  std::size_t not_valid_ = 0;
  Calibration calibration_;
  Heartbeat heartbeat_;  // declared last, since its thread uses points_
};

// The file system of all points' data. If some points keep theirs in a mounted file system and others
// do not, a column of their own tells them apart, and this is the platform's.
std::optional<FileSystem> Sweep::persistent_memory() const {
  std::set<std::filesystem::path> places;
  for (const Point& point : points_) places.insert(driver_.directory_of_data(point));
  const std::filesystem::path place =
      places.size() == 1 && !places.begin()->empty() ? *places.begin() : platforms_.pm_directory();
  if (place.empty()) return std::nullopt;
  return persistent_memory_of(place);
}

// The writes to the DIMMs of the root's host so far.
MediaWrites Sweep::media_writes_now() const {
  if (persistent_memory_->dax != "yes") return {{}, "the persistent memory is not on DAX"};
  return media_writes();
}

Manifest Sweep::manifest() const {
  return {.experiment = experiment_.name,
          .platform = std::string(platforms_.name()),
          .modelled = platforms_.modelled(),
          .profile = platforms_.profile_name(),
          .profile_text = platforms_.profile_text(),
          .site_text = prepared_.site.text,
          .workloads = {prepared_.files.begin(), prepared_.files.end()},
          .persistent_memory = persistent_memory_,
          .seed = experiment_.seed,
          .repetitions = experiment_.repetitions,
          .points = points_.size(),
          .schema = schema_of(driver_, points_),
          .nodes = nodes_of(points_)};
}

// Measurements on real platforms depend on the machine and the number of processes; those of the
// model depend on neither.
Identity Sweep::identity() const {
  Identity identity = identity_of(prepared_);
  if (!platforms_.modelled()) {
    std::vector<std::string> names;
    for (const std::string& machine : machines_) names.push_back(machine_name(machine));
    identity.emplace_back("machine", fmt::format("{}", fmt::join(names, ", ")));
  }
  if (persistent_memory_) {
    identity.emplace_back("persistent memory", to_string(*persistent_memory_));
  }
  if (platforms_.collective()) identity.emplace_back("ranks", fmt::to_string(ranks_.size()));
  return identity;
}

// Opens the result folder. Called at the root.
void Sweep::open_results() {
  Manifest manifest = this->manifest();
  std::error_code ignored;
  const ProgramStart session{utc_now(), std::filesystem::current_path(ignored).string(),
                             request_.command_line, ranks_.size(), machines_};
  if (!begun_) {
    manifest.sessions = {session};
    const auto folder = request_.out.empty() ? next_result_folder("out", experiment_.name,
                                                                  std::string(platforms_.name()))
                                             : request_.out;
    results_.emplace(folder, experiment_.text, identity(), std::move(manifest));
    return;
  }
  check_same(request_.interrupted, begun_->identity, identity());
  JournalContents contents = contents_of(*begun_, request_.interrupted);
  manifest.sessions = std::move(contents.sessions);
  manifest.sessions.push_back(session);
  results_.emplace(request_.interrupted, std::move(*begun_), std::move(manifest));
  for (FinishedPoint& finished : contents.points) {
    const Point& point = points_.at(finished.index);
    if (finished.measurement.verdict != Verdict::valid) ++not_valid_;
    results_->restore(finished.index, result_of(point, std::move(finished.measurement)),
                      time_of(point, finished.wall));
  }
}

ExitCode Sweep::run() {
  machines_ = distinct_machines(ranks_.gather_text(describe_machine("/", request_.responder)));
  const auto refused = on_root(ranks_, [this] {
    persistent_memory_ = persistent_memory();
    open_results();
    if (persistent_memory_) {
      media_writes_before_ = media_writes_now();
      if (!request_.quiet) {
        fmt::print(stderr, "persistent memory: {}, {}\n", persistent_memory_->directory.string(),
                   persistent_memory_->promise);
      }
    }
    for (std::size_t index = 0; index < points_.size(); ++index) {
      if (!results_->has(index)) missing_.push_back(index);
    }
    heartbeat_.set_results_remark(kept());
    heartbeat_.set_emergency_save([this] { return keep(); });
  });
  if (refused) return *refused;
  missing_ = ranks_.broadcast(std::move(missing_));
  const std::filesystem::path folder =
      ranks_.broadcast_text(ranks_.is_root() ? results_->folder().string() : "");
  if (!ranks_.is_root()) {
    heartbeat_.set_results_remark(
        fmt::format("results are in {0}; perdura run --continue {0}", folder.string()));
    heartbeat_.set_root_reported([folder] { return !is_running(folder); });
  }
  progress_.emplace(points_.size(), points_.size() - missing_.size(),
                    ranks_.is_root() && !request_.quiet);
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
  // A point, or the message that there are no more points, may complete although a rank has died.
  // The launcher's signal to the other ranks is then a consequence, not the reason for stopping.
  if (ranks_.is_root() && !ranks_lost_ && rank_has_died()) {
    ranks_lost_ = true;
    heartbeat_.stop();
  }
  heed_interrupt();
  const ExitCode code = ranks_.is_root() ? finish() : ExitCode::done;
  if (ranks_lost_) ranks_.abort(static_cast<int>(ExitCode::failed));
  // The heartbeat goes on until no rank needs another one.
  if (!ranks_.leave()) {
    heartbeat_.stop();
    if (const auto lost = heartbeat_.lost(); !lost.empty()) {
      print_past_launcher(fmt::format("perdura: {}; {}\n", lost, kept()));
    }
    ranks_.abort(static_cast<int>(ExitCode::failed));
  }
  return code;
}

void Sweep::begin(std::size_t index) {
  const std::string& label = points_[index].label;
  progress_->begin(label);
  heartbeat_.running(index);
  set_crash_context(fmt::format("point {} ({})", index + 1, label));
}

Sweep::Finished Sweep::run_point(const Point& point) {
  const auto began = std::chrono::steady_clock::now();
  Finished finished;
  try {
    const auto platform = platforms_.create(point);
    finished.measurement = driver_.run(*platform, point);
  } catch (const UsageError& error) {
    finished.measurement.usage_error = error.what();
  } catch (const std::exception& error) {
    // On interrupt, a simulated point is stopped at an arbitrary place; the error is not its
    // system's fault.
    finished.measurement.interrupted = interrupted() && platforms_.modelled();
    finished.measurement.judge(Verdict::failed, problem_text(error));
  }
  finished.wall = std::chrono::steady_clock::now() - began;
  return finished;
}

void Sweep::run_together() {
  for (const std::uint64_t index : missing_) {
    // The other ranks sleep while the root measures the noise of its host.
    HostNoise noise;
    if (ranks_.is_root()) noise = before_point();
    if (ranks_.broadcast(stopped() ? 0 : 1) == 0) return;
    begin(index);
    const Finished own = run_point(points_[index]);
    const auto shares = ranks_.gather(own.measurement.serialize());
    if (!ranks_.is_root()) continue;
    Finished whole{{}, own.wall};
    for (const auto& share : shares) whole.measurement.merge(Measurement::deserialize(share));
    driver_.conclude(points_[index], whole.measurement);
    if (!platforms_.modelled()) {
      keep_slower(noise);
      whole.measurement.note_noise(noise);
    }
    record(index, std::move(whole));
  }
}

// Measures the noise of the root's host before a point.
HostNoise Sweep::before_point() {
  if (platforms_.modelled()) return {};
  HostNoise noise = noise_before();
  keep_slower(noise);
  return noise;
}

void Sweep::keep_slower(HostNoise& noise) {
  HostNoise now;
  now.slowdown_percent = calibration_.slowdown_percent(calibration_.measure());
  noise.merge(now);
}

void Sweep::run_shared_out() {
  const auto step = static_cast<std::size_t>(ranks_.size());
  for (int rank = 1; rank < ranks_.size(); ++rank) ranks_at_work_.insert(rank);
  for (auto next = static_cast<std::size_t>(ranks_.rank()); next < missing_.size(); next += step) {
    if (stopped() || (!ranks_.is_root() && heartbeat_.asked_to_stop())) break;
    const std::uint64_t index = missing_[next];
    begin(index);
    Finished finished = run_point(points_[index]);
    driver_.conclude(points_[index], finished.measurement);
    if (ranks_.is_root()) {
      record(index, std::move(finished));
      take_results_of_others();
    } else {
      auto words = finished.measurement.serialize();
      words.push_back(static_cast<std::uint64_t>(finished.wall.count()));
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
    if (write_problem_ &&
        std::chrono::steady_clock::now() - write_problem_->since > kTimeToEndPoint) {
      throw RanksLost();
    }
    ranks_.pause();
  }
}

void Sweep::take_results_of_others() {
  while (auto words = ranks_.try_receive()) {
    const std::uint64_t index = words->back();
    words->pop_back();
    if (index == kNoMorePoints) {
      ranks_at_work_.erase(static_cast<int>(words->back()));
      continue;
    }
    const std::chrono::nanoseconds wall(words->back());
    words->pop_back();
    record(index, {Measurement::deserialize(*words), wall});
  }
}

std::map<std::string, std::string, std::less<>> cells_of(const PointSettings& settings) {
  std::map<std::string, std::string, std::less<>> cells;
  for (const Parameter& parameter : settings.table()) {
    if (!parameter.identifies) continue;
    cells.emplace(parameter.name, settings.to_text(parameter.name));
  }
  return cells;
}

PointResult Sweep::result_of(const Point& point, Measurement measurement) const {
  return {{.experiment = experiment_.name,
           .platform = std::string(platforms_.name()),
           .modelled = platforms_.modelled(),
           .profile = platforms_.profile_name(),
           .system = point.system_name,
           .parameters = cells_of(point.settings),
           .seed = point.seed,
           .repetition = point.repetition,
           .accounting = point.accounting},
          std::move(measurement)};
}

PointTime Sweep::time_of(const Point& point, std::chrono::nanoseconds wall) const {
  return {point.label, point.operations, wall};
}

void Sweep::record(std::size_t index, Finished finished) {
  const Point& point = points_[index];
  Measurement& measurement = finished.measurement;
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
  if (write_problem_) return;
  try {
    results_->add(index, result_of(point, std::move(measurement)), time_of(point, finished.wall));
  } catch (const std::exception& problem) {
    note_write_problem(problem);
    return;
  }
  // The progress line is printed only now, when the point is on disk.
  progress_->end(point.label, results_->result(index).measurement);
  heartbeat_.set_results_remark(kept());
}

void Sweep::note_write_problem(const std::exception& problem) {
  if (!write_problem_) write_problem_ = {problem_text(problem), std::chrono::steady_clock::now()};
}

std::string Sweep::kept() const {
  const std::string folder = results_->folder().string();
  if (!results_->can_be_continued()) {
    return fmt::format("{} is no longer there: run the experiment again in a new folder", folder);
  }
  return fmt::format("{} of {} points are in {}; perdura run --continue {}", results_->done(),
                     points_.size(), folder, folder);
}

// Called on the heartbeat's thread when the main thread is stuck. Results that cannot be written
// into the tables remain in the journal.
std::optional<std::string> Sweep::keep() {
  try {
    switch (results_->finish_for_another(kTimeToEndWriting)) {
      case ResultWriter::Finish::finished:
        return kept();
      case ResultWriter::Finish::was_finished:
        return std::nullopt;
      case ResultWriter::Finish::busy:
        break;
    }
    return "";
  } catch (const std::exception& problem) {
    return fmt::format("{}; {}", problem_text(problem), kept());
  }
}

std::string Sweep::why_not_whole() const {
  if (write_problem_) return write_problem_->text;
  if (!ranks_lost_) return "interrupted";
  if (auto lost = heartbeat_.lost(); !lost.empty()) return lost;
  std::string gone;
  for (const int rank : ranks_.ended()) {
    gone += fmt::format("{}{} has died{}", gone.empty() ? "" : "; ", ranks_.describe(rank),
                        heartbeat_.last_seen(rank));
  }
  if (!gone.empty()) return gone;
  std::string silent;
  for (const int rank : ranks_at_work_) {
    silent +=
        fmt::format("; {} does not answer{}", ranks_.describe(rank), heartbeat_.last_seen(rank));
  }
  return "interrupted" + (silent.empty() ? "; not all ranks answer" : silent);
}

ExitCode Sweep::finish() {
  progress_->close();
  if (!usage_error_.empty() && results_->done() == 0) {
    // Nothing was run, so the folder is removed; otherwise it would be in the way of the corrected
    // command.
    results_->discard();
    fmt::print(stderr, "perdura: {}\n", printable(usage_error_));
    return ExitCode::usage;
  }
  if (persistent_memory_) {
    results_->set_media_writes(written_between(media_writes_before_, media_writes_now()));
  }
  bool whole = results_->done() == points_.size();
  const bool failed = write_problem_ || !usage_error_.empty();
  try {
    results_->finish(whole    ? RunStatus::complete
                     : failed ? RunStatus::failed
                              : RunStatus::interrupted);
  } catch (const std::exception& problem) {
    note_write_problem(problem);
    whole = false;
  }
  if (!usage_error_.empty()) {
    fmt::print(stderr, "perdura: {}\n", printable(usage_error_));
    return ExitCode::usage;
  }
  if (whole) fmt::print("{}\n", results_->folder().string());
  if (!whole || ranks_lost_) {
    print_past_launcher(fmt::format("perdura: {}; {}\n", why_not_whole(), kept()));
    return ExitCode::failed;
  }
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
  ExperimentRequest experiment = request.experiment;
  Locations places = locations;
  std::optional<InterruptedSweep> begun;
  if (!request.interrupted.empty()) {
    int complete = 0;
    const auto refused = on_root(ranks, [&] {
      begun = open_interrupted(request.interrupted, request.if_damaged);
      complete = begun ? 0 : 1;
      if (!begun) return;
      for (const std::string& note : begun->notes) fmt::print(stderr, "perdura: note: {}\n", note);
    });
    if (refused) return *refused;
    if (ranks.broadcast(complete) == 1) {
      if (ranks.is_root()) fmt::print("{}: is complete\n", request.interrupted.string());
      return ExitCode::done;
    }
    const auto folder = std::filesystem::absolute(request.interrupted);
    const auto site = folder / "site.toml";
    experiment = {.experiment = (folder / "experiment.toml").string(),
                  .site = is_there(site) ? site.string() : ""};
    places = locations.from(ranks.broadcast_text(begun ? begun->directory.string() : ""));
  }
  PreparedSweep prepared = prepare_sweep(experiment, places, drivers, ranks);
  watch_for_interrupts(ranks.is_root(), ranks.are_launched());
  install_crash_message(ranks.describe(ranks.rank()));
  end_if_interrupt_ignored();
  return Sweep(request, std::move(prepared), std::move(begun), ranks).run();
}

}  // namespace perdura::harness
