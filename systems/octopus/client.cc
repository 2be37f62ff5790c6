#include "systems/octopus/client.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::systems::octopus {

using fabric::LocalBuffer;
using fabric::RemoteAddress;
using tl::unexpected;

namespace {

// The most data that one READ or WRITE moves.
constexpr Bytes kLargestTransfer = 128 * KiB;

double in_us(Picoseconds time) { return static_cast<double>(time.count()) * 1e-6; }

}  // namespace

Client::Client(Thread& thread, const Parameters& parameters)
    : thread_(thread),
      parameters_(parameters),
      data_room_(std::min(parameters.extent_bytes, kLargestTransfer)) {}

// Answer slots, which the server WRITEs to; then requests and data of each slot.
LocalBuffer Client::request_buffer(rpc::Call call) const {
  return registered_.local(calls_.count() * kAnswerRoom + Bytes{call} * (kRequestRoom + data_room_),
                           kRequestRoom);
}

LocalBuffer Client::data_buffer(rpc::Call call, Bytes length) const {
  return request_buffer(call).slice(kRequestRoom, static_cast<std::uint32_t>(length));
}

Task<> Client::connect() {
  fabric::Endpoint& endpoint = thread_.endpoint;
  const std::uint32_t slots = parameters_.slots;
  const Bytes answers = slots * kAnswerRoom;
  memory_ =
      thread_.node.create_region(fmt::format("octopus client of port {}", endpoint.address().port),
                                 answers + slots * (kRequestRoom + data_room_), pmem::Medium::dram);
  registered_ = endpoint.register_memory(*memory_, fabric::Access::local);
  answers_ = endpoint.register_memory(*memory_, 0, answers, fabric::Access::remote_write);
  immediates_ = endpoint.create_receive_queue(slots);
  for (std::uint32_t i = 0; i < slots; ++i) immediates_->post({}, i);
  calls_.open(slots);
  const Hello hello{kProtocolVersion, answers_.key.value, slots};
  const auto bytes = rpc::bytes_of(hello);
  fabric::Connection connection =
      co_await endpoint.connect({parameters_.server, 0}, {immediates_.get(), &completions_, slots},
                                {bytes.begin(), bytes.end()});
  if (connection.status != fabric::Status::success) co_return;
  welcome_ = rpc::read_message<Welcome>(connection.private_data);
  if (welcome_.version != kProtocolVersion || welcome_.slots != slots) co_return;
  queue_pair_ = std::move(connection.queue_pair);
}

Task<bool> Client::connected() {
  if (!has_tried_) {
    co_await connecting_.acquire();
    if (!has_tried_) co_await connect();
    has_tried_ = true;
    connecting_.release();
  }
  co_return queue_pair_ != nullptr && !calls_.broken();
}

// --- requests

void Client::take(const fabric::ReceiveCompletion& completion) {
  if (completion.status != fabric::Status::success) return calls_.fail();
  immediates_->post({}, completion.buffer_id);
  const rpc::Call call = completion.immediate.value_or(calls_.count());
  if (call >= calls_.count()) return calls_.fail();
  calls_.deliver(call, rpc::read_message<Answer>(answer_buffer(call).bytes()));
}

Task<Client::Result<Answer>> Client::exchange(const Lease& lease, Request request,
                                              std::string_view path) {
  if (path.size() > kLongestPath) co_return unexpected(std::errc::filename_too_long);
  const rpc::Call call = lease.call();
  const Time start = thread_.executor.now();
  request.path_length = static_cast<std::uint32_t>(path.size());
  const LocalBuffer message =
      request_buffer(call).first(static_cast<std::uint32_t>(sizeof request + path.size()));
  rpc::write_message(message.bytes(), request);
  copy_bytes(message.bytes().subspan(sizeof request), std::as_bytes(std::span(path)));
  fabric::RdmaOperation write = queue_pair_->write_with_immediate(
      message, {{welcome_.pool_key}, welcome_.pool_offset + Bytes{call} * kRequestRoom},
      immediate_of(welcome_.client, call));
  calls_.expect(call);
  write.post();
  const std::optional<Answer> answer = co_await calls_.answer_to(
      call, completions_, [this](const fabric::ReceiveCompletion& each) { take(each); });
  if (!co_await write) calls_.fail();
  ++counts_.rpcs;
  counts_.in_rpcs += thread_.executor.now() - start;
  if (!answer) co_return unexpected(std::errc::not_connected);
  if (answer->error != 0) co_return unexpected(static_cast<std::errc>(answer->error));
  co_return *answer;
}

Task<Client::Result<void>> Client::change(Request request, std::string_view path) {
  if (!co_await connected()) co_return unexpected(std::errc::not_connected);
  const Lease lease = co_await calls_.begin();
  const auto answer = co_await exchange(lease, request, path);
  if (!answer) co_return unexpected(answer.error());
  co_return Result<void>();
}

Task<Client::Result<void>> Client::create(std::string_view path, std::uint64_t now) {
  return change({.kind = RequestKind::create, .now = now}, path);
}
Task<Client::Result<void>> Client::make_directory(std::string_view path, std::uint64_t now) {
  return change({.kind = RequestKind::make_directory, .now = now}, path);
}
Task<Client::Result<void>> Client::unlink(std::string_view path, std::uint64_t now) {
  return change({.kind = RequestKind::unlink, .now = now}, path);
}
Task<Client::Result<void>> Client::remove_directory(std::string_view path, std::uint64_t now) {
  return change({.kind = RequestKind::remove_directory, .now = now}, path);
}
Task<Client::Result<void>> Client::set_times(std::string_view path, std::uint64_t now) {
  return change({.kind = RequestKind::set_times, .now = now}, path);
}
Task<Client::Result<void>> Client::sync(std::string_view path) {
  return change({.kind = RequestKind::sync}, path);
}

