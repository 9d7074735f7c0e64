# Test script (cmake -P): the documents that installed programs name, and those that these link, are installed with either
# component.
#
#   source, build        those of kolo
#   directory            working folder; removed first

cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/installed.cmake)
file(REMOVE_RECURSE ${directory})
foreach(component development programs)
  run("installing" ${CMAKE_COMMAND} --install ${build} --component ${component} --prefix ${directory}/${component})
endforeach()

set(documents ${directory}/programs/share/doc/kolo)
set(missing "")
file(GLOB programs ${directory}/programs/bin/* ${directory}/programs/libexec/kolo/*)
foreach(program IN LISTS programs)
  file(STRINGS ${program} texts REGEX "[a-z]+/(README|GUIDE)[.]md")
  foreach(text IN LISTS texts)
    # The bytes before a name may be code, so a name begins with a folder of the tree.
    string(REGEX MATCHALL "(bench|cmake|collectives|tensor|test|train|transports)/[a-z_/]*(README|GUIDE)[.]md" names "${text}")
    foreach(name IN LISTS names)
      list(APPEND named ${name})
      if(NOT EXISTS ${documents}/${name} OR NOT EXISTS ${source}/${name})
        list(APPEND missing "${program} names ${name}")
      endif()
    endforeach()
  endforeach()
endforeach()
if(NOT "bench/README.md" IN_LIST named OR NOT "transports/GUIDE.md" IN_LIST named)
  message(FATAL_ERROR "no program names bench/README.md and transports/GUIDE.md: what does this look for?")
endif()

# Links to results, and to sources other than examples, work only in the source tree.
file(GLOB_RECURSE pages RELATIVE ${documents} ${documents}/*.md)
foreach(page IN LISTS pages)
  get_filename_component(folder ${documents}/${page} DIRECTORY)
  file(READ ${documents}/${page} text)
  string(REPLACE "](" "<" text "${text}")
  string(REGEX REPLACE "[][;]" "" text "${text}")  # which lists of CMake take for their own
  string(REGEX MATCHALL "<([A-Za-z0-9_/.]+[.](md|svg)|[a-z_/]*examples[a-z_/.]*)[)]" links "${text}")
  foreach(link IN LISTS links)
    string(REGEX REPLACE "[<)]" "" link "${link}")
    if(NOT link MATCHES "results/" AND NOT EXISTS ${folder}/${link})
      list(APPEND missing "${page} links ${link}")
    endif()
  endforeach()
  if(NOT EXISTS ${directory}/development/share/doc/kolo/${page})
    list(APPEND missing "the component development lacks ${page}")
  endif()
endforeach()
if(missing)
  list(JOIN missing "\n  " missing)
  message(FATAL_ERROR "not installed in share/doc/kolo (KOLO_DOCUMENTS):\n  ${missing}")
endif()

# The help of a program names the folder of the documents.
run("help" ${directory}/programs/bin/kolo-bench --help)
if(NOT output MATCHES "share/doc/kolo")
  message(FATAL_ERROR "kolo-bench --help does not say where its documents are:\n${output}")
endif()
foreach(command allreduce barrier p2p explain)
  run("help" ${directory}/programs/bin/kolo-bench ${command} --help)
  if(output MATCHES "[.]md" AND NOT output MATCHES "share/doc/kolo")
    message(FATAL_ERROR "kolo-bench ${command} --help does not say where the documents are that it names:\n${output}")
  endif()
endforeach()
