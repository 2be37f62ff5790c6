#include "platform/fabric/verbs/open_job.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "platform/base/error.h"
#include "platform/base/node_runs.h"
#include "platform/runtime/work.h"

namespace perdura::fabric::verbs {

using pmem::mapped::error_text;

namespace {

// The version of this protocol, and of what peers tell each other about queue pairs and memory.
constexpr std::uint64_t kVersion = 1;
// How soon a node that could not be reached is tried again, if a message is sent to it: a shard
// that starts is found at once, and one that is down costs 50 connection attempts a second.
constexpr Milliseconds kBetweenDials{20};
// How long the other end may take to identify itself. TCP retransmits a lost packet after a second,
// so one loss is tolerated.
constexpr Milliseconds kGreeting{2000};
// The bytes that may arrive before the other end has identified itself. Its greeting is one frame
// without data.
constexpr Bytes kLongestGreeting = 4096;
// The number of connections whose other end has not identified itself yet. When there are more, the
// oldest are closed, so that strangers cannot use up the process' descriptors, of which it usually
// has 1,024.
constexpr std::size_t kMostStrangers = 256;
// Bytes that a peer may leave unread before it is taken for dead: messages of ten thousand
// connections that are being made, at a few hundred bytes each.
constexpr std::size_t kMostUnsent = 4U << 20;

constexpr const char* kAnotherProgram = "another program is there";

Message message_of(MessageKind kind, NodeId from, NodeId to, std::uint64_t token) {
  Message message;
  message.kind = kind;
  message.from.node = from;
  message.to.node = to;
  message.words = {token, kVersion};
  return message;
}

Message refusal(std::string_view reason) {
  Message refused;
  refused.kind = MessageKind::refused;
  const auto bytes = std::as_bytes(std::span(reason));
  refused.data.assign(bytes.begin(), bytes.end());
  return refused;
}

// TCP may connect a socket to itself, if the kernel chooses the port to which it connects as its
// own and nobody listens there.
bool is_connected_to_itself(int socket) {
  sockaddr_in here{};
  sockaddr_in there{};
  socklen_t length = sizeof(here);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&here), &length);
  length = sizeof(there);
  ::getpeername(socket, reinterpret_cast<sockaddr*>(&there), &length);
  return here.sin_port == there.sin_port && here.sin_addr.s_addr == there.sin_addr.s_addr;
}

}  // namespace

struct OpenJob::Connection {
  enum class State : std::uint8_t {
    dialing,   // this process connects
    asking,    // this process has connected and sent hello
    accepted,  // the other process has connected
    joined,    // both know each other
  };

  bool begun_here() const { return state == State::dialing || state == State::asking; }

  tcp::File socket;
  State state;
  NodeId peer;                                                         // as it is known here
  SteadyTime deadline = std::chrono::steady_clock::now() + kGreeting;  // it must join by then
  MessageReader reader{};
  Bytes greeting = 0;  // bytes that came before it has joined
  std::mutex mutex{};
  std::vector<std::byte> unsent{};  // protected by the mutex
};

OpenJob::OpenJob(OpenJobOptions options)
    : ControlPlane(options.lookup),
      options_(std::move(options)),
      token_(hash64(std::as_bytes(std::span(options_.job)), kVersion)) {
  set_clock(runtime::HostClock::start());
  if (options_.listens) {
    const auto& [host, port] = *options_.listens;
    const auto address = tcp::look_up(host);
    if (!address) throw UsageError(fmt::format("there is no host '{}'", host));
    auto listener = tcp::try_to_listen(*address, port);
    if (!listener && errno == EADDRINUSE) {
      throw NodeRuns(fmt::format("a process listens at {}:{} already", host, port));
    }
    if (!listener && errno == EADDRNOTAVAIL) {
      throw UsageError(fmt::format("{} is not an address of this host", host));
    }
    if (!listener) {
      throw PlatformError(
          fmt::format("platform verbs: cannot listen at {}:{}: {}", host, port, error_text(errno)));
    }
    listener_ = std::move(*listener);
  }
  thread_ = OsThread([this] { serve(); });
}

OpenJob::~OpenJob() {
  stopping_ = true;
  wake_.set();
  thread_.join();
  // shutdown() also ends connections that copies in forked processes would keep open.
  for (const auto& connection : connections_) ::shutdown(connection->socket.get(), SHUT_RDWR);
}

void OpenJob::add_node(NodeId node, const tcp::HostAndPort& where) {
  const auto address = tcp::look_up(where.host);
  if (!address) throw UsageError(fmt::format("there is no host '{}'", where.host));
  const std::scoped_lock lock(mutex_);
  nodes_[node].where = {*address, where.port};
}

std::string OpenJob::problem(NodeId node) const {
  const std::scoped_lock lock(mutex_);
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? "nobody has said where it is" : found->second.problem;
}

