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

Receiver::Receiver(Thread& thread, Logs& logs, pmem::Region& logs_region, pmem::Region& data,
                   Options options)
    : thread_(thread),
      logs_(logs),
      logs_region_(logs_region),
      options_(std::move(options)),
      log_(thread.endpoint.address().port),
      memory_(thread.node.create_region(fmt::format("mojim receiver {}", log_),
                                        kCacheLine + kAcknowledgments * kWord, pmem::Medium::dram)),
      device_(thread.endpoint, options_.acknowledgment, *memory_, logs_region, data),
      way_(&device_),
      applied_before_(logs.applied()),
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
    if ((is_idle && logs_.has_work()) || logs_.wants_checkpoint()) {
      const bool applied = logs_.checkpoint();
      if (applied) {
        keep_slots_posted();
        co_await yield();
        continue;
      }
    }
    keep_slots_posted();
    save_without_arrivals();
    if ((all_free() || saves_all()) && !logs_.has_work()) {
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
  Refusal refusal{.version = kProtocolVersion, .term = logs_.term()};
  if (hello.version != kProtocolVersion || hello.log != log_ || !(hello.shape == logs_.shape())) {
    refusal.reason = Refusal::Reason::shape;
  } else if (logs_.is_closed() ||
             (term_of(hello.from) != logs_.term() &&
              !follows(thread_.node.id(), logs_.term(), term_of(hello.from)))) {
    refusal.reason = Refusal::Reason::replaced;
  } else if (queue_pair_ && queue_pair_->connected() && term_of(hello.from) == logs_.term()) {
    refusal.reason = Refusal::Reason::in_use;
  } else if (logs_.is_alone() && term_of(hello.from) > logs_.term()) {
    refusal.reason = Refusal::Reason::alone;
  }
  if (refusal.reason != Refusal::Reason::none) return request.reject(rpc::bytes_of(refusal));
  close();
  const bool is_new = term_of(hello.from) > logs_.term();
  if (is_new) {
    // Before all else: a failure must not leave a copy that has this term and counts as complete.
    if (hello.contents != Hello::Contents::equal) logs_.await_region();
    logs_.begin_term(term_of(hello.from));
  }
  logs_.set_in_background(hello.in_background != 0);
  memory_->store(kWritten, 0);
  std::uint64_t writing = 0;
  if (hello.contents == Hello::Contents::written) {
    writing = logs_.begin_writing(hello.from);
  } else if (hello.contents == Hello::Contents::awaited ||
             (is_new && hello.contents == Hello::Contents::other)) {
    logs_.skip_to(hello.from);
  }
  if (hello.contents == Hello::Contents::written || hello.contents == Hello::Contents::awaited) {
    awaited_until_ = hello.from;
  }
  arrived_.wake_all();
  term_ = logs_.term();
  way_ = &way;
  queue_ = way.endpoint.create_receive_queue(static_cast<std::uint32_t>(logs_.shape().slots));
  posted_until_ = logs_.next_position(log_);
  const std::uint64_t position = posted_until_;
  keep_slots_posted();
  const std::uint64_t last_id = logs_.last_id(log_);
  const Welcome welcome{.position = position,
                        .free_until = posted_until_,
                        .last_id = last_id,
                        .safe = options_.passes_first ? safe() : last_id,
                        .applied = logs_.applied(),
                        .control = way.control.key,
                        .data = way.data.key,
                        .incomplete = logs_.needs_region()};
  queue_pair_ = request.accept({.receive_queue = queue_.get(), .completions = &completions_},
                               rpc::bytes_of(welcome));
  ++connections_;
  if (hello.contents == Hello::Contents::written) {
    thread_.executor.spawn(await_written(connections_, writing));
  }
  if (options_.passes_first && welcome.safe < hello.from) {
    thread_.executor.spawn(await_other_logs(connections_, hello.from));
  }
  apply_without_arrivals();
}

bool Receiver::all_free() const {
  return !queue_pair_ || posted_until_ == logs_.next_position(log_) + logs_.shape().slots;
}

// True if another log's thread has accepted a new primary while this one is still connected to the
// one before. What was found in the log then may be from a life before a failure, so it does not
// say which slots the connection has filled, and no more are posted: a sender that waits for a slot
// has to learn of this from the end of the connection.
bool Receiver::is_replaced() const { return term_ < logs_.term(); }

