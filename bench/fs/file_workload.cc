#include "bench/fs/file_workload.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace perdura::bench {

std::unique_ptr<FileWorkload> create_file_workload(const harness::Point& point) {
  const std::string name = point.settings.text("workload");
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is_one_of({"varmail", "fileserver", "webserver"})) return create_personality(point);
  if (name == "mdtest") return create_tree_workload(point);
  if (is_one_of(
          {"create", "mkdir", "unlink", "rmdir", "stat", "rename", "open-read-close", "utimens"})) {
    return create_name_workload(point);
  }
  return create_data_workload(point);
}

std::uint32_t lanes_of(const harness::Point& point) {
  return static_cast<std::uint32_t>(point.settings.number("threads") *
                                    point.settings.number("queue_depth"));
}

}  // namespace perdura::bench
