// Makes a system's WRITE durable before the system acknowledges it, by any method for single
// updates by WRITE (methods/taxonomy.methods). If the responder's CPU takes part, the system
// itself sends the message to it and receives the acknowledgment.
//
//   const DurableWrite durable(*config.put_method, thread.endpoint.capabilities());
//   co_await durable.write(queue_pair, object, place, word);
//   if (durable.asks_responder()) ...  // SENDs a message on the same connection; the answer says
//                                      // that the data has been flushed
#pragma once

#include <optional>

#include "methods/method.h"
#include "platform/fabric/fabric.h"

namespace perdura::methods {

class DurableWrite {
 public:
  // Without a method, write() is a WRITE and its completion, whatever that guarantees.
  DurableWrite() = default;
  // Throws UsageError if the method is not for single updates by WRITE. READ emulates FLUSH if the
  // device has none.
  DurableWrite(const Method& method, const fabric::Capabilities& capabilities);

  bool asks_responder() const { return asks_responder_; }

  // Returns false if the connection broke. `word` is a local buffer for the result of a READ. If
  // the responder has to be asked, the WRITE may still be in flight on return; requests posted
  // later on the same connection are ordered after it.
  Task<bool> write(fabric::QueuePair& queue_pair, fabric::LocalBuffer data,
                   fabric::RemoteAddress place, fabric::LocalBuffer word) const;

 private:
  bool asks_responder_ = false;
  // READ or FLUSH after the WRITE; its address is filled in later.
  std::optional<fabric::WorkRequest> behind_{};
};

}  // namespace perdura::methods
