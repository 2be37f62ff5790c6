#include "systems/mcas/ado/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "platform/base/error.h"
#include "platform/base/printable.h"

namespace perdura::systems::mcas::ado {

namespace {

constexpr std::size_t kPiece = 64;  // references that one call of iterate() returns
// Limits per process: messages handled before other tasks get a turn, and calls under way at a
// time. A plugin waits for each of its calls, so a well-behaved process needs one of either.
constexpr int kMessagesAtOnce = 16;
constexpr std::size_t kMostCalls = 64;

AnswerMessage failed(CallStatus status) { return {.status = status}; }

}  // namespace

// Registers an invocation while a task waits for it. If that task is destroyed, the process may
// continue the invocation, but nobody is left who could use its locks.
class Host::Registration {
 public:
  Registration(Host& host, Pending& pending) : host_(host), pending_(pending) {
    pending.id = ++host.last_work_;
    host.pending_.push_back(&pending);
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration() {
    std::erase(host_.pending_, &pending_);
    if (host_.pending_.empty()) host_.ended_.wake_all();
  }

 private:
  Host& host_;
  Pending& pending_;
};

class Host::CallUnderWay {
 public:
  explicit CallUnderWay(std::shared_ptr<Host> host) : host_(std::move(host)) { ++host_->calls_; }
  CallUnderWay(CallUnderWay&&) noexcept = default;
  CallUnderWay& operator=(CallUnderWay&&) = delete;
  ~CallUnderWay() {
    if (host_ == nullptr) return;  // moved from
    --host_->calls_;
    host_->call_ended_.wake_all();
  }

