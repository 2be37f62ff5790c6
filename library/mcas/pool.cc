#include "library/mcas/pool.h"

#include <algorithm>

#include "platform/base/error.h"

namespace perdura::mcas {

namespace {

objects::Key key_of(const std::string& key) { return std::as_bytes(std::span(key)); }
objects::PutFlags flags_of(PutFlags flags) { return {.no_overwrite = flags.no_overwrite}; }
objects::InvokeFlags flags_of(const InvokeFlags& flags) {
  return {.create_on_demand = flags.create_on_demand,
          .create_only = flags.create_only,
          .read_only = flags.read_only,
          .detached = flags.detached,
          .zero_new_value = flags.zero_new_value,
          .no_overwrite = flags.no_overwrite};
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<void> converted(const objects::Result<void>& result) {
  if (!result) return failure_of<void>(result.error());
  return Status::ok;
}
Result<std::string> converted(const objects::Result<std::vector<std::byte>>& result) {
  if (!result) return failure_of<std::string>(result.error());
  return text_of(*result);
}
Result<std::uint64_t> converted(const objects::Result<Bytes>& result) {
  if (!result) return failure_of<std::uint64_t>(result.error());
  return *result;
}
Result<Answers> converted(const objects::Result<objects::Answers>& result) {
  if (!result) return failure_of<Answers>(result.error());
  Answers answers;
  for (const auto& answer : *result) answers.push_back(text_of(answer));
  return answers;
}
Result<PoolAttributes> converted(const objects::Result<objects::PoolAttributes>& result) {
  if (!result) return failure_of<PoolAttributes>(result.error());
  return PoolAttributes{result->items, result->capacity, result->free, result->has_index};
}
Result<KeyAttributes> converted(const objects::Result<objects::KeyAttributes>& result) {
  if (!result) return failure_of<KeyAttributes>(result.error());
  return KeyAttributes{result->value_length};
}
Result<FoundKey> converted(const objects::Result<objects::FoundKey>& result) {
  if (!result) return failure_of<FoundKey>(result.error());
  return FoundKey{text_of(result->key), result->position};
}

// Performs an operation on an open pool, `operation(use)`.
template <class T, class Operation>
Task<Result<T>> on_pool(std::shared_ptr<OpenPool> pool, Operation operation) {
  Result<OpenPool::Use> use = co_await pool->use();
  if (!use.ok()) co_return failure_of<T>(use);
  Result<T> result = converted(co_await operation(use.value()));
  if (result.status() == Status::disconnected) pool->lost(use.value());
  co_return result;
}

template <class T, class Operation>
Pending<T> post(const Pool::Impl& pool, Operation operation) {
  return pool.membership().post<T>(
      [open = pool.pool(), operation = std::move(operation)]() mutable {
        return on_pool<T>(open, std::move(operation));
      });
}

// The same with a part of registered memory: `operation(pool, buffer)`.
template <class T, class Operation>
Pending<T> post_direct(const Pool::Impl& pool, const DirectPart& part, Operation operation) {
  using Outcome = objects::Result<std::conditional_t<std::is_void_v<T>, void, Bytes>>;
  auto perform = [memory = part.memory.impl()->memory(), offset = part.offset, length = part.length,
                  operation = std::move(operation)](OpenPool::Use& use) -> Task<Outcome> {
    const auto buffer = memory->part(use.session, offset, length);
    if (!buffer) co_return tl::unexpected(buffer.error());
    co_return co_await operation(*use.pool, *buffer);
  };
  return post<T>(pool, std::move(perform));
}

}  // namespace

// --- registered memory ---------------------------------------------------------------------------

objects::Result<objects::DirectBuffer> RegisteredMemory::part(
    const std::shared_ptr<objects::Session>& session, std::size_t offset, std::size_t length) {
  std::erase_if(registered_, [](const Of& of) { return of.session.expired(); });
  for (const Of& of : registered_) {
    if (of.session.lock() == session) return objects::DirectBuffer{of.memory, offset, length};
  }
  const auto memory = session->register_direct_memory(*region_);
  if (!memory) return tl::unexpected(memory.error());
  registered_.push_back({session, *memory});
  return objects::DirectBuffer{*memory, offset, length};
}

RegisteredMemory::~RegisteredMemory() {
  for (const Of& of : registered_) {
    if (const auto session = of.session.lock()) session->unregister_direct_memory(of.memory);
  }
}

// The memory is destroyed on the membership's thread, together with this object or after the last
// operation that uses it.
DirectMemory::Impl::~Impl() {
  membership_->run([memory = std::move(memory_)]() -> Task<> { co_return; });
}

std::span<std::byte> DirectMemory::bytes() const { return impl_->memory()->bytes(); }

Result<DirectMemory> allocate(const std::shared_ptr<Membership>& membership, std::size_t size) {
  using Memory = std::shared_ptr<RegisteredMemory>;
  if (size == 0) return Status::invalid;
  auto made =
      membership->post<Memory>([&node = membership->thread().node, size]() -> Task<Result<Memory>> {
        try {
          co_return std::make_shared<RegisteredMemory>(
              node.create_region("direct memory", size, pmem::Medium::dram));
        } catch (const UsageError&) {
          co_return Status::out_of_space;
        }
      });
  Result<Memory> memory = made.wait();
  if (!memory.ok()) return failure_of<DirectMemory>(memory);
  return DirectMemory(std::make_shared<DirectMemory::Impl>(membership, memory.value()));
}

// --- opening and closing -------------------------------------------------------------------------

Task<Result<OpenPool::Use>> OpenPool::use() {
  for (;;) {
    if (closed_) co_return Status::no_permission;
    const std::shared_ptr<objects::Session> session = co_await shard_->session();
    if (session == nullptr) co_return Status::unreachable;
    if (session_.lock() == session) {
      if (std::shared_ptr<objects::Pool> pool = pool_.lock())
        co_return Use{session, std::move(pool)};
    }
    if (opening_) {
      co_await wait(waiting_);
      continue;
    }
    opening_ = true;
    const Result<void> opened = co_await open(session);
    opening_ = false;
    waiting_.wake_all();
    if (opened.status() == Status::disconnected) shard_->lost(session);
    if (!opened.ok()) co_return failure_of<Use>(opened);
  }
}

Task<Result<void>> OpenPool::open(const std::shared_ptr<objects::Session>& session) {
  const objects::PoolFlags flags{.create_only = name_.flags.create_only,
                                 .create_on_demand = name_.flags.create_on_demand,
                                 .read_only = name_.flags.read_only};
  auto opening = name_.creates ? session->create_pool(name_.name, name_.size, flags)
                               : session->open_pool(name_.name, flags, name_.size);
  auto opened = co_await std::move(opening);
  if (!opened) co_return failure_of<void>(opened.error());
  session_ = session;
  pool_ = shard_->keep(std::move(*opened));
  co_return Status::ok;
}

void OpenPool::now_exists() {
  name_.creates = false;
  name_.flags.create_on_demand = false;
}

Task<Result<void>> OpenPool::close(std::shared_ptr<OpenPool> self) {
  if (std::exchange(self->closed_, true)) co_return Status::ok;
  // A session that has ended has closed all of its pools.
  const std::shared_ptr<objects::Session> session = self->session_.lock();
  const std::shared_ptr<objects::Pool> pool = self->pool_.lock();
  if (session == nullptr || pool == nullptr) co_return Status::ok;
  self->shard_->give_up(pool);
  const auto closed = co_await pool->close();
  const bool gone = !closed && closed.error() == objects::Error::disconnected;
  if (!closed && !gone) co_return failure_of<void>(closed.error());
  co_return Status::ok;
}

Pool::Impl::~Impl() {
  membership_->run([pool = pool_]() -> Task<> { co_await OpenPool::close(pool); });
}

Result<Pool> open(const std::shared_ptr<Membership>& membership,
                  const std::shared_ptr<ShardConnection>& shard, PoolName name) {
  const auto pool = std::make_shared<OpenPool>(shard, std::move(name));
  auto opened = membership->post<void>([pool]() -> Task<Result<void>> {
    const Result<OpenPool::Use> use = co_await pool->use();
    if (!use.ok()) co_return failure_of<void>(use);
    pool->now_exists();
    co_return Status::ok;
  });
  const Result<void> result = opened.wait();
  if (!result.ok()) return failure_of<Pool>(result);
  return Pool(std::make_shared<Pool::Impl>(membership, pool));
}

Task<Result<void>> delete_pool_of(objects::Session& session, const std::string& name) {
  co_return converted(co_await session.delete_pool(name));
}

// --- operations ----------------------------------------------------------------------------------

Pending<void> Pool::async_put(std::string_view key, std::string_view value, PutFlags flags) {
  return post<void>(
      *impl_, [key = std::string(key), value = std::string(value), flags](OpenPool::Use& use) {
        return use.pool->put(key_of(key), key_of(value), flags_of(flags));
      });
}

Pending<std::string> Pool::async_get(std::string_view key) {
  return post<std::string>(
      *impl_, [key = std::string(key)](OpenPool::Use& use) { return use.pool->get(key_of(key)); });
}

Pending<void> Pool::async_erase(std::string_view key) {
  return post<void>(*impl_, [key = std::string(key)](OpenPool::Use& use) {
    return use.pool->erase(key_of(key));
  });
}

Pending<void> Pool::async_put_direct(std::string_view key, const DirectPart& from, PutFlags flags) {
  return post_direct<void>(
      *impl_, from,
      [key = std::string(key), flags](objects::Pool& pool, const objects::DirectBuffer& buffer) {
        return pool.put_direct(key_of(key), buffer, flags_of(flags));
      });
}

Pending<std::uint64_t> Pool::async_get_direct(std::string_view key, const DirectPart& into) {
  return post_direct<std::uint64_t>(
      *impl_, into,
      [key = std::string(key)](objects::Pool& pool, const objects::DirectBuffer& buffer) {
        return pool.get_direct(key_of(key), buffer);
      });
}

Pending<void> Pool::async_put_direct_offset(std::string_view key, std::uint64_t offset,
                                            const DirectPart& from) {
  return post_direct<void>(
      *impl_, from,
      [key = std::string(key), offset](objects::Pool& pool, const objects::DirectBuffer& buffer) {
        return pool.put_direct_offset(key_of(key), offset, buffer);
      });
}

Pending<void> Pool::async_get_direct_offset(std::string_view key, std::uint64_t offset,
                                            const DirectPart& into) {
  return post_direct<void>(
      *impl_, into,
      [key = std::string(key), offset](objects::Pool& pool, const objects::DirectBuffer& buffer) {
        return pool.get_direct_offset(key_of(key), offset, buffer);
      });
}

Pending<Answers> Pool::async_invoke(std::string_view key, std::string_view request,
                                    std::uint64_t value_length, InvokeFlags flags) {
  return post<Answers>(*impl_, [key = std::string(key), request = std::string(request),
                                value_length, flags](OpenPool::Use& use) {
    return use.pool->invoke(key_of(key), key_of(request), value_length, flags_of(flags));
  });
}

Pending<Answers> Pool::async_invoke_put(std::string_view key, std::string_view request,
                                        std::string_view value, std::uint64_t root_length,
                                        InvokeFlags flags) {
  return post<Answers>(
      *impl_, [key = std::string(key), request = std::string(request), value = std::string(value),
               root_length, flags](OpenPool::Use& use) {
        return use.pool->invoke_put(key_of(key), key_of(request), key_of(value), root_length,
                                    flags_of(flags));
      });
}

Pending<PoolAttributes> Pool::async_attributes() {
  return post<PoolAttributes>(*impl_, [](OpenPool::Use& use) { return use.pool->attributes(); });
}

Pending<KeyAttributes> Pool::async_attributes(std::string_view key) {
  return post<KeyAttributes>(*impl_, [key = std::string(key)](OpenPool::Use& use) {
    return use.pool->attributes(key_of(key));
  });
}

Pending<void> Pool::async_configure(std::string_view command) {
  return post<void>(*impl_, [command = std::string(command)](OpenPool::Use& use) {
    return use.pool->configure(command);
  });
}

Pending<FoundKey> Pool::async_find(std::string_view expression, Match match,
                                   std::uint64_t position) {
  return post<FoundKey>(
      *impl_, [expression = std::string(expression), match, position](OpenPool::Use& use) {
        return use.pool->find(expression, static_cast<objects::Match>(match), position);
      });
}

Pending<void> Pool::async_close() {
  return impl_->membership().post<void>([pool = impl_->pool()] { return OpenPool::close(pool); });
}

}  // namespace perdura::mcas
