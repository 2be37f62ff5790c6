// Data of regular files (section 4.3.2). A write goes to new pages, which the session allocates from
// its own chunks, in its own node's store if it has one; then a log commit puts them in place of the
// old ones.
#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <utility>

#include "platform/runtime/work.h"
#include "systems/orion/client/session.h"

namespace perdura::systems::orion {

using nova::Mapped;

namespace {

// A write that others have overtaken is repeated, so often without a pause.
constexpr int kMostAtOnce = 2;
constexpr Picoseconds kBetweenRepetitions = Microseconds(2);
// Operations of several pages do not send or fetch them one after the other.
constexpr std::size_t kMostPagesUnderWay = 16;

}  // namespace

// --- reading

Task<Result<Bytes>> Session::read(InodeNumber number, Bytes offset, std::span<std::byte> into) {
  const Inodes::Use inode = co_await inodes_.use(number);
  for (;;) {
    std::errc error = co_await use_regular(*inode);
    if (error != std::errc{}) co_return fail(error);
    const Bytes size = inode->inode.size;
    const Bytes length = std::min<Bytes>(into.size(), size - std::min(offset, size));
    if (length == 0) co_return Bytes{0};
    error = co_await read_pages(*inode, offset, into.first(length));
    if (error != std::errc{}) co_return fail(error);
    // A page that was READ later than that may have been reused meanwhile.
    const bool is_current = co_await inodes_.is_current(*inode);
    if (is_current) co_return length;
  }
}

// Pages that an operation sends or fetches, several at a time. A buffer is waited for only while none
// is under way, so that operations that need several do not wait for each other.
class Session::PagesUnderWay {
 public:
  explicit PagesUnderWay(Session& session) : session_(session) {}
  PagesUnderWay(const PagesUnderWay&) = delete;
  PagesUnderWay& operator=(const PagesUnderWay&) = delete;

  Task<PageCache::Pin> take_buffer() {
    if (count() == kMostPagesUnderWay) co_await end_first();
    while (count() > 0) {
      if (std::optional<PageCache::Pin> free = session_.cache_.try_take()) {
        co_return std::move(*free);
      }
      co_await end_first();
    }
    co_return co_await session_.cache_.take();
  }
  // Must be awaited before this is destroyed. Returns the first error.
  Task<std::errc> end_all() {
    while (count() > 0) co_await end_first();
    co_return error_;
  }
  std::errc error() const { return error_; }

 protected:
  ~PagesUnderWay() = default;
  virtual std::size_t count() const = 0;
  virtual Task<> end_first() = 0;
  void note(std::errc error) {
    if (error_ == std::errc{}) error_ = error;
  }
  Session& session_;

 private:
  std::errc error_{};
};

class Session::PagesToRead final : public PagesUnderWay {
 public:
  using PagesUnderWay::PagesUnderWay;

  // `into`: gets the bytes of the page from `from` on.
  Task<> begin(std::uint64_t gpa, Bytes from, std::span<std::byte> into) {
    Page& page = pages_.emplace_back(gpa, co_await take_buffer(), from, into);
    co_await session_.stores_.begin_read(gpa, page.buffer.buffer(), page.read);
  }

 private:
  struct Page {
    Page(std::uint64_t number, PageCache::Pin pin, Bytes begin, std::span<std::byte> to)
        : gpa(number), buffer(std::move(pin)), from(begin), into(to) {}
    std::uint64_t gpa;
    PageCache::Pin buffer;
    Bytes from;
    std::span<std::byte> into;
    Stores::PageRead read{};
  };

  std::size_t count() const override { return pages_.size(); }
  Task<> end_first() override {
    Page& page = pages_.front();
    const bool done = co_await session_.stores_.end_read(page.read);
    if (done) {
      page.buffer.is_now(page.gpa);
      copy_bytes(page.into, page.buffer.bytes().subspan(page.from, page.into.size()));
    } else {
      note(std::errc::not_connected);
    }
    pages_.pop_front();
  }

