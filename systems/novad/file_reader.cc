#include "systems/novad/file_reader.h"

#include <algorithm>

#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::systems::novad {

Task<> FileReader::connect(std::uint64_t life) {
  co_await connecting_.acquire();
  if (reading_ == nullptr || !reading_->works()) {
    auto reading = std::make_shared<Reading>();
    const Hello hello{.version = kProtocolVersion, .purpose = Purpose::files, .server = life};
    const auto bytes = rpc::bytes_of(hello);
    std::vector<std::byte> data(bytes.begin(), bytes.end());
    fabric::Connection made = co_await thread_.endpoint.connect(
        {server_, 0}, {nullptr, &reading->completions}, std::move(data));
    if (made.status == fabric::Status::success) {
      reading->queue_pair = std::move(made.queue_pair);
      reading_ = std::move(reading);
    }
  }
  connecting_.release();
}

Task<bool> FileReader::read(std::uint64_t life, std::uint32_t filekey, Bytes offset,
                            std::span<std::byte> into) {
  if (reading_ == nullptr || !reading_->works()) co_await connect(life);
  const std::shared_ptr<Reading> reading = reading_;
  if (reading == nullptr || !reading->works()) co_return false;
  co_await turns_.acquire();
  std::uint32_t number = 0;
  while (std::find(busy_.begin(), busy_.end(), number) != busy_.end()) ++number;
  busy_.push_back(number);
  Room& room = rooms_[number];
  room.grow(thread_, into.size(), fabric::Access::local, "reads", ++rooms_made_);
  const fabric::LocalBuffer buffer = room.buffer(into.size());
  const fabric::Completion read = co_await reading->queue_pair->read(buffer, {{filekey}, offset});
  const bool is_read = static_cast<bool>(read);
  ++(is_read ? reads_ : refused_);
  if (is_read) {
    copy_bytes(into, buffer.bytes());
    charge(Work::copy, into.size());
  }
  std::erase(busy_, number);
  turns_.release();
  co_return is_read;
}

}  // namespace perdura::systems::novad
