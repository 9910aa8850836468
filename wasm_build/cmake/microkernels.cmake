# The micro-kernels once more, as modules without anything of their own but code: relaxed_simd.wasm for relaxed SIMD, and simd128.wasm for workers that
# share the core's memory. Emscripten's compiler is too old for the first, so both take a clang and a linker of their own. Without these they are
# empty modules: the core's own micro-kernels do the work, on one thread.
set(SIDE_VERSIONS 21 20 19)
list(TRANSFORM SIDE_VERSIONS PREPEND clang++- OUTPUT_VARIABLE CLANGS)
list(TRANSFORM SIDE_VERSIONS PREPEND wasm-ld- OUTPUT_VARIABLE LINKERS)
find_program(SIDE_CLANG NAMES ${CLANGS} NO_CMAKE_FIND_ROOT_PATH)
find_program(SIDE_LINKER NAMES ${LINKERS} NO_CMAKE_FIND_ROOT_PATH)

file(GLOB MICROKERNELS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/microkernels/*.cc)
list(FILTER MICROKERNELS EXCLUDE REGEX simd128.cc)
set(SIDE_FLAGS --target=wasm32 -std=c++20 -O3 -msimd128 -mbulk-memory -ffreestanding -fno-exceptions -fno-rtti -fno-math-errno
  -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter -I${CMAKE_SOURCE_DIR}/include
  -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_SOURCE_DIR})

function(add_side_module name) # flags...
  if(NOT (SIDE_CLANG AND SIDE_LINKER))
    add_custom_command(OUTPUT ${name}.wasm VERBATIM
      COMMAND ${NODE} -e "require('fs').writeFileSync('${name}.wasm', Buffer.from('AGFzbQEAAAA=', 'base64'))")
    return()
  endif()
  foreach(source ${MICROKERNELS})
    get_filename_component(stem ${source} NAME_WE)
    set(object ${name}/${stem}.o)
    add_custom_command(OUTPUT ${object} DEPENDS ${source} scalar_functions.stamp DEPFILE ${object}.d VERBATIM
      COMMAND ${CMAKE_COMMAND} -E make_directory ${name}
      COMMAND ${SIDE_CLANG} ${SIDE_FLAGS} ${ARGN} -MD -MT ${object} -MF ${object}.d -c ${source} -o ${object})
    list(APPEND objects ${object})
  endforeach()
  # The linker itself: clang would call whatever wasm-opt there is, which need not know these instructions.
  add_custom_command(OUTPUT ${name}.wasm DEPENDS ${objects} VERBATIM
    COMMAND ${SIDE_LINKER} --no-entry --import-memory --max-memory=4294967296 --export-dynamic --export=__stack_pointer --strip-all -O2
      ${objects} -o ${name}.wasm)
endfunction()

if(NOT (SIDE_CLANG AND SIDE_LINKER))
  message(STATUS "no clang and wasm-ld of ${SIDE_VERSIONS}: the CPU kernels are built without relaxed SIMD and threads")
endif()
add_side_module(relaxed_simd -mrelaxed-simd)
add_side_module(simd128)
