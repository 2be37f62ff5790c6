#include "mount/connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"

namespace perdura::mount {

namespace {

using pmem::mapped::error_text;

constexpr const char* kDevice = "/dev/fuse";
constexpr std::size_t kBuffer = MiB + 4 * KiB;  // the largest write with its headers

// Files that bypass the kernel's cache can nevertheless be mapped shared (Linux 6.6): a bit of
// fuse_init_out::flags2.
constexpr std::uint32_t kMapsUncached = 1U << 4;

// The descriptor for this thread's answers.
thread_local int answers_to = -1;
// The flags of the kernel that are to be added to the answer of the first request of all; libfuse
// 3.14 does not know them.
thread_local std::uint32_t added = 0;
thread_local std::uint32_t added_too = 0;  // those in flags2

ssize_t write_answer(int, iovec* parts, int count, void*) {
  if ((added | added_too) != 0 && count == 2 &&
      parts[1].iov_len >= offsetof(fuse_init_out, unused)) {
    auto& answer = *static_cast<fuse_init_out*>(parts[1].iov_base);
    answer.flags |= added;
    answer.flags2 |= added_too;
  }
  return writev(answers_to, parts, count);
}

// Without FUSE_HANDLE_KILLPRIV_V2, the kernel asks for an extended attribute before every write, and
// clears set-user-ID by a request of its own.
void choose_added(const Message& message) {
  added = added_too = 0;
  if (!message.is(FUSE_INIT) || !message.has_arguments<fuse_init_in>()) return;
  const auto offered = message.arguments<fuse_init_in>();
  added = offered.flags & FUSE_HANDLE_KILLPRIV_V2;
  if ((offered.flags & FUSE_INIT_EXT) == 0) return;
  added_too = offered.flags2 & kMapsUncached;
  if (added_too != 0) added |= FUSE_INIT_EXT;
}

ssize_t read_request(int device, void* into, std::size_t most, void*) {
  return read(device, into, most);
}

// Later versions of libfuse have members that 3.14 lacks.
constexpr fuse_custom_io kIo = [] {
  fuse_custom_io io{};
  io.writev = write_answer;
  io.read = read_request;
  return io;
}();

// Captures standard error: for users other than root libfuse starts fusermount3, which prints there
// why it cannot mount.
class CapturedErrors {
 public:
  CapturedErrors()
      : memory_(memfd_create("errors", MFD_CLOEXEC)),
        before_(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
    if (memory_ && before_) dup2(memory_.get(), STDERR_FILENO);
  }
  ~CapturedErrors() { end(); }
  CapturedErrors(const CapturedErrors&) = delete;
  CapturedErrors& operator=(const CapturedErrors&) = delete;

  std::string end() {
    if (!before_ || !memory_) return "";
    dup2(before_.get(), STDERR_FILENO);
    before_ = {};
    std::array<char, 512> text{};
    const ssize_t length = pread(memory_.get(), text.data(), text.size(), 0);
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
  }

