# The fabric on libibverbs, if that is installed; with FLUSH and ATOMIC WRITE if libibverbs supports them, and with
# iWARP if librdmacm is installed, too.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::IBVERBS)
check_cxx_source_compiles("
  #include <infiniband/verbs.h>
  int main() {
    ibv_wr_flush(nullptr, 0, 0, 0, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
    return IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT | IBV_QP_EX_WITH_FLUSH;
  }" PERDURA_VERBS_FLUSH)
check_cxx_source_compiles("
  #include <infiniband/verbs.h>
  int main() {
    ibv_wr_atomic_write(nullptr, 0, 0, nullptr);
    return IBV_QP_EX_WITH_ATOMIC_WRITE;
  }" PERDURA_VERBS_ATOMIC_WRITE)
unset(CMAKE_REQUIRED_LIBRARIES)
target_sources(perdura_platform PRIVATE
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/bring_up.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/connection.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/control_message.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/control_plane.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/device.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/endpoint.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/fixed_job.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/gid.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/meaning.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/node_memory.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/open_job.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/operations.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/queue_pair.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/receive_queue.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/send_queue.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/socket.cc
  ${CMAKE_SOURCE_DIR}/platform/verbs/verbs_node.cc
  ${CMAKE_SOURCE_DIR}/platform/verbs/verbs_platform.cc
  ${CMAKE_SOURCE_DIR}/platform/verbs/verbs_rendezvous.cc)
if(RDMACM_FOUND)
  target_sources(perdura_platform PRIVATE
    ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/connection_manager.cc)
  target_link_libraries(perdura_platform PRIVATE PkgConfig::RDMACM)
else()
  target_sources(perdura_platform PRIVATE
    ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/connection_manager_absent.cc)
endif()
target_compile_definitions(perdura_platform
  PUBLIC PERDURA_HAVE_VERBS
  PRIVATE $<$<BOOL:${PERDURA_VERBS_FLUSH}>:PERDURA_VERBS_FLUSH>
          $<$<BOOL:${PERDURA_VERBS_ATOMIC_WRITE}>:PERDURA_VERBS_ATOMIC_WRITE>)
target_link_libraries(perdura_platform PUBLIC PkgConfig::IBVERBS)
# The code on the path of an operation is one unit, for its two flattened functions (post and poll).
set_source_files_properties(
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/endpoint.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/operations.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/queue_pair.cc
  ${CMAKE_SOURCE_DIR}/platform/fabric/verbs/send_queue.cc
  PROPERTIES UNITY_GROUP way_of_an_operation)
set_target_properties(perdura_platform PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
