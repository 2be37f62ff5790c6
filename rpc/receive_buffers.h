// The receive buffers of a connection.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "platform/fabric/fabric.h"
#include "rpc/calls.h"

namespace perdura::rpc {

// Equally sized buffers at equal distances in registered memory. The number of a buffer is the id
// with which it is posted.
struct BufferRow {
  fabric::MemoryRegion memory;
  Bytes first = 0;     // offset of buffer 0 in `memory`
  Bytes distance = 0;  // bytes from the beginning of one buffer to that of the next
  std::uint32_t size = 0;

  fabric::LocalBuffer operator[](std::uint64_t index) const {
    return memory.local(first + index * distance, size);
  }
};

// Receive buffers whose messages are read at once: each buffer is reposted as soon as it has been
// read.
class ReceiveBuffers {
 public:
  // `depth` is the greatest number of posted buffers. queue() goes into the options of the
  // connection.
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

// Receive buffers whose messages are read in place. There are as many as calls. Each call in flight
// has one buffer posted for its reply, or keeps the buffer in which its reply arrived until it
// sends another request or ends.
class KeptReplies {
 public:
  // `queue` is the receive queue of the connection; it must have room for one buffer for each call.
  void open(fabric::ReceiveQueue& queue, const BufferRow& row, std::uint32_t calls) {
    queue_ = &queue;
    row_ = row;
    calls_ = std::vector<OfCall>(calls);
    for (std::uint32_t i = 0; i < calls; ++i) free_.push_back(i);
  }
  // The connection broke: no buffer is posted anymore.
  void close() { closed_ = true; }

  // Lives as long as a call that may keep a reply.
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

  // The reply of the call has arrived in this buffer.
  void keep(Call call, std::uint64_t buffer) {
    calls_[call].buffer = buffer;
    calls_[call].keeps = true;
  }
  fabric::LocalBuffer kept(Call call) const { return row_[calls_[call].buffer]; }
  // The call has read its reply, and its buffer is reposted; does nothing if the call keeps none.
  void post_again(Call call) {
    OfCall& of = calls_[call];
    if (!of.keeps) return;
    of.keeps = false;
    post(of.buffer);
  }

 private:
  struct OfCall {
    bool has_buffer = false;  // either posted, or kept with its reply
    bool keeps = false;
    std::uint64_t buffer = 0;
  };

  // A call that ended without its reply has left its buffer posted.
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
