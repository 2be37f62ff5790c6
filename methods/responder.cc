#include "methods/responder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::methods {

using fabric::Access;
using fabric::LocalBuffer;
using fabric::ReceiveCompletion;
using pmem::Step;
using pmem::StepKind;

namespace {

// Checks the setup before anything is created.
const PersisterSetup& checked(const PersisterSetup& setup, Thread& thread,
                              const pmem::Region& target) {
  check(setup, thread.endpoint.capabilities());
  check_region(setup, target.size());
  return setup;
}

}  // namespace

Responder::Responder(Thread& thread, pmem::Region& target, const PersisterSetup& setup)
    : thread_(thread),
      target_(target),
      setup_(checked(setup, thread, target)),
      applied_later_(is_applied_later(setup.method)),
      // Settling seldom keeps the cost of fences and marks low; settling this often keeps enough
      // buffers posted.
      settle_after_(std::max<std::uint64_t>(setup.receive_buffers / 4, 1)),
      ring_(thread.node, target.name(), setup),
      replayed_(ring_.recover(target)),
      target_memory_(thread.endpoint.register_memory(target, Access::remote_all)),
      buffer_memory_(thread.endpoint.register_memory(ring_.region(),
                                                     Access::remote_read | Access::remote_flush)),
      acks_(thread.node.create_region(target.name() + ".acks", setup.sessions * kCacheLine,
                                      pmem::Medium::dram)),
      ack_memory_(thread.endpoint.register_memory(*acks_, Access::local)),
      max_inline_(thread.endpoint.capabilities().max_inline),
      sessions_(setup.sessions) {
  for (RequesterSession& session : sessions_) {
    session.received = session.settled = ring_.applied(session.number);
  }
}

Responder::~Responder() {
  sessions_.clear();
  thread_.endpoint.deregister_memory(target_memory_);
  thread_.endpoint.deregister_memory(buffer_memory_);
  thread_.endpoint.deregister_memory(ack_memory_);
}

Task<> Responder::serve() {
  // Each task keeps alive what it uses: the others may be destroyed before it.
  const auto self = shared_from_this();
  Executor::current().spawn(rpc::accept_connections(
      thread_.endpoint, [self](fabric::ConnectionRequest& request) { self->accept(request); }));
  for (;;) handle(co_await completions_.next());
}

// --- connections ---------------------------------------------------------------------------------

Rejection::Reason Responder::rejection_of(const Hello& hello) const {
  using Reason = Rejection::Reason;
  if (hello.version != kProtocolVersion) return Reason::version;
  if (hello.session >= sessions_.size()) return Reason::no_session;
  if (hello.method != setup_.method_checksum() || hello.largest_a != setup_.largest_a ||
      hello.largest_b != setup_.largest_b) {
    return Reason::setup;
  }
  if (!sessions_[hello.session].is_free()) return Reason::busy;
  return ending_ ? Reason::ending : Reason::none;
}

// A session is busy until the end of its connection has been reported. After that, no data from the
// connection can arrive.
void Responder::accept(fabric::ConnectionRequest& request) {
  Hello hello{};
  if (request.private_data().size() < sizeof hello) return request.reject();
  std::memcpy(&hello, request.private_data().data(), sizeof hello);
  if (const auto reason = rejection_of(hello); reason != Rejection::Reason::none) {
    const Rejection rejection{.reason = reason,
                              .sessions = setup_.sessions,
                              .method = setup_.method_checksum(),
                              .largest_a = setup_.largest_a,
                              .largest_b = setup_.largest_b};
    return request.reject(rpc::bytes_of(rejection));
  }
  RequesterSession& session = sessions_[hello.session];
  const std::uint32_t generation = ring_.begin_generation(session.number, is_replayed());
  session.role = hello.role;
  session.step = 0;
  session.posted = session.received;
  session.receive_queue = thread_.endpoint.create_receive_queue(ring_.buffers());
  post_buffers(session);
  const Welcome welcome{.target = target_memory_.key,
                        .buffers = buffer_memory_.key,
                        .region_size = target_.size(),
                        .first_buffer = ring_.session_offset(session.number),
                        .sequence = session.received,
                        .buffer_count = ring_.buffers(),
                        .generation = is_replayed() ? generation : 0};
  session.queue_pair =
      request.accept({.receive_queue = session.receive_queue.get(), .completions = &completions_},
                     rpc::bytes_of(welcome));
  sessions_.connected(*session.queue_pair, session);
}

void Responder::disconnect(RequesterSession& session) {
  sessions_.forget(*session.queue_pair);
  session.queue_pair.reset();
  session.receive_queue.reset();
  settle(session);
}

// --- messages ------------------------------------------------------------------------------------

