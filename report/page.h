#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "report/contents.h"
#include "report/designs.h"

namespace perdura::report {

struct Page {
  std::string html;
  std::size_t rows_not_drawn = 0;
};

/// Makes one self-contained HTML page: figures and style are inlined, and there is no script. The
/// files that it links are in `folder`, beside it.
Page make_page(const Contents& contents, const Designs& designs,
               const std::vector<ResultFolder>& folders, const Papers& papers,
               const std::filesystem::path& folder);

}  // namespace perdura::report
