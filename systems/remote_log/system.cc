#include "systems/remote_log/system.h"

#include <array>

#include "systems/parameter_reader.h"
#include "systems/remote_log/log_server.h"
#include "systems/remote_log/remote_log.h"

namespace perdura::systems {
namespace {

using methods::Carrier;
using methods::Update;
using services::Setting;

// The interval at which the server looks for records to apply.
constexpr Picoseconds kCollect = Microseconds(20);

constexpr Parameter kParameters[] = {
    {.name = "write_with_immediate",
     .type = Flag{},
     .usual = false,
     .what = "appends are carried by WRITE_WITH_IMM instead of WRITE"},
    {.name = "send", .type = Flag{}, .usual = false, .what = "appends are carried by SEND"},
    {.name = "ordered",
     .type = Flag{},
     .usual = false,
     .what = "a tail is written after each record instead of a checksum in it"},
};
// Not `ordered`: its methods need ATOMIC WRITE, which not every device has.
constexpr std::array kChangesGuarantee{
    Setting{"write_with_immediate", 1, {.write_with_immediate = true}}, Setting{"send", 1}};

methods::Method published(const pmem::PersistenceModel& model, const GivenParameters& given) {
  const ParameterReader parameters("remote-log", kParameters, given);
  const Carrier carrier = parameters.flag("write_with_immediate") ? Carrier::write_immediate
                          : parameters.flag("send")               ? Carrier::send
                                                                  : Carrier::write;
  return methods::method_of_paper({model, pmem::Medium::dram},
                                  parameters.flag("ordered") ? Update::ordered : Update::single,
                                  carrier);
}

remote_log::LogOptions options_of(const services::LogConfig& config, Thread& thread) {
  remote_log::LogOptions options;
  options.method = config.method;
  options.slots = config.records;
  options.largest_record = config.largest_record;
  return options.on(thread.endpoint.capabilities());
}

class Store final : public services::LogStore {
 public:
  Store(Thread& thread, const std::string& name, const remote_log::LogOptions& options,
        Picoseconds collect, services::ApplyRecord apply)
      : thread_(thread), collect_(collect), server_(thread, name, options, std::move(apply)) {}
  Task<> serve() override {
    thread_.executor.spawn(server_.collect(collect_));
    co_await server_.serve();
  }
  std::uint64_t applied() const override { return server_.head(); }
  Task<> apply_all() override {
    while (server_.apply_some(1) == 1) {
    }
    co_return;
  }

 private:
  Thread& thread_;
  const Picoseconds collect_;
  remote_log::LogServer server_;
};

class Writer final : public services::LogWriter {
 public:
  explicit Writer(std::unique_ptr<remote_log::RemoteLog> log) : log_(std::move(log)) {}
  Task<tl::expected<std::uint64_t, services::LogError>> append(
      std::span<const std::byte> payload) override {
    using methods::UpdateError;
    const auto number = co_await log_->append(payload);
    if (number) co_return *number;
    co_return tl::unexpected(number.error() == UpdateError::too_large
                                 ? services::LogError::too_large
                                 : services::LogError::disconnected);
  }
  std::uint64_t tail() const override { return log_->tail(); }

 private:
  std::unique_ptr<remote_log::RemoteLog> log_;
};

std::unique_ptr<services::LogStore> open(Thread& thread, std::string name,
                                         const services::LogConfig& config,
                                         services::ApplyRecord apply) {
  return remote_log::open_store(thread, name, options_of(config, thread), kCollect,
                                std::move(apply));
}

Task<std::unique_ptr<services::LogWriter>> connect(Thread& thread, fabric::Address server,
                                                   services::LogConfig config) {
  return remote_log::connect_writer(thread, server, options_of(config, thread));
}

}  // namespace

namespace remote_log {

std::unique_ptr<services::LogStore> open_store(Thread& thread, const std::string& name,
                                               const LogOptions& options, Picoseconds collect,
                                               services::ApplyRecord apply) {
  return std::make_unique<Store>(thread, name, options, collect, std::move(apply));
}

Task<std::unique_ptr<services::LogWriter>> connect_writer(Thread& thread, fabric::Address server,
                                                          LogOptions options) {
  auto log = co_await RemoteLog::connect(thread, server, std::move(options));
  co_return std::make_unique<Writer>(std::move(log));
}

}  // namespace remote_log

const services::LogSystem kRemoteLog{
    .info = {.name = "remote-log",
             .title = "RemoteLog",
             .paper = "Correct, Fast Remote Persistence; section 4.1",
             .guarantee = "appended records survive, by the paper's method for the server",
             .level = services::GuaranteeLevel::durable,
             .changes_guarantee = kChangesGuarantee,
             .parameters = kParameters},
    .published = published,
    .append = methods::UpdateNeeds{},
    .open = open,
    .connect = connect,
};

}  // namespace perdura::systems
