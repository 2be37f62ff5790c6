// One point of a sweep of writes to a remote file on one process: starts the threads of the nodes
// that this process runs, defines what they do in each phase (harness/run/phases.h), and collects
// what they measured. In the end the client reads the file and compares it with what it wrote last.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bench/remote_file/remote_file.h"
#include "harness/run/phases.h"
#include "harness/run/point.h"

namespace perdura::bench {

// A write in results.
inline const harness::OperationKind kFileWrite{0, "write"};

class RemoteFileRun {
 public:
  // `file` must outlive the run.
  RemoteFileRun(Platform& platform, const harness::Point& point, RemoteFile& file,
                const RemoteFileOptions& options);
  // Rethrows the exception that ended the platform's run(); such a run has no results.
  harness::Measurement execute();

 private:
  class Server;
  class Client;

  Task<> serve(Thread& thread);
  Task<> use(Thread& thread);

  Platform& platform_;
  const harness::Point& point_;
  RemoteFile& file_;
  const RemoteFileOptions options_;
  std::optional<harness::Phases> phases_;
  std::unique_ptr<Platform::Barrier> opened_;
  std::vector<harness::Measurement> servers_;  // by node
  harness::Measurement client_;
};

}  // namespace perdura::bench
