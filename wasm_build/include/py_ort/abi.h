// The core's C ABI, called by the page (web/src/core). Handles are small integers above 0; 0 means failure, and
// ort_last_error() gives the reason. The core owns memory that it receives, even if the call fails, and keeps owning
// memory that it hands out. Addresses, sizes and ids are unsigned: in JavaScript `x >>> 0`. Any call may grow the
// memory: read HEAPU8 again afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

#define ORT_EXPORT extern "C" __attribute__((used, visibility("default")))

// The last failure, as JSON {"code": ErrorCode, "message": ..., "node": ..., "op_type": ..., "provider": ...}; "" after
// a success.
ORT_EXPORT const char* ort_last_error();
// Two addresses of texts: the name and operator of the node whose CPU kernel is being made or is running; null if there
// is none. For a page to which a call has thrown: after a trap the frames are still there, but the core is unusable.
ORT_EXPORT const char* const* ort_kernel_at_work();
// The CPU kernels, as JSON [{"domain", "op_type", "types"}]. The build writes them to the manifest by which Python
// places nodes.
ORT_EXPORT const char* ort_kernel_manifest();
ORT_EXPORT void* ort_malloc(size_t size);  // 64-byte aligned; null when out of memory
ORT_EXPORT void ort_free(void* pointer);

// Bytes of all tensors on the heap, in two words: the current number, and the peak since the last reset. With `reset`
// set, the peak is reset after it is read.
ORT_EXPORT const uint32_t* ort_tensor_bytes(int reset);

// Continues a CRC-32 of zlib with these bytes. The sum is complemented neither before nor after.
ORT_EXPORT uint32_t ort_crc32(uint32_t sum, const void* bytes, size_t size);

// --- micro-kernels (microkernels.h), by Module.addMicrokernels (microkernels/add.js)
// Their names, one on each line, in the order of their table.
ORT_EXPORT const char* ort_microkernel_names();
// From now on the micro-kernels of relaxed SIMD (1) or of plain SIMD (0) are functions of the core's table, starting at
// `first`, in the order of their names.
ORT_EXPORT void ort_microkernels_add(int relaxed, uint32_t first);
// Selects the micro-kernels to run from now on: relaxed SIMD's (1), plain SIMD's (0), or none (-1), for sessions whose
// nodes run none (ort_session_runs_microkernels). Also sets the number of threads. With more than one,
// Module.shareMicrokernel(index, function, arguments, scratch_bytes, units) has large work done. It returns 1, or 0
// without memory.
ORT_EXPORT void ort_microkernels_use(int relaxed, int threads);
// Multiplies some zeros, for a few milliseconds. The browser then optimizes the product, in which most models spend
// their time, while the page is still fetching the weights.
ORT_EXPORT void ort_microkernels_warm(int relaxed);

// --- sessions
// Reads and verifies a plan (FlatBuffers, kept by the core). Makes no kernel yet.
ORT_EXPORT uint32_t ort_session_create(void* plan, size_t size);
// True if nodes of the session may run micro-kernels: these must be added before ort_session_prepare.
ORT_EXPORT int ort_session_runs_microkernels(uint32_t session);
// Returns 1 if nodes of it have kernels of rare_kernels.wasm, which must be instantiated before ort_session_prepare.
ORT_EXPORT int ort_session_has_rare_kernels(uint32_t session);
// Where the page shall write the bytes of weight `index` (null if the heap is none of its places, and out of memory).
ORT_EXPORT void* ort_session_weight(uint32_t session, uint32_t index);
// Makes weight `index` (on the heap) the same as weight `other` of session `owner`, which has the same type and size.
// Both read the same bytes, and the last session to end frees them. Replaces ort_session_weight.
ORT_EXPORT int ort_session_share_weight(uint32_t session, uint32_t index, uint32_t owner, uint32_t other);
// Weight `index` is on its device, where the page put it, under this id.
ORT_EXPORT int ort_session_weight_on_device(uint32_t session, uint32_t index, uint32_t id);
// All weights are there: makes the kernels (jsepCreateKernel for those on devices). Returns 1 on success.
ORT_EXPORT int ort_session_prepare(uint32_t session);
ORT_EXPORT void ort_session_release(uint32_t session);

// --- runs. A session may have several open runs, each with its own values.
ORT_EXPORT uint32_t ort_run_begin(uint32_t session);
// Feed `input` of the main graph. dims: int32[rank]. data: from ort_malloc (size 0: may be null); strings are uint32
// length + UTF-8 for each element. An input that is read both on the heap and on a device gets both calls.
ORT_EXPORT int ort_run_feed(uint32_t run, uint32_t input, int dtype, uint32_t rank, const int32_t* dims, void* data,
                            size_t size);
// `provider`: the feed's device, by index into Plan.providers.
ORT_EXPORT int ort_run_feed_device(uint32_t run, uint32_t input, uint32_t provider, int dtype, uint32_t rank,
                                   const int32_t* dims, uint32_t id);
