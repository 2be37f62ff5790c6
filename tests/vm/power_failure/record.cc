#include "tests/vm/power_failure/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "platform/base/error.h"
#include "platform/base/units.h"

namespace perdura::test {

// The first two words are read by tests/vm/power_failures.
struct Record::Header {
  std::atomic<Phase> phase;
  std::atomic<std::uint64_t> operations;  // ended in this life
  struct Store {
    std::uint64_t lives;
    // How long the logs were when each life began.
    std::array<std::array<std::uint64_t, kClients>, kLives> begins;
  };
  std::array<Store, kStores> stores;
};

namespace {

std::span<std::byte> map(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat about {};
  void* memory = MAP_FAILED;
  if (fd >= 0 && ::fstat(fd, &about) == 0 && about.st_size > 0) {
    memory = ::mmap(nullptr, static_cast<std::size_t>(about.st_size), PROT_READ | PROT_WRITE,
                    MAP_SHARED, fd, 0);
  }
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (memory == MAP_FAILED) {
    throw PlatformError(fmt::format("{}: cannot be mapped: {}", path, std::strerror(error)));
  }
  return {static_cast<std::byte*>(memory), static_cast<std::size_t>(about.st_size)};
}

}  // namespace

Record::Record(const std::string& path) : Record(map(path)) { mapped_ = true; }

Record::Record(std::span<std::byte> memory)
    : memory_(memory), header_(std::launder(reinterpret_cast<Header*>(memory.data()))) {
  if (memory.size() < bytes_for(1)) {
    throw PlatformError(fmt::format("the memory for a record has {} bytes; give it at least {}",
                                    memory.size(), bytes_for(1)));
  }
}

Record::~Record() {
  if (mapped_) ::munmap(memory_.data(), memory_.size());
}

std::size_t Record::bytes_for(std::size_t operations_of_a_client) {
  return sizeof(Header) + kStores * kClients * kv::OperationLog::bytes_for(operations_of_a_client);
}

void Record::enter(Phase phase) { header_->phase = phase; }

void Record::count_operation() { header_->operations.fetch_add(1, std::memory_order_relaxed); }

std::span<std::byte> Record::log_memory(std::size_t store, std::size_t client) const {
  const std::size_t each = (memory_.size() - sizeof(Header)) / (kStores * kClients) / kWord * kWord;
  return memory_.subspan(sizeof(Header) + (store * kClients + client) * each, each);
}

kv::OperationLog Record::log(std::size_t store, std::size_t client) const {
  return kv::OperationLog(log_memory(store, client));
}

void Record::begin_life(std::size_t store) {
  Header::Store& mine = header_->stores.at(store);
  if (mine.lives == kLives) {
    throw PlatformError(fmt::format("a record has room for {} lives", kLives));
  }
  for (std::size_t client = 0; client < kClients; ++client) {
    mine.begins[mine.lives][client] = kv::OperationLog::read(log_memory(store, client)).size();
  }
  // A life counts when its beginnings are there.
  std::atomic_ref(mine.lives).fetch_add(1, std::memory_order_release);
}

history::History Record::history(std::size_t store) const {
  const Header::Store& mine = header_->stores.at(store);
  std::array<std::vector<history::Operation>, kClients> logs;
  for (std::size_t client = 0; client < kClients; ++client) {
    logs[client] = kv::OperationLog::read(log_memory(store, client));
  }
  history::History all;
  Picoseconds begin{0};
  for (std::size_t life = 0; life < mine.lives; ++life) {
    const bool last = life + 1 == mine.lives;
    Time latest = Time(begin);
    for (std::size_t client = 0; client < kClients; ++client) {
      const std::size_t end = last ? logs[client].size() : mine.begins[life + 1][client];
      for (std::size_t i = mine.begins[life][client]; i < end; ++i) {
        history::Operation operation = logs[client][i];
        operation.start += begin;
        latest = std::max(latest, operation.start);
        if (operation.outcome != history::Outcome::unknown) {
          operation.end += begin;
          latest = std::max(latest, operation.end);
        }
        all.add(operation);
      }
    }
    if (last) break;
    const Time failed = latest + Picoseconds(1);
    all.add_power_failure(failed);
    begin = failed.time_since_epoch() + Picoseconds(1);
  }
  return all;
}

}  // namespace perdura::test
