#include "systems/mcas/ado/plugins/replicate.h"

#include <fmt/format.h>

namespace perdura::systems::mcas::ado {

using objects::Error;

Task<Result> Replicate::do_work(Services& services, const Invocation& work) {
  if (work.request == signal_request(Signal::get)) co_return Result{};
  const Answer<std::string> found = co_await value_of(services, work);
  if (!found && found.status != CallStatus::not_found) {
    co_return Result{{}, fmt::format("the value of '{}' cannot be read", work.key)};
  }
  const std::optional<std::string> value = found ? std::optional(found.value) : std::nullopt;
  // An old connection may have broken although the peer runs again, so a second attempt is made.
  const bool was_connected = peer_.connected();
  objects::Result<void> copied = co_await copy(services, work.key, value);
  if (!copied && copied.error() == Error::disconnected && was_connected) {
    copied = co_await copy(services, work.key, value);
  }
  if (copied) co_return Result{};
  co_return Result{{},
                   fmt::format("the peer has no copy of '{}': {}", work.key,
                               objects::to_string(copied.error()))};
}

Task<Answer<std::string>> Replicate::value_of(Services& services, const Invocation& work) {
  if (work.value.length == 0) co_return co_await services.read_value(work.key);
  Answer<std::string> answer;
  answer.value.resize(work.value.length);
  services.memory().region().read(work.value.offset,
                                  std::as_writable_bytes(std::span(answer.value)));
  co_return answer;
}

Task<objects::Result<void>> Replicate::connect(Services& services) {
  const objects::Result<void> connected = co_await peer_.connect(services);
  if (!connected) co_return connected;
  const Answer<PoolInfo> pool = co_await services.get_pool_info();
  const auto opened = co_await peer_.open_pool(services, pool.value.name, pool.value.limit);
  if (!opened) co_return tl::unexpected(opened.error());
  pool_ = *opened;
  co_return objects::Result<void>{};
}

Task<objects::Result<void>> Replicate::copy(Services& services, const std::string& key,
                                            const std::optional<std::string>& value) {
  if (!peer_.connected() || pool_ == kNoPool) {
    pool_ = kNoPool;
    const objects::Result<void> connected = co_await connect(services);
    if (!connected) co_return connected;
  }
  if (value) co_return co_await peer_.put(services, pool_, key, *value);
  const objects::Result<void> erased = co_await peer_.erase(services, pool_, key);
  if (!erased && erased.error() == Error::not_found) co_return objects::Result<void>{};
  co_return erased;
}

}  // namespace perdura::systems::mcas::ado
