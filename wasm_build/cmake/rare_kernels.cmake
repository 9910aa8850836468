# Kernels that few models use. Their code is in rare_kernels.wasm, which a page loads for a session that needs it.
string(CONCAT RARE_KERNELS "^src/kernels/(experts|generation|linear_attention|ml|recurrent|sequences|spectral|text|training"
  "|attention/(group_query_attention|rotary_embedding)|convolution/(col2im|deform_conv)|counted/(non_max_suppression|unique)"
  "|generators/random|matmul/(det|einsum)|normalization/lrn|pooling/(max_roi_pool|max_unpool|maxpool_with_mask|roi_align)"
  "|quantization|resizing/(affine_grid|crop_and_resize|grid_sample|image_decoder))")
set(RARE_SOURCES ${SOURCES})
list(FILTER RARE_SOURCES INCLUDE REGEX "${RARE_KERNELS}")
set_property(SOURCE ${RARE_SOURCES} APPEND PROPERTY COMPILE_DEFINITIONS PY_ORT_RARE)

execute_process(COMMAND ${EMSCRIPTEN_ROOT_PATH}/em-config BINARYEN_ROOT OUTPUT_VARIABLE BINARYEN_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${EMSCRIPTEN_ROOT_PATH}/em-config LLVM_ROOT OUTPUT_VARIABLE LLVM_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE)
find_program(READOBJ NAMES llvm-readobj llvm-readobj-14 HINTS ${LLVM_ROOT} REQUIRED NO_CMAKE_FIND_ROOT_PATH)

# Moves the functions of RARE_SOURCES out of core.wasm, and strips all names.
function(split_rare_kernels target objects)
  list(JOIN RARE_SOURCES "\n" rare)
  file(WRITE ${CMAKE_BINARY_DIR}/rare.txt "${rare}\n")
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/objects.txt CONTENT "$<JOIN:$<TARGET_OBJECTS:${objects}>,\n>\n")
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
    COMMAND ${NODE} ${CMAKE_SOURCE_DIR}/cmake/split.cjs ${CMAKE_BINARY_DIR} ${BINARYEN_ROOT}/bin ${READOBJ})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/split.cjs)
endfunction()
