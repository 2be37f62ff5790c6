#include "platform/fabric/verbs/device.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "platform/fabric/verbs/connection_manager.h"
#include "platform/fabric/verbs/meaning.h"

namespace perdura::fabric::verbs {
namespace {

using pmem::mapped::error_text;

constexpr std::uint32_t kWantedInline = 256;
constexpr std::uint32_t kCompletions = 4096;
// For devices that cannot enlarge a completion queue.
constexpr std::uint32_t kFixedCompletions = 65536;

// Bits of enum ib_uverbs_device_cap_flags in Linux' include/uapi/rdma/ib_user_verbs.h, since 6.2.
#ifdef PERDURA_VERBS_FLUSH
constexpr std::uint64_t kFlushGlobal = 1ULL << 38;
constexpr std::uint64_t kFlushPersistent = 1ULL << 39;
#endif
#ifdef PERDURA_VERBS_ATOMIC_WRITE
constexpr std::uint64_t kAtomicWrite = 1ULL << 40;
#endif

struct DeviceList {
  int count = 0;
  ibv_device** const devices;
  DeviceList() : devices(ibv_get_device_list(&count)) {}
  ~DeviceList() {
    if (devices != nullptr) ibv_free_device_list(devices);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;
  std::span<ibv_device*> all() const {
    return {devices, devices == nullptr ? 0 : static_cast<std::size_t>(count)};
  }
};

std::string_view state_name(ibv_port_state state) { return ibv_port_state_str(state); }

// `name`: the name of the requested device, or empty.
[[noreturn]] void no_device(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<std::string> known;
  for (const auto& entry : fs::directory_iterator("/sys/class/infiniband", ignored)) {
    known.push_back(entry.path().filename().string());
  }
  if (known.empty()) {
    throw PlatformError(fmt::format(
        "platform verbs: this host has no RDMA device{}; install its driver or make a soft-RoCE "
        "one (rdma link add rxe0 type rxe netdev eth0, needs root), or use platform shm, which "
        "needs none",
        name.empty() ? "" : fmt::format(", and so no '{}'", name)));
  }
  if (kind_of("/dev/infiniband") == PathKind::nothing) {
    throw PlatformError(fmt::format(
        "platform verbs: the kernel has {} but no /dev/infiniband; load ib_uverbs (modprobe "
        "ib_uverbs, needs root), or use platform shm, which needs no device",
        fmt::join(known, ", ")));
  }
  throw PlatformError(fmt::format(
      "platform verbs: libibverbs has no driver for {}; install ibverbs-providers, or use "
      "platform shm, which needs no device",
      fmt::join(known, ", ")));
}

// libibverbs tries several ways to open a device and reports the error of the last one. If the
// device file cannot be accessed, that is the real reason.
int why_not_opened(const ibv_device* device) {
  const int error = errno;
  const std::string file = fmt::format("/dev/infiniband/{}", device->dev_name);
  return access(file.c_str(), R_OK | W_OK) == 0 ? error : errno;
}

[[noreturn]] void cannot_open(const std::string& name, int error) {
  const bool forbidden = error == EACCES || error == EPERM;
  throw PlatformError(fmt::format(
      "platform verbs: cannot open {}: {}; {}, or use platform shm, which needs no device", name,
      error_text(error),
      forbidden ? "this user needs to read and write /dev/infiniband/uverbs* (membership of the "
                  "group rdma, or a udev rule, which root makes)"
                : "look whether /dev/infiniband/uverbs* is there and its driver is loaded"));
}

GidType type_of(std::uint32_t gid_type) {
  if (gid_type == IBV_GID_TYPE_ROCE_V2) return GidType::roce_v2;
  return gid_type == IBV_GID_TYPE_ROCE_V1 ? GidType::roce_v1 : GidType::infiniband;
}

bool is_iwarp(const ibv_context* context) {
  return context->device->transport_type == IBV_TRANSPORT_IWARP;
}

struct GidTable {
  std::vector<GidEntry> entries{};
  // The reason if there are no GIDs.
  std::string problem{"no GID: give its interface an IP address"};
};

GidTable iwarp_table(const std::string& device, unsigned port) {
  const PortAddresses addresses = addresses_of(device, port);
  GidTable table{{}, addresses.problem};
  for (const std::string& address : addresses.all) {
    const auto index = static_cast<unsigned>(table.entries.size());
    table.entries.push_back({port, index, GidType::iwarp, gid_of(address)});
  }
  return table;
}

GidTable gid_table(ibv_context* context, unsigned port) {
  if (is_iwarp(context)) return iwarp_table(ibv_get_device_name(context->device), port);
  // The attribute of the system call to the device has at most 64 KiB, and an entry has 32 bytes.
  std::vector<ibv_gid_entry> entries(1024);
  const ssize_t count = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
  GidTable table;
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& from = entries[static_cast<std::size_t>(i)];
    GidEntry entry{from.port_num, from.gid_index, type_of(from.gid_type), {}};
    std::memcpy(entry.gid.data(), from.gid.raw, entry.gid.size());
    if (entry.port == port) table.entries.push_back(entry);
  }
  return table;
}

}  // namespace

struct Device::Candidate {
  Handle<ibv_context> context;
  std::string name;
  GidEntry gid;
  ibv_port_attr port{};
  int merit = 0;
};

Device::Candidate Device::choose(const DeviceOptions& options) const {
  const DeviceList list;
  if (list.all().empty()) no_device(options.name);
  const std::vector<std::string> addresses = local_addresses();
  std::vector<std::string> names;
  std::vector<std::string> unusable;
  std::vector<std::string> closed;  // devices that this process has no permission to open
  int why_closed = 0;
  Candidate best;
  bool named = options.name.empty();
  for (ibv_device* const device : list.all()) {
    const std::string name = ibv_get_device_name(device);
    names.push_back(name);
    if (!options.name.empty() && name != options.name) continue;
    named = true;
    Handle<ibv_context> context(ibv_open_device(device));
    ibv_device_attr attributes{};
    if (context == nullptr || ibv_query_device(context.get(), &attributes) != 0) {
      why_closed = why_not_opened(device);
      closed.push_back(name);
      unusable.push_back(fmt::format("{} ({})", name, error_text(why_closed)));
      continue;
    }
    if (options.port && (*options.port == 0 || *options.port > attributes.phys_port_cnt)) {
      if (options.name.empty()) continue;
      throw UsageError(fmt::format("platform verbs: {} has no port {}; it has 1 to {}", name,
                                   *options.port, attributes.phys_port_cnt));
    }
    Candidate of_device;
    for (unsigned port = 1; port <= attributes.phys_port_cnt; ++port) {
      if (options.port && port != *options.port) continue;
      ibv_port_attr state{};
      if (ibv_query_port(context.get(), static_cast<std::uint8_t>(port), &state) != 0) continue;
      if (state.state != IBV_PORT_ACTIVE) {
        unusable.push_back(fmt::format("port {} of {} ({})", port, name, state_name(state.state)));
        continue;
      }
      const GidTable table = gid_table(context.get(), port);
      std::optional<GidEntry> gid = best_gid(table.entries, port, addresses);
      if (options.gid_index) {
        gid = std::nullopt;
        for (const GidEntry& entry : table.entries) {
          if (entry.index == *options.gid_index) gid = entry;
        }
      }
      if (!gid) {
        unusable.push_back(fmt::format("port {} of {} ({})", port, name,
                                       options.gid_index && !table.entries.empty()
                                           ? fmt::format("no GID {}", *options.gid_index)
                                           : table.problem));
        continue;
      }
      const int merit_of_port = merit(*gid, addresses);
      if (merit_of_port > of_device.merit) {
        of_device = {nullptr, name, *gid, state, merit_of_port};
      }
    }
    if (of_device.merit > best.merit) {
      best = std::move(of_device);
      best.context = std::move(context);
    }
  }
  if (!named) {
    throw UsageError(fmt::format("platform verbs: there is no RDMA device '{}'; known are: {}",
                                 options.name, fmt::join(names, ", ")));
  }
  if (best.context == nullptr && unusable.empty()) {
    throw UsageError(fmt::format("platform verbs: none of {} has port {}", fmt::join(names, ", "),
                                 options.port.value_or(1)));
  }
  if (best.context == nullptr && unusable.size() == closed.size()) {
    cannot_open(fmt::format("{}", fmt::join(closed, ", ")), why_closed);
  }
  if (best.context == nullptr) {
    throw PlatformError(fmt::format(
        "platform verbs: no port can be used: {}; connect it, bring its interface up (ip link set "
        "... up, needs root), or use platform shm, which needs no device",
        fmt::join(unusable, ", ")));
  }
  return best;
}

Device::Device(const DeviceOptions& options) {
  open(options);
  find_features(options);
  try_queue_pair();
  try_completion_queue();
  if (is_iwarp(context_.get())) connection_manager_ = make_connection_manager(*this);
  events_ = OsThread([this] { report_events(); });
}

Device::~Device() {
  stop_.set();
  events_.join();
}

void Device::open(const DeviceOptions& options) {
  Candidate chosen = choose(options);
  name_ = std::move(chosen.name);
  context_ = std::move(chosen.context);
  gid_ = chosen.gid;
  port_attributes_ = chosen.port;
  domain_.reset(ibv_alloc_pd(context_.get()));
  if (domain_ == nullptr) {
    throw PlatformError(fmt::format("platform verbs: cannot create a protection domain on {}: {}",
                                    name_, error_text(errno)));
  }
}

void Device::find_features(const DeviceOptions& options) {
  if (const int error = ibv_query_device_ex(context_.get(), nullptr, &attributes_); error != 0) {
    throw PlatformError(
        fmt::format("platform verbs: cannot query {}: {}", name_, error_text(error)));
  }
  if (options.on_demand_paging) {
    constexpr std::uint32_t kNeeded =
        IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
    const auto& odp = attributes_.odp_caps;
    // Soft-RoCE, which has this vendor number, offers on-demand paging but corrupts data on DAX.
    const bool soft = attributes().vendor_id == 0xFFFFFF;
    if ((odp.general_caps & IBV_ODP_SUPPORT) == 0 ||
        (odp.per_transport_caps.rc_odp_caps & kNeeded) != kNeeded || soft) {
      throw UsageError(fmt::format(
          "platform verbs: {} has no on-demand paging that can be used; leave odp out", name_));
    }
    on_demand_paging_ = true;
  }
  capabilities_.max_message = std::min(port_attributes_.max_msg_sz, 1U << 30);
  capabilities_.atomics = attributes().atomic_cap != IBV_ATOMIC_NONE;
  capabilities_.extents = false;
  capabilities_.appends = false;
  if (is_iwarp(context_.get())) {
    // iWARP: RFC 5040 has no immediate data, and a WRITE or SEND completes when TCP has accepted
    // it. RFC 5041 ends the connection when there is no receive buffer.
    capabilities_.write_with_immediate = false;
    capabilities_.acknowledged = false;
    capabilities_.waits_for_receiver = false;
    // On iWARP the answer to a READ is placed like a WRITE by the peer, so local buffers need that
    // right.
    local_rights_ |= IBV_ACCESS_REMOTE_WRITE;
  }
}

// Finds out whether the device can enlarge a completion queue; not every device can. If not, queues
// are created large.
void Device::try_completion_queue() {
  const Handle<ibv_cq> queue(ibv_create_cq(context_.get(), 16, nullptr, nullptr, 0));
  const bool grows = queue != nullptr && ibv_resize_cq(queue.get(), 64) == 0;
  first_completions_ = std::min(grows ? kCompletions : kFixedCompletions,
                                static_cast<std::uint32_t>(std::max(attributes().max_cqe, 1)));
}

// Creates a queue pair to find out which operations it supports and how much inline data: a device
// may report features that its user-space driver does not know.
void Device::try_queue_pair() {
  const Handle<ibv_cq> completions(ibv_create_cq(context_.get(), 16, nullptr, nullptr, 0));
  constexpr std::uint64_t kPlain = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                   IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ |
                                   IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                   IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  std::uint64_t extended = kPlain;
#ifdef PERDURA_VERBS_FLUSH
  if ((attributes_.device_cap_flags_ex & kFlushGlobal) != 0) extended |= IBV_QP_EX_WITH_FLUSH;
#endif
#ifdef PERDURA_VERBS_ATOMIC_WRITE
  if ((attributes_.device_cap_flags_ex & kAtomicWrite) != 0) {
    extended |= IBV_QP_EX_WITH_ATOMIC_WRITE;
  }
#endif
  int error = 0;
  for (const std::uint32_t size : {kWantedInline, 128U, 64U, 0U}) {
    for (const std::uint64_t operations : {extended, kPlain, std::uint64_t{0}}) {
      send_operations_ = operations;
      if (create_queue_pair(*this, completions.get(), nullptr, 16, size) == nullptr) {
        error = errno;
        continue;
      }
      capabilities_.max_inline = size;
#ifdef PERDURA_VERBS_FLUSH
      capabilities_.flush = (operations & IBV_QP_EX_WITH_FLUSH) != 0;
      capabilities_.flush_persistence =
          capabilities_.flush && (attributes_.device_cap_flags_ex & kFlushPersistent) != 0;
#endif
#ifdef PERDURA_VERBS_ATOMIC_WRITE
      capabilities_.atomic_write = (operations & IBV_QP_EX_WITH_ATOMIC_WRITE) != 0;
#endif
      return;
    }
  }
  throw PlatformError(
      fmt::format("platform verbs: {} makes no queue pair for reliable connections: {}{}", name_,
                  error_text(error),
                  error == ENOMEM ? "; the limit of locked memory may be too low (memlock in "
                                    "/etc/security/limits.conf, needs root)"
                                  : ""));
}

Handle<ibv_mr> Device::try_register(std::byte* base, Bytes length, unsigned flags) const {
  unsigned all = flags | local_rights_;
  if (on_demand_paging_) all |= IBV_ACCESS_ON_DEMAND;
  return Handle<ibv_mr>(ibv_reg_mr(domain_.get(), base, length, static_cast<int>(all)));
}

Handle<ibv_mr> Device::register_memory(std::byte* base, Bytes length, unsigned flags,
                                       const std::string& region, const std::string& path) const {
  auto memory = try_register(base, length, flags);
  if (memory == nullptr) {
    Registration what{region, path, length, false};
#ifdef PERDURA_VERBS_FLUSH
    what.flush_persistence = (flags & IBV_ACCESS_FLUSH_PERSISTENT) != 0;
#endif
    throw PlatformError(registration_problem(errno, what, name_));
  }
  return memory;
}

void Device::set_on_failure(std::function<void()> on_failure) {
  const std::scoped_lock lock(mutex_);
  on_failure_ = std::move(on_failure);
}

void Device::report_events() {
  const int flags = ::fcntl(context_->async_fd, F_GETFL);
  ::fcntl(context_->async_fd, F_SETFL, flags | O_NONBLOCK);
  for (;;) {
    std::array<pollfd, 2> polled{{{stop_.get(), POLLIN, 0}, {context_->async_fd, POLLIN, 0}}};
    ::poll(polled.data(), polled.size(), -1);
    if (polled[0].revents != 0) return;
    ibv_async_event event{};
    if (ibv_get_async_event(context_.get(), &event) != 0) continue;
    const ibv_event_type type = event.event_type;
    ibv_ack_async_event(&event);  // otherwise the queue pair that it names could not be destroyed
    const EventMeaning meaning = meaning_of(type);
    if (!meaning.expected) {
      fmt::print(stderr, "perdura: {} reports {}: {}\n", name_, ibv_event_type_str(type),
                 meaning.words);
    }
    if (!meaning.fatal) continue;
    failed_.store(true, std::memory_order_seq_cst);
    const std::scoped_lock lock(mutex_);
    if (on_failure_) on_failure_();
  }
}

Handle<ibv_qp> create_queue_pair(const Device& device, ibv_cq* completions, ibv_srq* receives,
                                 std::uint32_t send_depth, std::uint32_t max_inline) {
  ibv_qp_init_attr_ex wanted{};
  wanted.send_cq = completions;
  wanted.recv_cq = completions;
  wanted.srq = receives;
  wanted.cap.max_send_wr = send_depth;
  wanted.cap.max_recv_wr = receives == nullptr ? 1 : 0;
  wanted.cap.max_send_sge = kMaxPieces;
  wanted.cap.max_recv_sge = 1;
  wanted.cap.max_inline_data = max_inline;
  wanted.qp_type = IBV_QPT_RC;
  wanted.pd = device.domain();
  wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
  if (device.send_operations() != 0) {
    wanted.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    wanted.send_ops_flags = device.send_operations();
  }
  return Handle<ibv_qp>(ibv_create_qp_ex(device.context(), &wanted));
}

}  // namespace perdura::fabric::verbs