Task<Client::Result<PathAttributes>> Client::stat(std::string_view path) {
  if (!co_await connected()) co_return unexpected(std::errc::not_connected);
  const Lease lease = co_await calls_.begin();
  const Request request{.kind = RequestKind::stat};
  const auto answer = co_await exchange(lease, request, path);
  if (!answer) co_return unexpected(answer.error());
  co_return PathAttributes{answer->is_directory != 0, answer->size, answer->modified};
}

Task<Client::Result<std::vector<ListedPath>>> Client::list(std::string_view path) {
  if (!co_await connected()) co_return unexpected(std::errc::not_connected);
  const Lease lease = co_await calls_.begin();
  std::vector<ListedPath> all;
  Request request{.kind = RequestKind::list};
  do {
    const auto answer = co_await exchange(lease, request, path);
    if (!answer) co_return unexpected(answer.error());
    const std::span<const std::byte> bytes = answer_buffer(lease.call()).bytes();
    auto names =
        bytes.subspan(sizeof(Answer), std::min(answer->length, kAnswerRoom - sizeof(Answer)));
    while (names.size() > kListedHeader) {
      const auto length =
          std::min<std::size_t>(static_cast<std::size_t>(names[0]), names.size() - kListedHeader);
      const auto name = names.subspan(kListedHeader, length);
      all.push_back(
          {{reinterpret_cast<const char*>(name.data()), name.size()}, names[1] != std::byte{0}});
      names = names.subspan(kListedHeader + length);
    }
    request.offset = answer->offset;
  } while (request.offset != 0);
  co_return all;
}

// --- data

Task<bool> Client::fetch(const Lease& lease, Bytes offset, std::span<std::byte> into) {
  while (!into.empty()) {
    const Bytes piece = std::min<Bytes>(into.size(), data_room_);
    const LocalBuffer buffer = data_buffer(lease.call(), piece);
    const Time start = thread_.executor.now();
    if (!co_await queue_pair_->read(buffer, {{welcome_.data_key}, offset})) co_return false;
    ++counts_.reads;
    counts_.in_reads += thread_.executor.now() - start;
    copy_bytes(into.first(piece), buffer.bytes());
    into = into.subspan(piece);
    offset += piece;
  }
  co_return true;
}

Task<bool> Client::put(const Lease& lease, Bytes offset, std::span<const std::byte> data) {
  while (!data.empty()) {
    const Bytes piece = std::min<Bytes>(data.size(), data_room_);
    const LocalBuffer buffer = data_buffer(lease.call(), piece);
    copy_bytes(buffer.bytes(), data.first(piece));
    const Time start = thread_.executor.now();
    if (!co_await queue_pair_->write(buffer, {{welcome_.data_key}, offset})) co_return false;
    ++counts_.writes;
    counts_.in_writes += thread_.executor.now() - start;
    data = data.subspan(piece);
    offset += piece;
  }
  co_return true;
}

Task<Client::Result<Bytes>> Client::read(std::string_view path, Bytes offset,
                                         std::span<std::byte> into) {
  if (!co_await connected()) co_return unexpected(std::errc::not_connected);
  const Lease lease = co_await calls_.begin();
  const Request request{.kind = RequestKind::read, .offset = offset, .length = into.size()};
  const auto answer = co_await exchange(lease, request, path);
  if (!answer) co_return unexpected(answer.error());
  const Bytes length = std::min<Bytes>(answer->length, into.size());
  if (!co_await fetch(lease, answer->offset, into.first(length))) {
    calls_.fail();
    co_return unexpected(std::errc::not_connected);
  }
  co_return length;
}

Task<Client::Result<Answer>> Client::write_range(Request request, std::string_view path,
                                                 std::span<const std::byte> data) {
  if (!co_await connected()) co_return unexpected(std::errc::not_connected);
  const Lease lease = co_await calls_.begin();
  request.length = data.size();
  const auto answer = co_await exchange(lease, request, path);
  if (!answer) co_return answer;
  if (!co_await put(lease, answer->offset, data)) {
    calls_.fail();
    co_return unexpected(std::errc::not_connected);
  }
  co_return answer;
}

Task<Client::Result<void>> Client::write(std::string_view path, Bytes offset,
                                         std::span<const std::byte> data, std::uint64_t now) {
  const Request request{.kind = RequestKind::write, .offset = offset, .now = now};
  const auto written = co_await write_range(request, path, data);
  if (!written) co_return unexpected(written.error());
  co_return Result<void>();
}

Task<Client::Result<Bytes>> Client::append(std::string_view path, std::span<const std::byte> data,
                                           std::uint64_t now) {
  const Request request{.kind = RequestKind::append, .now = now};
  const auto written = co_await write_range(request, path, data);
  if (!written) co_return unexpected(written.error());
  co_return written->size - data.size();
}

std::vector<double> Client::metrics() const {
  return {static_cast<double>(counts_.rpcs),
          static_cast<double>(counts_.reads),
          static_cast<double>(counts_.writes),
          in_us(counts_.in_rpcs),
          in_us(counts_.in_reads),
          in_us(counts_.in_writes)};
}

}  // namespace perdura::systems::octopus
