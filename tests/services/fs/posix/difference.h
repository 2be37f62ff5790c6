// How what one side shows differs from what the other one shows, in words; empty if it does not.
#pragma once

#include <string>

#include "tests/services/fs/posix/operation.h"

namespace perdura::fs::test {

// Whether utimens() has set a time, which draws none of the years in which tests run.
bool is_given(Timestamp time);

// Names, and all that stat() says but for times that nobody has given.
std::string compare_pictures(const Picture& found, const Picture& expected);
// Data of regular files. Of those in `picture`, which both sides have.
std::string compare_data(Side& found, Side& expected, const Picture& picture);
// Extended attributes, and targets of symbolic links.
std::string compare_attributes(Side& found, Side& expected, const Picture& picture);

// After a chmod: the access list of its file, which follows the mode.
std::string compare_access_list(Side& found, Side& expected, const Operation& operation);

}  // namespace perdura::fs::test
