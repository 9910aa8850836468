// Types of the JSON fields in messages. Python's are in py_ort/wire/json_fields.py; a test compares them. Types that
// depend on the provider are in a file of this name in its folder.
import type * as cpu from '../core/microkernels';
import type * as counters from '../device/counters';
import type { GivenOptions } from '../device/options';
import type * as profiler from '../device/profile';
import type * as run from '../session/run_options';
import type * as generate from '../generate/generate_options';
import type * as times from '../session/node_times';
import type * as session from '../session/session';
import type * as state from '../session/state';
import type * as values from '../wire/values';
import type * as stats from './stats';

/** OpenDevice.options. */
export type DeviceOptions = Opening & { readonly given?: GivenOptions };
export type Opening = NonNullable<SessionOptions['opening']>;

/** CreateSession.options. */
export type SessionOptions = Pick<
  session.SessionOptions,
  'providerOptions' | 'threads' | 'opening' | 'tiles' | 'trace' | 'scope'
>;

/** SessionCreated.info. */
export type SessionInfo = state.SessionInfo;
export type Counters = counters.Counters;
export type CpuMeans = cpu.CpuMeans;

/** Run.options. */
export type RunOptions = Pick<run.RunOptions, 'bind' | 'graphId' | 'profile'>;
export type BoundOutput = values.TensorOnGpu;

/** RunResult.info: of a session's run, or of a single kernel, whose compile_ms is unknown. */
export type RunInfo = Omit<run.RunInfo, 'compile_ms'> &
  Partial<Pick<run.RunInfo, 'compile_ms'>> & {
    /** For a profiled run, on the worker's clock: the time before and after it on Python's clock is the bridge's. */
    readonly received_ms?: number;
    readonly answered_ms?: number;
  };
export type Dispatch = times.DispatchTime;
export type ProductTiling = times.ProductTiling;
export type GpuTime = profiler.GpuTime;

/** Generate.options. */
export type GenerateOptions = generate.GenerateOptions;
export type DecoderNames = generate.DecoderNames;

/** Generated.info. */
export type GenerateInfo = generate.GenerateInfo;

/** Stats.json. */
export type SessionStats = stats.SessionStats;
export type SessionMemory = stats.SessionMemory;
export type MemoryUse = stats.MemoryUse;
export type PageStats = stats.PageStats;
export type DeviceStats = stats.DeviceStats;
export type MicrokernelStats = cpu.MicrokernelStats;
