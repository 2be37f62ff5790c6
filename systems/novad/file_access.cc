#include "systems/novad/file_access.h"

#include <algorithm>

#include "platform/runtime/work.h"
#include "rpc/messages.h"

namespace perdura::systems::novad {

Task<> FileAccess::connect(std::uint64_t life) {
  co_await connecting_.acquire();
  if (connection_ == nullptr || !connection_->works()) {
    if (connection_ != nullptr) give_up(*connection_);
    auto connection = std::make_shared<AccessConnection>();
    const Hello hello{.version = kProtocolVersion, .purpose = Purpose::files, .server = life};
    const auto bytes = rpc::bytes_of(hello);
    std::vector<std::byte> data(bytes.begin(), bytes.end());
    fabric::Connection made = co_await thread_.endpoint.connect(
        {server_, 0}, {nullptr, &connection->completions}, std::move(data));
    if (made.status == fabric::Status::success) {
      connection->queue_pair = std::move(made.queue_pair);
      connection_ = std::move(connection);
    }
  }
  connecting_.release();
}

Task<std::shared_ptr<FileAccess::AccessConnection>> FileAccess::connected(std::uint64_t life) {
  if (connection_ == nullptr || !connection_->works()) co_await connect(life);
  if (connection_ == nullptr || !connection_->works()) co_return nullptr;
  co_return connection_;
}

Task<std::uint32_t> FileAccess::take_room(Bytes size) {
  co_await turns_.acquire();
  std::uint32_t number = 0;
  while (std::find(busy_.begin(), busy_.end(), number) != busy_.end()) ++number;
  busy_.push_back(number);
  rooms_[number].grow(thread_, size, fabric::Access::local, "file room", ++rooms_made_);
  co_return number;
}

void FileAccess::give_back_room(std::uint32_t number) {
  std::erase(busy_, number);
  turns_.release();
}

Task<bool> FileAccess::read(std::uint64_t life, std::uint32_t filekey, Bytes offset,
                            std::span<std::byte> into) {
  const std::shared_ptr<AccessConnection> connection = co_await connected(life);
  if (connection == nullptr) co_return false;
  const std::uint32_t number = co_await take_room(into.size());
  const fabric::LocalBuffer buffer = rooms_[number].buffer(into.size());
  const fabric::Completion read =
      co_await connection->queue_pair->read(buffer, {{filekey}, offset});
  const bool is_read = static_cast<bool>(read);
  ++(is_read ? reads_ : refused_);
  if (is_read) {
    copy_bytes(into, buffer.bytes());
    charge(Work::copy, into.size());
  }
  give_back_room(number);
  co_return is_read;
}

Task<bool> FileAccess::write(std::uint64_t life, fs::InodeNumber inode, std::uint32_t filekey,
                             Bytes offset, std::span<const std::byte> data) {
  const std::shared_ptr<AccessConnection> connection = co_await connected(life);
  if (connection == nullptr) co_return false;
  const std::uint32_t number = co_await take_room(data.size());
  const fabric::LocalBuffer buffer = rooms_[number].buffer(data.size());
  copy_bytes(buffer.bytes(), data);
  charge(Work::copy, data.size());
  const fabric::Completion written =
      co_await connection->queue_pair->write(buffer, {{filekey}, offset});
  const bool is_written = static_cast<bool>(written);
  ++(is_written ? writes_ : refused_);
  if (is_written) {
    connection->unsettled[inode] = ++connection->written;
    connection->last = {{filekey}, offset};
  }
  give_back_room(number);
  co_return is_written;
}

Task<bool> FileAccess::commit(std::uint64_t life, fs::InodeNumber inode, std::uint32_t filekey) {
  const std::shared_ptr<AccessConnection> connection = co_await connected(life);
  if (connection == nullptr || lost_.contains(inode)) co_return false;
  const std::uint64_t written = connection->written;
  const fabric::Completion committed = co_await connection->queue_pair->commit({filekey});
  const bool is_committed = static_cast<bool>(committed);
  ++(is_committed ? commits_ : refused_);
  const auto found = connection->unsettled.find(inode);
  if (is_committed && found != connection->unsettled.end() && found->second <= written) {
    connection->unsettled.erase(found);
  }
  co_return is_committed;
}

void FileAccess::give_up(AccessConnection& connection) {
  for (const auto& [inode, number] : std::exchange(connection.unsettled, {})) lost_.insert(inode);
}

// The READ takes effect after the WRITEs of the same connection. It reads what the last of them has
// written, and if that was cut off, nobody knows about the others either.
Task<> FileAccess::settle() {
  const std::shared_ptr<AccessConnection> connection = connection_;
  if (connection == nullptr || connection->unsettled.empty()) co_return;
  const std::uint64_t written = connection->written;
  const std::uint32_t number = co_await take_room(1);
  const fabric::Completion read =
      co_await connection->queue_pair->read(rooms_[number].buffer(1), connection->last);
  give_back_room(number);
  const bool is_read = static_cast<bool>(read);
  ++(is_read ? reads_ : refused_);
  if (is_read) {
    std::erase_if(connection->unsettled, [&](const auto& each) { return each.second <= written; });
  } else {
    give_up(*connection);
  }
}

}  // namespace perdura::systems::novad
