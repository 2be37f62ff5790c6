#include "systems/mcas/ado/peer_client.h"

#include "rpc/messages.h"

namespace perdura::systems::mcas::ado {

namespace {

using objects::Error;

template <class T>
std::string text_of(const T& message) {
  const auto bytes = rpc::bytes_of(message);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
template <class T>
T read(const std::string& text) {
  return rpc::read_message<T>(std::as_bytes(std::span(text)));
}

objects::Result<void> without_value(const objects::Result<std::string>& reply) {
  if (!reply) return tl::unexpected(reply.error());
  return {};
}

}  // namespace

Task<objects::Result<void>> PeerClient::connect(Services& services) {
  connected_ = false;
  const Answer<std::string> welcome =
      co_await services.connect_peer(text_of(Hello{mcas::kProtocolVersion}));
  if (welcome.status == CallStatus::refused) co_return tl::unexpected(Error::unsupported);
  if (!welcome) co_return tl::unexpected(Error::disconnected);
  limits_ = read<Welcome>(welcome.value);
  connected_ = true;
  co_return objects::Result<void>{};
}

Task<objects::Result<PoolHandle>> PeerClient::open_pool(Services& services, std::string name,
                                                        Bytes size) {
  const std::string argument = text_of(PoolSize{size});
  const auto reply = co_await ask(
      services, {.kind = RequestKind::open_pool, .flags = kCreateOnDemand}, name, argument);
  if (!reply) co_return tl::unexpected(reply.error());
  co_return read<PoolHandle>(*reply);
}

Task<objects::Result<void>> PeerClient::put(Services& services, PoolHandle pool,
                                            std::string_view key, std::string_view value) {
  co_return without_value(
      co_await ask(services, {.kind = RequestKind::put, .pool = pool}, key, value));
}

Task<objects::Result<std::string>> PeerClient::get(Services& services, PoolHandle pool,
                                                   std::string_view key) {
  co_return co_await ask(services, {.kind = RequestKind::get, .pool = pool}, key, {});
}

Task<objects::Result<void>> PeerClient::erase(Services& services, PoolHandle pool,
                                              std::string_view key) {
  co_return without_value(
      co_await ask(services, {.kind = RequestKind::erase, .pool = pool}, key, {}));
}

objects::Result<std::string> PeerClient::lost() {
  connected_ = false;
  return tl::unexpected(Error::disconnected);
}

Task<objects::Result<std::string>> PeerClient::ask(Services& services, Request header,
                                                   std::string_view key, std::string_view value) {
  if (key.size() > limits_.max_key_size || value.size() > limits_.longest_value()) {
    co_return tl::unexpected(Error::too_large);
  }
  header.key_length = static_cast<std::uint32_t>(key.size());
  header.value_length = static_cast<std::uint32_t>(value.size());
  std::string message = text_of(header);
  message.append(key).append(value);
  const CallStatus sent = co_await services.send_to_peer(std::move(message));
  if (sent == CallStatus::refused) co_return tl::unexpected(Error::too_large);
  if (sent != CallStatus::done) co_return lost();
  const Answer<std::string> answer = co_await services.receive_from_peer();
  if (!answer) co_return lost();
  const auto reply = read<Reply>(answer.value);
  if (answer.value.size() < sizeof reply || reply.size() != answer.value.size()) co_return lost();
  if (reply.status != kDone) co_return tl::unexpected(error_of(reply.status));
  co_return answer.value.substr(sizeof reply);
}

}  // namespace perdura::systems::mcas::ado
