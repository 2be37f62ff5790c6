#include "platform/fabric/verbs/fixed_job.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "platform/base/error.h"

namespace perdura::fabric::verbs {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr Milliseconds kLookAgainAtJob{20};
constexpr Milliseconds kConnectTimeout{1000};

Milliseconds left_until(SteadyTime deadline) {
  return std::max(std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now()),
                  Milliseconds(0));
}

// The next message of a connection; nullopt if the connection ends or the deadline passes.
std::optional<Message> await_message(const Socket& socket, MessageReader& reader,
                                     SteadyTime deadline) {
  for (;;) {
    if (auto message = reader.next()) return message;
    pollfd polled{socket.get(), POLLIN, 0};
    const Milliseconds left = left_until(deadline);
    if (left.count() == 0) return std::nullopt;
    ::poll(&polled, 1, static_cast<int>(left.count()));
    const auto bytes = socket.receive();
    if (!bytes) return std::nullopt;
    reader.add(*bytes);
  }
}

template <class T>
std::vector<std::byte> bytes_of(std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

SteadyTime after(Picoseconds duration) {
  return std::chrono::steady_clock::now() + std::chrono::ceil<Nanoseconds>(duration);
}

}  // namespace

FixedJob::FixedJob(const FixedJobOptions& options)
    : ControlPlane(options.lookup),
      coordinates_(options.coordinator.empty()),
      node_count_(options.node_count),
      local_nodes_(options.local_nodes),
      local_(options.node_count),
      announced_(options.announced),
      lost_(options.node_count),
      failed_(options.node_count),
      ended_runs_(options.node_count) {
  for (const NodeId node : local_nodes_) {
    if (node >= node_count_) {
      throw UsageError(fmt::format("node {} in a job of {} nodes", node, node_count_));
    }
    local_[node] = true;
  }
  if (coordinates_) {
    set_clock(runtime::HostClock::start());
    admit_processes(options);
  } else {
    join(options);
  }
  if (!processes_.empty()) thread_ = OsThread([this] { serve(); });
}

FixedJob::~FixedJob() {
  stop_.set();
  if (thread_.joinable()) thread_.join();
}

// --- joining ------------------------------------------------------------------------------------

void FixedJob::admit_processes(const FixedJobOptions& options) {
  std::vector<bool> present = local_;
  const SteadyTime deadline = after(options.join_timeout);
  const auto missing = [&] {
    std::vector<NodeId> nodes;
    for (NodeId node = 0; node < node_count_; ++node) {
      if (!present[node]) nodes.push_back(node);
    }
    return nodes;
  };
  while (!missing().empty()) {
    auto socket =
        options.listener == nullptr ? std::nullopt : options.listener->accept(left_until(deadline));
    if (!socket) {
      throw PlatformError(fmt::format(
          "platform verbs: the process of node {} has not joined after {} s; look for its message, "
          "and whether its host reaches this one by TCP",
          fmt::join(missing(), ", "),
          std::chrono::duration_cast<std::chrono::seconds>(options.join_timeout).count()));
    }
    auto process = std::make_unique<Process>(std::move(*socket));
    const auto hello =
        await_message(process->socket, process->reader, std::min(deadline, after(kConnectTimeout)));
    // Anything else that has connected to this port is not a process of this job, and is turned
    // away.
    if (!hello || hello->kind != MessageKind::hello ||
        hello->words[0] != options.listener->token()) {
      continue;
    }
    process->nodes.resize(hello->data.size() / sizeof(NodeId));
    std::memcpy(process->nodes.data(), hello->data.data(), process->nodes.size() * sizeof(NodeId));
    for (const NodeId node : process->nodes) {
      if (node >= node_count_ || present[node]) {
        throw UsageError(fmt::format("two processes are node {}, or there is no such node", node));
      }
      present[node] = true;
    }
    processes_.push_back(std::move(process));
  }
  Message welcome;
  welcome.kind = MessageKind::welcome;
  welcome.words = {clock().epoch, clock().first_tick, clock().scale};
  welcome.data = bytes_of(std::span<const char>(boot_id()));
  broadcast(welcome);
}

