// The client of Redo Logging.
#pragma once

#include <memory>

#include "systems/write_ahead/client.h"

namespace perdura::systems::redo_logging {

class RedoSession final : public write_ahead::Client {
 public:
  static Task<std::unique_ptr<KvSession>> connect(Thread& thread, fabric::Address server,
                                                  KvConfig config);

  Task<Result<void>> put(Key key, Value value) override;

 private:
  using Client::Client;
};

}  // namespace perdura::systems::redo_logging
