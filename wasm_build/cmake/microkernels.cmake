# The micro-kernels, as modules without anything of their own but code: relaxed_simd.wasm for relaxed SIMD, simd128.wasm for that of every browser.
# Emscripten's compiler is too old for the first, so both take a clang and a linker of their own. Without these, the first is an empty module, and the
# second is made by Emscripten's, which is LLVM 14 or newer.
set(SIDE_VERSIONS 21 20 19)
list(TRANSFORM SIDE_VERSIONS PREPEND clang++- OUTPUT_VARIABLE CLANGS)
list(TRANSFORM SIDE_VERSIONS PREPEND wasm-ld- OUTPUT_VARIABLE LINKERS)
find_program(SIDE_CLANG NAMES ${CLANGS} NO_CMAKE_FIND_ROOT_PATH)
find_program(SIDE_LINKER NAMES ${LINKERS} NO_CMAKE_FIND_ROOT_PATH)

file(GLOB MICROKERNELS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/microkernels/*.cc)
set(SIDE_FLAGS -std=c++20 -O3 -msimd128 -mbulk-memory -mmutable-globals -ffreestanding -fno-exceptions -fno-rtti -fno-math-errno
  -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter -I${CMAKE_SOURCE_DIR}/include
  -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_SOURCE_DIR})

set(STRIPPED --strip-all)
if(PY_ORT_BOUNDS AND SIDE_CLANG)
  set(STRIPPED)
  set(CHECKED -fsanitize=address -mllvm -asan-stack=0 -mllvm -asan-globals=0 -mllvm -asan-constructor-kind=none)
  set(BOUNDS_CALLS bounds_calls.o)
  add_custom_command(OUTPUT ${BOUNDS_CALLS} DEPENDS ${CMAKE_SOURCE_DIR}/test/bounds.cc VERBATIM
    COMMAND ${SIDE_CLANG} --target=wasm32 ${SIDE_FLAGS} -c ${CMAKE_SOURCE_DIR}/test/bounds.cc -o ${BOUNDS_CALLS})
endif()

function(add_side_module name) # flags...
  foreach(source ${MICROKERNELS})
    get_filename_component(stem ${source} NAME_WE)
    set(object ${name}/${stem}.o)
    add_custom_command(OUTPUT ${object} DEPENDS ${source} scalar_functions.stamp DEPFILE ${object}.d VERBATIM
      COMMAND ${CMAKE_COMMAND} -E make_directory ${name}
      COMMAND ${SIDE_COMPILER} ${SIDE_FLAGS} ${CHECKED} ${ARGN} -MD -MT ${object} -MF ${object}.d -c ${source} -o ${object})
    list(APPEND objects ${object})
  endforeach()
  # The linker itself: clang would call whatever wasm-opt there is, which need not know these instructions.
  list(APPEND objects ${BOUNDS_CALLS})
  add_custom_command(OUTPUT ${name}.wasm DEPENDS ${objects} VERBATIM
    COMMAND ${SIDE_LINKER} --no-entry --import-memory --max-memory=4294967296 --export-dynamic --export=__stack_pointer ${STRIPPED} -O2
      ${objects} -o ${name}.wasm)
endfunction()

if(SIDE_CLANG AND SIDE_LINKER)
  # AddressSanitizer knows Emscripten's memory.
  set(SIDE_COMPILER ${SIDE_CLANG} --target=wasm32$<$<BOOL:${PY_ORT_BOUNDS}>:-unknown-emscripten>)
  add_side_module(relaxed_simd -mrelaxed-simd)
else()
  message(STATUS "no clang and wasm-ld of ${SIDE_VERSIONS}: the CPU kernels are built without relaxed SIMD")
  add_custom_command(OUTPUT relaxed_simd.wasm VERBATIM
    COMMAND ${NODE} -e "require('fs').writeFileSync('relaxed_simd.wasm', Buffer.from('AGFzbQEAAAA=', 'base64'))")
  set(SIDE_COMPILER ${CMAKE_CXX_COMPILER})
  execute_process(COMMAND ${EMSCRIPTEN_ROOT_PATH}/em-config LLVM_ROOT OUTPUT_VARIABLE LLVM_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE)
  find_program(LLVM_LINKER NAMES wasm-ld wasm-ld-18 wasm-ld-17 wasm-ld-16 wasm-ld-15 wasm-ld-14 HINTS ${LLVM_ROOT} REQUIRED NO_CMAKE_FIND_ROOT_PATH)
  set(SIDE_LINKER ${LLVM_LINKER})
endif()
add_side_module(simd128)
add_custom_target(microkernels DEPENDS relaxed_simd.wasm simd128.wasm)
