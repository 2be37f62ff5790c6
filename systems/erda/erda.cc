#include "systems/erda/erda.h"

#include <array>

#include "systems/erda/client.h"
#include "systems/erda/server.h"

namespace perdura::systems {

namespace {

constexpr std::array kSmallStore{services::Setting{"heads", 1}, services::Setting{"regions", 4},
                                 services::Setting{"region_bytes", 1 * KiB},
                                 services::Setting{"segment_bytes", 512}};
constexpr std::array kChangesGuarantee{services::Setting{"persist_before_update", 1}};

constexpr services::Footprint kFootprint{.process = 17'500'000,
                                         .worker = 115'000,
                                         .log_items = 0,
                                         .client = 15'900,
                                         .session = 17'700,
                                         .operation = 1'220,
                                         .used_items = 2.75,
                                         .lane = 4'950,
                                         .lane_items = 1.8,
                                         .waiting = 5'450,
                                         .record = 213,
                                         .record_items = 0.05,
                                         .write = 32,
                                         .write_items = 1.4};

}  // namespace

const KvSystem kErda{
    .name = "erda",
    .title = "Erda",
    .paper = "Liu et al., Write-Optimized and Consistent RDMA-based NVM Systems, 2019",
    .guarantee = "visible, atomic (old or new); durability at acknowledgment is not promised",
    .level = services::GuaranteeLevel::atomic,
    .put = persistence::UpdateNeeds{.carrier = persistence::Carrier::write},
    .needs = erda::kDeviceNeeds,
    .parameters = erda::kParameterTable,
    .small_store = kSmallStore,
    .changes_guarantee = kChangesGuarantee,
    .footprint = kFootprint,
    .check = [](const KvConfig& config) { erda::shape_for(config); },
    .open = [](Thread& thread, std::string name,
               const KvConfig& config) -> std::unique_ptr<KvPartition> {
      return std::make_unique<erda::ErdaPartition>(thread, std::move(name), config);
    },
    .connect = erda::ErdaSession::connect,
};

}  // namespace perdura::systems
