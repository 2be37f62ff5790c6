#include "harness/run/heartbeat.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>

#include "harness/run/interrupt.h"
#include "harness/run/launcher.h"
#include "platform/base/error.h"

namespace perdura::harness {
namespace {

constexpr int kBeatsPerSilence = 10;
// Interval of beats if silence is not limited: beats still carry requests to stop.
constexpr std::chrono::milliseconds kBeat{1000};
// The time until a rank is first heard of is longer, since it may begin later than the root.
constexpr std::chrono::seconds kTimeToBegin{5};
// Time for the root's main thread to abandon its point and write the results.
constexpr std::chrono::milliseconds kTimeToWrite{2000};
// The same if the launcher also knows of the failure: Open MPI kills all ranks one second after one
// has died.
constexpr std::chrono::milliseconds kTimeBeforeKilled{500};

struct Datagram {
  std::uint64_t run = 0;
  std::uint64_t rank = 0;
  std::uint64_t point = 0;
  std::uint64_t stop = 0;
  std::uint64_t crash = 0;  // the signal, if the rank crashed
};

int open_socket() {
  const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  if (descriptor < 0 || bind(descriptor, reinterpret_cast<sockaddr*>(&any), sizeof any) != 0) {
    throw PlatformError(fmt::format("heartbeat: no UDP socket: {}", std::strerror(errno)));
  }
  return descriptor;
}

// All IPv4 addresses of this host, including loopback, in network byte order.
std::vector<std::uint64_t> own_addresses() {
  std::vector<std::uint64_t> addresses;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return addresses;
  for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    if ((at->ifa_flags & IFF_UP) == 0) continue;
    addresses.push_back(reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr.s_addr);
  }
  freeifaddrs(all);
  return addresses;
}

std::uint64_t port_of(int descriptor) {
  sockaddr_in own{};
  socklen_t size = sizeof own;
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &size);
  return own.sin_port;
}

}  // namespace

Heartbeat::Heartbeat(Ranks& ranks, std::chrono::milliseconds silence,
                     std::function<std::string(std::uint64_t)> point_name, bool together)
    : ranks_(ranks),
      silence_(silence),
      point_name_(std::move(point_name)),
      together_(together),
      socket_(ranks.size() == 1 ? -1 : open_socket()),
      began_(Clock::now()) {
  if (ranks.size() == 1) return;
  wake_up_ = eventfd(0, EFD_CLOEXEC);

  // The root sends the run's number, its port and its addresses.
  std::vector<std::uint64_t> words;
  if (ranks.is_root()) {
    words = own_addresses();
    std::random_device chance;
    words.insert(words.begin(), {std::uint64_t{chance()} << 32 | chance(), port_of(socket_)});
  }
  words = ranks.broadcast(std::move(words));
  run_ = words[0];
  for (std::size_t i = 2; i < words.size(); ++i) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = static_cast<in_port_t>(words[1]);
    address.sin_addr.s_addr = static_cast<in_addr_t>(words[i]);
    root_.push_back(address);
  }

  const int last = ranks.is_root() ? ranks.size() : 1;
  for (int rank = ranks.is_root() ? 1 : 0; rank < last; ++rank) peers_.push_back({.rank = rank});
  thread_ = OsThread([this] { beat(); });
  if (!ranks.is_root()) tell_of_crashes(this);
}

Heartbeat::~Heartbeat() { stop(); }

void Heartbeat::stop() {
  if (!thread_.joinable()) return;
  tell_of_crashes(nullptr);
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  eventfd_write(wake_up_, 1);
  thread_.join();
  close(socket_);
  close(wake_up_);
}

void Heartbeat::set_results_remark(std::string text) {
  const std::scoped_lock lock(mutex_);
  kept_ = std::move(text);
}

void Heartbeat::set_emergency_save(std::function<std::optional<std::string>()> keep) {
  const std::scoped_lock lock(mutex_);
  keep_ = std::move(keep);
}

void Heartbeat::set_root_reported(std::function<bool()> had) {
  const std::scoped_lock lock(mutex_);
  root_had_its_say_ = std::move(had);
}

std::string Heartbeat::lost() const {
  const std::scoped_lock lock(mutex_);
  return lost_;
}

std::string Heartbeat::last_seen(int rank) const {
  const std::scoped_lock lock(mutex_);
  return last_seen_locked(rank);
}

std::string Heartbeat::last_seen_locked(int rank) const {
  for (const Peer& peer : peers_) {
    const std::uint64_t point = together_ ? point_.load() : peer.point;
    if (peer.rank != rank || point == 0) continue;
    return fmt::format(", last while running point {} ({})", point, point_name_(point - 1));
  }
  return "";
}

void Heartbeat::beat() {
  const auto pause = silence_.count() == 0 ? kBeat : silence_ / kBeatsPerSilence;
  auto due = began_;
  auto before = began_;
  for (;;) {
    if (!ranks_.is_root() && Clock::now() >= due) {
      for (const sockaddr_in& address : root_) send_to(address);
      due = Clock::now() + pause;
    }
    std::vector<pollfd> waiting{{wake_up_, POLLIN, 0}, {socket_, POLLIN, 0}};
    for (const Peer& peer : peers_) waiting.push_back({ranks_.end_of(peer.rank), POLLIN, 0});
    poll(waiting.data(), waiting.size(), static_cast<int>(pause.count()) + 1);
    std::unique_lock lock(mutex_);
    if (ending_) return;
    // An ended peer means a failure: when a run ends normally, MPI lets no rank end before this
    // thread has.
    for (std::size_t i = 0; i < peers_.size(); ++i) peers_[i].ended = waiting[i + 2].revents != 0;
    if (!ranks_.is_root() && peers_.front().ended) end_without_root();
    const auto now = Clock::now();
    receive_all(now);
    // If this process itself was stopped for a while, it cannot know which ranks were silent then.
    const Peer* lost = find_lost(now, now - before > silence_ / 2);
    before = now;
    if (lost == nullptr) continue;
    lock.unlock();
    give_up_on(*lost);
    return;
  }
}

