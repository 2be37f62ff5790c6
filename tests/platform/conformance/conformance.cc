#include "tests/platform/conformance/conformance.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "platform/pmem/mapped/pool_file.h"

namespace perdura::conformance {

using fabric::Access;
using fabric::RemoteKey;
using fabric::Status;

std::string new_pm_directory() {
  const char* const place = std::getenv("PERDURA_TEST_PM");
  if (place == nullptr) return "";
  static int created = 0;
  const auto path = [&](int n) { return std::string(place) + "/conformance-" + std::to_string(n); };
  // The next one ends what the one before it has left.
  pmem::mapped::remove_pool_directory(path(created));
  pmem::mapped::remove_pool_directory(path(++created));
  return path(created);
}

void Conformance::prepare(Side& side, const PairOptions& options) {
  Thread& thread = side.thread;
  const std::string name = "port-" + std::to_string(thread.endpoint.address().port);
  side.region = thread.node.create_region(name + "-memory", kMemory, options.memory);
  side.buffers =
      thread.node.create_region(name + "-buffers", kReceiveDepth * kMessage, options.buffers);
  side.memory = thread.endpoint.register_memory(*side.region, Access::remote_all);
  side.buffer_memory = thread.endpoint.register_memory(*side.buffers, Access::local);
  side.receive_queue = thread.endpoint.create_receive_queue(kReceiveDepth);
  for (std::uint32_t id = 0; id < options.receives_posted; ++id) side.post_receive(id);
}

Task<> Conformance::accept(Side* side, PairOptions options) {
  auto request = co_await side->thread.endpoint.next_connection();
  std::memcpy(&side->there.key, request->private_data().data(), sizeof(RemoteKey));
  side->queue_pair = request->accept({.receive_queue = side->receive_queue.get(),
                                      .completions = &side->completions,
                                      .send_depth = options.send_depth},
                                     std::as_bytes(std::span(&side->memory.key, 1)));
}

Task<> Conformance::connect(Side* side, fabric::Address to, PairOptions options) {
  std::vector<std::byte> key(sizeof(RemoteKey));
  std::memcpy(key.data(), &side->memory.key, sizeof(RemoteKey));
  fabric::Connection connection =
      co_await side->thread.endpoint.connect(to,
                                             {.receive_queue = side->receive_queue.get(),
                                              .completions = &side->completions,
                                              .send_depth = options.send_depth},
                                             std::move(key));
  if (connection.status != Status::success) throw std::runtime_error("cannot connect");
  std::memcpy(&side->there.key, connection.private_data.data(), sizeof(RemoteKey));
  side->queue_pair = std::move(connection.queue_pair);
}

void Conformance::connected(const PairOptions& options, const Body& server,
                            const Body& client) const {
  const auto platform = make(options.platform);
  const auto barrier = platform->create_barrier(2);
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    Side side(thread);
    side.barrier = barrier.get();
    prepare(side, options);
    co_await accept(&side, options);
    co_await server(side);
  });
  platform->start(1, 1, mode(), [&](Thread& thread) -> Task<> {
    Side side(thread);
    side.barrier = barrier.get();
    prepare(side, options);
    co_await connect(&side, {0, 1}, options);
    co_await client(side);
  });
  platform->run();
}

void Conformance::with_idle_server(const PairOptions& options, const Body& client) const {
  connected(
      options, [](Side& side) -> Task<> { co_await side.meet(); },
      [&](Side& side) -> Task<> {
        co_await client(side);
        co_await side.meet();
      });
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>((i * 131 + seed * 17 + i / 256 + 1) & 0xFF);
  }
  return bytes;
}

std::vector<std::byte> contents(const pmem::Region& region, Bytes offset, std::size_t size) {
  std::vector<std::byte> bytes(size);
  region.read(offset, bytes);
  return bytes;
}

std::string text_of(const fabric::LocalBuffer& buffer) {
  const auto bytes = contents(*buffer.region, buffer.offset, buffer.length);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace perdura::conformance
