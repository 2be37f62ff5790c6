#pragma once

#include <string_view>

namespace perdura::ycsb {

// True if a workload file may contain this property: one of YCSB's core (used here or not), or one
// of our extensions. Any other is a misspelling or meant for a database binding; if it were ignored
// silently, a different benchmark than the intended one would run.
bool is_known_property(std::string_view key);

// The known property that `key` most likely misspells, or an empty text if none is close.
std::string_view closest_known_property(std::string_view key);

// Some programs read YCSB's files but give properties names of their own, such as YCSB-C's
// field_len_dist. This is such a name, its program, and the property to use here.
// foreign_property() returns null for other names.
struct ForeignProperty {
  std::string_view name;
  std::string_view program;
  std::string_view here;
};
const ForeignProperty* foreign_property(std::string_view key);

}  // namespace perdura::ycsb