void Heartbeat::crashed(int signal) noexcept {
  for (const sockaddr_in& address : root_) send_to(address, signal);
}

void Heartbeat::send_to(const sockaddr_in& address, int crash) {
  const Datagram datagram{.run = run_,
                          .rank = static_cast<std::uint64_t>(ranks_.rank()),
                          .point = point_.load(std::memory_order_relaxed),
                          .stop = stop_.load() ? 1U : 0U,
                          .crash = static_cast<std::uint64_t>(crash)};
  // A datagram that cannot be sent is treated like one that is lost on the way.
  sendto(socket_, &datagram, sizeof datagram, 0, reinterpret_cast<const sockaddr*>(&address),
         sizeof address);
}

void Heartbeat::receive_all(Clock::time_point now) {
  for (;;) {
    Datagram datagram;
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t received =
        recvfrom(socket_, &datagram, sizeof datagram, 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (received < 0) return;
    if (received != sizeof datagram || datagram.run != run_) continue;
    for (Peer& peer : peers_) {
      if (static_cast<std::uint64_t>(peer.rank) != datagram.rank) continue;
      peer.heard = now;
      peer.point = datagram.point;
      if (datagram.crash != 0) peer.crashed = static_cast<int>(datagram.crash);
      if (ranks_.is_root()) {
        send_to(from);
      } else if (datagram.stop != 0) {
        stop_.store(true);
      }
    }
  }
}

const Heartbeat::Peer* Heartbeat::find_lost(Clock::time_point now, bool was_away) {
  for (Peer& peer : peers_) {
    if (peer.crashed != 0 || peer.ended) return &peer;
    if (silence_.count() == 0) continue;
    if (peer.heard) {
      if (was_away) peer.heard = now;
      if (now - *peer.heard > silence_) return &peer;
    } else if (ranks_.is_root() && !peer.warned &&
               now - began_ > std::max<std::chrono::milliseconds>(silence_, kTimeToBegin)) {
      peer.warned = true;
      fmt::print(stderr,
                 "perdura: {} cannot be watched: its datagrams (UDP) to port {} of {} do not "
                 "arrive; let them through, or give --heartbeat 0\n",
                 ranks_.describe(peer.rank), ntohs(root_.front().sin_port), ranks_.describe(0));
    }
  }
  return nullptr;
}

void Heartbeat::give_up_on(const Peer& peer) {
  const std::string who = ranks_.describe(peer.rank);
  const auto text = peer.crashed != 0
                        ? fmt::format("{} died of {}", who, name_of_crash(peer.crashed))
                    : peer.ended ? fmt::format("{} has died", who)
                                 : fmt::format("{} has not been heard of for {} s", who,
                                               std::chrono::duration<double>(silence_).count());
  if (!ranks_.is_root()) {
    const std::scoped_lock lock(mutex_);
    print_past_launcher(fmt::format("perdura: {}: {}{}{}\n", ranks_.describe(ranks_.rank()), text,
                                    kept_.empty() ? "" : "; ", kept_));
    ranks_.abort(1);
  }
  std::unique_lock lock(mutex_);
  lost_ = text + last_seen_locked(peer.rank);
  ranks_.give_up();
  interrupt();
  const auto time = peer.ended ? kTimeBeforeKilled : kTimeToWrite;
  if (changed_.wait_for(lock, time, [this] { return ending_; })) return;
  // The main thread is waiting for the lost rank in a way that cannot be interrupted, or the
  // machine is busy. The results must be on disk before the message says so. The lock is released
  // meanwhile, since the main thread may need it while it writes.
  const auto keep = keep_;
  lock.unlock();
  const std::optional<std::string> kept = keep ? keep() : "";
  lock.lock();
  if (!kept) {
    if (changed_.wait_for(lock, kTimeToWrite, [this] { return ending_; })) return;
    ranks_.abort(1);
  }
  print_past_launcher(fmt::format("perdura: {}; {}\n", lost_, kept->empty() ? kept_ : *kept));
  ranks_.abort(1);
}

// Ends this process here, since the main thread may be in an uninterruptible wait for the root.
void Heartbeat::end_without_root() {
  const std::vector<int> ended = ranks_.ended();
  bool first_left = true;
  for (int rank = 1; rank < ranks_.rank(); ++rank) {
    first_left = first_left && std::find(ended.begin(), ended.end(), rank) != ended.end();
  }
  if (first_left && !(root_had_its_say_ && root_had_its_say_())) {
    print_past_launcher(fmt::format("perdura: {} has died{}{}\n", ranks_.describe(0),
                                    kept_.empty() ? "" : "; ", kept_));
  }
  ranks_.abort(1);
}

}  // namespace perdura::harness
