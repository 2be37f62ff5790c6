#include "harness/run/platform_factory.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "harness/run/interrupt.h"
#include "harness/run/memory.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "platform/base/suggestion.h"
#include "platform/fabric/shm/job.h"
#include "platform/host/numa.h"
#include "platform/pmem/mapped/dax_device.h"
#include "platform/pmem/mapped/pool_file.h"
#include "platform/shm/shm_platform.h"
#include "platform/sim/kernel/profile.h"
#include "platform/sim/sim_platform.h"
#ifdef PERDURA_HAVE_VERBS
#include "platform/verbs/verbs_platform.h"
#endif

namespace perdura::harness {
namespace {

constexpr const char* kSharedMemory = "/dev/shm";

class SimFactory final : public PlatformFactory {
 public:
  explicit SimFactory(sim::Profile profile) : profile_(std::move(profile)) {}

  std::string_view name() const override { return "sim"; }
  bool modelled() const override { return true; }
  std::string profile_name() const override { return profile_.name; }
  std::string profile_text() const override { return profile_.text; }
  // Completions mean the same in the model as on InfiniBand.
  Testbed testbed() const override { return {profile_.ddio ? "on" : "off", "ib"}; }
  bool collective() const override { return false; }
  std::filesystem::path pm_directory() const override { return ""; }
  NodeId nodes() const override { return 0; }
  void check_nodes(const Roles& roles) const override {
    std::vector<std::string> names;
    for (const Role& role : roles) names.push_back(role.name);
    sim::check_roles(profile_, names);
  }
  std::shared_ptr<Platform> create(const Point& point) override {
    sim::Profile profile = profile_;
    if (point.settings.declares("ddio") && point.settings.given("ddio")) {
      profile.ddio = point.settings.text("ddio") == "on";
    }
    std::vector<sim::NodesOfRole> roles;
    for (const Role& role : point.roles) roles.push_back({role.name, role.nodes});
    auto platform = std::make_shared<sim::SimPlatform>(std::move(profile), roles);
    platform->end_when(interrupt_signaled);
    return platform;
  }

 private:
  sim::Profile profile_;
};

// A folder for the persistent memory of one point, below the user's folder. It is removed
// afterwards: files that a system leaves must not be found by the next point, nor stay.
class PointFolder {
 public:
  // An empty path stands for no folder.
  PointFolder(std::filesystem::path path, std::vector<NodeId> nodes)
      : path_(std::move(path)), nodes_(std::move(nodes)) {}
  ~PointFolder() {
    if (path_.empty()) return;
    for (const NodeId node : nodes_) {
      pmem::mapped::remove_pool_directory(path_ / fmt::format("node-{}", node));
    }
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);  // succeeds in the last process, when it is empty
  }
  PointFolder(const PointFolder&) = delete;
  PointFolder& operator=(const PointFolder&) = delete;

 private:
  std::filesystem::path path_;
  std::vector<NodeId> nodes_;
};

void check_absolute(const Located& directory) {
  const std::filesystem::path path = directory.text;
  if (path.empty() || path.is_absolute()) return;
  throw UsageError(
      fmt::format("{}: pm_directory {}: must begin with a '/'", directory.where, path.string()));
}

// The folder must exist: if it were created, a file system that is not mounted would go unnoticed,
// and an ordinary disk would be measured.
void check_pm_directory(const Located& directory) {
  const std::filesystem::path path = directory.text;
  if (path.empty()) return;
  if (const auto inside = pmem::mapped::device_path(path)) {
    try {
      static_cast<void>(pmem::mapped::DaxDevice(inside->device).regions());
      return;
    } catch (const std::runtime_error& error) {
      throw UsageError(fmt::format("{}: pm_directory {}", directory.where, error.what()));
    }
  }
  const PathKind kind = kind_of(path);
  if (kind == PathKind::folder) return;
  if (kind == PathKind::nothing && path.string().starts_with("/dev/dax")) {
    throw UsageError(fmt::format(
        "{}: pm_directory {}: there is no such DAX device; 'daxctl list' names those there are, "
        "'ndctl create-namespace --mode devdax' makes one (root)",
        directory.where, path.string()));
  }
  throw UsageError(
      fmt::format("{}: pm_directory {}: {}; mount the file system of the persistent memory, or "
                  "create the folder there",
                  directory.where, path.string(), not_a_folder(path)));
}

void check_placement(const SiteHost& host, std::span<const unsigned> usable_cores) {
  check_cores(host, usable_cores);
  try {
    const MemoryBinding tried(host.numa_node);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: host {}: {}", host.numa_where, host.name, error.what()));
  }
}

// A platform of real threads. Either every rank is a node, or one process runs all nodes.
class HostFactory : public PlatformFactory {
 public:
  bool modelled() const override { return false; }
  std::string profile_name() const override { return "host"; }
  std::string profile_text() const override { return ""; }
  bool collective() const override { return true; }
  std::filesystem::path pm_directory() const override {
    return pm_directory_.text.empty() ? kSharedMemory : pm_directory_.text;
  }
  NodeId nodes() const override { return ranks_ == 1 ? 0 : ranks_; }

