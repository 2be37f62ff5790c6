# Run at build time: fills in build_info.cc.in, and touches the result only if something changed.
execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse HEAD
                OUTPUT_VARIABLE GIT_REVISION OUTPUT_STRIP_TRAILING_WHITESPACE
                RESULT_VARIABLE no_git ERROR_QUIET)
if(no_git)
  set(GIT_REVISION "unknown")
  set(GIT_DIRTY "false")
else()
  execute_process(COMMAND git -C ${SOURCE_DIR} status --porcelain
                  OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes STREQUAL "")
    set(GIT_DIRTY "false")
  else()
    set(GIT_DIRTY "true")
  endif()
endif()
string(STRIP "${FLAGS}" FLAGS)
configure_file(${INPUT} ${OUTPUT} @ONLY)