  std::list<Page> pages_;
};

Task<std::errc> Session::read_pages(CachedInode& inode, Bytes offset, std::span<std::byte> into) {
  PagesToRead under_way(*this);
  while (!into.empty()) {
    const Bytes begin = offset % kPage;
    const Bytes part = std::min<Bytes>(kPage - begin, into.size());
    const Mapped mapped = inode.inode.blocks.get(offset / kPage);
    if (!mapped || mapped.is_unwritten()) {
      std::fill_n(into.begin(), part, std::byte{0});
    } else if (!copy_page(mapped.block(), begin, into.first(part))) {
      co_await under_way.begin(mapped.block(), begin, into.first(part));
    }
    into = into.subspan(part);
    offset += part;
  }
  co_return co_await under_way.end_all();
}

// Copies a page that is here, in this node's store or in the cache. Returns false if it is not.
bool Session::copy_page(std::uint64_t gpa, Bytes from, std::span<std::byte> into) {
  if (stores_.is_local(gpa)) {
    stores_.local().read(page_of(gpa) * kPage + from, into);
    return true;
  }
  const std::optional<PageCache::Pin> page = cache_.find(gpa);
  if (page) copy_bytes(into, page->bytes().subspan(from, into.size()));
  return page.has_value();
}

Task<std::errc> Session::read_page(std::uint64_t gpa, std::span<std::byte> into) {
  if (copy_page(gpa, 0, into)) co_return std::errc{};
  PagesToRead one(*this);
  co_await one.begin(gpa, 0, into);
  co_return co_await one.end_all();
}

Task<std::errc> Session::read_block(CachedInode& inode, std::uint64_t index,
                                    std::span<std::byte> into) {
  const Mapped mapped = inode.inode.blocks.get(index);
  const Bytes size = inode.inode.size;
  const Bytes valid =
      !mapped || mapped.is_unwritten() ? 0 : std::min(kPage, size - std::min(size, index * kPage));
  if (valid > 0) {
    const std::errc error = co_await read_page(mapped.block(), into.first(valid));
    if (error != std::errc{}) co_return error;
  }
  std::fill(into.begin() + static_cast<std::ptrdiff_t>(valid), into.end(), std::byte{0});
  co_return std::errc{};
}

// --- writing

// New pages, or if there are none, those that were allocated for the blocks and never written.
Task<Result<std::vector<std::uint64_t>>> Session::pages_for(CachedInode& inode, Change& change,
                                                            std::uint64_t first,
                                                            std::uint64_t last) {
  std::vector<std::uint64_t> pages;
  bool is_full = false;
  const auto is_allocated = [&](std::uint64_t index) {
    const Mapped mapped = inode.inode.blocks.get(index);
    return mapped && mapped.is_unwritten();
  };
  for (std::uint64_t index = first; index <= last;) {
    std::uint64_t end = index;
    while (is_full && end <= last && is_allocated(end)) ++end;
    if (end > index) {
      const std::errc error = co_await borrow(inode, change, index, end - index);
      if (error != std::errc{}) {
        give_back(change);
        co_return fail(error);
      }
      for (; index < end; ++index) pages.push_back(inode.inode.blocks.get(index).block());
      continue;
    }
    const Result<nova::Extent> taken = co_await take_pages(change, last - index + 1);
    if (!taken) {
      const bool may_go_on = taken.error() == std::errc::no_space_on_device && !is_full;
      if (!may_go_on) {
        give_back(change);
        co_return fail(taken.error());
      }
      is_full = true;
      continue;
    }
    for (std::uint64_t i = 0; i < taken->count; ++i) pages.push_back(taken->first + i);
    index += taken->count;
  }
  co_return pages;
}

// An earlier try may have cached the page, while this node's store was not up to date.
void Session::note_written(std::uint64_t gpa, const PageCache::Pin& page) {
  stores_.is_local(gpa) ? cache_.drop(gpa, 1) : page.is_now(gpa);
}

Task<std::errc> Session::write_page(Change& change, std::uint64_t gpa, const PageCache::Pin& page) {
  const std::errc written = co_await stores_.write(gpa, page.buffer(), change.sent);
  if (written == std::errc{}) note_written(gpa, page);
  co_return written;
}

class Session::PagesToWrite final : public PagesUnderWay {
 public:
  PagesToWrite(Session& session, Change& change) : PagesUnderWay(session), change_(change) {}

  Task<> begin(std::uint64_t gpa, PageCache::Pin buffer) {
    Page& page = pages_.emplace_back(gpa, std::move(buffer));
    co_await session_.stores_.begin_write(gpa, page.buffer.buffer(), change_.sent, page.write);
  }

 private:
  struct Page {
    Page(std::uint64_t number, PageCache::Pin pin) : gpa(number), buffer(std::move(pin)) {}
    std::uint64_t gpa;
    PageCache::Pin buffer;
    Stores::PageWrite write{};
  };

  std::size_t count() const override { return pages_.size(); }
  Task<> end_first() override {
    Page& page = pages_.front();
    const std::errc written = co_await session_.stores_.end_write(page.write, change_.sent);
    written == std::errc{} ? session_.note_written(page.gpa, page.buffer) : note(written);
    pages_.pop_front();
  }

