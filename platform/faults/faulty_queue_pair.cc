#include "platform/faults/faulty_queue_pair.h"

#include <algorithm>

namespace perdura::faults {

using fabric::RdmaOperation;
using fabric::Status;

Line::Line(std::shared_ptr<Faults> faults, fabric::QueuePair& front,
           fabric::QueuePairOptions options)
    : faults_(std::move(faults)), front_(front), options_(options) {
  faults_->lines.push_back(this);
}

Line::~Line() { std::erase(faults_->lines, this); }

void Line::submit(const std::shared_ptr<Line>& line, fabric::WorkRequest request,
                  RdmaOperation* operation) {
  Faults& faults = *line->faults_;
  Late late{request, operation, {}, faults.next(request)};
  if (late.fate.swallowed) return;
  if (late.fate.loses_connection) line->lose();
  if (line->inner_ == nullptr) {
    if (operation != nullptr) operation->complete(Status::flushed);
    return;
  }
  const Time now = faults.thread().executor.now();
  late.release = std::max(line->last_release_, now + late.fate.held) + late.fate.slow;
  if (late.release <= now && line->late_.empty()) {
    line->hand_on(late);
    return;
  }
  line->last_release_ = std::max(late.release, now);
  if (request.flags.inlined && request.local.length() > 0) {
    // The caller may reuse the buffer of an inline operation at once, so its data is copied. Other
    // buffers need no copy: the caller keeps them until the operation or, if it is unsignaled, a
    // later one has completed, and those wait for it.
    late.request.local = faults.keep(request.local);
    late.kept = true;
    if (operation != nullptr) operation->use_buffer(late.request.local);
  }
  line->late_.push_back(late);
  if (!line->posting_late_) {
    line->posting_late_ = true;
    faults.thread().executor.spawn(post_late(line));
  }
}

Task<> Line::post_late(std::shared_ptr<Line> line) {
  while (!line->late_.empty()) {
    const Time release = line->late_.front().release;
    if (line->faults_->thread().executor.now() < release) {
      co_await sleep_until(release);
      continue;  // the operation may have been abandoned meanwhile
    }
    Late late = line->late_.front();
    line->late_.pop_front();
    line->hand_on(late);
  }
  line->posting_late_ = false;
}

void Line::hand_on(Late& late) {
  if (faults_->dead()) return;
  if (late.fate.duplicated) inner_->post_unsignaled(late.request);
  if (late.operation == nullptr) {
    inner_->post_unsignaled(late.request);
  } else {
    late.operation->observer = this;
    outstanding_.push_back(late.operation);
    if (late.fate.dies_at_completion) last_ = late.operation;
    FaultyQueuePair::post(*inner_, *late.operation);
  }
  // The device has copied inline data when the operation has been posted.
  if (late.kept) faults_->give_back(late.request.local.first());
  // The completion of an unsignaled operation is not reported, so the thread dies right after
  // posting instead.
  const bool unheard = late.fate.dies_at_completion && late.operation == nullptr;
  if (late.fate.dies_after_post || unheard) faults_->die_after_post();
}

void Line::completed(RdmaOperation& operation) {
  std::erase(outstanding_, &operation);
  if (last_ == &operation) {
    last_ = nullptr;
    faults_->die_at_completion();
  }
}

void Line::abandon(RdmaOperation& operation) {
  const auto late = std::find_if(late_.begin(), late_.end(),
                                 [&](const Late& l) { return l.operation == &operation; });
  if (late != late_.end()) {
    if (late->kept) faults_->give_back(late->request.local.first());
    late_.erase(late);
    return;
  }
  if (std::erase(outstanding_, &operation) == 0 || inner_ == nullptr) return;
  if (last_ == &operation) last_ = nullptr;
  FaultyQueuePair::abandon(*inner_, operation);
}

void Line::lose() {
  if (inner_ == nullptr) return;
  ++faults_->counts.lost;
  // A queue pair that is destroyed takes along the completions that it delivered and that were not
  // taken; one that breaks leaves them. So they are saved here and delivered again below.
  fabric::CompletionQueue* completions = options_.completions;
  std::vector<fabric::ReceiveCompletion> delivered;
  while (completions != nullptr) {
    const auto completion = completions->try_next();
    if (!completion) break;
    delivered.push_back(*completion);
  }
  inner_.reset();
  if (completions != nullptr) {
    for (const fabric::ReceiveCompletion& completion : delivered) completions->push(completion);
  }
  for (RdmaOperation* operation : std::exchange(outstanding_, {})) {
    operation->complete(Status::flushed);
  }
  for (const Late& late : std::exchange(late_, {})) {
    if (late.kept) faults_->give_back(late.request.local.first());
    if (late.operation != nullptr) late.operation->complete(Status::flushed);
  }
  if (completions != nullptr) {
    fabric::QueuePair* name = options_.reported_as != nullptr ? options_.reported_as : &front_;
    completions->push({name, Status::disconnected, std::nullopt, {}, 0});
  }
}

void Line::close() {
  if (inner_ == nullptr && options_.completions != nullptr) options_.completions->forget(front_);
  inner_.reset();
  late_.clear();
  outstanding_.clear();
}

}  // namespace perdura::faults
