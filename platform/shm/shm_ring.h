// A message ring (host/mapped_ring.h) in a file that processes of one host map. The ends are owned
// by lives of nodes (fabric/shm/layout.h): another process takes over an end when the life that
// owns it has ended.
#pragma once

#include <memory>
#include <string>

#include "platform/fabric/shm/job.h"
#include "platform/message_ring.h"

namespace perdura {

// Open an end of a ring. To be called by a task of the thread that uses the end; `life` is that of
// its node. The ring's file is `path`; it is made if there is none. Throw UsageError as
// MessageRings does.
std::unique_ptr<RingProducer> open_shm_producer(fabric::shm::Job& job, std::uint64_t life,
                                                const std::string& path, std::string_view name,
                                                RingShape shape);
std::unique_ptr<RingConsumer> open_shm_consumer(fabric::shm::Job& job, std::uint64_t life,
                                                const std::string& path, std::string_view name,
                                                RingShape shape);

}  // namespace perdura
