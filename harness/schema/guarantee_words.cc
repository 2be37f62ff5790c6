#include "harness/schema/guarantee_words.h"

#include "systems/guarantee.h"

namespace perdura::report {

std::span<const std::string_view> guarantee_words() { return systems::kGuaranteeWords; }

}  // namespace perdura::report
