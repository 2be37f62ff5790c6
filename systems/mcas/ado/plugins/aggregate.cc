#include "systems/mcas/ado/plugins/aggregate.h"

namespace perdura::systems::mcas::ado {

Task<Result> Aggregate::do_work(Services& services, const Invocation& work) {
  if (work.is_signal()) co_return Result{};
  const std::size_t line = work.request.find('\n');
  if (line == std::string::npos) co_return Result{{}, "aggregate takes a first and a last key"};
  const std::string first = work.request.substr(0, line);
  const std::string last = work.request.substr(line + 1);
  Sum sum;
  for (std::uint64_t position = 0;;) {
    const auto piece = co_await services.iterate(position);
    if (!piece) co_return Result{{}, "the pool has values that cannot be read"};
    if (piece.value.empty()) break;
    for (const Reference& one : piece.value) {
      if (one.key < first || one.key > last) continue;
      ++sum.values;
      if (one.value.length < kWord) continue;
      sum.sum += services.memory().region().read_object<std::uint64_t>(one.value.offset);
    }
  }
  co_return Result{{std::string(reinterpret_cast<const char*>(&sum), sizeof sum)}, {}};
}

}  // namespace perdura::systems::mcas::ado
