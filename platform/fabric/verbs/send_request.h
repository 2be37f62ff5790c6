// An operation on its way through a queue pair. Requests come from slabs that are registered with
// the device, so that it can put the old value of an atomic into them, and nothing is allocated
// once the pool has warmed up.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "platform/fabric/fabric.h"
#include "platform/fabric/verbs/device.h"
#include "platform/fabric/verbs/node_memory.h"

namespace perdura::fabric::verbs {

inline constexpr std::uint32_t kMaxInline = 256;

struct SendRequest {
  // Besides the user's operations there are markers, which are empty WRITEs whose completion shows
  // that everything before them has completed, and READs of the contents that a WRITE will replace,
  // for accounting.
  enum class Role : std::uint8_t { operation, marker, old_contents };

  Role role = Role::operation;
  RdmaOperation* operation = nullptr;  // null if unsignaled or abandoned
  bool abandoned = false;              // its buffer is gone, so it must not be posted anymore
  bool owns_data = false;              // inlined: the payload is here
  bool signaled = false;
  bool asked = false;     // the peer was asked for the range of the key
  bool resolved = false;  // `range` is the range of the key
  bool refused = false;   // the key has no range
  bool counted = false;   // it is in the write accounting
  bool overtook = false;  // its completion is in `early`, since an earlier request has not
                          // completed
  std::uint32_t number = 0;
  std::uint32_t slab_key = 0;  // the device's key for the memory of this request
  WorkRequest request{};
  RemoteRange range{};
  std::uint64_t result = 0;  // the result of an atomic
  ibv_wc early{};
  std::vector<std::byte> before{};  // the contents that a READ into persistent memory replaces
  std::array<std::byte, kMaxInline> data{};
};

class RequestPool {
 public:
  explicit RequestPool(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  SendRequest* take() {
    if (free_.empty()) grow();
    SendRequest* const request = free_.back();
    free_.pop_back();
    request->role = SendRequest::Role::operation;
    request->operation = nullptr;
    request->abandoned = request->owns_data = request->signaled = request->asked = false;
    request->resolved = request->refused = request->counted = request->overtook = false;
    return request;
  }
  void give_back(SendRequest* request) { free_.push_back(request); }

 private:
  static constexpr std::size_t kSlab = 64;
  struct Slab {
    std::unique_ptr<SendRequest[]> requests;
    Handle<ibv_mr> memory;
  };
  [[gnu::cold, gnu::noinline]] void grow() {
    Slab slab{std::make_unique<SendRequest[]>(kSlab), nullptr};
    slab.memory = device_->register_memory(reinterpret_cast<std::byte*>(slab.requests.get()),
                                           kSlab * sizeof(SendRequest), 0, "send requests", "");
    for (std::size_t i = 0; i < kSlab; ++i) {
      slab.requests[i].slab_key = slab.memory->lkey;
      free_.push_back(&slab.requests[i]);
    }
    slabs_.push_back(std::move(slab));
  }

  std::shared_ptr<Device> device_;
  std::vector<Slab> slabs_;
  std::vector<SendRequest*> free_;
};

}  // namespace perdura::fabric::verbs
