// Implements libpmemlog_target.h in a build with libpmemlog.
#include <fmt/format.h>
#include <libpmemlog.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bench/driver/mounted_directory.h"
#include "bench/log/libpmemlog_target.h"
#include "platform/base/error.h"

namespace perdura::bench {
namespace {

using services::LogError;

// Room that the library takes in the file besides the records.
constexpr Bytes kForLibrary = 64 * KiB;

// A log in a file of its own. When the log is full, all records are given up.
class LibpmemlogWriter final : public services::LogWriter {
 public:
  LibpmemlogWriter(const services::LogConfig& config, const std::string& directory)
      : file_(fmt::format("{}/perdura-log-{}", directory, getpid())) {
    const Bytes size = std::max<Bytes>(
        PMEMLOG_MIN_POOL, kForLibrary + config.records * std::max(1U, config.largest_record));
    pool_ = pmemlog_create(file_.c_str(), size, 0600);
    if (pool_ == nullptr) {
      throw UsageError(
          fmt::format("{}: libpmemlog cannot make a log of {} bytes: {}; path in "
                      "[systems.libpmemlog] must be a directory with room for it",
                      file_, size, pmemlog_errormsg()));
    }
  }
  ~LibpmemlogWriter() override {
    pmemlog_close(pool_);
    unlink(file_.c_str());
  }
  LibpmemlogWriter(const LibpmemlogWriter&) = delete;
  LibpmemlogWriter& operator=(const LibpmemlogWriter&) = delete;

  Task<tl::expected<std::uint64_t, LogError>> append(std::span<const std::byte> payload) override {
    if (pmemlog_append(pool_, payload.data(), payload.size()) != 0) {
      pmemlog_rewind(pool_);
      if (pmemlog_append(pool_, payload.data(), payload.size()) != 0) {
        co_return tl::unexpected(LogError::too_large);
      }
    }
    co_return ++tail_;
  }
  std::uint64_t tail() const override { return tail_; }

 private:
  const std::string file_;
  PMEMlogpool* pool_ = nullptr;
  std::uint64_t tail_ = 0;
};

class LibpmemlogTarget final : public LogTarget {
 public:
  LibpmemlogTarget(const services::LogConfig& config, std::string directory)
      : config_(config), directory_(std::move(directory)) {}

  std::string method_name(const fabric::Capabilities&) const override { return ""; }
  bool is_local() const override { return true; }
  std::unique_ptr<services::LogStore> open(Thread&, services::ApplyRecord) const override {
    return nullptr;
  }
  Task<std::unique_ptr<services::LogWriter>> connect(Thread&, fabric::Address) const override {
    co_return std::make_unique<LibpmemlogWriter>(config_, directory_);
  }

 private:
  const services::LogConfig config_;
  const std::string directory_;
};

}  // namespace

bool have_libpmemlog() { return true; }

std::unique_ptr<LogTarget> libpmemlog_target(const services::LogConfig& config,
                                             const std::string& directory) {
  // The library reads the variable when it is asked for the first time.
  if (file_system_at(directory) == "tmpfs") setenv("PMEM_IS_PMEM_FORCE", "1", 0);
  return std::make_unique<LibpmemlogTarget>(config, directory);
}

}  // namespace perdura::bench
