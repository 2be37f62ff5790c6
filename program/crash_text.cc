#include "program/crash_text.h"

#include <fmt/format.h>

#include "platform/pmem/model/image_space.h"

namespace perdura::program {

std::string text_of(const explore::ImageCoverage& coverage) {
  const auto number = [](std::uint64_t count) {
    return count == pmem::kCountless ? "more than 10^19" : fmt::format("{}", count);
  };
  if (coverage.sampled == 0) {
    return fmt::format("{} recoveries, which cover all {} images", coverage.recoveries,
                       number(coverage.images));
  }
  return fmt::format("{} recoveries, which cover {} of {} images and exhaust {} of {} crash points",
                     coverage.recoveries, number(coverage.covered), number(coverage.images),
                     coverage.exhausted, coverage.exhausted + coverage.sampled);
}

}  // namespace perdura::program
