#include "bench/trace/placed_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "platform/base/error.h"
#include "platform/runtime/sync.h"

namespace perdura::bench {
namespace {

using fs::InodeNumber;

constexpr Bytes kPiece = 1 * MiB;  // written at once, at most

class Placing {
 public:
  Placing(const fs::FsSystem& system, Bytes size, fs::TraceReader& trace)
      : system_(system), trace_(trace) {
    config_.size = size;
  }

  Task<> place(Thread& thread) {
    co_await system_.make(thread, "traced", config_);
    const auto mounted = co_await system_.mount(thread, "traced", config_);
    files_ = mounted->attach(thread);
    while (const std::optional<fs::TraceRecord> record = trace_.next()) co_await follow(*record);
    for (const InodeNumber inode : inodes_) co_await add_extents(inode);
    files_.reset();
    co_await mounted->unmount();
  }

  std::vector<std::vector<FileExtent>> take() { return std::move(extents_); }

 private:
  [[noreturn]] void refuse(std::errc error) const {
    throw UsageError(fmt::format("{}: record {} of the trace: {}{}", system_.info.name,
                                 trace_.records() - 1, std::make_error_code(error).message(),
                                 error == std::errc::no_space_on_device ? "; raise size" : ""));
  }

  Task<> follow(const fs::TraceRecord& record) {
    // Modelled time passes when a task waits, and a local file system never does.
    co_await yield();
    switch (record.kind) {
      case fs::TraceKind::file: {
        const auto made = co_await files_->create(fs::kRootInode, std::to_string(inodes_.size()),
                                                  {.mode = S_IFREG | 0644}, fs::Timestamp{});
        if (!made) refuse(made.error());
        inodes_.push_back(made->inode);
        co_await write(made->inode, 0, record.offset);
        co_return;
      }
      case fs::TraceKind::write:
      case fs::TraceKind::append:
        co_await write(inodes_[record.file], record.offset, record.length);
        co_return;
      case fs::TraceKind::truncate: {
        const auto done = co_await files_->truncate(inodes_[record.file], record.offset, {});
        if (!done) refuse(done.error());
        co_return;
      }
      case fs::TraceKind::open:
      case fs::TraceKind::read:
      case fs::TraceKind::sync:
      case fs::TraceKind::close:
        co_return;
    }
  }

  Task<> write(InodeNumber inode, Bytes offset, Bytes length) {
    static constexpr std::array<std::byte, kPiece> kData{};
    for (Bytes done = 0; done < length; done += kPiece) {
      const std::span<const std::byte> data =
          std::span(kData).first(std::min<Bytes>(kPiece, length - done));
      const auto written = co_await files_->write(inode, offset + done, data, {});
      if (!written) refuse(written.error());
      co_await yield();
    }
  }

  // A mapping would fill holes, so that each piece of data is mapped by itself.
  Task<> add_extents(InodeNumber inode) {
    std::vector<FileExtent>& extents = extents_.emplace_back();
    for (Bytes at = 0;;) {
      const auto begin = co_await files_->seek(inode, at, fs::Session::Seek::data);
      if (!begin) {
        if (begin.error() != std::errc::no_such_device_or_address) refuse(begin.error());
        co_return;
      }
      const auto end = co_await files_->seek(inode, *begin, fs::Session::Seek::hole);
      if (!end) refuse(end.error());
      const Bytes first = *begin / fs::kBlock * fs::kBlock;
      const auto mapped = co_await files_->map(inode, first, round_up(*end, fs::kBlock) - first);
      if (!mapped) refuse(mapped.error());
      for (const fs::MappedExtent& each : (*mapped)->extents()) {
        extents.push_back({each.in_file, each.in_region, each.length});
      }
      at = *end;
      co_await yield();
    }
  }

  const fs::FsSystem& system_;
  fs::TraceReader& trace_;
  fs::FsConfig config_;
  std::unique_ptr<fs::Session> files_;
  std::vector<InodeNumber> inodes_;
  std::vector<std::vector<FileExtent>> extents_;
};

}  // namespace

std::vector<std::vector<FileExtent>> place_files(Platform& platform, const fs::FsSystem& system,
                                                 Bytes size, fs::TraceReader& trace) {
  Placing placing(system, size, trace);
  platform.start(0, 0, CompletionMode::polling,
                 [&placing](Thread& thread) { return placing.place(thread); });
  platform.run();
  return placing.take();
}

}  // namespace perdura::bench
