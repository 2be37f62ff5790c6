// Notes the accesses of programs in a trace, if the mount has one.
#include "mount/handler.h"

namespace perdura::mount {

Task<> Handler::note_file(fs::InodeNumber inode) {
  const fs::Result<fs::Attributes> found = co_await session_.attributes(inode);
  if (found) recorder_->met(*found);
}

Task<> Handler::note_open(fs::InodeNumber inode) {
  if (recorder_ == nullptr) co_return;
  co_await note_file(inode);
  recorder_->add(fs::TraceKind::open, inode);
}

void Handler::note_created(const fs::Attributes& made) {
  if (recorder_ == nullptr) return;
  recorder_->met(made);
  recorder_->add(fs::TraceKind::open, made.inode);
}

// A format for space that is allocated does not exist: that a file has become longer is recorded.
Task<> Handler::note_allocated(fs::InodeNumber inode, Bytes end) {
  const fs::Result<fs::Attributes> found = co_await session_.attributes(inode);
  if (found && found->size == end) recorder_->add(fs::TraceKind::truncate, inode, end);
}

}  // namespace perdura::mount
