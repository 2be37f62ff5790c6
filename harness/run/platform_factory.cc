#include "harness/run/platform_factory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>

#include "platform/error.h"
#include "platform/fabric/shm/job.h"
#include "platform/numa.h"
#include "platform/shm_platform.h"
#include "platform/sim/profile.h"
#include "platform/sim/sim_platform.h"

namespace perdura::harness {
namespace {

class SimFactory final : public PlatformFactory {
 public:
  explicit SimFactory(sim::Profile profile) : profile_(std::move(profile)) {}

  std::string_view name() const override { return "sim"; }
  bool modelled() const override { return true; }
  std::string profile_name() const override { return profile_.name; }
  std::string profile_text() const override { return profile_.text; }
  bool collective() const override { return false; }
  std::filesystem::path pm_directory() const override { return ""; }
  NodeId default_client_nodes() const override { return 1; }
  void check_client_nodes(NodeId) const override {}
  std::shared_ptr<Platform> create(const Point& point) override {
    sim::Profile profile = profile_;
    if (!point.settings.ddio.empty()) profile.ddio = point.settings.ddio == "on";
    return std::make_shared<sim::SimPlatform>(std::move(profile), point.client_nodes + 1);
  }

 private:
  sim::Profile profile_;
};

// A folder for the persistent memory of one point, below the one that the user gave: what systems
// left there must neither be found by the next point nor stay for ever.
class PointFolder {
 public:
  // An empty path stands for no folder.
  PointFolder(std::filesystem::path path, std::vector<NodeId> nodes)
      : path_(std::move(path)), nodes_(std::move(nodes)) {}
  ~PointFolder() {
    if (path_.empty()) return;
    std::error_code ignored;
    for (const NodeId node : nodes_) {
      std::filesystem::remove_all(path_ / fmt::format("node-{}", node), ignored);
    }
    std::filesystem::remove(path_, ignored);  // by the last process: it must be empty
  }
  PointFolder(const PointFolder&) = delete;
  PointFolder& operator=(const PointFolder&) = delete;

