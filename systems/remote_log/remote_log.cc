#include "systems/remote_log/remote_log.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura::systems::remote_log {

using methods::UpdateError;

namespace {

Task<std::unique_ptr<methods::RemotePersister>> persister_of(Thread& thread, fabric::Address server,
                                                             const LogOptions& options) {
  try {
    co_return co_await methods::RemotePersister::connect(thread, server, 0, options.setup());
  } catch (const methods::SetupDiffers& problem) {
    KnownOptions known{.largest_record =
                           problem.largest_a - static_cast<std::uint32_t>(sizeof(RecordHeader))};
    if (problem.method != nullptr) {
      known.has_tail = problem.method->update != methods::Update::single;
      known.method = problem.method->name;
    }
    throw LogDiffers(problem.what(), known);
  }
}

}  // namespace

Task<std::unique_ptr<RemoteLog>> RemoteLog::connect(Thread& thread, fabric::Address server,
                                                    LogOptions options) {
  auto persister = co_await persister_of(thread, server, options);
  if (persister->region_size() != options.region_size()) {
    const std::uint64_t slots = (persister->region_size() - kSlotsOffset) / options.slot_size();
    throw LogDiffers(
        fmt::format("the server's log holds {} records, not {}; give both sides the same options",
                    slots, options.slots),
        {.slots = slots});
  }
  std::unique_ptr<RemoteLog> log(new RemoteLog(std::move(persister), options));
  auto found = co_await log->find_tail();
  if (found) found = co_await log->persist_tail();
  if (!found) throw PlatformError("the server of the log went away while connecting");
  co_return log;
}

Task<tl::expected<std::uint64_t, UpdateError>> RemoteLog::read_word(Bytes offset) {
  std::uint64_t word = 0;
  const auto read = co_await persister_->read(offset, std::as_writable_bytes(std::span(&word, 1)));
  if (!read) co_return tl::unexpected(read.error());
  co_return word;
}

Task<tl::expected<void, UpdateError>> RemoteLog::find_tail() {
  const auto head = co_await read_word(kPublishedHeadOffset);
  if (!head) co_return tl::unexpected(head.error());
  head_ = tail_ = *head;
  if (options_.has_tail()) {
    const auto tail = co_await read_word(kTailOffset);
    if (!tail) co_return tl::unexpected(tail.error());
    tail_word_ = *tail;
    tail_ = options_.tail_in(tail_word_);
    co_return tl::expected<void, UpdateError>();
  }
  for (;;) {
    const auto more = co_await read_record(tail_ + 1);
    if (!more) co_return tl::unexpected(more.error());
    if (!*more) break;
    ++tail_;
  }
  co_return tl::expected<void, UpdateError>();
}

Task<tl::expected<std::optional<std::size_t>, UpdateError>> RemoteLog::read_record(
    std::uint64_t number) {
  if (number - head_ > options_.slots) co_return std::optional<std::size_t>();
  std::vector<std::byte> record(sizeof(RecordHeader) + options_.largest_record);
  const auto read = co_await persister_->read(options_.slot_offset(number), record);
  if (!read) co_return tl::unexpected(read.error());
  const auto length = length_of(record, number, !options_.has_tail());
  if (!length) co_return std::optional<std::size_t>();
  const std::size_t size = sizeof(RecordHeader) + *length;
  copy_bytes(persister_->room().first(size), std::span(record).first(size));
  co_return std::optional(size);
}

Task<tl::expected<void, UpdateError>> RemoteLog::persist_tail() {
  if (tail_ == head_) co_return tl::expected<void, UpdateError>();
  const auto size = co_await read_record(tail_);
  if (!size) co_return tl::unexpected(size.error());
  if (!*size) {
    throw PlatformError(
        fmt::format("the log's tail is {}, but its last record is not there", tail_));
  }
  co_return co_await write(tail_, **size);
}

Task<tl::expected<std::uint64_t, UpdateError>> RemoteLog::append(
    std::span<const std::byte> payload) {
  if (payload.size() > options_.largest_record) co_return tl::unexpected(UpdateError::too_large);
  const std::uint64_t number = tail_ + 1;
  while (number - head_ > options_.slots) {
    ++head_reads_;
    const auto head = co_await read_word(kPublishedHeadOffset);
    if (!head) co_return tl::unexpected(head.error());
    head_ = *head;
    if (number - head_ > options_.slots && is_over()) {
      co_return tl::unexpected(UpdateError::disconnected);
    }
  }
  const std::span<std::byte> room = persister_->room();
  copy_bytes(room.subspan(sizeof(RecordHeader), payload.size()), payload);
  const std::size_t size = write_header(room, number, payload.size(), !options_.has_tail());
  const auto done = co_await write(number, size);
  if (!done) co_return tl::unexpected(done.error());
  co_return number;
}

Task<tl::expected<void, UpdateError>> RemoteLog::write(std::uint64_t number, std::size_t size) {
  methods::UpdateRequest request{
      .a = {options_.slot_offset(number), persister_->room().first(size)}};
  if (options_.has_tail()) {
    request.b = {kTailOffset, std::as_bytes(std::span(&number, 1))};
    request.expected = tail_word_;
  }
  auto done = co_await persister_->update(request);
  // The mark that an earlier client had left may be gone now.
  while (!done && done.error() == UpdateError::changed) {
    const auto word = co_await read_word(kTailOffset);
    if (!word) co_return tl::unexpected(word.error());
    request.expected = *word;
    if (options_.tail_in(*word) != tail_) break;
    done = co_await persister_->update(request);
  }
  if (!done) co_return tl::unexpected(done.error());
  tail_ = tail_word_ = number;
  co_return tl::expected<void, UpdateError>();
}

}  // namespace perdura::systems::remote_log
