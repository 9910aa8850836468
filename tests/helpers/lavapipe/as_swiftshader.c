// Preloaded into Chromium, it has lavapipe (DRIVER) where SwiftShader would be: Dawn, Chromium's WebGPU, knows one software
// driver by its ids, and opens it beside the browser's binary. Compositing and WebGL keep SwiftShader, which they get by
// the Vulkan loader.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

typedef void (*Function)(void);
typedef Function (*Lookup)(void *instance, const char *name);

// The beginning of VkPhysicalDeviceProperties.
struct Properties {
  uint32_t api_version, driver_version, vendor_id, device_id, device_type;
};
// VkPhysicalDeviceProperties2.
struct Properties2 {
  int32_t type;
  void *next;
  struct Properties properties;
};

enum { kGoogle = 0x1ae0, kSwiftShader = 0xc0de, kCpu = 4 };

static void (*properties_of_driver)(void *device, struct Properties *out);
static void (*properties2_of_driver)(void *device, struct Properties2 *out);

static void disguise(struct Properties *properties) {
  properties->vendor_id = kGoogle;
  properties->device_id = kSwiftShader;
  properties->device_type = kCpu;
}

static void get_properties(void *device, struct Properties *out) {
  properties_of_driver(device, out);
  disguise(out);
}

static void get_properties2(void *device, struct Properties2 *out) {
  properties2_of_driver(device, out);
  disguise(&out->properties);
}

static Lookup driver_lookup(void) {
  static Lookup lookup;
  if (lookup) return lookup;
  void *driver = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
  if (!driver) return NULL;
  int (*negotiate)(uint32_t *version) = dlsym(driver, "vk_icdNegotiateLoaderICDInterfaceVersion");
  uint32_t version = 5;
  if (negotiate) negotiate(&version);
  return lookup = (Lookup)dlsym(driver, "vk_icdGetInstanceProcAddr");
}

Function vkGetInstanceProcAddr(void *instance, const char *name) {
  if (strcmp(name, "vkGetInstanceProcAddr") == 0) return (Function)vkGetInstanceProcAddr;
  Lookup lookup = driver_lookup();
  Function found = lookup ? lookup(instance, name) : NULL;
  if (!found) return NULL;
  if (strcmp(name, "vkGetPhysicalDeviceProperties") == 0) {
    properties_of_driver = (void (*)(void *, struct Properties *))found;
    return (Function)get_properties;
  }
  if (strcmp(name, "vkGetPhysicalDeviceProperties2") == 0 || strcmp(name, "vkGetPhysicalDeviceProperties2KHR") == 0) {
    properties2_of_driver = (void (*)(void *, struct Properties2 *))found;
    return (Function)get_properties2;
  }
  return found;
}

// Callers that open SwiftShader directly get this library; the Vulkan loader gets SwiftShader.
void *dlopen(const char *file, int flags) {
  static void *(*open_library)(const char *, int);
  if (!open_library) open_library = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
  Dl_info caller, here;
  const int asked = file && strstr(file, "libvk_swiftshader.so") && dladdr(__builtin_return_address(0), &caller) &&
                    !(caller.dli_fname && strstr(caller.dli_fname, "libvulkan"));
  if (asked && dladdr((void *)disguise, &here)) file = here.dli_fname;
  return open_library(file, flags);
}
