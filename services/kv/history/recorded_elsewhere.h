// Histories that other programs recorded, in their own formats:
//
//   EDN   of Jepsen and Knossos, one map for each half of an operation, in the order of time: one
//         after the other or in a vector, with or without records' tags. Also with a member :key,
//         as in the files of key-value stores that come with Porcupine.
//   log   of jepsen.util, as it comes with Porcupine: "INFO  jepsen.util - 3  :invoke  :cas  [1
//   2]". JSON  of Porcupine's type Operation (formats.h), whose keys and values may be of any kind.
//
// Operations are :read, :write, :cas, and :get, :put, :append. One that ended with :info, or not at
// all, may have taken effect at any time after its beginning, or never; one that ended with :fail
// has not. Other processes than clients, such as :nemesis, are left out. In EDN and logs the order
// of the lines (or :index) is exact and is what counts; :time, in nanoseconds, is not needed.
#pragma once

#include <string_view>

#include "services/kv/history/register.h"

namespace perdura::history {

enum class Notation : std::uint8_t { edn, log, json };

// The format that the first characters of a text show.
Notation notation_of(std::string_view text);

// Throws UsageError, which begins with "line N: " where there is one, if the text is not such a
// history.
RegisterHistory read_recorded(std::string_view text, Notation notation);

// The line, from 1, in which an element of a JSON array begins.
std::size_t line_of_element(std::string_view text, std::size_t index);

}  // namespace perdura::history