void FixedJob::join(const FixedJobOptions& options) {
  const auto coordinator = parse_coordinator(options.coordinator);
  if (!coordinator) {
    throw UsageError(fmt::format("'{}' is not the address of a coordinator", options.coordinator));
  }
  const SteadyTime deadline = after(options.join_timeout);
  Message hello;
  hello.kind = MessageKind::hello;
  hello.words[0] = coordinator->token;
  hello.data = bytes_of(std::span<const NodeId>(local_nodes_));
  // A host has several addresses, and not all of them can be reached from here. Another host may
  // even have the same private address, in which case a wrong process answers, or none.
  do {
    for (const std::string& host : coordinator->hosts) {
      auto socket = connect_to(host, coordinator->port,
                               std::min<Milliseconds>(kConnectTimeout, left_until(deadline)));
      if (!socket || !socket->send(encode(hello))) continue;
      auto process = std::make_unique<Process>(std::move(*socket));
      const auto welcome = await_message(process->socket, process->reader, deadline);
      if (!welcome || welcome->kind != MessageKind::welcome) continue;
      const bool same_host = welcome->data == bytes_of(std::span<const char>(boot_id()));
      set_clock(same_host
                    ? runtime::HostClock{welcome->words[0], welcome->words[1], welcome->words[2]}
                    : runtime::HostClock::start());
      for (NodeId node = 0; node < node_count_; ++node) {
        if (!is_local(node)) process->nodes.push_back(node);
      }
      processes_.push_back(std::move(process));
      return;
    }
  } while (left_until(deadline).count() != 0);
  throw PlatformError(fmt::format(
      "platform verbs: cannot join the job at {} (port {}): no answer; look for the message of the "
      "process of node 0, and whether this host reaches that one by TCP",
      fmt::join(coordinator->hosts, ", "), coordinator->port));
}

// --- messages -----------------------------------------------------------------------------------

void FixedJob::serve() {
  std::vector<pollfd> polled;
  for (;;) {
    polled.assign(1, {stop_.get(), POLLIN, 0});
    for (const auto& process : processes_) {
      polled.push_back({process->closed ? -1 : process->socket.get(), POLLIN, 0});
    }
    ::poll(polled.data(), polled.size(), -1);
    if (polled[0].revents != 0) return;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (polled[i + 1].revents != 0) receive(*processes_[i]);
    }
  }
}

void FixedJob::receive(Process& process) {
  try {
    const auto bytes = process.socket.receive();
    if (bytes) {
      process.reader.add(*bytes);
      while (auto message = process.reader.next()) handle(std::move(*message));
      return;
    }
  } catch (const PlatformError& error) {
    fmt::print(stderr, "perdura: {}\n", error.what());
  }
  process_ended(process);
}

void FixedJob::process_ended(Process& process) {
  process.closed = true;
  for (const NodeId node : process.nodes) {
    Message lost;
    lost.kind = MessageKind::lost;
    lost.from.node = node;
    handle(std::move(lost));
  }
}

// Handles a message that came from another process, or that is meant for all processes.
void FixedJob::handle(Message message) {
  switch (message.kind) {
    case MessageKind::lost:
      if (coordinates_) broadcast(message);
      lose(message.from.node);
      return;
    case MessageKind::ended_run: {
      if (coordinates_) broadcast(message);
      if (message.words[1] != 0) fail(message.from.node);
      const std::scoped_lock lock(state_mutex_);
      ended_runs_[message.from.node] = message.words[0];
      state_changed_.notify_all();
      return;
    }
    case MessageKind::listening:
      if (coordinates_) broadcast(message);
      // This process' own announcements come back from the coordinator.
      if (announced_ && !is_local(message.from.node)) announced_(message);
      return;
    case MessageKind::arrived_at_barrier:
      count_arrival(message);
      return;
    case MessageKind::passed_barrier: {
      {
        const std::scoped_lock lock(state_mutex_);
        const std::uint64_t index = message.words[0];
        while (barriers_.size() <= index) barriers_.emplace_back();
        barriers_[index].phase.fetch_add(1, std::memory_order_seq_cst);
      }
      ring_all();
      return;
    }
    default:
      send(std::move(message));
  }
}

