// The messages between clients and the server. A request is a SEND, and so is its answer:
//
//   request    | MessageHeader | arguments and data ... |
//   answer     | ReplyHeader   | results and data ...   |
//
// What does not fit into a receive buffer stays with the client: each call has a room in the
// client's memory, from which the server READs the rest of a request, and into which it WRITEs the
// rest of an answer before it sends the answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "platform/fabric/fabric.h"
#include "services/fs/fs.h"
#include "services/fs/posix/access_list.h"
#include "services/fs/posix/credentials.h"

namespace perdura::systems::novad {

inline constexpr std::uint32_t kProtocolVersion = 2;
inline constexpr std::uint32_t kCalls = 8;  // that a session may have under way
inline constexpr Bytes kMessageRoom = 1 * KiB;
// One operation reads at most so many bytes; a longer read is several operations.
inline constexpr Bytes kLongestRead = 1 * GiB;

// A session has a connection for requests, and one for READs and WRITEs of files: one that is
// refused ends its connection. That of a program on the server's node is for requests, but needs no
// filekeys (local.h).
enum class Purpose : std::uint32_t { requests, files, local };

// The private data of a connection.
struct Hello {
  std::uint32_t version = 0;
  Purpose purpose{};
  std::uint64_t mount = 0;   // not of files: 0 asks the server for the number of a new mount
  std::uint64_t server = 0;  // files: Welcome::server of the session, whose filekeys are used
};
struct Welcome {
  std::uint32_t version = 0;
  std::uint32_t reserved = 0;
  std::uint64_t server = 0;  // differs between the lives of a server
  std::uint64_t mount = 0;   // the session's mount, or a new one
  Bytes largest_write = 0;   // more data than the volume has room for
};
static_assert(sizeof(Hello) <= fabric::kMaxPrivateData &&
              sizeof(Welcome) <= fabric::kMaxPrivateData);

enum class Request : std::uint32_t {
  look_up,
  parent,
  create,
  create_unnamed,
  link,
  unlink,
  remove_directory,
  rename,
  entries,
  last_cookie,
  read_link,
  attributes,
  change,
  extended,
  extended_names,
  set_extended,
  remove_extended,
  read,
  write,
  append,
  truncate,
  allocate,
  seek,
  sync,
  hold,  // Opening
  release,
  statistics,
  settle,  // nothing; the answer comes when the device knows all layouts
  leave,   // ends all sessions of a mount
};
inline constexpr std::uint32_t kRequests = static_cast<std::uint32_t>(Request::leave) + 1;

struct MessageHeader {
  Request request{};
  std::uint32_t call = 0;
  std::uint64_t inode = 0;   // that it is about; of a request about names, the first directory
  std::uint64_t length = 0;  // length of what follows, here or in the room
  std::uint32_t room_key = 0;
  std::uint32_t is_in_room = 0;
  Bytes room_size = 0;
};
static_assert(sizeof(MessageHeader) == 40);

// A bound file (bindings.h).
struct FileState {
  std::uint32_t filekey = 0;      // 0: it is not bound
  std::uint16_t is_whole = 0;     // 1: all bytes of the file can be READ
  std::uint16_t is_writable = 0;  // 1: and WRITTEN
  Bytes size = 0;
};

struct ReplyHeader {
  std::uint32_t call = 0;
  std::int32_t error = 0;  // std::errc, or kRoomTooSmall
  std::uint64_t length =
      0;  // length of what follows, here or in the room; or the room that it needs
  std::uint32_t is_in_room = 0;
  std::uint32_t reserved = 0;
  FileState file{};  // the inode of the request, after it
};
static_assert(sizeof(ReplyHeader) == 40);
// The answer does not fit into the call's room. The request, which has changed nothing, is to be
// repeated with a larger one.
inline constexpr std::int32_t kRoomTooSmall = -1;

// Arguments and results follow each other in the order in which they are added.
class Encoder {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void add(const T& value) { add_bytes(std::as_bytes(std::span(&value, 1))); }
  void add_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void add_text(std::string_view text) {
    add(std::uint64_t{text.size()});
    add_bytes(std::as_bytes(std::span(text.data(), text.size())));
  }
  // Room for bytes that the caller fills in.
  std::span<std::byte> extend(std::size_t size) {
    bytes_.resize(bytes_.size() + size);
    return std::span(bytes_).last(size);
  }
  void shorten(std::size_t by) { bytes_.resize(bytes_.size() - by); }
  std::span<const std::byte> bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads what an Encoder has put together. Whoever takes more than there is gets zeros, and finds
// is_sound() false.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  requires std::is_trivially_copyable_v<T> T take() {
    T value{};
    const auto bytes = take_bytes(sizeof value);
    if (!bytes.empty()) std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
    return value;
  }
  // Takes a number that must not exceed `most`.
  template <class T>
  T take_up_to(T most) {
    const T value = take<T>();
    if (value <= most) return value;
    is_sound_ = false;
    return T{};
  }
  bool take_flag() { return take_up_to(std::uint8_t{1}) != 0; }
  std::span<const std::byte> take_bytes(std::size_t size) {
    if (size > rest_.size()) {
      is_sound_ = false;
      rest_ = {};
      return {};
    }
    const auto taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  std::string_view take_text() {
    const auto bytes = take_bytes(take<std::uint64_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::span<const std::byte> take_rest() { return std::exchange(rest_, {}); }
  bool is_sound() const { return is_sound_; }
  // True if everything was there, and nothing is left.
  bool is_complete() const { return is_sound_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool is_sound_ = true;
};

// In whose name a file is opened, and for what. The server believes the client, as it does over NFS
// with the flavor AUTH_SYS (RFC 5531).
struct Opening {
  fs::Credentials who{};
  std::uint32_t wanted = 0;  // a combination of fs::kMayRead and fs::kMayWrite

  void add_to(Encoder& encoder) const {
    encoder.add(wanted);
    encoder.add(who.uid);
    encoder.add(who.gid);
    encoder.add(std::uint64_t{who.groups.size()});
    for (const std::uint32_t group : who.groups) encoder.add(group);
  }
  static Opening take_from(Decoder& given) {
    Opening opening;
    opening.wanted = given.take_up_to(fs::kMayRead | fs::kMayWrite);
    opening.who.uid = given.take<std::uint32_t>();
    opening.who.gid = given.take<std::uint32_t>();
    const auto count = given.take<std::uint64_t>();
    for (std::uint64_t i = 0; i < count && given.is_sound(); ++i) {
      opening.who.groups.push_back(given.take<std::uint32_t>());
    }
    return opening;
  }
};

}  // namespace perdura::systems::novad
