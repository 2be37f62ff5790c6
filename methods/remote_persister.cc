#include "methods/remote_persister.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "methods/link.h"
#include "platform/base/error.h"
#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::methods {

using fabric::Access;
using fabric::LocalBuffer;
using fabric::Opcode;
using fabric::Placement;
using fabric::WorkRequest;
using pmem::StepKind;

namespace {

// No more than one acknowledgment is ever in flight.
constexpr std::uint32_t kAckBuffers = 4;
// All updates use one call, since there is one at a time.
constexpr rpc::Call kUpdate = 0;

const RemoteUpdate& part(const UpdateRequest& request, std::size_t update) {
  return update == 0 ? request.a : request.b;
}

// The method with this checksum; null if it is not one of methods().
const Method* method_of(std::uint32_t checksum) {
  for (const Method& method : methods()) {
    for (const Method& variant :
         {method, with_read_for_flush(method), with_read_timed_as_flush(method)}) {
      if (PersisterSetup{.method = variant}.method_checksum() == checksum) return &method;
    }
  }
  return nullptr;
}

// Describes the setup of another side.
std::string text_of(std::uint32_t method_checksum, std::uint32_t largest_a,
                    std::uint32_t largest_b) {
  const Method* method = method_of(method_checksum);
  return fmt::format("method {} with updates of {} and {} bytes",
                     method == nullptr ? "of its own" : fmt::format("'{}'", method->name),
                     largest_a, largest_b);
}

[[noreturn]] void refused(const fabric::Connection& connection, fabric::Address responder,
                          std::uint32_t session, const PersisterSetup& setup) {
  Rejection rejection;
  if (connection.private_data.size() >= sizeof rejection) {
    std::memcpy(&rejection, connection.private_data.data(), sizeof rejection);
  }
  const std::string who =
      fmt::format("the responder at node {}, port {} refuses session {}: ", responder.node,
                  responder.port, session);
  switch (rejection.reason) {
    case Rejection::Reason::version:
      throw OptionsDiffer(who + "it is of another version of perdura; use the same on both sides");
    case Rejection::Reason::no_session:
      throw OptionsDiffer(fmt::format("{}it has {}", who, rejection.sessions));
    case Rejection::Reason::setup:
      throw SetupDiffers(
          fmt::format("{}it has {}, not {}; give both sides the same options", who,
                      text_of(rejection.method, rejection.largest_a, rejection.largest_b),
                      text_of(setup.method_checksum(), setup.largest_a, setup.largest_b)),
          method_of(rejection.method), rejection.largest_a);
    case Rejection::Reason::busy:
      throw RefusedForNow(who + "it is in use", rejection.reason);
    case Rejection::Reason::ending:
      throw RefusedForNow(who + "the responder ends", rejection.reason);
    case Rejection::Reason::none:
      break;
  }
  throw RefusedForNow(who + "it does not say why", rejection.reason);
}

std::uint64_t word_of(const RemoteUpdate& update) {
  std::uint64_t word = 0;
  std::memcpy(&word, update.data.data(), sizeof word);
  return word;
}

std::size_t only(UpdateSet updates) { return static_cast<std::size_t>(std::countr_zero(updates)); }

}  // namespace

std::string_view to_string(UpdateError error) {
  constexpr std::string_view kNames[] = {
      "disconnected", "too large",           "outside of the region",  "misaligned",
      "link changed", "link is not durable", "link has the mark's bit"};
  return kNames[static_cast<int>(error)];
}

// --- connecting ----------------------------------------------------------------------------------

Task<std::unique_ptr<RemotePersister>> RemotePersister::connect(Thread& thread,
                                                                fabric::Address responder,
                                                                std::uint32_t session,
                                                                PersisterSetup setup, Role role) {
  methods::check(setup, thread.endpoint.capabilities());
  if (role == Role::reader && setup.method.update != Update::publish) {
    throw UsageError(fmt::format("method '{}' has no readers", setup.method.name));
  }
  std::unique_ptr<RemotePersister> persister(new RemotePersister(thread, setup, role));
  co_await persister->open(responder, session);
  co_return persister;
}

