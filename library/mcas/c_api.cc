// The calls for C of a client. Each blocking call is its asynchronous form, waited for.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <variant>

#include "library/c_errors.h"
#include "library/perdura_objects.h"
#include "library/perdura_objects_c.h"

namespace mcas = perdura::mcas;

// The opaque types of the C header wrap the types of the C++ library.
struct perdura_client {
  mcas::Client client;
};
struct perdura_pool {
  mcas::Pool pool;
};
struct perdura_direct_memory {
  mcas::DirectMemory memory;
};
struct perdura_answers {
  mcas::Answers all;
};
struct perdura_async {
  std::variant<mcas::Pending<void>, mcas::Pending<std::string>, mcas::Pending<std::uint64_t>,
               mcas::Pending<mcas::Answers>>
      pending;
};

namespace {

using mcas::Status;
using perdura::c::needed;

// Statuses have the same numbers in both headers, so they are cast.
static_assert(static_cast<int>(Status::not_found) == PERDURA_OBJECTS_NOT_FOUND);
static_assert(static_cast<int>(Status::locked) == PERDURA_OBJECTS_LOCKED);
static_assert(static_cast<int>(Status::timed_out) == PERDURA_OBJECTS_TIMED_OUT);
static_assert(static_cast<int>(mcas::Match::next) == PERDURA_MATCH_NEXT);

// Notes the message, which is that of the exception for C++.
perdura_objects_status status_of(const mcas::Result<void>& result) {
  if (!result.ok()) {
    perdura::c::failed(PERDURA_FAILED, mcas::Failure(result.status(), result.reason()).what());
  }
  return static_cast<perdura_objects_status>(result.status());
}
template <class T>
mcas::Result<void> without_value(const mcas::Result<T>& result) {
  return {result.status(), result.reason()};
}

// Runs the call, which returns a Status or a Result<void>, and returns what it throws as one, too.
perdura_objects_status guarded(const auto& call) noexcept {
  perdura_objects_status result = PERDURA_OBJECTS_OK;
  switch (perdura::c::guarded([&] { result = status_of(call()); })) {
    case PERDURA_OK:
      return result;
    case PERDURA_INVALID:
      return PERDURA_OBJECTS_INVALID;
    case PERDURA_TIMED_OUT:
      return PERDURA_OBJECTS_UNREACHABLE;
    default:
      return PERDURA_OBJECTS_FAILED;
  }
}

std::string_view text(const void* bytes, size_t length, const char* what) {
  if (length > PTRDIFF_MAX) {
    throw std::invalid_argument(std::string(what) + " has " + std::to_string(length) +
                                " bytes, more than memory can have; was its length negative?");
  }
  if (bytes == nullptr && length != 0) {
    throw std::invalid_argument(std::string(what) + " is NULL");
  }
  return {static_cast<const char*>(bytes), length};
}
std::string_view key_of(const void* key, size_t length) { return text(key, length, "the key"); }
mcas::Pool& pool_of(perdura_pool* pool) { return needed(pool, "the pool").pool; }
mcas::Client& client_of(perdura_client* client) { return needed(client, "the client").client; }
mcas::DirectPart part_of(perdura_direct_memory* memory, size_t at, size_t length) {
  return {needed(memory, "the memory").memory, at, length};
}

void check_flags(unsigned flags, unsigned known) {
  if ((flags & ~known) != 0) throw std::invalid_argument("there is no such flag");
}
mcas::PoolFlags pool_flags(unsigned flags) {
  check_flags(flags, 7);
  return {.create_only = (flags & PERDURA_POOL_CREATE_ONLY) != 0,
          .create_on_demand = (flags & PERDURA_POOL_CREATE_ON_DEMAND) != 0,
          .read_only = (flags & PERDURA_POOL_READ_ONLY) != 0};
}
mcas::PutFlags put_flags(unsigned flags) {
  check_flags(flags, 1);
  return {.no_overwrite = (flags & PERDURA_PUT_NO_OVERWRITE) != 0};
}
mcas::InvokeFlags invoke_flags(unsigned flags) {
  check_flags(flags, 63);
  return {.create_on_demand = (flags & PERDURA_INVOKE_CREATE_ON_DEMAND) != 0,
          .create_only = (flags & PERDURA_INVOKE_CREATE_ONLY) != 0,
          .read_only = (flags & PERDURA_INVOKE_READ_ONLY) != 0,
          .detached = (flags & PERDURA_INVOKE_DETACHED) != 0,
          .zero_new_value = (flags & PERDURA_INVOKE_ZERO_NEW_VALUE) != 0,
          .no_overwrite = (flags & PERDURA_INVOKE_NO_OVERWRITE) != 0};
}

// To be freed by perdura_free_memory().
void give(const std::string& bytes, void** into, size_t* length) {
  needed(length, "where to put the length") = bytes.size();
  void*& result = needed(into, "where to put the memory");
  result = std::malloc(bytes.size() + 1);
  if (result == nullptr) throw std::bad_alloc();
  std::memcpy(result, bytes.c_str(), bytes.size() + 1);
}

template <class T>
perdura_objects_status start(perdura_async** async, const auto& call) {
  return guarded([&] {
    perdura_async*& result = needed(async, "where to put the operation");
    result = new perdura_async{mcas::Pending<T>(call())};
    return Status::ok;
  });
}

// What of the operation is to be given, by `give(value)`; of void nothing.
template <class T>
perdura_objects_status take(perdura_async** async, const auto& give_value) {
  return guarded([&]() -> mcas::Result<void> {
    perdura_async*& operation = needed(async, "the operation");
    auto* const pending =
        std::get_if<mcas::Pending<T>>(&needed(operation, "the operation").pending);
    if (pending == nullptr) throw std::invalid_argument("the operation has another result");
    mcas::Result<T> result = pending->wait();
    if (result.status() == Status::timed_out) return Status::timed_out;
    delete std::exchange(operation, nullptr);
    if constexpr (!std::is_void_v<T>) {
      if (result.ok()) give_value(result.value());
    }
    return without_value(result);
  });
}

// The blocking form: an operation that has timed out goes on by itself.
template <class T>
perdura_objects_status wait_for(const auto& call, const auto& give_value) {
  return guarded([&] {
    mcas::Result<T> result = call().wait();
    if constexpr (!std::is_void_v<T>) {
      if (result.ok()) give_value(result.value());
    }
    return without_value(result);
  });
}
constexpr auto kNothing = [] {};

auto into_answers(perdura_answers** answers) {
  return [answers](mcas::Answers& all) {
    needed(answers, "where to put the answers") = new perdura_answers{std::move(all)};
  };
}
auto into_length(uint64_t* length) {
  return [length](std::uint64_t value) {
    if (length != nullptr) *length = value;
  };
}

std::chrono::milliseconds milliseconds(int64_t count) { return std::chrono::milliseconds(count); }

mcas::RdmaDevice device_of(const perdura_client_options& given) {
  mcas::RdmaDevice device;
  if (given.device != nullptr) device.name = given.device;
  if (given.device_port > 0) device.port = static_cast<unsigned>(given.device_port);
  if (given.gid_index >= 0) device.gid_index = static_cast<unsigned>(given.gid_index);
  return device;
}

Status give_pool(mcas::Result<mcas::Pool> opened, perdura_pool** pool) {
  if (opened.ok()) *pool = new perdura_pool{std::move(opened.value())};
  return opened.status();
}

}  // namespace

