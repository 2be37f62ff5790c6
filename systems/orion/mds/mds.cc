#include "systems/orion/mds/mds.h"

#include "systems/orion/protocol/counted.h"

namespace perdura::systems::orion {

Task<std::shared_ptr<Mds>> Mds::open(Thread& thread, std::string name, Parameters parameters) {
  std::shared_ptr<Mds> mds(new Mds(std::move(name), std::move(parameters)));
  mds->metadata_ = co_await Metadata::open(thread, mds->name_, mds->parameters_);
  mds->start(thread.node);
  co_return mds;
}

Task<std::shared_ptr<Mds>> Mds::open(Thread& thread, std::string name, const fs::FsConfig& config,
                                     Parameters parameters, std::unique_ptr<Mirror> mirror) {
  std::shared_ptr<Mds> mds(new Mds(std::move(name), std::move(parameters)));
  mds->metadata_ =
      co_await Metadata::open(thread, mds->name_, config, mds->parameters_, std::move(mirror));
  mds->start(thread.node);
  co_return mds;
}

void Mds::start(Node& node) {
  // The network threads' contexts come first.
  for (std::uint32_t i = 0; i < parameters_.fs_threads; ++i) {
    FsThread one;
    one.requests = std::make_unique<Requests>(*metadata_, parameters_.network_threads + i);
    one.thread = node.start_background_thread(std::nullopt, parameters_.completion);
    fs_threads_.push_back(std::move(one));
  }
}

Task<> Mds::serve(Thread& thread, bool accepts) {
  const std::uint32_t number = thread.endpoint.address().port - parameters_.first_mds_port();
  network_[number] =
      std::make_shared<NetworkThread>(thread, name_, *metadata_, fs_threads_, parameters_, number);
  co_await network_[number]->serve(accepts);
}

void Mds::accept(fabric::ConnectionRequest& request) {
  if (network_.front() == nullptr) return request.reject();
  network_.front()->accept(request);
}

std::vector<std::uint64_t> Mds::events() const {
  std::vector<std::uint64_t> events(kEventCount);
  const auto count = [&](Counted what) -> std::uint64_t& {
    return events[static_cast<std::size_t>(what)];
  };
  const nova::Volume& volume = metadata_->volume();
  count(Counted::log_pages) = volume.count_of(nova::Happened::log_pages);
  count(Counted::fast_collections) = volume.count_of(nova::Happened::fast_collections);
  count(Counted::thorough_collections) = volume.count_of(nova::Happened::thorough_collections);
  count(Counted::journaled) = volume.count_of(nova::Happened::journaled);
  count(Counted::redone) = volume.count_of(nova::Happened::redone);
  count(Counted::orphans) = volume.count_of(nova::Happened::orphans);
  count(Counted::chunks) = metadata_->pages().delegations();
  return events;
}

std::vector<double> Mds::metrics() const {
  MdsCounts sum;
  for (const auto& network : network_) {
    if (!network) continue;
    sum.commits += network->counts().commits;
    sum.rpcs += network->counts().rpcs;
    sum.forces += network->counts().forces;
    sum.handling += network->counts().handling;
    sum.executing += network->counts().executing;
  }
  return {static_cast<double>(sum.commits),
          static_cast<double>(sum.rpcs),
          static_cast<double>(metadata_->conflicts()),
          static_cast<double>(sum.forces),
          0,
          static_cast<double>(sum.handling.count()) * 1e-6,
          static_cast<double>(sum.executing.count()) * 1e-6,
          static_cast<double>(metadata_->volume().count_of(nova::Happened::log_pages)),
          0,
          0};
}

}  // namespace perdura::systems::orion
