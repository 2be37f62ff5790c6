// What a journal holds after it was cut off or damaged: at every byte.
#include "harness/results/journal.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <optional>

#include "platform/base/error.h"
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
  const auto refusal = [this] {
    try {
      Journal::open(file_);
      return std::string("it is not refused");
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
  };
  std::string wrong = read();
  wrong[ends_[0] + 40] = '?';
  write(wrong);
  EXPECT_EQ(refusal(), file_.string() + ": damaged at byte " + std::to_string(ends_[0]) + " of " +
                           std::to_string(wrong.size()) +
                           "; restore the file, or add --cut-back to go on from the 1 record "
                           "before it: the points after it are run again, and the damaged file is "
                           "kept");
  wrong[3] = '?';
  write(wrong);
  EXPECT_EQ(refusal(), file_.string() +
                           ": damaged at byte 0, and nothing before it is whole: restore the "
                           "file, or run the experiment again in a new folder");
}

// With any byte wrong, and with all behind any byte lost.
TEST_F(JournalTest, CutBackItHoldsTheWholeRecordsBeforeAndTheDamagedFileIsKept) {
  const std::string whole = read();
  const std::filesystem::path kept = file_.string() + ".damaged-1";
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const bool lost : {false, true}) {
      std::string wrong = whole;
      if (lost) {
        wrong.resize(at);
      } else {
        wrong[at] = static_cast<char>(~wrong[at]);
      }
      write(wrong);
      std::size_t count = 0;
      while (ends_[count] <= at) ++count;
      if (count == 0) {
        EXPECT_THROW(Journal::open(file_, IfDamaged::cut_back), UsageError) << at;
        EXPECT_EQ(read(), wrong) << "it is left as it was";
        continue;
      }
      std::string said;
      {
        Journal journal = Journal::open(file_, IfDamaged::cut_back);
        EXPECT_EQ(journal.records(), first(count)) << at;
        said = journal.cut_back();
        journal.append("more");
      }
      Records expected = first(count);
      expected.emplace_back("more");
      EXPECT_EQ(opened(), expected) << at;
      // What a killed process was writing is no damage.
      const bool incomplete = lost || at >= whole.size() - records_.back().size();
      EXPECT_EQ(std::filesystem::exists(kept), !incomplete) << at;
      EXPECT_EQ(said.empty(), incomplete) << said;
      if (incomplete) continue;
      EXPECT_EQ(said, file_.string() + ": damaged at byte " + std::to_string(ends_[count - 1]) +
                          " of " + std::to_string(whole.size()) + "; cut back to the " +
                          std::to_string(count) + (count == 1 ? " record" : " records") +
                          " before it, " + std::to_string(whole.size() - ends_[count - 1]) +
                          " bytes are lost; the damaged file is kept as " + kept.string());
      std::ifstream input(kept, std::ios::binary);
      EXPECT_EQ((std::string{std::istreambuf_iterator<char>(input), {}}), wrong);
      std::filesystem::remove(kept);
    }
  }
}

TEST_F(JournalTest, CutBackTwiceItKeepsBothDamagedFiles) {
  for (const char* name : {"journal.damaged-1", "journal.damaged-2"}) {
    std::string wrong = read();
    wrong[ends_[0] + 40] = static_cast<char>(~wrong[ends_[0] + 40]);
    write(wrong);
    Journal::open(file_, IfDamaged::cut_back).append(std::string(100, 'x'));
    Journal::open(file_).append("more");
    EXPECT_TRUE(std::filesystem::exists(temporary_.path() / name)) << name;
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
