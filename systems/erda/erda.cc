#include "systems/erda/erda.h"

#include <array>

#include "systems/erda/client.h"
#include "systems/erda/server.h"

namespace perdura::systems {

namespace {

using services::Event;
using services::Setting;

// A log that is cleaned every few operations, and keys with so few home buckets that entries are
// moved.
constexpr std::array kOneHead{
    Setting{"heads", 1},           Setting{"regions", 4}, Setting{"region_bytes", 1 * KiB},
    Setting{"segment_bytes", 512}, Setting{"buckets", 5}, Setting{"neighborhood", 3}};
// Heads that compete for regions.
constexpr std::array kTwoHeads{
    Setting{"heads", 2},           Setting{"regions", 5}, Setting{"region_bytes", 1 * KiB},
    Setting{"segment_bytes", 512}, Setting{"buckets", 5}, Setting{"neighborhood", 3}};
// Heads that are cleaned all the time, in a log with room for that. The words that recovery needs
// about the second head's cleaning lie in two cache lines.
constexpr std::array kCleanedAlways{
    Setting{"heads", 2},           Setting{"regions", 13}, Setting{"region_bytes", 1 * KiB},
    Setting{"segment_bytes", 512}, Setting{"buckets", 5},  Setting{"neighborhood", 3},
    Setting{"clean_always", 1}};
// Values of several packets.
constexpr std::array kLargeSegments{Setting{"heads", 2}, Setting{"regions", 7},
                                    Setting{"region_bytes", 20 * KiB},
                                    Setting{"segment_bytes", 10 * KiB}};
constexpr std::array kSmallStores{
    kv::SmallStore{kOneHead, hopscotch::kCrowding}, kv::SmallStore{kTwoHeads, hopscotch::kCrowding},
    kv::SmallStore{kCleanedAlways, hopscotch::kCrowding}, kv::SmallStore{kLargeSegments}};
constexpr std::array kEvents{Event{"cleanings"},
                             Event{"displaced entries"},
                             Event{"cleanings abandoned", true},
                             Event{"cleanings completed", true},
                             Event{"versions restored", true},
                             Event{"halves of displacements removed", true}};
constexpr std::array kChangesGuarantee{services::Setting{"persist_before_update", 1}};

constexpr services::Footprint kFootprint{.process = 17'500'000,
                                         .worker = 115'000,
                                         .log_items = 0,
                                         .client = 15'900,
                                         .session = 17'700,
                                         .operation = 1'220,
                                         .buffer_items = 2.75,
                                         .lane = 4'950,
                                         .lane_items = 1.8,
                                         .waiting = 5'450,
                                         .record = 213,
                                         .record_items = 0.05,
                                         .write = 32,
                                         .write_items = 1.4};

}  // namespace

const kv::KvSystem kErda{
    .name = "erda",
    .title = "Erda",
    .paper = "Liu et al., Write-Optimized and Consistent RDMA-based NVM Systems, 2019",
    .guarantee = "visible, atomic (old or new); durability at acknowledgment is not promised",
    .level = services::GuaranteeLevel::atomic,
    .put = methods::UpdateNeeds{.carrier = methods::Carrier::write},
    .needs = erda::kDeviceNeeds,
    .parameters = erda::kParameterTable,
    .small_stores = kSmallStores,
    .events = kEvents,
    .changes_guarantee = kChangesGuarantee,
    .footprint = kFootprint,
    .check = [](const kv::KvConfig& config) { erda::shape_for(config); },
    .open = [](Thread& thread, std::string name,
               const kv::KvConfig& config) -> std::unique_ptr<kv::KvPartition> {
      return std::make_unique<erda::ErdaPartition>(thread, std::move(name), config);
    },
    .connect = erda::ErdaSession::connect,
};

}  // namespace perdura::systems
