#include "systems/redo_logging/session.h"

#include "systems/redo_logging/redo_logging.h"
#include "systems/redo_logging/server.h"
#include "systems/write_ahead/footprint.h"

namespace perdura::systems::redo_logging {

using write_ahead::Parameters;
using write_ahead::Partition;
using write_ahead::Reply;
using write_ahead::ReplyStatus;

Task<std::unique_ptr<kv::KvSession>> RedoSession::connect(Thread& thread, fabric::Address server,
                                                          kv::KvConfig config) {
  const Parameters parameters = Parameters::of(config, kName, least_log_slots(config.sessions));
  std::unique_ptr<RedoSession> session(new RedoSession(thread, parameters));
  co_await session->connect_requests(server);
  co_await session->connect_log(server);
  co_return session;
}

// SENDs the record into the redo log. The client cannot know in which slot the record will land. If
// the log has wrapped around meanwhile, the server refuses the record, and the client seals it
// again and resends it.
Task<kv::Result<void>> RedoSession::put(kv::Key key, kv::Value value) {
  if (too_large(key, value)) co_return tl::unexpected(kv::Error::too_large);
  const Lease held = co_await lease();
  const LogTurn turn = co_await log_turn();
  const fabric::LocalBuffer record = write_record(held.call(), key, value);
  for (;;) {
    seal(record, key, value, log_tail_);
    const std::optional<Reply> reply = co_await send_to_log(held.call(), record);
    if (!reply) co_return tl::unexpected(kv::Error::disconnected);
    if (reply->status == ReplyStatus::done) co_return kv::Result<void>{};
    if (reply->status != ReplyStatus::stale_lap) co_return tl::unexpected(error_of(reply->status));
    ++counts_.retries;
  }
}

}  // namespace perdura::systems::redo_logging

namespace perdura::systems {

namespace {

std::unique_ptr<kv::KvPartition> open(Thread& thread, std::string name,
                                      const kv::KvConfig& config) {
  return std::make_unique<write_ahead::Partition>(
      std::make_shared<redo_logging::RedoServer>(thread, name, config));
}

constexpr std::array kSmallStores{write_ahead::kTwoLapsStore, write_ahead::kOneLapStore};

}  // namespace

const kv::KvSystem kRedoLogging{
    .name = "redo-logging",
    .title = "Redo Logging",
    .paper = "Write-Optimized and Consistent RDMA-based NVM Systems, Liu et al., 2019; section 5.1",
    .guarantee = "a completed put is verified and flushed in the server's redo log",
    .level = services::GuaranteeLevel::durable,
    // A record in the log has no effect until the server has admitted it: recovery must check
    // against the table whether there was room for it.
    .put = methods::UpdateNeeds{.carrier = methods::Carrier::send, .replay = false},
    .parameters = write_ahead::kParameterTable,
    .small_stores = kSmallStores,
    .events = write_ahead::kEvents,
    .partition_metrics = write_ahead::kPartitionMetrics,
    .footprint = write_ahead::kFootprint,
    .check =
        [](const kv::KvConfig& config) {
          write_ahead::Parameters::of(config, redo_logging::kName,
                                      redo_logging::least_log_slots(config.sessions));
        },
    .open = open,
    .connect = redo_logging::RedoSession::connect,
};

}  // namespace perdura::systems
