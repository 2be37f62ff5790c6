// A pool without keys, for plugin processes that use only its memory, or nothing.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "systems/mcas/ado/callbacks.h"

namespace perdura::bench::micro {

namespace ado = systems::mcas::ado;

class NoKeys : public ado::Callbacks {
 public:
  bool try_lock(const std::string&, ado::LockMode) override { return true; }
  void unlock(const std::string&, ado::LockMode) override {}
  std::optional<systems::mcas::ByteRange> find(const std::string&) override { return std::nullopt; }
  Task<ado::Created> create(std::string, Bytes) override { co_return none(); }
  Task<ado::Created> resize(std::string, Bytes) override { co_return none(); }
  bool erase(const std::string&) override { return false; }
  Task<ado::Created> allocate(Bytes) override { co_return none(); }
  bool free(systems::mcas::ByteRange) override { return false; }
  void for_each(const std::function<void(const std::string&, systems::mcas::ByteRange)>&) override {
  }
  ado::PoolInfo info() override { return {}; }

 private:
  static ado::Created none() { return {ado::CallStatus::out_of_space, {}}; }
};

}  // namespace perdura::bench::micro