bool OpenJob::is_lost(NodeId node) const {
  if (node == options_.node) return false;
  const std::scoped_lock lock(mutex_);
  return !joined_.contains(node) && !nodes_.contains(node);
}

// --- messages -----------------------------------------------------------------------------------

void OpenJob::send(Message message) {
  if (message.to.node == options_.node) {
    deliver(std::move(message));
    return;
  }
  std::shared_ptr<Connection> connection;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = joined_.find(message.to.node); found != joined_.end()) {
      connection = found->second;
    } else if (const auto known = nodes_.find(message.to.node);
               known != nodes_.end() && message.kind == MessageKind::connect) {
      if (!std::exchange(known->second.wanted, true)) wake_.set();
    }
  }
  if (connection != nullptr) {
    transmit(*connection, message);
  } else {
    answer_unreachable(std::move(message));
  }
}

// Never waits for a peer that does not read: the control thread sends the rest.
void OpenJob::transmit(Connection& connection, const Message& message) {
  const std::vector<std::byte> bytes = encode(message);
  const std::scoped_lock lock(connection.mutex);
  std::size_t sent = 0;
  if (connection.unsent.empty()) {
    // The end of the connection is noticed where its messages arrive.
    sent = tcp::send_some(connection.socket.get(), bytes).value_or(bytes.size());
    if (sent == bytes.size()) return;
    wake_.set();
  }
  connection.unsent.insert(connection.unsent.end(),
                           bytes.begin() + static_cast<std::ptrdiff_t>(sent), bytes.end());
  if (connection.unsent.size() > kMostUnsent) ::shutdown(connection.socket.get(), SHUT_RDWR);
}

bool OpenJob::handle(const std::shared_ptr<Connection>& connection, Message message) {
  switch (connection->state) {
    case Connection::State::accepted:
      return greeted(connection, message);
    case Connection::State::asking:
      return welcomed(connection, message);
    default:
      break;
  }
  switch (message.kind) {
    case MessageKind::connect:
    case MessageKind::unreachable:
    case MessageKind::refused:
    case MessageKind::accepted:
    case MessageKind::established:
    case MessageKind::disconnected:
    case MessageKind::lookup:
    case MessageKind::found:
      // The node number that the sender uses for itself is ignored.
      message.from.node = connection->peer;
      message.to.node = options_.node;
      deliver(std::move(message));
      return true;
    default:
      return false;
  }
}

// --- joining ------------------------------------------------------------------------------------

bool OpenJob::greeted(const std::shared_ptr<Connection>& connection, const Message& hello) {
  if (hello.kind != MessageKind::hello) return false;
  std::string reason;
  if (hello.words[1] != kVersion) {
    reason = "another version of perdura is there; use one on all hosts";
  } else if (hello.words[0] != token_) {
    reason = "another job is there";
  } else if (hello.to.node != options_.node) {
    reason = fmt::format("node {} is there", options_.node);
  }
  if (!reason.empty()) {
    transmit(*connection, refusal(reason));
    return false;
  }
  connection->peer = next_caller_++;
  transmit(*connection, message_of(MessageKind::welcome, options_.node, connection->peer, token_));
  join(connection);
  return true;
}

bool OpenJob::welcomed(const std::shared_ptr<Connection>& connection, const Message& answer) {
  if (answer.kind == MessageKind::welcome && answer.words[0] == token_) {
    join(connection);
    return true;
  }
  std::string why = kAnotherProgram;
  if (answer.kind == MessageKind::refused) {
    why.assign(reinterpret_cast<const char*>(answer.data.data()), answer.data.size());
  }
  end(connection, why);
  return false;
}

void OpenJob::join(const std::shared_ptr<Connection>& connection) {
  connection->state = Connection::State::joined;
  const std::scoped_lock lock(mutex_);
  joined_[connection->peer] = connection;
  if (const auto known = nodes_.find(connection->peer); known != nodes_.end()) {
    known->second.problem.clear();
  }
}

// Does nothing for a connection that has ended already.
void OpenJob::end(const std::shared_ptr<Connection>& connection, const std::string& why) {
  if (std::erase(connections_, connection) == 0) return;
  ::shutdown(connection->socket.get(), SHUT_RDWR);
  const bool had_joined = connection->state == Connection::State::joined;
  {
    const std::scoped_lock lock(mutex_);
    if (had_joined) joined_.erase(connection->peer);
    const auto known = nodes_.find(connection->peer);
    if (known != nodes_.end() && (had_joined || connection->begun_here())) {
      known->second.dialing = false;
      known->second.wanted = false;
      known->second.next_dial = std::chrono::steady_clock::now() + kBetweenDials;
      known->second.problem = why;
    }
  }
  // Another process with the peer's number joins only after this, so the two are not confused.
  if (had_joined) tell_lost(connection->peer);
}

// --- the control thread -------------------------------------------------------------------------

