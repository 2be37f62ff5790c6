#include "systems/mojim/sender.h"

#include <fmt/format.h>

#include <algorithm>

#include "rpc/messages.h"

namespace perdura::systems::mojim {

namespace {

constexpr Bytes kRead = 0;  // words of a sender's memory
constexpr Bytes kWrite = kWord;
constexpr Bytes kReadHeartbeat = 2 * kWord;
constexpr Bytes kBuffersOffset = kCacheLine;

// Counts a task as one that waits for something that the other node's processor has to do.
class Waiting {
 public:
  explicit Waiting(std::uint32_t& tasks) : tasks_(tasks) { ++tasks_; }
  ~Waiting() { --tasks_; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  std::uint32_t& tasks_;
};

}  // namespace

Sender::Sender(Thread& thread, fabric::Endpoint& endpoint, NodeId to, std::uint32_t log,
               const Shape& shape, Acknowledgment acknowledgment, const std::atomic<bool>& is_lost,
               Picoseconds timeout)
    : endpoint_(endpoint),
      to_(to),
      log_(log),
      shape_(shape),
      acknowledgment_(acknowledgment),
      is_lost_(is_lost),
      timeout_(timeout),
      memory_(thread.node.create_region(
          fmt::format("mojim sender {} {} {}", endpoint.address().port, to, log),
          kBuffersOffset + kWindow * kCacheLine, pmem::Medium::dram)),
      registered_(endpoint.register_memory(*memory_, fabric::Access::local)) {}

Sender::~Sender() {
  if (watched_) *watched_ = nullptr;
}

void Sender::disconnect() {
  look_.reset();
  queue_pair_.reset();
}

Task<std::optional<Refusal>> Sender::connect(std::uint64_t from, Hello::Contents contents,
                                             Picoseconds timeout) {
  disconnect();
  given_up_ = false;
  awaited_.clear();
  calls_.emplace();
  calls_->open(kWindow);
  if (acknowledgment_ == Acknowledgment::message) {
    buffers_.open(endpoint_, kWindow);
    buffers_.post_all({registered_, kBuffersOffset, kCacheLine, sizeof(Acknowledged)}, kWindow);
  }
  term_ = term_of(from);
  const Hello hello{.version = kProtocolVersion,
                    .log = static_cast<std::uint8_t>(log_),
                    .in_background = in_background_,
                    .contents = contents,
                    .from = from,
                    .shape = shape_};
  const auto bytes = rpc::bytes_of(hello);
  fabric::Connection connection = co_await endpoint_.connect(
      {to_, static_cast<fabric::Port>(log_)},
      {.receive_queue = acknowledgment_ == Acknowledgment::message ? buffers_.queue() : nullptr,
       .completions = &completions_,
       .connection_timeout = timeout},
      {bytes.begin(), bytes.end()});
  if (connection.status != fabric::Status::success) {
    if (!connection.private_data.empty()) {
      co_return rpc::read_message<Refusal>(connection.private_data);
    }
    if (connection.status != fabric::Status::disconnected) co_return std::nullopt;
    co_return Refusal{.reason = Refusal::Reason::broken};
  }
  welcome_ = rpc::read_message<Welcome>(connection.private_data);
  position_ = welcome_.position;
  queue_pair_ = std::move(connection.queue_pair);
  if (!watched_) {
    watched_ = std::make_shared<Sender*>(this);
    Executor::current().spawn(watch(watched_, timeout_));
  }
  co_return Refusal{};
}

// --- heartbeats ----------------------------------------------------------------------------------

// Reads the heartbeat while somebody waits. The result of a READ is examined the next time, so that
// this task waits for nothing of a connection, which others may end. Looks are counted instead of
// time, since this thread may have stood still itself.
Task<> Sender::watch(std::shared_ptr<Sender*> watched, Picoseconds timeout) {
  std::uint64_t beat = 0;
  int unchanged = 0;  // looks
  for (;;) {
    co_await sleep_for(timeout / kHeartbeatsInTimeout);
    if (*watched == nullptr) co_return;
    Sender& sender = **watched;
    const bool waits = sender.waiting_ > 0 && sender.connected();
    const std::uint64_t last = std::exchange(beat, sender.memory_->load(kReadHeartbeat));
    unchanged = waits && beat == last ? unchanged + 1 : 0;
    if (!waits) continue;
    if (unchanged > kHeartbeatsInTimeout) {
      sender.give_up_waiting();
    } else if (!sender.look_ || sender.look_->await_ready()) {
      const fabric::WorkRequest read{.opcode = fabric::Opcode::read,
                                     .local = sender.registered_.local(kReadHeartbeat, kWord),
                                     .remote = {sender.welcome_.control, kHeartbeat}};
      sender.look_.emplace(*sender.queue_pair_, read);
      sender.look_->post();
    }
  }
}

// Tasks that wait go on as if the connection had broken. Operations may still be under way on it,
// so it is kept until the next connect() or disconnect().
void Sender::give_up_waiting() {
  given_up_ = true;
  calls_->fail();
  if (acknowledgment_ == Acknowledgment::message) {
    completions_.push({nullptr, fabric::Status::disconnected, std::nullopt, {}});
  }
}

// --- requests ------------------------------------------------------------------------------------

// READs which slots are free, also where the READ itself is what is waited for.
Task<bool> Sender::read_control() {
  const fabric::LocalBuffer word = registered_.local(kRead, kWord);
  const fabric::Completion done = co_await queue_pair_->read(word, {welcome_.control, kFreeUntil});
  if (!done) co_return false;
  welcome_.free_until = memory_->load(kRead);
  co_return true;
}

Task<bool> Sender::wait_for_room() {
  ++stalls_;
  const Waiting waiting(waiting_);
  while (position_ >= welcome_.free_until) {
    if (is_lost_ || given_up_) co_return false;
    const bool read = co_await read_control();
    if (!read) co_return false;
  }
  co_return true;
}

Task<bool> Sender::post(std::span<const fabric::LocalPieces> requests) {
  for (const fabric::LocalPieces& request : requests) {
    if (!has_room()) {
      const bool room = co_await wait_for_room();
      if (!room) co_return false;
    }
    queue_pair_->post_unsignaled({.opcode = fabric::Opcode::send, .local = request});
    ++position_;
  }
  co_return connected();
}

Task<bool> Sender::finish(const fabric::LocalPieces& request, std::uint64_t id, bool ends) {
  if (!has_room()) {
    const bool room = co_await wait_for_room();
    if (!room) co_return false;
  }
  ++position_;
  switch (ends ? acknowledgment_ : Acknowledgment::device) {
    case Acknowledgment::device: {
      const fabric::Completion done = co_await queue_pair_->send(request);
      co_return bool(done);
    }
    case Acknowledgment::read: {
      fabric::RdmaOperation sent = queue_pair_->send(request);
      sent.post();
      const bool read = co_await read_control();
      const fabric::Completion done = co_await sent;
      co_return read&& bool(done);
    }
    case Acknowledgment::message:
      break;
  }
  queue_pair_->post_unsignaled({.opcode = fabric::Opcode::send, .local = request});
  const bool acknowledged = co_await wait_for(id);
  co_return acknowledged;
}

Task<bool> Sender::wait_for(std::uint64_t id) {
  if (acknowledgment_ != Acknowledgment::message || welcome_.safe >= id) co_return true;
  const Waiting waiting(waiting_);
  const auto lease = co_await calls_->begin();
  calls_->expect(lease.call());
  awaited_.push_back({id, lease.call()});
  const auto answer = co_await calls_->answer_to(
      lease.call(), completions_,
      [this](const fabric::ReceiveCompletion& completion) { take(completion); });
  co_return answer.has_value();
}

void Sender::take(const fabric::ReceiveCompletion& completion) {
  // give_up_waiting() pushed it when no task waited for a completion; this is a new connection.
  if (completion.queue_pair == nullptr && !given_up_) return;
  if (completion.status != fabric::Status::success) return calls_->fail();
  const auto message = rpc::read_message<Acknowledged>(completion.buffer.bytes());
  welcome_.safe = message.id;
  for (; !awaited_.empty() && awaited_.front().id <= message.id; awaited_.pop_front()) {
    calls_->deliver(awaited_.front().call, message);
  }
  buffers_.post(completion.buffer_id);
}

Task<bool> Sender::read_data(Bytes offset, fabric::LocalBuffer into) {
  const fabric::Completion done = co_await queue_pair_->read(into, {welcome_.data, offset});
  co_return bool(done);
}

Task<bool> Sender::write_data(const fabric::MemoryRegion& data, Bytes size) {
  constexpr Bytes kAtOnce = 64 * KiB;
  for (Bytes done = 0; done < size;) {
    const Bytes length = std::min(kAtOnce, size - done);
    const fabric::Completion written = co_await queue_pair_->write(
        data.local(done, static_cast<std::uint32_t>(length)), {welcome_.data, done});
    if (!written) co_return false;
    done += length;
  }
  // All of it is placed when a READ that follows is answered.
  const bool placed = co_await read_control();
  co_return placed;
}

Task<bool> Sender::end_data(std::uint64_t complete_from) {
  memory_->store(kWrite, complete_from);
  const fabric::Completion written =
      co_await queue_pair_->write(registered_.local(kWrite, kWord), {welcome_.control, kWritten});
  co_return bool(written);
}

}  // namespace perdura::systems::mojim
