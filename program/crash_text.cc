#include "program/crash_text.h"

#include <fmt/format.h>

#include "platform/pmem/model/image_space.h"

namespace perdura::program {

std::string text_of(const explore::ImageCoverage& coverage) {
  const auto number = [](std::uint64_t count) {
    return count == pmem::kCountless ? "more than 10^19" : fmt::format("{}", count);
  };
  const bool all = coverage.sampled == 0;
  return fmt::format("{} crash points exhausted{}; {} recoveries cover {} {} images",
                     coverage.exhausted, all ? "" : fmt::format(", {} sampled", coverage.sampled),
                     coverage.recoveries, all ? "all" : number(coverage.covered) + " of",
                     number(coverage.images));
}

}  // namespace perdura::program
