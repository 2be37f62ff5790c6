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
#include "bench/trace/placed_files.h"
#include "bench/trace/translation_replay.h"
#include "platform/base/error.h"
#include "platform/sim/sim_platform.h"
#include "services/fs/trace/trace_text.h"
#include "services/metric.h"
#include "systems/nova/nova.h"

namespace perdura::bench {

using harness::Point;

namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
constexpr std::uint64_t kLargestRegion = std::uint64_t{1} << 44;

constexpr std::array<std::string_view, 2> kLayouts{"assumed", "nova"};

constexpr Parameter kParameters[] = {
    {.name = "workload",
     .type = Name{},
     .usual = "",
     .identifies = true,
     .what = "the trace: workloads/traces/NAME.txt, or a path; as text or packed"},
    {.name = "region_size",
     .type = Count{0, kLargestRegion},
     .usual = 0,
     .identifies = true,
     .noun = "region size",
     .title = "Region size",
     .unit = "bytes",
     .what = "instead of a trace: one file of this size is registered"},
    {.name = "layout",
     .type = OneOf{kLayouts},
     .usual = "assumed",
     .identifies = true,
     .noun = "layout of files",
     .title = "Layout of files",
     .what = "where files are in memory: as extent and growth say, or where nova puts them when it "
             "executes what the trace writes"},
    {.name = "size",
     .type = Count{1 << 20, kLargestRegion},
     .usual = 2 * GiB,
     .unit = "bytes",
     .what = "with layout = \"nova\": persistent memory that the file system has"},
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
    {"registration_ms", "time of registering", "Time of registering", "ms"},
    {"registration_mb_s", "rate of registering", "Rate of registering", "MB/s"},
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

Bytes region_of(const Point& point) { return point.settings.number("region_size"); }

bool is_placed(const Point& point) { return point.settings.text("layout") == "nova"; }

// The trace of a point, packed. A region is a trace of a file that nobody accesses.
class PointTrace {
 public:
  explicit PointTrace(const Point& point) {
    if (region_of(point) == 0 && is_packed(point.files.front().file)) {
      path_ = point.files.front().file.string();
      return;
    }
    packed_.emplace();
    path_ = packed_->path();
    fs::TraceWriter writer(path_);
    if (region_of(point) > 0) {
      writer.add_file("", region_of(point));
    } else {
      fs::add_trace_lines(point.files.front().file.string(), writer);
    }
    writer.finish();
  }
  fs::TraceReader reader() const { return fs::TraceReader(path_); }

 private:
  std::optional<TemporaryFile> packed_;
  std::string path_;
};

void replay(const PointTrace& trace, std::span<TranslationReplay> into, Platform& platform,
            const Point& point) {
  fs::TraceReader accesses = trace.reader();
  if (!is_placed(point)) return replay_trace(accesses, into);
  fs::TraceReader writes = trace.reader();
  const auto extents = place_files(platform, systems::kNova, point.settings.number("size"), writes);
  replay_trace(accesses, into, [&, next = std::size_t{0}](const fs::TracedFile&) mutable {
    return std::optional(extents[next++]);
  });
}

// Leaves the metrics out if the profile does not say what registering takes.
void add_registration(const TranslationCounts& counts, const Platform& platform, Bytes region,
                      harness::Measurement& result) {
  const auto* const simulated = dynamic_cast<const sim::SimPlatform*>(&platform);
  if (simulated == nullptr || !simulated->profile().translation) return;
  const Picoseconds time = registration_time(counts, *simulated->profile().translation);
  result.declared["registration_ms"] = to_microseconds(time) / 1000;
  if (region > 0 && time > Picoseconds{}) {
    result.declared["registration_mb_s"] = static_cast<double>(region) / to_microseconds(time);
  }
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
  if (region_of(point) > 0) return;
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
  if (region_of(point) > 0 && settings.given("workload")) {
    throw UsageError(fmt::format("{}: a region is registered without a trace; remove workload",
                                 settings.where("region_size")));
  }
  for (const char* assumed : {"extent", "growth"}) {
    if (!is_placed(point) || settings.number(assumed) == 0) continue;
    throw UsageError(fmt::format("{}: nova decides where files are; remove {}",
                                 settings.where(assumed), assumed));
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

std::span<const std::string_view> TranslationDriver::columns_if_unusual() const {
  static constexpr std::array<std::string_view, 2> kColumns{"region_size", "layout"};
  return kColumns;
}

std::optional<Bytes> TranslationDriver::memory(const Point& point) const {
  if (!is_placed(point)) return std::nullopt;
  return point.settings.number("size");
}

harness::Measurement TranslationDriver::run(Platform& platform, const Point& point) const {
  std::array replays{TranslationReplay(
      scheme_of(point),
      {.extent = point.settings.number("extent"), .growth = point.settings.number("growth")})};
  replay(PointTrace(point), replays, platform, point);
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
  add_registration(counts, platform, region_of(point), result);
  return result;
}

}  // namespace perdura::bench
