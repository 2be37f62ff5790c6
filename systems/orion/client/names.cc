// Names in directories: looked up in copies of the directories' logs, changed by RPCs.
#include <optional>
#include <utility>

#include "platform/base/plain_name.h"
#include "systems/orion/client/session.h"

namespace perdura::systems::orion {

namespace {

std::errc why_not_name(std::string_view name) {
  if (!is_entry_name(name)) return std::errc::invalid_argument;
  return name.size() > fs::kLongestName ? std::errc::filename_too_long : std::errc{};
}

Outgoing request_for(Request request, InodeNumber inode, std::string_view name, Timestamp now) {
  Outgoing outgoing{.header = {.request = request, .inode = identity_of(inode)},
                    .name = shortened_name(name)};
  outgoing.arguments.seconds = now.seconds;
  outgoing.arguments.nanoseconds = now.nanoseconds;
  return outgoing;
}

// A look-up returns attributes that the inode had while the name led to it. Between a look at the
// directory and one at the inode both may change, as when the name is removed; then it is looked up
// again, so often.
constexpr int kMostLookUps = 1000;

constexpr Picoseconds kBetweenAsking = Microseconds(1);

void add_bytes(std::vector<std::byte>& to, const void* from, std::size_t size) {
  const auto* const bytes = static_cast<const std::byte*>(from);
  to.insert(to.end(), bytes, bytes + size);
}

// The payload of a request to create: a link's target, then extended attributes.
std::vector<std::byte> payload_of(const fs::NewInode& inode) {
  std::vector<std::byte> payload;
  add_bytes(payload, inode.target.data(), inode.target.size());
  for (const fs::ExtendedAttribute& one : inode.extended) {
    const std::uint32_t lengths[2] = {static_cast<std::uint32_t>(one.name.size()),
                                      static_cast<std::uint32_t>(one.value.size())};
    add_bytes(payload, lengths, sizeof lengths);
    add_bytes(payload, one.name.data(), one.name.size());
    add_bytes(payload, one.value.data(), one.value.size());
  }
  return payload;
}

void describe(const fs::NewInode& inode, Outgoing& request) {
  Arguments& arguments = request.arguments;
  arguments.mode = inode.mode;
  arguments.uid = inode.uid;
  arguments.gid = inode.gid;
  arguments.device = inode.device;
  arguments.other = inode.target.size();
  arguments.extended = static_cast<std::uint16_t>(inode.extended.size());
}

}  // namespace

// The name and the attributes must have been so at the same time: the directory's tail is READ again
// after that of the inode, in the same round trip, and must not have moved.
Task<Result<fs::Attributes>> Session::look_up(InodeNumber directory, std::string_view name) {
  for (int i = 0; i < kMostLookUps; ++i) {
    std::uint64_t number = 0;
    std::uint32_t type = 0;
    std::uint64_t connection = 0;
    Inodes::LaterLook later{.inode = number_of(directory)};
    std::uint64_t generation = 0;
    std::uint64_t tail = 0;
    {
      const Inodes::Use in = co_await inodes_.use(directory);
      const std::errc error = co_await use_directory(*in);
      if (error != std::errc{}) co_return fail(error);
      if (const std::errc wrong = why_not_name(name); wrong != std::errc{}) co_return fail(wrong);
      const nova::Name* const found = in->inode.directory->find(inodes_.logs(), name);
      if (found == nullptr) co_return fail(std::errc::no_such_file_or_directory);
      number = found->inode;
      type = static_cast<std::uint32_t>(found->type) << 12;
      connection = in->connection;
      generation = in->inode.generation;
      tail = in->inode.log.tail;
    }
    const InodeNumber identity = files_->holds().identity(number);
    const Inodes::Use child = co_await inodes_.use(identity);
    const std::errc error = co_await inodes_.refresh(*child, &later);
    if (error == std::errc::no_such_file_or_directory) continue;
    if (error != std::errc{} && error != std::errc::io_error) co_return fail(error);
    const bool is_same = link_.connection() == connection && later.words.exists() &&
                         later.words.generation() == generation && later.words.tail == tail;
    if (!is_same) continue;
    fs::Attributes found{.mode = type, .damaged = true};
    if (error == std::errc{}) found = child->inode.attributes();
    found.inode = identity;
    co_return found;
  }
  co_return fail(std::errc::io_error);
}

Task<Result<InodeNumber>> Session::parent(InodeNumber directory) {
  const Inodes::Use in = co_await inodes_.use(directory);
  const std::errc error = co_await use_directory(*in);
  if (error != std::errc{}) co_return fail(error);
  if (in->inode.links == 0) co_return fail(std::errc::no_such_file_or_directory);
  co_return files_->holds().identity(in->inode.parent());
}

Task<Result<fs::Attributes>> Session::create(InodeNumber directory, std::string_view name,
                                             const fs::NewInode& inode, Timestamp now) {
  Outgoing request = request_for(Request::create, directory, name, now);
  const std::vector<std::byte> payload = payload_of(inode);
  describe(inode, request);
  request.payload = payload;
  co_return co_await call_for_attributes(request);
}

Task<Result<fs::Attributes>> Session::create_unnamed(const fs::NewInode& inode, Timestamp now) {
  Outgoing request = request_for(Request::create_unnamed, InodeNumber{}, {}, now);
  const std::vector<std::byte> payload = payload_of(inode);
  describe(inode, request);
  request.payload = payload;
  const Result<fs::Attributes> made = co_await call_for_attributes(request);
  if (made) files_->holds().made(made->inode, made->generation);
  co_return made;
}

Task<Result<fs::Attributes>> Session::link(InodeNumber inode, InodeNumber directory,
                                           std::string_view name, Timestamp now) {
  if (files_->holds().is_lost(directory)) co_return fail(std::errc::no_such_file_or_directory);
  Outgoing request = request_for(Request::link, inode, name, now);
  request.arguments.other = number_of(directory);
  co_return co_await call_for_attributes(request);
}

Task<Result<void>> Session::unlink(InodeNumber directory, std::string_view name, Timestamp now) {
  return call_without_value(request_for(Request::unlink, directory, name, now));
}

Task<Result<void>> Session::remove_directory(InodeNumber directory, std::string_view name,
                                             Timestamp now) {
  return call_without_value(request_for(Request::remove_directory, directory, name, now));
}

Task<Result<void>> Session::rename(InodeNumber from, std::string_view name, InodeNumber to,
                                   std::string_view new_name, fs::RenameMode mode, Timestamp now) {
  if (files_->holds().is_lost(to)) co_return fail(std::errc::no_such_file_or_directory);
  Outgoing request = request_for(Request::rename, from, name, now);
  request.other_name = shortened_name(new_name);
  request.arguments.other = number_of(to);
  request.arguments.how = static_cast<std::uint8_t>(mode);
  co_return co_await call_without_value(request);
}

Task<Result<std::vector<fs::DirectoryEntry>>> Session::entries(InodeNumber directory,
                                                               std::uint64_t cookie,
                                                               std::size_t most) {
  const Inodes::Use in = co_await inodes_.use(directory);
  const std::errc error = co_await use_directory(*in);
  if (error != std::errc{}) co_return fail(error);
  std::vector<fs::DirectoryEntry> found;
  if (most == 0) co_return found;
  in->inode.directory->visit(cookie, [&](const nova::Name& name) {
    std::string text(name.length, '\0');
    inodes_.logs().read(name.offset + sizeof(nova::AddEntry),
                        std::as_writable_bytes(std::span(text.data(), text.size())));
    found.push_back({std::move(text), InodeNumber{name.inode},
                     static_cast<std::uint32_t>(name.type) << 12, name.cookie});
    return found.size() < most;
  });
  co_return found;
}

Task<Result<std::uint64_t>> Session::last_cookie(InodeNumber directory) {
  const Inodes::Use in = co_await inodes_.use(directory);
  const std::errc error = co_await use_directory(*in);
  if (error != std::errc{}) co_return fail(error);
  co_return in->inode.directory->next_cookie() - 1;
}

Task<Result<void>> Session::hold(InodeNumber inode) {
  for (;;) {
    switch (files_->holds().add(inode)) {
      case Holds::Outcome::held:
        co_return Result<void>{};
      case Holds::Outcome::busy:
        co_await sleep_for(kBetweenAsking);
        break;
      case Holds::Outcome::first:
        co_return co_await hold_first(inode);
    }
  }
}

// The MDS may fail right after it has answered, and another session of the mount may have connected again
// before the answer is taken. Then this one connects again, too, which holds it again.
Task<Result<void>> Session::hold_first(InodeNumber inode) {
  co_await link_.connect();
  Holds& holds = files_->holds();
  const Holds::Connections before = holds.connections();
  const Result<Reply> held = co_await call(request_for(Request::hold, inode, {}, {}));
  holds.told(inode, held.has_value(), held ? held->value : 0);
  if (!held) co_return fail(held.error());
  if (!holds.is_late(before, opened_of(link_.members().epoch))) co_return Result<void>{};
  link_.disconnect();
  const bool is_connected = co_await link_.connect();
  if (!is_connected) co_return fail(std::errc::not_connected);
  if (holds.is_lost(inode)) co_return fail(std::errc::no_such_file_or_directory);
  co_return Result<void>{};
}

Task<> Session::release(InodeNumber inode, std::uint64_t holds) {
  if (!files_->holds().remove(inode, holds)) co_return;
  Outgoing request = request_for(Request::release, inode, {}, {});
  request.arguments.other = 1;
  co_await call_without_value(request);
}

}  // namespace perdura::systems::orion
