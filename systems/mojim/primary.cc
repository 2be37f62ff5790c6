#include "systems/mojim/primary.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "platform/base/error.h"

namespace perdura::systems::mojim {

namespace {

constexpr Bytes kPagesOfWord = 64;
// The interval at which a thread checks if another one has done what it waits for.
constexpr Picoseconds kLookAgain = Microseconds(10);
constexpr Bytes kLoadedAtOnce = 256 * KiB;
// The first port of background threads of the primary that post; threads of copies have lower ones.
constexpr fabric::Port kPortOfPosting = 0x4000;

}  // namespace

std::vector<NodeId> copies_behind(const Mode& mode, std::span<const NodeId> nodes, NodeId node) {
  const auto self = std::find(nodes.begin(), nodes.end(), node);
  if (self == nodes.end()) return {};
  const auto index = static_cast<std::size_t>(self - nodes.begin());
  const std::span<const NodeId> behind = nodes.subspan(index + 1);
  switch (mode.copies) {
    case Copies::none:
      return {};
    case Copies::mirror:
      return {behind.begin(), behind.end()};
    case Copies::chain: {
      const std::size_t next = std::min<std::size_t>(behind.size(), 1);
      return {behind.begin(), behind.begin() + static_cast<std::ptrdiff_t>(next)};
    }
    case Copies::two_tiers:
      if (index == 0 && !behind.empty()) return {behind.front()};
      if (index == 1) return {behind.begin(), behind.end()};
      return {};
    case Copies::broadcast:
      if (index == 0) return {behind.begin(), behind.end()};
      return {};
  }
  return {};
}

namespace {

// The first copy that has not been given up; the first of all if there is none.
std::size_t source_of(std::uint64_t given_up, std::size_t copies) {
  const auto first = static_cast<std::size_t>(std::countr_one(given_up));
  return first < copies ? first : 0;
}

}  // namespace

Primary::Primary(Node& node, pmem::Region& region, LocalCopy& local, const Mode& mode,
                 const services::MemoryConfig& config, const Parameters& parameters,
                 Contents contents)
    : node_(node),
      region_(region),
      local_(local),
      mode_(mode),
      parameters_(parameters),
      shape_(config, parameters),
      copies_(copies_behind(mode, config.nodes, node.id())),
      source_(source_of(contents == Contents::loaded ? local.state.given_up() : 0, copies_.size())),
      acknowledgment_(mode.copies == Copies::chain && config.nodes.size() > 2
                          ? Acknowledgment::message
                          : acknowledgment_by(config.method)),
      term_(local.state.term()),
      posts_itself_(mode.waits && config.threads <= parameters.connections),
      next_id_(begin_of(term_) + 1),
      has_number_(config.threads),
      lost_(copies_.size()),
      incomplete_(copies_.size()),
      keeps_own_(contents == Contents::own),
      giving_up_(copies_.size()),
      loading_(contents == Contents::loaded ? Loading::necessary : Loading::done),
      contents_(contents),
      unflushed_(region.size() / (kPage * kPagesOfWord) + 1) {
  for (std::uint32_t i = 0; i < parameters.connections; ++i) {
    channels_.push_back(std::make_unique<Channel>());
    if (posts_itself_ || copies_.empty()) continue;
    channels_.back()->thread = node.start_background_thread(
        static_cast<fabric::Port>(kPortOfPosting + i), config.completion);
  }
}

Task<std::uint32_t> Primary::take_number() {
  constexpr Picoseconds kPatience = std::chrono::seconds(1);
  const Time since = Executor::current().now();
  while (Executor::current().now() - since < kPatience) {
    for (std::uint32_t number = 0; number < has_number_.size(); ++number) {
      if (!has_number_[number].exchange(true)) co_return number;
    }
    co_await sleep_for(kLookAgain);
  }
  throw UsageError(
      fmt::format("the region is mapped by {} threads, as many as it was made for; raise threads",
                  has_number_.size()));
}

Primary::Turn Primary::take_turn(Channel& channel, std::uint32_t count) {
  const std::lock_guard held(channel.lock);
  const std::uint64_t first_id = next_id_.fetch_add(count);
  channel.first_ids.push_back(first_id);
  return {channel.turns++, first_id};
}

void Primary::end_turn(Channel& channel) {
  {
    const std::lock_guard held(channel.lock);
    channel.first_ids.pop_front();
  }
  ++channel.serving;
  channel.waiting.wake_all();
}

Task<> Primary::connect(Thread& thread, Channel& channel, std::uint32_t number) {
  while (channel.connecting) co_await sleep_for(kLookAgain);
  if (!channel.senders.empty()) co_return;
  struct Connecting {
    Channel& channel;
    bool done = false;
    explicit Connecting(Channel& which) : channel(which) { channel.connecting = true; }
    ~Connecting() {
      channel.connecting = false;
      if (!done) channel.disconnect();
    }
  } connecting(channel);
  std::vector<std::unique_ptr<Sender>> senders;
  for (std::size_t copy = 0; copy < copies_.size(); ++copy) {
    senders.push_back(std::make_unique<Sender>(thread, thread.endpoint, copies_[copy],
                                               number % parameters_.connections, shape_,
                                               acknowledgment_, lost_[copy], parameters_.timeout));
  }
  channel.senders = std::move(senders);
  // The source comes first: the others may give up what they hold only when the region is loaded.
  if (!is_lost(source_)) {
    co_await connect_first(*channel.senders[source_], source_);
    co_await load_once(thread, *channel.senders[source_]);
    co_await note_completeness(*channel.senders[source_], source_);
  }
  for (std::size_t copy = 0; copy < copies_.size(); ++copy) {
    if (copy == source_ || is_lost(copy)) continue;
    co_await connect_first(*channel.senders[copy], copy);
    co_await note_completeness(*channel.senders[copy], copy);
  }
  connecting.done = true;
}

Task<> Primary::note_completeness(const Sender& sender, std::size_t copy) {
  if (!sender.is_incomplete() || copying_ == Copying::begun) co_return;
  // It has been given the region, and only has to apply it.
  if (sender.applied() < copied_until_) co_return;
  incomplete_[copy] = true;
  copying_ = Copying::wanted;
  if (!has_complete_copy()) co_await keep_own();
}

Task<std::optional<Refusal>> Primary::connect_again(Sender& sender) {
  // The least id under way. Those below it have been acknowledged and will not be sent again.
  std::uint64_t next = next_id_;
  for (const auto& channel : channels_) {
    const std::lock_guard held(channel->lock);
    if (!channel->first_ids.empty()) next = std::min(next, channel->first_ids.front());
  }
  const bool is_first = contents_ == Contents::fresh && next - 1 == begin_of(term_);
  const auto contents = is_first ? Hello::Contents::equal : Hello::Contents::other;
  const auto refusal = co_await sender.connect(next - 1, contents, parameters_.timeout);
  if (refusal && refusal->reason == Refusal::Reason::none) {
    const auto copy = std::find(copies_.begin(), copies_.end(), sender.to());
    co_await note_completeness(sender, static_cast<std::size_t>(copy - copies_.begin()));
  }
  if (refusal && refusal->reason == Refusal::Reason::replaced) replaced_ = true;
  co_return refusal;
}

Task<> Primary::connect_first(Sender& sender, std::size_t copy) {
  // A copy may not have noticed yet that the primary before is gone.
  constexpr int kAttempts = 100;
  const bool is_equal =
      contents_ == Contents::fresh || (contents_ == Contents::loaded && copy == source_);
  const auto contents = is_equal ? Hello::Contents::equal : Hello::Contents::other;
  std::optional<Refusal> refusal = co_await sender.connect(begin_of(term_), contents);
  for (int attempt = 1; attempt < kAttempts; ++attempt) {
    const bool may_end = refusal && (refusal->reason == Refusal::Reason::in_use ||
                                     refusal->reason == Refusal::Reason::broken);
    if (!may_end) break;
    co_await sleep_for(kLookAgain);
    refusal = co_await sender.connect(begin_of(term_), contents);
  }
  if (!refusal || refusal->reason == Refusal::Reason::broken) {
    throw PlatformError(fmt::format(
        "node {} has no copy of the region: nobody answers; start it, or choose a mode without it",
        copies_[copy]));
  }
  switch (refusal->reason) {
    case Refusal::Reason::none:
    case Refusal::Reason::broken:
      co_return;
    case Refusal::Reason::in_use:
      throw PlatformError(fmt::format(
          "the copy of node {} is in use by another primary; stop that one first", copies_[copy]));
    case Refusal::Reason::replaced:
      throw UsageError(fmt::format(
          "node {} follows another primary (term {}, this one has {}); start this node as a copy",
          copies_[copy], refusal->term, term_));
    case Refusal::Reason::alone:
      throw UsageError(fmt::format(
          "node {} has gone on as the primary without a copy, and what it has acknowledged then is "
          "not here (term {}, this one has {}); start that node as the primary, or remove its "
          "region to give that up",
          copies_[copy], refusal->term, term_));
    case Refusal::Reason::shape:
      throw UsageError(fmt::format(
          "the copy of node {} has another size, or other logs; give all nodes the same ones",
          copies_[copy]));
  }
}

bool Primary::begin_copying() {
  Copying wanted = Copying::wanted;
  return copying_.compare_exchange_strong(wanted, Copying::begun);
}

Task<> Primary::wait_for_copying() {
  while (copying_ == Copying::begun) co_await sleep_for(kLookAgain);
}

// This node may hold less than was acknowledged, and more than was synced, so nobody may use the
// region before it is loaded.
Task<> Primary::load_once(Thread& thread, Sender& source) {
  for (;;) {
    Loading necessary = Loading::necessary;
    if (loading_.compare_exchange_strong(necessary, Loading::begun)) break;
    if (loading_ == Loading::done) co_return;
    co_await sleep_for(kLookAgain);
  }
  struct Begun {
    std::atomic<Loading>& loading;
    ~Begun() {
      if (loading == Loading::begun) loading = Loading::necessary;
    }
  } const begun{loading_};
  if (source.is_incomplete()) {
    throw UsageError(fmt::format(
        "the copy of node {} is incomplete, so the region cannot be loaded from it; start the "
        "primary where the region is complete",
        source.to()));
  }
  co_await load_from(thread, source);
  loading_ = Loading::done;
}

Task<> Primary::load_from(Thread& thread, Sender& source) {
  const Bytes most = std::min(region_.size(), kLoadedAtOnce);
  const auto buffer = thread.node.create_region("mojim load", most, pmem::Medium::dram);
  const fabric::MemoryRegion memory =
      thread.endpoint.register_memory(*buffer, fabric::Access::local);
  std::vector<std::byte> bytes(most);
  std::uint32_t attempts = 0;
  for (Bytes done = 0; done < region_.size();) {
    const Bytes length = std::min(most, region_.size() - done);
    const bool read =
        source.connected() &&
        co_await source.read_data(done, memory.local(0, static_cast<std::uint32_t>(length)));
    if (!read) {
      if (attempts++ == parameters_.resends) {
        throw PlatformError("the copy is gone from which the region is loaded");
      }
      co_await connect_first(source, source_);
      continue;
    }
    const std::span<std::byte> part = std::span(bytes).first(length);
    buffer->read(0, part);
    region_.write(done, part);
    region_.flush(done, length);
    done += length;
  }
  region_.drain();
  thread.endpoint.deregister_memory(memory);
}

bool Primary::has_lost(NodeId node) const {
  const auto found = std::find(copies_.begin(), copies_.end(), node);
  return found != copies_.end() && is_lost(static_cast<std::size_t>(found - copies_.begin()));
}

bool Primary::has_lost_any() const {
  return std::any_of(lost_.begin(), lost_.end(), [](const auto& lost) { return lost.load(); });
}

bool Primary::has_lost_all() const {
  return std::all_of(lost_.begin(), lost_.end(), [](const auto& lost) { return lost.load(); });
}

std::uint64_t Primary::given_up() const {
  std::uint64_t bits = 0;
  for (std::size_t copy = 0; copy < giving_up_.size(); ++copy) {
    if (giving_up_[copy]) bits |= std::uint64_t{1} << copy;
  }
  return bits;
}

bool Primary::has_complete_copy() const {
  for (std::size_t copy = 0; copy < copies_.size(); ++copy) {
    if (!is_lost(copy) && !incomplete_[copy]) return true;
  }
  return false;
}

// Section 3.1.3, "Sync": the primary flushes when the mirror is lost. If it fails later it starts
// from its own region then, and not from the mirror's; as long as another copy is complete, from
// that copy's.
Task<> Primary::note_lost(std::size_t copy) {
  bool is_first = false;
  {
    const std::lock_guard held(completeness_);
    is_first = !giving_up_[copy];
    giving_up_[copy] = true;
    bool is_other_complete = false;
    for (std::size_t other = 0; other < copies_.size(); ++other) {
      is_other_complete = is_other_complete || (!giving_up_[other] && !incomplete_[other]);
    }
    if (is_other_complete) local_.state.set_given_up(local_.state.given_up() | given_up());
  }
  co_await yield();  // others must not go on before that is durable
  while (!is_first && !is_lost(copy)) co_await sleep_for(kLookAgain);
  lost_[copy] = true;
  if (!has_complete_copy()) co_await keep_own();
}

Task<> Primary::keep_own() {
  {
    const std::lock_guard held(completeness_);
    if (loading_ != Loading::done) co_return;  // it holds nothing yet
    if (!keeps_own() && !std::exchange(begins_to_keep_own_, true)) {
      flush_unflushed();
      if (!has_lost_any()) local_.state.set_incomplete(false);
    } else if (!has_lost_any() || local_.state.is_alone()) {
      co_return;
    }
    // A copy that is lost does not know it, and may be promoted.
    if (has_lost_any()) local_.state.go_on_alone();
  }
  co_await yield();  // others must not go on before that is durable
  const std::lock_guard held(completeness_);
  begins_to_keep_own_ = false;
  if (!has_complete_copy()) keeps_own_ = true;
}

Task<> Primary::wait_until_own() {
  while (!has_complete_copy() && !keeps_own()) co_await sleep_for(kLookAgain);
}

void Primary::end_copying(std::uint64_t last_id) {
  {
    const std::lock_guard held(completeness_);
    copied_until_ = last_id;
    for (auto& incomplete : incomplete_) incomplete = false;
    local_.state.set_given_up(given_up());
    if (has_complete_copy()) {
      keeps_own_ = false;
      local_.state.set_incomplete(true);
    }
  }
  copying_ = Copying::ended;
}

void Primary::note_unflushed(std::span<const services::MemoryRange> ranges) {
  for (const services::MemoryRange& range : ranges) {
    if (range.length == 0) continue;
    const Bytes last = (range.offset + range.length - 1) / kPage;
    for (Bytes page = range.offset / kPage; page <= last; ++page) {
      std::atomic<std::uint64_t>& word = unflushed_[page / kPagesOfWord];
      const std::uint64_t bit = std::uint64_t{1} << page % kPagesOfWord;
      if ((word.load(std::memory_order_relaxed) & bit) == 0) word |= bit;
    }
  }
}

void Primary::flush_unflushed() {
  for (std::size_t i = 0; i < unflushed_.size(); ++i) {
    std::uint64_t pages = unflushed_[i].exchange(0);
    for (; pages != 0; pages &= pages - 1) {
      const auto bit = static_cast<Bytes>(std::countr_zero(pages));
      const Bytes offset = (i * kPagesOfWord + bit) * kPage;
      region_.flush(offset, std::min(kPage, region_.size() - offset));
    }
  }
  region_.drain();
}

}  // namespace perdura::systems::mojim
