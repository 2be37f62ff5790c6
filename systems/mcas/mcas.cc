#include "systems/mcas/mcas.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "systems/mcas/ado/plugins/plugins.h"
#include "systems/mcas/ado/program/program.h"
#include "systems/mcas/partition.h"
#include "systems/mcas/session.h"
#include "systems/mcas/store_session.h"
#include "systems/parameter_reader.h"

namespace perdura::systems {

namespace {

// A table of a few entries, with neighborhoods so small that items are displaced and segments are
// added; heap regions of four values; and granules of a few regions, so that the pool grows by
// further granules.
constexpr std::array kSmallSettings{
    services::Setting{"first_segment", 4}, services::Setting{"neighborhood", 3},
    services::Setting{"heap_region", 256}, services::Setting{"granule", 512}};
constexpr std::array<std::uint64_t, 3> kFilling{1001, 1002, 1003};
constexpr std::array kSmallStores{kv::SmallStore{kSmallSettings, kFilling}};

// The same for a shard with pools, and direct transfers of several pieces.
constexpr std::array kSmallShard{
    services::Setting{"first_segment", 4},  services::Setting{"neighborhood", 3},
    services::Setting{"heap_region", 256},  services::Setting{"granule", 512},
    services::Setting{"direct_piece", 128}, services::Setting{"pools", 3}};

// hstore-cc gives the same guarantee by other means. mapstore keeps nothing.
constexpr std::array kEngines{
    services::Setting{"engine", "hstore-cc"},
    services::Setting{.name = "engine", .value = "mapstore", .keeps_nothing = true}};

constexpr services::Footprint kFootprint{.process = 20'000'000,
                                         .worker = 150'000,
                                         .log_items = 0,
                                         .client = 16'900,
                                         .session = 19'100,
                                         .operation = 6'830,
                                         .buffer_items = 1.33,
                                         .lane = 2'340,
                                         .lane_items = 4.7,
                                         .waiting = 2'820,
                                         .record = 60,
                                         .record_items = 1.7,
                                         .write = 0,
                                         .write_items = 0};

// Parameters of plugins have no effect without plugins. Results would name them nevertheless, as if
// they had been tried.
void check_need_of_plugins(const GivenParameters& given, const mcas::Parameters& parameters) {
  if (!parameters.plugins.empty()) return;
  for (const char* name : {"plugin_signals", "plugin_peer", "plugin_cores"}) {
    if (!given.contains(name) ||
        (name == std::string_view("plugin_signals") && !parameters.plugin_signals)) {
      continue;
    }
    throw ParameterError(name,
                         fmt::format("{}: {} is for plugins, and there are none; name some in "
                                     "plugins, or leave it out",
                                     mcas::kName, name));
  }
}

// An experiment checks its settings on each host before it begins; a file that is missing would
// otherwise be noticed only by the process that is to load it. Who is served without an experiment
// is told by the library, for the shards of its own host (library/mcas/server.cc).
template <class Config>
void check(const Config& config) {
  const mcas::Parameters parameters = mcas::Parameters::of(config);
  check_need_of_plugins(config.parameters, parameters);
  try {
    mcas::ado::check_plugin_files(parameters.plugins, Isolation::none);
  } catch (const UsageError& error) {
    throw ParameterError("plugins", fmt::format("{}: {}", mcas::kName, error.what()));
  }
}

// Clients of keys and values have no requests that plugins are called for, nor processes for them.
void check_store(const kv::KvConfig& config) {
  if (!mcas::Parameters::of(config).plugins.empty()) {
    throw ParameterError("plugins",
                         fmt::format("{}: a store of keys and values calls no plugins; take the "
                                     "system mcas-pools, or leave them out",
                                     mcas::kName));
  }
  check(config);
}

// Checks the settings once more: the search for the smallest store (services/kv/small_store.h) takes
// each refusal for one of a size.
std::unique_ptr<kv::KvPartition> open(Thread& thread, std::string name,
                                      const kv::KvConfig& config) {
  check_store(config);
  return std::make_unique<mcas::Partition>(
      std::make_shared<mcas::Shard>(thread, name, mcas::Parameters::of(config)));
}

// Keeps the shard alive together with the task that accepts connections.
class OpenShard final : public objects::Shard {
 public:
  explicit OpenShard(std::shared_ptr<mcas::Shard> shard) : shard_(std::move(shard)) {}
  Task<> serve() override { return shard_->serve(); }
  void cluster_event(const objects::MemberEvent& event) override { shard_->cluster_event(event); }
  std::string audit() override { return shard_->pools().audit(); }

 private:
  std::shared_ptr<mcas::Shard> shard_;
};

std::unique_ptr<objects::Shard> open_shard(Thread& thread, std::string name,
                                           const objects::Config& config) {
  const mcas::Parameters parameters = mcas::Parameters::of(config);
  mcas::ado::LaunchOptions launching{.flushing = parameters.flushing,
                                     .limits = parameters.plugin_limits};
  launching.limits.start = parameters.plugin_patience;
  auto launcher = mcas::ado::make_launcher(thread, std::move(launching));
  return std::make_unique<OpenShard>(
      std::make_shared<mcas::Shard>(thread, name, parameters, std::move(launcher)));
}

}  // namespace

const kv::KvSystem kMcas{
    .name = mcas::kName,
    .title = "MCAS",
    .paper =
        "An Architecture for Memory Centric Active Storage (MCAS), Waddington et al., 2021; "
        "section 3",
    .guarantee =
        "a completed put or delete is durable: the shard's CPU has flushed it; with the "
        "engine mapstore it is visible, and gone when the shard ends",
    .level = services::GuaranteeLevel::durable,
    // A request in a receive buffer has no effect until the shard executes it.
    .put = methods::UpdateNeeds{.carrier = methods::Carrier::send, .replay = false},
    .parameters = mcas::kParameterTable,
    .small_stores = kSmallStores,
    .events = mcas::kEvents,
    .changes_guarantee = kEngines,
    .partition_metrics = mcas::kPartitionMetrics,
    .footprint = kFootprint,
    .check = check_store,
    .open = open,
    .connect = mcas::StoreSession::connect,
};

const objects::System kMcasObjects{
    .info = {.name = "mcas-pools",
             .title = "MCAS, pools",
             .paper =
                 "An Architecture for Memory Centric Active Storage (MCAS), Waddington et al., "
                 "2021; section 3.1",
             .guarantee = "a completed change is durable: the shard's CPU has flushed it; with the "
                          "engine mapstore it is visible, and gone when the shard ends",
             .level = services::GuaranteeLevel::durable,
             .changes_guarantee = kEngines,
             .parameters = mcas::kParameterTable},
    .small = kSmallShard,
    .check = check<objects::Config>,
    .open = open_shard,
    .connect = mcas::PoolsSession::connect,
};

}  // namespace perdura::systems
