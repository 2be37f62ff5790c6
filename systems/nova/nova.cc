#include "systems/nova/nova.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "systems/nova/inspect.h"
#include "systems/nova/session.h"
#include "systems/nova/small.h"

namespace perdura::systems {

namespace {

using nova::Geometry;
using nova::Parameters;

// In the order of nova::Happened.
constexpr services::Event kEvents[] = {{"log pages"},
                                       {"fast collections"},
                                       {"links within logs changed", false, true},
                                       {"thorough collections"},
                                       {"journaled operations"},
                                       {"operations redone from journals", true},
                                       {"orphans reclaimed", true}};
static_assert(std::size(kEvents) == nova::kHappened);

constexpr services::Metric kMetrics[] = {
    {"metadata_bytes_per_op", "metadata written", "Metadata written per operation", "bytes"},
    {"data_bytes_per_op", "data written", "Data written per operation", "bytes"},
    {"journal_bytes_per_op", "journal written", "Journal written per operation", "bytes"},
};

Geometry geometry_of(const fs::FsConfig& config) {
  const Parameters parameters = Parameters::of(config);
  const Geometry geometry(config.size, parameters.inodes, parameters.log_page_bytes);
  if (geometry.first_block + 16 > geometry.blocks) {
    throw UsageError(
        fmt::format("nova: {} bytes are too few for {} inodes; give it more, or fewer inodes",
                    config.size, parameters.inodes));
  }
  return geometry;
}

Task<> make(Thread& thread, std::string name, fs::FsConfig config) {
  const Geometry geometry = geometry_of(config);
  const auto region =
      thread.node.create_region(name, geometry.blocks * nova::kBlock, pmem::Medium::pm);
  nova::make_volume(*region, geometry, config);
  co_return;
}

// A file system that nobody else mounts or changes as long as this object exists.
struct Owned {
  std::unique_ptr<pmem::Region> region;
  std::shared_ptr<void> ownership;
};

Owned open(Thread& thread, const std::string& name) {
  // Ownership first, so that nobody replaces the file system between the two calls.
  auto ownership = thread.node.own_region(name);
  if (ownership == nullptr) {
    throw UsageError(fmt::format("the file system '{}' is mounted; unmount it first", name));
  }
  auto region = thread.node.open_region(name);
  if (region == nullptr) throw UsageError(fmt::format("there is no file system '{}'", name));
  return {std::move(region), std::move(ownership)};
}

Task<std::shared_ptr<fs::FileSystem>> mount(Thread& thread, std::string name, fs::FsConfig config) {
  const Parameters parameters = Parameters::of(config);
  auto [region, ownership] = open(thread, name);
  auto volume = co_await nova::open_volume(thread, *region, Geometry(), parameters, config.threads,
                                           config.read_only);
  co_return std::make_shared<nova::FileSystem>(std::move(region), std::move(ownership),
                                               std::move(volume));
}

}  // namespace

const fs::FsSystem kNova{
    .info = {.name = "nova",
             .title = "NOVA",
             .paper = "Building Distributed Systems with Non-Volatile Main Memories and RDMA "
                      "Networks, Yang, 2019; sections 4.1.2 and 5.3.1, after Xu and Swanson, 2016",
             .guarantee = "what an operation has done is durable, writes included",
             .level = services::GuaranteeLevel::durable,
             .parameters = nova::kParameters},
    .promises = {.durable_writes = true, .atomic_writes = true},
    .small = nova::kSmall,
    .events = kEvents,
    .session_metrics = kMetrics,
    .check = [](const fs::FsConfig& config) { geometry_of(config); },
    .make = make,
    .mount = mount,
    .inspect = [](Thread& thread, std::string name, bool repair) -> Task<std::vector<fs::Damage>> {
      const Owned owned = open(thread, name);
      co_return nova::inspect(*owned.region, repair);
    },
    .dump = [](Thread& thread, std::string name,
               std::optional<fs::InodeNumber> inode) -> Task<std::string> {
      const Owned owned = open(thread, name);
      co_return nova::dump(*owned.region, inode);
    },
};

}  // namespace perdura::systems
