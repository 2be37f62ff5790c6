#include "systems/orion/mds/pair.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "rpc/messages.h"
#include "rpc/sessions.h"
#include "systems/orion/protocol/counted.h"

namespace perdura::systems::orion {

namespace {

constexpr Picoseconds kBetweenLooks = std::chrono::milliseconds(1);
constexpr Picoseconds kBetweenQuestions = Microseconds(200);

}  // namespace

void PairMember::make(Node& node, const std::string& name) {
  node.create_region(pair_region(name), kCacheLine, pmem::Medium::pm);
}

PairMember::PairMember(Thread& thread, std::string name, const fs::FsConfig& config,
                       const Parameters& parameters)
    : node_(thread.node.id()),
      name_(std::move(name)),
      config_(config),
      parameters_(parameters),
      state_(thread.node.open_region(pair_region(name_))) {
  if (state_ == nullptr) {
    throw UsageError(
        fmt::format("there is no metadata of a file system '{}' on node {}", name_, node_));
  }
  claims_ = alone() == Alone::has_taken_over || alone() == Alone::gives;
  if (!is_first() && !claims_) be_mirror(thread);
}

Task<> PairMember::serve(Thread& thread) {
  return thread.endpoint.address().port < parameters_.first_mds_port() ? receive(thread)
                                                                       : begin(thread);
}

Task<> PairMember::receive(Thread& thread) {
  while (!receives_) co_await sleep_for(kBetweenLooks);
  const std::shared_ptr<mojim::Replica> replica = replica_;
  co_await replica->serve(thread);
}

// --- which of the two it is

Task<> PairMember::begin(Thread& thread) {
  thread.executor.spawn(rpc::accept_connections(
      thread.endpoint, [self = shared_from_this(), &thread](fabric::ConnectionRequest& request) {
        self->accept(thread, request);
      }));
  if (alone() == Alone::has_taken_over) co_await go_on_alone(thread);
  while (part_ == Part::undecided) {
    const std::optional<PairAnswer> other = co_await ask_other(thread);
    if (other && other->is_mds != 0) {
      follow_mds(thread);
    } else if (other && !claims_) {
      co_await be_primary(thread, other->is_new != 0);
    } else if (other && other->is_mirror != 0) {
      // This node has given it something.
      if (other->is_complete == 0) co_await go_on_alone(thread);
      follow_mds(thread);
    }
    co_await sleep_for(kBetweenQuestions);
  }
  thread.executor.spawn(follow(thread));
  co_await await_takeover(thread);
}

PairAnswer PairMember::answer() const {
  PairAnswer answer{.version = kProtocolVersion};
  answer.is_mds = part_ == Part::mds || claims_ ? 1 : 0;
  answer.is_mirror = part_ == Part::mirror ? 1 : 0;
  answer.is_new = part_ == Part::mirror && replica_->position() == 0 ? 1 : 0;
  answer.is_complete = part_ == Part::mirror && replica_->is_complete() ? 1 : 0;
  return answer;
}

void PairMember::accept(Thread& thread, fabric::ConnectionRequest& request) {
  const auto hello = rpc::read_message<Hello>(request.private_data());
  if (hello.peer == Peer::pair) {
    request.reject(rpc::bytes_of(answer()));
    if (hello.group != 0 && serves_ && !adopts_ && mds_->metadata().mirror().is_alone()) {
      adopts_ = true;
      thread.executor.spawn(adopt(shared_from_this()));
    }
    return;
  }
  if (mds_) return mds_->accept(request);
  request.reject();
  if (hello.peer != Peer::session) return;
  is_wanted_ = true;
  asked_.wake_all();
}

// Returns nothing if it does not answer for so long that it counts as gone.
Task<std::optional<PairAnswer>> PairMember::ask_other(Thread& thread) {
  const bool wants_memory = part_ == Part::mirror && !replica_->is_complete();
  const Hello hello{
      .version = kProtocolVersion, .peer = Peer::pair, .group = wants_memory ? 1U : 0U};
  const auto bytes = rpc::bytes_of(hello);
  const fabric::Address other{parameters_.other_mds(node_),
                              static_cast<fabric::Port>(parameters_.first_mds_port())};
  const fabric::QueuePairOptions options{.completions = &completions_,
                                         .connection_timeout = parameters_.takeover_after};
  std::vector<std::byte> data(bytes.begin(), bytes.end());
  const fabric::Connection connection =
      co_await thread.endpoint.connect(other, options, std::move(data));
  if (connection.private_data.size() < sizeof(PairAnswer)) co_return std::nullopt;
  const auto answer = rpc::read_message<PairAnswer>(connection.private_data);
  if (answer.version != kProtocolVersion) co_return std::nullopt;
  co_return answer;
}

// --- the mirror

void PairMember::be_mirror(Thread& thread) {
  replica_ = std::make_shared<mojim::Replica>(
      thread, name_, mirror_mode(), mirror_config(parameters_, parameters_.other_mds(node_)),
      services::MemoryRole::mirror);
  part_ = Part::mirror;
  receives_ = true;
}

// The other one has all that was acknowledged, and perhaps more than this one.
void PairMember::follow_mds(Thread& thread) {
  be_mirror(thread);
  if (claims_ || replica_->is_alone()) replica_->note_missed();
  set_alone(Alone::no);
  claims_ = false;
}

// Asks the MDS for its memory, unless this node has it, or gets it without having asked.
Task<> PairMember::follow(Thread& thread) {
  while (part_ == Part::mirror && !replica_->is_complete()) {
    co_await ask_other(thread);
    co_await sleep_for(kBetweenLooks);
  }
}

// A client asks the mirror only if it has not reached the MDS.
Task<> PairMember::await_takeover(Thread& thread) {
  for (;;) {
    while (!is_wanted_) co_await wait(asked_);
    is_wanted_ = false;
    const bool follows = replica_->position() > 0;  // it has something of an MDS
    if (parameters_.goes_on_alone || !follows || !replica_->is_complete()) continue;
    const std::optional<PairAnswer> other = co_await ask_other(thread);
    if (!other) co_await take_over(thread, true);
    // Neither is the MDS.
    const bool is_next = other && other->is_mds == 0 && other->is_mirror != 0 &&
                         (is_first() || other->is_complete == 0);
    if (is_next) co_await take_over(thread, false);
  }
}

// --- the MDS; none of these returns if it has become that

Task<> PairMember::take_over(Thread& thread, bool is_alone) {
  claims_ = true;
  co_await replica_->stop_receiving();
  if (is_alone) set_alone(Alone::has_taken_over);
  replica_->promote(is_alone ? std::vector<NodeId>{node_}
                             : std::vector<NodeId>{node_, parameters_.other_mds(node_)});
  std::unique_ptr<Mirror> mirror = co_await Mirror::connect(thread, replica_, parameters_);
  co_await be_mds(thread, std::move(mirror));
}

// Starts again, after it has taken over.
Task<> PairMember::go_on_alone(Thread& thread) {
  set_alone(Alone::has_taken_over);
  replica_ = std::make_shared<mojim::Replica>(thread, name_, mirror_mode(),
                                              config_alone(parameters_, node_),
                                              services::MemoryRole::primary);
  std::unique_ptr<Mirror> mirror = co_await Mirror::connect(thread, replica_, parameters_);
  co_await be_mds(thread, std::move(mirror));
}

// The node that the configuration names, when the other one is the mirror. Returns if that has taken
// over meanwhile.
Task<> PairMember::be_primary(Thread& thread, bool mirror_is_new) {
  claims_ = true;
  std::unique_ptr<Mirror> mirror;
  std::exception_ptr problem;
  try {
    mirror = co_await load_or_give(thread, mirror_is_new);
  } catch (const UsageError&) {
    problem = std::current_exception();
  }
  if (!problem) co_await be_mds(thread, std::move(mirror));
  claims_ = false;
  replica_.reset();
  const std::optional<PairAnswer> other = co_await ask_other(thread);
  if (other && other->is_mds == 0) std::rethrow_exception(problem);
}

// Returns when both have the same.
Task<std::unique_ptr<Mirror>> PairMember::load_or_give(Thread& thread, bool mirror_is_new) {
  const services::MemoryConfig config = mirror_config(parameters_, node_);
  const bool is_new = thread.node.open_region(name_) == nullptr;
  if (mirror_is_new && !is_new) {
    replica_ = std::make_shared<mojim::Replica>(thread, name_, mirror_mode(), config,
                                                services::MemoryRole::mirror);
    const bool was_mds = mojim::node_of(mojim::term_of(replica_->position())) == node_;
    if (alone() == Alone::loads || (!was_mds && !replica_->is_complete())) {
      throw UsageError(
          fmt::format("the memory of '{}' on node {}, which mirrors it, is new, and node {} does "
                      "not have all of "
                      "it; give node {} back the memory that it had",
                      name_, parameters_.other_mds(node_), node_, parameters_.other_mds(node_)));
    }
    replica_->count_as_complete();
    replica_->promote(config.nodes);
    co_return co_await Mirror::connect(thread, replica_, parameters_);
  }
  if (!is_new) set_alone(Alone::loads);
  co_await yield();  // nothing may be loaded before that is durable
  replica_ = std::make_shared<mojim::Replica>(thread, name_, mirror_mode(), config,
                                              services::MemoryRole::primary);
  std::unique_ptr<Mirror> mirror = co_await Mirror::connect(thread, replica_, parameters_);
  if (!is_new) set_alone(Alone::no);
  co_return mirror;
}

Task<> PairMember::be_mds(Thread& thread, std::unique_ptr<Mirror> mirror) {
  mds_ = co_await Mds::open(thread, name_, config_, parameters_, std::move(mirror));
  part_ = Part::mds;
  serves_ = true;
  co_await mds_->serve(thread, false);
}

// --- the MDS, when the other one is back

void PairMember::set_alone(Alone alone) {
  state_->store(0, static_cast<std::uint64_t>(alone));
  state_->persist(0, kWord);
}

Task<> PairMember::adopt(std::shared_ptr<PairMember> self) {
  Metadata& metadata = self->mds_->metadata();
  co_await metadata.pause();
  co_await metadata.settle();
  const bool has_taken_over = self->alone() != Alone::no;
  if (has_taken_over) self->set_alone(Alone::gives);
  co_await yield();  // the other one must not be complete before that is durable
  const bool given = co_await self->give_memory();
  if (!given) {
    // The other one has got nothing.
    self->replica_->promote({self->node_});
    co_await metadata.mirror().connect_again();
    if (has_taken_over) self->set_alone(Alone::has_taken_over);
  } else if (!metadata.has_failed()) {
    self->set_alone(Alone::no);
  }
  metadata.resume();
  self->adopts_ = false;
}

// Nothing changes before the other one is connected, and when it is about to have all.
Task<bool> PairMember::give_memory() {
  Metadata& metadata = mds_->metadata();
  try {
    replica_->promote({node_, parameters_.other_mds(node_)});
    co_await metadata.mirror().connect_again([&] { return metadata.pause(); },
                                             [&] { metadata.resume(); }, parameters_.goes_on_alone);
  } catch (const PlatformError&) {
    co_return false;
  } catch (const UsageError&) {
    co_return false;
  }
  co_return true;
}

std::vector<std::uint64_t> PairMember::events() const {
  return serves_ ? mds_->events() : std::vector<std::uint64_t>(kEventCount);
}

std::vector<double> PairMember::metrics() const {
  return serves_ ? mds_->metrics() : std::vector<double>(kServerMetrics.size());
}

}  // namespace perdura::systems::orion