void Responder::handle(const ReceiveCompletion& completion) {
  RequesterSession* const found = sessions_.of(completion.queue_pair);
  if (found == nullptr) return;
  RequesterSession& session = *found;
  Incoming incoming;
  if (completion.status != fabric::Status::success || !understand(completion, incoming)) {
    return disconnect(session);
  }
  charge(Work::dispatch);
  ++session.received;
  ++messages_;
  do_steps(session, incoming);
  if (applied_later_ && !incoming.message.empty()) {
    apply_later(incoming);
    if (session.received - session.settled < settle_after_) return;
  }
  settle(session);
  post_buffers(session);
}

bool Responder::understand(const ReceiveCompletion& completion, Incoming& incoming) const {
  if (completion.immediate) {
    // The length of the update is unknown here. Flushing bytes after its end does no harm.
    const std::size_t update = update_of(*completion.immediate);
    const Bytes offset = offset_of(*completion.immediate);
    const Bytes largest = update == 0 ? setup_.largest_a : setup_.largest_b;
    if (offset > target_.size()) return false;
    incoming.header.updates = kUpdateA << update;
    incoming.header.offset[update] = offset;
    incoming.header.length[update] =
        static_cast<std::uint32_t>(std::min(largest, target_.size() - offset));
    return true;
  }
  const auto header = read_header(completion.buffer.bytes(), target_.size());
  if (!header) return false;
  incoming.header = *header;
  if (header->carries != 0) incoming.message = completion.buffer.bytes();
  return true;
}

// Executes the steps from the "receive" that waited for this message up to the next "receive".
void Responder::do_steps(RequesterSession& session, const Incoming& incoming) {
  const Method& method = setup_.method;
  const std::vector<Step>& steps =
      session.role == Role::reader ? method.responder_of_reader() : method.responder();
  if (steps.empty()) return;
  const auto named = [&](const Step::VariableChange& change) {
    return (incoming.header.updates >> change.variable & 1) != 0;
  };
  std::size_t next = session.step + 1;
  for (; next < steps.size() && steps[next].kind != StepKind::receive; ++next) {
    const Step& step = steps[next];
    for (const Step::VariableChange& change : step.changes) {
      if (!named(change)) continue;
      const std::size_t update = change.variable;
      if (step.kind == StepKind::copy && !incoming.message.empty()) copy(incoming, update);
      if (step.kind == StepKind::flush) {
        target_.flush(incoming.header.offset[update], incoming.header.length[update]);
      }
    }
    if (step.kind == StepKind::flush) target_.drain();
    if (step.kind == StepKind::send_ack) acknowledge(session);
  }
  session.step = next == steps.size() ? 0 : next;
}

void Responder::copy(const Incoming& incoming, std::size_t update) {
  const MessageHeader& header = incoming.header;
  target_.write(header.offset[update],
                incoming.message.subspan(data_offset(header, update), header.length[update]));
}

// A message that has arrived is visible but not yet durable: a power failure may lose it and keep
// parts of what has been applied. So here, too, "a" is made durable before "b" is written. Making
// "b", or a single update, durable is left to settle().
void Responder::apply_later(const Incoming& incoming) {
  const MessageHeader& header = incoming.header;
  for (std::size_t update = 0; update < 2; ++update) {
    if ((header.updates >> update & 1) == 0) continue;
    if (update == 1 && (header.updates & kUpdateA) != 0) target_.drain();
    copy(incoming, update);
    target_.flush(header.offset[update], header.length[update]);
  }
}

void Responder::acknowledge(RequesterSession& session) { send_count(session, 0, session.received); }

// Does not use the buffer of acknowledgments, since one may be in flight.
void Responder::begin_end() {
  if (std::exchange(ending_, true)) return;
  for (RequesterSession& session : sessions_) {
    if (!session.is_free()) send_count(session, kWord, kGoodbye);
  }
}

bool Responder::has_requesters() const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [](const RequesterSession& session) { return !session.is_free(); });
}

// `place` is an offset in the cache line of the session.
void Responder::send_count(RequesterSession& session, Bytes place, Acknowledgment count) {
  const LocalBuffer buffer =
      ack_memory_.local(session.number * kCacheLine + place, sizeof(Acknowledgment));
  std::memcpy(buffer.bytes().data(), &count, sizeof count);
  rpc::send(*session.queue_pair, buffer, max_inline_);
}

// --- buffers -------------------------------------------------------------------------------------

// Makes durable what was applied in the background, and moves the mark; the buffers may then be
// reposted.
void Responder::settle(RequesterSession& session) {
  if (session.settled == session.received) return;
  if (applied_later_) {
    target_.drain();
    if (is_replayed()) ring_.set_applied(session.number, session.received);
  }
  session.settled = session.received;
}

void Responder::post_buffers(RequesterSession& session) {
  while (session.posted - session.settled < ring_.buffers()) {
    ++session.posted;
    session.receive_queue->post(
        buffer_memory_.local(ring_.buffer_offset(session.number, session.posted),
                             static_cast<std::uint32_t>(ring_.buffer_size())),
        session.posted);
  }
}

}  // namespace perdura::methods
