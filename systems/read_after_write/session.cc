#include "systems/read_after_write/session.h"

#include "systems/read_after_write/read_after_write.h"
#include "systems/read_after_write/server.h"
#include "systems/write_ahead/footprint.h"

namespace perdura::systems::read_after_write {

using fabric::LocalBuffer;
using fabric::RdmaOperation;
using fabric::RemoteAddress;
using write_ahead::Parameters;
using write_ahead::Reply;
using write_ahead::ReplyStatus;
using write_ahead::RequestKind;

RingSession::RingSession(Thread& thread, const Parameters& parameters, const kv::KvConfig& config)
    : Client(thread, parameters),
      durable_(config.put_method ? *config.put_method
                                 : with_read_for_flush(methods::find_method("write-flush")),
               thread.endpoint.capabilities()) {}

Task<std::unique_ptr<kv::KvSession>> RingSession::connect(Thread& thread, fabric::Address server,
                                                          kv::KvConfig config) {
  const Parameters parameters = Parameters::of(config, kName, kLeastLogSlots);
  std::unique_ptr<RingSession> session(new RingSession(thread, parameters, config));
  co_await session->connect_requests(server);
  co_return session;
}

// "A client first sends a request to a server and obtains the address to be written in the ring
// buffers. Moreover, the client uses RDMA write to push the object into the ring buffers, and
// issues an RDMA read following the RDMA write to force the object to be persistent" (section 5.1).
Task<kv::Result<void>> RingSession::put(kv::Key key, kv::Value value) {
  if (too_large(key, value)) co_return tl::unexpected(kv::Error::too_large);
  const Lease held = co_await lease();
  const std::optional<Reply> reply = co_await request(held.call(), RequestKind::reserve, key,
                                                      static_cast<std::uint32_t>(value.size()));
  if (!reply) co_return tl::unexpected(kv::Error::disconnected);
  if (reply->status != ReplyStatus::done) co_return tl::unexpected(error_of(reply->status));

  const LocalBuffer record = write_record(held.call(), key, value);
  seal(record, key, value, reply->position);
  if (!co_await durable_.write(*requests_, record, remote_slot(reply->position),
                               request_buffer(held.call()).first(kWord))) {
    fail();
    co_return tl::unexpected(kv::Error::disconnected);
  }
  if (!durable_.asks_responder()) co_return kv::Result<void>{};
  const std::optional<Reply> flushed = co_await request(
      held.call(), RequestKind::persist, {}, static_cast<std::uint32_t>(reply->position));
  if (!flushed) co_return tl::unexpected(kv::Error::disconnected);
  if (flushed->status != ReplyStatus::done) co_return tl::unexpected(error_of(flushed->status));
  co_return kv::Result<void>{};
}

RemoteAddress RingSession::remote_slot(std::uint64_t position) const {
  const Bytes slot_size =
      write_ahead::log_slot_size(welcome_.max_key_size, welcome_.max_value_size);
  return {{welcome_.log_key}, position % welcome_.log_slots * slot_size};
}

}  // namespace perdura::systems::read_after_write

namespace perdura::systems {

namespace {

std::unique_ptr<kv::KvPartition> open(Thread& thread, std::string name,
                                      const kv::KvConfig& config) {
  return std::make_unique<write_ahead::Partition>(
      std::make_shared<read_after_write::RingServer>(thread, name, config));
}

constexpr std::array kSmallStores{write_ahead::kOneLapStore, write_ahead::kTwoLapsStore};

}  // namespace

const kv::KvSystem kReadAfterWrite{
    .name = "read-after-write",
    .title = "Read After Write",
    .paper = "Write-Optimized and Consistent RDMA-based NVM Systems, Liu et al., 2019; section 5.1",
    .guarantee =
        "a completed put is in the server's memory: durable without DDIO or with a "
        "persistent cache, and with DDIO and a volatile cache once the server applied it",
    .level = services::GuaranteeLevel::durable,
    .put = methods::UpdateNeeds{.carrier = methods::Carrier::write},
    .parameters = write_ahead::kParameterTable,
    .small_stores = kSmallStores,
    .events = write_ahead::kEvents,
    .partition_metrics = write_ahead::kPartitionMetrics,
    .footprint = write_ahead::kFootprint,
    .check =
        [](const kv::KvConfig& config) {
          write_ahead::Parameters::of(config, read_after_write::kName,
                                      read_after_write::kLeastLogSlots);
        },
    .open = open,
    .connect = read_after_write::RingSession::connect,
};

}  // namespace perdura::systems
