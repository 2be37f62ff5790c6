// For a library that is preloaded before the C library: access to the functions that its own
// replace.
#pragma once

#include <dlfcn.h>

namespace perdura::preload {

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace perdura::preload

#define REAL(name)                                                                   \
  ([] {                                                                              \
    static auto* const function = ::perdura::preload::real<decltype(::name)>(#name); \
    return function;                                                                 \
  }())
