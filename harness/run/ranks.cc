#include "harness/run/ranks.h"

#include <fmt/format.h>
#include <mpi.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "harness/run/interrupt.h"
#include "harness/run/launcher.h"
#include "platform/base/error.h"

namespace perdura::harness {
namespace {

constexpr int kWordsTag = 1;
// Open MPI kills its ranks a second after it has asked them to end.
constexpr std::chrono::milliseconds kTimeToAnswer{500};
// Ranks that fail for the same reason do so at about the same time.
constexpr std::chrono::seconds kTimeToFail{5};
// Open MPI takes up to 5 s to end ranks that it can reach.
constexpr std::chrono::seconds kTimeToEnd{10};

void wait(Ranks& ranks, MPI_Request& request) {
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    ranks.pause();
  }
}

// Text as words; the last word is the length of the text in bytes.
std::vector<std::uint64_t> words_of(const std::string& text) {
  std::vector<std::uint64_t> words((text.size() + 7) / 8 + 1);
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(words.data()));
  words.back() = text.size();
  return words;
}

std::string text_of(const std::vector<std::uint64_t>& words) {
  return {reinterpret_cast<const char*>(words.data()), words.back()};
}

// Exchanges the host names of all ranks.
std::vector<std::string> exchange_hosts(int ranks) {
  std::array<char, MPI_MAX_PROCESSOR_NAME> own{};
  int length = 0;
  MPI_Get_processor_name(own.data(), &length);
  std::vector<char> all(own.size() * static_cast<std::size_t>(ranks));
  MPI_Allgather(own.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, all.data(), MPI_MAX_PROCESSOR_NAME,
                MPI_CHAR, MPI_COMM_WORLD);
  std::vector<std::string> hosts;
  for (auto at = all.begin(); at != all.end(); at += MPI_MAX_PROCESSOR_NAME) {
    hosts.emplace_back(&*at);
  }
  return hosts;
}

}  // namespace

// A communicator of its own: on MPI_COMM_WORLD the barrier of a rank that ends early would be
// matched with whatever the other ranks wait for.
struct Ranks::Leaving {
  MPI_Comm communicator = MPI_COMM_NULL;
};

// Identified by a descriptor (pidfd), since process ids are reused.
struct Ranks::Process {
  Process(int rank_of_process, pid_t process)
      : rank(rank_of_process), descriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0))) {}
  ~Process() {
    if (descriptor >= 0) close(descriptor);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool ended() const {
    pollfd waiting{descriptor, POLLIN, 0};
    return descriptor >= 0 && poll(&waiting, 1, 0) == 1;
  }

  const int rank;
  const int descriptor;
};

struct Ranks::Sending {
  std::vector<std::uint64_t> words;
  MPI_Request request = MPI_REQUEST_NULL;
};

Ranks::Ranks(int& argc, char**& argv) {
#ifdef OPEN_MPI
  constexpr Discovery kDiscovery = Discovery::by_pmix;
#else
  constexpr Discovery kDiscovery = Discovery::by_pmi_too;
#endif
  const auto launch = find_launch(std::getenv, kDiscovery);
  if (!launch) return;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  active_ = true;
  try {
    check_size(*launch, size_);
  } catch (...) {
    MPI_Finalize();
    throw;
  }
  hosts_ = exchange_hosts(size_);
  if (size_ == 1) return;
  leaving_ = std::make_unique<Leaving>();
  MPI_Comm_dup(MPI_COMM_WORLD, &leaving_->communicator);
  watch_neighbors();
}

void Ranks::watch_neighbors() {
  // The namespace is compared, too: in another container of the same host the same process id means
  // another process.
  struct stat space {};
  stat("/proc/self/ns/pid", &space);
  const std::array<std::uint64_t, 2> own{static_cast<std::uint64_t>(getpid()), space.st_ino};
  std::vector<std::uint64_t> all(own.size() * static_cast<std::size_t>(size_));
  MPI_Allgather(own.data(), 2, MPI_UINT64_T, all.data(), 2, MPI_UINT64_T, MPI_COMM_WORLD);
  for (int rank = 0; rank < size_; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (rank == rank_ || hosts_[index] != hosts_[static_cast<std::size_t>(rank_)]) continue;
    if (all[2 * index + 1] == own[1])
      neighbors_.emplace_back(rank, static_cast<pid_t>(all[2 * index]));
  }
}

Ranks::~Ranks() {
  if (!active_) return;
  if (!leave()) abort(1);
  MPI_Finalize();
}

std::string Ranks::describe(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= hosts_.size()) return "this process";
  return fmt::format("rank {} on host {}", rank, hosts_[index]);
}

std::optional<int> Ranks::elsewhere() const {
  for (std::size_t other = 0; other < hosts_.size(); ++other) {
    if (hosts_[other] != hosts_[static_cast<std::size_t>(rank_)]) return static_cast<int>(other);
  }
  return std::nullopt;
}

