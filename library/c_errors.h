// How the calls for C report errors: by a status, and by the message of the exception.
#pragma once

#include <stdexcept>
#include <string>

#include "library/perdura_c.h"

namespace perdura::library {

// The message of this thread's last call that failed (perdura_last_error).
std::string& last_error();

// Records the message and returns the status.
perdura_status failed(perdura_status status, const char* what) noexcept;
// Returns the status of the exception that is being handled, and records its message.
perdura_status status_of_exception() noexcept;

// Runs the call, and returns what it throws as a status.
perdura_status guarded(const auto& call) noexcept {
  try {
    call();
    return PERDURA_OK;
  } catch (...) {
    return status_of_exception();
  }
}

template <class T>
T& needed(T* pointer, const char* what) {
  if (pointer == nullptr) throw std::invalid_argument(std::string(what) + " is NULL");
  return *pointer;
}

}  // namespace perdura::library
