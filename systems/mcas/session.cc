#include "systems/mcas/session.h"

#include <algorithm>

#include "platform/base/error.h"
#include "systems/mcas/ado/codec.h"

namespace perdura::systems::mcas {

namespace {

std::uint8_t flags_of(objects::PutFlags flags) { return flags.no_overwrite ? kNoOverwrite : 0; }
std::uint8_t flags_of(objects::InvokeFlags flags) {
  return static_cast<std::uint8_t>(
      (flags.no_overwrite ? kNoOverwrite : 0) | (flags.create_only ? kCreateOnly : 0) |
      (flags.create_on_demand ? kCreateOnDemand : 0) | (flags.read_only ? kReadOnly : 0) |
      (flags.detached ? kDetached : 0) | (flags.zero_new_value ? kZeroNewValue : 0));
}

class OpenPool final : public objects::Pool {
 public:
  OpenPool(std::shared_ptr<Client> client, std::shared_ptr<DirectMemories> memories,
           PoolHandle handle)
      : client_(std::move(client)), memories_(std::move(memories)), handle_(handle) {}

  Task<objects::Result<void>> put(Key key, Value value, objects::PutFlags flags) override {
    return client_->put<objects::Error>(handle_, key, value, flags_of(flags));
  }
  Task<objects::Result<Bytes>> get(Key key, std::span<std::byte> into) override {
    return client_->get<objects::Error>(handle_, key, into);
  }
  Task<objects::Result<std::vector<std::byte>>> get(Key key) override {
    return client_->ask_bytes(request(RequestKind::get), key, {});
  }
  Task<objects::Result<void>> erase(Key key) override {
    return client_->erase<objects::Error>(handle_, key);
  }

  Task<objects::Result<void>> put_direct(Key key, objects::DirectBuffer from,
                                         objects::PutFlags flags) override {
    return change(RequestKind::put_direct, key, 0, from, flags_of(flags));
  }
  Task<objects::Result<Bytes>> get_direct(Key key, objects::DirectBuffer into) override {
    const auto transfer = memories_->transfer_of(into, 0);
    if (!transfer) co_return tl::unexpected(transfer.error());
    co_return co_await client_->ask<std::uint64_t>(request(RequestKind::get_direct), key,
                                                   rpc::bytes_of(*transfer));
  }
  Task<objects::Result<void>> put_direct_offset(Key key, Bytes offset,
                                                objects::DirectBuffer from) override {
    return change(RequestKind::put_direct_offset, key, offset, from, 0);
  }
  Task<objects::Result<void>> get_direct_offset(Key key, Bytes offset,
                                                objects::DirectBuffer into) override {
    return change(RequestKind::get_direct_offset, key, offset, into, 0);
  }

  Task<objects::Result<objects::PoolAttributes>> attributes() override {
    return client_->ask<objects::PoolAttributes>(request(RequestKind::pool_attributes), {}, {});
  }
  Task<objects::Result<objects::KeyAttributes>> attributes(Key key) override {
    return client_->ask<objects::KeyAttributes>(request(RequestKind::key_attributes), key, {});
  }
  Task<objects::Result<void>> configure(std::string_view command) override {
    return client_->tell(request(RequestKind::configure_pool), std::as_bytes(std::span(command)),
                         {});
  }
  Task<objects::Result<objects::FoundKey>> find(std::string_view expression, objects::Match match,
                                                std::uint64_t position) override {
    const Search search{position, match};
    const auto bytes = co_await client_->ask_bytes(
        request(RequestKind::find), std::as_bytes(std::span(expression)), rpc::bytes_of(search));
    if (!bytes) co_return tl::unexpected(bytes.error());
    objects::FoundKey found{{}, rpc::read_message<std::uint64_t>(*bytes)};
    found.key.assign(bytes->begin() + sizeof found.position, bytes->end());
    co_return found;
  }
  Task<objects::Result<objects::Answers>> invoke(Key key, std::span<const std::byte> what,
                                                 Bytes value_length,
                                                 objects::InvokeFlags flags) override {
    return call(RequestKind::invoke, key, what, {}, value_length, flags);
  }
  Task<objects::Result<objects::Answers>> invoke_put(Key key, std::span<const std::byte> what,
                                                     Value value, Bytes root_length,
                                                     objects::InvokeFlags flags) override {
    return call(RequestKind::invoke_put, key, what, value, root_length, flags);
  }
  Task<objects::Result<void>> close() override {
    return client_->tell(request(RequestKind::close_pool), {}, {});
  }

