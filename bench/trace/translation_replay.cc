#include "bench/trace/translation_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "platform/base/error.h"
#include "platform/sim/kernel/virtual_time.h"

namespace perdura::bench {
namespace {

using fabric::RangeEntry;
using fabric::RangeMtt;

constexpr std::uint64_t kMostPages = std::uint64_t{1} << 32;

// The page that holds the byte before `end`, plus one.
std::uint64_t pages_until(Bytes end, Bytes page) { return end / page + (end % page != 0 ? 1 : 0); }

}  // namespace

std::vector<TranslationScheme> usual_schemes(std::uint32_t cache_entries,
                                             std::uint32_t cache_ways) {
  return {{"pages of 4 KiB", 4 * KiB, false, cache_entries, cache_ways},
          {"pages of 2 MiB", 2 * MiB, false, cache_entries, cache_ways},
          {"ranges", 4 * KiB, true, cache_entries, cache_ways}};
}

Picoseconds registration_time(const TranslationCounts& counts,
                              const sim::TranslationProfile& profile) {
  return sim::times(profile.registration, counts.registrations) +
         sim::times(profile.registration_entry, counts.registered + counts.changed) +
         sim::times(profile.change, counts.changes);
}

Picoseconds miss_time(const TranslationCounts& counts, const sim::TranslationProfile& profile) {
  return sim::times(profile.miss, counts.misses);
}

TranslationReplay::TranslationReplay(TranslationScheme scheme, const AssumedLayout& layout)
    : scheme_(std::move(scheme)),
      extent_(layout.extent == 0 ? kMostPages : std::max<Bytes>(1, layout.extent / scheme_.page)),
      growth_(std::clamp<Bytes>(layout.growth / scheme_.page, 1, kMostPages)),
      cache_(scheme_.cache_entries, scheme_.cache_ways) {}

std::uint32_t TranslationReplay::page_number(Bytes at) const {
  if (at / scheme_.page >= kMostPages) {
    throw UsageError(fmt::format("no table reaches byte {}: it has {} pages of {} bytes", at,
                                 kMostPages, scheme_.page));
  }
  return static_cast<std::uint32_t>(at / scheme_.page);
}

std::uint64_t TranslationReplay::entries_of(const FileTable& file) const {
  return scheme_.has_ranges ? file.pages.entries() : file.pages.pages();
}

// Pages are entries of their own, but the table keeps ranges of them: that they are entered counts,
// not where they are.
void TranslationReplay::map(FileTable& file, const RangeEntry& entry) {
  const std::uint64_t pages = file.pages.pages();
  const std::uint64_t inserts = file.pages.counts().inserts;
  file.pages.map(entry);
  written_ +=
      scheme_.has_ranges ? file.pages.counts().inserts - inserts : file.pages.pages() - pages;
}

void TranslationReplay::add_file(Bytes size) {
  files_.emplace_back();
  written_ = 0;
  if (size > 0) {
    page_number(size - 1);
    fill(files_.size() - 1, 0, pages_until(size, scheme_.page));
  }
  ++counts_.registrations;
  counts_.registered += written_;
}

void TranslationReplay::add_file(std::span<const FileExtent> extents) {
  map_extents(files_.emplace_back(), extents);
}

std::uint64_t TranslationReplay::count_file(std::span<const FileExtent> extents) {
  FileTable file;
  map_extents(file, extents);
  counts_.entries += entries_of(file);
  return entries_of(file);
}

// Extents that adjoin are entered as one.
void TranslationReplay::map_extents(FileTable& file, std::span<const FileExtent> extents) {
  file.is_fixed = true;
  for (const FileExtent& extent : extents) {
    if (extent.length == 0) continue;
    const std::uint32_t first = page_number(extent.at);
    std::uint64_t count = page_number(extent.at + extent.length - 1) - std::uint64_t{first} + 1;
    std::uint64_t target = scheme_.has_ranges ? extent.target / scheme_.page : first;
    for (std::uint32_t base = first; count > 0;) {
      const auto part = static_cast<std::uint32_t>(std::min(count, kMostPages - 1));
      map(file, {base, part, target});
      base += part;
      target += part;
      count -= part;
    }
  }
  ++counts_.registrations;
  counts_.registered += entries_of(file);
}

void TranslationReplay::access(const fs::TraceRecord& record) {
  FileTable& file = files_[record.file];
  if (record.kind == fs::TraceKind::truncate) {
    if (!file.is_fixed) truncate(record.file, record.offset);
    return;
  }
  if (!fs::is_access(record.kind) || record.length == 0) return;
  const std::uint32_t first = page_number(record.offset);
  const std::uint32_t last = page_number(record.offset + record.length - 1);
  ++counts_.accesses;
  if (record.kind != fs::TraceKind::read && !file.is_fixed) {
    grow(record.file, record.offset, record.offset + record.length);
  }
  look_up(record.file, first, last);
}

void TranslationReplay::grow(std::uint64_t table, Bytes from, Bytes until) {
  const RangeMtt& pages = files_[table].pages;
  std::uint64_t end = pages_until(until, scheme_.page);
  const bool is_at_end = !pages.first_from(end - 1);
  if (is_at_end) end = std::min(round_up(end, growth_), kMostPages);
  written_ = 0;
  for (std::uint64_t next = page_number(from); next < end;) {
    const std::optional<RangeEntry> there = pages.first_from(next);
    if (there && there->base <= next) {
      next = there->end();
      continue;
    }
    const std::uint64_t hole_end = there ? std::min<std::uint64_t>(there->base, end) : end;
    fill(table, static_cast<std::uint32_t>(next), hole_end);
    next = hole_end;
  }
  if (written_ == 0) return;
  ++counts_.changes;
  counts_.changed += written_;
}

// Enters the pages of a hole, part by part. A range that becomes longer by that leaves the cache.
void TranslationReplay::fill(std::uint64_t table, std::uint32_t first, std::uint64_t end) {
  FileTable& file = files_[table];
  for (std::uint64_t base = first; base < end;) {
    const std::uint64_t part_end =
        std::min({end, (base / extent_ + 1) * extent_, base + (kMostPages - 1)});
    const RangeEntry part{static_cast<std::uint32_t>(base),
                          static_cast<std::uint32_t>(part_end - base),
                          scheme_.has_ranges ? base + base / extent_ : base};
    map(file, part);
    if (scheme_.has_ranges) {
      const std::optional<RangeEntry> whole = file.pages.find(part.base).entry;
      if (whole->base < part.base) cache_.forget({table, whole->base});
      if (whole->end() > part_end) cache_.forget({table, part_end});
    }
    base = part_end;
  }
}

void TranslationReplay::truncate(std::uint64_t table, Bytes size) {
  RangeMtt& pages = files_[table].pages;
  const std::uint64_t keep = pages_until(size, scheme_.page);
  const std::optional<RangeEntry> cut = pages.first_from(keep);
  if (!cut) return;
  // Those of pages, and those of ranges that begin there.
  cache_.forget(table, keep, kMostPages);
  if (scheme_.has_ranges) cache_.forget({table, cut->base});
  ++counts_.changes;
  if (scheme_.has_ranges && cut->base < keep) ++counts_.changed;
  pages.unmap(static_cast<std::uint32_t>(keep), kMostPages);
}

void TranslationReplay::look_up(std::uint64_t table, std::uint32_t first, std::uint32_t last) {
  const RangeMtt& pages = files_[table].pages;
  const std::uint64_t end = std::uint64_t{last} + 1;
  bool has_hole = false;
  for (std::uint64_t next = first; next < end;) {
    const RangeMtt::LookUp found = pages.find(static_cast<std::uint32_t>(next));
    if (!found.entry) {
      has_hole = true;
      const std::optional<RangeEntry> later = pages.first_from(next);
      next = later ? later->base : end;
      continue;
    }
    const std::uint64_t part_end = std::min(end, found.entry->end());
    if (!scheme_.has_ranges) {
      look_up_pages(table, static_cast<std::uint32_t>(next), part_end);
    } else if (!cache_.access({table, found.entry->base}).hit) {
      counts_.visits += found.visits;
    }
    next = part_end;
  }
  if (has_hole) ++counts_.in_holes;
}

void TranslationReplay::look_up_pages(std::uint64_t table, std::uint32_t first, std::uint64_t end) {
  for (std::uint64_t page = first; page < end; ++page) {
    if (!cache_.access({table, page}).hit) ++counts_.visits;
  }
}

TranslationCounts TranslationReplay::counts() const {
  TranslationCounts counts = counts_;
  counts.hits = cache_.hits();
  counts.misses = cache_.misses();
  counts.look_ups = counts.hits + counts.misses;
  for (const FileTable& file : files_) counts.entries += entries_of(file);
  return counts;
}

void replay_trace(fs::TraceReader& trace, std::span<TranslationReplay> into,
                  const ExtentsOf& extents_of) {
  while (const std::optional<fs::TraceRecord> record = trace.next()) {
    const bool is_new = record->kind == fs::TraceKind::file;
    std::optional<std::vector<FileExtent>> extents;
    if (is_new && extents_of) extents = extents_of(trace.files().back());
    try {
      for (TranslationReplay& replay : into) {
        if (!is_new) {
          replay.access(*record);
        } else if (extents) {
          replay.add_file(*extents);
        } else {
          replay.add_file(record->offset);
        }
      }
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("record {}: {}", trace.records() - 1, error.what()));
    }
  }
}

}  // namespace perdura::bench
