// What the program's drivers declare, for tests that read experiments.
#pragma once

#include "bench/connections/connections_driver.h"
#include "bench/fan_out/fan_out_driver.h"
#include "bench/fs/fs_driver.h"
#include "bench/kv/kv_driver.h"
#include "bench/lmdb/lmdb_driver.h"
#include "bench/log/log_driver.h"
#include "bench/log/remote_log_driver.h"
#include "bench/memory/memory_driver.h"
#include "bench/objects/objects_driver.h"
#include "bench/remote_file/remote_file_driver.h"
#include "bench/trace/translation_driver.h"
#include "systems/registry/registry.h"

namespace perdura::test {

inline const harness::Declarations& declarations() {
  static const bench::KvDriver kv(systems::kv_systems());
  static const bench::RemoteLogDriver remote_log;
  static const bench::LogDriver log(systems::log_systems());
  static const bench::MemoryDriver memory(systems::memory_systems());
  static const bench::LmdbDriver lmdb(systems::memory_systems());
  static const bench::FsDriver fs(systems::fs_systems(), systems::memory_systems());
  static const bench::ObjectsDriver pools(systems::object_systems());
  static const bench::TranslationDriver translation;
  static const bench::RemoteFileDriver remote_file;
  static const bench::FanOutDriver fan_out;
  static const bench::ConnectionsDriver connections;
  static const harness::Driver* const drivers[] = {
      &kv,    &remote_log,  &log,         &memory,  &lmdb,       &fs,
      &pools, &translation, &remote_file, &fan_out, &connections};
  static const harness::Declarations all = harness::declarations_of(drivers);
  return all;
}

}  // namespace perdura::test
