#include "systems/orion/mds/requests.h"

#include <cstring>

#include "rpc/messages.h"

namespace perdura::systems::orion {

namespace {

// Never released, so nobody holds it.
constexpr auto kRootNumber = static_cast<std::uint64_t>(fs::kRootInode);

Reply failed(std::errc error) { return {.error = static_cast<std::int32_t>(error)}; }

Reply reply_of(const nova::Result<void>& result) {
  return result ? Reply{} : failed(result.error());
}
Reply reply_of(const nova::Result<fs::Attributes>& result) {
  if (!result) return failed(result.error());
  Reply reply;
  reply.attributes = *result;
  return reply;
}

template <class Body>
void for_each_word(std::span<const std::byte> payload, Body body) {
  for (std::size_t at = 0; at + kWord <= payload.size(); at += kWord) {
    std::uint64_t word = 0;
    std::memcpy(&word, payload.data() + at, kWord);
    body(word);
  }
}

fs::Timestamp time_of(const Arguments& arguments) {
  return {arguments.seconds, arguments.nanoseconds};
}

// Reads the extended attributes that a new inode gets. Returns false if they do not fit into the
// payload.
bool read_extended(std::span<const std::byte> payload, std::size_t count,
                   std::vector<fs::ExtendedAttribute>& extended) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t lengths[2];
    if (payload.size() < sizeof lengths) return false;
    std::memcpy(lengths, payload.data(), sizeof lengths);
    payload = payload.subspan(sizeof lengths);
    if (lengths[0] > payload.size() || lengths[1] > payload.size() - lengths[0]) return false;
    fs::ExtendedAttribute one;
    one.name.assign(reinterpret_cast<const char*>(payload.data()), lengths[0]);
    const auto value = payload.subspan(lengths[0], lengths[1]);
    one.value.assign(value.begin(), value.end());
    extended.push_back(std::move(one));
    payload = payload.subspan(lengths[0] + lengths[1]);
  }
  return true;
}

}  // namespace

bool parse(std::span<const std::byte> bytes, ParsedRequest& request) {
  if (bytes.size() < sizeof(MessageHeader)) return false;
  request.header = rpc::read_message<MessageHeader>(bytes);
  if (static_cast<std::uint8_t>(request.header.request) > kLastRequest ||
      request.header.length != bytes.size()) {
    return false;
  }
  std::span<const std::byte> rest = bytes.subspan(sizeof(MessageHeader));
  const std::size_t forces = request.header.forces * kWord;
  if (request.header.forces > kMostForces || forces > rest.size()) return false;
  request.forces.clear();
  for (std::size_t at = rest.size() - forces; at < rest.size(); at += kWord) {
    request.forces.push_back(force_of(rpc::read_message<std::uint64_t>(rest.subspan(at))));
  }
  rest = rest.first(rest.size() - forces);
  if (request.header.request == Request::commit) {
    request.payload = rest;
    return rest.size() <= kMostCommitted && !rest.empty() && rest.size() % kCacheLine == 0;
  }
  if (rest.size() < sizeof(Arguments)) return false;
  request.arguments = rpc::read_message<Arguments>(rest);
  rest = rest.subspan(sizeof(Arguments));
  const std::size_t names =
      std::size_t{request.arguments.name_length} + request.arguments.other_length;
  const bool refers = (request.header.flags & kByReference) != 0;
  if (rest.size() != names + (refers ? 0 : request.arguments.payload_length)) return false;
  const char* const text = reinterpret_cast<const char*>(rest.data());
  request.name = {text, request.arguments.name_length};
  request.other_name = {text + request.arguments.name_length, request.arguments.other_length};
  if (!refers) request.payload = rest.subspan(names);
  return true;
}

Reply reply_of(const Appended& appended) {
  Reply reply;
  reply.tail = appended.tail;
  reply.error = static_cast<std::int32_t>(appended.error);
  if (appended.error == std::errc::resource_unavailable_try_again) reply.error = kStale;
  if (appended.error == std::errc::connection_reset) reply.error = kOtherMembers;
  return reply;
}

Appended Requests::append(SessionNumber session, const MessageHeader& header,
                          std::span<const std::byte> entries) {
  if (entries.empty() || entries.size() % kCacheLine != 0) return {std::errc::invalid_argument};
  Commit commit{.session = session,
                .inode = header.inode,
                .generation = header.generation,
                .tail = header.tail,
                .epoch = header.epoch,
                .entries = entries};
  commit.is_journaled = (header.flags & kByImmediates) != 0;
  if ((header.flags & kSpeculative) != 0) {
    commit.tail.reset();
    commit.epoch.reset();
  }
  return metadata_.append(context_, commit);
}

