#include "systems/orion/client/session.h"

#include "platform/runtime/work.h"

namespace perdura::systems::orion {

Session::Session(std::shared_ptr<FileSystem> files, Thread& thread)
    : files_(std::move(files)),
      thread_(thread),
      link_(thread, files_->mds(), files_->parameters(), files_->mount(), !is_speculative()),
      cache_(thread, files_->parameters().cached_pages),
      stores_(thread, files_->config(), files_->parameters(), link_, files_->local_pages()),
      inodes_(thread, link_, cache_, *files_) {
  link_.when_connected_again([this] { return hold_again(); });
}

std::vector<double> Session::metrics() const {
  std::vector<double> values(kMeasuredCount);
  const auto set = [&](Measured what, std::uint64_t value) {
    values[static_cast<std::size_t>(what)] = static_cast<double>(value);
  };
  set(Measured::tail_reads, link_.counts().tail_reads);
  set(Measured::log_reads, link_.counts().log_reads);
  set(Measured::commits, link_.counts().commits);
  set(Measured::rpcs, link_.counts().rpcs);
  set(Measured::page_reads, stores_.reads());
  set(Measured::page_writes, stores_.writes());
  set(Measured::cache_hits, cache_.hits());
  set(Measured::extensions, inodes_.counts().extensions);
  set(Measured::rebuilds, inodes_.counts().rebuilds);
  set(Measured::repetitions, repetitions_);
  set(Measured::late_reads, inodes_.counts().late_reads);
  const auto set_time = [&](Measured what, Picoseconds time) {
    values[static_cast<std::size_t>(what)] = static_cast<double>(time.count()) * 1e-6;
  };
  set_time(Measured::in_tail_reads, link_.counts().in_tail_reads);
  set_time(Measured::in_log_reads, link_.counts().in_log_reads);
  set_time(Measured::in_commits, link_.counts().in_commits);
  set_time(Measured::in_rpcs, link_.counts().in_rpcs);
  set_time(Measured::in_page_reads, stores_.in_reads());
  set_time(Measured::in_page_writes, stores_.in_writes());
  return values;
}

nova::EntryHeader entry_header(nova::EntryType type, Timestamp now, std::uint32_t mode,
                               std::uint8_t flags) {
  return {.type = type,
          .flags = flags,
          .seconds = now.seconds,
          .nanoseconds = now.nanoseconds,
          .mode = mode};
}

std::uint32_t mode_after(const nova::Inode& inode, const fs::WriteOptions& options) {
  std::uint32_t mode = inode.mode;
  if (!options.clear_set_id) return mode;
  mode &= ~static_cast<std::uint32_t>(S_ISUID);
  if ((mode & S_IXGRP) != 0) mode &= ~static_cast<std::uint32_t>(S_ISGID);
  return mode;
}

Task<std::errc> Session::use_directory(CachedInode& inode) {
  const std::errc error = co_await inodes_.refresh(inode);
  if (error != std::errc{}) co_return error;
  co_return inode.inode.directory == nullptr ? std::errc::not_a_directory : std::errc{};
}

Task<std::errc> Session::use_regular(CachedInode& inode) {
  const std::errc error = co_await inodes_.refresh(inode);
  if (error != std::errc{}) co_return error;
  co_return inode.inode.is(S_IFREG) ? std::errc{} : std::errc::invalid_argument;
}

// --- RPCs

Task<Result<Reply>> Session::call(Outgoing request) {
  // A connection that is new may have lost the inode.
  if (!co_await link_.connect()) co_return fail(std::errc::not_connected);
  const InodeNumber inode{request.header.inode};
  if (files_->holds().is_lost(inode)) co_return fail(std::errc::no_such_file_or_directory);
  request.header.inode = number_of(inode);
  const std::optional<Reply> reply = co_await link_.call(request);
  if (!reply) co_return fail(std::errc::not_connected);
  if (reply->error == kStale) co_return fail(std::errc::resource_unavailable_try_again);
  if (reply->error == kOtherMembers) co_return fail(std::errc::connection_reset);
  if (reply->error != 0) co_return fail(static_cast<std::errc>(reply->error));
  co_return *reply;
}

Task<Result<void>> Session::call_without_value(Outgoing request) {
  const Result<Reply> reply = co_await call(request);
  if (!reply) co_return fail(reply.error());
  co_return Result<void>{};
}

Task<Result<fs::Attributes>> Session::call_for_attributes(Outgoing request) {
  const Result<Reply> reply = co_await call(request);
  if (!reply) co_return fail(reply.error());
  fs::Attributes attributes = reply->attributes;
  attributes.inode = files_->holds().identity(number_of(attributes.inode));
  co_return attributes;
}

// The MDS has released what the mount holds with its last session, or has lost it. Another session may
// give an inode up in the meantime; then a hold that was added here is one too many.
Task<bool> Session::hold_again() {
  for (const Holds::One& one : files_->holds().all(opened_of(link_.members().epoch))) {
    Outgoing request{.header = {.request = Request::hold, .inode = number_of(one.inode)}};
    request.arguments.present = 1;
    request.arguments.device = one.generation;
    const std::optional<Reply> reply = co_await link_.call_now(request);
    if (!reply) co_return false;
    if (reply->error != 0) files_->holds().lose(one);
    const bool is_added = reply->error == 0 && reply->count > 0;
    if (!is_added || !files_->holds().is_given_up(one)) continue;
    request.header.request = Request::release;
    request.arguments.other = 1;
    const std::optional<Reply> released = co_await link_.call_now(request);
    if (!released) co_return false;
  }
  co_return true;
}

// --- commits

Session::Change Session::change_of(const CachedInode& inode) const {
  Change change;
  change.sent.connection = inode.connection;
  return change;
}

// The pages of a session that has ended are others'.
void Session::give_back(Change& change) {
  for (const nova::Extent& extent : change.taken) {
    if (change.sent.connection == own_connection_) own_.give(extent);
  }
  change.taken.clear();
  unused_.insert(unused_.end(), change.borrowed.begin(), change.borrowed.end());
  change.borrowed.clear();
}

void Session::settle(Change& change) {
  for (const nova::Extent& extent : change.taken) {
    if (change.sent.connection == own_connection_) own_.settle(extent);
  }
  change.taken.clear();
}

void Session::note_refused(CachedInode& inode, std::errc error) {
  if (error == std::errc::resource_unavailable_try_again) ++inode.refusals;
}

Task<std::errc> Session::commit(CachedInode& inode, Change& change, By by) {
  const auto& extended = inode.inode.extended;
  const bool is_shared = extended != nullptr && extended->contains(kSharedAttribute);
  if (is_shared || files_->parameters().updates_by_rpc) by = By::rpc;
  // A refused commit would be lost, so pages of several stores are committed with an answer.
  const bool has_copies = !change.taken.empty() && stores_.is_replicated();
  const bool speculates = is_speculative() && by == By::commit && change.sent.forces.empty() &&
                          !has_copies && change.entries.size() <= kMostCommitted &&
                          inodes_.fits(inode, change.entries.size());
  if (!speculates) co_return co_await commit_answered(inode, change, by);
  Outgoing request{.header = {.request = Request::commit,
                              .inode = inode.inode.number,
                              .generation = inode.inode.generation,
                              .tail = inode.inode.log.tail},
                   .payload = change.entries,
                   .connection = change.sent.connection};
  if (!co_await link_.send(request)) co_return std::errc::not_connected;
  settle(change);
  inodes_.add_unconfirmed(inode, change.entries);
  co_return std::errc{};
}

Task<std::errc> Session::commit_answered(CachedInode& inode, Change& change, By by) {
  const bool is_short = by == By::commit && change.entries.size() <= kMostCommitted;
  Outgoing request{.header = {.request = is_short ? Request::commit : Request::update,
                              .inode = identity_of(inode.identity),
                              .generation = inode.inode.generation,
                              .tail = inode.inode.log.tail,
                              .epoch = change.sent.epoch,
                              .refusals = inode.refusals},
                   .payload = change.entries,
                   .forces = change.sent.forces,
                   .connection = change.sent.connection};
  if (change.sent.epoch == 0) request.header.epoch = link_.members().epoch;
  if (change.sent.by_immediates) request.header.flags |= kByImmediates;
  const Result<Reply> reply = co_await call(request);
  if (!reply) {
    // If the connection broke, the entries may be in the log, and the pages with them.
    if (reply.error() != std::errc::not_connected) give_back(change);
    note_refused(inode, reply.error());
    if (reply.error() != std::errc::connection_reset) co_return reply.error();
    co_return co_await stores_.follow_members(request.header.epoch);
  }
  settle(change);
  co_await inodes_.add_own(inode, change.entries, reply->tail);
  co_return std::errc{};
}

// --- pages

Task<std::errc> Session::borrow(CachedInode& inode, Change& change, std::uint64_t first,
                                std::uint64_t count) {
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t part = std::min(count - done, kMostBorrowed);
    Outgoing request{.header = {.request = Request::borrow,
                                .inode = identity_of(inode.identity),
                                .refusals = inode.refusals}};
    request.arguments.other = first + done;
    request.arguments.device = part;
    const Result<Reply> reply = co_await call(request);
    if (!reply) {
      note_refused(inode, reply.error());
      co_return reply.error();
    }
    for (std::uint64_t i = 0; i < part; ++i) {
      change.borrowed.push_back(inode.inode.blocks.get(first + done + i).block());
    }
    done += part;
  }
  co_return std::errc{};
}

