// One thread of a mount waits for requests as long as there is one at a time, several when there
// are several.
#include "mount/readers.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "tests/support/wait_until.h"

namespace perdura::mount {
namespace {

constexpr int kThreads = 4;

bool no_request() { return false; }
bool a_request() { return true; }

// End with the readers.
class Threads {
 public:
  Threads(Readers& readers, const std::function<void()>& body) : readers_(readers) {
    for (int i = 0; i < kThreads; ++i) threads_.emplace_back(body);
  }
  ~Threads() {
    readers_.end();
    for (std::thread& thread : threads_) thread.join();
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  Readers& readers_;
  std::vector<std::thread> threads_;
};

TEST(FsReadersTest, OneWaitsAsLongAsThereIsOneRequestAtATime) {
  std::atomic<int> waiting = 0;
  std::atomic<int> most = 0;
  std::atomic<int> turns = 0;
  Readers readers;
  const Threads threads(readers, [&] {
    while (!readers.ended()) {
      readers.await_turn();
      if (readers.ended()) break;
      most = std::max<int>(most, ++waiting);
      std::this_thread::yield();
      --waiting;
      readers.end_turn(no_request);
      ++turns;
    }
  });
  EXPECT_TRUE(perdura::test::wait_until([&] { return turns > 1000; }));
  EXPECT_EQ(most, 1);
}

TEST(FsReadersTest, AllWaitWhenThereAreSeveralRequests) {
  std::atomic<int> waiting = 0;
  std::atomic<bool> seen_all = false;
  Readers readers;
  const Threads threads(readers, [&] {
    while (!readers.ended()) {
      readers.await_turn();
      if (++waiting == kThreads) seen_all = true;
      std::this_thread::yield();
      --waiting;
      readers.end_turn(a_request);
    }
  });
  EXPECT_TRUE(perdura::test::wait_until([&] { return seen_all.load(); }));
}

TEST(FsReadersTest, AnotherOneIsCalledByOneThatIsBusy) {
  std::atomic<int> busy = 0;
  Readers readers;
  const Threads threads(readers, [&] {
    readers.await_turn();
    readers.end_turn(no_request);
    readers.begin_answer();
    ++busy;
    // Until all of them have been called, each by the one before.
    while (busy < kThreads && !readers.ended()) {
      readers.call_another();
      std::this_thread::yield();
    }
    readers.end_answer();
  });
  EXPECT_TRUE(perdura::test::wait_until([&] { return busy == kThreads; }));
}

}  // namespace
}  // namespace perdura::mount
