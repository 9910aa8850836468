/* Options of the WebGPU provider, named as onnxruntime names them: a struct with defaults, and the same as key/value
 * strings. Plain C. The page hands its strings over and reads what they mean; Python reads the table of keys and
 * values, which the build writes to options.webgpu.json. So a key, a value or a default is declared once, in
 * src/ep/webgpu_provider_options.cc. */
#ifndef PY_ORT_WEBGPU_PROVIDER_OPTIONS_H_
#define PY_ORT_WEBGPU_PROVIDER_OPTIONS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum OrtWebGPULayout { ORT_WEBGPU_LAYOUT_NCHW = 0, ORT_WEBGPU_LAYOUT_NHWC = 1 } OrtWebGPULayout;

/* What becomes of a GPU buffer that is no longer needed. */
typedef enum OrtWebGPUBufferCacheMode {
  ORT_WEBGPU_BUFFER_CACHE_DISABLED = 0,     /* it is destroyed at once */
  ORT_WEBGPU_BUFFER_CACHE_LAZY_RELEASE = 1, /* it is destroyed at the end of the next run */
  ORT_WEBGPU_BUFFER_CACHE_SIMPLE = 2,       /* it is kept for a request of exactly its size */
  ORT_WEBGPU_BUFFER_CACHE_BUCKET = 3 /* sizes are rounded up to buckets, and it is kept for a request of its bucket */
} OrtWebGPUBufferCacheMode;

typedef enum OrtWebGPUValidationMode {
  ORT_WEBGPU_VALIDATION_DISABLED = 0,  /* GPU errors are logged, and fail nothing */
  ORT_WEBGPU_VALIDATION_WGPU_ONLY = 1, /* what WebGPU itself finds fails the run */
  ORT_WEBGPU_VALIDATION_BASIC = 2,     /* and dispatches are checked when they are resolved */
  ORT_WEBGPU_VALIDATION_FULL = 3       /* and every run has error scopes of its own */
} OrtWebGPUValidationMode;

typedef enum OrtWebGPUPowerPreference {
  ORT_WEBGPU_POWER_UNDEFINED = 0,
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
  int32_t preserve_device;          /* a context above 0 outlives its last session */
  const char* force_cpu_node_names; /* one on each line; owned by the options */
} OrtWebGPUProviderOptions;

#define ORT_WEBGPU_EXPORT __attribute__((used, visibility("default")))

/* The defaults. Released with ort_webgpu_options_release. */
ORT_WEBGPU_EXPORT OrtWebGPUProviderOptions* ort_webgpu_options_create(void);
/* Sets an option from strings; the key may have the prefix "ep.webgpuexecutionprovider.". 1: done; 0: ort_last_error
 * says what may be. */
ORT_WEBGPU_EXPORT int ort_webgpu_options_set(OrtWebGPUProviderOptions* options, const char* key, const char* value);
/* An option as a string, valid until the next call; null for an unknown key. */
ORT_WEBGPU_EXPORT const char* ort_webgpu_options_get(const OrtWebGPUProviderOptions* options, const char* key);
ORT_WEBGPU_EXPORT void ort_webgpu_options_release(OrtWebGPUProviderOptions* options);
/* All options, as JSON [{"key", "kind": "number" | "flag" | "choice" | "text", "values", "default"}]. */
ORT_WEBGPU_EXPORT const char* ort_webgpu_options_table(void);

#ifdef __cplusplus
}
#endif

#endif
