#include "bench/log/local_log_target.h"

#include "systems/rpc_log/local_log.h"

namespace perdura::bench {
namespace {

using services::LogError;
using systems::rpc_log::LocalLog;

// Gives room up when the log is full: nobody applies its records.
class LocalWriter final : public services::LogWriter {
 public:
  LocalWriter(Node& node, const services::LogConfig& config)
      : config_(config),
        log_(node, "local-log",
             {.slots = config.records, .largest_payload = config.largest_record}) {}

  Task<tl::expected<std::uint64_t, LogError>> append(std::span<const std::byte> payload) override {
    if (payload.size() > config_.largest_record) co_return tl::unexpected(LogError::too_large);
    if (log_.is_full()) log_.rewind();
    co_return log_.append(payload);
  }
  std::uint64_t tail() const override { return log_.tail(); }

 private:
  const services::LogConfig config_;
  LocalLog log_;
};

class LocalLogTarget final : public LogTarget {
 public:
  explicit LocalLogTarget(const services::LogConfig& config) : config_(config) {}

  std::string method_name(const fabric::Capabilities&) const override { return ""; }
  bool is_local() const override { return true; }
  std::unique_ptr<services::LogStore> open(Thread&, services::ApplyRecord) const override {
    return nullptr;
  }
  Task<std::unique_ptr<services::LogWriter>> connect(Thread& thread,
                                                     fabric::Address) const override {
    co_return std::make_unique<LocalWriter>(thread.node, config_);
  }

 private:
  const services::LogConfig config_;
};

}  // namespace

const services::SystemInfo kLocalLog{
    .name = "local-log",
    .title = "Local log",
    .paper = "libpmemlog of the Persistent Memory Development Kit",
    .guarantee = "appended records survive",
    .level = services::GuaranteeLevel::durable,
};

std::unique_ptr<LogTarget> local_log_target(const services::LogConfig& config) {
  return std::make_unique<LocalLogTarget>(config);
}

}  // namespace perdura::bench
