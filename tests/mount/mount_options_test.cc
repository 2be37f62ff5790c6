#include "mount/mount_options.h"

#include <gtest/gtest.h>

#include "platform/base/error.h"

namespace perdura::mount {
namespace {

TEST(MountOptions, OfMountItselfAreLeftOut) {
  EXPECT_EQ(parse_options("").list, "");
  EXPECT_EQ(parse_options("defaults").list, "");
  EXPECT_EQ(parse_options("defaults,nofail,x-systemd.automount,_netdev,noauto,user=me,users").list,
            "");
  EXPECT_EQ(parse_options("nosuid,comment=mine,nodev,lazytime,nodiratime,sync").list,
            "nosuid,nodev,sync");
  EXPECT_EQ(parse_options("xyz,defaultx").list, "xyz,defaultx");
}

TEST(MountOptions, ThatCannotBeDoneAreRefusedInOneLine) {
  for (const std::string option : {"remount", "strictatime"}) {
    try {
      parse_options("ro," + option);
      ADD_FAILURE() << option;
    } catch (const UsageError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("-o " + option + " is not offered: "))
          << error.what();
    }
  }
}

TEST(MountOptions, OfWhichTheLastOneCounts) {
  EXPECT_FALSE(parse_options("defaults").read_only);
  EXPECT_TRUE(parse_options("rw,ro").read_only);
  EXPECT_FALSE(parse_options("ro,noexec,rw").read_only);
  EXPECT_EQ(parse_options("ro,noexec,rw").list, "ro,noexec,rw");
  EXPECT_FALSE(parse_options("relatime,noatime").notes_reads);
  EXPECT_EQ(parse_options("relatime,noatime").list, "noatime");
  EXPECT_TRUE(parse_options("noatime,relatime").notes_reads);
  EXPECT_TRUE(parse_options("ro,nosymfollow").no_symbolic_links);
  EXPECT_FALSE(parse_options("nosymfollow,symfollow").no_symbolic_links);
  EXPECT_EQ(parse_options("ro,nosymfollow").list, "ro");
}

}  // namespace
}  // namespace perdura::mount