// --- clients and pools ---------------------------------------------------------------------------

perdura_client_options perdura_client_options_of(const char* job, uint32_t node) {
  const mcas::ClientOptions defaults;
  return {.job = job,
          .node = node,
          .queue_depth = defaults.queue_depth,
          .connect_timeout_ms = defaults.connect_timeout.count(),
          .call_timeout_ms = defaults.call_timeout.count(),
          .address = nullptr,
          .device = nullptr,
          .device_port = 0,
          .gid_index = -1};
}

perdura_objects_status perdura_client_open(const perdura_client_options* options,
                                           perdura_client** client) {
  return guarded([&] {
    const perdura_client_options& given = needed(options, "the options");
    perdura_client*& result = needed(client, "where to put the client");
    const mcas::ClientOptions wanted{.job = &needed(given.job, "the job"),
                                     .node = given.node,
                                     .queue_depth = given.queue_depth,
                                     .connect_timeout = milliseconds(given.connect_timeout_ms),
                                     .call_timeout = milliseconds(given.call_timeout_ms),
                                     .address = given.address == nullptr ? "" : given.address,
                                     .device = device_of(given)};
    result = new perdura_client{mcas::Client(wanted)};
    return Status::ok;
  });
}
void perdura_client_close(perdura_client* client) { delete client; }

