// A provider with devices: its interface to all other code. It is a folder: in web/src/providers, or named by
// PY_ORT_PROVIDERS in a build. Bundles find it by virtual modules (web/bundling.mjs), and no other code imports from
// it. Defaults that its files export:
//   index.ts                  a ProviderModule: options, and devices on which sessions are made
//   page.ts, if any           a PageSide: what pages need before the provider's code is loaded generate/index.ts, if
//       any a DevicePartOf (generate/device_part.ts), for generate.mjs manifest.ts, if any, exports `kernels` and
//       `sources`: kernels.NAME.json, for Python.
import type { TileTable } from '../contract/kernel';
import { RuntimeError } from '../errors';
import { ErrorCode } from '../schema';
import type { GivenOptions } from './options';
import type { DeviceProvider } from './provider';
import type { DeviceSession } from './session';

/** The settings that other code reads; the rest is the provider's own. */
export interface DeviceSettings {
  readonly deviceId: number;
  /** The options with which a device is opened. */
  readonly device: object;
  /** True if the device stays open without sessions. */
  readonly preserveDevice: boolean;
  readonly enableGraphCapture: boolean;
}

/** An open device for sessions. */
export interface OpenDevice extends DeviceProvider {
  /** @param userKernels JSON: see PlanInfo. */
  session(settings: DeviceSettings, userKernels: string, tiles?: TileTable): DeviceSession;
}

/** The devices of a page or worker, by the ids of the option `deviceId`. */
export interface Devices {
  /** Opens the device once, and again after it was lost. */
  open(id: number, options?: object): Promise<OpenDevice>;
  /** Opens the device for a session, or for a single kernel, which uses it until it leaves. */
  enter(id: number, options: object, preserve: boolean): Promise<OpenDevice>;
  leave(id: number, device: DeviceProvider): void;
  /** The open devices. */
  all(): Promise<ReadonlyMap<number, OpenDevice>>;
  /** Makes one of the page's own devices the device `id`; it may already be that. */
  offer?(id: number, source: object): void;
}

export interface ProviderModule {
  readonly name: string;
  /** Throws invalid_argument for an unknown option or value. */
  settings(options?: GivenOptions): DeviceSettings;
  devices(log: (severity: number, text: string) => void): Devices;
}

/** The interface for pages while the provider's code is not loaded. */
export interface PageSide {
  /**
   * True if there seems to be a device: sessions on it need none of the files that are fetched early for the others.
   */
  isHere(): boolean;
  /** True if this browser has a device in a page's own thread only. */
  needsPage?(): boolean;
  /** Options by what `env` has under the provider's name. @param given whether the device is the page's own. */
  optionsOf(flags: object | undefined, given: boolean): GivenOptions;
  /** The members of its entry in `executionProviders` that are the page's own objects, not options. */
  readonly objects: readonly string[];
  /** The page's own device among the members of such an entry, or of `env`. */
  sourceOf(given: { readonly [member: string]: unknown }): object | undefined;
}

/** An optional member of a provider. @throws not_implemented if it has none */
export function capability<T>(member: T | undefined, provider: string, what: string): T {
  if (member !== undefined) return member;
  throw new RuntimeError(ErrorCode.not_implemented, `provider "${provider}" has no ${what}`, { provider });
}
