#include "systems/erda/erda.h"

#include "systems/erda/client.h"
#include "systems/erda/server.h"

namespace perdura::systems {

const KvSystem kErda{
    .name = "erda",
    .title = "Erda",
    .paper = "Liu et al., Write-Optimized and Consistent RDMA-based NVM Systems, 2019",
    .guarantee = "visible, atomic (old or new); durability at acknowledgment is not promised",
    .level = GuaranteeLevel::atomic,
    .put = {.carrier = persistence::Carrier::write},
    .check = [](const KvConfig& config) { erda::shape_for(config); },
    .open = [](Thread& thread, std::string name,
               const KvConfig& config) -> std::unique_ptr<KvPartition> {
      return std::make_unique<erda::ErdaPartition>(thread, std::move(name), config);
    },
    .connect = erda::ErdaSession::connect,
};

}  // namespace perdura::systems
