// The extents of files of an ext4 in an image: at the places that they name, the image has the bytes
// of the files.
#include "bench/trace/file_extents.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <random>

#include "bench/trace/file_registration.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "services/fs/trace/trace_writer.h"
#include "tests/support/seed.h"
#include "tests/support/temporary_directory.h"

namespace perdura::bench {
namespace {

namespace files = std::filesystem;

struct ProgramResult {
  int code = 0;
  std::string out;
};

// Runs the program; what it writes to stderr belongs to the output, too.
ProgramResult run_perdura(const std::string& arguments) {
  FILE* const pipe = popen((std::string(PERDURA_PROGRAM) + " " + arguments + " 2>&1").c_str(), "r");
  ProgramResult result;
  std::array<char, 4096> part{};
  for (std::size_t got; (got = fread(part.data(), 1, part.size(), pipe)) > 0;) {
    result.out.append(part.data(), got);
  }
  result.code = WEXITSTATUS(pclose(pipe));
  return result;
}

class FileExtentsTest : public testing::Test {
 protected:
  FileExtentsTest() : folder_("/dev/shm", "extents") {}

  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root may mount an image";
    files::create_directory(on());
    const std::string make =
        fmt::format("truncate -s 64M {0} && mkfs.ext4 -q -b 4096 {0} && mount -o loop {0} {1}",
                    image(), on().string());
    if (std::system((make + " 2>/dev/null").c_str()) != 0) {
      GTEST_SKIP() << "an ext4 in an image cannot be mounted here";
    }
    mounted_ = true;
    files::remove(on() / "lost+found");
  }
  void TearDown() override { unmount(); }

  void unmount() {
    if (!std::exchange(mounted_, false)) return;
    ASSERT_EQ(umount2(on().c_str(), MNT_DETACH), 0);
  }
  files::path on() const { return folder_.path() / "on"; }
  std::string image() const { return (folder_.path() / "image").string(); }

  static void write_at(int file, Bytes at, const std::string& text) {
    ASSERT_EQ(pwrite(file, text.data(), text.size(), static_cast<off_t>(at)),
              static_cast<ssize_t>(text.size()));
  }
  int create(const std::string& name) const {
    const int file = open((on() / name).c_str(), O_WRONLY | O_CREAT, 0644);
    EXPECT_GE(file, 0);
    return file;
  }
  std::map<std::string, LaidOutFile> read() {
    std::map<std::string, LaidOutFile> all;
    sum_ = read_extents(on(), [&](const LaidOutFile& file) { all[file.name] = file; });
    return all;
  }

