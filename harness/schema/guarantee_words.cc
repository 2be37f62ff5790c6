#include "harness/schema/guarantee_words.h"

#include "services/guarantee.h"

namespace perdura::report {

std::span<const std::string_view> guarantee_words() { return services::kGuaranteeWords; }

}  // namespace perdura::report
