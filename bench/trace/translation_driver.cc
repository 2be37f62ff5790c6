#include "bench/trace/translation_driver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "bench/driver/systems.h"
#include "bench/trace/translation_replay.h"
#include "platform/base/error.h"
#include "services/fs/trace/trace_text.h"
#include "services/metric.h"

namespace perdura::bench {

using harness::Point;

namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 32;

constexpr Parameter kParameters[] = {
    {.name = "workload",
     .type = Name{},
     .usual = "",
     .identifies = true,
     .what = "the trace: workloads/traces/NAME.txt, or a path; as text or packed"},
    {.name = "cache_entries",
     .type = Count{1, 1U << 24},
     .usual = 4096,
     .identifies = true,
     .noun = "cache entries",
     .title = "Entries of the cache",
     .what = "how many translations the NIC caches"},
    {.name = "cache_ways",
     .type = Count{1, 1U << 16},
     .usual = 4,
     .identifies = true,
     .noun = "cache ways",
     .title = "Ways of the cache",
     .what = "how many entries of the cache may hold a given translation"},
    {.name = "extent",
     .type = Count{0, kMost},
     .usual = 0,
     .identifies = true,
     .noun = "extent size",
     .title = "Size of an extent",
     .unit = "bytes",
     .what = "how much of a file adjoins in memory; 0: all of it"},
    {.name = "growth",
     .type = Count{0, kMost},
     .usual = 0,
     .identifies = true,
     .noun = "growth step",
     .title = "Step in which files grow",
     .unit = "bytes",
     .what = "files that grow get memory in multiples of this size; 0: no more than they need"},
};

struct Translation {
  std::string_view system;
  std::string_view title;
  std::string_view scheme;  // its name among usual_schemes()
};
constexpr std::array kTranslations{
    Translation{"mr-4k", "Pages of 4 KiB", "pages of 4 KiB"},
    Translation{"mr-2m", "Pages of 2 MiB", "pages of 2 MiB"},
    Translation{"filemr", "FileMR, ranges", "ranges"},
};

constexpr services::Metric kMetrics[] = {
    {"look_ups", "look-ups of translations", "Look-ups of translations"},
    {"cache_hits", "look-ups that the cache answers", "Look-ups that the cache answers"},
    {"hit_rate_percent", "hit rate of the cache", "Hit rate of the cache", "%"},
    {"table_entries", "entries of all tables", "Entries of all tables"},
    {"entries_written", "entries written", "Entries written"},
    {"registrations", "registrations", "Registrations"},
};

TranslationScheme scheme_of(const Point& point) {
  const auto found = std::find_if(
      kTranslations.begin(), kTranslations.end(),
      [&](const Translation& each) { return each.system == point.settings.system.text; });
  const auto number = [&](std::string_view name) {
    return static_cast<std::uint32_t>(point.settings.number(name));
  };
  for (TranslationScheme& scheme : usual_schemes(number("cache_entries"), number("cache_ways"))) {
    if (scheme.name == found->scheme) return scheme;
  }
  throw std::logic_error("no such scheme of translation");
}

// A new file that is removed with this object.
class TemporaryFile {
 public:
  TemporaryFile() : path_((std::filesystem::temp_directory_path() / "perdura-XXXXXX").string()) {
    const int file = mkstemp(path_.data());
    if (file < 0) throw PlatformError(fmt::format("{}: cannot be made", path_));
    close(file);
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

bool is_packed(const std::filesystem::path& file) {
  std::array<char, fs::detail::kTraceMagic.size()> begin{};
  std::ifstream(file).read(begin.data(), begin.size());
  return begin == fs::detail::kTraceMagic;
}

void replay_file(const std::filesystem::path& file, std::span<TranslationReplay> into) {
  std::optional<TemporaryFile> packed;
  if (!is_packed(file)) {
    packed.emplace();
    fs::TraceWriter writer(packed->path());
    fs::add_trace_lines(file.string(), writer);
    writer.finish();
  }
  fs::TraceReader trace(packed ? packed->path() : file.string());
  replay_trace(trace, into);
}

}  // namespace

std::span<const Parameter> TranslationDriver::parameters() const { return kParameters; }

std::vector<harness::DriverDeclarations::System> TranslationDriver::systems() const {
  std::vector<harness::DriverDeclarations::System> declared;
  for (const Translation& each : kTranslations) declared.push_back({each.system, {}, each.title});
  return declared;
}

void TranslationDriver::prepare(Point& point, const harness::Locations& locations) const {
  harness::PointSettings& settings = point.settings;
  const harness::Located name{settings.text("workload"), settings.where("workload")};
  const auto file = locations.find(harness::FileKind::trace, name);
  const std::string plain = plain_name(harness::FileKind::trace, file);
  point.files.push_back({"trace", name, plain, file});
  settings.set("workload", plain, name.where);
}

void TranslationDriver::check(const Point& point) const {
  const harness::PointSettings& settings = point.settings;
  if (point.timeline_interval > Nanoseconds{}) {
    throw UsageError(fmt::format("{}: a trace is not recorded over time; remove [timeline]",
                                 settings.system.where));
  }
  if (settings.number("cache_entries") % settings.number("cache_ways") != 0) {
    throw UsageError(fmt::format("{}: {} entries cannot be in {} ways; make it a multiple",
                                 settings.where("cache_entries"), settings.number("cache_entries"),
                                 settings.number("cache_ways")));
  }
}

void TranslationDriver::check_platform(std::string_view platform, const std::string& where) const {
  if (platform == "sim") return;
  throw UsageError(fmt::format(
      "{}: driver translation only counts, which needs no machine; use platform sim", where));
}

harness::Roles TranslationDriver::roles(const harness::PointSettings&, NodeId) const {
  return harness::Roles({{"nic", 1}});
}

std::vector<schema::Column> TranslationDriver::columns(std::string_view) const {
  std::vector<schema::Column> columns;
  add_columns(kMetrics, columns);
  return columns;
}

harness::Measurement TranslationDriver::run(Platform&, const Point& point) const {
  std::array replays{TranslationReplay(
      scheme_of(point),
      {.extent = point.settings.number("extent"), .growth = point.settings.number("growth")})};
  replay_file(point.files.front().file, replays);
  const TranslationCounts counts = replays.front().counts();
  const auto look_ups = static_cast<double>(counts.look_ups);
  const auto hits = static_cast<double>(counts.hits);
  harness::Measurement result;
  result.kinds[{0, "access"}].operations = counts.accesses;
  result.declared = {
      {"look_ups", look_ups},
      {"cache_hits", hits},
      {"hit_rate_percent", look_ups > 0 ? 100 * hits / look_ups : 0},
      {"table_entries", static_cast<double>(counts.entries)},
      {"entries_written", static_cast<double>(counts.registered + counts.changed)},
      {"registrations", static_cast<double>(counts.registrations)},
  };
  return result;
}

}  // namespace perdura::bench
