// Establishment of connections, and the end of connections that linger.
#include "platform/fabric/tcp/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "platform/base/error.h"
#include "platform/fabric/tcp/endpoint.h"

namespace perdura::fabric::tcp {
namespace {

// How long an initiator waits before it looks again whether its peer listens; and, while the
// listener that it found does not answer, whether the peer listens elsewhere by now.
constexpr Picoseconds kLookAgain = Milliseconds(1);
constexpr Picoseconds kLookAgainAtListener = Milliseconds(10);
// How long a host may stay silent before the peer's next host is tried.
constexpr Picoseconds kNextHost = std::chrono::seconds(1);

PrivateData packed(std::span<const std::byte> bytes) {
  PrivateData data;
  data.length = static_cast<std::uint32_t>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), data.bytes.begin());
  return data;
}

std::span<const std::byte> unpacked(const PrivateData& data) {
  return std::span(data.bytes).first(std::min(data.length, kMaxPrivateData));
}

// These messages are the first ones on their sockets, and shorter than any buffer.
template <class T>
bool send_whole(int socket, const T& object) {
  return send_some(socket, std::as_bytes(std::span(&object, 1))) == sizeof object;
}

// An object that is arriving; bytes after it are left in the socket.
template <class T>
class Expected {
 public:
  // False at the end of the connection.
  bool receive(int socket) {
    const auto rest = std::as_writable_bytes(std::span(&object_, 1)).subspan(arrived_);
    const auto received = receive_some(socket, rest);
    arrived_ += received.value_or(0);
    return received.has_value();
  }
  bool complete() const { return arrived_ == sizeof object_; }
  const T& object() const { return object_; }

 private:
  T object_;
  std::size_t arrived_ = 0;
};

}  // namespace

bool answer(int socket, Verdict verdict, std::span<const std::byte> private_data) {
  return send_whole(socket, Answer{.verdict = verdict, .private_data = packed(private_data)});
}

// --- the acceptor's side ------------------------------------------------------------------------

// A connection whose initiator has not sent its Hello yet.
class TcpEndpoint::Incoming final : public Watcher {
 public:
  Incoming(TcpEndpoint& endpoint, File socket) : endpoint_(endpoint), socket_(std::move(socket)) {
    endpoint_.events_.add(socket_.get(), *this, EPOLLIN);
  }
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;
  ~Incoming() {
    if (socket_) endpoint_.events_.remove(socket_.get(), *this);
  }

  void ready(std::uint32_t /*events*/) override {
    const bool open = hello_.receive(socket_.get());
    if (open && !hello_.complete()) return;
    const Hello& hello = hello_.object();
    // An initiator that wants another endpoint closes the connection and looks again where that one
    // is.
    if (hello_.complete() && endpoint_.names_this(hello)) {
      endpoint_.events_.remove(socket_.get(), *this);
      endpoint_.requests_.push_back({std::move(socket_),
                                     {hello.from_node, static_cast<Port>(hello.from_port)},
                                     hello.private_data});
      endpoint_.acceptors_.wake_one();
    }
    endpoint_.end(*this);
  }

 private:
  TcpEndpoint& endpoint_;
  File socket_;
  Expected<Hello> hello_;
};

// The listening socket.
class TcpEndpoint::Acceptor final : public Watcher {
 public:
  explicit Acceptor(TcpEndpoint& endpoint)
      : endpoint_(endpoint), listening_(rendezvous().begin_to_listen(endpoint.address_)) {
    listener_.port = listening_.socket.port;
    listener_.token = listening_.token;
    endpoint_.events_.add(listening_.socket.file.get(), *this, EPOLLIN);
    rendezvous().publish(endpoint_.address_, listener_);
  }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  ~Acceptor() {
    rendezvous().withdraw(endpoint_.address_);
    endpoint_.events_.remove(listening_.socket.file.get(), *this);
  }

  std::uint64_t token() const { return listener_.token; }
  void ready(std::uint32_t /*events*/) override {
    while (File socket = accept_from(listening_.socket.file.get())) {
      endpoint_.incoming_.push_back(std::make_unique<Incoming>(endpoint_, std::move(socket)));
    }
  }

 private:
  Rendezvous& rendezvous() const { return *endpoint_.context_.rendezvous; }

