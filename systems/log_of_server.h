// A log that a server class keeps and a client class appends to, as a system of the service `log`.
//
//   Server   made by make_shared of (thread, name, Options, ApplyRecord); serve(look), applied(),
//            apply_all()
//   Client   connect(thread, server, Options); append(payload), tail()
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "services/log/log.h"

namespace perdura::systems {

// `kOptionsOf`: the options that both take, of a services::LogConfig.
template <class Server, class Client, auto kOptionsOf>
class LogOfServer {
 public:
  static std::unique_ptr<services::LogStore> open(Thread& thread, std::string name,
                                                  const services::LogConfig& config,
                                                  services::ApplyRecord apply) {
    return std::make_unique<Store>(
        std::make_shared<Server>(thread, name, kOptionsOf(config), std::move(apply)));
  }
  static Task<std::unique_ptr<services::LogWriter>> connect(Thread& thread, fabric::Address server,
                                                            services::LogConfig config) {
    co_return std::make_unique<Writer>(
        co_await Client::connect(thread, server, kOptionsOf(config)));
  }

 private:
  // The interval at which the server looks for records to apply.
  static constexpr Picoseconds kLook = Microseconds(20);

  class Store final : public services::LogStore {
   public:
    explicit Store(std::shared_ptr<Server> server) : server_(std::move(server)) {}
    Task<> serve() override { return server_->serve(kLook); }
    std::uint64_t applied() const override { return server_->applied(); }
    Task<> apply_all() override { return server_->apply_all(); }

   private:
    std::shared_ptr<Server> server_;
  };

  class Writer final : public services::LogWriter {
   public:
    explicit Writer(std::unique_ptr<Client> client) : client_(std::move(client)) {}
    Task<tl::expected<std::uint64_t, services::LogError>> append(
        std::span<const std::byte> payload) override {
      return client_->append(payload);
    }
    std::uint64_t tail() const override { return client_->tail(); }

   private:
    std::unique_ptr<Client> client_;
  };
};

}  // namespace perdura::systems
