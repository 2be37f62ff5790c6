#include "harness/results/media_writes.h"

#include <gtest/gtest.h>

#include "harness/results/manifest.h"

namespace perdura::harness {
namespace {

constexpr const char* kTwoModules =
    "---DimmID=0x0001---\n"
    "   TotalMediaWrites=0x00000000000000000000000000000010\n"
    "---DimmID=0x0101---\n"
    "   TotalMediaWrites=0x000000000000000000000000adc83a0e\n";

TEST(MediaWrites, AreTheSumOfAllModulesInUnitsOf64Bytes) {
  EXPECT_EQ(media_writes_in(kTwoModules).bytes, (0x10 + 0xadc83a0eULL) * 64);
  EXPECT_EQ(media_writes_in("   TotalMediaWrites=12\r\n").bytes, 12U * 64);
}

TEST(MediaWrites, AreNoNumberWhereThereIsNone) {
  const auto reason = [](const MediaWrites& writes) {
    EXPECT_FALSE(writes.bytes.has_value());
    return writes.not_available;
  };
  EXPECT_EQ(reason(media_writes_in("\nNo PMem modules in the system.\nmore\n")),
            "ipmctl tells of no module: No PMem modules in the system.");
  EXPECT_EQ(reason(media_writes_in("TotalMediaWrites=N/A\n")),
            "ipmctl printed what is not a number: N/A");
  EXPECT_EQ(reason(media_writes_in("TotalMediaWrites=\n")),
            "ipmctl printed what is not a number: ");
  EXPECT_EQ(reason(media_writes("/no/such/ipmctl")),
            "ipmctl, which asks the modules, is not installed");
  EXPECT_EQ(reason(media_writes("echo root is needed; exit 1; true")),
            "ipmctl failed: root is needed");
  EXPECT_EQ(media_writes("echo TotalMediaWrites=0x2; true").bytes, 128U);
}

TEST(MediaWrites, BetweenTwoMomentsAreTheDifference) {
  EXPECT_EQ(written_between({100, ""}, {164, ""}), (MediaWrites{64, ""}));
  EXPECT_EQ(written_between({{}, "first"}, {{}, "second"}), (MediaWrites{{}, "first"}));
  EXPECT_EQ(written_between({1, ""}, {{}, "second"}), (MediaWrites{{}, "second"}));
  EXPECT_EQ(written_between({2, ""}, {1, ""}),
            (MediaWrites{{}, "the modules' counters went backward"}));
}

TEST(MediaWrites, StandInTheManifestWithTheirReason) {
  Manifest manifest;
  EXPECT_EQ(to_json(manifest).find("media_writes"), std::string::npos);
  manifest.media_writes = MediaWrites{128, ""};
  EXPECT_NE(to_json(manifest).find("\"media_writes\": {\n    \"bytes\": 128\n  }"),
            std::string::npos);
  manifest.media_writes = MediaWrites{{}, "none here"};
  EXPECT_NE(to_json(manifest).find("\"media_writes\": {\n    \"not_available\": \"none here\""),
            std::string::npos);
}

}  // namespace
}  // namespace perdura::harness
