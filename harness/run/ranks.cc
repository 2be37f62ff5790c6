#include "harness/run/ranks.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace perdura::harness {
namespace {

constexpr int kWordsTag = 1;
constexpr int kStopTag = 2;

bool launched() {
  // Open MPI, PMIx launchers, Slurm, and MPICH's family.
  constexpr std::array names{"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_PROCID", "PMI_RANK"};
  for (const char* name : names) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

void wait(MPI_Request& request) {
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    Ranks::pause();
  }
}

}  // namespace

struct Ranks::Sending {
  std::vector<std::uint64_t> words;
  MPI_Request request = MPI_REQUEST_NULL;
};

Ranks::Ranks(int& argc, char**& argv) {
  if (!launched()) return;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  active_ = true;
}

Ranks::~Ranks() {
  if (!active_) return;
  if (size_ > 1) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    wait(request);
  }
  // A stop that came too late to be read.
  if (!is_root()) asked_to_stop();
  MPI_Finalize();
}

int Ranks::broadcast(int value) {
  if (size_ == 1) return value;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
  wait(request);
  return value;
}

std::vector<std::uint64_t> Ranks::broadcast(std::vector<std::uint64_t> words) {
  if (size_ == 1) return words;
  words.resize(static_cast<std::size_t>(broadcast(static_cast<int>(words.size()))));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(words.data(), static_cast<int>(words.size()), MPI_UINT64_T, 0, MPI_COMM_WORLD,
             &request);
  wait(request);
  return words;
}

std::vector<std::vector<std::uint64_t>> Ranks::gather(const std::vector<std::uint64_t>& words) {
  if (size_ == 1) return {words};
  const int own = static_cast<int>(words.size());
  std::vector<int> sizes(static_cast<std::size_t>(size_));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Igather(&own, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
  wait(request);

  std::vector<int> offsets(sizes.size());
  std::size_t total = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    offsets[i] = static_cast<int>(total);
    total += static_cast<std::size_t>(sizes[i]);
  }
  std::vector<std::uint64_t> all(total);
  MPI_Igatherv(words.data(), own, MPI_UINT64_T, all.data(), sizes.data(), offsets.data(),
               MPI_UINT64_T, 0, MPI_COMM_WORLD, &request);
  wait(request);

  std::vector<std::vector<std::uint64_t>> parts;
  if (!is_root()) return parts;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto begin = all.begin() + offsets[i];
    parts.emplace_back(begin, begin + sizes[i]);
  }
  return parts;
}

std::vector<std::string> Ranks::gather_text(const std::string& text) {
  // The last word tells how many bytes of those before it are text.
  std::vector<std::uint64_t> words((text.size() + 7) / 8 + 1);
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(words.data()));
  words.back() = text.size();
  std::vector<std::string> texts;
  for (const auto& part : gather(words)) {
    texts.emplace_back(reinterpret_cast<const char*>(part.data()), part.back());
  }
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
  MPI_Recv(words.data(), count, MPI_UINT64_T, status.MPI_SOURCE, kWordsTag, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  return words;
}

void Ranks::ask_to_stop() {
  if (stop_sent_) return;
  stop_sent_ = true;
  for (int other = 1; other < size_; ++other) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(nullptr, 0, MPI_BYTE, other, kStopTag, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  }
}

bool Ranks::asked_to_stop() {
  if (size_ == 1) return false;
  int arrived = 0;
  MPI_Iprobe(0, kStopTag, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
  if (arrived == 0) return false;
  MPI_Recv(nullptr, 0, MPI_BYTE, 0, kStopTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return true;
}

void Ranks::finish_sending() {
  for (Sending& sending : sending_) wait(sending.request);
  sending_.clear();
}

void Ranks::pause() { std::this_thread::sleep_for(std::chrono::microseconds(500)); }

}  // namespace perdura::harness
