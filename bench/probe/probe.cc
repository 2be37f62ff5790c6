#include "bench/probe/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "platform/base/error.h"

namespace perdura::bench {

void Share::add(const Share& other) {
  begin = std::min(begin, other.begin);
  end = std::max(end, other.end);
  amount += other.amount;
}

double Share::per_nanosecond() const {
  return begin < end ? amount * 1e3 / static_cast<double>((end - begin).count()) : 0;
}

std::vector<std::vector<std::uint64_t>> alone(const std::vector<std::uint64_t>& words) {
  return {words};
}

std::vector<Share> gather_shares(std::span<const Share> shares, std::uint64_t clock,
                                 const Gather& gather) {
  constexpr std::size_t kWords = 3;
  std::vector<std::uint64_t> words{clock};
  for (const Share& share : shares) {
    for (const Time time : {share.begin, share.end}) {
      words.push_back(static_cast<std::uint64_t>(time.time_since_epoch().count()));
    }
    words.push_back(std::bit_cast<std::uint64_t>(share.amount));
  }
  const auto time = [](std::uint64_t word) {
    return Time(Picoseconds(static_cast<std::int64_t>(word)));
  };
  std::vector<std::map<std::uint64_t, Share>> by_clock;  // one for each repetition
  for (const auto& of_process : gather(words)) {
    if (of_process.size() != words.size()) {
      throw PlatformError("the processes of a probe disagree on its repetitions");
    }
    by_clock.resize(shares.size());
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const std::uint64_t* const word = &of_process[1 + i * kWords];
      const Share share{time(word[0]), time(word[1]), std::bit_cast<double>(word[2])};
      if (share.begin <= share.end) by_clock[i][of_process.front()].add(share);
    }
  }
  std::vector<Share> all(by_clock.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const auto& [of_hosts, share] : by_clock[i]) {
      all[i].add({Time{}, Time{} + (share.end - share.begin), share.amount});
    }
  }
  return all;
}

Effort Effort::of(bool modelled, std::uint32_t cores, bool quick) {
  Effort effort;
  effort.cores = cores;
  effort.quick = quick;
  if (modelled) {
    // The model is deterministic and has no caches to overflow, so little work suffices.
    effort.repetitions = 1;
    effort.loads = 1'000;
    effort.interval = std::chrono::microseconds(200);
    effort.working_set = 16 * MiB;
    effort.stretch = 1;
    effort.operations = 1'000;
    effort.message_bytes = 16 * MiB;
  } else if (quick) {
    effort.repetitions = 3;
    effort.loads = 200'000;
    effort.interval = std::chrono::milliseconds(20);
    effort.operations = 5'000;
    effort.message_bytes = 32 * MiB;
  }
  return effort;
}

Effort Effort::of(const sim::Profile& profile, bool quick) {
  Effort effort = of(true, profile.server.cores, quick);
  effort.remote = profile.numa.has_value();
  if (profile.pm.dimms) {
    effort.one_dimm = profile.pm.dimms->count > 1;
    effort.piece = kCacheLine;
    effort.working_set = 64 * MiB;  // each of 16 threads has a part that holds the longest accesses
  }
  return effort;
}

namespace {

std::string size_text(Bytes size) {
  if (size >= MiB && size % MiB == 0) return fmt::format("{} MiB", size / MiB);
  if (size >= KiB && size % KiB == 0) return fmt::format("{} KiB", size / KiB);
  return fmt::format("{} B", size);
}

}  // namespace

std::string label(const Setting& setting) {
  std::string text = setting.probe;
  for (const std::string& word :
       {setting.medium, setting.operation, setting.pattern, setting.cache}) {
    if (!word.empty()) text += ' ' + word;
  }
  if (setting.size != 0) text += ' ' + size_text(setting.size);
  if (setting.read_share) text += fmt::format(", {} % reads", *setting.read_share);
  if (!setting.pages.empty()) text += fmt::format(", {} pages", setting.pages);
  if (!setting.numa.empty()) text += fmt::format(", NUMA {}", setting.numa);
  if (setting.dimms == "one") text += ", one DIMM";
  if (setting.threads > 1) text += fmt::format(", {} threads", setting.threads);
  if (setting.queue_depth > 1) text += fmt::format(", {} under way", setting.queue_depth);
  if (setting.queue_pairs > 1) text += fmt::format(", {} queue pairs", setting.queue_pairs);
  if (setting.regions > 1) text += fmt::format(", {} regions", setting.regions);
  if (setting.region_size != 0) text += fmt::format(", in {}", size_text(setting.region_size));
  return text;
}

std::unique_ptr<pmem::Region> create(Node& node, std::string_view name, Room room) {
  return node.create_region_at({.pages = room.pages}, name, room.size, room.medium());
}

Reading reading_of(const Setting& setting, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {setting, median, values.front(), values.back(), values.size()};
}

std::vector<Reading> peaks_of(const std::vector<Reading>& readings) {
  std::vector<Reading> peaks;
  for (const Reading& reading : readings) {
    const Setting& setting = reading.setting;
    if (setting.probe != "bandwidth-over-threads") continue;
    const auto of_it = std::find_if(peaks.begin(), peaks.end(), [&](const Reading& peak) {
      return peak.setting.medium == setting.medium && peak.setting.numa == setting.numa &&
             peak.setting.dimms == setting.dimms && peak.setting.operation == setting.operation;
    });
    Reading* peak = of_it == peaks.end() ? &peaks.emplace_back(reading) : &*of_it;
    if (reading.median > peak->median) *peak = reading;
    peak->setting.probe = "peak-bandwidth";
  }
  return peaks;
}

std::string to_csv(const std::vector<Reading>& readings, std::string_view platform, bool modelled,
                   std::string_view profile) {
  std::string csv =
      "platform,provenance,profile,probe,medium,operation,pattern,cache,pages,numa,dimms,size,"
      "threads,"
      "queue_depth,queue_pairs,regions,region_size,read_percent,value,low,high,repetitions,unit\n";
  const auto count = [](std::uint64_t n) { return n == 0 ? std::string() : std::to_string(n); };
  for (const Reading& reading : readings) {
    const Setting& s = reading.setting;
    csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                       platform, modelled ? "modelled" : "measured", profile, s.probe, s.medium,
                       s.operation, s.pattern, s.cache, s.pages, s.numa, s.dimms, count(s.size),
                       s.threads, count(s.queue_depth), count(s.queue_pairs), count(s.regions),
                       count(s.region_size), s.read_share ? std::to_string(*s.read_share) : "",
                       reading.median, reading.low, reading.high, reading.repetitions, s.unit);
  }
  return csv;
}

}  // namespace perdura::bench
