# The real platforms' memory and executor, and the fabric over shared memory.
target_sources(perdura_platform PRIVATE
  ${CMAKE_SOURCE_DIR}/platform/pmem/mapped/anonymous.cc
  ${CMAKE_SOURCE_DIR}/platform/pmem/mapped/bad_blocks.cc
  ${CMAKE_SOURCE_DIR}/platform/pmem/mapped/dax_device.cc
  ${CMAKE_SOURCE_DIR}/platform/pmem/mapped/dax_memory.cc
  ${CMAKE_SOURCE_DIR}/platform/pmem/instructions.cc
  ${CMAKE_SOURCE_DIR}/platform/pmem/mapped/file_write_back.cc
  ${CMAKE_SOURCE_DIR}/platform/pmem/mapped/mapping.cc
  ${CMAKE_SOURCE_DIR}/platform/pmem/mapped/parts.cc
  ${CMAKE_SOURCE_DIR}/platform/pmem/mapped/storage.cc
  ${CMAKE_SOURCE_DIR}/platform/pmem/mapped/pool_file.cc
  ${CMAKE_SOURCE_DIR}/platform/pmem/mapped/populate.cc
  ${CMAKE_SOURCE_DIR}/platform/pmem/mapped/region_directory.cc
  ${CMAKE_SOURCE_DIR}/platform/pmem/mapped/thread_meter.cc
  ${CMAKE_SOURCE_DIR}/platform/pmem/word_copy.cc
  ${CMAKE_SOURCE_DIR}/platform/runtime/doorbell.cc
  ${CMAKE_SOURCE_DIR}/platform/runtime/host_clock.cc
  ${CMAKE_SOURCE_DIR}/platform/host/inbox.cc
  ${CMAKE_SOURCE_DIR}/platform/host/thread_executor.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/shm/connection.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/shm/endpoint.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/shm/extent_tables.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/shm/job.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/shm/node_memory.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/shm/operations.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/shm/peer.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/shm/queue_pair.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/shm/receive_queue.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/shm/segment.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/tcp/connection.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/tcp/endpoint.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/tcp/pieces.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/tcp/queue_pair.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/tcp/registration.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/tcp/rendezvous.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/tcp/sockets.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/tcp/through_extents.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/tcp/transfer.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/tcp/waker.cc
  ${CMAKE_SOURCE_DIR}/platform/host/child_main.cc
  ${CMAKE_SOURCE_DIR}/platform/host/child_process.cc
  ${CMAKE_SOURCE_DIR}/platform/host/child_shared.cc
  ${CMAKE_SOURCE_DIR}/platform/host/confinement.cc
  ${CMAKE_SOURCE_DIR}/platform/host/host_background.cc
  ${CMAKE_SOURCE_DIR}/platform/host/host_node.cc
  ${CMAKE_SOURCE_DIR}/platform/host/host_platform.cc
  ${CMAKE_SOURCE_DIR}/platform/host/mapped_ring.cc
  ${CMAKE_SOURCE_DIR}/platform/host/numa.cc
  ${CMAKE_SOURCE_DIR}/platform/host/os_thread.cc
  ${CMAKE_SOURCE_DIR}/platform/sockets/sockets_platform.cc
  ${CMAKE_SOURCE_DIR}/platform/sockets/sockets_rendezvous.cc
  ${CMAKE_SOURCE_DIR}/platform/shm/shm_barrier.cc
  ${CMAKE_SOURCE_DIR}/platform/shm/shm_node.cc
  ${CMAKE_SOURCE_DIR}/platform/shm/shm_platform.cc
  ${CMAKE_SOURCE_DIR}/platform/shm/shm_rendezvous.cc
  ${CMAKE_SOURCE_DIR}/platform/shm/shm_ring.cc)

if(PMEM2_FOUND)
  target_sources(perdura_platform PRIVATE
    ${CMAKE_SOURCE_DIR}/platform/pmem/mapped/with_libpmem2.cc)
  target_link_libraries(perdura_platform PRIVATE PkgConfig::PMEM2)
else()
  target_sources(perdura_platform PRIVATE
    ${CMAKE_SOURCE_DIR}/platform/pmem/mapped/without_libpmem2.cc)
endif()
