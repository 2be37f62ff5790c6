// The entries of an experiment that has been parsed already. Apart from spec.h, so that only those
// who have a TOML table need to know what one is.
#pragma once

#include <toml++/toml.h>

#include <functional>
#include <string>

#include "harness/schema/spec.h"

namespace perdura::report {

/// Says where a part of the table was written: "experiment.toml:12".
using Where = std::function<std::string(const toml::source_region&)>;

/// The same as read_specs of a file (spec.h); `file` of the result is empty.
Expected<Specs> read_specs(const toml::table& document, const Where& where, const Schema& schema);

}  // namespace perdura::report
