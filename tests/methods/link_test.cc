// Writers and readers of a link, by each method that publishes and on each platform: readers get
// links in their order, whole blocks, and never one that bears the mark; a writer whose expectation
// is wrong is told so.
#include <algorithm>
#include <atomic>

#include "platform/base/error.h"
#include "tests/methods/support.h"

namespace perdura::methods::test {
namespace {

constexpr std::uint64_t kLinks = 100;
constexpr Bytes kBlocks = 4096;  // the offset of the blocks; before them there is the link
constexpr Bytes kBlockSize = 64;
constexpr Bytes kLinkedRegion = kBlocks + (2 * kLinks + 1) * kBlockSize;

struct LinkCase {
  std::string platform;  // "sim+" is sim with a device that has all operations
  std::string method;
};
std::ostream& operator<<(std::ostream& out, const LinkCase& c) {
  return out << c.method << " on " << c.platform;
}

std::vector<LinkCase> link_cases() {
  std::vector<LinkCase> cases;
  for (const Method& method : methods()) {
    if (method.update != Update::publish) continue;
    const bool special = method.needs().atomic_write || method.needs().flush_persistence;
    for (const std::string& platform : perdura::test::platform_names()) {
      if (!special) cases.push_back({platform, method.name});
    }
    cases.push_back({"sim+", method.name});
  }
  return cases;
}
std::string link_case_name(const testing::TestParamInfo<LinkCase>& info) {
  std::string name = info.param.platform + "_" + info.param.method;
  std::replace(name.begin(), name.end(), '-', '_');
  std::replace(name.begin(), name.end(), '+', 'X');
  return name;
}

class Links : public testing::TestWithParam<LinkCase> {
 protected:
  std::unique_ptr<Platform> make(std::uint32_t nodes) const {
    if (GetParam().platform == "sim+") {
      return std::make_unique<perdura::sim::SimPlatform>(full_profile(), nodes);
    }
    return perdura::test::make_platform(GetParam().platform, nodes);
  }
  PersisterSetup setup(std::uint32_t sessions) const {
    PersisterSetup setup = setup_of(method(), pmem::Medium::dram);
    setup.sessions = sessions;
    return setup;
  }
  Method method() const {
    const Method& method = find_method(GetParam().method);
    return GetParam().platform == "sim+" ? method : with_read_for_flush(method);
  }
  static void serve(Platform& platform, const PersisterSetup& setup) {
    platform.start_service(0, 0, CompletionMode::polling, [setup](Thread& thread) -> Task<> {
      const auto region = open_or_create(thread.node, "pool", kLinkedRegion);
      co_await std::make_shared<Responder>(thread, *region, setup)->serve();
    });
  }
};
INSTANTIATE_TEST_SUITE_P(All, Links, testing::ValuesIn(link_cases()), link_case_name);

Bytes block_of(std::uint64_t link) { return kBlocks + link * kBlockSize; }

// Publishes link number `to` in place of `from`: its block says which it is.
Task<tl::expected<void, UpdateError>> publish(RemotePersister& writer, std::uint64_t from,
                                              std::uint64_t to) {
  const std::vector<std::uint64_t> words(kBlockSize / kWord, to);
  const UpdateRequest request{.a = {block_of(to), std::as_bytes(std::span(words))},
                              .b = {0, std::as_bytes(std::span(&to, 1))},
                              .expected = from};
  co_return co_await writer.update(request);
}

// Follows the link until it is `last`.
Task<> follow(RemotePersister& reader, std::uint64_t last) {
  std::vector<std::byte> block(kBlockSize);
  for (std::uint64_t seen = 0; seen < last;) {
    const auto link = co_await reader.read_link(0);
    if (!link && link.error() == UpdateError::not_durable) continue;
    EXPECT_TRUE(link.has_value());
    if (!link) co_return;
    EXPECT_GE(*link, seen) << "links are read in their order";
    EXPECT_LE(*link, last);
    seen = *link;
    if (seen == 0) continue;
    const auto read = co_await reader.read(block_of(seen), block);
    EXPECT_TRUE(read.has_value());
    if (!read) co_return;
    const std::vector<std::uint64_t> words(kBlockSize / kWord, seen);
    EXPECT_TRUE(std::equal(block.begin(), block.end(), std::as_bytes(std::span(words)).begin()))
        << "block " << seen;
  }
}

TEST_P(Links, LeadReadersToWholeBlocks) {
  const auto platform = make(3);
  const PersisterSetup agreed = setup(2);
  serve(*platform, agreed);
  std::atomic<bool> followed = false;
  platform->start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto writer = co_await RemotePersister::connect(thread, {0, 0}, 0, agreed);
    for (std::uint64_t link = 1; link <= kLinks; ++link) {
      const auto done = co_await publish(*writer, link - 1, link);
      EXPECT_TRUE(done.has_value());
      if (!done) co_return;
    }
    // The last link may still be marked, and nobody would unmark it for a reader that waits.
    while (!followed) co_await sleep_for(Microseconds(1));
  });
  platform->start(2, 2, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto reader = co_await RemotePersister::connect(thread, {0, 0}, 1, agreed, Role::reader);
    co_await follow(*reader, kLinks);
    followed = true;
  });
  platform->run();
}

