#include "systems/mojim/mojim.h"
#include "systems/mojim/layout.h"

#include <array>

#include "systems/mojim/replica.h"
#include "systems/mojim/session.h"

namespace perdura::systems {

namespace {

using mojim::Copies;
using mojim::Mode;
using services::GuaranteeLevel;
using services::MemoryConfig;
using services::MemoryRole;
using services::MemorySystem;

constexpr std::string_view kPaper =
    "Building Distributed Systems with Non-Volatile Main Memories and RDMA Networks, Yang, 2019; "
    "chapter 3";

// Table 3.1.
constexpr Mode kUnreplicated{"s-unreplicated", "S-unreplicated", Copies::none, false, true};
constexpr Mode kSync{"m-sync", "M-sync", Copies::mirror, true, false};
constexpr Mode kSyncFlush{"m-syncflush", "M-syncflush", Copies::mirror, true, true};
constexpr Mode kAsync{"m-async", "M-async", Copies::mirror, false, true};
constexpr Mode kSyncSec{"m-syncsec", "M-syncsec", Copies::two_tiers, true, false};
constexpr Mode kSyncSecEth{"m-syncseceth", "M-syncseceth", Copies::two_tiers, true, false, true};
constexpr Mode kSyncDisk{.name = "m-syncdisk", .title = "M-syncdisk", .data_on_disk = true};
constexpr Mode kChain{"e-chain", "E-chain", Copies::chain, true, false};
constexpr Mode kBroadcast{"e-broadcast", "E-broadcast", Copies::broadcast, true, false};

// So small that logs wrap around and sync points have several requests.
constexpr std::array kSmall{services::Setting{"connections", 2}, services::Setting{"log_slots", 5},
                            services::Setting{"slot_bytes", 192}};

constexpr services::Event kEvents[] = {{"checkpoints"}, {"laps of a log"}};

std::uint32_t workers(const MemoryConfig& config) {
  return mojim::Parameters::of(config, kSync).connections;
}

std::uint32_t synced_copies(const Mode& mode, MemorySystem::Copies copies) {
  return mode.copies == Copies::two_tiers ? 1 : copies.most;
}

template <const Mode& mode>
MemorySystem entry(std::string_view guarantee, GuaranteeLevel level, MemorySystem::Copies copies) {
  MemorySystem system{
      .info = {.name = mode.name,
               .title = mode.title,
               .paper = kPaper,
               .guarantee = guarantee,
               .level = level,
               .parameters = mojim::kParameters},
      .copies = copies,
      .safest = mode.is_replicated() ? 1U : 0U,
      .synced_copies = synced_copies(mode, copies),
      .backups_follow_mirror = mode.copies == Copies::two_tiers || mode.copies == Copies::chain,
      .copies_on_disk = mode.data_on_disk,
      .session_metrics = mojim::kSessionMetrics,
      .log_bytes =
          [](const MemoryConfig& config) {
            return mojim::Shape(config, mojim::Parameters::of(config, mode)).logs_size();
          },
      .workers = workers,
      .check = [](const MemoryConfig& config) { mojim::Parameters::of(config, mode); },
      .open = [](Thread& thread, std::string name, const MemoryConfig& config,
                 MemoryRole role) -> std::shared_ptr<services::MemoryReplica> {
        return std::make_shared<mojim::Replica>(thread, name, mode, config, role);
      },
  };
  if (mode.is_replicated()) {
    system.update = methods::UpdateNeeds{.carrier = methods::Carrier::send};
    system.small = kSmall;
    system.events = kEvents;
  }
  return system;
}

}  // namespace

std::span<const services::MemorySystem> mojim_modes() {
  static const std::array table{
      entry<kUnreplicated>("what is synced is flushed, not atomically", GuaranteeLevel::none,
                           {0, 0}),
      entry<kSync>("what is synced is in the mirror's log", GuaranteeLevel::durable, {1, 1}),
      entry<kSyncFlush>("the same, and flushed on the primary", GuaranteeLevel::durable, {1, 1}),
      entry<kAsync>("what is synced is flushed on the primary, and will be in the mirror's log",
                    GuaranteeLevel::ordered, {1, 1}),
      entry<kSyncDisk>("the same as with M-sync, whose mirror has its data area on a disk",
                       GuaranteeLevel::durable, {1, 1}),
      entry<kSyncSec>("what is synced is in the mirror's log, and will be in the backups'",
                      GuaranteeLevel::durable, {2, 8}),
      entry<kSyncSecEth>("the same as with M-syncsec, whose backups get it over Ethernet",
                         GuaranteeLevel::durable, {2, 8}),
      entry<kChain>("what is synced is in the logs of all, one after the other",
                    GuaranteeLevel::durable, {2, 8}),
      entry<kBroadcast>("what is synced is in the logs of all", GuaranteeLevel::durable, {2, 8}),
  };
  return table;
}

}  // namespace perdura::systems
