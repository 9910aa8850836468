// The core's C ABI, called by the page (web/src/core). Handles are small integers above 0; 0 means failed, and
// ort_last_error() says why. Memory handed to the core is the core's from then on, also when the call fails; memory it
// hands out stays its own. Addresses, sizes and ids are unsigned: in JavaScript `x >>> 0`. Any call may grow the
// memory: look HEAPU8 up afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

#define ORT_EXPORT extern "C" __attribute__((used, visibility("default")))

// The last failure, as JSON {"code": ErrorCode, "message": ..., "node": ..., "op_type": ..., "provider": ...}; "" after
// a success.
ORT_EXPORT const char* ort_last_error();
// Two addresses of texts: name and operator of the node whose kernel on the CPU is being made or at work; null where
// none is. For a page to which a call has thrown: a trap leaves the frames where they were, and the core is of no use.
ORT_EXPORT const char* const* ort_kernel_at_work();
// The CPU kernels, as JSON [{"domain", "op_type", "types"}]; written to the manifest that Python places nodes by.
ORT_EXPORT const char* ort_kernel_manifest();
ORT_EXPORT void* ort_malloc(size_t size);  // 64-byte aligned; null when out of memory
ORT_EXPORT void ort_free(void* pointer);

// Bytes of all tensors on the heap: two words, now and the most since the last reset, which is after the answer when
// asked for.
ORT_EXPORT const uint32_t* ort_tensor_bytes(int reset);

// The CRC-32 of zlib goes on with these bytes, neither complemented before nor after.
ORT_EXPORT uint32_t ort_crc32(uint32_t sum, const void* bytes, size_t size);

// --- micro-kernels (microkernels.h), by Module.addMicrokernels (microkernels/add.js)
// The names of all, one on each line, in the order of their table.
ORT_EXPORT const char* ort_microkernel_names();
// Those of relaxed SIMD (1) or of plain SIMD (0) are functions of the core's table from here on, in that order.
ORT_EXPORT void ort_microkernels_add(int relaxed, uint32_t first);
// Which ones run from now on: relaxed SIMD's (1), plain SIMD's (0), or none (-1), for sessions without nodes that may
// run any (ort_session_runs_microkernels); and on how many threads. With more than one,
// Module.shareMicrokernel(index, function, arguments, scratch_bytes, units) has large work done: 1, or 0 without
// memory.
ORT_EXPORT void ort_microkernels_use(int relaxed, int threads);
// Multiplies some zeros, some milliseconds long. A browser then begins to optimize the product, which most models
// spend their time in, while their weights are on the way.
ORT_EXPORT void ort_microkernels_warm(int relaxed);

// --- sessions
// Reads and verifies a plan (FlatBuffers, kept by the core). Makes no kernel yet.
ORT_EXPORT uint32_t ort_session_create(void* plan, size_t size);
// Whether nodes of it may run micro-kernels: these must be there before ort_session_prepare.
ORT_EXPORT int ort_session_runs_microkernels(uint32_t session);
// Whether nodes of it have kernels of rare_kernels.wasm, which must be instantiated before ort_session_prepare.
ORT_EXPORT int ort_session_has_rare_kernels(uint32_t session);
// Where the page shall write the bytes of weight `index` (null if the heap is none of its places, and out of memory).
ORT_EXPORT void* ort_session_weight(uint32_t session, uint32_t index);
// Weight `index` (on the heap) is weight `other` of session `owner`, which has the same type and size: both read the
// same bytes, and the last session to go frees them. Instead of ort_session_weight.
ORT_EXPORT int ort_session_share_weight(uint32_t session, uint32_t index, uint32_t owner, uint32_t other);
// Weight `index` lies on its device, where the page put it, by this id.
ORT_EXPORT int ort_session_weight_on_device(uint32_t session, uint32_t index, uint32_t id);
// All weights are there: makes the kernels (jsepCreateKernel for those on devices). 1: done.
ORT_EXPORT int ort_session_prepare(uint32_t session);
ORT_EXPORT void ort_session_release(uint32_t session);

// --- runs. Several runs of one session may be under way; each has its own values.
ORT_EXPORT uint32_t ort_run_begin(uint32_t session);
// Feed `input` of the main graph. dims: int32[rank]. data: from ort_malloc (size 0: may be null), for strings uint32
// length + UTF-8 per element. An input wanted in both places gets both calls.
ORT_EXPORT int ort_run_feed(uint32_t run, uint32_t input, int dtype, uint32_t rank, const int32_t* dims, void* data,
                            size_t size);
// `provider`: whose device it is on, by index into Plan.providers.
ORT_EXPORT int ort_run_feed_device(uint32_t run, uint32_t input, uint32_t provider, int dtype, uint32_t rank,
                                   const int32_t* dims, uint32_t id);
