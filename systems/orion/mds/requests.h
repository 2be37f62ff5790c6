// The RPCs of clients: decodes a request and executes it on the volume (section 4.2.2). Belongs to
// one file-system thread, or to a network thread if there are none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "systems/nova/operations.h"
#include "systems/orion/mds/metadata.h"
#include "systems/orion/protocol/messages.h"

namespace perdura::systems::orion {

// A request as it arrived, checked: all lengths are those of the message.
struct ParsedRequest {
  MessageHeader header;
  Arguments arguments;
  std::string_view name;
  std::string_view other_name;
  std::span<const std::byte> payload;
  std::vector<Force> forces;
};
// Returns false if the message is malformed. `bytes` are the header, arguments and names, and the
// payload unless it is by reference.
bool parse(std::span<const std::byte> bytes, ParsedRequest& request);

// The answer to a commit; its `call` is set by the caller.
Reply reply_of(const Appended& appended);

struct Requester {
  SessionNumber session = 0;  // among those of all network threads
  std::uint64_t mount = 0;
};

class Requests {
 public:
  Requests(Metadata& metadata, std::uint32_t thread)
      : metadata_(metadata), operations_(metadata.volume(), thread) {
    context_.number = thread;
  }

  // Executes the request; the reply's `call` is set by the caller.
  Reply execute(const Requester& requester, const ParsedRequest& request);
  // The inodes to whose logs the request may add entries, besides new ones. Looks up the names that it
  // has.
  std::vector<std::uint64_t> changed_by(const ParsedRequest& request);
  // Releases what the session has.
  void end_session(const Requester& requester);
  // Appends the entries of a commit (Request::commit).
  Appended append(SessionNumber session, const MessageHeader& header,
                  std::span<const std::byte> entries);
  // Does the rest of what append() has begun (Appended::waits).
  void catch_up(std::uint64_t inode) { metadata_.catch_up(context_, inode); }

 private:
  Reply hold(const Requester& requester, const ParsedRequest& request);
  Reply create(const Requester& requester, const ParsedRequest& request);
  Reply change(const ParsedRequest& request);
  Reply take_chunk(const Requester& requester, const ParsedRequest& request);
  Reply lock(const Requester& requester, const ParsedRequest& request);

  Metadata& metadata_;
  nova::Operations operations_;
  nova::Context context_;
};

}  // namespace perdura::systems::orion
