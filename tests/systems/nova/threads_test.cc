// Sessions of several threads, in the same directories and files.
#include <random>

#include "tests/support/seed.h"
#include "tests/systems/nova/support.h"

namespace perdura::systems::nova::test {
namespace {

using fs::InodeNumber;
using fs::kRootInode;

constexpr std::uint32_t kThreads = 3;

class NovaThreads : public testing::TestWithParam<std::string> {};

// Names come, go and move between directories that contain each other; what remains is whole, and
// every number that a thread has added to the shared file is in it.
TEST_P(NovaThreads, ChangeTheSameTree) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  const fs::FsConfig config{.size = 4 * MiB, .threads = kThreads + 1};
  const auto platform = perdura::test::make_platform(GetParam(), 1);
  const auto ready = platform->create_barrier(kThreads);
  const auto done = platform->create_barrier(kThreads);
  std::shared_ptr<fs::FileSystem> files;
  InodeNumber shared{};
  std::uint64_t appended = 0;
  for (std::uint32_t number = 0; number < kThreads; ++number) {
    platform->start(
        0, static_cast<fabric::Port>(number), CompletionMode::polling,
        [&, number](Thread& thread) -> Task<> {
          if (number == 0) {
            co_await kNova.make(thread, "home", config);
            files = co_await kNova.mount(thread, "home", config);
            const auto first = files->attach(thread);
            const auto made = co_await first->create(kRootInode, "shared", {.mode = S_IFREG}, {});
            shared = made->inode;
          }
          co_await ready->arrive_and_wait();
          const auto session = files->attach(thread);
          std::mt19937_64 random(seed + number);
          std::vector<InodeNumber> directories{kRootInode};
          std::uint64_t mine = 0;
          for (int i = 0; i < 3000; ++i) {
            const std::string name(1, static_cast<char>('a' + random() % 5));
            const std::string other(1, static_cast<char>('a' + random() % 5));
            const InodeNumber in = directories[random() % directories.size()];
            const InodeNumber to = directories[random() % directories.size()];
            switch (random() % 8) {
              case 0: {
                const auto made = co_await session->create(in, name, {.mode = S_IFDIR | 0755}, {});
                if (made && directories.size() < 20) directories.push_back(made->inode);
                break;
              }
              case 1:
                co_await session->create(in, name, {.mode = S_IFREG | 0644}, {});
                break;
              case 2:
                co_await session->unlink(in, name, {});
                break;
              case 3:
                co_await session->remove_directory(in, name, {});
                break;
              case 4:
              case 5:
                co_await session->rename(
                    in, name, to, other,
                    random() % 3 == 0 ? fs::RenameMode::exchange : fs::RenameMode::replace, {});
                break;
              case 6: {
                const auto word = static_cast<std::uint64_t>(number) << 32 | mine;
                const auto at =
                    co_await session->append(shared, std::as_bytes(std::span(&word, 1)), {});
                if (at) ++mine;
                break;
              }
              default: {
                const auto found = co_await session->look_up(in, name);
                if (found && found->is_regular()) {
                  const std::vector<std::byte> data = bytes(random() % 10000);
                  co_await session->write(found->inode, random() % 5000, data, {});
                }
              }
            }
            co_await yield();
          }
          std::atomic_ref(appended) += mine;
          co_await done->arrive_and_wait();
          if (number != 0) co_return;
          EXPECT_EQ(co_await files->audit(), "");
          std::vector<std::uint64_t> words(appended + 1);
          const auto length =
              co_await session->read(shared, 0, std::as_writable_bytes(std::span(words)));
          EXPECT_EQ(*length, appended * 8);
          // Of each thread they are in its order.
          std::array<std::uint64_t, kThreads> next{};
          for (std::uint64_t i = 0; i < appended; ++i) {
            const std::uint64_t from = words[i] >> 32;
            EXPECT_LT(from, kThreads);
            if (from >= kThreads) break;
            EXPECT_EQ(words[i] & 0xFFFFFFFF, next[from]++);
          }
        });
  }
  platform->run();
}

INSTANTIATE_TEST_SUITE_P(All, NovaThreads, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace perdura::systems::nova::test