  test::TemporaryDirectory folder_;
  bool mounted_ = false;
  DirectoryExtents sum_;
};

std::string read_text(const files::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(FileExtentsTest, NameThePlacesOfTheBytes) {
  const std::uint32_t seed = test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  files::create_directory(on() / "d");
  // Parts of two files in turn, each of them written at once, so that both are fragmented.
  constexpr int kParts = 300;
  const std::array written{create("d/a"), create("b")};
  for (int i = 0; i < kParts; ++i) {
    std::string text(4 * KiB, ' ');
    for (char& each : text) each = static_cast<char>('a' + random() % 26);
    const Bytes at = static_cast<Bytes>(i) * 4 * KiB * (1 + random() % 2);
    for (const int file : written) {
      write_at(file, at, text);
      ASSERT_EQ(fdatasync(file), 0);
    }
  }
  for (const int file : written) close(file);
  close(create("empty"));
  const std::map<std::string, LaidOutFile> found = read();
  ASSERT_EQ(found.size(), 3U);
  std::map<std::string, std::string> texts;
  Bytes bytes = 0;
  for (const auto& [name, file] : found) {
    texts[name] = read_text(on() / name);
    EXPECT_EQ(file.size, texts[name].size());
    bytes += file.size;
  }
  EXPECT_EQ(sum_.files, 3U);
  EXPECT_EQ(sum_.bytes, bytes);
  EXPECT_EQ(sum_.extents, found.at("d/a").extents.size() + found.at("b").extents.size());
  EXPECT_GT(sum_.extents, 256U) << "more than one request gives";
  EXPECT_TRUE(found.at("empty").extents.empty());
  sync();
  unmount();
  std::ifstream image_file(image(), std::ios::binary);
  for (const auto& [name, file] : found) {
    std::string rebuilt(file.size, '\0');
    for (const FileExtent& extent : file.extents) {
      ASSERT_LE(extent.at, file.size);
      std::string part(std::min(extent.length, file.size - extent.at), '\0');
      image_file.seekg(static_cast<std::streamoff>(extent.target));
      image_file.read(part.data(), static_cast<std::streamsize>(part.size()));
      rebuilt.replace(extent.at, part.size(), part);
    }
    EXPECT_TRUE(rebuilt == texts[name]) << name;
  }
}

TEST_F(FileExtentsTest, AFileIsCountedOnceAndOnlyIfItIsBelow) {
  std::ofstream(on() / "a") << "text";
  files::create_hard_link(on() / "a", on() / "b");
  files::create_symlink(on() / "a", on() / "c");
  files::create_directory(on() / "d");
  files::create_directory_symlink(on(), on() / "d/up");
  files::create_directory(on() / "other");
  ASSERT_EQ(mount("tmpfs", (on() / "other").c_str(), "tmpfs", 0, nullptr), 0);
  std::ofstream(on() / "other/e") << "text";
  const auto found = read();
  umount2((on() / "other").c_str(), MNT_DETACH);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.begin()->first, "a");
  EXPECT_EQ(sum_.files, 1U);
}

TEST_F(FileExtentsTest, TheCommandCountsThemAndReplaysATrace) {
  const std::string data(1 * MiB, 'x');
  std::ofstream(on() / "big") << data;
  std::ofstream(on() / "small, \"it\"") << "text";
  const std::string trace = (folder_.path() / "trace").string();
  fs::TraceWriter writer(trace);
  writer.add_file("big", data.size());
  writer.add_file("gone", 4 * KiB);
  for (Bytes at = 0; at < data.size(); at += 4 * KiB) {
    writer.add({fs::TraceKind::read, 0, at, 4 * KiB});
  }
  writer.add({fs::TraceKind::read, 1, 0, 4 * KiB});
  writer.finish();
  const std::string out = (folder_.path() / "out").string();
  const ProgramResult result = run_perdura(
      fmt::format("probe --path {} --trace {} --out {} --json", on().string(), trace, out));
  ASSERT_EQ(result.code, 0) << result.out;
  const Json probe = Json::parse(result.out);
  EXPECT_EQ(probe.at("files").get<int>(), 2);
  EXPECT_EQ(probe.at("schemes")[0].at("entries").get<int>(), 257);
  EXPECT_EQ(probe.at("schemes")[1].at("entries").get<int>(), 2);
  const auto extents = probe.at("extents").get<std::uint64_t>();
  const auto ranges = probe.at("schemes")[2].at("entries").get<std::uint64_t>();
  EXPECT_GE(ranges, 2U);
  EXPECT_LE(ranges, extents) << "extents that adjoin are one range";
  const Json& traced = probe.at("trace");
  EXPECT_EQ(traced.at("files_not_there").get<int>(), 1);
  EXPECT_EQ(traced.at("schemes")[0].at("misses").get<int>(), 257);
  EXPECT_EQ(traced.at("schemes")[2].at("misses").get<std::uint64_t>(), ranges);
  EXPECT_EQ(traced.at("schemes")[2].at("look_ups").get<int>(), 257);
  const std::string csv = read_text(files::path(out) / "extents.csv");
  EXPECT_NE(csv.find("\nbig,1048576,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\n\"small, \"\"it\"\"\",4,1,1,1,1\n"), std::string::npos) << csv;
}

TEST(FileExtents, AFileSystemWithoutFiemapIsRefusedInOneLine) {
  const test::TemporaryDirectory folder("/dev/shm", "extents");
  std::ofstream(folder.path() / "a") << "text";
  const ProgramResult result = run_perdura("probe --path " + folder.path().string());
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.out.find("does not say where files are"), std::string::npos) << result.out;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
  EXPECT_THROW(read_extents(folder.path() / "nothing", {}), UsageError);
  EXPECT_THROW(read_extents(folder.path() / "a", {}), UsageError);
}

TEST(FileExtents, WithoutADeviceNothingIsRegisteredAndALineSaysSo) {
  const test::TemporaryDirectory folder("/dev/shm", "extents");
  std::ofstream(folder.path() / "a") << "text";
  FileRegistration registration("");
  registration.add(folder.path() / "a", 4);
  const std::string text = registration.text();
  EXPECT_TRUE(text.starts_with("nothing was registered: ") || text.starts_with("registering 1 "))
      << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace perdura::bench
