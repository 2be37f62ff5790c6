#include "systems/octopus/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::systems::octopus {

using fabric::Access;

namespace {

Answer failed(std::errc error) { return {.error = static_cast<std::int32_t>(error)}; }

Answer answer_of(const Table::Result<void>& result) {
  return result ? Answer{} : failed(result.error());
}

}  // namespace

Server::Server(Thread& thread, const std::string& name, const Parameters& parameters)
    : thread_(thread),
      parameters_(parameters),
      table_(thread.node, name, parameters),
      pool_(thread.node.create_region(fmt::format("{} message pool", name),
                                      Bytes{parameters.clients} * parameters.slots * kRequestRoom,
                                      pmem::Medium::dram)),
      pool_memory_(thread.endpoint.register_memory(*pool_, Access::remote_write)),
      answers_(thread.node.create_region(fmt::format("{} answers", name),
                                         Bytes{parameters.clients} * parameters.slots * kAnswerRoom,
                                         pmem::Medium::dram)),
      answer_memory_(thread.endpoint.register_memory(*answers_, Access::local)),
      data_memory_(thread.endpoint.register_memory(
          table_.region(), table_.geometry().first_extent,
          table_.geometry().records * table_.geometry().extent_bytes,
          Access::remote_read | Access::remote_write)),
      max_inline_(thread.endpoint.capabilities().max_inline),
      clients_(parameters.clients) {
  fabric::check_needs(kDeviceNeeds, thread.endpoint.capabilities(), "octopus");
}

Task<> Server::serve(Thread&) {
  thread_.executor.spawn(rpc::accept_connections(
      thread_.endpoint,
      [self = shared_from_this()](fabric::ConnectionRequest& request) { self->accept(request); }));
  const Serving serving{*this};
  for (;;) {
    const fabric::ReceiveCompletion completion = co_await completions_.next();
    handle(completion);
  }
}

void Server::accept(fabric::ConnectionRequest& request) {
  const auto hello = rpc::read_message<Hello>(request.private_data());
  ServedClient* const free = clients_.find_free();
  if (hello.version != kProtocolVersion || hello.slots == 0 || free == nullptr) {
    return request.reject();
  }
  ServedClient& client = *free;
  client.slots = std::min(hello.slots, parameters_.slots);
  client.answers_key = hello.answers_key;
  client.uses.assign(client.slots, std::nullopt);
  client.immediates = thread_.endpoint.create_receive_queue(client.slots);
  for (std::uint32_t i = 0; i < client.slots; ++i) client.immediates->post({}, i);
  const Welcome welcome{.version = kProtocolVersion,
                        .client = client.number,
                        .slots = client.slots,
                        .pool_key = pool_memory_.key.value,
                        .data_key = data_memory_.key.value,
                        .pool_offset = pool_slot(client, 0)};
  client.queue_pair = request.accept({client.immediates.get(), &completions_, client.slots},
                                     rpc::bytes_of(welcome));
  clients_.connected(*client.queue_pair, client);
}

void Server::end(ServedClient& client) {
  clients_.forget(*client.queue_pair);
  client.queue_pair.reset();
  client.immediates.reset();
  for (std::uint32_t slot = 0; slot < client.slots; ++slot) end_use(client, slot);
}

void Server::end_use(ServedClient& client, std::uint32_t slot) {
  const auto used = std::exchange(client.uses[slot], std::nullopt);
  if (used) table_.end_use(*used);
}

// --- requests

