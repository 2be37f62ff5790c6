// A queue pair that forwards operations to another one and injects the faults that `Faults`
// decides. Internal to platform/faults.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "platform/faults/faults.h"

namespace perdura::faults {

// The state of a connection, shared by its queue pair and by the task that posts its delayed
// operations.
class Line final : public fabric::CompletionObserver {
 public:
  Line(std::shared_ptr<Faults> faults, fabric::QueuePair& front, fabric::QueuePairOptions options);
  ~Line();

  void attach(std::unique_ptr<fabric::QueuePair> inner) { inner_ = std::move(inner); }
  fabric::QueuePair* inner() { return inner_.get(); }
  static void submit(const std::shared_ptr<Line>& line, fabric::WorkRequest request,
                     fabric::RdmaOperation* operation);
  void abandon(fabric::RdmaOperation& operation);
  void lose();
  void close();  // called when its queue pair is destroyed
  void completed(fabric::RdmaOperation& operation) override;

 private:
  struct Late {
    fabric::WorkRequest request;
    fabric::RdmaOperation* operation = nullptr;  // null if unsignaled
    Time release{};
    Fate fate;
    bool kept = false;  // its data is in memory from Faults::keep()
  };

  static Task<> post_late(std::shared_ptr<Line> line);
  void hand_on(Late& late);

  std::shared_ptr<Faults> faults_;
  fabric::QueuePair& front_;
  fabric::QueuePairOptions options_;
  std::unique_ptr<fabric::QueuePair> inner_;  // null once the connection is lost
  std::deque<Late> late_;
  bool posting_late_ = false;
  Time last_release_{};
  std::vector<fabric::RdmaOperation*> outstanding_;  // posted on inner_ and not completed
  fabric::RdmaOperation* last_ =
      nullptr;  // the operation at whose completion the node dies, if any
};

class FaultyQueuePair final : public fabric::QueuePair {
 public:
  FaultyQueuePair(std::shared_ptr<Faults> faults, const fabric::QueuePairOptions& options)
      : line_(std::make_shared<Line>(std::move(faults), *this, options)) {}
  ~FaultyQueuePair() override { line_->close(); }

  void attach(std::unique_ptr<fabric::QueuePair> inner) {
    peer_ = inner->peer();
    line_->attach(std::move(inner));
  }
  void post_unsignaled(const fabric::WorkRequest& request) override {
    Line::submit(line_, request, nullptr);
  }
  bool connected() const override {
    return line_->inner() != nullptr && line_->inner()->connected();
  }
  fabric::Address peer() const override { return peer_; }
  std::size_t in_line() const override {
    return line_->inner() != nullptr ? line_->inner()->in_line() : 0;
  }

  // Give Line access to protected functions of QueuePair.
  static void post(QueuePair& inner, fabric::RdmaOperation& operation) {
    post_on(inner, operation);
  }
  static void abandon(QueuePair& inner, fabric::RdmaOperation& operation) {
    abandon_on(inner, operation);
  }

 private:
  void post(fabric::RdmaOperation& operation) override {
    Line::submit(line_, operation.request(), &operation);
  }
  void abandon(fabric::RdmaOperation& operation) override { line_->abandon(operation); }

  std::shared_ptr<Line> line_;
  fabric::Address peer_;
};

}  // namespace perdura::faults
