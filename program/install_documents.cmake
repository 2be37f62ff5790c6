# Installs the documents. In the source tree they link to each other, to sources and to files such as experiments by
# relative paths. Where they are installed, some of these files lie elsewhere, and sources are not there: a reader would
# follow such a link to nothing. So a link to a file that is installed, too, gets that file's path from there, and of any
# other link only the text remains, which mostly is the path in the source tree. Run by `cmake --install` with source (of
# the project), made (a folder to write to), datadir, includedir.
# The prefix may be given relative to the working directory.
get_filename_component(prefix ${CMAKE_INSTALL_PREFIX} ABSOLUTE)
get_filename_component(data ${datadir} ABSOLUTE BASE_DIR ${prefix})
get_filename_component(headers ${includedir} ABSOLUTE BASE_DIR ${prefix})

# Sets `result` to the place where a file of the source tree is installed, or to "".
function(installed_place path result)
  set(place "")
  if(path MATCHES "^(docs|examples)(/|$)" OR path MATCHES "^(README\\.md|LICENSE)$")
    set(place ${data}/doc/perdura/${path})
  elseif(path MATCHES "^(experiments|profiles|workloads|sites|plots|results/reported)(/|$)"
      OR path STREQUAL "results/claims.csv")
    set(place ${data}/perdura/${path})
  elseif(path MATCHES "^library/(perdura[a-z_]*\\.h)$")
    set(place ${headers}/${CMAKE_MATCH_1})
  endif()
  set(${result} "${place}" PARENT_SCOPE)
endfunction()

function(install_document document)
  file(READ ${source}/${document} text)
  get_filename_component(folder ${source}/${document} DIRECTORY)
  installed_place(${document} own_place)
  get_filename_component(own_folder ${own_place} DIRECTORY)
  # What follows "[TEXT]" in a link: CMake's lists do not split at brackets that are not closed.
  string(REGEX MATCHALL "\\([A-Za-z0-9_./-]+(#[A-Za-z0-9_.-]+)?\\)" links "${text}")
  list(REMOVE_DUPLICATES links)
  foreach(link IN LISTS links)
    string(REGEX MATCH "^\\(([^#]*)(#.*)?\\)$" whole "${link}")
    set(target ${CMAKE_MATCH_1})
    set(part ${CMAKE_MATCH_2})
    string(FIND "${text}" "]${link}" at)
    get_filename_component(file ${folder}/${target} ABSOLUTE)
    if(at EQUAL -1 OR NOT EXISTS ${file})
      continue()
    endif()
    file(RELATIVE_PATH path ${source} ${file})
    installed_place(${path} place)
    if(place)
      file(RELATIVE_PATH target ${own_folder} ${place})
      string(REPLACE "]${link}" "](${target}${part})" text "${text}")
    else()
      string(REGEX REPLACE "([.()+])" "\\\\\\1" pattern "${link}")
      string(REGEX REPLACE "\\[([^][]*)\\]${pattern}" "\\1" text "${text}")
    endif()
  endforeach()
  file(WRITE ${made}/${document} "${text}")
  file(INSTALL ${made}/${document} DESTINATION ${own_folder})
endfunction()

file(GLOB_RECURSE documents RELATIVE ${source} ${source}/docs/*.md ${source}/experiments/*.md)
foreach(document README.md ${documents})
  install_document(${document})
endforeach()
