// The calls for C of a client that wait. Each waits for its asynchronous form.
#include "library/mcas/c_calls.h"

using namespace perdura::mcas;

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
    mcas::Result<mcas::FoundKey> result = pool_of(pool).find(
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