std::vector<int> Ranks::ended() const {
  std::vector<int> ranks;
  for (const Process& process : neighbors_) {
    if (process.ended()) ranks.push_back(process.rank);
  }
  return ranks;
}

int Ranks::end_of(int rank) const {
  for (const Process& process : neighbors_) {
    if (process.rank == rank) return process.descriptor;
  }
  return -1;
}

bool Ranks::leave_within(std::optional<std::chrono::seconds> limit) {
  if (!leaving_) return true;
  const auto leaving = std::exchange(leaving_, nullptr);
  const auto began = std::chrono::steady_clock::now();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(leaving->communicator, &request);
  try {
    for (int done = 0; done == 0;) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done != 0) break;
      if (limit && std::chrono::steady_clock::now() - began > *limit) return false;
      pause();
    }
  } catch (const RanksLost&) {
    return false;
  }
  return true;
}

void Ranks::abort(int exit_code) {
  std::fflush(nullptr);
  if (active_) {
    end_mpirun_after(kTimeToEnd);
    // A launcher that is ending the run already waits for this process, and cannot receive messages
    // then.
    if (!was_signaled()) MPI_Abort(MPI_COMM_WORLD, exit_code);
  }
  _exit(exit_code);
}

bool Ranks::leave_early() { return leave_within(kTimeToFail); }

int Ranks::broadcast(int value) {
  if (size_ == 1) return value;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
  wait(*this, request);
  return value;
}

std::vector<std::uint64_t> Ranks::broadcast(std::vector<std::uint64_t> words) {
  if (size_ == 1) return words;
  words.resize(static_cast<std::size_t>(broadcast(static_cast<int>(words.size()))));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(words.data(), static_cast<int>(words.size()), MPI_UINT64_T, 0, MPI_COMM_WORLD,
             &request);
  wait(*this, request);
  return words;
}

std::string Ranks::broadcast_text(const std::string& text) {
  return text_of(broadcast(words_of(text)));
}

std::vector<std::vector<std::uint64_t>> Ranks::gather(const std::vector<std::uint64_t>& words) {
  if (size_ == 1) return {words};
  const int own = static_cast<int>(words.size());
  std::vector<int> sizes(static_cast<std::size_t>(size_));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Igather(&own, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
  wait(*this, request);

  std::vector<int> offsets(sizes.size());
  std::size_t total = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    offsets[i] = static_cast<int>(total);
    total += static_cast<std::size_t>(sizes[i]);
  }
  std::vector<std::uint64_t> all(total);
  MPI_Igatherv(words.data(), own, MPI_UINT64_T, all.data(), sizes.data(), offsets.data(),
               MPI_UINT64_T, 0, MPI_COMM_WORLD, &request);
  wait(*this, request);

  std::vector<std::vector<std::uint64_t>> parts;
  if (!is_root()) return parts;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto begin = all.begin() + offsets[i];
    parts.emplace_back(begin, begin + sizes[i]);
  }
  return parts;
}

std::vector<std::string> Ranks::gather_text(const std::string& text) {
  std::vector<std::string> texts;
  for (const auto& part : gather(words_of(text))) texts.push_back(text_of(part));
  return texts;
}

void Ranks::send_to_root(std::vector<std::uint64_t> words) {
  Sending& sending = sending_.emplace_back();
  sending.words = std::move(words);
  MPI_Isend(sending.words.data(), static_cast<int>(sending.words.size()), MPI_UINT64_T, 0,
            kWordsTag, MPI_COMM_WORLD, &sending.request);
}

std::optional<std::vector<std::uint64_t>> Ranks::try_receive() {
  if (size_ == 1) return std::nullopt;
  int arrived = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, kWordsTag, MPI_COMM_WORLD, &arrived, &status);
  if (arrived == 0) return std::nullopt;
  int count = 0;
  MPI_Get_count(&status, MPI_UINT64_T, &count);
  std::vector<std::uint64_t> words(static_cast<std::size_t>(count));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(words.data(), count, MPI_UINT64_T, status.MPI_SOURCE, kWordsTag, MPI_COMM_WORLD,
            &request);
  wait(*this, request);
  return words;
}

void Ranks::finish_sending() {
  for (Sending& sending : sending_) wait(*this, sending.request);
  sending_.clear();
}

void Ranks::pause() {
  // Only the root decides here; the root or the launcher ends the other ranks.
  if (is_root() && interrupted()) {
    const auto now = std::chrono::steady_clock::now();
    if (!interrupted_since_) interrupted_since_ = now;
    if (now - *interrupted_since_ > kTimeToAnswer || !ended().empty()) give_up();
  }
  if (given_up_.load()) throw RanksLost();
  std::this_thread::sleep_for(std::chrono::microseconds(500));
}

}  // namespace perdura::harness
