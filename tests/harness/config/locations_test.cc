#include "harness/config/locations.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "platform/base/error.h"
#include "tests/harness/temporary_folder.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

class LocationsTest : public testing::Test {
 protected:
  void SetUp() override {
    touch("first/profiles/a.toml");
    touch("first/profiles/README.md");
    touch("second/profiles/a.toml");
    touch("second/profiles/b.toml");
    touch("second/workloads/workloada");
    touch("second/workloads/.hidden");
    touch("second/workloads/README.md");
  }
  void touch(const std::string& file) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << "\n";
  }
  std::string error_of(FileKind kind, const Located& name) {
    try {
      locations().find(kind, name);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }
  Locations locations() { return Locations({root_ / "first", root_ / "second"}); }

  test::TemporaryFolder folder_;
  const fs::path& root_ = folder_.path();
};

TEST_F(LocationsTest, TheFirstPlaceThatHasItWins) {
  EXPECT_EQ(locations().find(FileKind::profile, {"a", ""}), root_ / "first/profiles/a.toml");
  EXPECT_EQ(locations().find(FileKind::profile, {"b", ""}), root_ / "second/profiles/b.toml");
}

TEST_F(LocationsTest, PathsAreTakenAsTheyAre) {
  const std::string path = (root_ / "second/workloads/workloada").string();
  EXPECT_EQ(locations().find(FileKind::workload, {path, ""}), path);
}

TEST_F(LocationsTest, FromAnotherFolderRelativePathsBeginThere) {
  const Locations others = Locations({"first", root_ / "second"}).from(root_);
  EXPECT_EQ(others.find(FileKind::profile, {"a", ""}), root_ / "first/profiles/a.toml");
  EXPECT_EQ(others.find(FileKind::profile, {"b", ""}), root_ / "second/profiles/b.toml");
  EXPECT_EQ(others.find(FileKind::profile, {"second/profiles/b.toml", ""}),
            root_ / "second/profiles/b.toml");
  const std::string path = (root_ / "second/workloads/workloada").string();
  EXPECT_EQ(others.find(FileKind::workload, {path, ""}), path);
}

TEST_F(LocationsTest, ListsEachNameOnce) {
  EXPECT_EQ(locations().names(FileKind::profile), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(locations().names(FileKind::workload), (std::vector<std::string>{"workloada"}));
  EXPECT_TRUE(locations().names(FileKind::experiment).empty());
}

TEST_F(LocationsTest, UnknownNamesComeWithTheKnownOnes) {
  EXPECT_EQ(error_of(FileKind::profile, {"c", "x.toml:3"}),
            "x.toml:3: unknown profile 'c'; known are: a, b");
  EXPECT_EQ(error_of(FileKind::experiment, {"c", ""}), "unknown experiment 'c'; known are: none");
  EXPECT_EQ(error_of(FileKind::experiment, {"sub/c.toml", ""}),
            "experiment sub/c.toml: there is no such file");
}

TEST_F(LocationsTest, AFileOfThatNameIsNamedAsThePathThatMeansIt) {
  touch("mine");
  touch("own.toml");
  const auto error_from = [&](FileKind kind, const std::string& name) -> std::string {
    try {
      locations().from(root_).find(kind, {name, "x.toml:3"});
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_from(FileKind::workload, "mine"),
            "x.toml:3: unknown workload 'mine'; if the file here is meant, write ./mine (perdura "
            "list workloads names the others)");
  EXPECT_EQ(error_from(FileKind::profile, "own"),
            "x.toml:3: unknown profile 'own'; if the file here is meant, write ./own.toml (perdura "
            "list profiles names the others)");
  // A known name means what it names, whatever else is here.
  touch("a.toml");
  EXPECT_EQ(locations().from(root_).find(FileKind::profile, {"a", ""}),
            root_ / "first/profiles/a.toml");
}

TEST_F(LocationsTest, FindFoldersInTheSameOrder) {
  EXPECT_EQ(locations().first_existing("workloads"), root_ / "second/workloads");
  EXPECT_EQ(locations().first_existing("plots"), "plots");
}

// A folder of that name that a user has for something else is passed over.
TEST_F(LocationsTest, PlotsAreWhereTheirCommonPartIs) {
  touch("first/plots/mine.gp");
  touch("second/plots/style.gp");
  EXPECT_EQ(locations().plots(), root_ / "second/plots");
}

TEST_F(LocationsTest, AProgramsOwnFilesAreInItsPrefixIfItWasInstalled) {
  touch("prefix/bin/perdura");
  EXPECT_EQ(Locations::of_program(root_ / "prefix/bin/perdura"), PERDURA_SOURCE_DIR);
  touch("prefix/share/perdura/experiments/a.toml");
  EXPECT_EQ(Locations::of_program(root_ / "prefix/bin/perdura"), root_ / "prefix/share/perdura");
}

TEST_F(LocationsTest, AFolderIsNoFile) {
  EXPECT_EQ(
      error_of(FileKind::profile, {(root_ / "second").string(), "x.toml:3"}),
      fmt::format("x.toml:3: profile {}: is a folder; give a file", (root_ / "second").string()));
}

TEST(PlainName, IsWhatResultsShow) {
  EXPECT_EQ(plain_name(FileKind::workload, "dir/workloada"), "workloada");
  EXPECT_EQ(plain_name(FileKind::profile, "dir/erda.toml"), "erda");
}

}  // namespace
}  // namespace perdura::harness