void FixedJob::count_arrival(const Message& message) {
  {
    const std::scoped_lock lock(state_mutex_);
    const std::uint64_t index = message.words[0];
    while (barriers_.size() <= index) barriers_.emplace_back();
    if (++barriers_[index].arrived < message.words[1]) return;
    barriers_[index].arrived = 0;
  }
  Message passed = message;
  passed.kind = MessageKind::passed_barrier;
  broadcast(passed);
  handle(std::move(passed));
}

void FixedJob::broadcast(const Message& message) {
  for (const auto& process : processes_) transmit(*process, message);
}

void FixedJob::announce(const Message& message) {
  // The coordinator forwards it to the others.
  if (coordinates_) {
    broadcast(message);
  } else {
    transmit(*processes_.front(), message);
  }
}

void FixedJob::transmit(Process& process, const Message& message) {
  const std::vector<std::byte> bytes = encode(message);
  const std::scoped_lock lock(process.sending);
  // An error is ignored here: the end of the connection is noticed where its messages arrive.
  static_cast<void>(process.socket.send(bytes));
}

FixedJob::Process* FixedJob::process_of(NodeId node) {
  for (const auto& process : processes_) {
    if (std::find(process->nodes.begin(), process->nodes.end(), node) != process->nodes.end()) {
      return process.get();
    }
  }
  return nullptr;
}

void FixedJob::send(Message message) {
  if (message.to.node >= node_count_) {
    // A node that does not exist is reported like one that does not listen.
    answer_unreachable(std::move(message));
    return;
  }
  if (is_local(message.to.node)) {
    deliver(std::move(message));
  } else if (Process* const process = process_of(message.to.node)) {
    transmit(*process, message);
  }
}

void FixedJob::lose(NodeId node) {
  if (lost_[node].exchange(true, std::memory_order_acq_rel)) return;
  fail(node);
  {
    const std::scoped_lock lock(state_mutex_);
    state_changed_.notify_all();
  }
  tell_lost(node);
}

void FixedJob::fail(NodeId node) {
  NodeId none = node_count_;
  failed_.compare_exchange_strong(none, node, std::memory_order_seq_cst);
  ring_all();
}

// --- barriers and runs --------------------------------------------------------------------------

std::uint32_t FixedJob::create_barrier() {
  const std::scoped_lock lock(state_mutex_);
  const std::uint32_t index = created_barriers_++;
  while (barriers_.size() <= index) barriers_.emplace_back();
  return index;
}

const std::atomic<std::uint64_t>& FixedJob::barrier_phase(std::uint32_t barrier) {
  const std::scoped_lock lock(state_mutex_);
  return barriers_[barrier].phase;  // references to elements stay valid while others are added
}

void FixedJob::arrive(std::uint32_t barrier, std::uint32_t participants) {
  Message arrived;
  arrived.kind = MessageKind::arrived_at_barrier;
  arrived.words = {barrier, participants};
  if (coordinates_) {
    count_arrival(arrived);
  } else {
    transmit(*processes_.front(), arrived);
  }
}

void FixedJob::end_run(std::uint64_t run, bool failed) {
  for (const NodeId node : local_nodes_) {
    Message ended;
    ended.kind = MessageKind::ended_run;
    ended.from.node = node;
    ended.words = {run, failed ? 1U : 0U};
    if (!coordinates_) transmit(*processes_.front(), ended);
    handle(std::move(ended));
  }
}

void FixedJob::await_run(std::uint64_t run, const std::function<bool()>& stop) {
  std::unique_lock lock(state_mutex_);
  const auto all_ended = [&] {
    for (NodeId node = 0; node < node_count_; ++node) {
      if (ended_runs_[node] < run && !is_lost(node)) return false;
    }
    return true;
  };
  while (!all_ended() && !stop()) state_changed_.wait_for(lock, kLookAgainAtJob);
}

}  // namespace perdura::fabric::verbs
