file(REMOVE_RECURSE ${OUT})
execute_process(COMMAND ${PERDURA} probe --platform sim --profile ${PROFILE} --set ${SET}
    --quiet --out ${OUT}
  COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${OUT}/probes.csv ${REFERENCE}/probes.csv
  RESULT_VARIABLE different)
if(different)
  message(FATAL_ERROR "${OUT}/probes.csv differs from ${REFERENCE}/probes.csv")
endif()