void OpenJob::serve() {
  std::vector<pollfd> polled;
  while (!stopping_) {
    SteadyTime next = start_dialing();
    polled = {{wake_.get(), POLLIN, 0}, {listener_.file ? listener_.file.get() : -1, POLLIN, 0}};
    const std::vector<std::shared_ptr<Connection>> all = connections_;
    for (const auto& connection : all) {
      short events = connection->state == Connection::State::dialing ? POLLOUT : POLLIN;
      const std::scoped_lock lock(connection->mutex);
      if (!connection->unsent.empty()) events |= POLLOUT;
      polled.push_back({connection->socket.get(), events, 0});
      if (connection->state != Connection::State::joined) {
        next = std::min(next, connection->deadline);
      }
    }
    int timeout = -1;
    if (next != SteadyTime::max()) {
      const auto left = std::chrono::ceil<Milliseconds>(next - std::chrono::steady_clock::now());
      timeout = static_cast<int>(std::max(left, Milliseconds(0)).count());
    }
    ::poll(polled.data(), polled.size(), timeout);
    if (polled[0].revents != 0) wake_.clear();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (polled[i + 2].revents != 0) progress(all[i], polled[i + 2].revents);
    }
    const SteadyTime now = std::chrono::steady_clock::now();
    for (const auto& connection : all) {
      if (connection->state == Connection::State::joined || now < connection->deadline) continue;
      end(connection, "no answer");
    }
    if (polled[1].revents != 0) accept();
  }
}

// Connects to the nodes that are wanted; returns the time at which to try again.
OpenJob::SteadyTime OpenJob::start_dialing() {
  SteadyTime next = SteadyTime::max();
  std::vector<std::pair<NodeId, tcp::HostAndPort>> due;
  {
    const std::scoped_lock lock(mutex_);
    for (auto& [node, listening] : nodes_) {
      if (!listening.wanted || listening.dialing) continue;
      if (listening.next_dial > std::chrono::steady_clock::now()) {
        next = std::min(next, listening.next_dial);
        continue;
      }
      listening.dialing = true;
      due.emplace_back(node, listening.where);
    }
  }
  for (const auto& [node, where] : due) dial(node, where);
  return next;
}

void OpenJob::dial(NodeId node, const tcp::HostAndPort& where) {
  const auto connection = std::make_shared<Connection>(
      tcp::begin_to_connect(where.host, where.port), Connection::State::dialing, node);
  const std::string problem = error_text(errno);
  connections_.push_back(connection);
  if (!connection->socket) end(connection, problem);
}

void OpenJob::accept() {
  for (tcp::File socket; (socket = tcp::accept_from(listener_.file.get()));) {
    connections_.push_back(std::make_shared<Connection>(
        std::move(socket), Connection::State::accepted, options_.node));
  }
  const auto is_stranger = [](const auto& connection) {
    return connection->state == Connection::State::accepted;
  };
  for (auto strangers = std::count_if(connections_.begin(), connections_.end(), is_stranger);
       strangers > static_cast<std::ptrdiff_t>(kMostStrangers); --strangers) {
    end(*std::find_if(connections_.begin(), connections_.end(), is_stranger), "");
  }
}

void OpenJob::progress(const std::shared_ptr<Connection>& connection, short events) {
  if (connection->state == Connection::State::dialing) {
    int error = 0;
    socklen_t length = sizeof(error);
    ::getsockopt(connection->socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return end(connection, error_text(error));
    if (is_connected_to_itself(connection->socket.get())) return end(connection, "nobody is there");
    connection->state = Connection::State::asking;
    transmit(*connection, message_of(MessageKind::hello, options_.node, connection->peer, token_));
    return;
  }
  if ((events & POLLOUT) != 0) {
    const std::scoped_lock lock(connection->mutex);
    const auto sent = tcp::send_some(connection->socket.get(), connection->unsent);
    const auto count = static_cast<std::ptrdiff_t>(sent.value_or(connection->unsent.size()));
    connection->unsent.erase(connection->unsent.begin(), connection->unsent.begin() + count);
  }
  if ((events & ~POLLOUT) != 0) receive(connection);
}

void OpenJob::receive(const std::shared_ptr<Connection>& connection) {
  std::array<std::byte, 16384> buffer;
  const auto received = tcp::receive_some(connection->socket.get(), buffer);
  if (!received) return end(connection, "its process has ended");
  if (connection->state != Connection::State::joined &&
      (connection->greeting += *received) > kLongestGreeting) {
    return end(connection, kAnotherProgram);
  }
  try {
    connection->reader.add(std::span(buffer).first(*received));
    while (auto message = connection->reader.next()) {
      if (!handle(connection, std::move(*message))) return end(connection, kAnotherProgram);
    }
  } catch (const PlatformError&) {
    end(connection, kAnotherProgram);
  }
}

}  // namespace perdura::fabric::verbs