// The memory: areas in which messages are composed, the first of which also stages the data of
// WRITEs; then the results of READs; then links; then acknowledgments.
RemotePersister::RemotePersister(Thread& thread, const PersisterSetup& setup, Role role)
    : thread_(thread),
      setup_(setup),
      role_(role),
      max_inline_(thread.endpoint.capabilities().max_inline) {
  area_size_ = message_room(setup.largest_a, setup.largest_b);
  plan(role == Role::reader ? setup_.method.reader() : setup_.method.requester());
  links_offset_ = scratch_offset_ + round_up(setup.largest_a, kCacheLine);
  const Bytes ack_offset = links_offset_ + (publishes() ? kCacheLine : 0);
  memory_ = thread.node.create_region("persister", ack_offset + kAckBuffers * kCacheLine,
                                      pmem::Medium::dram);
  registered_ = thread.endpoint.register_memory(*memory_, Access::local);
  acks_.open(thread.endpoint, kAckBuffers);
  acks_.post_all({registered_, ack_offset, kCacheLine, kCacheLine}, kAckBuffers);
  calls_.open(1);
}

RemotePersister::~RemotePersister() {
  queue_pair_.reset();
  thread_.endpoint.deregister_memory(registered_);
}

void RemotePersister::plan(const std::vector<pmem::Step>& steps) {
  std::size_t areas = 1;
  bool first_area_taken = false;
  word_b_ = publishes();
  for (const pmem::Step& step : steps) {
    Action action{.kind = step.kind, .fenced = step.fenced};
    for (const auto& change : step.changes) {
      action.updates |= kUpdateA << change.variable;
      action.unmarks = action.unmarks || is_unmarked(change);
    }
    switch (step.kind) {
      case StepKind::send:
        // The data is staged after the header of the first message; further messages need a copy.
        if (!first_area_taken && (action.updates & kUpdateA) != 0) {
          first_area_taken = true;
          break;
        }
        [[fallthrough]];
      case StepKind::send_names:
        action.message_offset = area_size_ * areas++;
        break;
      case StepKind::completion:
        for (auto last = actions_.rbegin(); last != actions_.rend(); ++last) {
          if (last->kind == StepKind::receive_ack || last->kind == StepKind::completion) continue;
          last->awaited = true;
          break;
        }
        break;
      case StepKind::write_immediate:
        eight_byte_units_ = true;
        break;
      case StepKind::atomic_write:
        word_b_ = true;
        break;
      case StepKind::compare_and_swap:
        action.sets_link = !action.unmarks;
        break;
      case StepKind::await:
        continue;  // read_link() reads the link
      default:
        break;
    }
    actions_.push_back(action);
  }
  scratch_offset_ = area_size_ * areas;
}

Task<> RemotePersister::open(fabric::Address responder, std::uint32_t session) {
  const Hello hello{.session = session,
                    .method = setup_.method_checksum(),
                    .largest_a = setup_.largest_a,
                    .largest_b = setup_.largest_b,
                    .role = role_};
  const auto bytes = rpc::bytes_of(hello);
  fabric::Connection connection = co_await thread_.endpoint.connect(
      responder, {.receive_queue = acks_.queue(), .completions = &completions_},
      std::vector<std::byte>(bytes.begin(), bytes.end()));
  if (connection.status == fabric::Status::disconnected) {
    refused(connection, responder, session, setup_);
  }
  if (connection.status != fabric::Status::success ||
      connection.private_data.size() < sizeof welcome_) {
    throw NoAnswer(fmt::format("cannot connect to the responder at node {}, port {}: {}",
                               responder.node, responder.port,
                               fabric::to_string(connection.status)));
  }
  std::memcpy(&welcome_, connection.private_data.data(), sizeof welcome_);
  check_region(setup_, welcome_.region_size);
  sequence_ = welcome_.sequence;
  queue_pair_ = std::move(connection.queue_pair);
}

