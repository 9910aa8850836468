#include "ep/jsep.h"

#include <emscripten.h>

#include <array>

// Names that emcc keeps: the imports of core.wasm. Addresses and ids are unsigned: above 2 GiB they need `>>> 0`.
extern "C" {
EM_JS(uint32_t, jsep_alloc, (uint32_t provider, size_t size), {
  try {
    return Module.jsepAlloc(provider, size >>> 0);
  } catch (error) {
    Module.jsepCaught(error);
    return 0;
  }
});
EM_JS(void, jsep_free, (uint32_t provider, uint32_t id), {
  try {
    Module.jsepFree(provider, id >>> 0);
  } catch (error) {
    Module.jsepCaught(error);
  }
});
EM_JS(int, jsep_copy,
      (uint32_t provider, uint32_t source, uint32_t target, size_t size, int upload, int dtype, const void* blocks), {
  try {
    Module.jsepCopy(provider, source >>> 0, target >>> 0, size >>> 0, upload !== 0, dtype, blocks >>> 0);
    return 1;
  } catch (error) {
    Module.jsepCaught(error);
    return 0;
  }
});
// Suspends only if the page returns a promise.
EM_JS(int, jsep_copy_async, (uint32_t provider, uint32_t id, void* target, size_t size), {
  return Asyncify.handleSleep(function (wake) {
    var failed = function (error) {
      Module.jsepCaught(error);
      wake(0);
    };
    var pending;
    try {
      if (id) pending = Module.jsepCopyAsync(provider, id >>> 0, target >>> 0, size >>> 0);
      else pending = new Promise(function (resolve) { setTimeout(resolve, 0); });
    } catch (error) {
      return failed(error);
    }
    if (pending && pending.then) pending.then(function () { wake(1); }, failed);
    else wake(1);
  });
});
// The page keeps the pixels until there is memory for them here.
EM_JS(int, jsep_decode_image, (const void* encoded, size_t size, const char* format, void* picture), {
  return Asyncify.handleSleep(function (wake) {
    var failed = function (error) {
      Module.jsepCaught(error);
      wake(0);
    };
    if (!Module.decodeImage) return failed(new Error('the page installed no decoder of images (Module.decodeImage)'));
    Module.decodeImage(encoded >>> 0, size >>> 0, UTF8ToString(format)).then(function (image) {
      HEAPU32.set([image.height, image.width, image.channels], picture >>> 2);
      Module.pixels = image.pixels;
      wake(1);
    }, failed);
  });
});
EM_JS(void, jsep_take_pixels, (void* target), {
  HEAPU8.set(Module.pixels, target >>> 0);
  Module.pixels = undefined;
});
EM_JS(double, jsep_now, (), { return performance.now(); });
EM_JS(int, jsep_create_kernel,
      (uint32_t provider, const char* op_type, uint32_t id, const void* attributes, size_t size, const char* domain), {
  try {
    const op = UTF8ToString(op_type), of = UTF8ToString(domain);
    return Module.jsepCreateKernel(provider, op, id >>> 0, attributes >>> 0, size >>> 0, of) | 0;
  } catch (error) {
    Module.jsepCaught(error);
    return 1;
  }
});
EM_JS(void, jsep_release_kernel, (uint32_t provider, uint32_t id), {
  try {
    Module.jsepReleaseKernel(provider, id >>> 0);
  } catch (error) {
    Module.jsepCaught(error);
  }
});
EM_JS(int, jsep_run, (uint32_t provider, uint32_t id, const void* context), {
  try {
    return Module.jsepRun(provider, id >>> 0, context >>> 0) | 0;
  } catch (error) {
    Module.jsepCaught(error);
    return 1;
  }
});
EM_JS(int, jsep_present, (), { return Module.jsepRun ? 1 : 0; });
}

namespace py_ort::jsep {
namespace {

Status& last_error() {
  static Status error;
  return error;
}

// The page's own message takes precedence, with its code or, without one, the returned code.
Status failure(int code, std::string_view otherwise) {
  Status said = std::move(last_error());
  last_error() = {};
  if (!said.ok()) return said;
  const auto known =
      code > 0 && code <= static_cast<int>(ErrorCode::MAX) ? static_cast<ErrorCode>(code) : ErrorCode::fail;
  return {known, std::string(otherwise)};
}

}  // namespace

void set_error(ErrorCode code, const char* message) {
  if (last_error().ok()) last_error() = {code == ErrorCode::ok ? ErrorCode::fail : code, message ? message : ""};
}

Status alloc(const Provider& provider, size_t size, uint32_t& id) {
  last_error() = {};
  id = jsep_alloc(provider.index, size);
  return id ? Status{}
            : failure(static_cast<int>(ErrorCode::out_of_memory),
                      to_text("no buffer of ", size, " bytes on ", provider.name));
}

void free(const Provider& provider, uint32_t id) { jsep_free(provider.index, id); }

Status upload(const Provider& provider, const void* data, uint32_t id, size_t size, DType dtype) {
  last_error() = {};
  const auto address = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(data));
  if (jsep_copy(provider.index, address, id, size, 1, static_cast<int>(dtype), nullptr)) return {};
  return failure(1, to_text("copying ", size, " bytes to ", provider.name, " failed"));
}

Status copy(const Provider& provider, uint32_t source, uint32_t target, DType dtype, const Blocks& blocks) {
  last_error() = {};
  const std::array<uint32_t, 5> words = {
      static_cast<uint32_t>(blocks.count), static_cast<uint32_t>(blocks.source_offset),
      static_cast<uint32_t>(blocks.source_step), static_cast<uint32_t>(blocks.target_offset),
      static_cast<uint32_t>(blocks.target_step)};
  if (jsep_copy(provider.index, source, target, blocks.size, 0, static_cast<int>(dtype), words.data())) return {};
  return failure(1, to_text("copying ", blocks.count, " times ", blocks.size, " bytes on ", provider.name, " failed"));
}

Status download(const Provider& provider, uint32_t id, void* data, size_t size) {
  last_error() = {};
  if (jsep_copy_async(provider.index, id, data, size)) return {};
  return failure(1, to_text("copying ", size, " bytes from ", provider.name, " failed"));
}

void pause() { jsep_copy_async(0, 0, nullptr, 0); }
double now_ms() { return jsep_now(); }

Status decode_image(const uint8_t* encoded, size_t size, std::string_view format, Picture& out) {
  last_error() = {};
  const std::string name(format);
  if (jsep_decode_image(encoded, size, name.c_str(), &out)) return {};
  return failure(1, "the page could not decode the image");
}

void take_pixels(uint8_t* target) { jsep_take_pixels(target); }

Status create_kernel(const Provider& provider, uint32_t id, std::string_view domain, std::string_view op_type,
                     const uint8_t* attributes, size_t size) {
  if (!jsep_present())
    return invalid_graph("the plan has nodes for ", provider.name, ", but the page installed none (Module.jsepInit)");
  last_error() = {};
  const std::string op(op_type), of(domain);
  const int code = jsep_create_kernel(provider.index, op.c_str(), id, attributes, size, of.c_str());
  return code == 0 ? Status{} : failure(code, to_text(provider.name, " could not make the kernel"));
}

void release_kernel(const Provider& provider, uint32_t id) { jsep_release_kernel(provider.index, id); }

Status run(const Provider& provider, uint32_t id, const uint32_t* context) {
  last_error() = {};
  const int code = jsep_run(provider.index, id, context);
  return code == 0 && last_error().ok()
             ? Status{}
             : failure(code, to_text("the kernel on ", provider.name, " failed and did not say why"));
}

}  // namespace py_ort::jsep
