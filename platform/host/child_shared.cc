#include "platform/host/child_shared.h"

#include <charconv>
#include <string_view>

#include "platform/base/error.h"
#include "platform/host/thread_executor.h"

namespace perdura::host {

namespace {

// Fields end with a zero byte, which no argument and no path contains.
class FieldWriter {
 public:
  void text(std::string_view field) { (text_ += field) += '\0'; }
  template <class Number>
  void number(Number value) {
    text(std::to_string(static_cast<std::uint64_t>(value)));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : left_(text) {}
  std::string text() {
    const std::size_t end = left_.find('\0');
    if (end == left_.npos) throw PlatformError("the order of a child process is cut off");
    std::string field(left_.substr(0, end));
    left_.remove_prefix(end + 1);
    return field;
  }
  std::uint64_t number() {
    const std::string field = text();
    std::uint64_t value = 0;
    std::from_chars(field.data(), field.data() + field.size(), value);
    return value;
  }
  template <class Each>
  void each(const Each& take) {
    for (std::uint64_t left = number(); left > 0; --left) take();
  }

 private:
  std::string_view left_;
};

}  // namespace

std::string encoded(const Start& start) {
  FieldWriter out;
  const ChildOrder& order = start.order;
  out.text(order.memory);
  out.number(order.parts.size());
  for (const MemoryPart& part : order.parts) {
    out.number(part.offset);
    out.number(part.length);
  }
  out.number(order.arguments.size());
  for (const std::string& argument : order.arguments) out.text(argument);
  out.number(order.mode);
  out.number(order.limits.isolation);
  out.number(order.limits.first_user);
  out.number(order.limits.memory);
  out.number(order.limits.cores.size());
  for (const unsigned core : order.limits.cores) out.number(core);
  out.number(order.limits.readable.size());
  for (const std::string& path : order.limits.readable) out.text(path);
  out.number(start.parent);
  out.number(start.offset);
  out.number(start.size);
  out.number(start.durable);
  out.number(start.write_latency.count());
  return out.take();
}

Start decoded(std::string_view text) {
  FieldReader in(text);
  Start start;
  ChildOrder& order = start.order;
  order.memory = in.text();
  in.each([&] {
    const Bytes offset = in.number();
    order.parts.push_back({offset, in.number()});
  });
  in.each([&] { order.arguments.push_back(in.text()); });
  order.mode = static_cast<CompletionMode>(in.number());
  order.limits.isolation = static_cast<Isolation>(in.number());
  order.limits.first_user = static_cast<std::uint32_t>(in.number());
  order.limits.memory = in.number();
  in.each([&] { order.limits.cores.push_back(static_cast<unsigned>(in.number())); });
  in.each([&] { order.limits.readable.push_back(in.text()); });
  start.parent = static_cast<int>(in.number());
  start.offset = in.number();
  start.size = in.number();
  start.durable = static_cast<pmem::Durable>(in.number());
  start.write_latency = Nanoseconds(static_cast<std::int64_t>(in.number()));
  return start;
}

Task<> Peer::send(std::span<const std::byte> message) {
  while (!gone() && !try_send(message)) {
    out_.end().waits.exchange(1, std::memory_order_seq_cst);
    co_await host::until([this] { return out_.has_space() || gone(); });
    out_.end().waits.store(0);
  }
}

Task<std::optional<Bytes>> Peer::receive(std::span<std::byte> into) {
  for (;;) {
    const bool last = gone();  // if so, everything that it has sent has arrived
    if (const std::optional<Bytes> length = in_.try_pop(into)) co_return length;
    if (last) co_return std::nullopt;
    co_await host::until([this] { return in_.has_message() || gone(); });
  }
}

}  // namespace perdura::host