// --- an update -----------------------------------------------------------------------------------

Task<tl::expected<void, UpdateError>> RemotePersister::update(UpdateRequest request) {
  if (role_ != Role::writer) throw std::logic_error("a reader makes no updates");
  return execute(request);
}

// If the CAS finds another value, a reader must not rely on the link, so it is read again.
Task<tl::expected<std::uint64_t, UpdateError>> RemotePersister::read_link(Bytes offset) {
  if (role_ != Role::reader) throw std::logic_error("a writer reads no links");
  const LocalBuffer landing = registered_.local(links_offset_ + 2 * kWord, kWord);
  const ReadersDuty duty = setup_.method.readers_duty();
  const bool marks = setup_.method.marks();
  for (;;) {
    std::uint64_t link = 0;
    UpdateRequest request{.b = {offset, std::as_bytes(std::span(&link, 1))}};
    if (const auto good = check(request); !good) co_return tl::unexpected(good.error());
    const fabric::RemoteAddress place{welcome_.target, offset};
    const fabric::Completion read = co_await queue_pair_->read(landing, place);
    if (!read) co_return tl::unexpected(UpdateError::disconnected);
    std::memcpy(&request.expected, landing.bytes().data(), sizeof request.expected);
    link = marks ? without_mark(request.expected) : request.expected;
    if (duty == ReadersDuty::nothing || (marks && link == request.expected)) co_return link;
    if (duty == ReadersDuty::wait) co_return tl::unexpected(UpdateError::not_durable);
    const auto done = co_await execute(request);
    if (done) co_return link;
    if (done.error() != UpdateError::changed) co_return tl::unexpected(done.error());
  }
}

Task<tl::expected<void, UpdateError>> RemotePersister::execute(UpdateRequest request) {
  if (const auto good = check(request); !good) co_return good;
  stage(request);
  std::optional<fabric::RdmaOperation> last;
  std::optional<fabric::RdmaOperation> link;
  fabric::RdmaOperation* awaited = nullptr;
  for (const Action& action : actions_) {
    if (action.kind == StepKind::completion) {
      if (awaited == nullptr) continue;
      fabric::RdmaOperation& operation = *awaited;
      const fabric::Completion completion = co_await operation;
      if (!completion) co_return tl::unexpected(UpdateError::disconnected);
    } else if (action.kind == StepKind::receive_ack) {
      calls_.expect(kUpdate);
      const std::optional<Acknowledgment> count = co_await calls_.answer_to(
          kUpdate, completions_,
          [this](const fabric::ReceiveCompletion& message) { take(message); });
      if (!count) co_return tl::unexpected(UpdateError::disconnected);
    } else if (action.awaited || action.sets_link) {
      std::optional<fabric::RdmaOperation>& operation = action.sets_link ? link : last;
      operation.emplace(*queue_pair_, prepare(action, request));
      operation->post();
      if (action.awaited) awaited = &*operation;
    } else {
      queue_pair_->post_unsignaled(prepare(action, request));
    }
  }
  if (link) {
    fabric::RdmaOperation& operation = *link;
    const fabric::Completion completion = co_await operation;
    if (!completion) co_return tl::unexpected(UpdateError::disconnected);
    if (completion.old_value != request.expected) co_return tl::unexpected(UpdateError::changed);
  }
  co_return tl::expected<void, UpdateError>();
}

// Takes an acknowledgment, or a goodbye, which may come before the acknowledgment.
void RemotePersister::take(const fabric::ReceiveCompletion& message) {
  if (message.status != fabric::Status::success) return calls_.fail();
  const auto count = rpc::read_message<Acknowledgment>(message.buffer.bytes());
  acks_.post(message.buffer_id);
  if (count == kGoodbye) {
    over_ = true;
  } else {
    calls_.deliver(kUpdate, count);
  }
}

