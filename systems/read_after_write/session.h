// The client of Read After Write.
#pragma once

#include <memory>

#include "methods/durable_write.h"
#include "systems/write_ahead/client.h"

namespace perdura::systems::read_after_write {

class RingSession final : public write_ahead::Client {
 public:
  static Task<std::unique_ptr<kv::KvSession>> connect(Thread& thread, fabric::Address server,
                                                      kv::KvConfig config);

  Task<kv::Result<void>> put(kv::Key key, kv::Value value) override;

 private:
  RingSession(Thread& thread, const write_ahead::Parameters& parameters,
              const kv::KvConfig& config);
  fabric::RemoteAddress remote_slot(std::uint64_t position) const;

  methods::DurableWrite durable_;
};

}  // namespace perdura::systems::read_after_write
