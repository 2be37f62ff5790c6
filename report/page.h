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

/// One self-contained HTML page: figures and style are inlined, and there is no script. Beside it,
/// where `folder` is, lie the files that it links.
Page make_page(const Contents& contents, const Designs& designs,
               const std::vector<ResultFolder>& folders, const Papers& papers,
               const std::filesystem::path& folder);

}  // namespace perdura::report