Task<> Session::end_borrow() {
  while (!unused_.empty()) {
    const std::size_t rest = unused_.size() - std::min<std::size_t>(unused_.size(), kMostBorrowed);
    const std::vector<std::uint64_t> pages(unused_.begin() + static_cast<std::ptrdiff_t>(rest),
                                           unused_.end());
    unused_.resize(rest);
    Outgoing request{.header = {.request = Request::end_borrow},
                     .payload = std::as_bytes(std::span(pages))};
    // If the connection breaks, the loans end with the session.
    if (!co_await call(request)) co_return;
  }
}

Task<Result<nova::Extent>> Session::take_pages(Change& change, std::uint64_t most) {
  const bool is_connected = co_await link_.connect();
  if (!is_connected) co_return fail(std::errc::not_connected);
  if (change.sent.connection != link_.connection()) {
    co_return fail(std::errc::resource_unavailable_try_again);
  }
  if (std::exchange(own_connection_, change.sent.connection) != change.sent.connection) {
    own_.forget();
    stores_.begin_session();
  }
  nova::Extent taken = own_.take(most);
  for (std::uint64_t own = 0; taken.count == 0; ++own) {
    const std::vector<std::uint64_t> used_up = own_.used_up();
    Outgoing request{.header = {.request = Request::take_chunk},
                     .payload = std::as_bytes(std::span(used_up)),
                     .connection = change.sent.connection};
    request.arguments.other =
        stores_.own_group().value_or(thread_.endpoint.address().port % files_->parameters().groups);
    request.arguments.device = own;
    const Result<Reply> reply = co_await call(request);
    if (!reply) co_return fail(reply.error());
    if (own_.add(*reply)) taken = own_.take(most);
  }
  change.taken.push_back(taken);
  co_return taken;
}

}  // namespace perdura::systems::orion
