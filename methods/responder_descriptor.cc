#include "methods/responder_descriptor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "platform/base/error.h"
#include "platform/base/json.h"

namespace perdura::methods {

namespace {

constexpr const char* kVersionKey = "perdura_responder";
constexpr int kDescriptorVersion = 1;

template <class Value>
using Words = std::vector<std::pair<std::string_view, Value>>;

// A value is written as the first of its words.
const Words<pmem::PersistenceDomain> kDomains{{"dmp", pmem::PersistenceDomain::dmp},
                                              {"mhp", pmem::PersistenceDomain::mhp},
                                              {"wsp", pmem::PersistenceDomain::wsp}};
const Words<pmem::Transport> kTransports{{"infiniband", pmem::Transport::infiniband},
                                         {"iwarp", pmem::Transport::iwarp},
                                         {"ib", pmem::Transport::infiniband},
                                         {"roce", pmem::Transport::infiniband}};
const Words<pmem::Medium> kMedia{{"dram", pmem::Medium::dram}, {"pm", pmem::Medium::pm}};

[[noreturn]] void refuse(std::string_view what) {
  throw UsageError(fmt::format(
      "the description of a responder {}; make it there with perdura doctor --json", what));
}

Json write(const Detected<bool>& property) {
  Json value;
  if (property.value) value = *property.value;
  return {{"value", value}, {"reason", property.reason}};
}

template <class Value>
Json write(const Detected<Value>& property, const Words<Value>& words) {
  Json value;
  for (const auto& [word, meaning] : words) {
    if (property.value == meaning && value.is_null()) value = word;
  }
  return {{"value", value}, {"reason", property.reason}};
}

// The value of a property if it is known; stores its reason in `reason`.
const Json* find(const Json& object, const char* name, std::string& reason) {
  const Json* const property = object.find(name);
  if (property == nullptr) {
    reason = "the description does not say";
    return nullptr;
  }
  if (!property->is_object()) refuse(fmt::format("has no object as \"{}\"", name));
  if (const Json* const said = property->find("reason"); said != nullptr && said->is_string()) {
    reason = said->get<std::string>();
  }
  const Json* const value = property->find("value");
  return value == nullptr || value->is_null() ? nullptr : value;
}

void read(const Json& object, const char* name, Detected<bool>& property) {
  const Json* const value = find(object, name, property.reason);
  if (value == nullptr) return;
  if (!value->is_boolean()) refuse(fmt::format("has as \"{}\" neither true nor false", name));
  property.value = value->get<bool>();
}

template <class Value>
void read(const Json& object, const char* name, const Words<Value>& words,
          Detected<Value>& property) {
  const Json* const value = find(object, name, property.reason);
  if (value == nullptr) return;
  std::string known;
  for (const auto& [word, meaning] : words) {
    if (value->is_string() && value->get<std::string>() == word) {
      property.value = meaning;
      return;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", word);
  }
  refuse(fmt::format("has an unknown \"{}\"; known are {}", name, known));
}

std::string text_of(const Json& object, const char* name) {
  const Json* const found = object.find(name);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

ResponderDescriptor describe(const Detection& found) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host.front() = '\0';
  return {.host = host.data(),
          .device = {},
          .domain = found.domain,
          .ddio = found.ddio,
          .receive_buffers = {std::nullopt, "the program that responds chooses"},
          .transport = found.transport,
          .flush = found.flush,
          .flush_persistence = found.flush_persistence,
          .atomic_write = found.atomic_write};
}

std::string to_json(const ResponderDescriptor& descriptor) {
  const Json object{
      {kVersionKey, kDescriptorVersion},
      {"host", descriptor.host},
      {"device", descriptor.device},
      {"domain", write(descriptor.domain, kDomains)},
      {"ddio", write(descriptor.ddio)},
      {"receive_buffers", write(descriptor.receive_buffers, kMedia)},
      {"transport", write(descriptor.transport, kTransports)},
      {"flush", write(descriptor.flush)},
      {"flush_persistence", write(descriptor.flush_persistence)},
      {"atomic_write", write(descriptor.atomic_write)},
  };
  // A host name need not be valid UTF-8.
  return object.dump(2) + "\n";
}

ResponderDescriptor responder_from_json(std::string_view text) {
  const Json object = Json::parse_or_null(text);
  if (object.is_null()) refuse("is not JSON");
  if (!object.is_object() || !object.contains(kVersionKey)) {
    refuse(fmt::format("has no \"{}\"", kVersionKey));
  }
  if (object[kVersionKey] != kDescriptorVersion) {
    refuse(fmt::format("has version {}, not {}", object[kVersionKey].dump(), kDescriptorVersion));
  }
  ResponderDescriptor result;
  result.host = text_of(object, "host");
  result.device = text_of(object, "device");
  read(object, "domain", kDomains, result.domain);
  read(object, "ddio", result.ddio);
  read(object, "receive_buffers", kMedia, result.receive_buffers);
  read(object, "transport", kTransports, result.transport);
  read(object, "flush", result.flush);
  read(object, "flush_persistence", result.flush_persistence);
  read(object, "atomic_write", result.atomic_write);
  return result;
}

std::vector<Configuration> configurations(const ResponderDescriptor& descriptor) {
  std::vector<Configuration> result;
  for (const auto transport : {pmem::Transport::infiniband, pmem::Transport::iwarp}) {
    if (descriptor.transport.value.value_or(transport) != transport) continue;
    for (const Configuration& each : configurations(transport)) {
      if (descriptor.domain.value.value_or(each.model.domain) == each.model.domain &&
          descriptor.ddio.value.value_or(each.model.ddio) == each.model.ddio &&
          descriptor.receive_buffers.value.value_or(each.receive_buffers) == each.receive_buffers) {
        result.push_back(each);
      }
    }
  }
  return result;
}

DeviceFeatures usable_features(const ResponderDescriptor& descriptor) {
  return {.flush = descriptor.flush.value.value_or(false),
          .flush_persistence = descriptor.flush_persistence.value.value_or(false),
          .atomic_write = descriptor.atomic_write.value.value_or(false)};
}

}  // namespace perdura::methods
