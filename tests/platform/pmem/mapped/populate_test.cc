// Pages of a pool that are mapped before they are used.
#include "platform/pmem/mapped/populate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "tests/platform/shm/process.h"
#include "tests/support/mapped_bytes.h"

namespace perdura::pmem::mapped {
namespace {

class Populate : public testing::Test {
 protected:
  shm_test::TemporaryDirectory directory_;
  std::string path_ = directory_.path() + "/pool";
  PoolFile pool_ = made();

  // Opened again, since the mapping of who makes it has the name of a file that is being made.
  PoolFile made() const {
    create_pool_file(path_, 40 * MiB, Allocation::now);
    return *open_pool_file(path_);
  }
  Bytes mapped() const { return test::mapped_bytes(::getpid(), path_); }
};

TEST_F(Populate, AllPagesAreMappedAndKeepWhatTheyHold) {
  pool_.mapping->data()[5 * MiB] = std::byte{7};
  ASSERT_LT(mapped(), 40 * MiB);
  populate(pool_, {});
  EXPECT_EQ(mapped(), 40 * MiB);
  EXPECT_EQ(pool_.mapping->data()[5 * MiB], std::byte{7});
}

TEST_F(Populate, StopsWhenItIsAskedTo) {
  const Bytes before = mapped();
  std::jthread thread([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
    populate(pool_, stop);
  });
  thread.request_stop();
  thread.join();
  EXPECT_EQ(mapped(), before);
}

}  // namespace
}  // namespace perdura::pmem::mapped