Reply Requests::execute(const Requester& requester, const ParsedRequest& request) {
  const Arguments& given = request.arguments;
  const std::uint64_t inode = request.header.inode;
  const fs::Timestamp now = time_of(given);
  switch (request.header.request) {
    case Request::commit:
    case Request::update: {
      const Appended appended = append(requester.session, request.header, request.payload);
      if (appended.waits) catch_up(inode);
      return reply_of(appended);
    }
    case Request::create:
    case Request::create_unnamed:
      return create(requester, request);
    case Request::link:
      return reply_of(operations_.link(inode, given.other, request.name, now));
    case Request::unlink:
      return reply_of(operations_.remove(inode, request.name, false, now));
    case Request::remove_directory:
      return reply_of(operations_.remove(inode, request.name, true, now));
    case Request::rename:
      if (given.how > static_cast<std::uint8_t>(fs::RenameMode::exchange)) break;
      return reply_of(operations_.rename(inode, request.name, given.other, request.other_name,
                                         static_cast<fs::RenameMode>(given.how), now));
    case Request::change:
      return change(request);
    case Request::set_extended:
      if (given.how > static_cast<std::uint8_t>(fs::AttributeMode::neither)) break;
      return reply_of(operations_.set_extended(inode, request.name, request.payload,
                                               static_cast<fs::AttributeMode>(given.how), now));
    case Request::remove_extended:
      return reply_of(operations_.remove_extended(inode, request.name, now));
    case Request::hold:
      return hold(requester, request);
    case Request::release: {
      const std::uint64_t holds =
          metadata_.mounts().remove_holds(requester.mount, inode, given.other);
      if (holds == 0) break;
      if (!metadata_.mounts().has_hold(requester.mount, inode)) {
        metadata_.locks().end(requester.mount, inode);
      }
      operations_.release(inode, holds);
      return {};
    }
    case Request::take_chunk:
      return take_chunk(requester, request);
    case Request::borrow: {
      if (given.device > kMostBorrowed) break;
      const std::errc error = metadata_.lend(requester.session, inode, given.other, given.device);
      return error == std::errc{} ? Reply{} : failed(error);
    }
    case Request::end_borrow:
      for_each_word(request.payload, [&](std::uint64_t page) {
        metadata_.pages().end_loan(requester.session, page);
      });
      return {};
    case Request::statistics: {
      Reply reply;
      nova::Volume& volume = metadata_.volume();
      reply.statistics = {.capacity = metadata_.pages().capacity() * kPage,
                          .free = (metadata_.pages().free_count() + volume.waiting_pages()) * kPage,
                          .inodes = volume.numbers().capacity(),
                          .free_inodes = volume.numbers().free_count()};
      return reply;
    }
    case Request::leave:
      return {};
    case Request::lock:
      return lock(requester, request);
  }
  return failed(std::errc::invalid_argument);
}

std::vector<std::uint64_t> Requests::changed_by(const ParsedRequest& request) {
  const std::uint64_t inode = request.header.inode;
  std::vector<std::uint64_t> inodes{inode};
  const auto add_named = [&](std::uint64_t directory, std::string_view name) {
    const auto found = operations_.look_up(directory, name);
    if (found) inodes.push_back(static_cast<std::uint64_t>(found->inode));
  };
  switch (request.header.request) {
    case Request::commit:
    case Request::update:
    case Request::create:
    case Request::change:
    case Request::set_extended:
    case Request::remove_extended:
    case Request::borrow:
      return inodes;
    case Request::link:
      inodes.push_back(request.arguments.other);
      return inodes;
    case Request::unlink:
    case Request::remove_directory:
      add_named(inode, request.name);
      return inodes;
    case Request::rename:
      inodes.push_back(request.arguments.other);
      add_named(inode, request.name);
      add_named(request.arguments.other, request.other_name);
      return inodes;
    case Request::create_unnamed:
    case Request::hold:
    case Request::release:
    case Request::take_chunk:
    case Request::end_borrow:
    case Request::statistics:
    case Request::leave:
    case Request::lock:
      return {};
  }
  return {};
}

// Replies with the inode's generation, and whether this has added a hold. A mount that has lost its
// connections holds again what it held before, if it is still the same inode; the hold may even
// have survived.
Reply Requests::hold(const Requester& requester, const ParsedRequest& request) {
  const std::uint64_t inode = request.header.inode;
  const bool is_again = request.arguments.present != 0;
  const bool has_hold = is_again && metadata_.mounts().has_hold(requester.mount, inode);
  if (!has_hold) {
    const nova::Result<void> held = operations_.hold(inode);
    if (!held) return failed(held.error());
  }
  Reply reply;
  {
    const nova::Locked locked(metadata_.volume(), nova::Locked::For::reading, {inode});
    reply.value = locked[0] == nullptr ? 0 : locked[0]->generation;
  }
  if (is_again && reply.value != request.arguments.device) {
    if (!has_hold) operations_.release(inode, 1);
    return failed(std::errc::no_such_file_or_directory);
  }
  if (!has_hold) {
    metadata_.mounts().add_hold(requester.mount, inode);
    reply.count = 1;
  }
  return reply;
}

