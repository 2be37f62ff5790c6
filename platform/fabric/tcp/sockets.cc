#include "platform/fabric/tcp/sockets.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>

#include "platform/base/error.h"
#include "platform/base/units.h"

namespace perdura::fabric::tcp {
namespace {

using pmem::mapped::error_text;

// How long a host may leave sent data unacknowledged. TCP also counts the time in which the peer's
// process leaves its socket's buffer full.
constexpr Milliseconds kUserTimeout = std::chrono::seconds(10);

[[noreturn]] void refuse(std::string_view what) {
  throw PlatformError(fmt::format("connections over TCP: cannot {}: {}", what, error_text(errno)));
}

void set(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

void prepare(int socket) {
  // Frames are short, and a task waits for each, so they are not collected into larger packets.
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(kUserTimeout.count()));
  // Detects the end of a host to which nothing is sent: after 2 s of silence, by 4 probes.
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

std::optional<sockaddr_in> address_of(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return std::nullopt;
  return address;
}

File new_socket() { return File(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

// The outcome of a call: a number of bytes, 0 for none now, or nullopt for the end of the
// connection.
std::optional<std::size_t> outcome(ssize_t bytes) {
  if (bytes > 0) return static_cast<std::size_t>(bytes);
  if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return 0;
  return std::nullopt;
}

}  // namespace

std::optional<HostAndPort> host_and_port(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  HostAndPort parsed{.host = std::string(text.substr(0, colon))};
  constexpr std::string_view kOfHosts =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, parsed.port);
  if (parsed.host.empty() || parsed.host.find_first_not_of(kOfHosts) != std::string::npos ||
      error != std::errc() || rest != end || parsed.port == 0) {
    return std::nullopt;
  }
  return parsed;
}

std::optional<std::string> look_up(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return std::nullopt;
  std::array<char, INET_ADDRSTRLEN> text{};
  const auto* const address = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
  ::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
  ::freeaddrinfo(found);
  return text.data();
}

std::optional<ListeningSocket> try_to_listen(const std::string& host, std::uint16_t port) {
  ListeningSocket made{new_socket()};
  auto address = address_of(host, port);
  if (!made.file || !address) return std::nullopt;
  // Allows a successor to listen at the port although connections of its predecessor still exist.
  set(made.file.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  socklen_t length = sizeof(*address);
  auto* const generic = reinterpret_cast<sockaddr*>(&*address);
  if (::bind(made.file.get(), generic, length) != 0 || ::listen(made.file.get(), SOMAXCONN) != 0 ||
      ::getsockname(made.file.get(), generic, &length) != 0) {
    return std::nullopt;
  }
  made.port = ntohs(address->sin_port);
  return made;
}

ListeningSocket listen_on(const std::string& address) {
  auto made = try_to_listen(address, 0);
  if (!made) refuse(fmt::format("listen on a TCP port of {}", address));
  return std::move(*made);
}

File accept_from(int listening) {
  File socket(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) prepare(socket.get());
  return socket;
}

File begin_to_connect(const std::string& host, std::uint16_t port) {
  const auto address = address_of(host, port);
  File socket = new_socket();
  if (!socket || !address) return {};
  prepare(socket.get());
  const auto* const generic = reinterpret_cast<const sockaddr*>(&*address);
  if (::connect(socket.get(), generic, sizeof(*address)) != 0 && errno != EINPROGRESS) return {};
  return socket;
}

bool has_connected(int socket) {
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
}

std::optional<std::size_t> send_some(int socket, std::span<const std::byte> bytes) {
  return outcome(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

std::optional<std::size_t> receive_some(int socket, std::span<std::byte> into) {
  return outcome(::recv(socket, into.data(), into.size(), 0));
}

EventSet::EventSet() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) refuse("make an epoll instance");
}

void EventSet::add(int socket, Watcher& watcher, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.ptr = &watcher}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &event) != 0) refuse("wait for a socket");
  ++watched_;
}

void EventSet::change(int socket, Watcher& watcher, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.ptr = &watcher}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket, &event) != 0) refuse("wait for a socket");
}

void EventSet::remove(int socket, const Watcher& watcher) {
  epoll_event unused{};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, &unused);
  --watched_;
  for (std::size_t i = next_; i < count_; ++i) {
    if (batch_[i].data.ptr == &watcher) batch_[i].data.ptr = nullptr;
  }
}

bool EventSet::dispatch() {
  if (watched_ == 0) return false;
  const int ready = ::epoll_wait(epoll_.get(), batch_.data(), static_cast<int>(batch_.size()), 0);
  if (ready <= 0) return false;
  count_ = static_cast<std::size_t>(ready);
  for (next_ = 0; next_ < count_;) {
    const epoll_event event = batch_[next_++];
    if (event.data.ptr != nullptr) static_cast<Watcher*>(event.data.ptr)->ready(event.events);
  }
  count_ = 0;
  return true;
}

}  // namespace perdura::fabric::tcp
