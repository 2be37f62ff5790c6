#include "harness/text/whole_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/harness/temporary_folder.h"

namespace perdura::harness {
namespace {

// Also such sizes at which a buffer is just full.
TEST(WholeFile, IsReadToTheLastByteWhateverItsSize) {
  const test::TemporaryFolder folder;
  for (const std::size_t size : {0, 1, 4095, 4096, 4097, 100'000}) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>(i * 31 + i / 256));
    const auto file = folder.path() / "file";
    std::ofstream(file, std::ios::binary) << bytes;
    EXPECT_EQ(read_whole(file), bytes) << size;
  }
}

// The kernel's files say that they are empty.
TEST(WholeFile, IsReadThoughItSaysThatItIsEmpty) {
  const std::filesystem::path file = "/proc/cpuinfo";
  ASSERT_EQ(std::filesystem::file_size(file), 0u);
  std::ifstream input(file);
  std::string first;
  std::getline(input, first);
  const auto bytes = read_whole(file);
  ASSERT_TRUE(bytes.has_value());
  EXPECT_GT(bytes->size(), 0u);
  EXPECT_TRUE(bytes->starts_with(first));
}

TEST(WholeFile, IsNothingIfItCannotBeRead) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(read_whole(folder.path() / "missing"), std::nullopt);
  EXPECT_EQ(read_whole(folder.path()), std::nullopt);
}

}  // namespace
}  // namespace perdura::harness
