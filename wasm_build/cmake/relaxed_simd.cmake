# relaxed_simd.wasm: the micro-kernels once more, for relaxed SIMD, as a module without anything of its own but code. Emscripten's compiler is too old
# for that, so it takes a clang and a linker of their own. Without these it is an empty module, and the core's own micro-kernels do the work.
set(RELAXED_VERSIONS 21 20 19)
list(TRANSFORM RELAXED_VERSIONS PREPEND clang++- OUTPUT_VARIABLE CLANGS)
list(TRANSFORM RELAXED_VERSIONS PREPEND wasm-ld- OUTPUT_VARIABLE LINKERS)
find_program(RELAXED_CLANG NAMES ${CLANGS} NO_CMAKE_FIND_ROOT_PATH)
find_program(RELAXED_LINKER NAMES ${LINKERS} NO_CMAKE_FIND_ROOT_PATH)

if(RELAXED_CLANG AND RELAXED_LINKER)
  set(RELAXED_FLAGS --target=wasm32 -std=c++20 -O3 -msimd128 -mrelaxed-simd -mbulk-memory -ffreestanding -fno-exceptions -fno-rtti
    -fno-math-errno -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter -I${CMAKE_SOURCE_DIR}/include -I${CMAKE_SOURCE_DIR})
  file(GLOB MICROKERNELS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/microkernels/*.cc)
  list(FILTER MICROKERNELS EXCLUDE REGEX simd128.cc)
  foreach(source ${MICROKERNELS})
    get_filename_component(stem ${source} NAME_WE)
    set(object relaxed_simd/${stem}.o)
    add_custom_command(OUTPUT ${object} DEPENDS ${source} DEPFILE ${object}.d VERBATIM
      COMMAND ${CMAKE_COMMAND} -E make_directory relaxed_simd
      COMMAND ${RELAXED_CLANG} ${RELAXED_FLAGS} -MD -MT ${object} -MF ${object}.d -c ${source} -o ${object})
    list(APPEND RELAXED_OBJECTS ${object})
  endforeach()
  # The linker itself: clang would call whatever wasm-opt there is, which need not know these instructions.
  add_custom_command(OUTPUT relaxed_simd.wasm DEPENDS ${RELAXED_OBJECTS} VERBATIM
    COMMAND ${RELAXED_LINKER} --no-entry --import-memory --export-dynamic --export=__stack_pointer --strip-all -O2 ${RELAXED_OBJECTS} -o relaxed_simd.wasm)
else()
  message(STATUS "no clang and wasm-ld of ${RELAXED_VERSIONS}: the CPU kernels are built without relaxed SIMD")
  add_custom_command(OUTPUT relaxed_simd.wasm VERBATIM
    COMMAND ${NODE} -e "require('fs').writeFileSync('relaxed_simd.wasm', Buffer.from('AGFzbQEAAAA=', 'base64'))")
endif()
