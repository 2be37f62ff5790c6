#include "systems/orion/mds/mirror.h"

#include <algorithm>
#include <utility>

#include "platform/base/error.h"
#include "platform/pmem/view_of_region.h"

namespace perdura::systems::orion {

namespace {

constexpr mojim::Mode kMode{"orion-mirror", "M-sync", mojim::Copies::mirror, true, false};
// Attempts to connect to the mirror again, before it counts as lost.
constexpr std::uint64_t kFewAttempts = 3;
constexpr std::uint64_t kManyAttempts = 1000;
constexpr std::uint64_t kMostLines = 1024;
constexpr Picoseconds kBetweenAttempts = Microseconds(200);

}  // namespace

const mojim::Mode& mirror_mode() { return kMode; }

services::MemoryConfig mirror_config(const Parameters& parameters, NodeId mds) {
  return {.size = parameters.metadata / kPage * kPage,
          .threads = 1,
          .nodes = {mds, parameters.other_mds(mds)},
          .completion = parameters.completion,
          .parameters = {{"log_slots", parameters.mirror_slots},
                         {"timeout_us", parameters.mirror_timeout_us},
                         {"resends", parameters.goes_on_alone ? kFewAttempts : kManyAttempts}},
          .method = parameters.mirror_method};
}

services::MemoryConfig config_alone(const Parameters& parameters, NodeId node) {
  services::MemoryConfig config = mirror_config(parameters, node);
  config.nodes = {node};
  return config;
}

// The view of the volume. The MDS' own memory is flushed, too, so that it is a whole file system if
// the mirror is lost.
class Mirror::Noting final : public pmem::ViewOfRegion {
 public:
  Noting(pmem::Region& of, ChangedLines& lines) : ViewOfRegion(of), lines_(lines) {}

  void flush(Bytes offset, Bytes length) override {
    region().flush(offset, length);
    flushed(offset, length);
  }
  void drain() override {
    region().drain();
    lines_.drained(region());
  }

 private:
  void flushed(Bytes offset, Bytes length) override { lines_.flushed(offset, length); }

  ChangedLines& lines_;
};

Mirror::Mirror(Thread& thread, std::shared_ptr<mojim::Replica> replica,
               std::shared_ptr<mojim::SyncSession> session, const Parameters& parameters)
    : thread_(thread),
      replica_(std::move(replica)),
      session_(std::move(session)),
      memory_(session_->region()),
      goes_on_alone_(parameters.goes_on_alone || session_->is_alone()),
      lines_(std::min(kMostLines, parameters.mirror_slots)) {}

Task<std::unique_ptr<Mirror>> Mirror::connect(Thread& thread,
                                              std::shared_ptr<mojim::Replica> replica,
                                              const Parameters& parameters) {
  for (;;) {
    try {
      std::shared_ptr<mojim::SyncSession> session = co_await replica->connect(thread);
      co_return std::unique_ptr<Mirror>(
          new Mirror(thread, replica, std::move(session), parameters));
    } catch (const PlatformError&) {
      // It starts later, or comes back after a failure.
    }
    co_await sleep_for(kBetweenAttempts);
  }
}

Task<> Mirror::connect_again() {
  std::shared_ptr<mojim::SyncSession> session = co_await replica_->connect(thread_);
  session_ = std::move(session);
}

Task<> Mirror::connect_again(std::function<Task<>()> pause, std::function<void()> resume,
                             bool goes_on_alone) {
  const mojim::CopyingSteps steps{.begins =
                                      [this, &resume](std::shared_ptr<mojim::SyncSession> session) {
                                        session_ = std::move(session);
                                        resume();
                                      },
                                  .ends = [this, &pause]() -> Task<> {
                                    co_await pause();
                                    co_await settle();
                                  }};
  std::shared_ptr<mojim::SyncSession> session = co_await replica_->connect(thread_, steps);
  session_ = std::move(session);
  goes_on_alone_ = goes_on_alone;
  if (session_->is_alone() && !goes_on_alone_) failed_ = true;
}

std::unique_ptr<pmem::Region> Mirror::view(const std::string& name) {
  pmem::Region& region = memory();
  return std::make_unique<pmem::Region>(name, pmem::Medium::pm, region.data(), region.size(),
                                        std::make_shared<Noting>(region, lines_), nullptr);
}

Task<bool> Mirror::settle() {
  const std::uint64_t changes = lines_.changes();
  while (settled_ < changes && !failed_) {
    if (sending_) {
      co_await wait(changed_);
    } else {
      co_await send_next();
    }
  }
  co_return !failed_;
}

Task<> Mirror::send_next() {
  sending_ = true;
  const Time since = thread_.executor.now();
  const ChangedLines::Batch batch = lines_.take();
  // When the thread ends, the connection lives as long as this task.
  const std::shared_ptr<mojim::SyncSession> session = session_;
  const auto synced = co_await session->sync(batch.ranges, batch.contents);
  if (!synced || (session->is_alone() && !goes_on_alone_)) {
    failed_ = true;
  } else {
    settled_ = batch.until;
    if (told_) told_(settled_, since);
  }
  sending_ = false;
  changed_.wake_all();
}

}  // namespace perdura::systems::orion
