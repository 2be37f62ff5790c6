// perdura fs: exit codes, and what it says in one line.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/harness/cli/program.h"
#include "tests/harness/temporary_folder.h"

namespace perdura {
namespace {

class FsCommand : public testing::Test {
 protected:
  std::string place(const std::string& name) const { return (folder_.path() / name).string(); }
  void make(const std::string& name) const {
    const Outcome made = perdura("fs mkfs nova " + place(name) + " --size 4MiB");
    ASSERT_EQ(made.code, 0) << made.text;
  }
  static void expect(const std::string& arguments, int code, const std::string& text) {
    const Outcome outcome = perdura("fs " + arguments);
    EXPECT_EQ(outcome.code, code) << arguments;
    EXPECT_EQ(outcome.text, text + '\n') << arguments;
  }

  test::TemporaryFolder folder_;
};

TEST_F(FsCommand, CheckTellsDamageFromWhatIsNoFileSystem) {
  make("home");
  const std::string home = place("home");
  expect("check " + home, 0, home + ": nothing is damaged");
  std::filesystem::resize_file(home, 2 * 1024 * 1024);
  const std::string cut = "has 2097152 bytes, but its superblock says 4194304";
  expect("check " + home, 1, "superblock: The file system " + cut + ".");
  expect("dump " + home, 2, "perdura: 'home' " + cut);
  std::ofstream(place("empty")).close();
  std::ofstream(place("text")) << "text";
  for (const std::string command : {"check ", "dump "}) {
    expect(command + place("empty"), 2,
           "perdura: " + place("empty") + " is not a region: not a file, or empty");
    expect(command + place("text"), 2, "perdura: 'text' is no file system of nova");
    expect(command + place("none"), 2,
           "perdura: " + place("none") + ": there is no such file; make it with 'perdura fs mkfs'");
    expect(command + "''", 2,
           "perdura: place: must not be empty (see 'perdura fs " + command + "--help')");
  }
}

TEST_F(FsCommand, APlaceThatMayNotBeWrittenIsReadOnly) {
  make("home");
  const std::string home = place("home");
  std::filesystem::permissions(home, std::filesystem::perms(0444));
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  const std::string as_user =
      geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups " : "";
  if (shell(as_user + PERDURA_PROGRAM " list sites").code != 0) GTEST_SKIP() << "no other user";
  const auto run = [&](const std::string& arguments) {
    return shell(as_user + perdura_command("fs " + arguments));
  };
  EXPECT_EQ(run("check " + home).text, home + ": nothing is damaged\n");
  EXPECT_EQ(run("dump " + home + " 1").code, 0);
  const Outcome repair = run("check --repair " + home);
  EXPECT_EQ(repair.code, 2);
  EXPECT_EQ(repair.text, "perdura: cannot open " + home + ": Permission denied\n");
}

TEST_F(FsCommand, ADirectoryThatOneMayNotUseIsSaidInOneLine) {
  if (geteuid() != 0 || access("/dev/fuse", R_OK | W_OK) != 0 ||
      shell("command -v fusermount3").code != 0) {
    GTEST_SKIP() << "needs root, another user and fusermount3";
  }
  make("home");
  std::filesystem::permissions(place("home"), std::filesystem::perms(0666));
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  std::filesystem::create_directory(place("on"));
  const Outcome outcome =
      shell("setpriv --reuid 65534 --regid 65534 --clear-groups " +
            perdura_command("fs mount nova " + place("home") + " " + place("on")));
  if (outcome.code == 127 || outcome.code == 126) GTEST_SKIP() << outcome.text;
  // Where the device is root's alone, as on a host without udev, fusermount3 stops at it first.
  const bool others_may_mount =
      (std::filesystem::status("/dev/fuse").permissions() & std::filesystem::perms::others_write) !=
      std::filesystem::perms::none;
  const std::string reason = others_may_mount
                                 ? "user has no write access to mountpoint " + place("on")
                                 : "failed to open /dev/fuse: Permission denied";
  EXPECT_EQ(outcome.text, "perdura: " + place("on") + ": cannot be mounted on: " + reason + "\n");
}

TEST_F(FsCommand, AFileSystemThatHasServersIsNotInOnePlace) {
  expect("mkfs orion " + place("home") + " --size 4MiB", 2,
         "perdura: --size is in the configuration file; leave it out");
  EXPECT_FALSE(std::filesystem::exists(place("home")));
  make("home");
  for (const std::string command : {"check", "dump"}) {
    expect(command + " --system orion " + place("home"), 2,
           "perdura: 'home' is not the metadata of an Orion file system, or its superblock is "
           "damaged; "
           "give the file in the directory of the metadata server that has the file system's name");
  }
  expect("serve nova " + place("home") + " mds", 2,
         "perdura: nova has no servers; mount it where its memory is");
}

// It could be the file system itself.
TEST_F(FsCommand, ATraceReplacesNoFile) {
  make("home");
  std::filesystem::create_directory(place("on"));
  expect("mount nova " + place("home") + " " + place("on") + " --trace " + place("home"), 2,
         "perdura: --trace " + place("home") + ": exists already; give a new file");
  expect("check " + place("home"), 0, place("home") + ": nothing is damaged");
}

TEST_F(FsCommand, ADeviceThatIsNotThereBecomesNoDirectory) {
  const std::string device = "/dev/dax98.7";
  std::ofstream(place("home.toml"))
      << "name = \"home\"\nsize = 1_048_576\nplatform = \"shm\"\n[servers.mds]\nrole = "
         "\"metadata\"\ndirectory = \""
      << device << "/mds\"\n[servers.left]\nrole = \"store\"\ndirectory = \"" << place("left")
      << "\"\n";
  for (const std::string command : {"mkfs orion ", "serve orion "}) {
    const Outcome outcome =
        perdura("fs " + command + place("home.toml") + (command[0] == 's' ? " mds" : ""));
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_NE(outcome.text.find(device + "/mds\": there is no such device"), std::string::npos)
        << outcome.text;
    EXPECT_FALSE(std::filesystem::exists(device));
  }
}

TEST_F(FsCommand, TheMetadataOfServersIsCheckedAndDumpedByItsFile) {
  const std::string mds = place("mds");
  std::ofstream(place("home.toml"))
      << "name = \"home\"\nsize = 1_048_576\n[servers.mds]\nrole = \"metadata\"\naddress = "
         "\"127.0.0.1:1\"\ndirectory = \""
      << mds << "\"\n[servers.left]\nrole = \"store\"\naddress = \"127.0.0.1:2\"\ndirectory = \""
      << place("left") << "\"\n";
  ASSERT_EQ(perdura("fs mkfs orion " + place("home.toml")).code, 0);
  expect("check --system orion " + mds + "/home", 0, mds + "/home: nothing is damaged");
  EXPECT_EQ(perdura("fs dump --system orion " + mds + "/home 1").code, 0);
  EXPECT_EQ(perdura("fs check --system orion " + place("left") + "/home.pages").code, 2);
  std::filesystem::resize_file(mds + "/home", 65536);
  EXPECT_EQ(perdura("fs check --system orion " + mds + "/home").code, 1);
}

// The configuration file of a file system with servers; each mistake is one line that names its
// place.
TEST_F(FsCommand, AMistakeInTheConfigurationOfServersIsOneLine) {
  const std::string mds =
      "[servers.mds]\nrole = \"metadata\"\naddress = \"127.0.0.1:1\"\ndirectory = \"/m\"\n";
  const std::string store =
      "[servers.left]\nrole = \"store\"\naddress = \"127.0.0.1:2\"\ndirectory = \"/l\"\n";
  const std::string top = "name = \"home\"\nsize = 1_048_576\n";
  const std::string file = place("home.toml");
  const auto refused = [&](const std::string& text, const std::string& why,
                           const std::string& server = "mds") {
    std::ofstream(file) << text;
    const Outcome outcome = perdura("fs serve orion " + file + " " + server);
    EXPECT_EQ(outcome.code, 2) << text;
    EXPECT_TRUE(outcome.text.starts_with("perdura: " + file + why)) << outcome.text;
    EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
  };
  refused(top + mds + store, ": there is no server 'right'; there are: left, mds", "right");
  refused("size = 1\n" + mds,
          ":1: name is missing; add the name of the file system, name = \"home\"");
  refused("name = \"home\"\n" + mds,
          ":1: size is missing; add the bytes of data of each group, size = ...");
  refused(top, ":1: servers is missing; add one, [servers.NAME]");
  refused(top + mds, ": orion: needs at least one data store");
  refused(top + store, ": orion: needs one metadata server, and has 0");
  refused(top + "platform = \"rdma\"\n" + mds + store,
          ":3: platform must be \"sockets\", \"verbs\" or \"shm\", but is \"rdma\"");
  refused(top + "platform = \"shm\"\n" + mds + store,
          ":10: address in [servers.left] is for other platforms than \"shm\", where all processes "
          "are on one host; leave it out");
  refused(top + "platform = \"shm\"\n[verbs]\nport = 1\n" + mds + store,
          ":4: verbs is for platform = \"verbs\", which the file does not say");
  refused(top + "[verbs]\nport = 1\n" + mds + store,
          ":3: verbs is for platform = \"verbs\", which the file does not say");
  refused(top + "platform = \"verbs\"\n[verbs]\nport = 0\n" + mds + store,
          ":5: port in [verbs] must be a whole number from 1 to 255, but is 0");
  refused(top + "[parameters]\ninode = 7\n" + mds + store,
          ":4: unknown key 'inode' in [parameters] (did you mean 'inodes'?)");
  refused(top + mds + "prot = 3\n" + store,
          ":7: unknown key 'prot' in [servers.mds]; known are: role, group, address, directory");
  refused(top + mds + "group = 0\n" + store,
          ":7: group in [servers.mds] is for stores only; leave it out");
  refused(
      top + "[servers.mds]\nrole = \"mds\"\n",
      ":4: role in [servers.mds] must be \"metadata\", \"mirror\" or \"store\", but is \"mds\"");
  refused(top + "[servers.mds]\nrole = \"metadata\"\naddress = \"here\"\n",
          ":5: address in [servers.mds] must be a host's name or IPv4 address and a port, as in "
          "\"10.0.0.1:4710\"");
  refused(top + mds +
              "[servers.left]\nrole = \"store\"\naddress = \"127.0.0.1:2\"\ndirectory = \"/m\"\n",
          ":6: directory in [servers.mds] is \"/m\", as that of [servers.left] of the same host");
  refused(top + mds +
              "[servers.left]\nrole = \"store\"\naddress = \"127.0.0.1:2\"\ndirectory = "
              "\"/x/..//m/\"\n",
          ":6: directory in [servers.mds] is \"/m\", as that of [servers.left] of the same host");
  refused(top + mds +
              "[servers.left]\nrole = \"store\"\naddress = \"127.0.0.1:2\"\ndirectory = "
              "\"/l\\u0000\"\n",
          ":10: directory in [servers.left] has a character that names of files cannot have");
}

TEST_F(FsCommand, NumbersAreThoseThatThereCanBe) {
  // Before anything else is looked at.
  expect("mount nova " + place("none") + " " + place("nowhere") + " --threads 65", 2,
         "perdura: nova: threads is 65, but must be 1 to 64");
  make("home");
  const std::string home = place("home");
  expect("dump " + home + " 0", 2, "perdura: there can be no inode 0, only 1 to 512");
  expect("dump " + home + " 513", 2, "perdura: there can be no inode 513, only 1 to 512");
  expect("dump " + home + " -1", 2,
         "perdura: inode: must be a whole number from 0 to 18446744073709551615, not '-1' (see "
         "'perdura fs dump --help')");
  expect("mkfs nova " + place("other") + " --size -1", 2,
         "perdura: --size: -1 is negative (see 'perdura fs mkfs --help')");
  // On a disk, a second line says that its memory is not taken yet.
  const auto made = [&](const std::string& name, const std::string& arguments) {
    const Outcome outcome = perdura("fs mkfs nova " + place(name) + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    return outcome.text.substr(0, outcome.text.find('\n'));
  };
  EXPECT_EQ(made("other", " --size 1000001"),
            place("other") + ": an empty file system nova of 999424 bytes");
  EXPECT_EQ(made("half", " --size 1.5MiB"),
            place("half") + ": an empty file system nova of 1572864 bytes");
  EXPECT_EQ(made("few", " --size 1MiB --inodes 17"),
            place("few") + ": an empty file system nova of 1048576 bytes");
  expect("dump " + place("few") + " 18", 2, "perdura: there can be no inode 18, only 1 to 17");
  for (const std::string size : {"1.5.5MiB", ".", "1.5XiB", "99999999999.5GiB"}) {
    const Outcome outcome = perdura("fs mkfs nova " + place("none") + " --size " + size);
    EXPECT_EQ(outcome.code, 2) << size;
    EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
  }
}

}  // namespace
}  // namespace perdura
