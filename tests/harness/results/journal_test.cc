// What a journal holds after it was cut off or damaged: at every byte.
#include "harness/results/journal.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <optional>

#include "platform/error.h"
#include "tests/harness/temporary_folder.h"

namespace perdura::harness {
namespace {

using Records = std::vector<std::string>;

class JournalTest : public testing::Test {
 protected:
  JournalTest() {
    Journal journal = Journal::create(file_, records_[0]);
    ends_.push_back(read().size());
    for (std::size_t i = 1; i < records_.size(); ++i) {
      journal.append(records_[i]);
      ends_.push_back(read().size());
    }
  }
  std::string read() const {
    std::ifstream input(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
  }
  void write(const std::string& bytes) const { std::ofstream(file_, std::ios::binary) << bytes; }
  // Nothing if it is refused.
  std::optional<Records> opened() const {
    try {
      return Journal::open(file_).records();
    } catch (const UsageError&) {
      return std::nullopt;
    }
  }
  Records first(std::size_t count) const {
    return {records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(count)};
  }

  test::TemporaryFolder temporary_;
  const std::filesystem::path file_ = temporary_.path() / "journal";
  const Records records_{"configuration", std::string(100, 'x'), "", "the last one"};
  std::vector<std::size_t> ends_;  // of the records, in the file
};

TEST_F(JournalTest, HoldsWhatWasAppended) { EXPECT_EQ(opened(), records_); }

TEST_F(JournalTest, CutOffAnywhereItHoldsTheWholeRecordsBeforeAndGoesOn) {
  const std::string whole = read();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write(whole.substr(0, size));
    std::size_t count = 0;
    while (ends_[count] <= size) ++count;
    if (count == 0) {
      EXPECT_EQ(opened(), std::nullopt) << size;
      continue;
    }
    EXPECT_EQ(opened(), first(count)) << size;
    Journal::open(file_).append("more");
    Records expected = first(count);
    expected.emplace_back("more");
    EXPECT_EQ(opened(), expected) << size;
  }
}

TEST_F(JournalTest, KeepsNoPartOfARecordThatTheDiskHasNoRoomFor) {
  const std::string before = read();
  Journal journal = Journal::open(file_);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit tight{before.size() + 50, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  EXPECT_THROW(journal.append(std::string(1000, 'x')), PlatformError);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read(), before);
}

TEST_F(JournalTest, WithAnyBitWrongItIsRefusedUnlessOnlyTheLastRecordsContentIs) {
  const std::string whole = read();
  const std::size_t last_content = whole.size() - records_.back().size();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string wrong = whole;
      wrong[at] = static_cast<char>(wrong[at] ^ (1 << bit));
      write(wrong);
      if (at < last_content) {
        EXPECT_EQ(opened(), std::nullopt) << at;
      } else {
        EXPECT_EQ(opened(), first(records_.size() - 1)) << at;
      }
    }
  }
}

TEST_F(JournalTest, ZerosBehindTheLastRecordAreNone) {
  const std::string whole = read();
  write(whole + std::string(1000, '\0'));
  EXPECT_EQ(opened(), records_);
  EXPECT_EQ(read(), whole) << "they are cut off";
}

TEST_F(JournalTest, SaysWhereItIsDamagedAndWhatToDo) {
  std::string wrong = read();
  wrong[ends_[0] + 40] = '?';
  write(wrong);
  try {
    Journal::open(file_);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), file_.string() + ": damaged at byte " + std::to_string(ends_[0]) +
                                "; what follows cannot be trusted: restore the file, or run the "
                                "experiment again in a new folder");
  }
}

TEST_F(JournalTest, IsOpenInOnePlaceAtATime) {
  {
    const Journal journal = Journal::open(file_);
    EXPECT_THROW(Journal::open(file_), UsageError);
  }
  EXPECT_EQ(opened(), records_);
}

}  // namespace
}  // namespace perdura::harness
