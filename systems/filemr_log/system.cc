#include <array>

#include "systems/filemr_log/client.h"
#include "systems/filemr_log/filemr_log.h"
#include "systems/filemr_log/server.h"
#include "systems/parameter_reader.h"

namespace perdura::systems {
namespace {

using services::Setting;

// The interval at which the server looks for records to apply.
constexpr Picoseconds kLook = Microseconds(20);

constexpr Parameter kParameters[] = {
    {.name = "flush",
     .type = Flag{},
     .usual = false,
     .what = "each APPEND is followed by a FLUSH or READ, the workaround of section 5.5.1"},
};
constexpr std::array kChangesGuarantee{Setting{"flush", 1}};

// The paper's log ends with the completion of the APPEND; its section "Data Persistence" leaves the
// rest to a workaround or to future devices.
methods::Method published(const pmem::PersistenceModel&, const GivenParameters& given) {
  const ParameterReader parameters("filemr-log", kParameters, given);
  return methods::find_method(parameters.flag("flush") ? "write-flush" : "write");
}

filemr_log::Options options_of(const services::LogConfig& config) {
  return {.room = config.records * filemr_log::record_size(config.largest_record),
          .largest_payload = config.largest_record,
          .persistence = filemr_log::persistence_of(config.method)};
}

class Store final : public services::LogStore {
 public:
  Store(Thread& thread, const std::string& name, const services::LogConfig& config,
        services::ApplyRecord apply)
      : server_(std::make_shared<filemr_log::LogServer>(thread, name, options_of(config),
                                                        std::move(apply))) {}
  Task<> serve() override { return server_->serve(kLook); }
  std::uint64_t applied() const override { return server_->applied(); }
  Task<> apply_all() override { return server_->apply_all(); }

 private:
  std::shared_ptr<filemr_log::LogServer> server_;
};

class Writer final : public services::LogWriter {
 public:
  explicit Writer(std::unique_ptr<filemr_log::LogClient> client) : client_(std::move(client)) {}
  Task<tl::expected<std::uint64_t, services::LogError>> append(
      std::span<const std::byte> payload) override {
    return client_->append(payload);
  }
  std::uint64_t tail() const override { return client_->tail().number; }

 private:
  std::unique_ptr<filemr_log::LogClient> client_;
};

std::unique_ptr<services::LogStore> open(Thread& thread, std::string name,
                                         const services::LogConfig& config,
                                         services::ApplyRecord apply) {
  return std::make_unique<Store>(thread, name, config, std::move(apply));
}

Task<std::unique_ptr<services::LogWriter>> connect(Thread& thread, fabric::Address server,
                                                   services::LogConfig config) {
  auto client = co_await filemr_log::LogClient::connect(thread, server, options_of(config));
  co_return std::make_unique<Writer>(std::move(client));
}

}  // namespace

const services::LogSystem kFileMrLog{
    .info = {.name = "filemr-log",
             .title = "FileMR log",
             .paper = "FileMR: Rethinking RDMA Networking for Scalable Persistent Memory, Yang, "
                      "Izraelevitz, Swanson; section 5.3.2 of Yang's dissertation",
             .guarantee = "appended records are visible, and survive where caches and devices do",
             .level = services::GuaranteeLevel::visible,
             .changes_guarantee = kChangesGuarantee,
             .parameters = kParameters,
             .needs = {.extents = true, .appends = true}},
    .published = published,
    // The method of a WRITE, whose place the APPEND takes.
    .append = methods::UpdateNeeds{.carrier = methods::Carrier::write},
    .open = open,
    .connect = connect,
};

}  // namespace perdura::systems
