// For a library that is preloaded before the C library: access to the functions that its own
// replace.
#pragma once

#include <dlfcn.h>

namespace perdura::mojim {

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace perdura::mojim

#define REAL(name)                                                                 \
  ([] {                                                                            \
    static auto* const function = ::perdura::mojim::real<decltype(::name)>(#name); \
    return function;                                                               \
  }())