// An input that is a sequence (kind 1) or an optional (kind 2): the following feeds of this input are its elements. An
// optional sequence is two such calls. `dtype`: the elements' type, in case there are no elements.
ORT_EXPORT int ort_run_feed_container(uint32_t run, uint32_t input, int kind, int dtype);
// Walks the plan. Returns 1 on success. Only this call may suspend: inside jsepCopyAsync and decodeImage, and for a
// turn of the event loop every half second, so that a cancellation can arrive. Between nodes it checks ort_run_cancel's
// flag. In JavaScript: let done = _ort_run_execute(run); if (Asyncify.currData) done = await Asyncify.whenDone();
// Asyncify keeps one suspended stack. While a run is suspended, the core refuses another ort_run_execute: the page
// queues them. All other calls are allowed meanwhile.
ORT_EXPORT int ort_run_execute(uint32_t run);
ORT_EXPORT void ort_run_cancel(uint32_t run);
// Before ort_run_execute: record the nodes' times. After it: [0] is the number of executed nodes. Then follow four
// numbers for each node, in the order of their ends: its index among all nodes of the plan (graph by graph), and three
// times in ms of performance.now(): the node's start, the time when its inputs were where it reads them, and its end.
// The numbers are valid until ort_run_end. A node on a device is only resolved here.
ORT_EXPORT void ort_run_profile(uint32_t run);
ORT_EXPORT const double* ort_run_times(uint32_t run);
// After ort_run_execute: 1 if no CPU node read anything that depends on the feeds' contents. Equal shapes then mean
// equal work of devices: the page may replay its recording without the core.
ORT_EXPORT int ort_run_replayable(uint32_t run);
// Replaces ort_run_execute if there is a recording of an earlier run, whose one segment was submitted. Runs only the
// CPU nodes that follow from feeds. Returns uint32 words: the number of inputs of nodes on devices that may have
// changed (UINT32_MAX: unknown, walk the plan). Then for each: kernel, input index, dtype, location (cpu: a host input;
// device: `data` is the address of the bytes to upload; none: only its shape is read), data, bytes, rank, dims... Feeds
// on devices are not included, and results of devices are assumed to have that run's shapes. Valid until ort_run_end.
// Null: a node failed.
ORT_EXPORT const uint32_t* ort_run_refresh(uint32_t run);
// Describes output `output` of the main graph as uint32 words: kind 0, dtype, location, data (address or id), bytes,
// rank, dims... A sequence: kind 1, element count, then the same words for each element. An optional: kind 2, 0 or 1,
// then its element's words. For a tensor on a device `bytes` counts its elements in the device's form (ElementForm of
// the plan). The words are valid until the next call of this function, the data until ort_run_end.
ORT_EXPORT const uint32_t* ort_run_output(uint32_t run, uint32_t output);
// Frees the run's values: jsepFree for those on devices. A suspended run is cancelled, and freed when it resumes.
ORT_EXPORT void ort_run_end(uint32_t run);

// --- called by the page inside jsepRun(provider, kernel, context). `context` points to uint32 words:
//   [0] input count, [1] output count,
//   then per input: dtype, location, data (address, id, or 0), bytes, rank, dims...,
//   then per output: 1 if wanted, else 0. An omitted input has dtype 0; a shape input location 0, data 0.
// Gives output `index` its shape and dtype and returns the id of its memory (made with jsepAlloc); 0 on failure.
// dtype 0: the plan's.
ORT_EXPORT uint32_t ort_jsep_output(uint32_t context, uint32_t index, int dtype, uint32_t rank, const int32_t* dims);
// Output `index` is input `input` under another shape: no copy.
ORT_EXPORT int ort_jsep_output_view(uint32_t context, uint32_t index, uint32_t input, uint32_t rank,
                                    const int32_t* dims);
// The reason why jsepRun will fail (UTF-8, copied).
ORT_EXPORT void ort_jsep_error(int code, const char* message);

// --- the JSEP seam: Module.jsepInit(backend, functions) installs these functions. With separate functions,
// jsepInit(backend, alloc, free, copy, copyAsync, createKernel, releaseKernel, run), they are the functions of
// onnxruntime's contract, which has simpler arguments (src/ep/jsep_contract.js). `provider`: selects the device, by
// index into the providers of the current session's plan. jsepAlloc(provider, size) -> id (0: failed)
//     size: a multiple of 16, above 0 jsepFree(provider, id) ids of jsepAlloc only; the page keeps memory that it
//         allocated itself jsepCopy(provider, src, dst, size, upload, dtype, blocks)
//     upload: src is an address; dst is an id. The page copies the bytes before it returns otherwise both are ids;
//         `blocks` points to uint32 words: count, source offset and step, target offset and step. `count` blocks of
//         `size` bytes are copied; all are multiples of the element's size there jsepCopyAsync(provider, id, pointer,
//         size)
//     undefined: the bytes are in the heap; a promise: suspends until it is settled jsepCreateKernel(provider, op_type,
//         id, attributes*, attributes_size, domain) -> 0, or an ErrorCode op_type, domain: JavaScript strings
//         jsepReleaseKernel(provider, id) jsepRun(provider, id, context) -> 0, or an ErrorCode ImageDecoder, on the CPU
//         provider, lets the page decode: Module.decodeImage(encoded, size, pixel_format) -> a promise of {height,
//         width, channels, pixels} An exception (or a rejected promise) is a failure too; the first text of
//         ort_jsep_error is its message. Copies to and from the CPU are multiples of 4 bytes. Elements that have
//         another form on a device (ElementForm of the plan) are converted by the core, both ways: the page moves plain
//         bytes.