 private:
  std::shared_ptr<Host> host_;
};

Host::Host(Thread& thread, Callbacks& callbacks, HostOptions options)
    : thread_(thread), callbacks_(callbacks), options_(std::move(options)) {}

// --- the process ---------------------------------------------------------------------------------

Task<> Host::attach(std::shared_ptr<PeerProcess> process, std::vector<ClusterEvent> events) {
  lose(launch_, "another process takes its place");
  const std::uint64_t launch = launch_ = ++last_launch_;
  channel_ = std::make_shared<Channel>(std::move(process));
  Executor::current().spawn(receive_all(shared_from_this(), channel_, launch));
  if (options_.patience > Picoseconds{}) {
    Executor::current().spawn(watch_time(shared_from_this(), launch));
  }
  WorkMessage order;
  Task<CompletionMessage> launching = run(MessageKind::launch, order, {}, std::move(events));
  const CompletionMessage launched = co_await std::move(launching);
  if (launched.status == WorkStatus::done) {
    serves_ = launch == launch_;
    co_return;
  }
  lose(launch, "its launch has failed");
  throw PlatformError(
      fmt::format("the process of active data objects cannot begin: {}", launched.error));
}

void Host::lose(std::uint64_t launch, const std::string& why, bool by_itself) {
  if (launch == 0 || launch != launch_) return;
  launch_ = 0;
  std::string reason = why;
  if (options_.end_process) {
    const std::string how = options_.end_process();
    if (by_itself) reason += ": " + how;
  }
  channel_->end();
  set_peer(nullptr);
  for (Pending* const pending : pending_) {
    if (pending->completion) continue;
    pending->completion =
        CompletionMessage{.id = pending->id, .status = WorkStatus::lost, .error = reason};
    pending->waiting.wake_all();
  }
  if (std::exchange(serves_, false) && options_.on_lost) options_.on_lost(reason);
}

Task<> Host::receive_all(std::shared_ptr<Host> self, std::shared_ptr<Channel> channel,
                         std::uint64_t launch) {
  Channel::Message message;
  for (int others = 0;;) {
    while (self->calls_ >= kMostCalls) co_await wait(self->call_ended_);
    if (!co_await channel->receive(message)) {
      co_return self->lose(launch, "the process of active data objects has died", true);
    }
    Decoder decoder(message.body);
    if (message.kind == MessageKind::completion) {
      CompletionMessage completion;
      decoder(completion);
      // The text reaches clients and the shard's log.
      completion.error = printable(completion.error);
      if (Pending* const pending = self->find(launch, completion.id)) {
        pending->completion = std::move(completion);
        pending->waiting.wake_all();
        continue;
      }
    } else if (message.kind == MessageKind::call) {
      CallMessage call;
      decoder(call);
      Executor::current().spawn(answer(self, launch, std::move(call), CallUnderWay(self)));
    }
    // Each invocation completes only once, but a process may send any number of other messages.
    if (++others % kMessagesAtOnce == 0) co_await yield();
  }
}

// Detects an invocation that takes longer than `patience`, within twice that time: it was already
// under way at the last check. So invocations need not read the clock.
Task<> Host::watch_time(std::shared_ptr<Host> self, std::uint64_t launch) {
  for (;;) {
    co_await sleep_for(self->options_.patience);
    if (self->launch_ != launch) co_return;
    bool late = false;
    for (Pending* const pending : self->pending_) {
      late |= std::exchange(pending->was_under_way, true) && !pending->completion;
    }
    if (!late) continue;
    self->lose(launch, "the process of active data objects does not answer, and was ended");
    co_return;
  }
}

Task<> Host::shut_down() {
  while (attached() && !pending_.empty()) co_await wait(ended_);
  if (!attached()) co_return;
  serves_ = false;
  channel_->send(MessageKind::shut_down, ShutDownMessage{});
  Pending pending;
  const Registration registration(*this, pending);
  while (!pending.completion) co_await wait(pending.waiting);
}

void Host::cluster_event(const ClusterEvent& event) {
  if (attached()) channel_->send(MessageKind::cluster_event, event);
}

// --- invocations ---------------------------------------------------------------------------------

Task<CompletionMessage> Host::work(WorkMessage& order, LockMode mode) {
  std::vector<Held> held;
  held.push_back({order.key, mode});
  return run(MessageKind::work, order, std::move(held));
}

Task<CompletionMessage> Host::run(MessageKind kind, WorkMessage& order, std::vector<Held> held,
                                  std::vector<ClusterEvent> then) {
  Pending pending{.held = std::move(held)};
  const Registration registration(*this, pending);
  order.id = pending.id;
  if (!attached()) {
    pending.completion = CompletionMessage{
        .status = WorkStatus::lost, .error = "no process of active data objects is attached"};
  } else if (!channel_->send(kind, order)) {
    pending.completion = CompletionMessage{
        .status = WorkStatus::too_long,
        .error = fmt::format("a request of {} bytes is too long; the most for all of an invocation "
                             "is {}",
                             order.request.size(), kLongestMessage)};
  } else {
    for (const ClusterEvent& event : then) cluster_event(event);
  }
  while (!pending.completion) co_await wait(pending.waiting);
  co_return conclude(pending, order.key);
}

// An invocation that failed only because its process has not mapped some memory (`unseen`) will be
// run again by another process: if it still has the lock of its key, the caller keeps that.
CompletionMessage Host::conclude(Pending& pending, const std::string& key) {
  CompletionMessage completion = std::move(*pending.completion);
  if (completion.status == WorkStatus::failed && pending.unseen && lock_of(pending, key)) {
    completion.status = WorkStatus::unseen;
    borrow(pending, key);
  }
  for (const Held& one : pending.held) callbacks_.unlock(one.key, one.mode);
  pending.held.clear();
  return completion;
}

// --- callbacks -----------------------------------------------------------------------------------

Host::Pending* Host::find(std::uint64_t launch, WorkId work) const {
  if (launch != launch_) return nullptr;
  const auto found = std::lower_bound(pending_.begin(), pending_.end(), work,
                                      [](const Pending* one, WorkId id) { return one->id < id; });
  const bool is_under_way =
      found != pending_.end() && (*found)->id == work && !(*found)->completion;
  return is_under_way ? *found : nullptr;
}

Task<> Host::answer(std::shared_ptr<Host> self, std::uint64_t launch, CallMessage call,
                    [[maybe_unused]] CallUnderWay under_way) {
  const std::uint64_t id = call.id;
  const WorkId work = call.work;
  co_await self->callbacks_.until_usable();
  AnswerMessage answer = co_await self->execute(launch, std::move(call));
  if (launch != self->launch_) co_return;
  Pending* const pending = self->find(launch, work);
  if (pending != nullptr && answer.status == CallStatus::unseen) pending->unseen = true;
  answer.id = id;
  const std::shared_ptr<Channel> channel = self->channel_;
  if (!channel->send(MessageKind::answer, answer)) {
    AnswerMessage refused = failed(CallStatus::refused);
    refused.id = id;
    channel->send(MessageKind::answer, refused);
  }
  co_await channel->until_sent();
}

// Calls of an invocation that is not under way are refused.
Task<AnswerMessage> Host::execute(std::uint64_t launch, CallMessage call) {
  Pending* const pending = find(launch, call.work);
  if (pending == nullptr) co_return failed(CallStatus::refused);
  switch (call.kind) {
    case CallKind::create_key:
      co_return co_await create_key(launch, std::move(call));
    case CallKind::open_key:
      co_return open_key(*pending, call);
    case CallKind::erase_key:
      co_return erase_key(*pending, call);
    case CallKind::resize_value:
      co_return co_await resize_value(launch, std::move(call));
    case CallKind::allocate_memory:
      co_return co_await allocate(launch, std::move(call));
    case CallKind::free_memory:
      co_return failed(callbacks_.free(call.range) ? CallStatus::done : CallStatus::not_found);
    case CallKind::get_references:
      co_return get_references();
    case CallKind::iterate:
      co_return iterate(*pending, call);
    case CallKind::find_key: {
      if (call.mode > static_cast<std::uint32_t>(Matching::regular_expression)) break;
      const auto matching = static_cast<Matching>(call.mode);
      const Callbacks::KeySearchResult found =
          co_await callbacks_.find_key(call.key, matching, call.range.offset);
      co_return AnswerMessage{
          .status = found.status, .references = {{found.key, {}}}, .next = found.position + 1};
    }
    case CallKind::get_pool_info:
      co_return AnswerMessage{.info = callbacks_.info()};
    case CallKind::unlock:
      co_return failed(unlock(*pending, call.key));
    case CallKind::read_value:
      co_return read_value(*pending, call);
    case CallKind::connect_peer:
      co_return co_await connect_peer(launch, std::move(call));
    case CallKind::send_to_peer:
      co_return co_await send_to_peer(std::move(call));
    case CallKind::receive_from_peer:
      co_return co_await receive_from_peer();
  }
  co_return failed(CallStatus::refused);
}

const Host::Held* Host::lock_of(const Pending& pending, const std::string& key) {
  const auto found = std::find_if(pending.held.begin(), pending.held.end(),
                                  [&](const Held& one) { return one.key == key; });
  return found == pending.held.end() ? nullptr : &*found;
}

// A lock that the invocation already holds suffices, unless it is a read lock and `mode` is write.
CallStatus Host::lock(Pending& pending, const std::string& key, LockMode mode) {
  if (const Held* const held = lock_of(pending, key); held != nullptr) {
    return mode == LockMode::write && held->mode == LockMode::read ? CallStatus::locked
                                                                   : CallStatus::done;
  }
  if (!callbacks_.try_lock(key, mode)) return CallStatus::locked;
  pending.held.push_back({key, mode});
  return CallStatus::done;
}

CallStatus Host::unlock(Pending& pending, const std::string& key) {
  const Held* const held = lock_of(pending, key);
  if (held == nullptr) return CallStatus::not_locked;
  callbacks_.unlock(key, held->mode);
  pending.held.erase(pending.held.begin() + (held - pending.held.data()));
  return CallStatus::done;
}

// While the shard changes a key, the call owns the key's lock instead of the invocation. The
// invocation may be lost meanwhile, and nobody may use the key before the change is complete.
Host::Held Host::borrow(Pending& pending, const std::string& key) {
  const auto held = pending.held.begin() + (lock_of(pending, key) - pending.held.data());
  Held borrowed = std::move(*held);
  pending.held.erase(held);
  return borrowed;
}

void Host::give_back(std::uint64_t launch, WorkId work, Held held) {
  Pending* const pending = find(launch, work);
  if (pending == nullptr) return callbacks_.unlock(held.key, held.mode);
  pending->held.push_back(std::move(held));
}

Task<AnswerMessage> Host::create_key(std::uint64_t launch, CallMessage call) {
  Pending& pending = *find(launch, call.work);
  if (callbacks_.find(call.key)) co_return failed(CallStatus::exists);
  const bool had_lock = lock_of(pending, call.key) != nullptr;
  const CallStatus locked = lock(pending, call.key, LockMode::write);
  if (locked != CallStatus::done) co_return failed(locked);
  Held held = borrow(pending, call.key);
  const Created created = co_await callbacks_.create(call.key, call.range.length);
  if (created.status == CallStatus::done || had_lock) {
    give_back(launch, call.work, std::move(held));
  } else {
    callbacks_.unlock(held.key, held.mode);
  }
  co_return AnswerMessage{.status = created.status, .range = created.value};
}

AnswerMessage Host::open_key(Pending& pending, const CallMessage& call) {
  if (call.mode > static_cast<std::uint32_t>(LockMode::write)) return failed(CallStatus::refused);
  const std::optional<ByteRange> value = callbacks_.find(call.key);
  if (!value) return failed(CallStatus::not_found);
  if (!callbacks_.sees(*value)) return failed(CallStatus::unseen);
  const CallStatus locked = lock(pending, call.key, static_cast<LockMode>(call.mode));
  if (locked != CallStatus::done) return failed(locked);
  return {.range = *value};
}

AnswerMessage Host::erase_key(Pending& pending, const CallMessage& call) {
  const bool had_lock = lock_of(pending, call.key) != nullptr;
  const CallStatus locked = lock(pending, call.key, LockMode::write);
  if (locked != CallStatus::done) return failed(locked);
  const bool erased = callbacks_.erase(call.key);
  if (!had_lock) unlock(pending, call.key);
  return failed(erased ? CallStatus::done : CallStatus::not_found);
}

Task<AnswerMessage> Host::resize_value(std::uint64_t launch, CallMessage call) {
  Pending& pending = *find(launch, call.work);
  const Held* const lock = lock_of(pending, call.key);
  if (lock == nullptr || lock->mode != LockMode::write) co_return failed(CallStatus::not_locked);
  Held held = borrow(pending, call.key);
  const Created resized = co_await callbacks_.resize(call.key, call.range.length);
  give_back(launch, call.work, std::move(held));
  co_return AnswerMessage{.status = resized.status, .range = resized.value};
}

// If the invocation has ended meanwhile, nobody will learn the address, so the memory is freed.
Task<AnswerMessage> Host::allocate(std::uint64_t launch, CallMessage call) {
  const Created allocated = co_await callbacks_.allocate(call.range.length);
  if (allocated.status == CallStatus::done && find(launch, call.work) == nullptr) {
    co_await callbacks_.until_usable();
    callbacks_.free(allocated.value);
  }
  co_return AnswerMessage{.status = allocated.status, .range = allocated.value};
}

std::optional<std::vector<Reference>> Host::references() {
  std::vector<Reference> all;
  bool seen = true;
  callbacks_.for_each([&](const std::string& key, ByteRange value) {
    seen = seen && callbacks_.sees(value);
    all.push_back({key, value});
  });
  return seen ? std::optional(std::move(all)) : std::nullopt;
}

AnswerMessage Host::get_references() {
  std::optional<std::vector<Reference>> all = references();
  if (!all) return failed(CallStatus::unseen);
  return {.references = std::move(*all)};
}

AnswerMessage Host::iterate(Pending& pending, const CallMessage& call) {
  if (call.range.offset == 0) {
    std::optional<std::vector<Reference>> all = references();
    if (!all) return failed(CallStatus::unseen);
    pending.iterated = std::move(*all);
  }
  AnswerMessage answer;
  const std::size_t size = pending.iterated.size();
  const std::size_t first = std::min<std::size_t>(call.range.offset, size);
  const std::size_t end = std::min(first + kPiece, size);
  answer.references.assign(pending.iterated.begin() + static_cast<std::ptrdiff_t>(first),
                           pending.iterated.begin() + static_cast<std::ptrdiff_t>(end));
  answer.next = end;
  return answer;
}

AnswerMessage Host::read_value(const Pending& pending, const CallMessage& call) {
  if (lock_of(pending, call.key) == nullptr) return failed(CallStatus::not_locked);
  std::optional<std::string> value = callbacks_.read(call.key);
  if (!value) return failed(CallStatus::not_found);
  return {.bytes = std::move(*value)};
}

// --- the peer ------------------------------------------------------------------------------------

void Host::set_peer(std::shared_ptr<PeerLink> peer) {
  if (peer_) peer_->close();
  peer_ = std::move(peer);
}

Task<AnswerMessage> Host::connect_peer(std::uint64_t launch, CallMessage call) {
  if (!options_.peer || call.key.size() > fabric::kMaxPrivateData) {
    co_return failed(CallStatus::refused);
  }
  set_peer(nullptr);
  std::shared_ptr<PeerLink> link;
  std::optional<std::string> welcome;
  try {
    link = std::make_shared<PeerLink>(thread_, *options_.peer);
    welcome = co_await link->connect(std::move(call.key));
  } catch (const std::exception&) {
    // Any error means that there is no connection.
  }
  if (!welcome || launch != launch_) co_return failed(CallStatus::disconnected);
  set_peer(std::move(link));
  co_return AnswerMessage{.bytes = std::move(*welcome)};
}

Task<AnswerMessage> Host::send_to_peer(CallMessage call) {
  const std::shared_ptr<PeerLink> peer = peer_;
  if (!peer) co_return failed(CallStatus::disconnected);
  if (call.key.empty() || call.key.size() > options_.peer->longest_message) {
    co_return failed(CallStatus::refused);
  }
  const bool sent = co_await peer->send(std::move(call.key));
  co_return failed(sent ? CallStatus::done : CallStatus::disconnected);
}

Task<AnswerMessage> Host::receive_from_peer() {
  const std::shared_ptr<PeerLink> peer = peer_;
  if (!peer) co_return failed(CallStatus::disconnected);
  std::optional<std::string> message = co_await peer->receive();
  if (!message) co_return failed(CallStatus::disconnected);
  co_return AnswerMessage{.bytes = std::move(*message)};
}

}  // namespace perdura::systems::mcas::ado
