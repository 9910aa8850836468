// A provider with devices, as all others know it. It is a folder: in web/src/providers, or named by PY_ORT_PROVIDERS
// when something is built. Bundles find it by virtual modules (web/bundling.mjs), and no other code imports from it.
// Defaults that its files export:
//   index.ts                  a ProviderModule: options, and devices on which sessions are made
//   page.ts, if any           a PageSide: what pages know of it before its code is loaded
//   generate/index.ts, if any a DevicePartOf (generate/device_part.ts), for generate.mjs
// manifest.ts, if any, exports `kernels` and `sources`: kernels.NAME.json, for Python.
import type { TileTable } from '../contract/kernel';
import { RuntimeError } from '../errors';
import { ErrorCode } from '../schema';
import type { GivenOptions } from './options';
import type { DeviceProvider } from './provider';
import type { DeviceSession } from './session';

/** What options mean, as far as others ask; the rest is the provider's own. */
export interface DeviceSettings {
  readonly deviceId: number;
  /** What a device is opened with. */
  readonly device: object;
  /** Whether the device stays open without sessions. */
  readonly preserveDevice: boolean;
  readonly enableGraphCapture: boolean;
}

/** An open device that sessions can be made on. */
export interface OpenDevice extends DeviceProvider {
  /** @param userKernels JSON: see PlanInfo. */
  session(settings: DeviceSettings, userKernels: string, tiles?: TileTable): DeviceSession;
}

/** The devices of a page or worker, by the ids that sessions name them by (`deviceId`). */
export interface Devices {
  /** Opened once; opened anew when it was lost. */
  open(id: number, options?: object): Promise<OpenDevice>;
  /** A session, or a kernel of its own, is at work on this device until it leaves. */
  enter(id: number, options: object, preserve: boolean): Promise<OpenDevice>;
  leave(id: number, device: DeviceProvider): void;
  /** Those that are open now. */
  all(): Promise<ReadonlyMap<number, OpenDevice>>;
  /** Makes a device of the page's own the device `id`; it may be that already. */
  offer?(id: number, source: object): void;
}

export interface ProviderModule {
  readonly name: string;
  /** Throws invalid_argument for an option or a value that is none. */
  settings(options?: GivenOptions): DeviceSettings;
  devices(log: (severity: number, text: string) => void): Devices;
}

/** What pages know of a provider while its code is not loaded. */
export interface PageSide {
  /** Whether there seems to be a device: sessions on one do without files that are fetched early for the others. */
  isHere(): boolean;
  /** True if this browser has a device in a page's own thread only. */
  needsPage?(): boolean;
  /** Options by what `env` has under the provider's name. @param given whether the device is the page's own. */
  optionsOf(flags: object | undefined, given: boolean): GivenOptions;
  /** The members of its entry in `executionProviders` that are objects of the page's own, not options. */
  readonly objects: readonly string[];
  /** The page's own device among the members of such an entry, or of `env`. */
  sourceOf(given: { readonly [member: string]: unknown }): object | undefined;
}

/** A member that only some providers have, of one that has it. @throws not_implemented */
export function capability<T>(member: T | undefined, provider: string, what: string): T {
  if (member !== undefined) return member;
  throw new RuntimeError(ErrorCode.not_implemented, `provider "${provider}" has no ${what}`, { provider });
}
