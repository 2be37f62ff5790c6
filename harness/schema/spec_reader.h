// Reads the entries of an experiment that is already parsed. Separate from spec.h, so that only
// files that have a TOML table include toml++.
#pragma once

#include <toml++/toml.h>

#include <functional>
#include <string>

#include "harness/schema/spec.h"

namespace perdura::schema {

/// Returns where a part of the table was written: "experiment.toml:12".
using Where = std::function<std::string(const toml::source_region&)>;

/// Like read_specs() for a file (spec.h), but `file` of the result is empty.
Expected<Specs> read_specs(const toml::table& document, const Where& where, const Schema& schema);

}  // namespace perdura::schema
