// Makes text of files safe to show in a message (platform/base/printable.h).
#pragma once

#include <string_view>

#include "platform/base/printable.h"

namespace perdura::harness {

using perdura::printable;

// The text without the UTF-8 byte order mark that some editors put at its beginning.
std::string_view without_byte_order_mark(std::string_view text);

}  // namespace perdura::harness
