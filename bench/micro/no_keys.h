// A pool without keys, for plugin processes that use only its memory, or nothing.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "systems/mcas/ado/callbacks.h"

namespace perdura::systems::mcas::ado {

class NoKeys : public Callbacks {
 public:
  bool try_lock(const std::string&, LockMode) override { return true; }
  void unlock(const std::string&, LockMode) override {}
  std::optional<Place> find(const std::string&) override { return std::nullopt; }
  Task<Created> create(std::string, Bytes) override { co_return none(); }
  Task<Created> resize(std::string, Bytes) override { co_return none(); }
  bool erase(const std::string&) override { return false; }
  Task<Created> allocate(Bytes) override { co_return none(); }
  bool free(Place) override { return false; }
  void for_each(const std::function<void(const std::string&, Place)>&) override {}
  PoolInfo info() override { return {}; }

 private:
  static Created none() { return {CallStatus::out_of_space, {}}; }
};

}  // namespace perdura::systems::mcas::ado