perdura_objects_status perdura_create_pool(perdura_client* client, const char* name, uint64_t size,
                                           unsigned flags, perdura_pool** pool) {
  return guarded([&] {
    needed(pool, "where to put the pool") = nullptr;
    return give_pool(
        client_of(client).create_pool(&needed(name, "the name"), size, pool_flags(flags)), pool);
  });
}
perdura_objects_status perdura_open_pool(perdura_client* client, const char* name, uint64_t size,
                                         unsigned flags, perdura_pool** pool) {
  return guarded([&] {
    needed(pool, "where to put the pool") = nullptr;
    return give_pool(
        client_of(client).open_pool(&needed(name, "the name"), pool_flags(flags), size), pool);
  });
}
perdura_objects_status perdura_close_pool(perdura_pool* pool) {
  if (pool == nullptr) return PERDURA_OBJECTS_OK;
  const perdura_objects_status status = guarded([&] { return pool->pool.close(); });
  delete pool;
  return status;
}
perdura_objects_status perdura_delete_pool(perdura_client* client, const char* name) {
  return guarded([&] { return client_of(client).delete_pool(&needed(name, "the name")); });
}
perdura_objects_status perdura_configure_pool(perdura_pool* pool, const char* command) {
  return guarded([&] { return pool_of(pool).configure(&needed(command, "the command")); });
}

perdura_objects_status perdura_get_attributes(perdura_pool* pool,
                                              perdura_pool_attributes* attributes) {
  return guarded([&] {
    perdura_pool_attributes& into = needed(attributes, "where to put the attributes");
    mcas::Result<mcas::PoolAttributes> result = pool_of(pool).attributes();
    if (!result.ok()) return result.status();
    const mcas::PoolAttributes& found = result.value();
    into = {found.items, found.capacity, found.free, found.has_index ? 1 : 0};
    return Status::ok;
  });
}
perdura_objects_status perdura_get_key_attributes(perdura_pool* pool, const void* key,
                                                  size_t key_length, uint64_t* value_length) {
  return guarded([&] {
    uint64_t& into = needed(value_length, "where to put the length");
    mcas::Result<mcas::KeyAttributes> result = pool_of(pool).attributes(key_of(key, key_length));
    if (result.ok()) into = result.value().value_length;
    return result.status();
  });
}
perdura_objects_status perdura_get_statistics(perdura_client* client,
                                              perdura_statistics* statistics) {
  return guarded([&] {
    perdura_statistics& into = needed(statistics, "where to put the statistics");
    mcas::Result<mcas::Statistics> result = client_of(client).statistics();
    if (!result.ok()) return result.status();
    const mcas::Statistics& found = result.value();
    into = {found.requests,
            found.puts,
            found.gets,
            found.erases,
            found.direct_transfers,
            found.invocations,
            found.failed_requests,
            found.sessions,
            found.pools};
    return Status::ok;
  });
}
perdura_objects_status perdura_find(perdura_pool* pool, const void* expression,
                                    size_t expression_length, int match, uint64_t* position,
                                    void** key, size_t* key_length) {
  return guarded([&] {
    uint64_t& at = needed(position, "the position");
    if (match < PERDURA_MATCH_EXACT || match > PERDURA_MATCH_NEXT) {
      throw std::invalid_argument("there is no such way to match");
    }
    mcas::Result<mcas::Found> result = pool_of(pool).find(
        text(expression, expression_length, "the expression"), static_cast<mcas::Match>(match), at);
    if (!result.ok()) return result.status();
    give(result.value().key, key, key_length);
    at = result.value().position;
    return Status::ok;
  });
}

// --- keys and values -----------------------------------------------------------------------------

void perdura_free_memory(void* memory) { std::free(memory); }

perdura_objects_status perdura_put(perdura_pool* pool, const void* key, size_t key_length,
                                   const void* value, size_t value_length, unsigned flags) {
  return guarded([&] {
    return pool_of(pool).put(key_of(key, key_length), text(value, value_length, "the value"),
                             put_flags(flags));
  });
}
perdura_objects_status perdura_get(perdura_pool* pool, const void* key, size_t key_length,
                                   void** value, size_t* value_length) {
  return wait_for<std::string>([&] { return pool_of(pool).async_get(key_of(key, key_length)); },
                               [&](const std::string& got) { give(got, value, value_length); });
}
perdura_objects_status perdura_erase(perdura_pool* pool, const void* key, size_t key_length) {
  return guarded([&] { return pool_of(pool).erase(key_of(key, key_length)); });
}

