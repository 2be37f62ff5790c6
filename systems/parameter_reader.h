// Reads a system's own parameters out of a configuration. What is wrong throws ParameterError, with
// one line that begins with the system's name.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "platform/base/error.h"
#include "services/kv/kv.h"

namespace perdura::systems {

// Names the parameter, so that whoever knows where it was written can say it.
struct ParameterError : UsageError {
  ParameterError(std::string_view of, const std::string& message)
      : UsageError(message), parameter(of) {}
  std::string parameter;
};

class ParameterReader {
 public:
  // Throws if the configuration has a parameter that is not among `known`. `config` must outlive
  // this.
  ParameterReader(std::string_view system, const KvConfig& config,
                  std::initializer_list<std::string_view> known);

  bool has(std::string_view name) const { return config_.parameters.contains(name); }

  // The parameter, or `otherwise` if it is not given. Throws unless it is `least` to `most`.
  template <std::unsigned_integral Number>
  Number number(std::string_view name, Number otherwise, std::uint64_t least,
                std::uint64_t most) const {
    return static_cast<Number>(checked(name, otherwise, least, most));
  }

  // Throws unless what the configuration says of something else is `least` to `most`.
  void require_within(std::string_view what, std::uint64_t value, std::uint64_t least,
                      std::uint64_t most) const;

 private:
  std::uint64_t checked(std::string_view name, std::uint64_t otherwise, std::uint64_t least,
                        std::uint64_t most) const;

  std::string_view system_;
  const KvConfig& config_;
};

}  // namespace perdura::systems
