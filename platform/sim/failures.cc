#include "platform/sim/failures.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/base/error.h"
#include "platform/base/limits.h"

namespace perdura::sim {

void Failure::watch(SimPlatform& platform, Inject inject, std::function<bool()> can_happen) {
  inject_ = std::move(inject);
  can_happen_ = std::move(can_happen);
  if (listed_ != nullptr) {
    platform.list_crash_points();
    platform.between_events([this, &platform] { list(platform); });
  } else {
    platform.between_events([this, &platform] { look(platform); });
  }
}

std::uint64_t Failure::digest(SimPlatform& platform) {
  std::uint64_t result = 0;
  for (NodeId node = 0; node < platform.node_count(); ++node) {
    const pmem::WriteCounts writes = platform.local_node(node)->pm_writes().total();
    for (const std::uint64_t count :
         {writes.stores, writes.flushes, writes.fences, writes.bytes_issued, writes.bits_flipped}) {
      result = (result ^ count) * 0x9E3779B97F4A7C15;
    }
  }
  return result;
}

// Called after each event. Only now are all crash points between the previous event and this one
// known; those that this event has added come after it.
void Failure::list(SimPlatform& platform) {
  const Time now = platform.engine().now();
  std::set<Time>& crash_points = platform.crash_points();
  if (was_enabled_ && !listed_->empty()) {
    const auto end = crash_points.lower_bound(now);
    for (auto crash_point = crash_points.upper_bound(last_event_); crash_point != end;
         ++crash_point) {
      CrashPoint between = listed_->back();
      between.time = *crash_point;
      listed_->push_back(between);
    }
  }
  crash_points.clear();
  if (enabled_) {
    const bool impossible = can_happen_ && !can_happen_();
    listed_->push_back({platform.engine().fired(), now, now, digest(platform), impossible});
  }
  was_enabled_ = enabled_;
  last_event_ = now;
}

void Failure::look(SimPlatform& platform) {
  if (!crash_point_ || happened_ || platform.engine().fired() != crash_point_->events) return;
  if (platform.engine().now() != crash_point_->event_time ||
      digest(platform) != crash_point_->writes) {
    throw PlatformError(
        fmt::format("{}: the run is not the one that was listed; it must not depend on anything "
                    "but its own events",
                    text_));
  }
  happened_ = true;
  const Inject inject = std::move(inject_);
  if (crash_point_->time == crash_point_->event_time) {
    inject(*choices_);
  } else {
    platform.at(crash_point_->time, [inject, choices = choices_] { inject(*choices); });
  }
}

namespace {

// Notes whether any choice had more than one possibility.
class NotingChoices final : public pmem::Choices {
 public:
  explicit NotingChoices(pmem::Choices& choices) : choices_(choices) {}
  std::size_t choose(std::size_t n) override {
    any_ = any_ || n > 1;
    return choices_.choose(n);
  }
  bool any() const { return any_; }

 private:
  pmem::Choices& choices_;
  bool any_ = false;
};

}  // namespace

std::vector<CrashPoint> list_crash_points(const std::function<void(Failure&)>& scenario) {
  std::vector<CrashPoint> crash_points;
  Failure none;
  none.listed_ = &crash_points;
  none.text_ = "no failure: the run that lists the crash points";
  scenario(none);
  return crash_points;
}

void fail_at(const std::vector<CrashPoint>& crash_points, std::size_t number,
             pmem::Choices& choices, std::string_view image,
             const std::function<void(Failure&)>& scenario) {
  const CrashPoint& crash_point = crash_points[number];
  Failure failure;
  failure.crash_point_ = crash_point;
  failure.choices_ = &choices;
  failure.number_ = number;
  failure.text_ = fmt::format("crash point {} of {}, after event {}, at {:.6f} us, {}", number,
                              crash_points.size(), crash_point.events,
                              to_microseconds(crash_point.time.time_since_epoch()), image);
  try {
    scenario(failure);
  } catch (const std::exception& error) {
    rethrow_refused_memory(error);
    throw PlatformError(fmt::format("{}: {}", failure.text_, error.what()));
  }
  if (!failure.happened_) {
    throw PlatformError(fmt::format("{}: the run ended before it", failure.text_));
  }
}

namespace {

class Explorer {
 public:
  Explorer(const ExploreOptions& options, const std::function<void(Failure&)>& scenario)
      : options_(options), scenario_(scenario) {}

  Explored explore() {
    crash_points_ = list_crash_points(scenario_);
    explored_.crash_points = crash_points_.size();
    const std::size_t end = std::min<std::size_t>(
        crash_points_.size(),
        options_.last == ~std::uint64_t{0} ? options_.last : options_.last + 1);
    for (std::size_t i = options_.first; i < end; i += options_.stride) {
      if (options_.progress) {
        const std::uint64_t done = explored_.tried + explored_.known + explored_.impossible;
        options_.progress(done, done + (end - i + options_.stride - 1) / options_.stride);
      }
      if (options_.before != nullptr && options_.before->of_one_image.contains(i)) {
        ++explored_.known;
        explored_.of_one_image.insert(i);
      } else if (crash_points_[i].impossible) {
        ++explored_.impossible;
      } else {
        ++explored_.tried;
        try_crash_point(i);
      }
    }
    return explored_;
  }

 private:
  void try_crash_point(std::size_t number) {
    switch (options_.images) {
      case Images::least: {
        pmem::LeastChoices choices;
        return run(number, choices, "least image");
      }
      case Images::most: {
        pmem::MostChoices choices;
        return run(number, choices, "most image");
      }
      case Images::random: {
        // The seed of each crash point depends on its number, so that one crash point alone can be
        // replayed.
        pmem::RandomChoices choices(options_.seed << 32 ^ number);
        return run(number, choices, fmt::format("random image of seed {}", options_.seed));
      }
      case Images::all:
        break;
    }
    for (pmem::Enumerator all; all.next();) {
      if (options_.most_images > 0 && all.sequences() > options_.most_images) {
        ++explored_.cut_short;
        break;
      }
      run(number, all, fmt::format("image {}", all.sequences()));
    }
  }

  void run(std::size_t number, pmem::Choices& choices, const std::string& image) {
    NotingChoices noting(choices);
    ++explored_.runs;
    fail_at(crash_points_, number, noting, image, scenario_);
    if (!noting.any()) explored_.of_one_image.insert(number);
  }

  const ExploreOptions& options_;
  const std::function<void(Failure&)>& scenario_;
  std::vector<CrashPoint> crash_points_;
  Explored explored_;
};

}  // namespace

Explored explore_failures(const ExploreOptions& options,
                          const std::function<void(Failure&)>& scenario) {
  return Explorer(options, scenario).explore();
}

}  // namespace perdura::sim
