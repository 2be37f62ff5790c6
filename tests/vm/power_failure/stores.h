// The stores that the power-failure test keeps: every key-value system as in its paper, and with
// puts that persist by the method for the machine.
#pragma once

#include <string>
#include <vector>

#include "services/kv/history/checker.h"
#include "services/kv/kv.h"

namespace perdura::test {

inline constexpr std::uint64_t kKeys = 8;

struct Store {
  std::string name;  // as in the guarantee matrix
  std::string pool;
  const kv::KvSystem* system = nullptr;
  kv::KvConfig config{};
  history::Promise promise{};  // what the matrix says may be lost
};

// `matrix` is the file of whole systems among the reference results of `perdura guarantees`. Of the
// virtual machine visible stores are durable (MHP): the NVDIMM's file is the host's memory.
// `selected`: names; none of them: all. Throws UsageError if the matrix lacks one, or promises what
// the history checker cannot tell.
std::vector<Store> make_stores(const std::string& matrix, const std::vector<std::string>& selected,
                               bool iwarp);

}  // namespace perdura::test
