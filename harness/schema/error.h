#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace perdura::schema {

/// One line: what is wrong, where, and what to do.
struct Error {
  std::string message;
  bool work_failed = false;  ///< a full disk, gnuplot; otherwise some input is wrong
};

template <class T>
using Expected = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(std::string message) {
  return tl::unexpected<Error>(Error{std::move(message)});
}

inline tl::unexpected<Error> fail_work(std::string message) {
  return tl::unexpected<Error>(Error{std::move(message), true});
}

}  // namespace perdura::schema
