// The description of a responder, made on one machine and read on another.
#include "methods/responder_descriptor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "platform/base/error.h"

namespace perdura::methods {
namespace {

template <class Value>
void expect_equal(const Detected<Value>& a, const Detected<Value>& b) {
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.reason, b.reason);
}

constexpr std::optional<bool> kTruth[] = {std::nullopt, false, true};

TEST(ResponderDescriptor, IsReadAsItWasWritten) {
  std::vector<std::optional<Configuration>> cells{std::nullopt};
  for (const auto transport : {pmem::Transport::infiniband, pmem::Transport::iwarp}) {
    for (const Configuration& each : configurations(transport)) cells.emplace_back(each);
  }
  for (const auto& cell : cells) {
    for (const auto feature : kTruth) {
      ResponderDescriptor written{.host = "node\"7\xff", .device = "mlx5_0"};
      if (cell) {
        written.domain = {cell->model.domain, "region0 says so"};
        written.ddio = {cell->model.ddio, "a line\nand another"};
        written.receive_buffers = {cell->receive_buffers, "stated"};
        written.transport = {cell->model.transport, "mlx5_0 is one"};
      }
      written.flush = {feature, "f"};
      written.flush_persistence = {feature, "p"};
      written.atomic_write = {feature, "a"};
      const ResponderDescriptor read = responder_from_json(to_json(written));
      EXPECT_EQ(read.device, written.device);
      expect_equal(read.domain, written.domain);
      expect_equal(read.ddio, written.ddio);
      expect_equal(read.receive_buffers, written.receive_buffers);
      expect_equal(read.transport, written.transport);
      expect_equal(read.flush, written.flush);
      expect_equal(read.flush_persistence, written.flush_persistence);
      expect_equal(read.atomic_write, written.atomic_write);
      if (cell) {
        EXPECT_EQ(configurations(read), std::vector{*cell});
      } else {
        EXPECT_EQ(configurations(read).size(), 24U) << "what is not known may be anything";
      }
    }
  }
}

TEST(ResponderDescriptor, HasNoFeatureThatIsNotKnown) {
  ResponderDescriptor descriptor = responder_from_json(R"({"perdura_responder": 1})");
  EXPECT_FALSE(usable_features(descriptor).flush);
  EXPECT_FALSE(usable_features(descriptor).flush_persistence);
  EXPECT_FALSE(usable_features(descriptor).atomic_write);
  EXPECT_EQ(descriptor.domain.reason, "the description does not say");
  descriptor.atomic_write.value = true;
  EXPECT_TRUE(usable_features(descriptor).atomic_write);
}

TEST(ResponderDescriptor, TellsWhatWasDetected) {
  Detection found;
  found.domain = {pmem::PersistenceDomain::mhp, "region0 says cpu_cache"};
  found.flush = {true, "mlx5_0 has FLUSH"};
  const ResponderDescriptor descriptor = describe(found);
  EXPECT_FALSE(descriptor.host.empty());
  expect_equal(descriptor.domain, found.domain);
  expect_equal(descriptor.flush, found.flush);
  EXPECT_FALSE(descriptor.receive_buffers.value);
}

TEST(ResponderDescriptor, RefusesWhatIsNone) {
  const std::pair<const char*, const char*> kBad[] = {
      {"", "is not JSON"},
      {"{\"perdura_responder\": 1", "is not JSON"},
      {"[1]", "has no \"perdura_responder\""},
      {R"({"domain": {"value": "dmp"}})", "has no \"perdura_responder\""},
      {R"({"perdura_responder": 2})", "has version 2, not 1"},
      {R"({"perdura_responder": 1, "domain": "dmp"})", "has no object as \"domain\""},
      {R"({"perdura_responder": 1, "domain": {"value": "adr"}})",
       "has an unknown \"domain\"; known are dmp, mhp, wsp"},
      {R"({"perdura_responder": 1, "transport": {"value": 1}})", "has an unknown \"transport\""},
      {R"({"perdura_responder": 1, "ddio": {"value": "off"}})",
       "has as \"ddio\" neither true nor false"},
  };
  for (const auto& [text, what] : kBad) {
    try {
      responder_from_json(text);
      ADD_FAILURE() << text;
    } catch (const UsageError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(what), std::string::npos) << message;
      EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 0);
    }
  }
}

}  // namespace
}  // namespace perdura::methods