 private:
  std::filesystem::path path_;
  std::vector<NodeId> nodes_;
};

// It is not created: a file system that is not mounted would go unnoticed, and a disk be measured.
void check_pm_directory(const Located& directory) {
  const std::filesystem::path path = directory.text;
  if (path.empty()) return;
  if (path.is_relative()) {
    throw UsageError(
        fmt::format("{}: pm_directory {}: must begin with a '/'", directory.where, path.string()));
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return;
  throw UsageError(
      fmt::format("{}: pm_directory {}: there is no such directory; mount the file system of the "
                  "persistent memory, or create the directory there",
                  directory.where, path.string()));
}

void check_placement(const SiteHost& host, std::span<const unsigned> usable_cores) {
  check_cores(host, usable_cores);
  try {
    const MemoryBinding tried(host.numa_node);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: host {}: {}", host.numa_where, host.name, error.what()));
  }
}

class ShmFactory final : public PlatformFactory {
 public:
  ShmFactory(const Experiment& experiment, Ranks& ranks_of_run, Site site)
      : file_(experiment.file),
        site_(std::move(site)),
        all_ranks_(ranks_of_run),
        settings_(experiment.shm),
        accounting_(experiment.accounting),
        rank_(static_cast<NodeId>(ranks_of_run.rank())),
        ranks_(static_cast<NodeId>(ranks_of_run.size())) {
    check_pm_directory(settings_.pm_directory);
    const std::vector<unsigned> usable = usable_cores();
    if (ranks_ == 1) {
      for (const SiteHost& host : site_.hosts) check_placement(host, usable);
    } else if (const SiteHost* host = host_of_node(site_, rank_)) {
      check_placement(*host, usable);
    }
  }

  std::string_view name() const override { return "shm"; }
  bool modelled() const override { return false; }
  std::string profile_name() const override { return "host"; }
  std::string profile_text() const override { return ""; }
  bool collective() const override { return true; }
  std::filesystem::path pm_directory() const override {
    return settings_.pm_directory.text.empty() ? "/dev/shm" : settings_.pm_directory.text;
  }
  NodeId default_client_nodes() const override { return ranks_ == 1 ? 1 : ranks_ - 1; }

  void check_client_nodes(NodeId client_nodes) const override {
    if (ranks_ == 1 || client_nodes + 1 == ranks_) return;
    throw UsageError(
        fmt::format("{}: {} client nodes and a server need {} ranks, not {}; start mpirun -n {}, "
                    "or one process "
                    "for all, or leave client_nodes out",
                    file_, client_nodes, client_nodes + 1, ranks_, client_nodes + 1));
  }

  std::shared_ptr<Platform> create(const Point& point) override {
    const NodeId client_nodes = point.client_nodes;
    std::vector<NodeId> nodes{rank_};
    if (ranks_ == 1) {
      nodes.resize(client_nodes + 1);
      std::iota(nodes.begin(), nodes.end(), NodeId{0});
    }
    // Here, since here all ranks take part.
    if (job_.empty()) job_ = fmt::format("run-{}", all_ranks_.broadcast(getpid()));
    const std::string job = fmt::format("{}-{}", job_, created_++);
    std::vector<Placement> placements(client_nodes + 1);
    for (NodeId node = 0; node <= client_nodes; ++node) {
      const SiteHost* host = host_of_node(site_, node);
      if (host != nullptr) placements[node] = {host->cores, host->numa_node};
    }
    const std::filesystem::path parent = settings_.pm_directory.text;
    ShmOptions options{
        .job = ranks_ == 1 ? "" : fabric::shm::automatic_name(job),
        .node_count = client_nodes + 1,
        .local_nodes = nodes,
        .pm_directory = parent.empty() ? "" : (parent / fmt::format("perdura-{}", job)).string(),
        .placements = std::move(placements),
        .write_latency = Nanoseconds(settings_.write_latency_ns),
        .accounting = accounting_,
        .fabric = {.network_latency = Nanoseconds(settings_.network_latency_ns)},
    };
    const auto held = std::make_shared<Held>(std::move(options));
    return {held, &held->platform};
  }

 private:
  struct Held {
    explicit Held(ShmOptions options)
        : folder(options.pm_directory, options.local_nodes), platform(std::move(options)) {}
    PointFolder folder;
    ShmPlatform platform;
  };

  std::string file_;
  Site site_;
  Ranks& all_ranks_;
  ShmSettings settings_;
  pmem::WriteMeter::Level accounting_;
  NodeId rank_;
  NodeId ranks_;
  std::string job_;
  std::uint64_t created_ = 0;
};

}  // namespace

std::unique_ptr<PlatformFactory> create_platform_factory(const Experiment& experiment,
                                                         const Locations& locations, Ranks& ranks,
                                                         const Site& site) {
  const Located& platform = experiment.platform;
  if (platform.text == "sim") {
    if (experiment.profile.text.empty()) {
      throw UsageError(fmt::format(
          "{}: platform sim needs a profile; add profile = \"...\" or --profile NAME (see 'perdura "
          "list')",
          experiment.file));
    }
    const auto file = locations.find(FileKind::profile, experiment.profile);
    return std::make_unique<SimFactory>(sim::load_profile(file.string()));
  }
  if (platform.text == "shm") {
    if (const auto other = ranks.elsewhere()) {
      throw UsageError(fmt::format(
          "{}: platform shm takes one host, but there are {} and {}; start all ranks on one",
          platform.where, ranks.describe(ranks.rank()), ranks.describe(*other)));
    }
    return std::make_unique<ShmFactory>(experiment, ranks, site);
  }
  throw UsageError(
      fmt::format("{}: unknown platform '{}'; known are: sim, shm", platform.where, platform.text));
}

}  // namespace perdura::harness
