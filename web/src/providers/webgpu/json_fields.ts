// WebGPU's types of the JSON fields in messages: see page/json_fields.ts.
import type * as caches from './buffer_cache';
import type * as device from './device';
import type * as user from './user_kernels/definition';

/** DeviceOpened.info. */
export type DeviceDescription = device.DeviceDescription;

/** In Stats.json. */
export type BufferCaches = caches.BufferCacheStats;
export type CacheStats = caches.CacheStats;

/** In a list Plan.user_kernels; JsepCreateKernel.user_kernel. */
export type UserDefinition = user.UserDefinition;
export type UserInput = user.UserInput;
export type UserOutput = user.UserOutput;
export type UserAttribute = user.UserAttribute;
export type UserUniform = user.UserUniform;
export type UserConstant = user.UserConstant;
