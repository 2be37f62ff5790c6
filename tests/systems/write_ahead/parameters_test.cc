// What cannot be is refused in one line that says what, and which values are possible.
#include <gtest/gtest.h>

#include "platform/base/error.h"
#include "systems/write_ahead/pool.h"

namespace perdura::systems::write_ahead {
namespace {

std::string refusal(const kv::KvConfig& config) {
  try {
    Parameters::of(config, "a-system", 4);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

TEST(Parameters, HaveDefaults) {
  const Parameters parameters = Parameters::of(kv::KvConfig{}, "a-system", 4);
  EXPECT_EQ(parameters.log_slots, 1024u);
  EXPECT_EQ(parameters.queue_depth, 32u);
}

TEST(Parameters, TheLogIsBoundedByBytes) {
  kv::KvConfig config;
  config.value_size = config.max_value_size = 64 * KiB;
  const Parameters parameters = Parameters::of(config, "a-system", 4);
  EXPECT_LT(parameters.log_slots * 64 * KiB, 4 * MiB + 1);
  EXPECT_GE(parameters.log_slots, 4u);
}

TEST(Parameters, UnknownOrImpossibleOnesAreRefused) {
  kv::KvConfig config;
  config.parameters = {{"log_slotz", 5}};
  EXPECT_NE(refusal(config).find("log_slotz"), std::string::npos);
  config.parameters = {{"log_slots", 3}};
  EXPECT_EQ(refusal(config), "a-system: log_slots is 3, but must be 4 to 16777216");
  config.parameters = {{"max_key_size", 8}};
  EXPECT_NE(refusal(config).find("must be 16 to 1023"), std::string::npos) << refusal(config);
  config.parameters = {};
  config.value_size = 100;
  EXPECT_NE(refusal(config).find("max_value_size"), std::string::npos);
  config.max_value_size = 100;
  EXPECT_EQ(refusal(config), "");
  config.key_size = 0;
  EXPECT_NE(refusal(config).find("key_size"), std::string::npos);
}

TEST(Shape, PartsOfThePoolDoNotOverlap) {
  kv::KvConfig config;
  config.records = 1000;
  const Shape shape(config, Parameters::of(config, "a-system", 2));
  EXPECT_GE(shape.log_offset(), shape.table_offset() + shape.table().size());
  EXPECT_GE(shape.objects_offset(), shape.log_offset() + shape.log_slots * shape.log_slot_size());
  EXPECT_EQ(shape.object_slot_size(), 128u);
  EXPECT_EQ(shape.object_offset(1000), shape.objects_offset() + 1000 * 128);
  EXPECT_EQ(shape.object_offset(1001), shape.object_offset(1000) + shape.long_object_slot_size());
  EXPECT_EQ(shape.pool_size(), shape.object_offset(shape.objects()));
}

TEST(ObjectAddress, FitsIntoTheWordOfAnEntry) {
  for (const std::uint32_t object : {0u, 1u, 0xFFFFFFFEu}) {
    for (const Bytes key : {Bytes{1}, kLongestKey}) {
      for (const Bytes value : {Bytes{0}, kLongestValue}) {
        const ObjectAddress address{object, static_cast<std::uint16_t>(key),
                                    static_cast<std::uint32_t>(value)};
        const ObjectAddress back = ObjectAddress::from(address.word());
        EXPECT_NE(address.word(), 0u);
        EXPECT_EQ(address.word() & kDeletedBit, 0u);
        EXPECT_EQ(back.object, object);
        EXPECT_EQ(back.key_length, key);
        EXPECT_EQ(back.value_length, value);
      }
    }
  }
}

}  // namespace
}  // namespace perdura::systems::write_ahead
