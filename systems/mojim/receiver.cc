#include "systems/mojim/receiver.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/base/error.h"
#include "rpc/messages.h"
#include "rpc/sessions.h"

namespace perdura::systems::mojim {

namespace {

constexpr std::uint32_t kAcknowledgments = 64;

// Nobody WRITEs a file on a disk: a mirror of M-syncdisk is given the region as sync points.
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
    // Section 3.2.2: after so many requests, when a log is full, and when there is nothing to do.
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

// The task keeps the endpoint on which it waits: tasks may be destroyed behind this object.
Task<> Receiver::accept_over_tcp(std::shared_ptr<fabric::Endpoint> sockets) {
  co_await rpc::accept_connections(
      *sockets, [this](fabric::ConnectionRequest& request) { accept(request, *over_tcp_); });
}

void Receiver::accept(fabric::ConnectionRequest& request, const Way& way) {
  const auto hello = rpc::read_message<Hello>(request.private_data());
  Refusal refusal{.version = kProtocolVersion, .term = logs_.term()};
  if (hello.version != kProtocolVersion || hello.log != log_ || !(hello.shape == logs_.shape())) {
    refusal.reason = Refusal::Reason::shape;
  } else if (logs_.is_closed() || term_of(hello.from) < logs_.term()) {
    refusal.reason = Refusal::Reason::replaced;
  } else if (queue_pair_ && queue_pair_->connected() && term_of(hello.from) == logs_.term()) {
    refusal.reason = Refusal::Reason::in_use;
  }
  if (refusal.reason != Refusal::Reason::none) return request.reject(rpc::bytes_of(refusal));
  close();
  const bool is_new = term_of(hello.from) > logs_.term();
  if (is_new) {
    // First of all: a failure must not leave a copy that is of this term and counts as complete.
    if (hello.contents != Hello::Contents::equal) logs_.await_region();
    logs_.begin_term(term_of(hello.from));
  }
  logs_.set_in_background(hello.in_background != 0);
  memory_->store(kWritten, 0);
  std::uint64_t writing = 0;
  if (hello.contents == Hello::Contents::written) {
    writing = logs_.begin_writing(hello.from);
  } else if (is_new && hello.contents == Hello::Contents::other) {
    logs_.skip_to(hello.from);
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
                        .safe = options_.passes_first ? safe_ : last_id,
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
  apply_without_arrivals();
}

bool Receiver::all_free() const {
  return !queue_pair_ || posted_until_ == logs_.next_position(log_) + logs_.shape().slots;
}

// Another log has heard of a new primary, and this one is still connected to the one before. What
// was found in the log then may be of a life before a failure, so it does not say which slots the
// connection has filled, and no more are posted: who waits for one has to be told by the end of the
// connection.
bool Receiver::is_replaced() const { return term_ < logs_.term(); }

// serve() waits for arrivals, and none comes if the log is full of what close() has found, which
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

// Nothing else has to be done until something arrives, or the disk has got what it is to have.
bool Receiver::saves_all() const { return saves_ && logs_.is_applied(log_); }

// No message says that the data area is written: a log that is full has no slot for it.
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

// Nobody may ever connect to this log again, and others wait for what has arrived in it.
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
    if (options_.passes_first) return;
  }
  acknowledge(logs_.last_id(log_));
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

// --- copies behind this one ----------------------------------------------------------------------

// Keeps the endpoint, as accept_over_tcp() does.
Task<> Receiver::pass_on(std::size_t copy, std::shared_ptr<fabric::Endpoint> sockets) {
  Sender sender(thread_, sockets ? *sockets : thread_.endpoint, options_.behind[copy], log_,
                logs_.shape(), options_.behind_acknowledge, logs_.lost(copy), options_.timeout);
  if (options_.passes_first) {
    co_await catch_up(sender, copy);
  } else {
    sender.send_in_background();
  }
  for (;;) {
    const bool is_skipped = options_.passes_first && skipped_until_ > safe_;
    if (is_skipped && is_skipped_safe(copy)) acknowledge(skipped_until_);
    const auto sync = logs_.whole_from(log_, passed_until_[copy]);
    if (!sync && is_skipped) {
      co_await sleep_for(kLook);
      continue;
    }
    if (!sync) {
      co_await wait(arrived_);
      continue;
    }
    if (logs_.is_incomplete()) {
      sender.disconnect();
      logs_.skip(sync->last_id());
    } else if (logs_.skip_until_given(copy, sync->last_id())) {
      skipped_until_ = sync->last_id();
      sender.disconnect();
    } else if (!logs_.is_lost(copy)) {
      const bool passed = co_await pass(sender, copy, *sync);
      if (!passed) logs_.note_lost(copy);
    }
    note_passed(copy, *sync);
  }
}

// What a node of E-chain has recovered may not have been passed on before it failed.
Task<> Receiver::catch_up(Sender& sender, std::size_t copy) {
  if (applied_before_ == begin_of(term_of(applied_before_))) co_return;
  const bool passed =
      co_await pass(sender, copy, {.id = applied_before_, .position = 0, .count = 1});
  if (!passed) logs_.note_lost(copy);
  if (applied_before_ > std::max(safe_, skipped_until_)) acknowledge(applied_before_);
}

bool Receiver::is_skipped_safe(std::size_t copy) const {
  return logs_.given_until(copy) >= skipped_until_ || logs_.is_lost(copy);
}

void Receiver::note_passed(std::size_t copy, const Logs::SyncPoint& sync) {
  const auto least = [this] {
    return *std::min_element(passed_until_.begin(), passed_until_.end());
  };
  const std::uint64_t before = least();
  passed_until_[copy] = std::max(passed_until_[copy], sync.end());
  if (least() == before) return;
  logs_.pass(log_, least());
  keep_slots_posted();
  if (options_.passes_first && sync.last_id() > skipped_until_) acknowledge(sync.last_id());
}

Task<bool> Receiver::pass(Sender& sender, std::size_t copy, const Logs::SyncPoint& sync) {
  for (std::uint32_t attempt = 0; attempt <= options_.resends; ++attempt) {
    if (logs_.is_closed()) co_return true;
    // A new primary has come meanwhile, of whose region this is part or not.
    if (term_of(sync.id) < logs_.term()) co_return true;
    // The copy behind gets all of the region when this one is complete.
    if (logs_.is_incomplete()) {
      sender.disconnect();
      logs_.skip(sync.last_id());
      co_return true;
    }
    if (!sender.connected() || sender.term() != term_of(sync.id)) {
      const bool connected = co_await connect(sender, copy, sync);
      if (!connected) continue;
      if (logs_.skip_until_given(copy, sync.last_id())) {
        skipped_until_ = std::max(skipped_until_, sync.last_id());
        sender.disconnect();  // if it is not given after all, the next one finds the gap
        co_return true;
      }
    }
    bool passed = false;
    if (sender.last_id() >= sync.last_id()) {
      passed = co_await sender.wait_for(sync.last_id());
    } else {
      passed = co_await try_to_pass(sender, sync);
    }
    if (passed) co_return true;
    if (logs_.is_lost(copy)) break;
  }
  co_return term_of(sync.id) < logs_.term();
}

// What this node has applied before it was opened is in no log of it, nor is what it has passed on
// since. A copy behind it that has received all of that needs no more than what is in the logs;
// another one, such as a new one in the place of one that has failed, needs all of the region.
Task<bool> Receiver::connect(Sender& sender, std::size_t copy, const Logs::SyncPoint& sync) {
  constexpr int kAttempts = 5;  // what has arrived at a copy may not have been applied yet
  const std::uint64_t term = term_of(sync.id);
  const bool is_first = term == 1 && term_of(applied_before_) < 1;
  const std::uint64_t before = term_of(applied_before_) == term ? applied_before_ : begin_of(term);
  const std::uint64_t passed = logs_.passed_id();
  const std::uint64_t from = term_of(passed) == term ? std::max(before, passed) : before;
  const bool is_equal = from == before && (is_first || before > begin_of(term));
  const auto contents = is_equal ? Hello::Contents::equal : Hello::Contents::other;
  const Picoseconds timeout = sender.term() == 0 ? Picoseconds{} : options_.timeout;
  for (int attempt = 1; attempt <= kAttempts; ++attempt) {
    if (attempt > 1) co_await sleep_for(kLook);
    const auto refusal = co_await sender.connect(from, contents, timeout);
    if (!refusal || refusal->reason != Refusal::Reason::none) co_return false;
    if (sender.applied() >= from) break;
  }
  const bool has_gap = sender.applied() < std::max(from, logs_.skipped());
  if (!sender.is_incomplete() && !has_gap) co_return true;
  while (!logs_.begin_giving(copy, term)) {
    if (logs_.is_giving_for(copy, term)) co_return true;  // another log's thread does it
    co_await sleep_for(kLook);
  }
  const bool given = co_await give_region(sender, copy);
  logs_.end_giving(copy);
  co_return given;
}

// Writes the data area as it is. Sync points go on meanwhile, so what is written may hold more of
// them than all up to an id; that is set right when those are applied there, too.
Task<bool> Receiver::give_region(Sender& sender, std::size_t copy) {
  std::optional<std::uint64_t> from = logs_.given_from(copy, sender.applied());
  for (; !from; from = logs_.given_from(copy, sender.applied())) {
    while (const auto sync = logs_.whole_from(log_, passed_until_[copy])) {
      logs_.skip_until_given(copy, sync->last_id());
      skipped_until_ = sync->last_id();
      note_passed(copy, *sync);
    }
    co_await sleep_for(kLook);
  }
  // It is for the new primary's connections to do.
  if (logs_.is_closed() || logs_.is_incomplete()) co_return false;
  const auto refusal = co_await sender.connect(*from, Hello::Contents::written);
  if (!refusal || refusal->reason != Refusal::Reason::none) co_return false;
  logs_.note_given(copy, *from);
  const bool written = co_await sender.write_data(device_.data, logs_.shape().size);
  // In another term it has to be given from the beginning, as when something was not passed on
  // meanwhile, since this copy was incomplete.
  if (!written || logs_.is_closed() || term_of(*from) < logs_.term() || logs_.skipped() > *from) {
    co_return false;
  }
  const bool ended = co_await sender.end_data(logs_.applied());
  co_return ended;
}

// A request is passed on as it is, from its slot.
Task<bool> Receiver::try_to_pass(Sender& sender, const Logs::SyncPoint& sync) {
  for (std::uint64_t position = sync.position; position < sync.end(); ++position) {
    const Bytes slot = logs_.shape().slot_offset(log_, position);
    const auto header = logs_region_.read_object<RequestHeader>(slot);
    const auto length = static_cast<std::uint32_t>(sizeof header + header.length);
    const fabric::LocalPieces request = fabric::LocalBuffer{&logs_region_, slot, length};
    const bool ends = position + 1 == sync.end();
    const bool sent = ends ? co_await sender.finish(request, sync.last_id(), true)
                           : co_await sender.post(std::span(&request, 1));
    if (!sent) co_return false;
  }
  co_return true;
}

}  // namespace perdura::systems::mojim
