#include "bench/remote_file/verbs_file.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "rpc/messages.h"

namespace perdura::bench {

Task<FileConnection> connect_to_file(Thread& thread, NodeId server) {
  fabric::Connection made = co_await thread.endpoint.connect({server, 0}, {}, {});
  if (made.queue_pair == nullptr) {
    throw PlatformError(
        fmt::format("the server of the file cannot be reached: {}", to_string(made.status)));
  }
  co_return FileConnection{std::move(made.queue_pair),
                           rpc::read_message<FilePlace>(made.private_data)};
}

Task<> VerbsFile::open(Thread& thread) {
  memory_ = thread.node.create_region("file", size_, pmem::Medium::pm);
  registered_ = thread.endpoint.register_memory(*memory_, fabric::Access::remote_all);
  co_return;
}

// The connections end with the thread that has them.
Task<> VerbsFile::serve(Thread& thread) {
  const FilePlace here{registered_.remote(0)};
  fabric::CompletionQueue completions;
  std::vector<std::unique_ptr<fabric::QueuePair>> clients;
  for (;;) {
    const auto request = co_await thread.endpoint.next_connection();
    clients.push_back(request->accept({.completions = &completions}, rpc::bytes_of(here)));
  }
}

}  // namespace perdura::bench