  void check_nodes(const Roles& roles) const override {
    const NodeId needed = roles.node_count();
    if (ranks_ != 1 && needed != ranks_) {
      throw UsageError(fmt::format(
          "{}: {} need {} ranks, not {}; start mpirun -n {}, or one process for all, or "
          "leave client_nodes out",
          file_, roles.to_text(), needed, ranks_, needed));
    }
  }
  void check_machine(const Roles& roles) const override {
    check_pm_directory(pm_directory_);
    check_cores_of(roles);
  }

 protected:
  HostFactory(const Experiment& experiment, Located pm_directory, Ranks& ranks_of_run, Site site)
      : file_(experiment.file),
        site_(std::move(site)),
        all_ranks_(ranks_of_run),
        pm_directory_(std::move(pm_directory)),
        accounting_(experiment.accounting),
        rank_(static_cast<NodeId>(ranks_of_run.rank())),
        ranks_(static_cast<NodeId>(ranks_of_run.size())) {
    check_absolute(pm_directory_);
  }

  // A name for the files of the next platform, the same on all ranks. All ranks must call it.
  std::string next_job() {
    if (job_.empty()) job_ = fmt::format("run-{}", all_ranks_.broadcast(getpid()));
    return fmt::format("{}-{}", job_, created_++);
  }
  std::vector<NodeId> local_nodes(const Roles& roles) const {
    if (ranks_ != 1) return {rank_};
    std::vector<NodeId> nodes(roles.node_count());
    std::iota(nodes.begin(), nodes.end(), NodeId{0});
    return nodes;
  }
  std::vector<Placement> placements(const Roles& roles) const {
    std::vector<Placement> all(roles.node_count());
    for (NodeId node = 0; node < all.size(); ++node) {
      const SiteHost* host = host_of_node(site_, roles, node);
      if (host != nullptr) all[node] = {host->cores, host->numa_node};
    }
    return all;
  }
  std::string pm_directory_of(const std::string& job) const {
    const std::filesystem::path parent = pm_directory_.text;
    return parent.empty() ? "" : (parent / fmt::format("perdura-{}", job)).string();
  }
  NodeId rank() const { return rank_; }
  NodeId ranks() const { return ranks_; }
  Ranks& all_ranks() { return all_ranks_; }
  const Site& site() const { return site_; }
  pmem::WriteMeter::Level accounting() const { return accounting_; }

  // Holds a platform together with the folder of its files.
  template <class HeldPlatform, class Options>
  static std::shared_ptr<Platform> hold(Options options) {
    struct Held {
      explicit Held(Options given)
          : folder(given.pm_directory, given.local_nodes), platform(std::move(given)) {}
      PointFolder folder;
      HeldPlatform platform;
    };
    const auto held = std::make_shared<Held>(std::move(options));
    return {held, &held->platform};
  }

 private:
  void check_cores_of(const Roles& roles) const {
    const std::vector<unsigned> usable = usable_cores();
    if (ranks_ == 1) {
      for (const SiteHost& host : site_.hosts) check_placement(host, usable);
    } else if (const SiteHost* host = host_of_node(site_, roles, rank_)) {
      check_placement(*host, usable);
    }
  }

  std::string file_;
  Site site_;
  Ranks& all_ranks_;
  Located pm_directory_;
  pmem::WriteMeter::Level accounting_;
  NodeId rank_;
  NodeId ranks_;
  std::string job_;
  std::uint64_t created_ = 0;
};

// Checked before the first point: without /dev/shm no point can run. How much room a point needs is
// checked by check_room(), if its driver knows, and again when its memory is created.
void check_shared_memory() {
  const auto refuse = [](std::string_view what) {
    throw PlatformError(fmt::format(
        "platform shm: {} {}; mount a tmpfs there (mount -t tmpfs -o size=4g tmpfs {}; of a "
        "container: --shm-size=4g)",
        kSharedMemory, what, kSharedMemory));
  };
  if (::access(kSharedMemory, W_OK | X_OK) == 0) return;
  if (errno == ENOENT) refuse("is missing");
  refuse(fmt::format("cannot be written to ({})", std::strerror(errno)));
}

class ShmFactory final : public HostFactory {
 public:
  ShmFactory(const Experiment& experiment, Ranks& ranks_of_run, Site site)
      : HostFactory(experiment, experiment.shm.pm_directory, ranks_of_run, std::move(site)),
        settings_(experiment.shm) {}