// An input that is a sequence (kind 1) or an optional (kind 2): the feeds of this input that follow are its elements.
// An optional sequence is two such calls. `dtype`: of the elements, in case there are none.
ORT_EXPORT int ort_run_feed_container(uint32_t run, uint32_t input, int kind, int dtype);
// Walks the plan. 1: done. The one call that may suspend: inside jsepCopyAsync and decodeImage, and for a turn of the
// event loop every half second, so that a cancellation can arrive. Between its nodes it asks ort_run_cancel's flag.
// In JavaScript: let done = _ort_run_execute(run); if (Asyncify.currData) done = await Asyncify.whenDone();
// Asyncify keeps one suspended stack, so while a run is suspended another ort_run_execute is refused: the page queues
// them. All other calls are fine meanwhile.
ORT_EXPORT int ort_run_execute(uint32_t run);
ORT_EXPORT void ort_run_cancel(uint32_t run);
// Before ort_run_execute: keep the nodes' times. After it: [0] how many nodes were carried out, then for each, in the
// order of their ends, four numbers: its index among all nodes of the plan (graph by graph), and in ms of
// performance.now() when it began, when its inputs were where it reads them, and when it ended. The numbers are valid
// until ort_run_end. A node on a device is only resolved here.
ORT_EXPORT void ort_run_profile(uint32_t run);
ORT_EXPORT const double* ort_run_times(uint32_t run);
// After ort_run_execute: 1 when no CPU node read anything that depends on the feeds' contents, so that
// equal shapes mean equal work of devices: the page may replay its recording without the core.
ORT_EXPORT int ort_run_replayable(uint32_t run);
// Instead of ort_run_execute, where a recording of an earlier run is there whose one segment was submitted: carries out
// the CPU's nodes that follow from feeds, and no others. Gives uint32 words: how many inputs of nodes on devices
// may have changed by that (UINT32_MAX: it cannot be told, walk the plan), then for each its kernel, which
// input it is, dtype, location (cpu: a host input; device: `data` is the address of what would be uploaded; none: its
// shape is read), data, bytes, rank, dims... Feeds on devices are not among them, and what devices make is taken to
// have the shapes of that run. Valid until ort_run_end. Null: a node failed.
ORT_EXPORT const uint32_t* ort_run_refresh(uint32_t run);
// Describes output `output` of the main graph as uint32 words: kind 0, dtype, location, data (address or id),
// bytes, rank, dims... A sequence: kind 1, element count, then the same words for each element. An optional: kind 2, 0
// or 1, then its element's words. Of a tensor on a device `bytes` counts its elements as they lie there
// (ElementForm of the plan). The words are valid until the next call of this function, the data until ort_run_end.
ORT_EXPORT const uint32_t* ort_run_output(uint32_t run, uint32_t output);
// Frees the run's values: jsepFree for those on devices. A suspended run is cancelled, and freed when it wakes.
ORT_EXPORT void ort_run_end(uint32_t run);

// --- called by the page inside jsepRun(provider, kernel, context). `context` points to uint32 words:
//   [0] input count, [1] output count,
//   then per input: dtype, location, data (address, id, or 0), bytes, rank, dims...,
//   then per output: 1 if wanted, else 0. An omitted input has dtype 0; a shape input location 0, data 0.
// Gives output `index` its shape and dtype and returns the id of its memory (made with jsepAlloc); 0 on failure.
// dtype 0: the one that the plan says.
ORT_EXPORT uint32_t ort_jsep_output(uint32_t context, uint32_t index, int dtype, uint32_t rank, const int32_t* dims);
// Output `index` is input `input` under another shape: no copy.
ORT_EXPORT int ort_jsep_output_view(uint32_t context, uint32_t index, uint32_t input, uint32_t rank,
                                    const int32_t* dims);
// Why jsepRun is going to fail (UTF-8, copied).
ORT_EXPORT void ort_jsep_error(int code, const char* message);

// --- the JSEP seam: Module.jsepInit(backend, functions) installs what these call. With functions one by one,
// jsepInit(backend, alloc, free, copy, copyAsync, createKernel, releaseKernel, run), they are those of onnxruntime's
// contract, which has simpler arguments: src/ep/jsep_contract.js says which. `provider`: whose device is meant, by
// index into the providers of the plan of the session that the core works for.
//   jsepAlloc(provider, size) -> id (0: failed)
//     size: a multiple of 16, above 0
//   jsepFree(provider, id)
//     ids of jsepAlloc only; the page keeps the memory that it made itself
//   jsepCopy(provider, src, dst, size, upload, dtype, blocks)
//     upload: src is an address; dst is an id. The bytes are taken before it returns
//     else both are ids; `blocks` points to uint32 words: count, source offset and step, target offset and step.
//     `count` blocks of `size` bytes are copied; all are multiples of the element's size there
//   jsepCopyAsync(provider, id, pointer, size)
//     undefined: the bytes are in the heap; a promise: suspends until it is settled
//   jsepCreateKernel(provider, op_type, id, attributes*, attributes_size, domain) -> 0, or an ErrorCode
//     op_type, domain: JavaScript strings
//   jsepReleaseKernel(provider, id)
//   jsepRun(provider, id, context) -> 0, or an ErrorCode
// ImageDecoder, on the CPU provider, has the page decode:
//   Module.decodeImage(encoded, size, pixel_format) -> a promise of {height, width, channels, pixels}
// An exception (or a rejected promise) is a failure too; what ort_jsep_error said first is its message. Copies to and
// from the CPU are multiples of 4 bytes. Elements that have another form on a device
// (ElementForm of the plan) get it, and are given back, by the core: the page moves plain bytes.
