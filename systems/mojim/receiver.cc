#include "systems/mojim/receiver.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/base/error.h"
#include "rpc/messages.h"
#include "rpc/sessions.h"

namespace perdura::systems::mojim {

namespace {

constexpr std::uint32_t kAcknowledgments = 64;

// A file on a disk is not WRITten to: a mirror of M-syncdisk is given the region as sync points.
fabric::Access access_to(const pmem::Region& data) {
  if (data.medium() == pmem::Medium::disk) return fabric::Access::remote_read;
  return fabric::Access::remote_read | fabric::Access::remote_write;
}

}  // namespace

Receiver::Way::Way(fabric::Endpoint& its_endpoint, Acknowledgment acknowledges, pmem::Region& words,
                   pmem::Region& logs, pmem::Region& data_area)
    : endpoint(its_endpoint),
      acknowledgment(acknowledges),
      control(endpoint.register_memory(words,
                                       fabric::Access::remote_read | fabric::Access::remote_write)),
      slots(endpoint.register_memory(logs, fabric::Access::local)),
      data(endpoint.register_memory(data_area, access_to(data_area))),
      max_inline(endpoint.capabilities().max_inline) {}

Receiver::Receiver(Thread& thread, LocalCopy& local, pmem::Region& logs_region, pmem::Region& data,
                   Options options)
    : thread_(thread),
      local_(local),
      logs_region_(logs_region),
      options_(std::move(options)),
      log_(thread.endpoint.address().port),
      memory_(thread.node.create_region(fmt::format("mojim receiver {}", log_),
                                        kCacheLine + kAcknowledgments * kWord, pmem::Medium::dram)),
      device_(thread.endpoint, options_.acknowledgment, *memory_, logs_region, data),
      way_(&device_),
      applied_before_(local.state.applied()),
      passed_until_(options_.behind.size()) {
  if (!options_.over_tcp) return;
  sockets_ = thread.node.create_socket_endpoint(thread, thread.endpoint.address().port);
  over_tcp_.emplace(*sockets_, acknowledgment_over_tcp(), *memory_, logs_region, data);
}

Receiver::~Receiver() { disconnect(); }

Task<> Receiver::serve() {
  thread_.executor.spawn(rpc::accept_connections(
      thread_.endpoint, [this](fabric::ConnectionRequest& request) { accept(request, device_); }));
  if (sockets_) thread_.executor.spawn(accept_over_tcp(sockets_));
  thread_.executor.spawn(beat());
  for (std::size_t copy = 0; copy < options_.behind.size(); ++copy) {
    thread_.executor.spawn(pass_on(copy, sockets_));
  }
  bool is_idle = false;
  for (;;) {
    while (const auto completion = completions_.try_next()) {
      handle(*completion);
      is_idle = false;
    }
    if (queue_pair_ && is_replaced()) close();
    // Section 3.2.2: a checkpoint is taken after a number of requests, when a log fills up, and
    // when there is nothing else to do.
    if ((is_idle && local_.logs.has_work()) || local_.data.wants_checkpoint()) {
      const bool applied = local_.data.checkpoint();
      if (applied) {
        keep_slots_posted();
        co_await yield();
        continue;
      }
    }
    keep_slots_posted();
    save_without_arrivals();
    if ((all_free() || saves_all()) && !local_.logs.has_work()) {
      handle(co_await completions_.next());
      is_idle = false;
    } else {
      co_await sleep_for(kLook);
      is_idle = true;
    }
  }
}

Task<> Receiver::beat() {
  for (std::uint64_t beats = 1;; ++beats) {
    co_await sleep_for(options_.timeout / kHeartbeatsInTimeout);
    memory_->store(kHeartbeat, beats);
    if (queue_pair_ && local_.state.is_closed()) close();
  }
}

// --- connections ---------------------------------------------------------------------------------

// The task shares the endpoint on which it waits, since tasks may be destroyed after this object.
Task<> Receiver::accept_over_tcp(std::shared_ptr<fabric::Endpoint> sockets) {
  co_await rpc::accept_connections(
      *sockets, [this](fabric::ConnectionRequest& request) { accept(request, *over_tcp_); });
}

void Receiver::accept(fabric::ConnectionRequest& request, const Way& way) {
  const auto hello = rpc::read_message<Hello>(request.private_data());
  Refusal refusal{.version = kProtocolVersion, .term = local_.state.term()};
  if (hello.version != kProtocolVersion || hello.log != log_ ||
      !(hello.shape == local_.logs.shape())) {
    refusal.reason = Refusal::Reason::shape;
  } else if (local_.state.is_closed() ||
             (term_of(hello.from) != local_.state.term() &&
              !follows(thread_.node.id(), local_.state.term(), term_of(hello.from)))) {
    refusal.reason = Refusal::Reason::replaced;
  } else if (queue_pair_ && queue_pair_->connected() &&
             term_of(hello.from) == local_.state.term()) {
    refusal.reason = Refusal::Reason::in_use;
  } else if (local_.state.is_alone() && term_of(hello.from) > local_.state.term()) {
    refusal.reason = Refusal::Reason::alone;
  }
  if (refusal.reason != Refusal::Reason::none) return request.reject(rpc::bytes_of(refusal));
  close();
  const bool is_new = term_of(hello.from) > local_.state.term();
  if (is_new) {
    // Before all else: a failure must not leave a copy that has this term and counts as complete.
    if (hello.contents != Hello::Contents::equal) local_.data.await_region();
    local_.data.begin_term(term_of(hello.from));
  }
  local_.data.set_in_background(hello.in_background != 0);
  memory_->store(kWritten, 0);
  std::uint64_t writing = 0;
  if (hello.contents == Hello::Contents::written) {
    writing = local_.data.begin_writing(hello.from);
  } else if (hello.contents == Hello::Contents::awaited ||
             (is_new && hello.contents == Hello::Contents::other)) {
    local_.data.skip_to(hello.from);
  }
  if (hello.contents == Hello::Contents::written || hello.contents == Hello::Contents::awaited) {
    awaited_until_ = hello.from;
  }
  arrived_.wake_all();
  term_ = local_.state.term();
  way_ = &way;
  queue_ = way.endpoint.create_receive_queue(static_cast<std::uint32_t>(local_.logs.shape().slots));
  posted_until_ = local_.logs.next_position(log_);
  const std::uint64_t position = posted_until_;
  keep_slots_posted();
  const std::uint64_t last_id = local_.logs.last_id(log_);
  const Welcome welcome{.position = position,
                        .free_until = posted_until_,
                        .last_id = last_id,
                        .safe = options_.passes_first ? safe() : last_id,
                        .applied = local_.state.applied(),
                        .control = way.control.key,
                        .data = way.data.key,
                        .incomplete = local_.state.needs_region()};
  queue_pair_ = request.accept({.receive_queue = queue_.get(), .completions = &completions_},
                               rpc::bytes_of(welcome));
  ++connections_;
  local_.state.connection_begins();
  if (hello.contents == Hello::Contents::written) {
    thread_.executor.spawn(await_written(connections_, writing));
  }
  if (options_.passes_first && welcome.safe < hello.from) {
    thread_.executor.spawn(await_other_logs(connections_, hello.from));
  }
  apply_without_arrivals();
}

bool Receiver::all_free() const {
  return !queue_pair_ ||
         posted_until_ == local_.logs.next_position(log_) + local_.logs.shape().slots;
}

// True if another log's thread has accepted a new primary while this one is still connected to the
// one before. What was found in the log then may be from a life before a failure, so it does not
// say which slots the connection has filled, and no more are posted: a sender that waits for a slot
// has to learn of this from the end of the connection.
bool Receiver::is_replaced() const { return term_ < local_.state.term(); }

// serve() waits for arrivals, and none comes while the log is full of what close() has found, which
// may have to wait for what arrives in other logs.
void Receiver::apply_without_arrivals() {
  if (all_free() && !local_.logs.has_work()) return;
  if (!std::exchange(applies_, true)) thread_.executor.spawn(apply_all());
}

Task<> Receiver::apply_all() {
  while (!(all_free() || saves_all()) || local_.logs.has_work()) {
    if (queue_pair_ && is_replaced()) close();
    local_.data.checkpoint();
    keep_slots_posted();
    save_without_arrivals();
    co_await sleep_for(kLook);
  }
  applies_ = false;
}

// A disk takes much longer than anything else, so only this task waits for it.
void Receiver::save_without_arrivals() {
  if (!options_.disk || saves_ || !local_.logs.wants_save(log_)) return;
  saves_ = true;
  thread_.executor.spawn(save_all());
}

Task<> Receiver::save_all() {
  // Another log's thread may have saved what is in this one, too.
  for (bool wants = true; wants;) {
    wants = local_.logs.wants_save(log_);
    if (wants) co_await options_.disk->run(local_.data.save());
    if (queue_pair_ && is_replaced()) close();
    keep_slots_posted();
  }
  saves_ = false;
}

// True if nothing else has to be done until something arrives or the disk is done.
bool Receiver::saves_all() const { return saves_ && local_.logs.is_applied(log_); }

// Polls for the end of the writing: a message could not announce it, since a full log has no slot
// for one.
Task<> Receiver::await_written(std::uint64_t connection, std::uint64_t writing) {
  while (connection == connections_) {
    const std::uint64_t written = memory_->load(kWritten);
    if (written != 0) {
      local_.data.end_writing(writing, written);
      apply_without_arrivals();
      co_return;
    }
    co_await sleep_for(kLook);
  }
}

void Receiver::disconnect() {
  if (queue_pair_) local_.state.connection_ends();
  queue_pair_.reset();
  queue_.reset();
  local_.logs.forget_part(log_);
}

// Takes what has arrived at once: others wait for it, and perhaps nobody connects to this log
// again.
void Receiver::close() {
  disconnect();
  local_.logs.look_for_arrived(log_);
  arrived_.wake_all();
}

// --- requests ------------------------------------------------------------------------------------

void Receiver::handle(const fabric::ReceiveCompletion& completion) {
  if (completion.queue_pair != queue_pair_.get()) return;
  if (completion.status != fabric::Status::success) return close();
  switch (local_.logs.arrived(log_, completion.buffer_id)) {
    case ReceiveLogs::Arrival::more:
      return;
    case ReceiveLogs::Arrival::invalid:
      return close();
    case ReceiveLogs::Arrival::complete:
      break;
  }
  if (!options_.behind.empty()) {
    arrived_.wake_all();
    if (options_.passes_first) return pass_or_wait();
  }
  acknowledge(local_.logs.last_id(log_));
}

// Sync points that the region held when it was given to this copy are in no log from which they
// could be passed on. They are acknowledged as soon as safe() covers them.
void Receiver::pass_or_wait() {
  if (local_.logs.whole_from(log_, passed_until_.front())) return;
  thread_.executor.spawn(await_other_logs(connections_, local_.logs.last_id(log_)));
}

void Receiver::acknowledge(std::uint64_t id) {
  safe_ = id;
  if (way_->acknowledgment != Acknowledgment::message || !queue_pair_) return;
  const Bytes offset = kCacheLine + acknowledged_++ % kAcknowledgments * kWord;
  memory_->store(offset, id);
  rpc::send(*queue_pair_, way_->control.local(offset, kWord), way_->max_inline);
}

// A slot is posted again when its request has been applied and passed on.
void Receiver::keep_slots_posted() {
  if (!queue_ || is_replaced()) return;
  const bool is_behind =
      local_.logs.not_passed() * local_.logs.shape().slot_bytes > options_.secondary_tier_thresh;
  if (!options_.behind.empty() && is_behind) return;
  const std::uint64_t end = local_.logs.free_until(log_);
  if (posted_until_ >= end && memory_->load(0) == posted_until_) return;
  const auto size = static_cast<std::uint32_t>(local_.logs.shape().slot_size());
  for (; posted_until_ < end; ++posted_until_) {
    queue_->post(fabric::LocalBuffer{&logs_region_,
                                     local_.logs.shape().slot_offset(log_, posted_until_), size},
                 posted_until_);
  }
  memory_->store(0, posted_until_);
}

}  // namespace perdura::systems::mojim