// --- direct transfers ----------------------------------------------------------------------------

perdura_objects_status perdura_register_direct_memory(perdura_client* client, size_t size,
                                                      perdura_direct_memory** memory) {
  return guarded([&] {
    perdura_direct_memory*& into = needed(memory, "where to put the memory");
    mcas::Result<mcas::DirectMemory> result = client_of(client).register_direct_memory(size);
    if (result.ok()) into = new perdura_direct_memory{result.value()};
    return result.status();
  });
}
void* perdura_direct_memory_address(perdura_direct_memory* memory) {
  return memory == nullptr ? nullptr : memory->memory.bytes().data();
}
void perdura_unregister_direct_memory(perdura_direct_memory* memory) { delete memory; }

perdura_objects_status perdura_put_direct(perdura_pool* pool, const void* key, size_t key_length,
                                          perdura_direct_memory* memory, size_t at, size_t length,
                                          unsigned flags) {
  return guarded([&] {
    return pool_of(pool).put_direct(key_of(key, key_length), part_of(memory, at, length),
                                    put_flags(flags));
  });
}
perdura_objects_status perdura_get_direct(perdura_pool* pool, const void* key, size_t key_length,
                                          perdura_direct_memory* memory, size_t at, size_t length,
                                          uint64_t* value_length) {
  return wait_for<std::uint64_t>(
      [&] {
        return pool_of(pool).async_get_direct(key_of(key, key_length), part_of(memory, at, length));
      },
      into_length(value_length));
}
perdura_objects_status perdura_put_direct_offset(perdura_pool* pool, const void* key,
                                                 size_t key_length, uint64_t offset,
                                                 perdura_direct_memory* memory, size_t at,
                                                 size_t length) {
  return guarded([&] {
    return pool_of(pool).put_direct_offset(key_of(key, key_length), offset,
                                           part_of(memory, at, length));
  });
}
perdura_objects_status perdura_get_direct_offset(perdura_pool* pool, const void* key,
                                                 size_t key_length, uint64_t offset,
                                                 perdura_direct_memory* memory, size_t at,
                                                 size_t length) {
  return guarded([&] {
    return pool_of(pool).get_direct_offset(key_of(key, key_length), offset,
                                           part_of(memory, at, length));
  });
}

// --- active data objects -------------------------------------------------------------------------

size_t perdura_answers_count(const perdura_answers* answers) {
  return answers == nullptr ? 0 : answers->all.size();
}
const void* perdura_answer(const perdura_answers* answers, size_t index, size_t* length) {
  if (index >= perdura_answers_count(answers)) return nullptr;
  const std::string& answer = answers->all[index];
  if (length != nullptr) *length = answer.size();
  return answer.data();
}
void perdura_answers_free(perdura_answers* answers) { delete answers; }

perdura_objects_status perdura_invoke_ado(perdura_pool* pool, const void* key, size_t key_length,
                                          const void* request, size_t request_length,
                                          uint64_t value_length, unsigned flags,
                                          perdura_answers** answers) {
  return wait_for<mcas::Answers>(
      [&] {
        needed(answers, "where to put the answers");
        return pool_of(pool).async_invoke(key_of(key, key_length),
                                          text(request, request_length, "the request"),
                                          value_length, invoke_flags(flags));
      },
      into_answers(answers));
}
perdura_objects_status perdura_invoke_put_ado(perdura_pool* pool, const void* key,
                                              size_t key_length, const void* request,
                                              size_t request_length, const void* value,
                                              size_t value_length, uint64_t root_length,
                                              unsigned flags, perdura_answers** answers) {
  return wait_for<mcas::Answers>(
      [&] {
        needed(answers, "where to put the answers");
        return pool_of(pool).async_invoke_put(
            key_of(key, key_length), text(request, request_length, "the request"),
            text(value, value_length, "the value"), root_length, invoke_flags(flags));
      },
      into_answers(answers));
}

// --- asynchronous forms --------------------------------------------------------------------------

