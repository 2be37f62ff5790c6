#include "services/kv/history/specification.h"

namespace perdura::services {

std::vector<Call<history::Operation>> calls_of(const history::History& history) {
  std::vector<Call<history::Operation>> calls;
  for (const history::Operation& operation : history.operations()) {
    const bool answered = operation.outcome != history::Outcome::unknown;
    calls.push_back({operation, operation.start, operation.end, answered});
  }
  return calls;
}

}  // namespace perdura::services
