#include <array>

#include "systems/filemr_log/client.h"
#include "systems/filemr_log/filemr_log.h"
#include "systems/filemr_log/server.h"
#include "systems/log_of_server.h"
#include "systems/parameter_reader.h"

namespace perdura::systems {
namespace {

using services::Setting;

constexpr Parameter kParameters[] = {
    {.name = "flush",
     .type = Flag{},
     .usual = false,
     .what = "each APPEND is followed by a FLUSH or READ, the workaround of section 5.5.1"},
    {.name = "commit",
     .type = Flag{},
     .usual = false,
     .what = "each APPEND carries the commit flag that section 5.5.1 proposes"},
};
constexpr std::array kChangesGuarantee{Setting{"flush", 1},
                                       Setting{"commit", 1, {.commits = true}}};

// The paper's log ends with the completion of the APPEND; its section "Data Persistence" leaves the
// rest to a workaround or to future devices.
methods::Method published(const pmem::PersistenceModel&, const GivenParameters& given) {
  const ParameterReader parameters("filemr-log", kParameters, given);
  const bool flushes = parameters.flag("flush");
  const bool commits = parameters.flag("commit");
  if (flushes && commits) {
    throw ParameterError("commit",
                         "filemr-log: flush and commit are two ways to the same guarantee; set "
                         "only one of them");
  }
  if (commits) return methods::find_method("write-persist");
  return methods::find_method(flushes ? "write-flush" : "write");
}

filemr_log::Options options_of(const services::LogConfig& config) {
  return {.room = config.records * filemr_log::record_size(config.largest_record),
          .largest_payload = config.largest_record,
          .persistence = filemr_log::persistence_of(config.method)};
}

using Log = LogOfServer<filemr_log::LogServer, filemr_log::LogClient, options_of>;

}  // namespace

const services::LogSystem kFileMrLog{
    .info = {.name = "filemr-log",
             .title = "FileMR log",
             .paper = "FileMR: Rethinking RDMA Networking for Scalable Persistent Memory, Yang, "
                      "Izraelevitz, Swanson; section 5.3.2 of Yang's dissertation",
             .guarantee = "appended records are visible, and survive where caches and devices do",
             .level = services::GuaranteeLevel::visible,
             .changes_guarantee = kChangesGuarantee,
             .parameters = kParameters,
             .needs = {.extents = true, .appends = true}},
    .published = published,
    // The method of a WRITE, whose place the APPEND takes.
    .append = methods::UpdateNeeds{.carrier = methods::Carrier::write},
    .open = Log::open,
    .connect = Log::connect,
};

}  // namespace perdura::systems
