#include "methods/rdma_device.h"

#include <fmt/format.h>

#ifdef PERDURA_HAVE_LIBIBVERBS
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#endif

namespace perdura::methods {

namespace {

// Bits of enum ib_uverbs_device_cap_flags in include/uapi/rdma/ib_user_verbs.h of Linux 6.2 and
// later. Repeated here since the header of Debian 12's libibverbs is older; older kernels never set
// these bits.
constexpr std::uint64_t kFlushGlobal = 1ULL << 38;      // IB_UVERBS_DEVICE_FLUSH_GLOBAL
constexpr std::uint64_t kFlushPersistent = 1ULL << 39;  // IB_UVERBS_DEVICE_FLUSH_PERSISTENT
constexpr std::uint64_t kAtomicWrite = 1ULL << 40;      // IB_UVERBS_DEVICE_ATOMIC_WRITE

}  // namespace

DeviceFeatures features_of_flags(std::uint64_t device_cap_flags_ex) {
  return {.flush = (device_cap_flags_ex & kFlushGlobal) != 0,
          .flush_persistence = (device_cap_flags_ex & kFlushPersistent) != 0,
          .atomic_write = (device_cap_flags_ex & kAtomicWrite) != 0};
}

#ifdef PERDURA_HAVE_LIBIBVERBS

tl::expected<DeviceFeatures, std::string> query_rdma_device(const std::string& device) {
  const auto problem = [&](std::string_view what, int error) {
    return tl::unexpected(fmt::format("{} {}: {}", what, device, std::strerror(error)));
  };
  int count = 0;
  const std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)> list(
      ibv_get_device_list(&count), &ibv_free_device_list);
  if (list == nullptr) return problem("libibverbs cannot look for", errno);
  for (ibv_device* const found : std::span(list.get(), static_cast<std::size_t>(count))) {
    if (device != ibv_get_device_name(found)) continue;
    const std::unique_ptr<ibv_context, decltype(&ibv_close_device)> context(ibv_open_device(found),
                                                                            &ibv_close_device);
    if (context == nullptr) return problem("cannot open", errno);
    ibv_device_attr_ex attributes{};
    const int error = ibv_query_device_ex(context.get(), nullptr, &attributes);
    if (error != 0) return problem("cannot query", error);
    // Drivers that report the new features also repeat the old flags in this field, and every
    // device has some of those. So 0 means that the driver does not report it.
    if (attributes.device_cap_flags_ex == 0) {
      return tl::unexpected(fmt::format("the driver of {} does not tell its features", device));
    }
    DeviceFeatures features = features_of_flags(attributes.device_cap_flags_ex);
    features.atomics = attributes.orig_attr.atomic_cap != IBV_ATOMIC_NONE;
    return features;
  }
  return tl::unexpected(fmt::format("libibverbs has no driver for {}", device));
}

#else

tl::expected<DeviceFeatures, std::string> query_rdma_device(const std::string& device) {
  return tl::unexpected(fmt::format("{} cannot be asked: built without libibverbs", device));
}

#endif

}  // namespace perdura::methods