// serve() waits for arrivals, and none comes while the log is full of what close() has found, which
// may have to wait for what arrives in other logs.
void Receiver::apply_without_arrivals() {
  if (all_free() && !logs_.has_work()) return;
  if (!std::exchange(applies_, true)) thread_.executor.spawn(apply_all());
}

Task<> Receiver::apply_all() {
  while (!(all_free() || saves_all()) || logs_.has_work()) {
    if (queue_pair_ && is_replaced()) close();
    logs_.checkpoint();
    keep_slots_posted();
    save_without_arrivals();
    co_await sleep_for(kLook);
  }
  applies_ = false;
}

// A disk takes much longer than anything else, so only this task waits for it.
void Receiver::save_without_arrivals() {
  if (!options_.disk || saves_ || !logs_.wants_save(log_)) return;
  saves_ = true;
  thread_.executor.spawn(save_all());
}

Task<> Receiver::save_all() {
  // Another log's thread may have saved what is in this one, too.
  for (bool wants = true; wants;) {
    wants = logs_.wants_save(log_);
    if (wants) co_await options_.disk->run(logs_.save());
    if (queue_pair_ && is_replaced()) close();
    keep_slots_posted();
  }
  saves_ = false;
}

// True if nothing else has to be done until something arrives or the disk is done.
bool Receiver::saves_all() const { return saves_ && logs_.is_applied(log_); }

// Polls for the end of the writing: a message could not announce it, since a full log has no slot
// for one.
Task<> Receiver::await_written(std::uint64_t connection, std::uint64_t writing) {
  while (connection == connections_) {
    const std::uint64_t written = memory_->load(kWritten);
    if (written != 0) {
      logs_.end_writing(writing, written);
      apply_without_arrivals();
      co_return;
    }
    co_await sleep_for(kLook);
  }
}

void Receiver::disconnect() {
  queue_pair_.reset();
  queue_.reset();
  logs_.forget_part(log_);
}

// Takes what has arrived at once: others wait for it, and perhaps nobody connects to this log
// again.
void Receiver::close() {
  disconnect();
  logs_.look_for_arrived(log_);
  arrived_.wake_all();
}

// --- requests ------------------------------------------------------------------------------------

void Receiver::handle(const fabric::ReceiveCompletion& completion) {
  if (completion.queue_pair != queue_pair_.get()) return;
  if (completion.status != fabric::Status::success) return close();
  switch (logs_.arrived(log_, completion.buffer_id)) {
    case Logs::Arrival::more:
      return;
    case Logs::Arrival::invalid:
      return close();
    case Logs::Arrival::complete:
      break;
  }
  if (!options_.behind.empty()) {
    arrived_.wake_all();
    if (options_.passes_first) return pass_or_wait();
  }
  acknowledge(logs_.last_id(log_));
}

// Sync points that the region held when it was given to this copy are in no log from which they
// could be passed on. They are acknowledged as soon as safe() covers them.
void Receiver::pass_or_wait() {
  if (logs_.whole_from(log_, passed_until_.front())) return;
  thread_.executor.spawn(await_other_logs(connections_, logs_.last_id(log_)));
}

void Receiver::acknowledge(std::uint64_t id) {
  safe_ = id;
  if (way_->acknowledgment != Acknowledgment::message || !queue_pair_) return;
  const Bytes place = kCacheLine + acknowledged_++ % kAcknowledgments * kWord;
  memory_->store(place, id);
  rpc::send(*queue_pair_, way_->control.local(place, kWord), way_->max_inline);
}

// A slot is posted again when its request has been applied and passed on.
void Receiver::keep_slots_posted() {
  if (!queue_ || is_replaced()) return;
  const bool is_behind =
      logs_.not_passed() * logs_.shape().slot_bytes > options_.secondary_tier_thresh;
  if (!options_.behind.empty() && is_behind) return;
  const std::uint64_t end = logs_.free_until(log_);
  if (posted_until_ >= end && memory_->load(0) == posted_until_) return;
  const auto size = static_cast<std::uint32_t>(logs_.shape().slot_size());
  for (; posted_until_ < end; ++posted_until_) {
    queue_->post(
        fabric::LocalBuffer{&logs_region_, logs_.shape().slot_offset(log_, posted_until_), size},
        posted_until_);
  }
  memory_->store(0, posted_until_);
}

}  // namespace perdura::systems::mojim
