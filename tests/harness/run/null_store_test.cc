// The store without cost is a store all the same: what is measured on it verifies.
#include "bench/kv/null_store.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>

#include "platform/shm/shm_platform.h"

namespace perdura::bench {
namespace {

using kv::Error;

void on_thread(const std::function<Task<>(Thread&)>& body) {
  ShmPlatform platform(ShmOptions{});
  platform.start(0, 0, CompletionMode::event, body);
  platform.run();
}

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// Keys and values of every length up to two words, so that each end of a copy is met.
TEST(NullStore, KeepsWhatIsPut) {
  on_thread([](Thread&) -> Task<> {
    for (std::size_t key_size = 1; key_size <= 16; ++key_size) {
      for (std::size_t size = 0; size <= 17; ++size) {
        NullSession session(2, 17);
        const std::string key(key_size, 'k');
        const std::string other = std::string(key_size - 1, 'k') + "l";
        const std::string value(size, 'v');
        EXPECT_TRUE(co_await session.put(bytes(other), bytes("other")));
        EXPECT_TRUE(co_await session.put(bytes(key), bytes("before")));
        EXPECT_TRUE(co_await session.put(bytes(key), bytes(value)));
        std::array<std::byte, 17> into{};
        const auto length = co_await session.get(bytes(key), into);
        EXPECT_EQ(length, size);
        EXPECT_EQ(std::string(reinterpret_cast<const char*>(into.data()), size), value);
      }
    }
  });
}

TEST(NullStore, RefusesWhatDoesNotFit) {
  on_thread([](Thread&) -> Task<> {
    NullSession session(1, 8);
    std::array<std::byte, 8> into{};
    const auto got = co_await session.get(bytes("a"), into);
    EXPECT_EQ(got.error(), Error::not_found);
    const auto long_put = co_await session.put(bytes("a"), bytes("123456789"));
    EXPECT_EQ(long_put.error(), Error::too_large);
    EXPECT_TRUE(co_await session.put(bytes("a"), bytes("12345678")));
    const auto second = co_await session.put(bytes("b"), bytes("1"));
    EXPECT_EQ(second.error(), Error::out_of_space);
    const auto short_get = co_await session.get(bytes("a"), std::span(into).first(7));
    EXPECT_EQ(short_get.error(), Error::too_large);
  });
}

TEST(NullStore, ForgetsWhatIsErasedAndTakesItAgain) {
  on_thread([](Thread&) -> Task<> {
    NullSession session(1, 8);
    std::array<std::byte, 8> into{};
    const auto nothing = co_await session.erase(bytes("a"));
    EXPECT_EQ(nothing.error(), Error::not_found);
    EXPECT_TRUE(co_await session.put(bytes("a"), bytes("1")));
    EXPECT_TRUE(co_await session.erase(bytes("a")));
    const auto again = co_await session.erase(bytes("a"));
    EXPECT_EQ(again.error(), Error::not_found);
    const auto got = co_await session.get(bytes("a"), into);
    EXPECT_EQ(got.error(), Error::not_found);
    EXPECT_TRUE(co_await session.put(bytes("a"), bytes("2")));
    EXPECT_EQ(co_await session.get(bytes("a"), into), 1U);
  });
}

}  // namespace
}  // namespace perdura::bench
