#include "bench/remote_file/lite_daemon.h"

#include <cstring>
#include <exception>
#include <string_view>

#include "bench/remote_file/verbs_file.h"
#include "platform/message_ring.h"

namespace perdura::bench {
namespace {

constexpr fabric::Port kDaemonPort = 1;
constexpr std::string_view kRequests = "daemon-requests";
constexpr std::string_view kAnswers = "daemon-answers";

enum class Asked : std::uint8_t { write, read, stop };

// A request in the ring, which its data follows; an answer likewise, with the data of a read.
struct DaemonMessage {
  Asked asked = Asked::write;
  fabric::Status status = fabric::Status::success;
  Bytes offset = 0;
  Picoseconds transfer{};  // from giving the device the operation to its completion
};

constexpr std::size_t kHead = sizeof(DaemonMessage);

// The daemon's memory is registered, and has room for a request with its data, which goes to the
// device from there.
class Daemon {
 public:
  Daemon(Thread& thread, const RingShape& shape)
      : thread_(thread),
        memory_(thread.node.create_region("daemon", shape.message_size, pmem::Medium::dram)),
        registered_(thread.endpoint.register_memory(*memory_, fabric::Access::local)),
        requests_(rings_of(thread.node).open_consumer(kRequests, shape)),
        answers_(rings_of(thread.node).open_producer(kAnswers, shape)) {}

  Task<> connect() { connection_ = co_await connect_to_file(thread_); }
  Task<> greet(bool is_connected) {
    DaemonMessage greeting{};
    if (!is_connected) greeting.status = fabric::Status::flushed;
    co_await answers_->push(std::as_bytes(std::span(&greeting, 1)));
  }
  // Returns when it is told to stop.
  Task<> serve() {
    for (;;) {
      co_await requests_->pop(message());
      DaemonMessage request{};
      std::memcpy(&request, message().data(), kHead);
      if (request.asked == Asked::stop) co_return;
      co_await perform(request);
      std::memcpy(message().data(), &request, kHead);
      const Bytes length = request.asked == Asked::read ? memory_->size() : kHead;
      co_await answers_->push(message().first(length));
    }
  }

 private:
  std::span<std::byte> message() {
    return registered_.local(0, static_cast<std::uint32_t>(memory_->size())).bytes();
  }
  Task<> perform(DaemonMessage& request) {
    const auto data = registered_.local(kHead, static_cast<std::uint32_t>(memory_->size() - kHead));
    const fabric::RemoteAddress at = connection_.file.at(request.offset);
    const Time begin = thread_.executor.now();
    if (request.asked == Asked::read) {
      request.status = (co_await connection_.queue_pair->read(data, at)).status;
    } else {
      request.status = (co_await connection_.queue_pair->write(data, at)).status;
    }
    request.transfer = thread_.executor.now() - begin;
  }

  Thread& thread_;
  std::unique_ptr<pmem::Region> memory_;
  fabric::MemoryRegion registered_;
  std::unique_ptr<RingConsumer> requests_;
  std::unique_ptr<RingProducer> answers_;
  FileConnection connection_{};
};

Task<> run_daemon(Thread* thread, RingShape shape) {
  Daemon daemon(*thread, shape);
  std::exception_ptr problem;
  try {
    co_await daemon.connect();
  } catch (...) {
    problem = std::current_exception();
  }
  co_await daemon.greet(problem == nullptr);
  if (problem) std::rethrow_exception(problem);
  co_await daemon.serve();
}

class LiteWriter final : public FileWriter {
 public:
  LiteWriter(Thread& thread, Bytes size)
      : thread_(thread),
        shape_{.slots = 2, .message_size = static_cast<std::uint32_t>(kHead + size)},
        requests_(rings_of(thread.node).open_producer(kRequests, shape_)),
        answers_(rings_of(thread.node).open_consumer(kAnswers, shape_)),
        message_(shape_.message_size),
        answer_(shape_.message_size),
        daemon_(thread.node.start_background_thread(kDaemonPort, CompletionMode::polling)) {}

  Task<> connect() {
    thread_.executor.spawn(watch());
    const DaemonMessage greeting = co_await take_answer();
    if (greeting.status == fabric::Status::success) co_return;
    while (!has_ended_) co_await wait(ended_);
    std::rethrow_exception(problem_);
  }
  std::span<std::byte> buffer() override { return std::span(message_).subspan(kHead); }
  Task<std::string> write(Bytes offset) override {
    const Time begin = thread_.executor.now();
    const DaemonMessage answer = co_await ask(Asked::write, offset);
    indirection_ += thread_.executor.now() - begin - answer.transfer;
    co_return problem_in(answer);
  }
  Task<std::string> read(Bytes offset) override {
    const DaemonMessage answer = co_await ask(Asked::read, offset);
    std::memcpy(buffer().data(), answer_.data() + kHead, buffer().size());
    co_return problem_in(answer);
  }
  Picoseconds indirection() const override { return indirection_; }
  Task<> leave() override {
    const DaemonMessage stop{.asked = Asked::stop};
    co_await requests_->push(std::as_bytes(std::span(&stop, 1)));
    while (!has_ended_) co_await wait(ended_);
  }

 private:
  Task<> watch() {
    try {
      co_await daemon_->run(run_daemon(&daemon_->thread(), shape_));
    } catch (...) {
      problem_ = std::current_exception();
    }
    has_ended_ = true;
    ended_.wake_all();
  }
  Task<DaemonMessage> ask(Asked asked, Bytes offset) {
    const DaemonMessage request{.asked = asked, .offset = offset};
    std::memcpy(message_.data(), &request, kHead);
    co_await requests_->push(message_);
    co_return co_await take_answer();
  }
  Task<DaemonMessage> take_answer() {
    co_await answers_->pop(answer_);
    DaemonMessage answer{};
    std::memcpy(&answer, answer_.data(), kHead);
    co_return answer;
  }
  static std::string problem_in(const DaemonMessage& answer) {
    return answer.status == fabric::Status::success ? "" : std::string(to_string(answer.status));
  }

  Thread& thread_;
  RingShape shape_;
  std::unique_ptr<RingProducer> requests_;
  std::unique_ptr<RingConsumer> answers_;
  std::vector<std::byte> message_;  // a request, with the application's buffer
  std::vector<std::byte> answer_;
  std::exception_ptr problem_;
  bool has_ended_ = false;
  WaitList ended_;
  Picoseconds indirection_{};
  std::unique_ptr<BackgroundThread> daemon_;  // ends before what its answers go to
};

}  // namespace

Task<std::unique_ptr<FileWriter>> connect_by_daemon(Thread& thread,
                                                    const RemoteFileOptions& options) {
  auto writer = std::make_unique<LiteWriter>(thread, options.write_size);
  co_await writer->connect();
  co_return writer;
}

}  // namespace perdura::bench
