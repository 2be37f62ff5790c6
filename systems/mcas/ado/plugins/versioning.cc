#include "systems/mcas/ado/plugins/versioning.h"

#include <charconv>

#include "systems/mcas/containers/list.h"

namespace perdura::systems::mcas::ado {

namespace {

using containers::Arena;
using Versions = containers::List<std::string>;

constexpr std::string_view kPutDetached = "put";
constexpr std::string_view kPut = "put ";
constexpr std::string_view kGet = "get ";

Result failed(std::string why) { return {{}, std::move(why)}; }

}  // namespace

Task<> Versioning::launched(Services& services) {
  for (std::uint64_t position = 0;;) {
    const auto piece = co_await services.iterate(position);
    if (!piece || piece.value.empty()) co_return;
    for (const Reference& one : piece.value) {
      const auto value = co_await services.open_key(one.key, LockMode::write);
      if (!value) continue;
      if (Arena::exists(services.memory(), value.value)) Arena(services.memory(), value.value);
      co_await services.unlock(one.key);
    }
  }
}

Task<Result> Versioning::do_work(Services& services, const Invocation& work) {
  const std::string_view request = work.request;
  if (work.is_signal()) co_return Result{};
  if (request.starts_with(kPut)) {
    co_return co_await put(services, work, std::string(request.substr(kPut.size())));
  }
  if (request == kPutDetached && work.detached.size() == 1) {
    const ByteRange given = work.detached.front();
    std::string value(given.length, '\0');
    services.memory().region().read(given.offset, std::as_writable_bytes(std::span(value)));
    Result result = co_await put(services, work, std::move(value));
    if (result.error.empty()) co_await services.free_memory(given);
    co_return result;
  }
  std::uint64_t back = 0;
  const char* const end = request.data() + request.size();
  if (!request.starts_with(kGet) ||
      std::from_chars(request.data() + kGet.size(), end, back).ptr != end) {
    co_return failed("versioning takes 'put VALUE' and 'get NUMBER'");
  }
  co_return get(services, work, back);
}

Task<Result> Versioning::put(Services& services, const Invocation& work, std::string value) {
  const Memory memory = services.memory();
  if (!Arena::exists(memory, work.value)) {
    const auto resized = co_await services.resize_value(work.key, settings_.arena);
    if (!resized) co_return failed("out of space");
    Arena::format(memory, resized.value, {.log = settings_.log});
  }
  Arena arena(memory, work.value);
  Versions versions(arena, 0);
  const bool done = arena.transact([&] {
    versions.push_front(value);
    if (versions.size() > settings_.versions) versions.erase(versions.last());
  });
  co_return done ? Result{{std::string()}, {}} : failed("out of space");
}

Result Versioning::get(Services& services, const Invocation& work, std::uint64_t back) {
  if (!Arena::exists(services.memory(), work.value)) return {{std::string()}, {}};
  Arena arena(services.memory(), work.value);
  const Versions versions(arena, 0);
  if (back >= versions.size()) return {{std::string()}, {}};
  auto at = versions.begin();
  for (std::uint64_t i = 0; i < back; ++i) at = versions.next(at);
  return {{'v' + versions.get(at)}, {}};
}

}  // namespace perdura::systems::mcas::ado
