#include "systems/mcas/ado/process.h"

#include "platform/base/error.h"

namespace perdura::systems::mcas::ado {

// The callback interface during one invocation. Messages are named variables before they are
// awaited: GCC 12 destroys an aggregate twice that is created within a co_await.
class Process::Calls final : public Services {
 public:
  // Updates the value's range in `work` when it changes.
  Calls(Process& process, WorkId id, Invocation& work) : process_(process), id_(id), work_(work) {}

  Memory memory() const override { return process_.memory_; }

  Task<Answer<ByteRange>> create_key(std::string key, Bytes length) override {
    return ask_for_range(CallKind::create_key, std::move(key), 0, {0, length});
  }
  Task<Answer<ByteRange>> open_key(std::string key, LockMode mode) override {
    return ask_for_range(CallKind::open_key, std::move(key), static_cast<std::uint64_t>(mode), {});
  }
  Task<CallStatus> erase_key(std::string key) override {
    return status(CallKind::erase_key, std::move(key), {});
  }
  Task<Answer<ByteRange>> resize_value(std::string key, Bytes length) override {
    const Answer<ByteRange> resized =
        co_await ask_for_range(CallKind::resize_value, key, 0, {0, length});
    if (resized && key == work_.key) work_.value = resized.value;
    co_return resized;
  }
  Task<Answer<ByteRange>> allocate_memory(Bytes length) override {
    return ask_for_range(CallKind::allocate_memory, {}, 0, {0, length});
  }
  Task<CallStatus> free_memory(ByteRange range) override {
    return status(CallKind::free_memory, {}, range);
  }
  Task<Answer<std::vector<Reference>>> get_references() override {
    CallMessage call{.kind = CallKind::get_references};
    AnswerMessage answer = co_await ask(std::move(call));
    co_return Answer<std::vector<Reference>>{answer.status, std::move(answer.references)};
  }
  Task<Answer<std::vector<Reference>>> iterate(std::uint64_t& position) override {
    CallMessage call{.kind = CallKind::iterate, .range = {position, 0}};
    AnswerMessage answer = co_await ask(std::move(call));
    position = answer.next;
    co_return Answer<std::vector<Reference>>{answer.status, std::move(answer.references)};
  }
  Task<Answer<std::string>> find_key(std::string expression, Matching matching,
                                     std::uint64_t& position) override {
    CallMessage call{.kind = CallKind::find_key,
                     .key = std::move(expression),
                     .mode = static_cast<std::uint64_t>(matching),
                     .range = {position, 0}};
    AnswerMessage answer = co_await ask(std::move(call));
    if (answer.status != CallStatus::done) co_return Answer<std::string>{answer.status, {}};
    position = answer.next;
    co_return Answer<std::string>{answer.status, answer.references.at(0).key};
  }
  Task<Answer<PoolInfo>> get_pool_info() override {
    CallMessage call{.kind = CallKind::get_pool_info};
    const AnswerMessage answer = co_await ask(std::move(call));
    co_return Answer<PoolInfo>{answer.status, answer.info};
  }
  Task<CallStatus> unlock(std::string key) override {
    return status(CallKind::unlock, std::move(key), {});
  }
  Task<Answer<std::string>> read_value(std::string key) override {
    return bytes(CallKind::read_value, std::move(key));
  }
  Task<Answer<std::string>> connect_peer(std::string hello) override {
    return bytes(CallKind::connect_peer, std::move(hello));
  }
  Task<CallStatus> send_to_peer(std::string message) override {
    // The encoded call is longer than the message.
    if (message.size() > kLongestMessage / 2) co_return CallStatus::refused;
    co_return co_await status(CallKind::send_to_peer, std::move(message), {});
  }
  Task<Answer<std::string>> receive_from_peer() override {
    return bytes(CallKind::receive_from_peer, {});
  }

