#include <array>

#include "systems/parameter_reader.h"
#include "systems/rpc_log/client.h"
#include "systems/rpc_log/rpc_log.h"
#include "systems/rpc_log/server.h"

namespace perdura::systems {
namespace {

constexpr std::string_view kName = "rpc-log";

// The interval at which the server looks for records to apply.
constexpr Picoseconds kLook = Microseconds(20);

constexpr Parameter kParameters[] = {
    {.name = "polled",
     .type = Flag{},
     .usual = false,
     .what = "requests are WRITTEN to a buffer that the server polls, as in HERD, instead of SENT"},
};
// It changes no guarantee: exploration is to try both ways.
constexpr std::array kChangesGuarantee{services::Setting{"polled", 1}};

// A message, whose record the server's CPU copies to its place and writes back, before it answers.
methods::Method published(const pmem::PersistenceModel&, const GivenParameters& given) {
  const ParameterReader parameters(kName, kParameters, given);
  return methods::find_method("send-copy-flush");
}

rpc_log::Options options_of(const services::LogConfig& config) {
  const ParameterReader parameters(kName, kParameters, config.parameters);
  return {.log = {.slots = config.records, .largest_payload = config.largest_record},
          .polls = parameters.flag("polled")};
}

class Store final : public services::LogStore {
 public:
  Store(Thread& thread, const std::string& name, const services::LogConfig& config,
        services::ApplyRecord apply)
      : server_(std::make_shared<rpc_log::LogServer>(thread, name, options_of(config),
                                                     std::move(apply))) {}
  Task<> serve() override { return server_->serve(kLook); }
  std::uint64_t applied() const override { return server_->applied(); }
  Task<> apply_all() override {
    server_->apply_all();
    co_return;
  }

 private:
  std::shared_ptr<rpc_log::LogServer> server_;
};

class Writer final : public services::LogWriter {
 public:
  explicit Writer(std::unique_ptr<rpc_log::LogClient> client) : client_(std::move(client)) {}
  Task<tl::expected<std::uint64_t, services::LogError>> append(
      std::span<const std::byte> payload) override {
    return client_->append(payload);
  }
  std::uint64_t tail() const override { return client_->tail(); }

 private:
  std::unique_ptr<rpc_log::LogClient> client_;
};

std::unique_ptr<services::LogStore> open(Thread& thread, std::string name,
                                         const services::LogConfig& config,
                                         services::ApplyRecord apply) {
  return std::make_unique<Store>(thread, name, config, std::move(apply));
}

Task<std::unique_ptr<services::LogWriter>> connect(Thread& thread, fabric::Address server,
                                                   services::LogConfig config) {
  auto client = co_await rpc_log::LogClient::connect(thread, server, options_of(config));
  co_return std::make_unique<Writer>(std::move(client));
}

}  // namespace

const services::LogSystem kRpcLog{
    .info = {.name = kName,
             .title = "Log by RPC",
             .paper = "the baseline of FileMR, section 5.4.5 of Yang's dissertation: a log behind "
                      "the RPCs of HERD",
             .guarantee = "appended records survive: the server's CPU makes them durable",
             .level = services::GuaranteeLevel::durable,
             .changes_guarantee = kChangesGuarantee,
             .parameters = kParameters},
    .published = published,
    .open = open,
    .connect = connect,
};

}  // namespace perdura::systems