  Change& change_;
  std::list<Page> pages_;
};

// Writes the data to its pages. Blocks that it fills only in part, the first and the last one, start as
// copies of the current contents; what follows the end of the file is zeros in every page. They are read
// first, since reading takes a buffer, too, and the pages under way may have all of them.
Task<std::errc> Session::write_blocks(CachedInode& inode, Change& change,
                                      std::span<const std::uint64_t> pages, Bytes offset,
                                      std::span<const std::byte> data) {
  std::map<std::uint64_t, std::vector<std::byte>> current;
  const std::array<Bytes, 2> edges{offset, offset + data.size()};
  for (const Bytes edge : edges) {
    if (edge % kPage == 0 || current.contains(edge / kPage)) continue;
    std::vector<std::byte>& contents = current[edge / kPage];
    contents.resize(kPage);
    const std::errc error = co_await read_block(inode, edge / kPage, contents);
    if (error != std::errc{}) co_return error;
  }
  PagesToWrite under_way(*this, change);
  for (const std::uint64_t gpa : pages) {
    const Bytes begin = offset % kPage;
    const Bytes part = std::min<Bytes>(kPage - begin, data.size());
    PageCache::Pin page = co_await under_way.take_buffer();
    if (under_way.error() != std::errc{}) break;
    if (part < kPage) copy_bytes(page.bytes(), current.at(offset / kPage));
    copy_bytes(page.bytes().subspan(begin, part), data.first(part));
    co_await under_way.begin(gpa, std::move(page));
    data = data.subspan(part);
    offset += part;
  }
  co_return co_await under_way.end_all();
}

Task<Result<Bytes>> Session::try_write(CachedInode& inode, std::optional<Bytes> at,
                                       std::span<const std::byte> data,
                                       const fs::WriteOptions& options) {
  const Bytes offset = at.value_or(inode.inode.size);
  if (data.empty()) co_return offset;
  if (data.size() > fs::kLargestFile || offset > fs::kLargestFile - data.size()) {
    co_return fail(std::errc::file_too_large);
  }
  const Bytes end = offset + data.size();
  Change change = change_of(inode);
  const auto pages = co_await pages_for(inode, change, offset / kPage, (end - 1) / kPage);
  if (!pages) co_return fail(pages.error());
  const std::errc written = co_await write_blocks(inode, change, *pages, offset, data);
  if (written != std::errc{}) {
    give_back(change);
    co_return fail(written);
  }
  if (offset % kPage != 0 || end % kPage != 0) {
    // The contents that were copied may not have been those of the file anymore.
    const bool is_current = co_await inodes_.is_current(inode);
    if (!is_current) {
      give_back(change);
      co_return fail(std::errc::resource_unavailable_try_again);
    }
  }
  nova::WriteEntry run{entry_header(nova::EntryType::write, options.now,
                                    mode_after(inode.inode, options), nova::kExtends),
                       offset / kPage, pages->front(), 0, end};
  for (const std::uint64_t page : *pages) {
    if (page != run.block + run.count || run.count == kLongestWrite / kPage) {
      change.add(run);
      run.file_block += run.count;
      run.block = page;
      run.count = 0;
    }
    ++run.count;
  }
  change.add(run);
  const std::errc done = co_await commit(inode, change, at ? By::commit : By::rpc);
  if (done != std::errc{}) co_return fail(done);
  co_return offset;
}

Task<Result<Bytes>> Session::write_at(InodeNumber number, std::optional<Bytes> offset,
                                      std::span<const std::byte> data,
                                      const fs::WriteOptions& options) {
  const OwnPages::Use use(own_);
  const Inodes::Use inode = co_await inodes_.use(number);
  for (int repetitions = 1;; ++repetitions) {
    const std::errc error = co_await use_regular(*inode);
    if (error != std::errc{}) co_return fail(error);
    const Result<Bytes> written = co_await try_write(*inode, offset, data, options);
    co_await end_borrow();
    if (written || written.error() != std::errc::resource_unavailable_try_again) {
      co_return written;
    }
    ++repetitions_;
    // Another session may have borrowed pages that this one needs.
    if (repetitions > kMostAtOnce) co_await sleep_for(kBetweenRepetitions);
  }
}

Task<Result<void>> Session::write(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                                  const fs::WriteOptions& options) {
  const Result<Bytes> written = co_await write_at(inode, offset, data, options);
  if (!written) co_return fail(written.error());
  co_return Result<void>{};
}

Task<Result<Bytes>> Session::append(InodeNumber inode, std::span<const std::byte> data,
                                    const fs::WriteOptions& options) {
  return write_at(inode, std::nullopt, data, options);
}

// --- the rest

Task<Result<Bytes>> Session::seek(InodeNumber number, Bytes offset, Seek what) {
  const Inodes::Use inode = co_await inodes_.use(number);
  const std::errc error = co_await use_regular(*inode);
  if (error != std::errc{}) co_return fail(error);
  const nova::Inode& file = inode->inode;
  if (offset >= file.size) co_return fail(std::errc::no_such_device_or_address);
  std::uint64_t index = offset / kPage;
  bool found = false;
  file.blocks.visit(index, (file.size - 1) / kPage, [&](std::uint64_t at, Mapped) {
    if (what == Seek::data) {
      index = at;
      found = true;
      return false;
    }
    if (at != index) return false;
    ++index;
    return true;
  });
  if (what == Seek::data && !found) co_return fail(std::errc::no_such_device_or_address);
  co_return std::min(std::max(offset, index * kPage), file.size);
}

Task<Result<void>> Session::sync(InodeNumber number) {
  const Inodes::Use inode = co_await inodes_.use(number);
  const std::errc error = co_await inodes_.refresh(*inode);
  if (error != std::errc{}) co_return fail(error);
  co_return co_await sync_all();
}

// With strong consistency everything is durable already.
Task<Result<void>> Session::sync_all() {
  const bool forced = co_await stores_.force_all();
  if (!forced) co_return fail(std::errc::not_connected);
  co_return Result<void>{};
}

}  // namespace perdura::systems::orion
