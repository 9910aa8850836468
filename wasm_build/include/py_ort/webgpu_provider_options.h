/* Options of the WebGPU provider, named as onnxruntime names them: a struct with defaults, and the same as key/value
 * strings. Plain C. A zeroed struct has the defaults. The page hands its strings over and reads what they mean; Python
 * reads the table of keys and values, which the build writes to options.webgpu.json. So a key, a value or a default is
 * declared once, in src/ep/webgpu_provider_options.cc.
 *
 * onnxruntime's struct has handles too (a WGPUInstance, a WGPUAdapter, a WGPUDevice, Dawn's table of functions). A page
 * has JavaScript objects in their place: the provider { name: 'webgpu', device } of a session, or env.webgpu.device,
 * with a GPUDevice of the page's own; from Python `device_id`, with power_preference and force_fallback_adapter, opens
 * one. There is no table: a browser has one WebGPU. */
#ifndef PY_ORT_WEBGPU_PROVIDER_OPTIONS_H_
#define PY_ORT_WEBGPU_PROVIDER_OPTIONS_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In every enumeration 0 is the default, which the table of options tells. */

typedef enum OrtWebGPULayout {
  ORT_WEBGPU_LAYOUT_DEFAULT = 0, /* NHWC */
  ORT_WEBGPU_LAYOUT_NCHW = 1,
  ORT_WEBGPU_LAYOUT_NHWC = 2
} OrtWebGPULayout;

/* What becomes of a GPU buffer that is no longer needed. The default of uniforms is `simple`, as in onnxruntime since
 * its WebGPU provider is complete; at first it was lazyRelease there, by which nothing is used twice. */
typedef enum OrtWebGPUBufferCacheMode {
  ORT_WEBGPU_BUFFER_CACHE_DEFAULT = 0,      /* storage: bucket; uniform: simple; others: disabled */
  ORT_WEBGPU_BUFFER_CACHE_DISABLED = 1,     /* it is destroyed at once */
  ORT_WEBGPU_BUFFER_CACHE_LAZY_RELEASE = 2, /* it is destroyed at the end of the next run */
  ORT_WEBGPU_BUFFER_CACHE_SIMPLE = 3,       /* it is kept for a request of exactly its size */
  ORT_WEBGPU_BUFFER_CACHE_BUCKET = 4 /* sizes are rounded up to buckets, and it is kept for a request of its bucket */
} OrtWebGPUBufferCacheMode;

typedef enum OrtWebGPUValidationMode {
  ORT_WEBGPU_VALIDATION_DEFAULT = 0,   /* basic */
  ORT_WEBGPU_VALIDATION_DISABLED = 1,  /* GPU errors are logged, and fail nothing */
  ORT_WEBGPU_VALIDATION_WGPU_ONLY = 2, /* what WebGPU itself finds fails the run */
  ORT_WEBGPU_VALIDATION_BASIC = 3,     /* and dispatches are checked when they are resolved */
  ORT_WEBGPU_VALIDATION_FULL = 4       /* and every run has error scopes of its own */
} OrtWebGPUValidationMode;

typedef enum OrtWebGPUPowerPreference {
  ORT_WEBGPU_POWER_DEFAULT = 0,
  ORT_WEBGPU_POWER_LOW = 1,
  ORT_WEBGPU_POWER_HIGH_PERFORMANCE = 2
} OrtWebGPUPowerPreference;

typedef struct OrtWebGPUProviderOptions {
  uint32_t device_id; /* 0: the default context, kept by the provider; above: one of the user's own */
  int32_t preferred_layout;
  int32_t enable_graph_capture;
  int32_t storage_buffer_cache_mode;
  int32_t uniform_buffer_cache_mode;
  int32_t query_resolve_buffer_cache_mode;
  int32_t default_buffer_cache_mode;
  int32_t validation_mode;
  int32_t power_preference;         /* of the adapter that a context is opened with */
  int32_t force_fallback_adapter;   /* likewise */
  int32_t subgroup_matrix;          /* likewise: whether its subgroup matrices are asked for; not onnxruntime's */
  int32_t preserve_device;          /* a context above 0 outlives its last session */
  const char* force_cpu_node_names; /* one on each line; null: none. Owned by the options: append sets it */
} OrtWebGPUProviderOptions;

#define ORT_WEBGPU_EXPORT __attribute__((used, visibility("default")))

/* Zeros: the defaults. Released with ort_webgpu_options_release. */
ORT_WEBGPU_EXPORT OrtWebGPUProviderOptions* ort_webgpu_options_create(void);
/* Sets `count` options from strings, as SessionOptionsAppendExecutionProvider_WebGPU takes them beside its struct; keys
 * may have the prefix "ep.webgpuexecutionprovider.". 1: done; 0: ort_last_error says what may be, and those before the
 * wrong one are set. */
ORT_WEBGPU_EXPORT int ort_webgpu_options_append(OrtWebGPUProviderOptions* options, const char* const* keys,
                                                const char* const* values, size_t count);
/* An option as a string, valid until the next call; null for an unknown key. */
ORT_WEBGPU_EXPORT const char* ort_webgpu_options_get(const OrtWebGPUProviderOptions* options, const char* key);
ORT_WEBGPU_EXPORT void ort_webgpu_options_release(OrtWebGPUProviderOptions* options);
/* All options, as JSON [{"key", "kind": "number" | "flag" | "choice" | "text", "values", "default"}]. */
ORT_WEBGPU_EXPORT const char* ort_webgpu_options_table(void);

#ifdef __cplusplus
}
#endif

#endif
