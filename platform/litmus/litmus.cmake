# Litmus tests of the fabric's memory model. Their texts are part of the program.
foreach(file one_queue_pair several_queue_pairs messages atomics local)
  set(text ${CMAKE_CURRENT_LIST_DIR}/tests/${file}.litmus)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${text})
  file(READ ${text} LITMUS_${file})
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/catalog.cc.in ${CMAKE_CURRENT_BINARY_DIR}/litmus_catalog.cc @ONLY)
target_sources(perdura_platform PRIVATE
  ${CMAKE_CURRENT_BINARY_DIR}/litmus_catalog.cc
  ${CMAKE_CURRENT_LIST_DIR}/explore.cc
  ${CMAKE_CURRENT_LIST_DIR}/litmus.cc
  ${CMAKE_CURRENT_LIST_DIR}/runner.cc
  ${CMAKE_CURRENT_LIST_DIR}/survey.cc)
