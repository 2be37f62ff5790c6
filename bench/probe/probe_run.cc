#include "bench/probe/probe_run.h"
#include "bench/client_server.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

#include "bench/probe/building_blocks.h"
#include "bench/probe/characterization.h"
#include "bench/probe/figures.h"
#include "bench/probe/memory_probes.h"
#include "bench/probe/rdma_probes.h"
#include "bench/probe/timer_probes.h"
#include "harness/config/site.h"
#include "harness/results/manifest.h"
#include "harness/results/result_writer.h"
#include "harness/run/crash_message.h"
#include "harness/run/interrupt.h"
#include "harness/run/platform_factory.h"
#include "harness/run/progress.h"
#include "harness/schema/file_record.h"
#include "harness/text/atomic_file.h"
#include "harness/text/output_place.h"
#include "platform/base/error.h"
#include "platform/base/limits.h"
#include "platform/base/path_kind.h"
#include "platform/sim/kernel/profile.h"

namespace perdura::bench {
namespace {

using harness::ExitCode;
using harness::RunStatus;

// Creates the platform of each probe, as the harness does for the points of an experiment.
class Platforms {
 public:
  Platforms(const ProbeRequest& request, const harness::Locations& locations, harness::Ranks& ranks)
      : ranks_(ranks) {
    for (const auto level : {pmem::WriteMeter::Level::issued, pmem::WriteMeter::Level::compared}) {
      harness::Experiment experiment{};
      experiment.name = "probe";
      experiment.file = "probe";
      experiment.platform = {request.platform, "--platform"};
      experiment.profile = {request.profile, "--profile"};
      experiment.shm.pm_directory = request.verbs.pm_directory;
      experiment.verbs = request.verbs;
      experiment.accounting = level;
      factories_[level == pmem::WriteMeter::Level::compared] =
          harness::create_platform_factory(experiment, locations, ranks);
    }
  }
  const harness::PlatformFactory& any() const { return *factories_[0]; }

  // A single process runs all nodes that a probe needs.
  bool have_nodes_for(const Probe& probe) const {
    return nodes_of_ranks() == 1 || probe.nodes <= nodes_of_ranks();
  }

  std::shared_ptr<Platform> create(const Probe& probe) {
    harness::Point point{};
    point.roles = client_server(std::max(probe.nodes, nodes_of_ranks()) - 1);
    return factories_[probe.accounting == pmem::WriteMeter::Level::compared]->create(point);
  }

 private:
  // The number of nodes if every rank is a node; otherwise 1.
  NodeId nodes_of_ranks() const {
    return any().collective() ? static_cast<NodeId>(ranks_.size()) : 1;
  }

  harness::Ranks& ranks_;
  std::array<std::unique_ptr<harness::PlatformFactory>, 2> factories_;
};

// All processes run the same set of probes: the one for the root's host, which runs node 0.
HostMemory of_root(HostMemory host, harness::Ranks& ranks) {
  std::vector<std::uint64_t> words{host.cores, host.core, host.own_node};
  words.insert(words.end(), host.nodes.begin(), host.nodes.end());
  words = ranks.broadcast(std::move(words));
  const auto number = [&](std::size_t i) { return static_cast<std::uint32_t>(words[i]); };
  HostMemory root{.cores = number(0), .core = number(1), .own_node = number(2)};
  for (std::size_t i = 3; i < words.size(); ++i) root.nodes.push_back(number(i));
  root.no_huge_pages = ranks.broadcast_text(host.no_huge_pages);
  return root;
}

std::string value_text(const Reading& reading) {
  const std::string number = reading.median < 1000 ? fmt::format("{:.4g}", reading.median)
                                                   : fmt::format("{:.0f}", reading.median);
  return number + ' ' + reading.setting.unit;
}

// Sends what one process has measured to the root.
std::vector<double> at_root(harness::Ranks& ranks, const std::vector<double>& values) {
  std::vector<std::uint64_t> words;
  for (const double value : values) words.push_back(std::bit_cast<std::uint64_t>(value));
  std::vector<double> all;
  for (const auto& of_rank : ranks.gather(words)) {
    for (const std::uint64_t word : of_rank) all.push_back(std::bit_cast<double>(word));
  }
  return all;
}

// Refuses options that would have no effect.
const ProbeRequest& checked(const ProbeRequest& request) {
  const harness::VerbsSettings& verbs = request.verbs;
  if (request.platform == "sim" && !verbs.pm_directory.text.empty()) {
    throw UsageError("--pm-directory is for real memory; leave it out on sim");
  }
  if (request.platform != "verbs" &&
      (!verbs.device.empty() || verbs.port || verbs.gid_index || verbs.on_demand_paging)) {
    throw UsageError(
        fmt::format("--device, --port, --gid-index and --odp are for verbs; leave them out on {}",
                    request.platform));
  }
  return request;
}

class Run {
 public:
  Run(const ProbeRequest& request, const harness::Locations& locations, harness::Ranks& ranks)
      : request_(checked(request)),
        ranks_(ranks),
        platforms_(request, locations, ranks),
        modelled_(platforms_.any().modelled()) {
    const std::string base = request.profile.empty() ? "remote-log-connectx4" : request.profile;
    base_ =
        sim::load_profile(locations.find(harness::FileKind::profile, {base, "--profile"}).string());
    plots_ = locations.plots();
    platforms_.any().check_machine(client_server(1));
    if (modelled_) {
      platforms_.any().check_nodes(client_server(1));
      make_set(Effort::of(base_, request.quick), nullptr);
    } else {
      const HostMemory host = of_root(memory_of_this_host(), ranks);
      cores_ = host.cores;
      const Effort effort = Effort::of(false, cores_, request.quick);
      check_room(effort);
      make_set(effort, &host);
    }
  }

