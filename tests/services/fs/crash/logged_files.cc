#include "tests/services/fs/crash/logged_files.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "platform/base/error.h"
#include "platform/runtime/sync.h"
#include "services/fs/model/model.h"

namespace perdura::fs::test {

namespace {

enum class Fault : std::uint8_t {
  none,
  unflushed,
  tail_first,
  unfenced,
  in_two,
  forgets_times,
  keeps_orphans,
};

constexpr Bytes kTail = 0;  // the length of all records
constexpr Bytes kRecords = kCacheLine;

// What a record says.
enum class Call : std::uint8_t {
  mount,
  create,
  create_unnamed,
  link,
  unlink,
  remove_directory,
  rename,
  change,
  set_extended,
  remove_extended,
  write,
  append,
  truncate,
  allocate,
  hold,
  release,
};

class Writer {
 public:
  explicit Writer(Call call) { *this << call; }
  template <class T>
  requires(std::has_unique_object_representations_v<T> &&
           !std::is_convertible_v<T, std::string_view>) Writer&
  operator<<(const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Writer& operator<<(const Timestamp& time) { return *this << time.seconds << time.nanoseconds; }
  Writer& operator<<(const WriteOptions& options) {
    return *this << options.now << options.clear_set_id;
  }
  template <class T>
  Writer& operator<<(const std::optional<T>& value) {
    *this << value.has_value();
    return value ? *this << *value : *this;
  }
  Writer& operator<<(std::span<const std::byte> bytes) {
    *this << bytes.size();
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Writer& operator<<(std::string_view text) { return *this << std::as_bytes(std::span(text)); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  Timestamp time() {
    const auto seconds = get<std::int64_t>();
    return {seconds, get<std::uint32_t>()};
  }
  WriteOptions options() {
    const Timestamp now = time();
    return {now, get<bool>()};
  }
  template <class T, class Get>
  std::optional<T> maybe(Get get_it) {
    if (!get<bool>()) return std::nullopt;
    return get_it();
  }
  std::span<const std::byte> bytes() { return take(get<std::size_t>()); }
  std::string_view text() {
    const auto all = bytes();
    return {reinterpret_cast<const char*>(all.data()), all.size()};
  }

 private:
  std::span<const std::byte> take(std::size_t length) {
    if (length > bytes_.size()) throw PlatformError("a record is torn");
    const auto taken = bytes_.first(length);
    bytes_ = bytes_.subspan(length);
    return taken;
  }
  std::span<const std::byte> bytes_;
};

using services::SystemInfo;

class LoggedFiles final : public FileSystem {
 public:
  LoggedFiles(std::unique_ptr<pmem::Region> region, const FsConfig& config, Fault fault)
      : region_(std::move(region)),
        fault_(fault),
        model_({.root_mode = config.root_mode, .now = config.now}) {
    const Bytes tail = region_->load(kTail);
    while (end_ < tail) {
      std::vector<std::byte> record(region_->load(kRecords + end_));
      if (record.size() > tail) throw PlatformError("a record is too long");
      region_->read(kRecords + end_ + kWord, record);
      repeat(Reader(record));
      end_ += kWord + (record.size() + kWord - 1) / kWord * kWord;
    }
    append(Writer(Call::mount));
    if (fault_ != Fault::keeps_orphans) model_.end_holds();
  }

  std::unique_ptr<Session> attach(Thread& thread) override;
  Task<> unmount() override { co_return; }
  Task<std::string> audit() override { co_return model_.audit(); }

  // With all that is being appended, so that nobody sees what a failure could undo.
  Model& model() {
    const std::lock_guard locked(lock_);
    return model_;
  }
  // Of a create that is under way: a number that none had before, since what held an inode when its
  // name was removed is not known when the log is carried out again.
  InodeNumber choose_next_inode() {
    last_inode_ = InodeNumber{static_cast<std::uint64_t>(last_inode_) + 1};
    model_.choose_next_inode(last_inode_);
    return last_inode_;
  }
  Fault fault() const { return fault_; }

  void append(const Writer& writer) {
    // Whoever moves the tail vouches for all records before it.
    const std::lock_guard locked(lock_);
    const auto record = writer.bytes();
    const Bytes at = kRecords + end_;
    const Bytes end = end_ + kWord + (record.size() + kWord - 1) / kWord * kWord;
    if (kRecords + end > region_->size()) throw PlatformError("the log is full");
    if (fault_ == Fault::tail_first) {
      region_->store(kTail, end);
      region_->persist(kTail, kWord);
    }
    region_->store(at, record.size());
    region_->write(at + kWord, record);
    if (fault_ != Fault::unflushed) region_->persist(at, kWord + record.size());
    if (fault_ != Fault::tail_first) {
      region_->store(kTail, end);
      if (fault_ == Fault::unfenced) {
        region_->flush(kTail, kWord);
      } else {
        region_->persist(kTail, kWord);
      }
    }
    end_ = end;
  }

 private:
  void repeat(Reader record);

  std::unique_ptr<pmem::Region> region_;
  Fault fault_;
  SpinLock lock_;
  Model model_;
  InodeNumber last_inode_ = kRootInode;
  Bytes end_ = 0;
};

class LoggedSession final : public Session {
 public:
  explicit LoggedSession(LoggedFiles& files) : files_(files) {}

  Task<Result<Attributes>> look_up(InodeNumber directory, std::string_view name) override {
    co_return model().look_up(directory, name);
  }
  Task<Result<InodeNumber>> parent(InodeNumber directory) override {
    co_return model().parent(directory);
  }
  Task<Result<Attributes>> create(InodeNumber directory, std::string_view name,
                                  const NewInode& inode, Timestamp now) override {
    Writer record(Call::create);
    record << files_.choose_next_inode() << directory << name << now;
    add(record, inode);
    files_.append(record);
    co_return model().create(directory, name, inode, now);
  }
  Task<Result<Attributes>> create_unnamed(const NewInode& inode, Timestamp now) override {
    Writer record(Call::create_unnamed);
    record << files_.choose_next_inode() << now;
    add(record, inode);
    files_.append(record);
    co_return model().create_unnamed(inode, now);
  }
  Task<Result<Attributes>> link(InodeNumber inode, InodeNumber directory, std::string_view name,
                                Timestamp now) override {
    files_.append(Writer(Call::link) << inode << directory << name << now);
    co_return model().link(inode, directory, name, now);
  }
  Task<Result<void>> unlink(InodeNumber directory, std::string_view name, Timestamp now) override {
    files_.append(Writer(Call::unlink) << directory << name << now);
    co_return model().unlink(directory, name, now);
  }
  Task<Result<void>> remove_directory(InodeNumber directory, std::string_view name,
                                      Timestamp now) override {
    files_.append(Writer(Call::remove_directory) << directory << name << now);
    co_return model().remove_directory(directory, name, now);
  }
  Task<Result<void>> rename(InodeNumber from, std::string_view name, InodeNumber to,
                            std::string_view new_name, RenameMode mode, Timestamp now) override {
    if (files_.fault() == Fault::in_two && mode == RenameMode::replace) {
      const auto inode = model().look_up(from, name);
      if (inode && inode->is_regular() && !model().look_up(to, new_name)) {
        files_.append(Writer(Call::link) << inode->inode << to << new_name << now);
        files_.append(Writer(Call::unlink) << from << name << now);
        co_return model().rename(from, name, to, new_name, mode, now);
      }
    }
    files_.append(Writer(Call::rename) << from << name << to << new_name << mode << now);
    co_return model().rename(from, name, to, new_name, mode, now);
  }
  Task<Result<std::vector<DirectoryEntry>>> entries(InodeNumber directory, std::uint64_t cookie,
                                                    std::size_t most) override {
    co_return model().entries(directory, cookie, most);
  }
  Task<Result<std::uint64_t>> last_cookie(InodeNumber directory) override {
    co_return model().last_cookie(directory);
  }
  Task<Result<std::string>> read_link(InodeNumber inode) override {
    co_return model().read_link(inode);
  }
  Task<Result<Attributes>> attributes(InodeNumber inode) override {
    co_return model().attributes(inode);
  }
  Task<Result<Attributes>> change(InodeNumber inode, const AttributeChange& change) override {
    Writer record(Call::change);
    record << inode << change.permissions << change.uid << change.gid << change.accessed
           << change.modified << change.changed << change.extended.has_value();
    if (change.extended) {
      record << change.extended->name << change.extended->value.has_value();
      if (change.extended->value) record << *change.extended->value;
    }
    files_.append(record);
    co_return model().change(inode, change);
  }
  Task<Result<std::vector<std::byte>>> extended(InodeNumber inode, std::string_view name) override {
    co_return model().extended(inode, name);
  }
  Task<Result<std::vector<std::string>>> extended_names(InodeNumber inode) override {
    co_return model().extended_names(inode);
  }
  Task<Result<void>> set_extended(InodeNumber inode, std::string_view name,
                                  std::span<const std::byte> value, AttributeMode mode,
                                  Timestamp now) override {
    files_.append(Writer(Call::set_extended) << inode << name << value << mode << now);
    co_return model().set_extended(inode, name, value, mode, now);
  }
  Task<Result<void>> remove_extended(InodeNumber inode, std::string_view name,
                                     Timestamp now) override {
    files_.append(Writer(Call::remove_extended) << inode << name << now);
    co_return model().remove_extended(inode, name, now);
  }
  Task<Result<Bytes>> read(InodeNumber inode, Bytes offset, std::span<std::byte> into) override {
    co_return model().read(inode, offset, into);
  }
  Task<Result<void>> write(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                           const WriteOptions& options) override {
    files_.append(Writer(Call::write) << inode << offset << data << options);
    co_return model().write(inode, offset, data, options);
  }
  Task<Result<Bytes>> append(InodeNumber inode, std::span<const std::byte> data,
                             const WriteOptions& options) override {
    files_.append(Writer(Call::append) << inode << data << options);
    co_return model().append(inode, data, options);
  }
  Task<Result<void>> truncate(InodeNumber inode, Bytes size, const WriteOptions& options) override {
    files_.append(Writer(Call::truncate) << inode << size << options);
    co_return model().truncate(inode, size, options);
  }
  Task<Result<void>> allocate(InodeNumber inode, AllocationMode mode, Bytes offset, Bytes length,
                              const WriteOptions& options) override {
    files_.append(Writer(Call::allocate) << inode << mode << offset << length << options);
    co_return model().allocate(inode, mode, offset, length, options);
  }
  Task<Result<Bytes>> seek(InodeNumber inode, Bytes offset, Seek what) override {
    co_return model().seek(inode, offset, what);
  }
  Task<Result<void>> sync(InodeNumber inode) override { co_return model().sync(inode); }
  Task<Result<void>> sync_all() override { co_return model().sync_all(); }
  Task<Result<void>> hold(InodeNumber inode) override {
    files_.append(Writer(Call::hold) << inode);
    co_return model().hold(inode);
  }
  Task<> release(InodeNumber inode, std::uint64_t holds) override {
    files_.append(Writer(Call::release) << inode << holds);
    model().release(inode, holds);
    co_return;
  }
  Task<Result<Statistics>> statistics() override { co_return model().statistics(); }

 private:
  Model& model() { return files_.model(); }
  static void add(Writer& record, const NewInode& inode) {
    record << inode.mode << inode.uid << inode.gid << inode.device << inode.target
           << inode.extended.size();
    for (const ExtendedAttribute& one : inode.extended) {
      record << std::string_view(one.name) << std::span<const std::byte>(one.value);
    }
  }

  LoggedFiles& files_;
};

std::unique_ptr<Session> LoggedFiles::attach(Thread&) {
  return std::make_unique<LoggedSession>(*this);
}

void LoggedFiles::repeat(Reader record) {
  const auto inode = [&] { return record.get<InodeNumber>(); };
  const auto now = [&] { return record.time(); };
  const auto options = [&] { return record.options(); };
  std::vector<ExtendedAttribute> extended;
  const auto new_inode = [&] {
    NewInode made;
    made.mode = record.get<std::uint32_t>();
    made.uid = record.get<std::uint32_t>();
    made.gid = record.get<std::uint32_t>();
    made.device = record.get<std::uint64_t>();
    made.target = record.text();
    for (auto left = record.get<std::size_t>(); left > 0; --left) {
      const std::string name(record.text());
      const auto value = record.bytes();
      extended.push_back({name, {value.begin(), value.end()}});
    }
    made.extended = extended;
    return made;
  };
  switch (record.get<Call>()) {
    case Call::mount:
      if (fault_ != Fault::keeps_orphans) model_.end_holds();
      return;
    case Call::create: {
      last_inode_ = inode();
      model_.choose_next_inode(last_inode_);
      const InodeNumber directory = inode();
      const std::string_view name = record.text();
      const Timestamp when = now();
      (void)model_.create(directory, name, new_inode(), when);
      return;
    }
    case Call::create_unnamed: {
      last_inode_ = inode();
      model_.choose_next_inode(last_inode_);
      const Timestamp when = now();
      (void)model_.create_unnamed(new_inode(), when);
      return;
    }
    case Call::link: {
      const InodeNumber one = inode();
      const InodeNumber directory = inode();
      const std::string_view name = record.text();
      (void)model_.link(one, directory, name, now());
      return;
    }
    case Call::unlink: {
      const InodeNumber directory = inode();
      const std::string_view name = record.text();
      (void)model_.unlink(directory, name, now());
      return;
    }
    case Call::remove_directory: {
      const InodeNumber directory = inode();
      const std::string_view name = record.text();
      (void)model_.remove_directory(directory, name, now());
      return;
    }
    case Call::rename: {
      const InodeNumber from = inode();
      const std::string_view name = record.text();
      const InodeNumber to = inode();
      const std::string_view new_name = record.text();
      const auto mode = record.get<RenameMode>();
      (void)model_.rename(from, name, to, new_name, mode, now());
      return;
    }
    case Call::change: {
      const InodeNumber one = inode();
      AttributeChange change;
      change.permissions = record.maybe<std::uint32_t>([&] { return record.get<std::uint32_t>(); });
      change.uid = record.maybe<std::uint32_t>([&] { return record.get<std::uint32_t>(); });
      change.gid = record.maybe<std::uint32_t>([&] { return record.get<std::uint32_t>(); });
      change.accessed = record.maybe<Timestamp>(now);
      change.modified = record.maybe<Timestamp>(now);
      change.changed = record.maybe<Timestamp>(now);
      if (record.get<bool>()) {
        change.extended.emplace();
        change.extended->name = record.text();
        if (record.get<bool>()) change.extended->value = record.bytes();
      }
      (void)model_.change(one, change);
      return;
    }
    case Call::set_extended: {
      const InodeNumber one = inode();
      const std::string_view name = record.text();
      const auto value = record.bytes();
      const auto mode = record.get<AttributeMode>();
      (void)model_.set_extended(one, name, value, mode, now());
      return;
    }
    case Call::remove_extended: {
      const InodeNumber one = inode();
      const std::string_view name = record.text();
      (void)model_.remove_extended(one, name, now());
      return;
    }
    case Call::write: {
      const InodeNumber one = inode();
      const auto offset = record.get<Bytes>();
      const auto data = record.bytes();
      (void)model_.write(one, offset, data, options());
      return;
    }
    case Call::append: {
      const InodeNumber one = inode();
      const auto data = record.bytes();
      (void)model_.append(one, data, options());
      return;
    }
    case Call::truncate: {
      const InodeNumber one = inode();
      const auto size = record.get<Bytes>();
      WriteOptions given = options();
      if (fault_ == Fault::forgets_times) given.now = {};
      (void)model_.truncate(one, size, given);
      return;
    }
    case Call::allocate: {
      const InodeNumber one = inode();
      const auto mode = record.get<AllocationMode>();
      const auto offset = record.get<Bytes>();
      const auto length = record.get<Bytes>();
      (void)model_.allocate(one, mode, offset, length, options());
      return;
    }
    case Call::hold:
      (void)model_.hold(inode());
      return;
    case Call::release: {
      const InodeNumber one = inode();
      model_.release(one, record.get<std::uint64_t>());
      return;
    }
  }
  throw PlatformError("a record is none");
}

void check(const FsConfig&) {}

Task<> make(Thread& thread, std::string name, FsConfig config) {
  // Nothing is ever removed from the log, and an operation that it has no room for has no answer. So
  // it has more room than asked for.
  constexpr Bytes kMore = 1 * MiB;
  const auto region = thread.node.create_region(name, config.size + kMore, pmem::Medium::pm);
  co_return;
}

template <Fault fault>
Task<std::shared_ptr<FileSystem>> mount(Thread& thread, std::string name, FsConfig config) {
  co_return std::make_shared<LoggedFiles>(thread.node.open_region(name), config, fault);
}

Task<std::vector<Damage>> inspect(Thread&, std::string, bool) { co_return std::vector<Damage>{}; }
Task<std::string> dump(Thread&, std::string, std::optional<InodeNumber>) {
  co_return std::string();
}

template <Fault fault>
constexpr FsSystem system_of(std::string_view name) {
  FsSystem system{};
  system.info.name = system.info.title = name;
  system.info.level = services::GuaranteeLevel::durable;
  system.check = check;
  system.make = make;
  system.mount = mount<fault>;
  system.inspect = inspect;
  system.dump = dump;
  return system;
}

}  // namespace

const FsSystem kLogged = system_of<Fault::none>("logged");
const FsSystem kLoggedUnflushed = system_of<Fault::unflushed>("unflushed");
const FsSystem kLoggedTailFirst = system_of<Fault::tail_first>("tail-first");
const FsSystem kLoggedUnfenced = system_of<Fault::unfenced>("unfenced");
const FsSystem kLoggedInTwo = system_of<Fault::in_two>("in-two");
const FsSystem kLoggedForgetsTimes = system_of<Fault::forgets_times>("forgets-times");
const FsSystem kLoggedKeepsOrphans = system_of<Fault::keeps_orphans>("keeps-orphans");

}  // namespace perdura::fs::test