 private:
  Task<Answer<ByteRange>> ask_for_range(CallKind kind, std::string key, std::uint64_t mode,
                                        ByteRange range) {
    CallMessage call{.kind = kind, .key = std::move(key), .mode = mode, .range = range};
    const AnswerMessage answer = co_await ask(std::move(call));
    co_return Answer<ByteRange>{answer.status, answer.range};
  }
  Task<CallStatus> status(CallKind kind, std::string key, ByteRange range) {
    CallMessage call{.kind = kind, .key = std::move(key), .range = range};
    const AnswerMessage answer = co_await ask(std::move(call));
    co_return answer.status;
  }
  Task<Answer<std::string>> bytes(CallKind kind, std::string key) {
    CallMessage call{.kind = kind, .key = std::move(key)};
    AnswerMessage answer = co_await ask(std::move(call));
    co_return Answer<std::string>{answer.status, std::move(answer.bytes)};
  }
  // Sends a call and waits for its answer. Other messages are kept until the invocation has ended.
  Task<AnswerMessage> ask(CallMessage call) {
    call.id = ++process_.last_call_;
    call.work = id_;
    process_.channel_->send(MessageKind::call, call);
    for (;;) {
      Channel::Message message;
      if (!co_await process_.channel_->receive(message)) throw PlatformError("the shard is gone");
      if (message.kind != MessageKind::answer) {
        process_.waiting_.push_back(std::move(message));
        continue;
      }
      AnswerMessage answer;
      Decoder decoder(message.body);
      decoder(answer);
      if (answer.id == call.id) co_return answer;
    }
  }

  Process& process_;
  WorkId id_;
  Invocation& work_;
};

// --- the shard -----------------------------------------------------------------------------------

Task<> Process::serve() {
  Channel::Message message;
  for (;;) {
    if (waiting_.empty()) {
      if (!co_await channel_->receive(message)) co_return;
    } else {
      message = std::move(waiting_.front());
      waiting_.pop_front();
    }
    Decoder decoder(message.body);
    switch (message.kind) {
      case MessageKind::launch:
      case MessageKind::work: {
        WorkMessage order;
        decoder(order);
        co_await execute(message.kind, std::move(order));
        break;
      }
      case MessageKind::cluster_event: {
        ClusterEvent event;
        decoder(event);
        tell([&](Plugin& plugin) { plugin.cluster_event(event); });
        break;
      }
      case MessageKind::shut_down:
        tell([](Plugin& plugin) { plugin.shut_down(); });
        co_return;
      default:
        break;  // an answer for which no call waits
    }
  }
}

// An exception cannot be reported to anyone; the other plugins are called all the same.
void Process::tell(const std::function<void(Plugin&)>& what) {
  for (const auto& plugin : plugins_) {
    try {
      what(*plugin);
    } catch (...) {
    }
  }
}

// --- invocations ---------------------------------------------------------------------------------

Task<Result> Process::call(Plugin& plugin, MessageKind kind, Services& services,
                           const Invocation& work) {
  Result result;
  try {
    if (kind == MessageKind::launch) {
      co_await plugin.launched(services);
    } else {
      result = co_await plugin.do_work(services, work);
    }
  } catch (const std::exception& error) {
    result = {.responses = {}, .error = error.what()};
  } catch (...) {
    result = {.responses = {}, .error = "the plugin has thrown what is no std::exception"};
  }
  co_return result;
}

Task<> Process::execute(MessageKind kind, WorkMessage order) {
  Invocation work{std::move(order.key), order.value, std::move(order.detached),
                  std::move(order.request), order.is_new};
  Calls calls(*this, order.id, work);
  CompletionMessage completion{.id = order.id, .status = WorkStatus::done};
  for (const auto& plugin : plugins_) {
    Result result = co_await call(*plugin, kind, calls, work);
    if (!result.error.empty()) {
      completion = {.id = order.id, .status = WorkStatus::failed, .error = std::move(result.error)};
      break;
    }
    if (completion.responses.empty()) {
      completion.responses = std::move(result.responses);
    } else {
      for (std::string& one : result.responses) completion.responses.push_back(std::move(one));
    }
  }
  if (channel_->send(MessageKind::completion, completion)) co_return;
  completion = {
      .id = order.id, .status = WorkStatus::too_long, .error = "the responses are too long"};
  channel_->send(MessageKind::completion, completion);
}

}  // namespace perdura::systems::mcas::ado