 private:
  pmem::mapped::File memory_;
  pmem::mapped::File before_;
};

// libfuse's messages, which become the message of an exception.
std::string said;  // NOLINT: libfuse has one function for all sessions
void note(fuse_log_level, const char* format, std::va_list arguments) {
  std::array<char, 512> line{};
  std::vsnprintf(line.data(), line.size(), format, arguments);
  said += line.data();
}
std::string what_was_said() {
  std::string text = said;
  for (const std::string_view speaker : {"fuse: ", "fusermount3: "}) {
    if (text.starts_with(speaker)) text.erase(0, speaker.size());
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ';');
  return text;
}

}  // namespace

Connection::Connection(const ConnectionOptions& options, const fuse_lowlevel_ops& operations) {
  if (kind_of(kDevice) == PathKind::nothing) {
    throw UsageError(
        fmt::format("there is no {}; load the kernel's module with 'modprobe fuse'", kDevice));
  }
  said.clear();
  fuse_set_log_func(note);
  // In a list of options, a comma within a value is escaped by a backslash.
  std::string source;
  for (const char character : options.source) {
    if (character == ',' || character == '\\') source += '\\';
    source += character;
  }
  std::string all = fmt::format("{},fsname={},subtype={}", options.options, source, options.type);
  if (all.front() == ',') all.erase(0, 1);
  std::string program = "perdura";
  std::string dash = "-o";
  std::array<char*, 4> words{program.data(), dash.data(), all.data(), nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(3, words.data());
  session_.reset(fuse_session_new(&arguments, &operations, sizeof operations, nullptr));
  fuse_opt_free_args(&arguments);
  if (session_ == nullptr)
    throw UsageError(fmt::format("-o {}: {}", options.given, what_was_said()));
  CapturedErrors errors;
  const bool mounted = fuse_session_mount(session_.get(), options.directory.c_str()) == 0;
  said += errors.end();
  if (!mounted) {
    throw PlatformError(
        fmt::format("{}: cannot be mounted on: {}", options.directory, what_was_said()));
  }
  if (options.no_symbolic_links) {
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_NOSYMFOLLOW;
    if (mount_setattr(AT_FDCWD, options.directory.c_str(), 0, &attributes, sizeof attributes) !=
        0) {
      const int problem = errno;
      fuse_session_unmount(session_.get());
      throw UsageError(fmt::format("-o {}: nosymfollow: {}", options.given, error_text(problem)));
    }
  }
  fuse_session_custom_io(session_.get(), &kIo, fuse_session_fd(session_.get()));
}

Connection::~Connection() { fuse_session_unmount(session_.get()); }

AnswersThrough::AnswersThrough(int descriptor) : before_(std::exchange(answers_to, descriptor)) {}

AnswersThrough::~AnswersThrough() { answers_to = before_; }

Channel::Channel(const Connection& connection)
    : session_(connection.session()), device_(open(kDevice, O_RDWR | O_CLOEXEC)), buffer_(kBuffer) {
  auto of_mount = static_cast<std::uint32_t>(fuse_session_fd(session_));
  if (!device_ || ioctl(device_.get(), FUSE_DEV_IOC_CLONE, &of_mount) != 0) {
    throw PlatformError(fmt::format("{}: {}", kDevice, error_text(errno)));
  }
  answers_to = device_.get();
}

Channel::~Channel() { answers_to = -1; }

std::optional<Message> Channel::receive() {
  const ssize_t got = read(device_.get(), buffer_.data(), buffer_.size());
  if (got >= static_cast<ssize_t>(sizeof(fuse_in_header))) {
    received_ = static_cast<std::size_t>(got);
    return Message(std::span(buffer_).first(received_));
  }
  // ENOENT: the caller was interrupted before the request was read.
  unmounted_ = got >= 0 || (errno != EINTR && errno != EAGAIN && errno != ENOENT);
  return std::nullopt;
}

bool Channel::has_request() const {
  pollfd device{.fd = device_.get(), .events = POLLIN, .revents = 0};
  return poll(&device, 1, 0) > 0;
}

void Channel::process(const Message& message) {
  choose_added(message);
  fuse_buf request{};
  request.mem = buffer_.data();
  request.size = received_;
  fuse_session_process_buf(session_, &request);
  added = added_too = 0;
}

bool Channel::answer(const fuse_in_header& request, int error, std::span<const std::byte> bytes) {
  fuse_out_header header{};
  header.len = static_cast<std::uint32_t>(sizeof header + bytes.size());
  header.error = -error;
  header.unique = request.unique;
  const std::array<iovec, 2> parts{
      {{&header, sizeof header}, {const_cast<std::byte*>(bytes.data()), bytes.size()}}};
  return writev(device_.get(), parts.data(), 2) >= 0;
}

void Channel::forget_attributes(fs::InodeNumber inode) {
  // A negative offset: only the attributes, none of the data.
  fuse_lowlevel_notify_inval_inode(session_, static_cast<fuse_ino_t>(inode), -1, 0);
}

}  // namespace perdura::mount