  TcpEndpoint& endpoint_;
  ListenerSocket listening_;
  Listener listener_;
};

class TcpConnectionRequest final : public ConnectionRequest {
 public:
  TcpConnectionRequest(TcpEndpoint& endpoint, TcpEndpoint::Request request)
      : endpoint_(endpoint), request_(std::move(request)) {}
  ~TcpConnectionRequest() override {
    if (!answered_) reject({});
  }

  Address from() const override { return request_.from; }
  std::span<const std::byte> private_data() const override {
    return unpacked(request_.private_data);
  }

  std::unique_ptr<QueuePair> accept(const QueuePairOptions& options,
                                    std::span<const std::byte> private_data) override {
    check_private_data(private_data.size());
    answered_ = true;
    // If the initiator has gone meanwhile, the queue pair finds that out.
    answer(request_.socket.get(), Verdict::accepted, private_data);
    return std::make_unique<TcpQueuePair>(endpoint_, std::move(request_.socket), request_.from,
                                          options);
  }

  void reject(std::span<const std::byte> private_data) override {
    check_private_data(private_data.size());
    answered_ = true;
    answer(request_.socket.get(), Verdict::rejected, private_data);
    request_.socket = File();
  }

 private:
  TcpEndpoint& endpoint_;
  TcpEndpoint::Request request_;
  bool answered_ = false;
};

bool TcpEndpoint::names_this(const Hello& hello) const {
  return hello.protocol == kProtocol && hello.job == context_.rendezvous->job() &&
         hello.listener == acceptor_->token() && hello.to_node == address_.node &&
         hello.to_port == address_.port && hello.private_data.length <= kMaxPrivateData;
}

void TcpEndpoint::end(Incoming& incoming) {
  std::erase_if(incoming_, [&](const auto& each) { return each.get() == &incoming; });
}

Task<std::unique_ptr<ConnectionRequest>> TcpEndpoint::next_connection() {
  if (acceptor_ == nullptr) acceptor_ = std::make_unique<Acceptor>(*this);
  while (requests_.empty()) co_await wait(acceptors_);
  Request request = std::move(requests_.front());
  requests_.pop_front();
  co_return std::make_unique<TcpConnectionRequest>(*this, std::move(request));
}

// --- the initiator's side -----------------------------------------------------------------------

