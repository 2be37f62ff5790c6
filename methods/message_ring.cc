#include "methods/message_ring.h"

#include <fmt/format.h>

#include <cstddef>
#include <vector>

#include "methods/message.h"
#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura::methods {

namespace {

constexpr std::uint32_t kRingMagic = 0x474E4952;  // "RING"
constexpr std::uint32_t kRingVersion = 1;

struct Shape {
  std::uint32_t magic = kRingMagic;
  std::uint32_t version = kRingVersion;
  std::uint32_t sessions = 0;
  std::uint32_t buffers = 0;
  std::uint64_t buffer_size = 0;
  std::uint32_t crc = 0;
  std::uint32_t padding = 0;
};
static_assert(sizeof(Shape) == 32);

std::uint32_t checksum(const Shape& shape) {
  return crc32(0, std::as_bytes(std::span(&shape, 1)).first(offsetof(Shape, crc)));
}

}  // namespace

MessageRing::MessageRing(Node& node, const std::string& target, const PersisterSetup& setup)
    : sessions_(setup.sessions),
      buffers_(setup.receive_buffers),
      buffer_size_(setup.buffer_size()),
      first_buffer_((1 + Bytes{setup.sessions}) * kCacheLine) {
  const std::string name = target + ".messages";
  if (setup.receive_medium == pmem::Medium::pm) region_ = node.open_region(name);
  if (region_ == nullptr) {
    create(node, name, setup.receive_medium);
  } else if (region_->load(0) == 0) {
    // The creation of the region was interrupted, so it has never been used.
    region_.reset();
    node.remove_region(name);
    create(node, name, setup.receive_medium);
  } else {
    check_shape(name);
  }
}

void MessageRing::create(Node& node, const std::string& name, pmem::Medium medium) {
  const Bytes size = first_buffer_ + Bytes{sessions_} * buffers_ * buffer_size_;
  region_ = node.create_region(name, size, medium);
  Shape shape{.sessions = sessions_, .buffers = buffers_, .buffer_size = buffer_size_};
  shape.crc = checksum(shape);
  constexpr Bytes kFirst = kWord;  // the word with the magic validates the rest
  const auto bytes = std::as_bytes(std::span(&shape, 1));
  region_->write(kFirst, bytes.subspan(kFirst));
  region_->persist(kFirst, bytes.size() - kFirst);
  region_->write(0, bytes.first(kFirst));
  region_->persist(0, kFirst);
}

void MessageRing::check_shape(const std::string& name) const {
  const auto found = region_->read_object<Shape>(0);
  if (found.magic != kRingMagic || found.version != kRingVersion || found.crc != checksum(found)) {
    throw UsageError(
        fmt::format("region '{}' holds no receive buffers, or is damaged; remove it", name));
  }
  if (found.sessions != sessions_ || found.buffers != buffers_ ||
      found.buffer_size != buffer_size_) {
    throw OptionsDiffer(fmt::format(
        "region '{}' was made for {} sessions with {} receive buffers of {} bytes, not {} with {} "
        "of {}; ask for the same, or remove it",
        name, found.sessions, found.buffers, found.buffer_size, sessions_, buffers_, buffer_size_));
  }
}

std::uint64_t MessageRing::applied(std::uint32_t session) const {
  return region_->load(state_offset(session) + kWord);
}

void MessageRing::set_applied(std::uint32_t session, std::uint64_t sequence) {
  const Bytes word = state_offset(session) + kWord;
  region_->store(word, sequence);
  region_->persist(word, kWord);
}

std::uint32_t MessageRing::begin_generation(std::uint32_t session, bool replayed) {
  const Bytes word = state_offset(session);
  const std::uint64_t generation = region_->load(word) / 2 + 1;
  region_->store(word, generation * 2 + (replayed ? 1 : 0));
  region_->persist(word, kWord);
  return static_cast<std::uint32_t>(generation);
}

std::uint64_t MessageRing::recover(pmem::Region& target) {
  if (!is_persistent()) return 0;
  std::uint64_t replayed = 0;
  for (std::uint32_t session = 0; session < sessions_; ++session) {
    replayed += recover(session, target);
  }
  return replayed;
}

std::uint64_t MessageRing::recover(std::uint32_t session, pmem::Region& target) {
  const std::uint64_t state = region_->load(state_offset(session));
  if (state % 2 == 0) return 0;
  const auto generation = static_cast<std::uint32_t>(state / 2);
  const std::uint64_t mark = applied(session);
  std::uint64_t sequence = mark;
  std::vector<std::byte> message(buffer_size_);
  while (sequence - mark < buffers_) {
    region_->read(buffer_offset(session, sequence + 1), message);
    const std::optional<MessageHeader> header = read_header(message, target.size());
    if (!header || header->sequence != sequence + 1 || header->carries == 0 ||
        !is_whole(message, generation)) {
      break;
    }
    for (std::size_t update = 0; update < 2; ++update) {
      if ((header->updates >> update & 1) == 0) continue;
      const Bytes length = header->length[update];
      target.write(header->offset[update],
                   std::span(message).subspan(data_offset(*header, update), length));
      // In this order: if the power fails now and the message is lost after all, "b" is not durable
      // before "a".
      target.persist(header->offset[update], length);
    }
    ++sequence;
  }
  if (sequence != mark) set_applied(session, sequence);
  return sequence - mark;
}

}  // namespace perdura::methods
