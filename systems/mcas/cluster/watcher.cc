#include "systems/mcas/cluster/watcher.h"

#include <utility>
#include <vector>

#include "rpc/messages.h"

namespace perdura::systems::mcas::cluster {

namespace {

// Heartbeats that may have arrived and not been processed yet.
constexpr std::uint32_t kBeats = 8;
constexpr Bytes kRange = round_up(sizeof(Beat), kCacheLine);

}  // namespace

std::string_view to_string(What what) {
  switch (what) {
    case What::joined:
      return "JOIN";
    case What::left:
      return "LEAVE";
    case What::failed:
      return "FAIL";
  }
  return "";
}

// A member as this watcher knows it. It is shared by two tasks: listen() and lose_patience().
class Watcher::Watched : public std::enable_shared_from_this<Watched> {
 public:
  Watched(Thread& thread, const Timing& timing, Member member, std::weak_ptr<const Notify> notify)
      : thread_(thread),
        timing_(timing),
        member_(std::move(member)),
        notify_(std::move(notify)),
        buffers_(thread.node.create_region("heartbeats of " + member_.name, kBeats * kRange,
                                           pmem::Medium::dram)),
        memory_(thread.endpoint.register_memory(*buffers_, fabric::Access::local)) {}

  void start() {
    Executor::current().spawn(listen(shared_from_this()));
    Executor::current().spawn(lose_patience(shared_from_this()));
  }
  void forget() { forgotten_ = true; }
  bool is_there() const { return life_ != 0; }

 private:
  // Each task keeps the object alive.
  static Task<> listen(std::shared_ptr<Watched> self) {
    while (!self->forgotten_) {
      co_await self->hear_connection();
      co_await sleep_for(self->timing_.heartbeat);
    }
  }
  static Task<> lose_patience(std::shared_ptr<Watched> self) {
    while (!self->forgotten_) {
      const Time now = self->thread_.executor.now();
      const Time end = self->heard_ + self->timing_.patience;
      if (self->life_ != 0 && now >= end) self->end(What::failed);
      co_await sleep_for(self->life_ != 0 ? end - now : self->timing_.heartbeat);
    }
  }

  // Connects, and processes heartbeats until the connection ends.
  Task<> hear_connection() {
    fabric::CompletionQueue completions;
    const auto queue = thread_.endpoint.create_receive_queue(kBeats);
    for (std::uint32_t i = 0; i < kBeats; ++i) queue->post(buffer(i), i);
    const auto hello = rpc::bytes_of(kHello);
    fabric::QueuePairOptions options{queue.get(), &completions};
    options.connection_timeout = timing_.patience;
    const fabric::Connection connection = co_await thread_.endpoint.connect(
        member_.address, options, std::vector<std::byte>(hello.begin(), hello.end()));
    if (connection.status != fabric::Status::success) co_return;
    hear(rpc::read_message<Beat>(connection.private_data));
    while (!forgotten_) {
      const fabric::ReceiveCompletion received = co_await completions.next();
      if (received.status != fabric::Status::success) co_return;
      hear(rpc::read_message<Beat>(received.buffer.bytes()));
      queue->post(buffer(received.buffer_id), received.buffer_id);
    }
  }

  void hear(const Beat& beat) {
    // A life that has left does not join again, even if it still answers.
    if (beat.life == left_) return;
    heard_ = thread_.executor.now();
    if (life_ != 0 && beat.life != life_) end(What::failed);
    if (life_ == 0) {
      life_ = beat.life;
      tell(What::joined, life_);
    }
    if (beat.leaves != 0) {
      left_ = life_;
      end(What::left);
    }
  }
  void end(What what) { tell(what, std::exchange(life_, 0)); }
  void tell(What what, Life life) const {
    const std::shared_ptr<const Notify> notify = notify_.lock();
    if (notify != nullptr && !forgotten_) (*notify)({what, member_.name, life});
  }
  fabric::LocalBuffer buffer(std::uint64_t index) const {
    return memory_.local(index * kRange, kRange);
  }

  static constexpr Hello kHello{};
  Thread& thread_;
  Timing timing_;
  Member member_;
  std::weak_ptr<const Notify> notify_;
  std::unique_ptr<pmem::Region> buffers_;
  fabric::MemoryRegion memory_;
  bool forgotten_ = false;
  Life life_ = 0;  // the life that has joined; 0: none
  Life left_ = 0;  // the last life that has left
  Time heard_{};
};

Watcher::Watcher(Thread& thread, const Timing& timing, Notify notify)
    : thread_(thread),
      timing_(timing),
      notify_(std::make_shared<const Notify>(std::move(notify))) {}

Watcher::~Watcher() {
  for (const auto& [name, member] : members_) member->forget();
}

void Watcher::add(const Member& member) {
  auto& watched = members_[member.name];
  if (watched != nullptr) return;
  watched = std::make_shared<Watched>(thread_, timing_, member, notify_);
  watched->start();
}

void Watcher::remove(const std::string& name) {
  const auto found = members_.find(name);
  if (found == members_.end()) return;
  found->second->forget();
  members_.erase(found);
}

bool Watcher::is_there(const std::string& name) const {
  const auto found = members_.find(name);
  return found != members_.end() && found->second->is_there();
}

}  // namespace perdura::systems::mcas::cluster