 private:
  Request request(RequestKind kind, std::uint8_t flags = 0) const {
    return {.kind = kind, .flags = flags, .pool = handle_};
  }
  Task<objects::Result<objects::Answers>> call(RequestKind kind, Key key,
                                               std::span<const std::byte> what, Value value,
                                               Bytes value_length, objects::InvokeFlags flags) {
    const Call call{value_length, what.size()};
    const auto header = rpc::bytes_of(call);
    std::vector<std::byte> argument;
    argument.reserve(header.size() + what.size() + value.size());
    argument.insert(argument.end(), header.begin(), header.end());
    argument.insert(argument.end(), what.begin(), what.end());
    argument.insert(argument.end(), value.begin(), value.end());
    const auto bytes = co_await client_->ask_bytes(request(kind, flags_of(flags)), key, argument);
    if (!bytes) co_return tl::unexpected(bytes.error());
    objects::Answers answers;
    ado::Decoder decoder({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
    decoder(answers);
    co_return answers;
  }
  Task<objects::Result<void>> change(RequestKind kind, Key key, Bytes offset,
                                     objects::DirectBuffer buffer, std::uint8_t flags) {
    const auto transfer = memories_->transfer_of(buffer, offset);
    if (!transfer) co_return tl::unexpected(transfer.error());
    co_return co_await client_->tell(request(kind, flags), key, rpc::bytes_of(*transfer));
  }

  std::shared_ptr<Client> client_;
  std::shared_ptr<DirectMemories> memories_;
  PoolHandle handle_;
};

}  // namespace

// --- direct memory -------------------------------------------------------------------------------

DirectMemories::~DirectMemories() {
  for (const fabric::MemoryRegion& memory : memories_) {
    if (memory.region != nullptr) endpoint_.deregister_memory(memory);
  }
}

objects::DirectMemory DirectMemories::add(pmem::Region& region) {
  const auto number = static_cast<std::uint32_t>(memories_.size());
  memories_.push_back(endpoint_.register_memory(
      region, fabric::Access::remote_read | fabric::Access::remote_write));
  return {number};
}

void DirectMemories::remove(objects::DirectMemory memory) {
  if (memory.number >= memories_.size() || memories_[memory.number].region == nullptr) return;
  endpoint_.deregister_memory(memories_[memory.number]);
  memories_[memory.number] = {};
}

objects::Result<Transfer> DirectMemories::transfer_of(const objects::DirectBuffer& buffer,
                                                      Bytes value_offset) {
  if (buffer.memory.number >= memories_.size()) return tl::unexpected(objects::Error::invalid);
  const fabric::MemoryRegion& memory = memories_[buffer.memory.number];
  if (memory.region == nullptr || buffer.offset > memory.length ||
      buffer.length > memory.length - buffer.offset) {
    return tl::unexpected(objects::Error::invalid);
  }
  const fabric::RemoteAddress remote = memory.remote(buffer.offset);
  return Transfer{value_offset, buffer.length, remote.offset, remote.key.value};
}

// --- the session ---------------------------------------------------------------------------------

PoolsSession::PoolsSession(std::shared_ptr<Client> client)
    : client_(std::move(client)),
      memories_(std::make_shared<DirectMemories>(client_->endpoint())) {}

Task<std::unique_ptr<objects::Session>> PoolsSession::connect(Thread& thread, fabric::Address shard,
                                                              objects::Config config) {
  const std::uint32_t queue_depth = Parameters::of(config).queue_depth;
  std::shared_ptr<Client> client = co_await Client::connect(thread, shard, queue_depth);
  co_return std::unique_ptr<objects::Session>(new PoolsSession(std::move(client)));
}

Task<objects::Result<std::unique_ptr<objects::Pool>>> PoolsSession::create_pool(
    std::string_view name, Bytes size, objects::PoolFlags flags) {
  return open(RequestKind::create_pool, name, size,
              (flags.create_only ? kCreateOnly : 0) | (flags.read_only ? kReadOnly : 0));
}

Task<objects::Result<std::unique_ptr<objects::Pool>>> PoolsSession::open_pool(
    std::string_view name, objects::PoolFlags flags, Bytes size) {
  return open(RequestKind::open_pool, name, size,
              (flags.create_on_demand ? kCreateOnDemand : 0) | (flags.read_only ? kReadOnly : 0));
}

Task<objects::Result<std::unique_ptr<objects::Pool>>> PoolsSession::open(RequestKind kind,
                                                                         std::string_view name,
                                                                         Bytes size,
                                                                         std::uint8_t flags) {
  const auto handle = co_await client_->open_pool(kind, name, size, flags);
  if (!handle) co_return tl::unexpected(handle.error());
  co_return std::make_unique<OpenPool>(client_, memories_, *handle);
}

Task<objects::Result<void>> PoolsSession::delete_pool(std::string_view name) {
  return client_->tell({.kind = RequestKind::delete_pool}, std::as_bytes(std::span(name)), {});
}

Task<objects::Result<objects::ShardStatistics>> PoolsSession::statistics() {
  return client_->ask<objects::ShardStatistics>({.kind = RequestKind::statistics}, {}, {});
}

objects::Result<objects::DirectMemory> PoolsSession::register_direct_memory(pmem::Region& region) {
  try {
    return memories_->add(region);
  } catch (const PlatformError&) {
    return tl::unexpected(objects::Error::invalid);
  }
}

void PoolsSession::unregister_direct_memory(objects::DirectMemory memory) {
  memories_->remove(memory);
}

}  // namespace perdura::systems::mcas
