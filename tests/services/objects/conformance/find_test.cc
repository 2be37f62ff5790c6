// Searching for keys in a pool's secondary index (MCAS, sections 3.1 and 3.3).
#include <regex>
#include <set>

#include "tests/services/objects/conformance/support.h"
#include "tests/support/seed.h"

namespace perdura::objects::test {
namespace {

class Finds : public ObjectsTest {};
INSTANTIATE_TEST_SUITE_P(All, Finds, testing::ValuesIn(all_subjects()), subject_name);

constexpr std::string_view kAdd = "AddIndex::VolatileTree";
constexpr std::string_view kRemove = "RemoveIndex::";

// All that is found, one after the other.
Task<std::vector<std::string>> find_all(Pool& pool, std::string_view expression, Match match) {
  std::vector<std::string> keys;
  for (std::uint64_t position = 0;;) {
    const auto found = co_await pool.find(expression, match, position);
    if (!found) {
      EXPECT_EQ(found.error(), Error::not_found);
      break;
    }
    keys.push_back(text_of(found->key));
    position = found->position + 1;
  }
  co_return keys;
}

TEST_P(Finds, TheKeysThatThereAreInTheirOrder) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  run([seed](Session& session, Thread& thread) -> Task<> {
    std::mt19937_64 random(seed);
    const auto pool = *co_await session.create_pool("pool", 2 * MiB, {});
    DirectMemoryOf memory(session, thread, 4 * KiB);
    EXPECT_EQ(error_of(co_await pool->find("", Match::next, 0)), Error::unsupported);
    EXPECT_FALSE((co_await pool->attributes())->has_index);
    std::set<std::string> keys;
    for (int i = 0; i < 600; ++i) {
      if (i == 200) {
        EXPECT_TRUE(co_await pool->configure(kAdd));
        EXPECT_TRUE((co_await pool->attributes())->has_index);
      }
      const std::string key = "k" + std::to_string(random() % 300);
      switch (random() % 3) {
        case 0:
          EXPECT_TRUE(co_await pool->put(as_key(key), as_key("value"), {}));
          keys.insert(key);
          break;
        case 1:
          EXPECT_TRUE(co_await pool->put_direct(as_key(key), memory.holding("direct"), {}));
          keys.insert(key);
          break;
        default:
          co_await pool->erase(as_key(key));
          keys.erase(key);
      }
    }
    const auto expect = [&](std::string_view expression, Match match, auto matches) -> Task<> {
      std::vector<std::string> expected;
      std::copy_if(keys.begin(), keys.end(), std::back_inserter(expected), matches);
      EXPECT_EQ(co_await find_all(*pool, expression, match), expected) << expression;
    };
    co_await expect("", Match::next, [](const std::string&) { return true; });
    co_await expect("k2", Match::next, [](const std::string& key) { return key > "k2"; });
    co_await expect("k1", Match::prefix, [](const std::string& k) { return k.starts_with("k1"); });
    co_await expect("k7", Match::exact, [](const std::string& key) { return key == "k7"; });
    co_await expect("k[0-9]*7", Match::regular_expression, [](const std::string& key) {
      return std::regex_match(key, std::regex("k[0-9]*7"));
    });
    // Expressions that are keys themselves, that begin keys, and that nothing begins with.
    constexpr int kExpressions = 12;
    for (int i = 0; i < kExpressions; ++i) {
      const std::string drawn = "k" + std::to_string(random() % 320);
      const std::string word = i == 0       ? *keys.begin()
                               : i % 2 == 0 ? drawn
                                            : drawn.substr(0, 2 + random() % 2);
      co_await expect(word, Match::next, [&](const std::string& key) { return key > word; });
      co_await expect(word, Match::exact, [&](const std::string& key) { return key == word; });
      co_await expect(word, Match::prefix,
                      [&](const std::string& key) { return key.starts_with(word); });
    }
    EXPECT_EQ(error_of(co_await pool->find("k(", Match::regular_expression, 0)), Error::invalid);
    EXPECT_EQ(error_of(co_await pool->find("k", static_cast<Match>(9), 0)), Error::invalid);
    EXPECT_EQ(error_of(co_await pool->find("", Match::next, ~std::uint64_t{0})), Error::not_found);
    EXPECT_EQ(error_of(co_await pool->configure("AddIndex::NoSuchTree")), Error::unsupported);
    EXPECT_EQ(error_of(co_await pool->configure("Whatever")), Error::invalid);
    const auto reader = *co_await session.open_pool("pool", {.read_only = true});
    EXPECT_EQ(error_of(co_await reader->configure(kRemove)), Error::no_permission);
    EXPECT_EQ((co_await find_all(*reader, "", Match::next)).size(), keys.size());
    EXPECT_TRUE(co_await pool->configure(kRemove));
    EXPECT_EQ(error_of(co_await pool->find("", Match::next, 0)), Error::unsupported);
  });
}

// More keys than are compared at a time: each of those behind many others is found, also where one
// step ends and the next one begins.
TEST_P(Finds, EachKeyBehindManyOthers) {
  constexpr std::uint64_t kMany = 1300;
  constexpr std::uint64_t kSearched = 400;
  config_.memory = 16 * MiB;
  run([](Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", 8 * MiB, {});
    EXPECT_TRUE(co_await pool->configure(kAdd));
    const auto key = [](std::uint64_t number) { return std::to_string(10'000 + number); };
    for (std::uint64_t i = 0; i < kMany; ++i) {
      EXPECT_TRUE(co_await pool->put(as_key(key(i)), as_key("value"), {}));
    }
    for (std::uint64_t i = kMany - kSearched; i < kMany; ++i) {
      const auto found = co_await pool->find(key(i), Match::regular_expression, 0);
      EXPECT_TRUE(found && text_of(found->key) == key(i) && found->position == i) << key(i);
      if (!found) break;
    }
  });
}

// More keys than are compared at a time, while another client changes keys behind them.
TEST_P(Finds, WhatIsBehindManyOthersWhileTheyChange) {
  constexpr int kStays = 3000;
  config_.memory = 16 * MiB;
  serve();
  const auto there = std::shared_ptr<Platform::Barrier>(platform_->create_barrier(2));
  bool ended = false;
  connect([there, &ended](Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", 8 * MiB, {});
    EXPECT_TRUE(co_await pool->configure(kAdd));
    for (int i = 0; i < kStays; ++i) {
      EXPECT_TRUE(co_await pool->put(as_key("stays " + std::to_string(i)), as_key("value"), {}));
    }
    EXPECT_TRUE(co_await pool->put(as_key("the last"), as_key("value"), {}));
    co_await there->arrive_and_wait();
    for (int i = 0; i < 20; ++i) {
      const auto found = co_await pool->find("the .*st", Match::regular_expression, 0);
      EXPECT_TRUE(found && text_of(found->key) == "the last");
    }
    std::atomic_ref(ended).store(true);
  });
  connect([there, &ended](Session& session, Thread&) -> Task<> {
    co_await there->arrive_and_wait();
    const auto pool = *co_await session.open_pool("pool", {});
    while (!std::atomic_ref(ended).load()) {
      EXPECT_TRUE(co_await pool->put(as_key("zzz"), as_key("value"), {}));
      EXPECT_TRUE(co_await pool->erase(as_key("zzz")));
    }
  });
  platform_->run();
}

}  // namespace
}  // namespace perdura::objects::test
