#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace perdura::report {

/// What was wrong, where, and what to do, on one line.
struct Error {
  std::string message;
};

template <class T>
using Expected = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(std::string message) {
  return tl::unexpected<Error>(Error{std::move(message)});
}

}  // namespace perdura::report
