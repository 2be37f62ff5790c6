// Writers, in directories of their own of a mounted file system and to a mapped file, until the
// process that serves the mount is killed, or the machine; and what they find when it is mounted
// again.
//
//   perdura_fs_writer --recovering RECORD
//   perdura_fs_writer DIRECTORY RECORD SEED [--last]
//
// The first notes that this life recovers. The second checks that what the calls of all lives so
// far have done is there, and goes on, or ends after the check.
//
// RECORD outlives them (writers_record.h). The exit code is 1 if something is not as it must be.
#include <fmt/format.h>

#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/mount/writers_record.h"

namespace perdura::fs::test {
namespace {

// The other writers end with it.
[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::_Exit(1);
}

// One thread for each writer, which begin to write when all have checked.
class Writers {
 public:
  Writers(std::string directory, WritersRecord& record, std::uint32_t seed, bool is_last)
      : directory_(std::move(directory)),
        record_(record),
        seed_(seed),
        is_last_(is_last),
        checked_(static_cast<std::ptrdiff_t>(record.writers.size() + 1), Working{record}) {}

  void run() {
    record_.calls = 0;
    std::vector<std::jthread> threads;
    for (std::size_t number = 0; number < record_.writers.size(); ++number) {
      threads.emplace_back([this, number] { call(number); });
    }
    threads.emplace_back([this] { store(); });
  }

 private:
  struct Working {
    WritersRecord& record;
    void operator()() const noexcept { record.phase = WritersRecord::Phase::working; }
  };

  void call(std::size_t number) {
    WriterRecord& record = record_.writers.at(number);
    const std::string directory = fmt::format("{}/{}", directory_, number);
    use(directory, [&] {
      if (record.lives == 0) {
        // It is there if a life has ended before its first call.
        std::filesystem::create_directory(directory);
        // As the root of the model, whatever the process' umask.
        std::filesystem::permissions(directory, std::filesystem::perms{0755});
      }
      Writer writer(directory, record, seed_ + static_cast<std::uint32_t>(number));
      check_and_write(writer, directory, [&] { return fmt::format("{} calls", writer.calls()); });
    });
  }

  void store() {
    const std::string path = directory_ + "/mapped";
    use(path, [&] {
      MappedWriter writer(path, record_.mapped, seed_);
      check_and_write(writer, path, [&] {
        return fmt::format("{} synchronizations", record_.mapped.synchronizations.load());
      });
    });
  }

  static void use(const std::string& where, const std::function<void()>& body) {
    try {
      body();
    } catch (const std::exception& error) {
      fail(where + ": " + error.what());
    }
  }

  void check_and_write(auto& writer, const std::string& where, const auto& text) {
    std::string wrong = writer.check();
    if (!wrong.empty()) fail(where + ": " + wrong);
    fmt::print("{}: {}, nothing lost\n", where, text());
    std::fflush(stdout);
    if (is_last_) return;
    checked_.arrive_and_wait();
    wrong = writer.write([this] { ++record_.calls; });
    if (!wrong.empty()) fail(where + ": " + wrong);
  }

  std::string directory_;
  WritersRecord& record_;
  std::uint32_t seed_;
  bool is_last_;
  std::barrier<Working> checked_;
};

}  // namespace
}  // namespace perdura::fs::test

int main(int count, char** words) {
  using namespace perdura::fs::test;
  const std::vector<std::string> arguments(words + 1, words + count);
  try {
    if (arguments.size() == 2 && arguments[0] == "--recovering") {
      map_record(arguments[1])->phase = WritersRecord::Phase::recovering;
      return 0;
    }
    const bool is_last = arguments.size() == 4 && arguments[3] == "--last";
    if (arguments.size() != 3 && !is_last) return 2;
    const auto seed = static_cast<std::uint32_t>(std::stoul(arguments[2]));
    const auto record = map_record(arguments[1]);
    Writers(arguments[0], *record, seed, is_last).run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "perdura_fs_writer: %s\n", error.what());
    return 2;
  }
}
