#include "harness/config/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace perdura::harness {
namespace {

using Point = PointSettings;

constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;  // of counts; key numbers end there

constexpr std::uint64_t kHour = 3'600'000;  // in milliseconds

constexpr std::array<std::string_view, 3> kLoads{"closed", "fixed", "poisson"};
constexpr std::array<std::string_view, 3> kDomains{"dmp", "mhp", "wsp"};
constexpr std::array<std::string_view, 2> kDdio{"on", "off"};
constexpr std::array<std::string_view, 2> kReceiveBuffers{"dram", "pm"};
constexpr std::array<std::string_view, 3> kTransports{"ib", "roce", "iwarp"};
constexpr std::array<std::string_view, 2> kUpdates{"single", "ordered"};
constexpr std::array<std::string_view, 2> kPersistence{"paper", "correct"};

const std::array<Parameter, 27> kParameters{{
    {"system", &Point::system},
    {"workload", &Point::workload},
    {"records", &Point::records, 0, kLargest},
    {"operations", &Point::operations, 1, kLargest, false},
    {"warmup", &Point::warmup, 0, kLargest, false},
    {"key_size", &Point::key_size, 1, 65535},
    {"value_size", &Point::value_size, 0, std::uint64_t{1} << 30},
    {"clients", &Point::clients, 1, 65535},
    {"client_nodes", &Point::client_nodes, 1, 65535, false},
    {"queue_depth", &Point::queue_depth, 1, 4096},
    {"server_threads", &Point::server_threads, 1, 1024},
    {"resizes", &Point::resizes, 0, 32},
    {"load", Parameter::Choice{&Point::load, kLoads}},
    {"offered_load", &Point::offered_load, 1, 1'000'000'000},
    {"duration_ms", &Point::duration_ms, 1, kHour, false},
    {"until_full", &Point::until_full, 0, 1, false},
    {"ramp_ms", &Point::ramp_ms, 1, kHour, false},
    {"steady_slope", &Point::steady_slope, 0, 1, false},
    {"steady_window_ms", &Point::steady_window_ms, 1, kHour, false},
    {"completion", Parameter::Completion{true, true}, 0, 0, false},
    {"check_history", &Point::check_history, 0, 1, false},
    {"domain", Parameter::Choice{&Point::domain, kDomains}},
    {"ddio", Parameter::Choice{&Point::ddio, kDdio}},
    {"receive_buffers", Parameter::Choice{&Point::receive_buffers, kReceiveBuffers}},
    {"transport", Parameter::Choice{&Point::transport, kTransports}},
    {"update", Parameter::Choice{&Point::update, kUpdates}},
    {"persistence", Parameter::Choice{&Point::persistence, kPersistence}},
}};

// "a", "b" or "c".
std::string alternatives(std::span<const std::string_view> values) {
  std::string text = fmt::format("\"{}\"", values.front());
  for (std::size_t i = 1; i < values.size(); ++i) {
    text += fmt::format("{}\"{}\"", i + 1 == values.size() ? " or " : ", ", values[i]);
  }
  return text;
}

}  // namespace

std::span<const Parameter> parameters() { return kParameters; }

const Parameter* find_parameter(std::string_view name) {
  for (const Parameter& parameter : kParameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

Axis::Value read_value(const Section& section, const toml::node& node, const Parameter& parameter,
                       const std::string& where) {
  if (std::holds_alternative<Parameter::Name>(parameter.target)) {
    std::string text = section.text_of(node, parameter.name);
    if (text.empty()) section.wrong(node, parameter.name, "must not be empty");
    return {std::move(text), where};
  }
  if (std::holds_alternative<Parameter::Completion>(parameter.target)) {
    std::string text = section.text_of(node, parameter.name);
    if (text != "event" && text != "polling") {
      section.wrong(node, parameter.name, "must be \"event\" or \"polling\"");
    }
    return {std::move(text), where};
  }
  if (const auto* choice = std::get_if<Parameter::Choice>(&parameter.target)) {
    std::string text = section.text_of(node, parameter.name);
    if (std::find(choice->values.begin(), choice->values.end(), text) == choice->values.end()) {
      section.wrong(node, parameter.name, "must be " + alternatives(choice->values));
    }
    return {std::move(text), where};
  }
  if (std::holds_alternative<Parameter::Flag>(parameter.target)) {
    return {std::uint64_t{section.flag_of(node, parameter.name) ? 1U : 0U}, where};
  }
  if (std::holds_alternative<Parameter::Share>(parameter.target)) {
    return {section.share_of(node, parameter.name), where};
  }
  return {section.number_of(node, parameter.name, parameter.least, parameter.most), where};
}

void assign(const Parameter& parameter, const Axis::Value& value, PointSettings& point) {
  if (const auto* number = std::get_if<Parameter::Number>(&parameter.target)) {
    point.** number = std::get<std::uint64_t>(value.value);
  } else if (const auto* optional = std::get_if<Parameter::OptionalNumber>(&parameter.target)) {
    point.** optional = std::get<std::uint64_t>(value.value);
  } else if (const auto* share = std::get_if<Parameter::Share>(&parameter.target)) {
    point.** share = std::get<double>(value.value);
  } else if (const auto* name = std::get_if<Parameter::Name>(&parameter.target)) {
    point.** name = {std::get<std::string>(value.value), value.where};
  } else if (const auto* flag = std::get_if<Parameter::Flag>(&parameter.target)) {
    point.** flag = std::get<std::uint64_t>(value.value) != 0;
  } else if (const auto* choice = std::get_if<Parameter::Choice>(&parameter.target)) {
    point.*choice->text = std::get<std::string>(value.value);
  } else {
    const auto role = std::get<Parameter::Completion>(parameter.target);
    const auto mode = std::get<std::string>(value.value) == "polling" ? CompletionMode::polling
                                                                      : CompletionMode::event;
    if (role.server) point.server_completion = mode;
    if (role.client) point.client_completion = mode;
  }
}

}  // namespace perdura::harness