  ExitCode run() {
    // The root's process simulates all nodes.
    if (modelled_ && !ranks_.is_root()) return ExitCode::done;
    if (ranks_.is_root()) begin();
    harness::watch_for_interrupts(ranks_.is_root(), ranks_.are_launched());
    harness::install_crash_message(ranks_.describe(ranks_.rank()));
    harness::end_if_interrupt_ignored();
    harness::Progress progress(set_.probes.size(), 0, ranks_.is_root() && !request_.quiet);
    RunStatus status = RunStatus::complete;
    try {
      status = measure_all(progress);
    } catch (const harness::Interrupted&) {
      // A model is asked in the middle of a probe, too.
      if (!modelled_) throw;
      status = RunStatus::interrupted;
    } catch (const std::exception& error) {
      progress.close();
      if (!ranks_.is_root()) throw;
      keep(RunStatus::failed);
      throw PlatformError(fmt::format("{}; {}", problem_text(error), kept()));
    }
    progress.close();
    for (Reading& peak : peaks_of(readings_)) readings_.push_back(std::move(peak));
    if (request_.set != "memory" && status == RunStatus::complete) {
      device_ = capabilities(*platforms_.create(Probe{}));
    }
    return ranks_.is_root() ? finish(status) : ExitCode::done;
  }

 private:
  RunStatus measure_all(harness::Progress& progress) {
    for (const Probe& probe : set_.probes) {
      if (any_interrupted()) return RunStatus::interrupted;
      const std::string name = label(probe.setting);
      progress.begin(name);
      std::string reason;
      std::vector<double> values = measure(probe, reason);
      if (!ranks_.is_root()) continue;
      if (!reason.empty()) {
        progress.end(name, "not measured: " + reason, true);
        continue;
      }
      readings_.push_back(reading_of(probe.setting, std::move(values)));
      const Reading& reading = readings_.back();
      progress.end(name, value_text(reading), false);
    }
    return RunStatus::complete;
  }

  // Checks that there is enough memory before anything is written or measured.
  void check_room(const Effort& effort) {
    const auto platform = platforms_.create(Probe{});
    const Bytes least = request_.set == "memory" || request_.set == "all" ? effort.working_set
                                                                          : RdmaLoad{}.region_size;
    const std::string reason = refusal(*platform, {least});
    platform->run();
    if (!reason.empty()) throw UsageError("probe: " + reason);
  }

  void make_set(const Effort& effort, const HostMemory* host) {
    const auto add = [&](ProbeSet more) {
      std::move(more.probes.begin(), more.probes.end(), std::back_inserter(set_.probes));
      std::move(more.unanswered.begin(), more.unanswered.end(),
                std::back_inserter(set_.unanswered));
    };
    if (request_.set == "memory" || request_.set == "all") {
      add(memory_probes(effort, host));
      add(building_block_probes(effort));
      add(timer_probes(effort, modelled_));
    }
    if (request_.set != "memory") {
      const auto pages =
          modelled_ && !base_.translation ? std::vector<pmem::Pages>{} : pages_to_choose();
      add(request_.set == "translations" ? translation_probes(effort, modelled_, pages)
                                         : rdma_probes(effort, modelled_, pages));
    }
  }

  // Returns values at the root only. If the probe cannot be run, returns nothing and sets `reason`.
  std::vector<double> measure(const Probe& probe, std::string& reason) {
    if (!platforms_.have_nodes_for(probe)) {
      reason = fmt::format("it takes {0} nodes, a rank each; start mpirun -n {0}", probe.nodes);
      return {};
    }
    const auto platform = platforms_.create(probe);
    reason = refusal(*platform, probe.room);
    if (!reason.empty()) {
      platform->run();
      return {};
    }
    const Gather to_root = [this](const std::vector<std::uint64_t>& words) {
      return ranks_.gather(words);
    };
    std::vector<double> values = probe.measure(*platform, modelled_ ? Gather(alone) : to_root);
    if (!modelled_) values = at_root(ranks_, values);
    if (values.empty()) reason = "the device does not have it";
    return values;
  }

  // The page sizes that node 0 can use for its DRAM.
  std::vector<pmem::Pages> pages_to_choose() {
    std::vector<pmem::Pages> possible;
    for (const pmem::Pages pages : {pmem::Pages::small, pmem::Pages::huge}) {
      const auto platform = platforms_.create(Probe{});
      const std::string reason = refusal(*platform, {4 * KiB, pages});
      platform->run();
      if (!reason.empty()) {
        set_.unanswered.push_back({fmt::format("RDMA in {} pages", to_string(pages)), reason});
        break;
      }
      possible.push_back(pages);
    }
    return possible;
  }

