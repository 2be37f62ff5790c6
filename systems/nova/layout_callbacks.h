// How nova tells a device, or the software in front of it, where the data of files is that the
// device reads and writes by itself: the callbacks of FileMR ("FileMR: Rethinking RDMA Networking
// for Scalable Persistent Memory", Yang, Izraelevitz, Swanson; Table 5.1 of Yang's dissertation),
// under its names.
//
// A file is bound by Volume::bind(). From then on, until unbind(), nova announces each change of
// its layout that it commits: when a file grows, shrinks or gets holes, and when data has been
// written, which goes to new blocks. Only written blocks are mapped, and only up to the end of the
// file.
//
// The functions are called by the threads that change files, with the inode locked and after the
// change has become durable. They must neither suspend nor use the volume, so whoever implements
// them carries the changes out later. Until then the device uses blocks that the file has given up.
// Nova asks by cm_keeps() before it gives such blocks to others.
#pragma once

#include <cstdint>
#include <span>

#include "services/fs/fs.h"
#include "systems/nova/allocator.h"

namespace perdura::systems::nova {

class LayoutCallbacks {
 public:
  virtual ~LayoutCallbacks() = default;

  // A file is bound. cm_init() follows.
  virtual void cm_bind(std::uint64_t inode) = 0;
  // The size and all extents of a file that has just been bound.
  virtual void cm_init(std::uint64_t inode, Bytes size,
                       std::span<const fs::MappedExtent> extents) = 0;
  // The bytes of the file from `at` on, `length` of them, are in these extents now. What they do
  // not cover is a hole, unwritten, or beyond the end.
  virtual void cm_update(std::uint64_t inode, Bytes size, Bytes at, Bytes length,
                         std::span<const fs::MappedExtent> extents) = 0;
  // These bytes of the file are in no extent any more.
  virtual void cm_invalidate(std::uint64_t inode, Bytes size, Bytes at, Bytes length) = 0;
  // The file is no longer bound.
  virtual void cm_destroy(std::uint64_t inode) = 0;

  // Returns true if the device may still use these blocks, which files have given up. Then they
  // stay allocated until Volume::free_kept().
  virtual bool cm_keeps(const Extent& blocks) = 0;
  // Returns true if the device may not have learned yet of all that has been announced. Then it may
  // still read blocks that a file has and that are not mapped any more, so they are not reused.
  virtual bool cm_is_behind() const = 0;
};

}  // namespace perdura::systems::nova
