#include "platform/fabric/verbs/bring_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string_view>

#include "platform/base/error.h"
#include "platform/fabric/verbs/connection_manager.h"
#include "platform/fabric/verbs/endpoint.h"

namespace perdura::fabric::verbs {
namespace {

constexpr std::uint8_t kReceiverNotReadyTimer = 7;  // encodes 0.12 ms
constexpr int kMostReads = 16;

unsigned rights_of(const Device& device) {
  unsigned rights = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  if (device.capabilities().atomics) rights |= IBV_ACCESS_REMOTE_ATOMIC;
#ifdef PERDURA_VERBS_FLUSH
  if (device.capabilities().flush) rights |= IBV_ACCESS_FLUSH_GLOBAL;
  if (device.capabilities().flush_persistence) rights |= IBV_ACCESS_FLUSH_PERSISTENT;
#endif
  return rights;
}

void set_path(ibv_ah_attr& path, const Device& device, const QueuePairAddress& theirs) {
  path.dlid = theirs.lid;
  path.port_num = static_cast<std::uint8_t>(device.port());
  if (device.port_attributes().link_layer != IBV_LINK_LAYER_ETHERNET) return;
  path.is_global = 1;
  std::memcpy(path.grh.dgid.raw, theirs.gid.data(), theirs.gid.size());
  path.grh.sgid_index = static_cast<std::uint8_t>(device.gid().index);
  path.grh.hop_limit = 64;
}

class ByNumbers final : public BringUp {
 public:
  ByNumbers(const VerbsEndpoint& endpoint, ibv_qp* pair)
      : endpoint_(endpoint), pair_(pair), first_packet_(random_packet_number()) {}

  QueuePairAddress address() const override {
    const Device& device = endpoint_.device();
    return {.number = pair_->qp_num,
            .first_packet = first_packet_,
            .lid = device.port_attributes().lid,
            .mtu = static_cast<std::uint8_t>(device.port_attributes().active_mtu),
            .reads_taken = reads_answered(device),
            .gid = device.gid().gid};
  }

  void accept(Address peer, const QueuePairAddress& theirs) override {
    const Device& device = endpoint_.device();
    const FabricOptions& options = endpoint_.options();
    const auto check = [&](int error, std::string_view state) {
      if (error == 0) return;
      throw PlatformError(fmt::format(
          "{} cannot connect node {} to node {} ({}): {} in the change to {}; look whether both "
          "hosts' devices are on one network",
          device.name(), endpoint_.address().node, peer.node, to_string(theirs.gid),
          pmem::mapped::error_text(error), state));
    };
    check(change_to_init(device, pair_), "INIT");

    ibv_qp_attr receive{};
    receive.qp_state = IBV_QPS_RTR;
    receive.path_mtu =
        std::min(static_cast<ibv_mtu>(theirs.mtu), device.port_attributes().active_mtu);
    receive.dest_qp_num = theirs.number;
    receive.rq_psn = theirs.first_packet;
    receive.max_dest_rd_atomic = reads_answered(device);
    receive.min_rnr_timer = kReceiverNotReadyTimer;
    set_path(receive.ah_attr, device, theirs);
    check(ibv_modify_qp(pair_, &receive,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
          "RTR");

    ibv_qp_attr send{};
    send.qp_state = IBV_QPS_RTS;
    send.sq_psn = first_packet_;
    send.timeout = options.timeout;
    send.retry_cnt = options.retries;
    send.rnr_retry = options.rnr_retries;
    send.max_rd_atomic = reads_under_way(device, theirs.reads_taken);
    check(ibv_modify_qp(pair_, &send,
                        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                            IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
          "RTS");
  }

  // Both ends know each other's queue pair numbers, so both do the same.
  Task<Status> connect(Address peer, QueuePairAddress theirs, Time) override {
    accept(peer, theirs);
    co_return Status::success;
  }

  bool tells_end() const override { return false; }

 private:
  const VerbsEndpoint& endpoint_;
  ibv_qp* pair_;
  std::uint32_t first_packet_;
};

}  // namespace

std::uint32_t random_packet_number() {
  thread_local std::minstd_rand random(std::random_device{}());
  return static_cast<std::uint32_t>(random()) & 0xFFFFFF;
}

std::uint8_t reads_answered(const Device& device) {
  return static_cast<std::uint8_t>(std::clamp(device.attributes().max_qp_rd_atom, 1, kMostReads));
}

std::uint8_t reads_under_way(const Device& device, std::uint8_t taken) {
  return static_cast<std::uint8_t>(
      std::clamp(device.attributes().max_qp_init_rd_atom, 1, static_cast<int>(taken)));
}

int change_to_init(const Device& device, ibv_qp* pair) {
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = static_cast<std::uint8_t>(device.port());
  init.qp_access_flags = rights_of(device);
  return ibv_modify_qp(pair, &init,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

std::unique_ptr<BringUp> make_bring_up(VerbsEndpoint& endpoint, std::uint32_t id, ibv_qp* pair) {
  ConnectionManager* const manager = endpoint.device().connection_manager();
  if (manager == nullptr) return std::make_unique<ByNumbers>(endpoint, pair);
  return manager->bring_up(endpoint, id, pair);
}

}  // namespace perdura::fabric::verbs
