file(REMOVE_RECURSE ${OUT})
execute_process(COMMAND ${PERDURA} run ${EXPERIMENT} ${SETTINGS} --platform sim --out ${OUT}
  COMMAND_ERROR_IS_FATAL ANY ERROR_QUIET)
foreach(file points.csv histograms.csv)
  execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${OUT}/${file} ${REFERENCE}/${file}
    RESULT_VARIABLE different)
  if(different)
    message(FATAL_ERROR "${OUT}/${file} differs from ${REFERENCE}/${file}")
  endif()
endforeach()
