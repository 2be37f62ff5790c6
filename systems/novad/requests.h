// Executes the requests of clients on the server's own file system.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "services/fs/fs.h"
#include "systems/novad/bindings.h"
#include "systems/novad/messages.h"
#include "systems/novad/mounts.h"

namespace perdura::systems::novad {

class Requests {
 public:
  // `files`: the server's session.
  // `writes_in_place`: clients may write to the files that they hold by WRITEs.
  Requests(fs::Session& files, Bindings& bindings, bool writes_in_place)
      : files_(files), bindings_(bindings), writes_in_place_(writes_in_place) {}

  Mounts& mounts() { return mounts_; }

  // Executes a request of a client's mount. Its results go to `results`, of which there may be
  // `room` bytes. Returns an error that the client gets, or kRoomTooSmall after which `results` is
  // as long as the room would have to be, or nullopt if it is no request.
  Task<std::optional<std::int32_t>> execute(std::uint64_t mount, const MessageHeader& header,
                                            std::span<const std::byte> body, Bytes room,
                                            Encoder& results);
  // A session of the mount has ended.
  Task<> end_session(std::uint64_t mount);

 private:
  using Outcome = std::optional<std::int32_t>;

  // Each executes some of the requests.
  Task<Outcome> none();
  Task<Outcome> nothing();
  Task<Outcome> read_names(MessageHeader header, Decoder given, Bytes room, Encoder& results);
  Task<Outcome> change_names(MessageHeader header, Decoder given, Encoder& results);
  Task<Outcome> create(std::uint64_t mount, MessageHeader header, Decoder given, Encoder& results);
  Task<Outcome> read_attributes(MessageHeader header, Decoder given, Bytes room, Encoder& results);
  Task<Outcome> change_attributes(MessageHeader header, Decoder given, Encoder& results);
  Task<Outcome> read_data(MessageHeader header, Decoder given, Bytes room, Encoder& results);
  Task<Outcome> change_data(MessageHeader header, Decoder given, Encoder& results);
  Task<Outcome> use_holds(std::uint64_t mount, MessageHeader header, Decoder given,
                          Encoder& results);

  // Returns permission_denied unless the file may be opened so.
  Task<fs::Result<void>> check(fs::InodeNumber inode, Opening opening);
  Task<> note_hold(std::uint64_t mount, std::uint64_t inode, std::uint32_t rights);

  fs::Session& files_;
  Bindings& bindings_;
  bool writes_in_place_;
  Mounts mounts_;
};

}  // namespace perdura::systems::novad