// Between updates only a goodbye and the end of the connection can arrive.
bool RemotePersister::is_over() {
  while (const auto message = completions_.try_next()) take(*message);
  return over_ || calls_.broken() || !queue_pair_->connected();
}

tl::expected<void, UpdateError> RemotePersister::check(const UpdateRequest& request) const {
  const std::size_t updates = setup_.method.update == Update::single ? 1 : 2;
  for (std::size_t update = 0; update < updates; ++update) {
    const auto& [offset, data] = part(request, update);
    const Bytes largest = update == 0 ? setup_.largest_a : setup_.largest_b;
    if (data.size() > largest) return tl::unexpected(UpdateError::too_large);
    if (offset > welcome_.region_size || data.size() > welcome_.region_size - offset) {
      return tl::unexpected(UpdateError::outside);
    }
    const bool by_word = update == 1 && word_b_;
    if (((eight_byte_units_ || by_word) && offset % kWord != 0) ||
        (by_word && data.size() != kWord)) {
      return tl::unexpected(UpdateError::misaligned);
    }
  }
  if (publishes() && setup_.method.marks() && is_marked(word_of(request.b))) {
    return tl::unexpected(UpdateError::has_mark);
  }
  if (over_ || calls_.broken() || !queue_pair_->connected())
    return tl::unexpected(UpdateError::disconnected);
  return {};
}

std::span<std::byte> RemotePersister::room() {
  return registered_.local(sizeof(MessageHeader), setup_.largest_a).bytes();
}

void RemotePersister::stage(const UpdateRequest& request) {
  if (request.a.data.data() != room().data()) {
    copy_bytes(staged(request, 0).bytes(), request.a.data);
  }
  if (setup_.method.update != Update::single) {
    copy_bytes(staged(request, 1).bytes(), request.b.data);
  }
  if (!publishes()) return;
  for (const bool unmarks : {false, true}) {
    const std::uint64_t word = link_of({.unmarks = unmarks}, request);
    std::memcpy(link_buffer(unmarks).bytes().data(), &word, sizeof word);
  }
}

// The link as this step sets it.
std::uint64_t RemotePersister::link_of(const Action& action, const UpdateRequest& request) const {
  const std::uint64_t link = word_of(request.b);
  return setup_.method.marks() && !action.unmarks ? link | kLinkMark : link;
}

LocalBuffer RemotePersister::link_buffer(bool unmarked) const {
  return registered_.local(links_offset_ + (unmarked ? kWord : 0), kWord);
}

LocalBuffer RemotePersister::staged(const UpdateRequest& request, std::size_t update) const {
  const Bytes after_a = update == 1 ? round_up(request.a.data.size(), kWord) : 0;
  return registered_.local(sizeof(MessageHeader) + after_a,
                           static_cast<std::uint32_t>(part(request, update).data.size()));
}

LocalBuffer RemotePersister::scratch(std::uint32_t length) const {
  return registered_.local(scratch_offset_, length);
}

