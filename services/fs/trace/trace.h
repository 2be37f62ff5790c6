// A trace: what programs did with files, in order. docs/traces.md describes the format of the file.
//
// Files have numbers, from 0 on in the order in which they first occur. A record `file` says how
// large the next file was and how it was called; all others use a file that has occurred.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "platform/base/units.h"

namespace perdura::fs {

enum class TraceKind : std::uint8_t {
  file = 1,
  open = 2,
  read = 3,
  write = 4,
  append = 5,    // a write whose offset the file system chose: the end of the file
  truncate = 6,  // to a smaller or larger size
  sync = 7,
  close = 8,
};
inline constexpr std::array<std::string_view, 9> kTraceWords{
    "", "file", "open", "read", "write", "append", "truncate", "sync", "close"};

constexpr std::string_view to_string(TraceKind kind) {
  return kTraceWords[static_cast<std::size_t>(kind)];
}
constexpr bool is_access(TraceKind kind) {
  return kind == TraceKind::read || kind == TraceKind::write || kind == TraceKind::append;
}

struct TraceRecord {
  TraceKind kind{};
  std::uint32_t file = 0;
  Bytes offset = 0;  // the size, if it is `file` or `truncate`
  Bytes length = 0;  // bytes that were read or written, perhaps fewer than wanted
  friend bool operator==(const TraceRecord&, const TraceRecord&) = default;
};

struct TracedFile {
  std::string name;  // relative to the directory that was traced; may be empty
  Bytes size = 0;    // when the file first occurred
  friend bool operator==(const TracedFile&, const TracedFile&) = default;
};

inline constexpr std::size_t kLongestTracedName = 4096;
inline constexpr std::uint64_t kMostTracedFiles = std::numeric_limits<std::uint32_t>::max();
// Sizes, and offsets plus lengths, are at most this.
inline constexpr Bytes kLargestTraced = std::numeric_limits<std::int64_t>::max();

// The parts of the file's format that writers and readers share.
namespace detail {
inline constexpr std::array<char, 8> kTraceMagic{'P', 'E', 'R', 'D', 'T', 'R', 'C', '1'};
inline constexpr std::size_t kTraceBlockHead = 8;  // length and check sum
inline constexpr std::size_t kLargestTraceBlock = MiB;
}  // namespace detail

}  // namespace perdura::fs
