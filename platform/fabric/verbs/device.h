// The RDMA device of this process: opened once, used by all threads of its nodes.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "platform/fabric/types.h"
#include "platform/fabric/verbs/gid.h"
#include "platform/fabric/verbs/socket.h"
#include "platform/host/os_thread.h"

namespace perdura::fabric::verbs {

struct DeviceOptions {
  // As in `ibv_devices`; empty: a device with an active port, preferably one whose address is this
  // host's.
  std::string name{};
  std::optional<unsigned> port{};       // counted from 1; none: an active one
  std::optional<unsigned> gid_index{};  // as in `show_gids`; none: the best (gid.h)
  // Pages of registered memory are not locked but fetched when the device needs them.
  bool on_demand_paging = false;
};

// Closes and frees the objects of libibverbs.
struct VerbsDeleter {
  void operator()(ibv_context* context) const { ibv_close_device(context); }
  void operator()(ibv_pd* domain) const { ibv_dealloc_pd(domain); }
  void operator()(ibv_mr* memory) const { ibv_dereg_mr(memory); }
  void operator()(ibv_cq* queue) const { ibv_destroy_cq(queue); }
  void operator()(ibv_srq* queue) const { ibv_destroy_srq(queue); }
  void operator()(ibv_qp* pair) const { ibv_destroy_qp(pair); }
  void operator()(ibv_comp_channel* channel) const { ibv_destroy_comp_channel(channel); }
};
template <class T>
using Handle = std::unique_ptr<T, VerbsDeleter>;

class ConnectionManager;

class Device {
 public:
  // Throws UsageError if the options name something that does not exist, and PlatformError if the
  // host has no usable device; the message says what is missing and which platform would work.
  explicit Device(const DeviceOptions& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& name() const { return name_; }
  ibv_context* context() const { return context_.get(); }
  ibv_pd* domain() const { return domain_.get(); }
  unsigned port() const { return gid_.port; }
  const GidEntry& gid() const { return gid_; }
  const ibv_port_attr& port_attributes() const { return port_attributes_; }
  const ibv_device_attr& attributes() const { return attributes_.orig_attr; }
  const Capabilities& capabilities() const { return capabilities_; }
  bool on_demand_paging() const { return on_demand_paging_; }
  // Null if queue pairs are connected by their numbers (bring_up.h).
  ConnectionManager* connection_manager() const { return connection_manager_.get(); }
  // The initial capacity of completion queues, which may be enlarged later.
  std::uint32_t first_completions() const { return first_completions_; }
  // The operations of the extended interface (ibv_wr_*) that queue pairs support; 0 if none.
  std::uint64_t send_operations() const { return send_operations_; }

  // Registers memory; throws PlatformError with the reason and a remedy. `flags`: of ibv_reg_mr(),
  // besides local writing.
  Handle<ibv_mr> register_memory(std::byte* base, Bytes length, unsigned flags,
                                 const std::string& region, const std::string& path) const;
  // Like register_memory(), but returns null on failure, with errno set.
  Handle<ibv_mr> try_register(std::byte* base, Bytes length, unsigned flags) const;

  // True after an event that ends all work on the device; the event thread then calls `on_failure`.
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  void set_on_failure(std::function<void()> on_failure);

 private:
  struct Candidate;
  Candidate choose(const DeviceOptions& options) const;
  void open(const DeviceOptions& options);
  void find_features(const DeviceOptions& options);
  void try_queue_pair();
  void try_completion_queue();
  void report_events();

  std::string name_;
  Handle<ibv_context> context_;
  Handle<ibv_pd> domain_;
  GidEntry gid_;
  ibv_port_attr port_attributes_{};
  ibv_device_attr_ex attributes_{};
  Capabilities capabilities_;
  bool on_demand_paging_ = false;
  std::uint64_t send_operations_ = 0;
  unsigned local_rights_ = IBV_ACCESS_LOCAL_WRITE;
  std::uint32_t first_completions_ = 0;
  std::unique_ptr<ConnectionManager> connection_manager_;

  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::function<void()> on_failure_;
  Event stop_;
  OsThread events_;
};

// Creates a queue pair of the device in the state RESET; `receives` may be null. Returns null, with
// errno, if the device refuses.
Handle<ibv_qp> create_queue_pair(const Device& device, ibv_cq* completions, ibv_srq* receives,
                                 std::uint32_t send_depth, std::uint32_t max_inline);

}  // namespace perdura::fabric::verbs
