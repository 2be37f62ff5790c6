// The word that links a block (Update::publish), and the mark of link-and-persist (David,
// Dragojevic, Guerraoui, Zablotchi: "Log-Free Concurrent Data Structures", USENIX ATC 2018): the
// highest bit is set while the link may not be durable yet. The application defines the meaning of
// links, such as offsets or versions; they have 63 bits if the method marks them.
#pragma once

#include <cstdint>

namespace perdura::methods {

inline constexpr std::uint64_t kLinkMark = std::uint64_t{1} << 63;

constexpr bool is_marked(std::uint64_t word) { return (word & kLinkMark) != 0; }
// Recovery applies this to every link that it finds.
constexpr std::uint64_t without_mark(std::uint64_t word) { return word & ~kLinkMark; }

}  // namespace perdura::methods