// One attempt to connect. It is given up if the coroutine is destroyed.
class TcpEndpoint::Attempt final : public Watcher {
 public:
  Attempt(TcpEndpoint& endpoint, Address to, const Listener& listener, const std::string& host,
          std::span<const std::byte> private_data)
      : endpoint_(endpoint), socket_(begin_to_connect(host, listener.port)) {
    hello_.job = endpoint.context_.rendezvous->job();
    hello_.listener = listener.token;
    hello_.from_node = endpoint.address_.node;
    hello_.from_port = endpoint.address_.port;
    hello_.to_node = to.node;
    hello_.to_port = to.port;
    hello_.private_data = packed(private_data);
    if (socket_) watch(EPOLLOUT);
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt() { give_up(); }

  bool over() const { return !socket_ || answer_.complete(); }
  // True once the host has answered, even if the listener has not.
  bool reached() const { return reached_; }
  // To be called when over() is true. Null if the peer has sent no valid answer.
  const Answer* answer() const {
    if (!answer_.complete()) return nullptr;
    const Answer& arrived = answer_.object();
    const bool sound =
        arrived.protocol == kProtocol && arrived.private_data.length <= kMaxPrivateData;
    return sound ? &arrived : nullptr;
  }
  File take_socket() {
    watch(0);
    return std::move(socket_);
  }

  void ready(std::uint32_t /*events*/) override {
    if (!reached_) {
      reached_ = has_connected(socket_.get()) && send_whole(socket_.get(), hello_);
      if (reached_) {
        watch(EPOLLIN);
      } else {
        give_up();
      }
    } else if (!answer_.receive(socket_.get())) {
      give_up();
    } else if (answer_.complete()) {
      watch(0);  // the rest belongs to the queue pair
    }
  }

 private:
  void give_up() { take_socket(); }
  void watch(std::uint32_t events) {
    if (watched_ != 0) endpoint_.events_.remove(socket_.get(), *this);
    if (events != 0) endpoint_.events_.add(socket_.get(), *this, events);
    watched_ = events;
  }

  TcpEndpoint& endpoint_;
  File socket_;
  Hello hello_;
  Expected<Answer> answer_;
  std::uint32_t watched_ = 0;
  bool reached_ = false;
};

Task<Connection> TcpEndpoint::connect(Address to, QueuePairOptions options,
                                      std::vector<std::byte> private_data) {
  check_private_data(private_data.size());
  host::ThreadExecutor& executor = context_.executor;
  Rendezvous& rendezvous = *context_.rendezvous;
  const Picoseconds given = options.connection_timeout;
  const Time deadline =
      executor.now() + (given > Picoseconds{} ? given : context_.connection_timeout);
  for (std::size_t n = 0;; ++n) {
    Picoseconds pause = kLookAgain;
    const std::optional<Listener> listener = rendezvous.find(to);
    if (listener && !listener->hosts.empty()) {
      Attempt attempt(*this, to, *listener, listener->hosts[n % listener->hosts.size()],
                      private_data);
      const Time begun = executor.now();
      // The port may belong to another process by now, which may not answer at all. If the peer
      // listens again, it publishes another listener.
      while (!attempt.over() && executor.now() < deadline) {
        const Time look = std::min(deadline, executor.now() + kLookAgainAtListener);
        co_await host::until([&] { return attempt.over(); }, look);
        if (rendezvous.find(to) != listener) break;
        if (!attempt.reached() && executor.now() - begun > kNextHost) break;
      }
      if (const Answer* const answered = attempt.answer()) {
        const auto said = unpacked(answered->private_data);
        std::vector<std::byte> answer(said.begin(), said.end());
        if (answered->verdict != Verdict::accepted) {
          co_return Connection{Status::disconnected, nullptr, std::move(answer)};
        }
        auto queue_pair = std::make_unique<TcpQueuePair>(*this, attempt.take_socket(), to, options);
        co_return Connection{Status::success, std::move(queue_pair), std::move(answer)};
      }
      pause = kLookAgainAtListener;
    }
    // The peer has not started, does not listen yet, or went away before it answered. It may come
    // (back), so look again until the deadline.
    if (executor.now() >= deadline) {
      co_return Connection{Status::retry_exceeded, nullptr, {}};
    }
    co_await sleep_for(pause);
  }
}

//  --- after the end of a connection --------------------------------------------------------------

class TcpEndpoint::Lingering final : public Watcher {
 public:
  Lingering(TcpEndpoint& endpoint, File socket, std::vector<std::byte> rest)
      : endpoint_(endpoint), socket_(std::move(socket)), rest_(std::move(rest)) {
    endpoint_.events_.add(socket_.get(), *this, EPOLLIN | EPOLLOUT);
    transmit();
  }
  Lingering(const Lingering&) = delete;
  Lingering& operator=(const Lingering&) = delete;
  ~Lingering() { endpoint_.events_.remove(socket_.get(), *this); }

  void ready(std::uint32_t events) override {
    if ((events & EPOLLOUT) != 0 && !all_sent_) transmit();
    if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) return;
    std::array<std::byte, 16 * KiB> unwanted;
    if (!receive_some(socket_.get(), unwanted)) endpoint_.end(*this);
  }

 private:
  void transmit() {
    while (sent_ < rest_.size()) {
      const auto sent = send_some(socket_.get(), std::span(rest_).subspan(sent_));
      if (sent == std::size_t{0}) return;
      // If the peer is gone, that will be received.
      sent_ = sent ? sent_ + *sent : rest_.size();
    }
    all_sent_ = true;
    ::shutdown(socket_.get(), SHUT_WR);
    endpoint_.events_.change(socket_.get(), *this, EPOLLIN);
  }

  TcpEndpoint& endpoint_;
  File socket_;
  std::vector<std::byte> rest_;
  std::size_t sent_ = 0;
  bool all_sent_ = false;
};

void TcpEndpoint::linger(File socket, std::vector<std::byte> rest) {
  lingering_.push_back(std::make_unique<Lingering>(*this, std::move(socket), std::move(rest)));
}

void TcpEndpoint::end(Lingering& lingering) {
  std::erase_if(lingering_, [&](const auto& each) { return each.get() == &lingering; });
}

}  // namespace perdura::fabric::tcp
