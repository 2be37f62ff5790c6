// Random operations on one file, through read and write, memory maps, and descriptors with and
// without the kernel's cache, compared with what the file should hold; of a system with servers,
// through two mounts.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>

#include "tests/mount/two_mounts.h"
#include "tests/support/seed.h"

namespace perdura::test {
namespace {

constexpr std::size_t kLongest = 256 * 1024;
constexpr std::size_t kMost = 64 * 1024;  // of an operation
constexpr std::size_t kPage = 4096;
constexpr int kSteps = 10'000;
constexpr int kBetweenWhole = 500;

class FileUnderTest {
 public:
  // `other`: the same file, by another mount if there is one.
  FileUnderTest(const std::string& path, const std::string& other, unsigned seed)
      : random_(seed),
        file_(open(path.c_str(), O_CREAT | O_RDWR, 0644)),
        direct_(open(other.c_str(), O_RDWR | O_DIRECT)),
        buffer_(static_cast<char*>(std::aligned_alloc(kPage, kLongest))) {}
  ~FileUnderTest() {
    close(file_);
    close(direct_);
    std::free(buffer_);
  }
  FileUnderTest(const FileUnderTest&) = delete;
  FileUnderTest& operator=(const FileUnderTest&) = delete;

  bool is_open() const { return file_ >= 0 && direct_ >= 0; }

  // Makes one operation. Returns what is wrong, or nothing.
  std::string step() {
    const std::uint64_t what = random_() % 12;
    std::size_t begin = random_() % kLongest;
    std::size_t size = std::min(1 + random_() % kMost, kLongest - begin);
    if (random_() % 4 == 0) begin -= begin % kPage;
    const std::string text = "operation " + std::to_string(what) + " at " + std::to_string(begin) +
                             ", " + std::to_string(size) + " bytes, of " +
                             std::to_string(expected_.size()) + ": ";
    bool done = true;
    switch (what) {
      case 0:
      case 1:
        done = write(file_, begin, size);
        break;
      case 2:
        begin -= begin % kPage;
        size = std::max(size - size % kPage, kPage);
        done = write(direct_, begin, std::min(size, kLongest - begin));
        break;
      case 3:
        done = read(file_, begin, size);
        break;
      case 4:
        begin -= begin % kPage;
        size = std::max(size - size % kPage, kPage);
        done = read(direct_, begin, std::min(size, kLongest - begin));
        break;
      case 5:
        expected_.resize(begin);
        done = ftruncate(file_, static_cast<off_t>(begin)) == 0;
        break;
      case 6:
        done = allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, size);
        clear(begin, size);
        break;
      case 7:
        done = allocate(FALLOC_FL_ZERO_RANGE, begin, size);
        expected_.resize(std::max(expected_.size(), begin + size));
        clear(begin, size);
        break;
      case 8:
        done = allocate(FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, begin, size);
        clear(begin, size);
        break;
      case 9:
        done = allocate(0, begin, size);
        expected_.resize(std::max(expected_.size(), begin + size));
        break;
      case 10:
        done = map(begin, size, true);
        break;
      default:
        done = map(begin, size, false);
    }
    struct stat found {};
    fstat(file_, &found);
    if (!done) return text + "wrong, " + std::strerror(errno);
    if (found.st_size != static_cast<off_t>(expected_.size())) return text + "another size";
    return "";
  }

  bool is_whole() { return read(file_, 0, kLongest); }

 private:
  char next_fill() { return static_cast<char>('a' + (fill_++ % 26)); }

  void clear(std::size_t begin, std::size_t size) {
    const std::size_t end = std::min(begin + size, expected_.size());
    if (begin < end) std::fill(expected_.begin() + begin, expected_.begin() + end, '\0');
  }

  bool write(int file, std::size_t begin, std::size_t size) {
    std::fill_n(buffer_, size, next_fill());
    expected_.resize(std::max(expected_.size(), begin + size));
    std::copy_n(buffer_, size, expected_.begin() + begin);
    return pwrite(file, buffer_, size, static_cast<off_t>(begin)) == static_cast<ssize_t>(size);
  }

  bool read(int file, std::size_t begin, std::size_t size) {
    const std::size_t is_there =
        begin >= expected_.size() ? 0 : std::min(size, expected_.size() - begin);
    errno = 0;
    return pread(file, buffer_, size, static_cast<off_t>(begin)) ==
               static_cast<ssize_t>(is_there) &&
           std::equal(buffer_, buffer_ + is_there,
                      expected_.begin() + std::min(begin, expected_.size()));
  }

  bool allocate(int mode, std::size_t begin, std::size_t size) {
    return fallocate(file_, mode, static_cast<off_t>(begin), static_cast<off_t>(size)) == 0;
  }

  // Through a shared mapping of what there is of the range.
  bool map(std::size_t begin, std::size_t size, bool writes) {
    if (begin >= expected_.size()) return true;
    size = std::min(size, expected_.size() - begin);
    const std::size_t first = begin - begin % kPage;
    const std::size_t length = begin + size - first;
    void* const mapped =
        mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file_, static_cast<off_t>(first));
    if (mapped == MAP_FAILED) return false;
    char* const at = static_cast<char*>(mapped) + (begin - first);
    bool same = std::equal(at, at + size, expected_.begin() + begin);
    if (writes) {
      std::fill_n(at, size, next_fill());
      std::copy_n(at, size, expected_.begin() + begin);
      // Some stay in the kernel's cache.
      if (random_() % 2 == 0) same = msync(mapped, length, MS_SYNC) == 0 && same;
    }
    munmap(mapped, length);
    return same;
  }

  std::mt19937_64 random_;
  int file_;
  int direct_;  // past the kernel's cache
  char* buffer_;
  unsigned fill_ = 0;
  std::vector<char> expected_;
};

class FsRandomFileTest : public testing::TestWithParam<std::string> {};

TEST_P(FsRandomFileTest, HoldsWhatItShould) {
  if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  const char* const given = std::getenv("PERDURA_FS_OPERATIONS");
  const int operations = given == nullptr ? kSteps : std::atoi(given);
  const unsigned seed = random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const AnyMounts mounts(GetParam());
  FileUnderTest file(mounts.a() / "file", mounts.b() / "file", seed);
  ASSERT_TRUE(file.is_open());
  for (int i = 1; i <= operations; ++i) {
    ASSERT_EQ(file.step(), "") << "step " << i;
    if (i % kBetweenWhole == 0) {
      ASSERT_TRUE(file.is_whole()) << "after step " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Systems, FsRandomFileTest, testing::ValuesIn(ways_to_mount()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace perdura::test
