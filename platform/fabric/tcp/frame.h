// The messages that the two ends of a connection over TCP exchange. All hosts are x86-64, so
// integers are sent in their memory representation.
//
//   initiator                                acceptor
//   Hello                             →
//                                     ←      Answer
//   Frame, and its payload if it has one, in both directions, until one end closes
//
// Each request (SEND, WRITE, APPEND, READ) is answered by one frame, in the order of the requests,
// so frames need no numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "platform/fabric/types.h"

namespace perdura::fabric::tcp {

inline constexpr std::uint64_t kProtocol = 0x50455244'54435002;  // "PERDTCP", 2

struct PrivateData {
  std::uint32_t length = 0;
  std::array<std::byte, kMaxPrivateData> bytes{};
};

// Names the listener in full, since its TCP port may meanwhile belong to another process.
struct Hello {
  std::uint64_t protocol = kProtocol;
  std::uint64_t job = 0;
  std::uint64_t listener = 0;  // Listener::token
  std::uint32_t from_node = 0;
  std::uint32_t from_port = 0;
  std::uint32_t to_node = 0;
  std::uint32_t to_port = 0;
  PrivateData private_data;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(Hello) == 104);

enum class Verdict : std::uint32_t { accepted = 1, rejected };

struct Answer {
  std::uint64_t protocol = kProtocol;
  Verdict verdict = Verdict::accepted;
  PrivateData private_data;
};
static_assert(sizeof(Answer) == 72);

enum class FrameKind : std::uint32_t {
  send = 1,
  write,
  read,
  acknowledgment,  // confirms a SEND, WRITE or APPEND, or says that any request was refused
  answer,          // carries the data of a READ
  append,
};

struct Frame {
  FrameKind kind = FrameKind::acknowledgment;
  std::uint32_t length = 0;  // the data's length
  std::uint32_t key = 0;     // the key of the responder's memory, to which `offset` applies
  std::uint32_t status = 0;  // only in an acknowledgment
  std::uint64_t offset = 0;  // in the acknowledgment of an APPEND: where its data begins

  // The bytes that follow the frame.
  std::uint32_t payload() const { return kind == FrameKind::read ? 0 : length; }
};
static_assert(sizeof(Frame) == 24);

inline void add_frame(std::vector<std::byte>& bytes, const Frame& frame) {
  const auto more = std::as_bytes(std::span(&frame, 1));
  bytes.insert(bytes.end(), more.begin(), more.end());
}

inline constexpr std::uint32_t kMaxInline = 256;
inline constexpr std::uint32_t kMaxMessage = 1U << 30;

}  // namespace perdura::fabric::tcp
