#include "systems/mojim/replica.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/base/error.h"
#include "systems/mojim/receiver.h"

namespace perdura::systems::mojim {

using services::MemoryRole;

namespace {

DataArea::Options data_options(const services::MemoryConfig& config, const Mode& mode,
                               const Parameters& parameters) {
  return {.checkpoint_thresh = parameters.checkpoint_thresh,
          .has_gaps = mode.waits,
          .flushes = config.method.has_value(),
          .readers = config.readers};
}

}  // namespace

Replica::Replica(Thread& thread, const std::string& name, const Mode& mode,
                 const services::MemoryConfig& config, MemoryRole role)
    : node_(thread.node),
      name_(name),
      mode_(mode),
      config_(config),
      parameters_(Parameters::of(config, mode)),
      role_(role),
      regions_(open_regions(thread.node, name, Shape(config, parameters_), medium())),
      local_(*regions_.logs, *regions_.data, Shape(config, parameters_),
             data_options(config, mode, parameters_)) {
  if (role == MemoryRole::primary) {
    const bool is_lost = local_.state.is_incomplete() && mode.is_replicated();
    be_primary(regions_.created ? Primary::Contents::fresh
               : is_lost        ? Primary::Contents::loaded
                                : Primary::Contents::own);
  } else if (!copies_behind(mode_, config_.nodes, node_.id()).empty()) {
    local_.logs.keep_for_others();
  }
  if (medium() == pmem::Medium::disk) disk_ = node_.start_background_thread();
}

// A primary's data area is in persistent memory, since applications map it.
pmem::Medium Replica::medium() const {
  const bool is_on_disk = mode_.data_on_disk && role_ != MemoryRole::primary;
  return is_on_disk ? pmem::Medium::disk : pmem::Medium::pm;
}

// Makes this node the primary: from now on applications change the data area.
void Replica::be_primary(Primary::Contents contents) {
  const std::uint64_t term = next_term();
  if (round_of(term) >= kMostRounds) {
    throw UsageError(
        fmt::format("region '{}' has had {} primaries, as many as can be told apart; copy its "
                    "contents to a new "
                    "region",
                    name_, kMostRounds - 1));
  }
  local_.state.close();
  local_.data.begin_term(term);
  // Its own region stays complete, since it is the only one until the copies have been given it.
  if (contents != Primary::Contents::own) local_.state.set_incomplete(true);
  const bool has_copies = !copies_behind(mode_, config_.nodes, node_.id()).empty();
  if (mode_.is_replicated() && !has_copies) local_.state.go_on_alone();
  if (regions_.data->medium() == pmem::Medium::disk) {
    // Section 3.2.3: applications map persistent memory.
    loaded_ = load_from_disk(node_, name_, *regions_.logs);
    local_.data.use(*loaded_);
  }
  primary_ = std::make_shared<Primary>(node_, loaded_ ? *loaded_ : *regions_.data, local_, mode_,
                                       config_, parameters_, contents);
}

void Replica::require_primary() const {
  if (primary_) return;
  throw UsageError(
      fmt::format("node {} is a {}: only the primary's region can be changed; map it there, or "
                  "promote this node",
                  node_.id(), to_string(role_)));
}

Task<std::unique_ptr<services::MappedMemory>> Replica::map(Thread& thread) {
  require_primary();
  co_return co_await SyncSession::open(thread, primary_);
}

Task<std::shared_ptr<SyncSession>> Replica::connect(Thread& thread, const CopyingSteps& steps) {
  require_primary();
  co_return co_await SyncSession::connect(thread, primary_, true, steps);
}

Task<> Replica::serve(Thread& thread) {
  const std::vector<NodeId> behind = copies_behind(mode_, config_.nodes, node_.id());
  const bool chain = mode_.copies == Copies::chain;
  const Acknowledgment by_method = acknowledgment_by(config_.method);
  const bool next_has_others =
      !behind.empty() && !copies_behind(mode_, config_.nodes, behind.front()).empty();
  Receiver receiver(
      thread, local_, *regions_.logs, *regions_.data,
      {.acknowledgment = chain && !behind.empty() ? Acknowledgment::message : by_method,
       .passes_first = chain && !behind.empty(),
       .behind = behind,
       .behind_acknowledge = mode_.backups_over_tcp     ? acknowledgment_over_tcp()
                             : chain && next_has_others ? Acknowledgment::message
                                                        : by_method,
       .over_tcp = mode_.backups_over_tcp,
       .secondary_tier_thresh = parameters_.secondary_tier_thresh,
       .resends = parameters_.resends,
       .timeout = parameters_.timeout,
       .disk = disk_});
  co_await receiver.serve();
}

std::uint64_t Replica::position() const {
  return primary_ ? primary_->last_id() : local_.state.applied();
}

void Replica::read(Bytes offset, std::span<std::byte> into) { local_.data.read(offset, into); }

bool Replica::has_lost(NodeId copy) const {
  if (primary_) return primary_->has_lost(copy);
  const std::vector<NodeId> behind = copies_behind(mode_, config_.nodes, node_.id());
  const auto found = std::find(behind.begin(), behind.end(), copy);
  return found != behind.end() &&
         local_.followers.is_lost(static_cast<std::size_t>(found - behind.begin()));
}

Task<> Replica::stop_receiving() {
  local_.state.close();
  while (local_.state.connections() > 0) co_await sleep_for(kLook);
}

void Replica::promote(std::vector<NodeId> nodes) {
  if (local_.state.is_incomplete()) {
    throw UsageError(fmt::format(
        "the copy of node {} is incomplete; promote another node, or start the former primary",
        node_.id()));
  }
  role_ = MemoryRole::primary;
  config_.nodes = std::move(nodes);
  be_primary(Primary::Contents::own);
}

std::vector<std::uint64_t> Replica::events() const {
  const ReceiveLogs::Counts counts = local_.logs.counts();
  return {local_.data.checkpoints(), counts.laps, counts.replayed, counts.discarded};
}

}  // namespace perdura::systems::mojim
