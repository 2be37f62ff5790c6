// The asynchronous forms of the calls for C.
#include "library/mcas/c_calls.h"

using namespace perdura::mcas;

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
