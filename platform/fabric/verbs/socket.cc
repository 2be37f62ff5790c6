#include "platform/fabric/verbs/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>

#include "platform/base/error.h"

namespace perdura::fabric::verbs {
namespace {

using pmem::mapped::error_text;

bool wait_for(int fd, short events, Milliseconds timeout) {
  pollfd polled{fd, events, 0};
  int ready;
  do {
    ready = ::poll(&polled, 1, static_cast<int>(timeout.count()));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

// Messages are short, and a process waits for each, so they are not collected into larger packets.
void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

[[noreturn]] void refuse(std::string_view what) {
  throw PlatformError(fmt::format("platform verbs: cannot {}: {}", what, error_text(errno)));
}

}  // namespace

bool Socket::send(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

std::optional<std::vector<std::byte>> Socket::receive() const {
  std::array<std::byte, 16384> buffer;
  ssize_t received;
  do {
    received = ::recv(get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  } while (received < 0 && errno == EINTR);
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::vector<std::byte>();
  if (received <= 0) return std::nullopt;
  return std::vector(buffer.begin(), buffer.begin() + received);
}

ControlListener::ControlListener() : file_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (!file_) refuse("make a TCP socket");
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t length = sizeof(any);
  auto* const address = reinterpret_cast<sockaddr*>(&any);
  if (::bind(file_.get(), address, length) != 0 || ::listen(file_.get(), SOMAXCONN) != 0 ||
      ::getsockname(file_.get(), address, &length) != 0) {
    refuse("listen on a TCP port");
  }
  if (::getrandom(&token_, sizeof(token_), 0) != sizeof(token_)) refuse("get a random number");
  address_ =
      fmt::format("{:x}@{}:{}", token_, fmt::join(local_addresses(), ","), ntohs(any.sin_port));
}

std::optional<Socket> ControlListener::accept(Milliseconds timeout) const {
  if (!wait_for(file_.get(), POLLIN, timeout)) return std::nullopt;
  File file(::accept4(file_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!file) return std::nullopt;
  send_at_once(file.get());
  return Socket(std::move(file));
}

std::optional<CoordinatorAddress> parse_coordinator(const std::string& text) {
  const auto at = text.find('@');
  const auto colon = text.rfind(':');
  if (at == std::string::npos || colon == std::string::npos || colon < at) return std::nullopt;
  CoordinatorAddress parsed;
  const char* const start = text.data();
  const auto token = std::from_chars(start, start + at, parsed.token, 16);
  const auto port = std::from_chars(start + colon + 1, start + text.size(), parsed.port);
  if (token.ptr != start + at || token.ec != std::errc() || port.ec != std::errc() ||
      port.ptr != start + text.size() || parsed.port == 0) {
    return std::nullopt;
  }
  for (std::size_t from = at + 1; from < colon;) {
    const std::size_t to = std::min(text.find(',', from), colon);
    if (to != from) parsed.hosts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  if (parsed.hosts.empty()) return std::nullopt;
  return parsed;
}

std::optional<Socket> connect_to(const std::string& host, std::uint16_t port,
                                 Milliseconds timeout) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &to.sin_addr) != 1) return std::nullopt;
  File file(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!file) return std::nullopt;
  if (::connect(file.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) {
    if (errno != EINPROGRESS || !wait_for(file.get(), POLLOUT, timeout)) return std::nullopt;
    int error = 0;
    socklen_t length = sizeof(error);
    ::getsockopt(file.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return std::nullopt;
  }
  const int flags = ::fcntl(file.get(), F_GETFL);
  ::fcntl(file.get(), F_SETFL, flags & ~O_NONBLOCK);
  send_at_once(file.get());
  return Socket(std::move(file));
}

Event::Event() : file_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!file_) refuse("make an eventfd");
}

void Event::set() const { ::eventfd_write(file_.get(), 1); }
void Event::clear() const {
  eventfd_t ignored = 0;
  ::eventfd_read(file_.get(), &ignored);
}

std::vector<std::string> local_addresses() {
  std::vector<std::string> addresses;
  std::vector<std::string> loopback;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {"127.0.0.1"};
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    if ((i->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* const address = reinterpret_cast<const sockaddr_in*>(i->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()) == nullptr) continue;
    auto& kind = (i->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : addresses;
    kind.emplace_back(text.data());
  }
  ::freeifaddrs(list);
  addresses.insert(addresses.end(), loopback.begin(), loopback.end());
  return addresses;
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace perdura::fabric::verbs
