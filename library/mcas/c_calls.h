// Common parts of the calls for C of clients: the opaque types of the C header, which wrap those of
// the C++ library, and the conversion of arguments and results.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <variant>

#include "library/c_errors.h"
#include "library/perdura_objects.h"
#include "library/perdura_objects_c.h"

namespace mcas = perdura::mcas;

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

namespace perdura::mcas {

using perdura::library::needed;

// Statuses have the same numbers in both headers, so they are cast.
static_assert(static_cast<int>(Status::not_found) == PERDURA_OBJECTS_NOT_FOUND);
static_assert(static_cast<int>(Status::locked) == PERDURA_OBJECTS_LOCKED);
static_assert(static_cast<int>(Status::timed_out) == PERDURA_OBJECTS_TIMED_OUT);
static_assert(static_cast<int>(mcas::Match::next) == PERDURA_MATCH_NEXT);

// Records the message, which is that of the exception for C++.
inline perdura_objects_status status_of(const mcas::Result<void>& result) {
  if (!result.ok()) {
    perdura::library::failed(PERDURA_FAILED,
                             mcas::Failure(result.status(), result.reason()).what());
  }
  return static_cast<perdura_objects_status>(result.status());
}
template <class T>
mcas::Result<void> without_value(const mcas::Result<T>& result) {
  return {result.status(), result.reason()};
}

// Runs the call, which returns a Status or a Result<void>, and converts its result or its
// exception.
inline perdura_objects_status guarded(const auto& call) noexcept {
  perdura_objects_status result = PERDURA_OBJECTS_OK;
  switch (perdura::library::guarded([&] { result = status_of(call()); })) {
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

inline std::string_view text(const void* bytes, size_t length, const char* what) {
  if (length > PTRDIFF_MAX) {
    throw std::invalid_argument(std::string(what) + " has " + std::to_string(length) +
                                " bytes, more than memory can have; was its length negative?");
  }
  if (bytes == nullptr && length != 0) {
    throw std::invalid_argument(std::string(what) + " is NULL");
  }
  return {static_cast<const char*>(bytes), length};
}
inline std::string_view key_of(const void* key, size_t length) {
  return text(key, length, "the key");
}
inline mcas::Pool& pool_of(perdura_pool* pool) { return needed(pool, "the pool").pool; }
inline mcas::Client& client_of(perdura_client* client) {
  return needed(client, "the client").client;
}
inline mcas::DirectPart part_of(perdura_direct_memory* memory, size_t at, size_t length) {
  return {needed(memory, "the memory").memory, at, length};
}

inline void check_flags(unsigned flags, unsigned known) {
  if ((flags & ~known) != 0) throw std::invalid_argument("there is no such flag");
}
inline mcas::PoolFlags pool_flags(unsigned flags) {
  check_flags(flags, 7);
  return {.create_only = (flags & PERDURA_POOL_CREATE_ONLY) != 0,
          .create_on_demand = (flags & PERDURA_POOL_CREATE_ON_DEMAND) != 0,
          .read_only = (flags & PERDURA_POOL_READ_ONLY) != 0};
}
inline mcas::PutFlags put_flags(unsigned flags) {
  check_flags(flags, 1);
  return {.no_overwrite = (flags & PERDURA_PUT_NO_OVERWRITE) != 0};
}
inline mcas::InvokeFlags invoke_flags(unsigned flags) {
  check_flags(flags, 63);
  return {.create_on_demand = (flags & PERDURA_INVOKE_CREATE_ON_DEMAND) != 0,
          .create_only = (flags & PERDURA_INVOKE_CREATE_ONLY) != 0,
          .read_only = (flags & PERDURA_INVOKE_READ_ONLY) != 0,
          .detached = (flags & PERDURA_INVOKE_DETACHED) != 0,
          .zero_new_value = (flags & PERDURA_INVOKE_ZERO_NEW_VALUE) != 0,
          .no_overwrite = (flags & PERDURA_INVOKE_NO_OVERWRITE) != 0};
}

// The memory must be freed by perdura_free_memory().
inline void give(const std::string& bytes, void** into, size_t* length) {
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

// Takes the operation's result, and passes its value, unless T is void, to `give_value`. An
// operation that has timed out is kept.
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

// The blocking form. An operation that has timed out continues by itself.
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
inline constexpr auto kNothing = [] {};

inline auto into_answers(perdura_answers** answers) {
  return [answers](mcas::Answers& all) {
    needed(answers, "where to put the answers") = new perdura_answers{std::move(all)};
  };
}
inline auto into_length(uint64_t* length) {
  return [length](std::uint64_t value) {
    if (length != nullptr) *length = value;
  };
}

inline std::chrono::milliseconds milliseconds(int64_t count) {
  return std::chrono::milliseconds(count);
}

inline mcas::RdmaDevice device_of(const perdura_client_options& given) {
  mcas::RdmaDevice device;
  if (given.device != nullptr) device.name = given.device;
  if (given.device_port > 0) device.port = static_cast<unsigned>(given.device_port);
  if (given.gid_index >= 0) device.gid_index = static_cast<unsigned>(given.gid_index);
  return device;
}

inline Status give_pool(mcas::Result<mcas::Pool> opened, perdura_pool** pool) {
  if (opened.ok()) *pool = new perdura_pool{std::move(opened.value())};
  return opened.status();
}

}  // namespace perdura::mcas
