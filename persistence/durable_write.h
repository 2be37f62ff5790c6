// Makes a system's WRITE durable before the system acknowledges it, by any method for single
// updates by WRITE (persistence/taxonomy.methods). Where the responder's CPU takes part,
// the message to it and its acknowledgment are the system's own.
//
//   const DurableWrite durable(*config.put_method, thread.endpoint.capabilities());
//   co_await durable.write(queue_pair, object, place, word);
//   if (durable.asks_responder()) ...  // SENDs a message on the same connection; the answer says
//                                      // that the data has been flushed
#pragma once

#include <optional>

#include "persistence/method.h"
#include "platform/fabric/fabric.h"

namespace perdura::persistence {

class DurableWrite {
 public:
  // A WRITE and its completion, whatever that guarantees.
  DurableWrite() = default;
  // Throws UsageError if the method is for something else. READ takes the place of FLUSH where the
  // device has none.
  DurableWrite(const Method& method, const fabric::Capabilities& capabilities);

  bool asks_responder() const { return asks_responder_; }

  // False if the connection broke. `word` is local memory for what a READ brings. If the responder
  // is to be asked, the WRITE may still be under way: what is posted next comes behind it.
  Task<bool> write(fabric::QueuePair& queue_pair, fabric::LocalBuffer data,
                   fabric::RemoteAddress place, fabric::LocalBuffer word) const;

 private:
  bool asks_responder_ = false;
  std::optional<fabric::WorkRequest> behind_{};  // READ or FLUSH, without a place
};

}  // namespace perdura::persistence