// Two writers that take turns by chance. Links 2g - 1 and 2g are those of generation g, one for
// each writer, and each generation is published by exactly one CAS.
TEST_P(Links, AreTakenFromOneWriterByAnother) {
  if (method().link() != Link::cas) GTEST_SKIP() << "a WRITE serves one writer at a time";
  const auto platform = make(3);
  const PersisterSetup agreed = setup(4);
  serve(*platform, agreed);
  std::array<std::atomic<std::uint64_t>, 2> published{};
  for (std::uint32_t who = 0; who < 2; ++who) {
    platform->start(1 + who, 1 + who, CompletionMode::polling, [&, who](Thread& thread) -> Task<> {
      const auto writer = co_await RemotePersister::connect(thread, {0, 0}, 2 * who, agreed);
      const auto reader =
          co_await RemotePersister::connect(thread, {0, 0}, 2 * who + 1, agreed, Role::reader);
      for (;;) {
        const auto found = co_await reader->read_link(0);
        EXPECT_TRUE(found.has_value());
        if (!found) co_return;
        const std::uint64_t generation = (*found + 1) / 2;
        if (generation == kLinks) co_return;
        const std::uint64_t next = 2 * (generation + 1) - who;
        const auto done = co_await publish(*writer, *found, next);
        EXPECT_TRUE(done || done.error() == UpdateError::changed);
        if (done) ++published[who];
      }
    });
  }
  platform->run();
  EXPECT_EQ(published[0] + published[1], kLinks);
}

// What a dead writer has left marked, readers make durable and unmark, or they do not take it.
TEST_P(Links, OfADeadWriterAreNotTakenAsTheyAre) {
  const Method method = Links::method();
  if (!method.marks()) GTEST_SKIP() << "it marks no links";
  const auto platform = make(2);
  const PersisterSetup agreed = setup(2);
  constexpr std::uint64_t kLeft = kLinkMark | 1;
  platform->start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto region = open_or_create(thread.node, "pool", kLinkedRegion);
    region->store(0, kLeft);
    co_await std::make_shared<Responder>(thread, *region, agreed)->serve();
  });
  platform->start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto reader = co_await RemotePersister::connect(thread, {0, 0}, 0, agreed, Role::reader);
    const auto read = co_await reader->read_link(0);
    const bool waits = method.readers_duty() == ReadersDuty::wait;
    EXPECT_EQ(read.has_value(), !waits);
    if (read) {
      EXPECT_EQ(*read, 1U);
    } else {
      EXPECT_EQ(read.error(), UpdateError::not_durable);
    }
    // A reader does not wait until the mark that it removes is gone.
    std::uint64_t word = 0;
    do {
      const auto raw = co_await reader->read(0, std::as_writable_bytes(std::span(&word, 1)));
      EXPECT_TRUE(raw.has_value());
      if (!raw) co_return;
    } while (!waits && is_marked(word));
    EXPECT_EQ(word, waits ? kLeft : 1U);
    // A new writer expects the link as it has read it, marked or not.
    const auto writer = co_await RemotePersister::connect(thread, {0, 0}, 1, agreed);
    const auto refused = co_await publish(*writer, word, kLeft);
    EXPECT_EQ(refused.error(), UpdateError::has_mark);
    if (method.link() == Link::cas) {
      const auto too_late = co_await publish(*writer, 7, 2);
      EXPECT_EQ(too_late.error(), UpdateError::changed);
    }
    const auto taken = co_await publish(*writer, word, 2);
    EXPECT_TRUE(taken.has_value());
  });
  platform->run();
}

}  // namespace
}  // namespace perdura::methods::test
