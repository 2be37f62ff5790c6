// The buffers in which a connection's messages land.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "platform/fabric/fabric.h"
#include "rpc/calls.h"

namespace perdura::rpc {

// Buffers of one size at equal distances in registered memory. A buffer's number is the id by which
// it is posted.
struct BufferRow {
  fabric::MemoryRegion memory;
  Bytes first = 0;     // offset of buffer 0 in `memory`
  Bytes distance = 0;  // from one buffer's beginning to the next one's
  std::uint32_t size = 0;

  fabric::LocalBuffer operator[](std::uint64_t index) const {
    return memory.local(first + index * distance, size);
  }
};

// Posted buffers whose messages are read at once: each is posted again when it has been read.
class ReceiveBuffers {
 public:
  // At most `depth` buffers will be posted. The queue goes into the options of a connection.
  void open(fabric::Endpoint& endpoint, std::uint32_t depth) {
    queue_ = endpoint.create_receive_queue(depth);
  }
  fabric::ReceiveQueue* queue() const { return queue_.get(); }
  // Posts the first `count` buffers of the row.
  void post_all(const BufferRow& row, std::uint32_t count) {
    row_ = row;
    for (std::uint32_t i = 0; i < count; ++i) post(i);
  }
  void post(std::uint64_t index) { queue_->post(row_[index], index); }

 private:
  std::unique_ptr<fabric::ReceiveQueue> queue_;
  BufferRow row_;
};

// Posted buffers whose messages are read where they landed. As many as there are calls; each call
// under way has one posted for its reply, or keeps the one in which the reply came until it asks
// again or ends.
class KeptReplies {
 public:
  // `queue` is that of the connection, and takes as many buffers as there are calls.
  void open(fabric::ReceiveQueue& queue, const BufferRow& row, std::uint32_t calls) {
    queue_ = &queue;
    row_ = row;
    calls_ = std::vector<OfCall>(calls);
    for (std::uint32_t i = 0; i < calls; ++i) free_.push_back(i);
  }
  // The connection broke: nothing is posted any more.
  void close() { closed_ = true; }

  // A call that may keep a reply, from its beginning to its end.
  class Use {
   public:
    Use(KeptReplies& replies, Call call) : replies_(&replies), call_(call) { replies.begin(call); }
    Use(Use&& other) noexcept
        : replies_(std::exchange(other.replies_, nullptr)), call_(other.call_) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (replies_ != nullptr) replies_->end(call_);
    }

   private:
    KeptReplies* replies_;
    Call call_;
  };

  // The call's reply has come, in this buffer.
  void keep(Call call, std::uint64_t buffer) {
    calls_[call].buffer = buffer;
    calls_[call].keeps = true;
  }
  fabric::LocalBuffer kept(Call call) const { return row_[calls_[call].buffer]; }
  // The call has read its reply and may ask again; nothing happens if it keeps none.
  void post_again(Call call) {
    OfCall& of = calls_[call];
    if (!of.keeps) return;
    of.keeps = false;
    post(of.buffer);
  }

 private:
  struct OfCall {
    bool has_buffer = false;  // a posted one, or the one that it keeps
    bool keeps = false;
    std::uint64_t buffer = 0;
  };

  // One that ended without its reply has left a buffer posted.
  void begin(Call call) {
    if (std::exchange(calls_[call].has_buffer, true)) return;
    post(free_.back());
    free_.pop_back();
  }
  void end(Call call) {
    OfCall& of = calls_[call];
    if (!of.keeps) return;
    of.keeps = false;
    of.has_buffer = false;
    free_.push_back(of.buffer);
  }
  void post(std::uint64_t buffer) {
    if (!closed_) queue_->post(row_[buffer], buffer);
  }

  fabric::ReceiveQueue* queue_ = nullptr;
  BufferRow row_;
  std::vector<OfCall> calls_;
  std::vector<std::uint64_t> free_;
  bool closed_ = false;
};

}  // namespace perdura::rpc
