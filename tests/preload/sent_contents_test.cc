// Of a file that others change in any way, what the copies lack is found, whatever of it has been
// sent, has not been sent, or has been changed while it was being sent.
#include "preload/sent_contents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "tests/support/seed.h"

namespace perdura::preload {
namespace {

constexpr Bytes kPage = SentContents::kPage;
constexpr std::size_t kPages = 5;

class OfAFile : public testing::Test {
 protected:
  // Gives the copy what is unsent of these, as a sync point does.
  void send(std::span<const services::MemoryRange> ranges) {
    for (const auto& range : contents_.take_unsent(ranges)) {
      EXPECT_LE(range.offset + range.length, file_.size());
      std::memcpy(copy_.data() + range.offset, file_.data() + range.offset, range.length);
    }
  }
  void send() {
    const services::MemoryRange all{0, file_.size()};
    send({&all, 1});
  }
  void sync(Bytes offset, Bytes length) {
    const services::MemoryRange range{offset, length};
    contents_.look(range);
    send({&range, 1});
    contents_.note_sent();
  }
  std::byte* at(Bytes offset) { return file_.data() + offset; }

  std::vector<std::byte> file_ = std::vector<std::byte>(kPages * kPage, std::byte{7});
  std::vector<std::byte> copy_ = file_;
  SentContents contents_{file_};
};

TEST_F(OfAFile, ARangeThatHoldsAnotherOneIsSentWhole) {
  std::memset(at(0), 1, 2 * kPage);
  std::memset(at(116), 2, 16);
  contents_.look({0, 2 * kPage});
  contents_.look({64, 16});
  send();
  contents_.note_sent();
  EXPECT_EQ(copy_, file_);
}

TEST_F(OfAFile, WhatWasFoundIsSentByTheSyncPointThatNamesIt) {
  *at(kPage) = std::byte{1};
  contents_.look({0, file_.size()});
  *at(kPage) = std::byte{2};
  sync(0, kPage);
  EXPECT_NE(copy_, file_);
  const services::MemoryRange second{kPage, 1};
  send({&second, 1});  // nobody has looked at it again
  contents_.note_sent();
  EXPECT_EQ(copy_, file_);
  EXPECT_TRUE(contents_.take_unsent({&second, 1}).empty());
}

TEST_F(OfAFile, WhatIsPutBackAfterAFailureIsSentToo) {
  *at(64) = std::byte{1};
  contents_.look({0, kPage});
  send();  // it may have arrived, and nobody says so
  *at(64) = std::byte{7};
  sync(0, kPage);
  EXPECT_EQ(copy_, file_);
}

TEST_F(OfAFile, WhatChangesWhileItIsSentIsUnsent) {
  *at(64) = std::byte{1};
  contents_.look({0, kPage});
  send();
  *at(64) = std::byte{2};
  contents_.note_sent();
  sync(0, kPage);
  EXPECT_EQ(copy_, file_);
}

TEST_F(OfAFile, TheLastLineOfTheFileIsSent) {
  *at(file_.size() - 1) = std::byte{1};
  sync(file_.size() - 1, 100 * kPage);
  sync(file_.size(), kPage);
  EXPECT_EQ(copy_, file_);
}

// After each sync point the copy has the pages of the range as they are, and of the others at least
// what it had, if nothing else was sent.
TEST_F(OfAFile, RandomChangesAndSyncsOfRandomRangesAreThoseOfAModel) {
  const unsigned seed = test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  const auto range = [&] {
    const Bytes offset = below(file_.size());
    return services::MemoryRange{offset, 1 + below(std::min(2 * kPage, file_.size() - offset))};
  };
  for (int step = 0; step < 20000; ++step) {
    for (std::size_t i = below(4); i > 0; --i) {
      const auto where = range();
      // Few values, so that some are as before.
      std::memset(at(where.offset), static_cast<int>(below(3)), 1 + below(where.length));
    }
    std::vector<std::byte> model = copy_;
    std::vector<services::MemoryRange> synced;
    for (std::size_t i = 1 + below(3); i > 0; --i) synced.push_back(range());
    if (below(4) == 0) {
      contents_.look({0, file_.size()});
    } else {
      for (const auto& where : synced) contents_.look(where);
    }
    for (const auto& where : synced) {
      const Bytes begin = where.offset / kPage * kPage;
      const Bytes end = round_up(where.offset + where.length, kPage);
      std::copy(at(begin), at(0) + end, model.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    if (below(4) == 0) {  // it fails, before or after it has arrived
      if (below(2) == 0) send(synced);
      continue;
    }
    send(synced);
    contents_.note_sent();
    ASSERT_TRUE(copy_ == model) << "step " << step;
  }
}

}  // namespace
}  // namespace perdura::preload