int perdura_check_async_completion(perdura_async* async) {
  if (async == nullptr) return 1;
  return std::visit([](const auto& pending) { return pending.completed() ? 1 : 0; },
                    async->pending);
}
perdura_objects_status perdura_async_take(perdura_async** async) {
  return take<void>(async, kNothing);
}
perdura_objects_status perdura_async_take_value(perdura_async** async, void** value,
                                                size_t* value_length) {
  return take<std::string>(async, [&](const std::string& got) { give(got, value, value_length); });
}
perdura_objects_status perdura_async_take_length(perdura_async** async, uint64_t* value_length) {
  return take<std::uint64_t>(async, into_length(value_length));
}
perdura_objects_status perdura_async_take_answers(perdura_async** async,
                                                  perdura_answers** answers) {
  return take<mcas::Answers>(async, into_answers(answers));
}
void perdura_async_drop(perdura_async* async) { delete async; }

perdura_objects_status perdura_async_put(perdura_pool* pool, const void* key, size_t key_length,
                                         const void* value, size_t value_length, unsigned flags,
                                         perdura_async** async) {
  return start<void>(async, [&] {
    return pool_of(pool).async_put(key_of(key, key_length), text(value, value_length, "the value"),
                                   put_flags(flags));
  });
}
perdura_objects_status perdura_async_get(perdura_pool* pool, const void* key, size_t key_length,
                                         perdura_async** async) {
  return start<std::string>(async,
                            [&] { return pool_of(pool).async_get(key_of(key, key_length)); });
}
perdura_objects_status perdura_async_erase(perdura_pool* pool, const void* key, size_t key_length,
                                           perdura_async** async) {
  return start<void>(async, [&] { return pool_of(pool).async_erase(key_of(key, key_length)); });
}
perdura_objects_status perdura_async_put_direct(perdura_pool* pool, const void* key,
                                                size_t key_length, perdura_direct_memory* memory,
                                                size_t at, size_t length, unsigned flags,
                                                perdura_async** async) {
  return start<void>(async, [&] {
    return pool_of(pool).async_put_direct(key_of(key, key_length), part_of(memory, at, length),
                                          put_flags(flags));
  });
}
perdura_objects_status perdura_async_get_direct(perdura_pool* pool, const void* key,
                                                size_t key_length, perdura_direct_memory* memory,
                                                size_t at, size_t length, perdura_async** async) {
  return start<std::uint64_t>(async, [&] {
    return pool_of(pool).async_get_direct(key_of(key, key_length), part_of(memory, at, length));
  });
}
perdura_objects_status perdura_async_put_direct_offset(perdura_pool* pool, const void* key,
                                                       size_t key_length, uint64_t offset,
                                                       perdura_direct_memory* memory, size_t at,
                                                       size_t length, perdura_async** async) {
  return start<void>(async, [&] {
    return pool_of(pool).async_put_direct_offset(key_of(key, key_length), offset,
                                                 part_of(memory, at, length));
  });
}
perdura_objects_status perdura_async_get_direct_offset(perdura_pool* pool, const void* key,
                                                       size_t key_length, uint64_t offset,
                                                       perdura_direct_memory* memory, size_t at,
                                                       size_t length, perdura_async** async) {
  return start<void>(async, [&] {
    return pool_of(pool).async_get_direct_offset(key_of(key, key_length), offset,
                                                 part_of(memory, at, length));
  });
}
perdura_objects_status perdura_async_invoke_ado(perdura_pool* pool, const void* key,
                                                size_t key_length, const void* request,
                                                size_t request_length, uint64_t value_length,
                                                unsigned flags, perdura_async** async) {
  return start<mcas::Answers>(async, [&] {
    return pool_of(pool).async_invoke(key_of(key, key_length),
                                      text(request, request_length, "the request"), value_length,
                                      invoke_flags(flags));
  });
}
perdura_objects_status perdura_async_invoke_put_ado(perdura_pool* pool, const void* key,
                                                    size_t key_length, const void* request,
                                                    size_t request_length, const void* value,
                                                    size_t value_length, uint64_t root_length,
                                                    unsigned flags, perdura_async** async) {
  return start<mcas::Answers>(async, [&] {
    return pool_of(pool).async_invoke_put(
        key_of(key, key_length), text(request, request_length, "the request"),
        text(value, value_length, "the value"), root_length, invoke_flags(flags));
  });
}