Reply Requests::create(const Requester& requester, const ParsedRequest& request) {
  const Arguments& given = request.arguments;
  std::vector<fs::ExtendedAttribute> extended;
  std::span<const std::byte> payload = request.payload;
  // A symbolic link's target comes first.
  const std::size_t target = given.other;
  if (target > payload.size() ||
      !read_extended(payload.subspan(target), given.extended, extended)) {
    return failed(std::errc::invalid_argument);
  }
  const fs::NewInode inode{.mode = given.mode,
                           .uid = given.uid,
                           .gid = given.gid,
                           .device = given.device,
                           .target = {reinterpret_cast<const char*>(payload.data()), target},
                           .extended = extended};
  if (request.header.request == Request::create) {
    return reply_of(operations_.create(request.header.inode, request.name, inode, time_of(given)));
  }
  const auto made = operations_.create_unnamed(inode, time_of(given));
  if (made) {
    metadata_.mounts().add_hold(requester.mount, static_cast<std::uint64_t>(made->inode));
  }
  return reply_of(made);
}

Reply Requests::change(const ParsedRequest& request) {
  const Arguments& given = request.arguments;
  const auto has = [&](ChangePart part) {
    return (given.present & static_cast<std::uint8_t>(part)) != 0;
  };
  fs::AttributeChange change;
  if (has(ChangePart::permissions)) change.permissions = given.mode;
  if (has(ChangePart::uid)) change.uid = given.uid;
  if (has(ChangePart::gid)) change.gid = given.gid;
  if (has(ChangePart::accessed)) {
    change.accessed = {given.accessed_seconds, given.accessed_nanoseconds};
  }
  if (has(ChangePart::modified)) {
    change.modified = {given.modified_seconds, given.modified_nanoseconds};
  }
  if (has(ChangePart::changed)) change.changed = time_of(given);
  if (has(ChangePart::extended)) {
    change.extended = fs::AttributeChange::Extended{.name = request.name};
    if (has(ChangePart::extended_value)) change.extended->value = request.payload;
  }
  return reply_of(operations_.change(request.header.inode, change));
}

Reply Requests::take_chunk(const Requester& requester, const ParsedRequest& request) {
  // The payload names the chunks that it gives back.
  for_each_word(request.payload, [&](std::uint64_t first) {
    metadata_.pages().give_back(requester.session, first);
  });
  const auto group = static_cast<std::uint32_t>(request.arguments.other);
  const std::optional<Chunk> chunk =
      metadata_.pages().take(requester.session, group, request.arguments.device);
  if (!chunk) return failed(std::errc::no_space_on_device);
  Reply reply;
  reply.value = chunk->first;
  reply.count = chunk->count;
  std::copy(chunk->free.begin(), chunk->free.end(), std::begin(reply.free));
  return reply;
}

Reply Requests::lock(const Requester& requester, const ParsedRequest& request) {
  if (request.payload.size() != sizeof(LockArguments)) return failed(std::errc::invalid_argument);
  const auto arguments = rpc::read_message<LockArguments>(request.payload);
  const std::uint64_t inode = request.header.inode;
  if (arguments.lock.kind > fs::LockKind::files || arguments.lock.mode > fs::LockMode::exclusive ||
      (inode != kRootNumber && !metadata_.mounts().has_hold(requester.mount, inode))) {
    return failed(std::errc::invalid_argument);
  }
  if (arguments.only_asks == 0) {
    return failed(metadata_.locks().set(requester.mount, inode, arguments.lock));
  }
  Reply reply;
  const auto forbidding = metadata_.locks().forbidding(requester.mount, inode, arguments.lock);
  if (forbidding) {
    reply.count = 1;
    std::memcpy(reply.free, &*forbidding, sizeof *forbidding);
  }
  return reply;
}

void Requests::end_session(const Requester& requester) {
  if (const auto ended = metadata_.mounts().session_ends(requester.mount)) {
    metadata_.locks().end(requester.mount);
    for (const auto& [inode, holds] : *ended) operations_.release(inode, holds);
  }
  metadata_.pages().give_back(requester.session);
}

}  // namespace perdura::systems::orion
