#include "report/output_file.h"

#include "harness/text/atomic_file.h"
#include "platform/base/error.h"

namespace perdura::report {

schema::Expected<void> write_file(const std::filesystem::path& file, std::string_view text) {
  try {
    harness::write_atomically(file, text);
  } catch (const PlatformError& problem) {
    return schema::fail_work(problem.what());
  }
  return {};
}

}  // namespace perdura::report
