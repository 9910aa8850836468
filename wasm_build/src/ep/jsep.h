// The JSEP seam: the functions that the page installs with Module.jsepInit, as C functions. Each receives the provider
// whose device it is for. The page's exceptions end here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plan/provider.h"
#include "py_ort/kernel.h"

namespace py_ort::jsep {

// New memory of `size` bytes (a multiple of 16).
Status alloc(const Provider& provider, size_t size, uint32_t& id);
void free(const Provider& provider, uint32_t id);
// Heap to device. The page copies the bytes before it returns.
Status upload(const Provider& provider, const void* data, uint32_t id, size_t size, DType dtype);
// Within a device: `count` blocks of `size` bytes, the first at `offset`, the next ones `step` apart. All are multiples
// of the element's size.
struct Blocks { size_t size, count, source_offset, source_step, target_offset, target_step; };
Status copy(const Provider& provider, uint32_t source, uint32_t target, DType dtype, const Blocks& blocks);
// Device to heap. May suspend, like decode_image: call it directly, all the way from ort_run_execute.
Status download(const Provider& provider, uint32_t id, void* data, size_t size);
// Suspends for a turn of the page's event loop. Uses jsepCopyAsync's import, like `download`, without a tensor.
void pause();
double now_ms();
// The pixels of a picture, row by row, by the page's Module.decodeImage. `format`: as in ONNX's ImageDecoder. Suspends.
struct Picture { uint32_t height, width, channels; };
Status decode_image(const uint8_t* encoded, size_t size, std::string_view format, Picture& out);
// The pixels of the last decoded picture; only once.
void take_pixels(uint8_t* target);
Status create_kernel(const Provider& provider, uint32_t id, std::string_view domain, std::string_view op_type,
                     const uint8_t* attributes, size_t size);
void release_kernel(const Provider& provider, uint32_t id);
// `context`: see abi.h.
Status run(const Provider& provider, uint32_t id, const uint32_t* context);

// The reason why the current call will fail. The first one is kept: it is the cause, later ones are consequences.
void set_error(ErrorCode code, const char* message);

}  // namespace py_ort::jsep
