// Receiver: passes sync points and the region on to the copies after this one.
#include <algorithm>

#include "systems/mojim/receiver.h"

namespace perdura::systems::mojim {

// Shares the endpoint, as accept_over_tcp() does.
Task<> Receiver::pass_on(std::size_t copy, std::shared_ptr<fabric::Endpoint> sockets) {
  Sender sender(thread_, sockets ? *sockets : thread_.endpoint, options_.behind[copy], log_,
                local_.logs.shape(), options_.behind_acknowledge, local_.followers.lost(copy),
                options_.timeout);
  if (options_.passes_first) {
    co_await catch_up(sender, copy);
    is_caught_up_ = true;
  } else {
    sender.send_in_background();
  }
  for (;;) {
    if (options_.passes_first && awaited_until_ > std::max(safe_, skipped_until_)) {
      co_await skip(sender, copy, awaited_until_);
      acknowledge(std::max(safe_, awaited_until_));
    }
    const bool is_skipped = options_.passes_first && skipped_until_ > safe_;
    if (is_skipped && is_skipped_safe(copy)) acknowledge(skipped_until_);
    const auto sync = local_.logs.whole_from(log_, passed_until_[copy]);
    if (!sync && is_skipped) {
      co_await sleep_for(kLook);
      continue;
    }
    if (!sync) {
      co_await wait(arrived_);
      continue;
    }
    if (local_.state.is_incomplete()) {
      co_await skip(sender, copy, sync->last_id());
    } else if (local_.followers.skip_until_given(copy, sync->last_id())) {
      skipped_until_ = sync->last_id();
      sender.disconnect();
    } else if (!local_.followers.is_lost(copy)) {
      const bool passed = co_await pass(sender, copy, *sync);
      if (!passed) local_.followers.note_lost(copy);
    }
    note_passed(copy, *sync);
  }
}

// Passes on the sync points that a node of E-chain has recovered: it may not have done so before it
// failed.
Task<> Receiver::catch_up(Sender& sender, std::size_t copy) {
  if (applied_before_ == begin_of(term_of(applied_before_))) co_return;
  const bool passed =
      co_await pass(sender, copy, {.id = applied_before_, .position = 0, .count = 1});
  if (!passed) local_.followers.note_lost(copy);
  if (applied_before_ > std::max(safe_, skipped_until_)) acknowledge(applied_before_);
}

// The id up to which this copy and all that follow it have what they need, whichever log it came
// by. More may be safe of this log's own.
std::uint64_t Receiver::safe() const {
  constexpr std::size_t kNext = 0;
  const bool is_given = !local_.state.is_incomplete() &&
                        local_.followers.given_until(kNext) >= local_.followers.skipped();
  const bool is_known =
      local_.followers.is_lost(kNext) || local_.followers.awaits_region(kNext) || is_given;
  return is_caught_up_ && is_known ? std::max(safe_, local_.logs.passed_id()) : safe_;
}

// A preceding node that was restarted waits, in each log, until everything that it has is safe
// here. Some of that came by other logs, of which no message of this log tells, so it is polled
// for.
Task<> Receiver::await_other_logs(std::uint64_t connection, std::uint64_t id) {
  for (; connection == connections_ && safe_ < id; co_await sleep_for(kLook)) {
    if (safe() >= id) co_return acknowledge(safe());
  }
}

// This copy will be given a region that holds the sync points up to this id, and is incomplete
// until then. In E-chain, others count on what it acknowledges: lest the next copy be promoted as
// one that has everything, it is told first that it lacks these sync points, too.
Task<> Receiver::skip(Sender& sender, std::size_t copy, std::uint64_t id) {
  if (options_.passes_first && !local_.followers.is_lost(copy)) {
    const bool awaits = co_await let_await_region(sender, copy, id);
    if (!awaits) local_.followers.note_lost(copy);
  }
  sender.disconnect();
  local_.followers.skip(id);
}

Task<bool> Receiver::let_await_region(Sender& sender, std::size_t copy, std::uint64_t id) {
  for (std::uint32_t attempt = 0; attempt <= options_.resends; ++attempt) {
    if (local_.followers.awaits_region(copy) || local_.state.is_closed() ||
        term_of(id) < local_.state.term()) {
      co_return true;
    }
    const std::uint64_t since = local_.state.times_incomplete();
    const auto refusal = co_await sender.connect(id, Hello::Contents::awaited, options_.timeout);
    if (!refusal || refusal->reason != Refusal::Reason::none) continue;
    const bool told = co_await sender.wait_for(id);
    if (told) local_.followers.note_awaits_region(copy, since);
  }
  co_return local_.followers.awaits_region(copy);
}

bool Receiver::is_skipped_safe(std::size_t copy) const {
  return local_.followers.given_until(copy) >= skipped_until_ || local_.followers.is_lost(copy);
}

void Receiver::note_passed(std::size_t copy, const SyncPoint& sync) {
  const auto least = [this] {
    return *std::min_element(passed_until_.begin(), passed_until_.end());
  };
  const std::uint64_t before = least();
  passed_until_[copy] = std::max(passed_until_[copy], sync.end());
  if (least() == before) return;
  local_.logs.pass(log_, least());
  keep_slots_posted();
  if (options_.passes_first && sync.last_id() > skipped_until_) acknowledge(sync.last_id());
}

Task<bool> Receiver::pass(Sender& sender, std::size_t copy, const SyncPoint& sync) {
  for (std::uint32_t attempt = 0; attempt <= options_.resends; ++attempt) {
    if (local_.state.is_closed()) co_return true;
    // A new primary has come meanwhile, whose region holds this or does not.
    if (term_of(sync.id) < local_.state.term()) co_return true;
    // The next copy gets the whole region when this one is complete.
    if (local_.state.is_incomplete()) {
      co_await skip(sender, copy, sync.last_id());
      co_return true;
    }
    if (!sender.connected() || sender.term() != term_of(sync.id)) {
      const bool connected = co_await connect(sender, copy, sync);
      if (!connected) continue;
      if (local_.followers.skip_until_given(copy, sync.last_id())) {
        skipped_until_ = std::max(skipped_until_, sync.last_id());
        sender.disconnect();  // if it is not given after all, the next connection finds the gap
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
    if (local_.followers.is_lost(copy)) break;
  }
  co_return term_of(sync.id) < local_.state.term();
}

// No log of this node holds the sync points that it applied before it was opened, nor those that it
// has passed on since. A following copy that has received all of them needs only what is in the
// logs; any other, such as a new one in the place of one that has failed, needs the region.
Task<bool> Receiver::connect(Sender& sender, std::size_t copy, const SyncPoint& sync) {
  constexpr int kAttempts = 5;  // what has arrived at a copy may not have been applied yet
  const std::uint64_t term = term_of(sync.id);
  const bool is_first = round_of(term) == 1 && term_of(applied_before_) == 0;
  const std::uint64_t before = term_of(applied_before_) == term ? applied_before_ : begin_of(term);
  const std::uint64_t passed = local_.logs.passed_id();
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
  const bool has_gap = sender.applied() < std::max(from, local_.followers.skipped());
  if (!sender.is_incomplete() && !has_gap) co_return true;
  while (!local_.followers.begin_giving(copy, term)) {
    if (local_.followers.is_giving_for(copy, term)) co_return true;  // another log's thread does it
    co_await sleep_for(kLook);
  }
  const bool given = co_await give_region(sender, copy);
  local_.followers.end_giving(copy);
  co_return given;
}

// WRITEs the data area as it is. Sync points go on meanwhile, so the result may hold more than
// everything up to some id; that is set right when the later ones are applied there, too.
Task<bool> Receiver::give_region(Sender& sender, std::size_t copy) {
  std::optional<std::uint64_t> from = local_.followers.given_from(copy, sender.applied());
  for (; !from; from = local_.followers.given_from(copy, sender.applied())) {
    while (const auto sync = local_.logs.whole_from(log_, passed_until_[copy])) {
      local_.followers.skip_until_given(copy, sync->last_id());
      skipped_until_ = sync->last_id();
      note_passed(copy, *sync);
    }
    co_await sleep_for(kLook);
  }
  // If it is needed, the new primary's connections see to it.
  if (local_.state.is_closed() || local_.state.is_incomplete()) co_return false;
  const auto refusal = co_await sender.connect(*from, Hello::Contents::written);
  if (!refusal || refusal->reason != Refusal::Reason::none) co_return false;
  // Until this is acknowledged, the copies that follow that one may not know that they are
  // incomplete.
  const bool is_known = co_await sender.wait_for(*from);
  if (!is_known) co_return false;
  local_.followers.note_given(copy, *from);
  const bool written = co_await sender.write_data(device_.data, local_.logs.shape().size);
  // The region has to be given again in another term, and if something was not passed on meanwhile
  // because this copy was incomplete.
  if (!written || local_.state.is_closed() || term_of(*from) < local_.state.term() ||
      local_.followers.skipped() > *from) {
    co_return false;
  }
  const bool ended = co_await sender.end_data(local_.state.applied());
  co_return ended;
}

// Requests are passed on as they are, from their slots.
Task<bool> Receiver::try_to_pass(Sender& sender, const SyncPoint& sync) {
  for (std::uint64_t position = sync.position; position < sync.end(); ++position) {
    const Bytes slot = local_.logs.shape().slot_offset(log_, position);
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
