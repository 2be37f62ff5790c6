#include <array>

#include "systems/log_of_server.h"
#include "systems/parameter_reader.h"
#include "systems/rpc_log/client.h"
#include "systems/rpc_log/rpc_log.h"
#include "systems/rpc_log/server.h"

namespace perdura::systems {
namespace {

constexpr std::string_view kName = "rpc-log";

constexpr Parameter kParameters[] = {
    {.name = "polled",
     .type = Flag{},
     .usual = false,
     .what = "requests are WRITTEN to a buffer that the server polls, as in HERD, instead of SENT"},
};
// It changes no guarantee: exploration is to try both ways.
constexpr std::array kChangesGuarantee{services::Setting{"polled", 1}};

// A message, whose record the server's CPU copies to its place and writes back, before it answers.
methods::Method published(const pmem::PersistenceModel&, const GivenParameters& given) {
  const ParameterReader parameters(kName, kParameters, given);
  return methods::find_method("send-copy-flush");
}

rpc_log::Options options_of(const services::LogConfig& config) {
  const ParameterReader parameters(kName, kParameters, config.parameters);
  return {.log = {.slots = config.records, .largest_payload = config.largest_record},
          .polls = parameters.flag("polled")};
}

using Log = LogOfServer<rpc_log::LogServer, rpc_log::LogClient, options_of>;

}  // namespace

const services::LogSystem kRpcLog{
    .info = {.name = kName,
             .title = "Log by RPC",
             .paper = "the baseline of FileMR, section 5.4.5 of Yang's dissertation: a log behind "
                      "the RPCs of HERD",
             .guarantee = "appended records survive: the server's CPU makes them durable",
             .level = services::GuaranteeLevel::durable,
             .changes_guarantee = kChangesGuarantee,
             .parameters = kParameters},
    .published = published,
    .open = Log::open,
    .connect = Log::connect,
};

}  // namespace perdura::systems
