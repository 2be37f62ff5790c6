// The columns of result files (docs/results.md): name, meaning and presentation of each. Writing,
// reading, matching, captions, figures and the settings page depend on these definitions alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "harness/schema/quantity.h"

namespace perdura::report {

struct Column {
  enum class Kind : std::uint8_t { text, number };
  // What it says of its row.
  enum class Role : std::uint8_t {
    measured,   // or derived from what was
    name,       // which experiment, platform, system, ...: identifies the point
    parameter,  // of the experiment: identifies the point, and is shown with its value
    draw,       // which of a point's repetitions
  };
  enum class Better : std::uint8_t { unknown, less, more };

  std::string_view name;
  Kind kind = Kind::number;
  Quantity shown{};
  Role role = Role::measured;
  Better better = Better::unknown;  // known: two runs can be compared by it
  bool may_be_negative = false;
  std::string_view usual{};           // a value that goes without saying
  std::span<const Spelling> words{};  // of values that are not shown as they are

  bool identifies() const { return role == Role::name || role == Role::parameter; }
};

// Written into each row. Since 6 a folder may have columns that its manifest describes (schema.h);
// nothing else has changed since the oldest that is read.
inline constexpr int kSchemaVersion = 6;
inline constexpr int kOldestSchemaVersion = 5;

// Of points.csv, in their order.
std::span<const Column> point_columns();

// The columns that say which point and repetition a row belongs to: they come first, in every file.
std::span<const Column> identity_columns();

// Behind those of points.csv, in folders of real platforms only: how quiet the hosts were.
std::span<const Column> noise_columns();

// Of timeline.csv, after those of the identity.
std::span<const Column> timeline_columns();

// Of probes.csv (docs/probe.md), those that points.csv does not have: what was probed, and what was
// found.
std::span<const Column> probe_settings();
std::span<const Column> probe_readings();

// What the column `guarantee` may say, the weakest first (docs/guarantees.md).
std::span<const Spelling> guarantee_words();

// A column of points.csv, of timeline.csv or of probes.csv; null if there is none of that name.
const Column* find_column(std::string_view name);

// latency_mean_us to latency_p9999_high_us, and the same of response_*.
inline constexpr std::size_t kLatencyColumns = 20;

}  // namespace perdura::report