  // Why node 0 cannot have memory of this kind and size, as its process tells all others; empty if
  // it can.
  std::string refusal(Platform& platform, Room room) {
    std::string reason;
    if (Node* const node = platform.local_node(0); node != nullptr && room.size != 0) {
      constexpr std::string_view kName = "room";
      try {
        create(*node, kName, room).reset();
        if (room.medium() == pmem::Medium::pm) node->remove_region(kName);
      } catch (const std::runtime_error& error) {
        reason = error.what();
      }
    }
    return modelled_ ? reason : ranks_.broadcast_text(reason);
  }

  void begin() {
    folder_ = request_.out.empty() ? harness::next_result_folder("out", "probe", request_.platform)
                                   : request_.out;
    if (const std::string problem = harness::problem_with_output_folder(folder_);
        !problem.empty()) {
      throw UsageError(fmt::format("--out {}: {}", folder_.string(), problem));
    }
    if (!names_in(folder_).empty()) {
      throw UsageError(fmt::format("--out {}: holds something already; choose another folder",
                                   folder_.string()));
    }
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) {
      throw UsageError(fmt::format("--out {}: cannot be created: {}; choose another folder",
                                   folder_.string(), error.message()));
    }
    if (!request_.quiet) {
      for (const auto& [probe, reason] : set_.unanswered) {
        fmt::print(stderr, "{}: not measured: {}\n", probe, reason);
      }
    }
    write_manifest(RunStatus::running);
  }

  // Gives the same answer in all processes that measure together.
  bool any_interrupted() {
    if (modelled_) return harness::interrupted();
    return ranks_.broadcast(harness::interrupted() ? 1 : 0) != 0;
  }

  // Writes the readings so far.
  void keep(RunStatus status) {
    const harness::PlatformFactory& platform = platforms_.any();
    const std::string csv = to_csv(readings_, platform.name(), modelled_, platform.profile_name());
    harness::write_atomically(folder_ / "probes.csv", csv);
    write_manifest(status, {{"probes.csv", schema::record_of(csv)}});
  }
  std::string kept() const {
    return fmt::format("{} of {} probes are in {}", readings_.size(), set_.probes.size(),
                       (folder_ / "probes.csv").string());
  }

  ExitCode finish(RunStatus status) {
    const harness::PlatformFactory& platform = platforms_.any();
    keep(status);
    if (status != RunStatus::complete) {
      fmt::print(stderr, "perdura: {}; {}\n", to_string(status), kept());
      return ExitCode::failed;
    }
    const Characterized found{.name = fmt::format("probe-{}", platform.profile_name()),
                              .date = started_,
                              .readings = readings_,
                              .cores = cores_,
                              .capabilities = device_};
    harness::write_atomically(folder_ / "profile.toml", characterize(found, base_));
    const std::string problem =
        draw(figures_of(readings_, fmt::format("{} on {} ({})", modelled_ ? "modelled" : "measured",
                                               platform.name(), platform.profile_name())),
             folder_, plots_);
    fmt::print("{}\n", folder_.string());
    if (problem.empty()) return ExitCode::done;
    fmt::print(stderr, "perdura: figures are missing: {}\n", problem);
    return ExitCode::failed;
  }

  void write_manifest(RunStatus status, std::map<std::string, schema::FileRecord> files = {}) {
    const harness::PlatformFactory& platform = platforms_.any();
    harness::Manifest manifest{.experiment = "probe-" + request_.set,
                               .platform = std::string(platform.name()),
                               .modelled = modelled_,
                               .profile = platform.profile_name(),
                               .profile_text = platform.profile_text(),
                               .points = set_.probes.size(),
                               .points_done = readings_.size(),
                               .status = status,
                               .files = std::move(files)};
    if (!modelled_) {
      manifest.persistent_memory = harness::file_system_of(platform.pm_directory());
    }
    manifest.sessions = {{.started = started_,
                          .directory = std::filesystem::current_path().string(),
                          .command_line = request_.command_line,
                          .mpi_ranks = ranks_.size(),
                          .machines = {harness::describe_machine("/", request_.responder)}}};
    harness::write_atomically(folder_ / "manifest.json", to_json(manifest));
  }

  const ProbeRequest& request_;
  harness::Ranks& ranks_;
  Platforms platforms_;
  bool modelled_;
  // On sim the testbed's profile; otherwise the profile with values for what is not measured.
  sim::Profile base_{};
  std::uint32_t cores_ = 0;
  std::filesystem::path plots_{};
  ProbeSet set_{};
  std::filesystem::path folder_{};
  std::string started_ = harness::utc_now();
  std::vector<Reading> readings_{};
  std::optional<fabric::Capabilities> device_{};
};

}  // namespace

ExitCode run_probes(const ProbeRequest& request, const harness::Locations& locations,
                    harness::Ranks& ranks) {
  return Run(request, locations, ranks).run();
}

}  // namespace perdura::bench
