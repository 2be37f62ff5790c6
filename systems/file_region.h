// A FileMR: memory that is registered with a device, and that is a file ("FileMR: Rethinking RDMA
// Networking for Scalable Persistent Memory", Yang, Izraelevitz, Swanson; section 5.1 and Tables
// 5.1 and 5.2 of Yang's dissertation).
//
// An ordinary registration is of memory that stays where it is. The data of a file moves, so a
// FileMR is made unprovisioned, without memory and without a key (ibv_reg_mr with the flag FILEMR).
// The file system binds it to a file: that gives it the file's extents and its key, the filekey,
// by which peers address the file by offsets. From then on the file system tells it of each change
// of the layout. A file may have several FileMRs, on one device or on several, each with a filekey
// and rights of its own.
//
// The names of the paper: bind() is cm_bind() and cm_init(), update() is cm_update(), invalidate()
// is cm_invalidate(), and destroy() is cm_destroy().
#pragma once

#include <optional>
#include <span>

#include "platform/fabric/extents.h"
#include "platform/fabric/fabric.h"

namespace perdura::systems {

// Belongs to the thread of the endpoint. Calls must come one after the other.
class FileRegion {
 public:
  // Files are in `region`, which must outlive this, as must the endpoint.
  FileRegion(fabric::Endpoint& endpoint, pmem::Region& region, fabric::Access access)
      : endpoint_(endpoint), region_(region), access_(access) {}
  // Revokes the filekey. What has begun with it may still be under way, unlike after destroy().
  ~FileRegion();
  FileRegion(const FileRegion&) = delete;
  FileRegion& operator=(const FileRegion&) = delete;

  // Returns the filekey. Throws PlatformError if it is bound already, or as
  // Endpoint::register_extents() does; then it stays unprovisioned.
  fabric::RemoteKey bind(std::span<const fabric::Extent> extents);
  bool is_bound() const { return map_.has_value(); }
  fabric::Access access() const { return access_; }

  // The following throw PlatformError if it is unprovisioned.
  fabric::RemoteKey filekey() const { return bound("has no filekey").key; }
  // The file's bytes from `at` on, `length` of them, are in these extents now, and the rest of the
  // range is a hole. Peers see all of the change at once, or meanwhile a hole in all of the range.
  // When it ends, nobody uses what was there before. Throws PlatformError, too, if the device has
  // no room for the extents.
  Task<> update(Bytes at, Bytes length, std::span<const fabric::Extent> extents);
  Task<> invalidate(Bytes at, Bytes length) { return update(at, length, {}); }
  // Afterwards it is unprovisioned again, the filekey is refused, and nothing that has begun with
  // it is under way.
  Task<> destroy();

  // The extents that it has, or had before destroy().
  std::span<const fabric::Extent> extents() const { return table_.extents(); }

 private:
  const fabric::ExtentMap& bound(const char* what) const;

  fabric::Endpoint& endpoint_;
  pmem::Region& region_;
  fabric::Access access_;
  std::optional<fabric::ExtentMap> map_;  // has a value while it is bound
  fabric::ExtentTable table_;
};

}  // namespace perdura::systems
