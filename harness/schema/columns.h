// The columns of result files (docs/results.md): name, meaning and presentation of each. Writing,
// reading, matching, captions, figures and the settings page depend on these definitions alone.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "harness/schema/quantity.h"

namespace perdura::schema {

struct Column {
  enum class Kind : std::uint8_t { text, number };
  // The meaning of the column for its row.
  enum class Role : std::uint8_t {
    measured,   // measured, or derived from measured columns
    name,       // experiment, platform, system, ...: identifies the point
    parameter,  // parameter of the experiment: identifies the point, and is shown with its value
    draw,       // tells the repetitions of a point apart
  };
  enum class Better : std::uint8_t { unknown, less, more };

  std::string_view name;
  Kind kind = Kind::number;
  Quantity shown{};
  Role role = Role::measured;
  Better better = Better::unknown;  // if known, two runs can be compared by this column
  bool may_be_negative = false;
  std::string_view usual{};           // a value that is not mentioned
  std::span<const Spelling> words{};  // for values that are not shown literally

  bool identifies() const { return role == Role::name || role == Role::parameter; }
};

// Written into each row. Since version 6 a folder may have columns that its manifest describes
// (schema.h); nothing else has changed since the oldest version that can be read.
inline constexpr int kSchemaVersion = 6;
inline constexpr int kOldestSchemaVersion = 5;

// The columns of points.csv, in order.
std::span<const Column> point_columns();

// The columns that identify a row's point and repetition: they come first, in every file.
std::span<const Column> identity_columns();

// The columns after those of points.csv, on real platforms only: how quiet the hosts were.
std::span<const Column> noise_columns();

// The columns of timeline.csv, after the identity columns.
std::span<const Column> timeline_columns();

// The columns of probes.csv (docs/probe.md) that points.csv lacks: what was probed, and what was
// found.
std::span<const Column> probe_settings();
std::span<const Column> probe_readings();

// The values of the column `guarantee`, weakest first (docs/guarantees.md).
std::span<const Spelling> guarantee_words();

// A column of points.csv, timeline.csv or probes.csv; null if none has that name.
const Column* find_column(std::string_view name);

}  // namespace perdura::schema
