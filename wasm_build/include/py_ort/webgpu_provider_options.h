/*
 * Options of the WebGPU provider under onnxruntime's names: a struct with defaults, and the same as key/value strings.
 * Plain C. A zeroed struct has the defaults. Keys, values and defaults are those of
 * py_ort/providers/webgpu/webgpu_options.py; docs/options.md explains them. `force_cpu_node_names` has a name on each
 * line; null: none. The options own its text, which append sets.
 *
 * onnxruntime's struct has handles too (a WGPUInstance, a WGPUAdapter, a WGPUDevice, Dawn's table of functions). A page
 * has JavaScript objects instead: the provider { name: 'webgpu', device } of a session, or env.webgpu.device, with the
 * page's own GPUDevice. From Python `device_id`, with power_preference and force_fallback_adapter, opens a device.
 * There is no table: a browser has one WebGPU.
 */
#ifndef PY_ORT_WEBGPU_PROVIDER_OPTIONS_H_
#define PY_ORT_WEBGPU_PROVIDER_OPTIONS_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The struct and its enumerations: 0 is each enumeration's default. */
#include "py_ort/gen/webgpu_options_generated.h"

#define ORT_WEBGPU_EXPORT __attribute__((used, visibility("default")))

/* Zeros: the defaults. Release with ort_webgpu_options_release. */
ORT_WEBGPU_EXPORT OrtWebGPUProviderOptions* ort_webgpu_options_create(void);
/*
 * Sets `count` options from strings, like the strings of SessionOptionsAppendExecutionProvider_WebGPU; keys may have
 * the prefix "ep.webgpuexecutionprovider.". Returns 1 on success. Returns 0 after a wrong option: ort_last_error lists
 * the accepted ones, and the options before the wrong one are set.
 */
ORT_WEBGPU_EXPORT int ort_webgpu_options_append(OrtWebGPUProviderOptions* options, const char* const* keys,
                                                const char* const* values, size_t count);
/* An option as a string, valid until the next call; null for an unknown key. */
ORT_WEBGPU_EXPORT const char* ort_webgpu_options_get(const OrtWebGPUProviderOptions* options, const char* key);
ORT_WEBGPU_EXPORT void ort_webgpu_options_release(OrtWebGPUProviderOptions* options);

#ifdef __cplusplus
}
#endif

#endif