void Server::handle(const fabric::ReceiveCompletion& completion) {
  charge(Work::dispatch);
  ServedClient* const found = clients_.of(completion.queue_pair);
  if (found == nullptr) return;
  ServedClient& client = *found;
  if (completion.status != fabric::Status::success) return end(client);
  const std::uint32_t immediate = completion.immediate.value_or(~std::uint32_t{0});
  const std::uint32_t slot = slot_of(immediate);
  // A request that is not its sender's, or none at all, ends the sender's connection.
  if (client_of(immediate) != client.number || slot >= client.slots) {
    ++refused_;
    return end(client);
  }
  std::array<std::byte, kRequestRoom> message;
  const Bytes offset = pool_slot(client, slot);
  pool_->read_unchanging(offset, std::span(message).first(sizeof(Request)));
  const auto request = rpc::read_message<Request>(message);
  if (static_cast<std::uint32_t>(request.kind) >= kRequestKinds ||
      request.path_length > kLongestPath) {
    ++refused_;
    return end(client);
  }
  const auto bytes = std::span(message).subspan(sizeof(Request), request.path_length);
  pool_->read_unchanging(offset + sizeof(Request), bytes);
  const std::string_view path(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  client.immediates->post({}, completion.buffer_id);
  end_use(client, slot);
  ++executed_;
  answer(
      client, slot,
      is_sound(path) ? execute(client, slot, request, path) : failed(std::errc::invalid_argument));
}

Answer Server::execute(ServedClient& client, std::uint32_t slot, const Request& request,
                       std::string_view path) {
  switch (request.kind) {
    case RequestKind::create:
      return answer_of(table_.create(path, RecordKind::file, request.now));
    case RequestKind::make_directory:
      return answer_of(table_.create(path, RecordKind::directory, request.now));
    case RequestKind::unlink:
      return answer_of(table_.remove(path, RecordKind::file, request.now));
    case RequestKind::remove_directory:
      return answer_of(table_.remove(path, RecordKind::directory, request.now));
    case RequestKind::stat:
      return stat(path);
    case RequestKind::list:
      return list(request, path,
                  answer_buffer(client, slot, kAnswerRoom).bytes().subspan(sizeof(Answer)));
    case RequestKind::read:
    case RequestKind::write:
    case RequestKind::append:
      return address(client, slot, request, path);
    case RequestKind::set_times:
    case RequestKind::sync:
      break;
  }
  const auto found = table_.find(path);
  if (!found) return failed(std::errc::no_such_file_or_directory);
  if (request.kind == RequestKind::set_times) {
    table_.set_times(*found, request.now);
  } else if (!found->header.is_directory()) {
    table_.sync(*found);
  }
  return {};
}

Answer Server::stat(std::string_view path) const {
  const auto found = table_.find(path);
  if (!found) return failed(std::errc::no_such_file_or_directory);
  return {.is_directory = found->header.is_directory(),
          .size = found->header.size,
          .modified = found->header.modified};
}

// Section 3.2: the client moves the data.
Answer Server::address(ServedClient& client, std::uint32_t slot, const Request& request,
                       std::string_view path) {
  const auto file = table_.file(path);
  if (!file) return failed(file.error());
  const Bytes extent = table_.geometry().extent_bytes;
  const Bytes size = file->header.size;
  const bool reads = request.kind == RequestKind::read;
  const Bytes offset = request.kind == RequestKind::append ? size : request.offset;
  Bytes length = request.length;
  if (reads) {
    length = offset >= size ? 0 : std::min(length, size - offset);
  } else if (offset > extent || length > extent - offset) {
    return failed(std::errc::file_too_large);
  } else if (length > 0) {
    table_.extend(*file, offset + length, request.now);
  }
  if (length > 0) {
    table_.begin_use(file->number, offset, reads ? 0 : length);
    client.uses[slot] = file->number;
  }
  return {.size = std::max(size, reads ? 0 : offset + length),
          .offset = Bytes{file->number} * extent + offset,
          .length = length};
}

Answer Server::list(const Request& request, std::string_view path,
                    std::span<std::byte> names) const {
  const auto found = table_.find(path);
  if (!found) return failed(std::errc::no_such_file_or_directory);
  if (!found->header.is_directory()) return failed(std::errc::not_a_directory);
  Answer result{.is_directory = 1};
  for (Bytes position = request.offset; position < table_.geometry().directory_entries;
       ++position) {
    const auto child = table_.child(found->number, static_cast<std::uint32_t>(position));
    if (!child) continue;
    if (result.length + kListedHeader + child->name.size() > names.size()) {
      result.offset = position;
      break;
    }
    const auto into = names.subspan(result.length);
    into[0] = static_cast<std::byte>(child->name.size());
    into[1] = static_cast<std::byte>(child->is_directory);
    copy_bytes(into.subspan(kListedHeader), std::as_bytes(std::span(child->name)));
    result.length += kListedHeader + child->name.size();
  }
  return result;
}

void Server::answer(ServedClient& client, std::uint32_t slot, const Answer& answer) {
  const bool has_names = answer.is_directory != 0 && answer.length > 0;
  const fabric::LocalBuffer message =
      answer_buffer(client, slot, sizeof answer + (has_names ? answer.length : 0));
  rpc::write_message(message.bytes(), answer);
  fabric::WorkRequest write{.opcode = fabric::Opcode::write_with_immediate,
                            .immediate = slot,
                            .local = message,
                            .remote = {{client.answers_key}, Bytes{slot} * kAnswerRoom}};
  write.flags.inlined = message.length <= max_inline_;
  client.queue_pair->post_unsignaled(write);
}

}  // namespace perdura::systems::octopus
