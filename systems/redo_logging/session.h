// The client of Redo Logging.
#pragma once

#include <memory>

#include "systems/write_ahead/client.h"

namespace perdura::systems::redo_logging {

class RedoSession final : public write_ahead::Client {
 public:
  static Task<std::unique_ptr<kv::KvSession>> connect(Thread& thread, fabric::Address server,
                                                      kv::KvConfig config);

  Task<kv::Result<void>> put(kv::Key key, kv::Value value) override;

 private:
  using Client::Client;
};

}  // namespace perdura::systems::redo_logging