  void check_machine(const Roles& roles) const override {
    check_shared_memory();
    HostFactory::check_machine(roles);
  }

  // Each run takes its memory anew, and what a killed one has left is removed before.
  void check_room(Bytes needed, const std::string& who) const override {
    const std::filesystem::path place = pm_directory();
    if (pmem::mapped::device_path(place)) return;
    fabric::shm::remove_abandoned_jobs();
    struct statvfs room {};
    if (::statvfs(place.c_str(), &room) != 0) return;
    const Bytes free = room.f_bavail * room.f_frsize;
    if (free >= needed) return;
    const Bytes enough = room.f_blocks * room.f_frsize + (needed - free);
    const std::string remedy =
        place == kSharedMemory
            ? fmt::format(
                  "make it larger (mount -o remount,size={0}m {1}; of a container: "
                  "--shm-size={0}m)",
                  enough / MiB + 1, kSharedMemory)
            : "free some, or choose another pm_directory";
    throw PlatformError(fmt::format("platform shm: {} has {} left, and {} takes at least {}; {}",
                                    place.string(), memory_text(free), who, memory_text(needed),
                                    remedy));
  }

  std::string_view name() const override { return "shm"; }

  std::shared_ptr<Platform> create(const Point& point) override {
    const std::string job = next_job();
    return hold<ShmPlatform>(ShmOptions{
        .job = ranks() == 1 ? "" : fabric::shm::automatic_name(job),
        .node_count = point.roles.node_count(),
        .local_nodes = local_nodes(point.roles),
        .pm_directory = pm_directory_of(job),
        .placements = placements(point.roles),
        .write_latency = Nanoseconds(settings_.write_latency_ns),
        .accounting = accounting(),
        .fabric = {.network_latency = Nanoseconds(settings_.network_latency_ns)},
    });
  }

 private:
  ShmSettings settings_;
};

#ifdef PERDURA_HAVE_VERBS

class VerbsFactory final : public HostFactory {
 public:
  VerbsFactory(const Experiment& experiment, Ranks& ranks_of_run, const Site& site)
      : HostFactory(experiment, experiment.verbs.pm_directory, ranks_of_run, site),
        settings_(experiment.verbs) {}

  void check_machine(const Roles& roles) const override {
    HostFactory::check_machine(roles);
    const fabric::verbs::Device tried(device_options(roles));
  }

  std::string_view name() const override { return "verbs"; }

  std::shared_ptr<Platform> create(const Point& point) override {
    const std::string job = next_job();
    VerbsOptions options{
        .node_count = point.roles.node_count(),
        .local_nodes = local_nodes(point.roles),
        .device = device_options(point.roles),
        .pm_directory = pm_directory_of(job),
        .placements = placements(point.roles),
        .accounting = accounting(),
    };
    if (ranks() > 1) {
      // Rank 0 is node 0 and coordinates the connections. It tells the others its address here,
      // where all ranks take part.
      if (rank() == 0) options.listener = std::make_shared<fabric::verbs::ControlListener>();
      const std::string address = all_ranks().broadcast_text(
          options.listener == nullptr ? std::string() : options.listener->address());
      if (rank() != 0) options.coordinator = address;
    }
    return hold<VerbsPlatform>(std::move(options));
  }

 private:
  fabric::verbs::DeviceOptions device_options(const Roles& roles) const {
    fabric::verbs::DeviceOptions options;
    options.name = settings_.device;
    const SiteHost* const host = host_of_node(site(), roles, rank());
    if (host != nullptr && options.name.empty()) options.name = host->device;
    if (settings_.port) options.port = static_cast<unsigned>(*settings_.port);
    if (settings_.gid_index) options.gid_index = static_cast<unsigned>(*settings_.gid_index);
    options.on_demand_paging = settings_.on_demand_paging;
    return options;
  }

  VerbsSettings settings_;
};

#endif

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
  if (platform.text == "verbs") {
#ifdef PERDURA_HAVE_VERBS
    return std::make_unique<VerbsFactory>(experiment, ranks, site);
#else
    throw UsageError(fmt::format(
        "{}: this perdura was built without libibverbs; install libibverbs-dev (scripts/packages) "
        "and build it again, or use --platform shm",
        platform.where));
#endif
  }
  constexpr std::array<std::string_view, 3> known{"sim", "shm", "verbs"};
  throw UsageError(
      fmt::format("{}: {}", platform.where, unknown_name("platform", platform.text, known)));
}

}  // namespace perdura::harness
