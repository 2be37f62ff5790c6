// Histories that other programs recorded, in their own formats:
//
//   EDN   of Jepsen and Knossos, one map for each half of an operation, in the order of time: one
//         after the other or in a vector, with or without records' tags. Also with a member :key,
//         as in the files of key-value stores that come with Porcupine.
//   log   of jepsen.util, as it comes with Porcupine:
//         "INFO  jepsen.util - 3  :invoke  :cas  [1 2]".
//   JSON  of Porcupine's type Operation (formats.h), whose keys and values may be of any kind.
//
// Operations are :read, :write, :cas, and :get, :put, :append. One that ended with :info, or not at
// all, may have taken effect at any time after its beginning, or never; one that ended with :fail
// has not. Processes other than clients, such as :nemesis, are left out. In EDN and logs only the
// order of the lines (or :index) counts, which is exact; :time, in nanoseconds, is not needed.
#pragma once

#include <string_view>

#include "services/kv/history/register.h"

namespace perdura::history {

enum class Notation : std::uint8_t { edn, log, json };

// The format of a text, as its first characters show.
Notation notation_of(std::string_view text);

// Throws UsageError, which begins with "line N: " if there is a line to name, if the text is not
// such a history.
RegisterHistory read_recorded(std::string_view text, Notation notation);

// The line, from 1, in which an element of a JSON array begins.
std::size_t line_of_element(std::string_view text, std::size_t index);

}  // namespace perdura::history