WorkRequest RemotePersister::prepare(const Action& action, const UpdateRequest& request) {
  WorkRequest work;
  work.flags.fenced = action.fenced;
  switch (action.kind) {
    case StepKind::write:
    case StepKind::write_immediate: {
      const std::size_t update = only(action.updates);
      work.opcode = Opcode::write;
      work.local =
          publishes() && update == 1 ? link_buffer(action.unmarks) : staged(request, update);
      work.remote = last_place_ = {welcome_.target, part(request, update).offset};
      last_length_ = work.local.length();
      if (action.kind == StepKind::write_immediate) {
        work.opcode = Opcode::write_with_immediate;
        work.immediate = immediate_of(update, work.remote.offset);
        ++sequence_;
      }
      work.flags.inlined = work.local.length() <= max_inline_;
      break;
    }
    case StepKind::atomic_write: {
      const RemoteUpdate& written = part(request, only(action.updates));
      work.opcode = Opcode::atomic_write;
      work.operand = publishes() ? link_of(action, request) : word_of(written);
      work.remote = last_place_ = {welcome_.target, written.offset};
      last_length_ = kWord;
      break;
    }
    case StepKind::compare_and_swap:
      work.opcode = Opcode::compare_and_swap;
      work.expected = action.unmarks ? link_of({}, request) : request.expected;
      work.operand = link_of(action, request);
      work.remote = last_place_ = {welcome_.target, request.b.offset};
      last_length_ = kWord;
      break;
    case StepKind::send:
    case StepKind::send_names:
      return prepare_send(action, request);
    case StepKind::read:
      work.opcode = Opcode::read;
      work.remote = last_place_;
      work.local = scratch(
          static_cast<std::uint32_t>(std::min<Bytes>({last_length_, kWord, setup_.largest_a})));
      break;
    default:  // FLUSH
      work.opcode = Opcode::flush;
      work.placement = action.kind == StepKind::flush_persistence ? Placement::persistence
                                                                  : Placement::global_visibility;
      work.remote = last_place_;
      work.flush_length = last_length_;
      if (action.updates != 0 && setup_.method.carrier != Carrier::send) {
        const RemoteUpdate& named = part(request, only(action.updates));
        work.remote = {welcome_.target, named.offset};
        work.flush_length = named.data.size();
      }
      break;
  }
  return work;
}

WorkRequest RemotePersister::prepare_send(const Action& action, const UpdateRequest& request) {
  MessageHeader header{.sequence = ++sequence_, .updates = action.updates};
  header.carries = action.kind == StepKind::send ? 1 : 0;
  for (std::size_t update = 0; update < 2; ++update) {
    if ((action.updates >> update & 1) == 0) continue;
    header.offset[update] = part(request, update).offset;
    header.length[update] = static_cast<std::uint32_t>(part(request, update).data.size());
  }
  const auto size = static_cast<std::uint32_t>(message_size(header));
  const LocalBuffer message = registered_.local(action.message_offset, size);
  if (header.carries != 0 && action.message_offset != 0) {
    for (std::size_t update = 0; update < 2; ++update) {
      if ((action.updates >> update & 1) == 0) continue;
      copy_bytes(message.bytes().subspan(data_offset(header, update), header.length[update]),
                 staged(request, update).bytes());
    }
  }
  if (welcome_.generation != 0 && header.carries != 0) {
    write_sealed_header(header, welcome_.generation, message.bytes());
  } else {
    write_header(header, message.bytes());
  }
  if (header.carries != 0) {
    // It is the message itself that must be made persistent.
    const Bytes buffer = sequence_ % welcome_.buffer_count * setup_.buffer_size();
    last_place_ = {welcome_.buffers, welcome_.first_buffer + buffer};
    last_length_ = size;
  }
  return {.opcode = Opcode::send,
          .flags = {.fenced = action.fenced, .inlined = size <= max_inline_},
          .local = message};
}

Task<tl::expected<void, UpdateError>> RemotePersister::read(Bytes offset,
                                                            std::span<std::byte> into) {
  if (into.size() > setup_.largest_a) co_return tl::unexpected(UpdateError::too_large);
  if (offset > welcome_.region_size || into.size() > welcome_.region_size - offset) {
    co_return tl::unexpected(UpdateError::outside);
  }
  const LocalBuffer buffer = scratch(static_cast<std::uint32_t>(into.size()));
  if (!co_await queue_pair_->read(buffer, {welcome_.target, offset})) {
    co_return tl::unexpected(UpdateError::disconnected);
  }
  copy_bytes(into, buffer.bytes());
  co_return tl::expected<void, UpdateError>();
}

}  // namespace perdura::methods
