#include "systems/orion/mds/store_links.h"

#include <fmt/format.h>

#include "rpc/messages.h"

namespace perdura::systems::orion {

using fabric::Access;
using fabric::LocalBuffer;
using fabric::ReceiveCompletion;
using fabric::Status;

namespace {

constexpr Bytes kRoomOfNews = kCacheLine;
// Looks are counted instead of time, since this thread may have stood still itself.
constexpr int kLooksInTimeout = 8;

Bytes bytes_of_bits(std::uint64_t pages) { return (pages + 63) / 64 * kWord; }

}  // namespace

StoreLinks::StoreLinks(Thread& thread, const std::string& name, Metadata& metadata,
                       const Parameters& parameters, std::uint32_t network_thread,
                       fabric::CompletionQueue& completions, Listener listener)
    : thread_(thread),
      metadata_(metadata),
      parameters_(parameters),
      network_thread_(network_thread),
      completions_(completions),
      listener_(std::move(listener)),
      max_inline_(thread.endpoint.capabilities().max_inline),
      links_(static_cast<std::uint32_t>(parameters.stores.size())),
      memory_(thread.node.create_region(fmt::format("{} stores {}", name, network_thread),
                                        (kAcks + links_.size() * kBuffers) * kRoomOfNews,
                                        pmem::Medium::dram)),
      registered_(thread.endpoint.register_memory(*memory_, Access::local)),
      buffers_(thread.endpoint.create_receive_queue(kAcks)),
      acks_(thread.node.create_region(fmt::format("{} acknowledgments {}", name, network_thread),
                                      links_.size() * kAcks * sizeof(Ack), pmem::Medium::dram)) {
  for (std::uint32_t i = 0; i < kAcks; ++i) buffers_->post(buffer(i), i);
  for (std::size_t store = 0; store < links_.size(); ++store) {
    acks_of_.push_back(thread.endpoint.register_memory(*acks_, store * kAcks * sizeof(Ack),
                                                       kAcks * sizeof(Ack), Access::remote_write));
  }
  if (!leads()) return;
  in_use_ = thread.node.create_region(fmt::format("{} in use", name),
                                      bytes_of_bits(parameters.pages), pmem::Medium::dram);
  in_use_registered_ = thread.endpoint.register_memory(*in_use_, Access::remote_read);
}

void StoreLinks::start() {
  thread_.executor.spawn(watch(shared_from_this()));
  if (!leads()) return;
  change_members();
  thread_.executor.spawn(wait_for_stores(shared_from_this()));
}

void StoreLinks::clear() {
  links_.clear();
  buffers_.reset();
}

// --- connections

void StoreLinks::accept(fabric::ConnectionRequest& request, const Hello& hello) {
  Link* link = nullptr;
  for (Link& one : links_) {
    const Parameters::StoreNode& store = parameters_.stores[one.number];
    if (store.node == hello.number && store.group == hello.group) link = &one;
  }
  if (link == nullptr) return request.reject();
  if (!link->is_free()) drop(*link);
  if (leads() && !metadata_.members().connected(link->number, hello.epoch)) return request.reject();
  const MdsWelcome welcome{.version = kProtocolVersion,
                           .store = link->number,
                           .acks_key = acks_of_[link->number].key.value,
                           .in_use_key = in_use_registered_.key.value};
  link->acks = link->told = link->noted = 0;
  link->asks = link->is_probed = false;
  link->silent = {};
  link->queue_pair = request.accept({buffers_.get(), &completions_}, rpc::bytes_of(welcome));
  links_.connected(*link->queue_pair, *link);
  if (leads()) change_members();
}

void StoreLinks::drop(Link& link) {
  links_.forget(*link.queue_pair);
  link.queue_pair.reset();
  link.fencing.clear();
  changed_.wake_all();
  if (!leads()) return;
  metadata_.members().lost(link.number);
  change_members();
}

bool StoreLinks::received(const ReceiveCompletion& completion) {
  Link* const link = links_.of(completion.queue_pair);
  if (link == nullptr) return false;
  if (completion.status != Status::success) {
    drop(*link);
    return true;
  }
  if (completion.immediate) {
    const Bytes slot = (link->number * kAcks + link->acks++ % kAcks) * sizeof(Ack);
    listener_.acknowledged(link->number, acks_->read_object<Ack>(slot));
  } else {
    received_news(*link, rpc::read_message<StoreNews>(completion.buffer.bytes()));
  }
  buffers_->post(buffer(completion.buffer_id), completion.buffer_id);
  return true;
}

void StoreLinks::received_news(Link& link, const StoreNews& news) {
  switch (news.news) {
    case News::fence:
      link.fencing.erase(news.session);
      break;
    case News::epoch:
      link.noted = news.epoch;
      break;
    case News::probe:
      link.is_probed = false;
      break;
    case News::catch_up:
      if (!leads()) return;
      link.asks = true;
      if (!metadata_.members().join(link.number)) return answer_join(true, link.number);
      return change_members();
    case News::caught_up:
      if (!leads()) return;
      metadata_.members().joined(link.number);
      return change_members();
  }
  changed_.wake_all();
}

void StoreLinks::send(Link& link, Buffer which, const StoreNews& news) {
  const LocalBuffer from =
      buffer(kAcks + Bytes{link.number} * kBuffers + static_cast<std::uint32_t>(which));
  rpc::write_message(from.bytes(), news);
  rpc::send(*link.queue_pair, from.first(sizeof news), max_inline_);
}

// --- stores that do not answer

Task<> StoreLinks::watch(std::shared_ptr<StoreLinks> self) {
  for (;;) {
    co_await sleep_for(self->parameters_.store_timeout / kLooksInTimeout);
    for (Link& link : self->links_) {
      if (!link.is_free()) self->look_at(link);
    }
  }
}

void StoreLinks::look_at(Link& link) {
  const std::array<bool, 3> is_awaited{!link.fencing.empty(), link.told != link.noted,
                                       link.is_probed};
  bool is_silent = false;
  for (std::size_t kind = 0; kind < is_awaited.size(); ++kind) {
    link.silent[kind] = is_awaited[kind] ? link.silent[kind] + 1 : 0;
    is_silent = is_silent || link.silent[kind] > kLooksInTimeout;
  }
  if (is_silent) return drop(link);
  // Both use the same buffer, here and at the store.
  if (link.is_probed || link.told != link.noted) return;
  link.is_probed = true;
  send(link, Buffer::epoch, {.news = News::probe});
}

// A store that is not connected lets no session in that began before it connects again.
Task<> StoreLinks::fence(SessionId session) {
  for (Link& link : links_) {
    while (!link.is_free() && !link.fencing.empty()) co_await wait(changed_);
    if (link.is_free()) continue;
    link.fencing.insert(session);
    link.silent[0] = 0;
    send(link, Buffer::fence, {.news = News::fence, .session = session});
  }
  for (Link& link : links_) {
    while (!link.is_free() && link.fencing.contains(session)) co_await wait(changed_);
  }
}

// --- epochs

void StoreLinks::change_members() {
  if (std::exchange(is_leading_, true)) return;
  thread_.executor.spawn(lead(shared_from_this()));
}

bool StoreLinks::all_have_noted(std::uint64_t epoch) const {
  for (const Link& link : links_) {
    if (!link.is_free() && link.noted != epoch) return false;
  }
  return true;
}

// Leads the stores to the next epoch, until nothing changes anymore.
Task<> StoreLinks::lead(std::shared_ptr<StoreLinks> self) {
  Members& members = self->metadata_.members();
  Pages& pages = self->metadata_.pages();
  while (members.has_changed()) {
    pages.accept(std::nullopt);
    co_await self->metadata_.begin_change();
    const std::uint64_t epoch = members.change();
    self->metadata_.end_change();
    self->listener_.epoch_begins();
    self->prepare_join();
    // The words of the members are durable only then.
    co_await yield();
    if (!co_await self->metadata_.settle()) co_return;
    while (!members.has_changed() && !self->all_have_noted(epoch)) {
      for (Link& link : self->links_) {
        const bool is_busy = link.told != link.noted || link.is_probed;
        if (link.is_free() || link.told == epoch || is_busy) continue;
        link.told = epoch;
        const StoreNews news{
            .news = News::epoch, .state = members.state_of(link.number), .epoch = epoch};
        self->send(link, Buffer::epoch, news);
      }
      co_await wait(self->changed_);
    }
    co_await self->metadata_.begin_change();
    if (members.has_changed()) {
      self->metadata_.end_change();
      continue;
    }
    const MembersLine line = members.publish();
    self->metadata_.end_change();
    co_await yield();
    if (!co_await self->metadata_.settle()) co_return;
    self->metadata_.words().publish(line);
    pages.accept(epoch);
    self->listener_.epoch_begins();
    // A store that has asked since the epoch began joins in the next one, for which prepare_join() says
    // what it has to fetch.
    const std::optional<std::uint32_t> joining = members.joining();
    if (joining && !members.has_changed()) self->answer_join(false, *joining);
  }
  self->is_leading_ = false;
}

// While no page is accepted: what is in use now, the store that joins has to fetch. All pages that are
// accepted later are written to it, too.
void StoreLinks::prepare_join() {
  const std::optional<std::uint32_t> joining = metadata_.members().joining();
  if (!joining) return metadata_.pages().keep(std::nullopt);
  const std::uint32_t group = parameters_.stores[*joining].group;
  metadata_.pages().keep(group);
  if (!links_[*joining].asks) return;
  const std::vector<std::uint64_t> used = metadata_.pages().used(group);
  for (std::size_t i = 0; i < used.size(); ++i) in_use_->store(i * kWord, used[i]);
}

void StoreLinks::answer_join(bool refused, std::uint32_t store) {
  Link& link = links_[store];
  if (link.is_free() || !std::exchange(link.asks, false)) return;
  const Members& members = metadata_.members();
  StoreNews news{.news = News::catch_up,
                 .refused = refused ? 1U : 0U,
                 .everything = members.needs_everything(store) ? 1U : 0U};
  if (const auto peer = members.peer_of(store)) news.peer = parameters_.stores[*peer].node;
  send(link, Buffer::answer, news);
}

Task<> StoreLinks::wait_for_stores(std::shared_ptr<StoreLinks> self) {
  co_await sleep_for(self->parameters_.store_patience);
  self->metadata_.members().end_patience();
  self->change_members();
}

LocalBuffer StoreLinks::buffer(std::uint64_t index) const {
  return registered_.local(index * kRoomOfNews, static_cast<std::uint32_t>(kRoomOfNews));
}

}  // namespace perdura::systems::orion
