#include "platform/base/device_section.h"

#include <array>

namespace perdura {

namespace {

constexpr std::array kDeviceKeys = std::to_array<Parameter>({
    {.name = "device", .type = Name{}},
    {.name = "port", .type = Count{1, 255}},
    {.name = "gid_index", .type = Count{0, 65535}},
    {.name = "odp", .type = Flag{}, .usual = false},
});

}  // namespace

DeviceSection DeviceSection::read(const TomlSection& section) {
  section.allow_only(names_of(kDeviceKeys));
  ParameterValues values(kDeviceKeys);
  section.read(values);
  DeviceSection device{.name = values.text("device"), .on_demand_paging = values.flag("odp")};
  if (const auto port = values.number_if_given("port")) device.port = static_cast<unsigned>(*port);
  if (const auto index = values.number_if_given("gid_index")) {
    device.gid_index = static_cast<unsigned>(*index);
  }
  return device;
}

}  // namespace perdura
