// The devices of a session, one for each provider with devices in its plan. Feeds, outputs and recordings belong to the
// first one; tensors go to and from further ones through the core's heap.
import { capability, type DeviceSettings, type OpenDevice } from '../device/module';
import type { ProviderOptions } from '../device/options';
import type { RunErrors } from '../device/provider';
import { Recorder } from '../device/recorder';
import { Recording } from '../device/recording';
import type { DeviceSession } from '../device/session';
import type { TileTable } from '../contract/kernel';
import { cpuElementSize, hasGpuForm, typeName } from '../contract/elements';
import { RuntimeError } from '../errors';
import { ErrorCode } from '../schema';
import { notCapturable } from './capture';
import { type DispatchTime, withNodes } from './node_times';
import { DEVICE, type PlanInfo, type PlanNode } from './plan';
import { providerNamed, type Runtime } from './runtime';
import type { Timeline } from '../timeline';

interface Entered {
  readonly settings: DeviceSettings;
  readonly device: OpenDevice;
  readonly session: DeviceSession;
}

export interface DeviceWishes {
  readonly providerOptions?: ProviderOptions;
  readonly opening?: object;
  readonly tiles?: TileTable;
}

export class SessionDevices {
  private readonly all: Entered[] = [];

  private constructor(private readonly runtime: Runtime) {}

  /** @param names the plan's providers; for a plan without nodes on devices, the provider to use. */
  static async enter(
    runtime: Runtime,
    names: readonly string[],
    wishes: DeviceWishes,
    { userKernels, forms }: PlanInfo,
  ): Promise<SessionDevices> {
    const devices = new SessionDevices(runtime);
    try {
      for (const name of names) await devices.add(name, wishes, userKernels);
      devices.all.forEach(({ device }, i) => checkForms(device, forms[DEVICE + i] ?? []));
      const capturing = devices.all.find(({ settings }) => settings.enableGraphCapture);
      if (capturing && names.length > 1) throw notCapturable('its nodes are on several devices', capturing.device.name);
      return devices;
    } catch (error) {
      devices.leave();
      throw error;
    }
  }

  private async add(name: string, { providerOptions, opening, tiles }: DeviceWishes, userKernels: string) {
    const provider = providerNamed(name);
    const settings = provider.settings(providerOptions?.[name]);
    const { deviceId, preserveDevice } = settings;
    const how = { ...settings.device, ...opening };
    const device = await this.runtime.devices(name).enter(deviceId, how, preserveDevice);
    try {
      if (settings.enableGraphCapture) capability(device.capturesGraphs, name, 'graph capture');
      this.all.push({ settings, device, session: device.session(settings, userKernels, tiles) });
    } catch (error) {
      this.runtime.leave(deviceId, device);
      throw error;
    }
  }

  get first(): DeviceSession | undefined {
    return this.all[0]?.session;
  }

  /** The devices after the first one. */
  get further(): readonly DeviceSession[] {
    return this.all.slice(1).map(({ session }) => session);
  }

  /** Keyed by the provider's index in the plan. */
  get sessions(): readonly (DeviceSession | undefined)[] {
    return [undefined, ...this.all.map(({ session }) => session)];
  }

  /** The first lost device, with the reason; undefined while all are alive. */
  get lost(): { readonly provider: string; readonly why: string } | undefined {
    const found = this.firstLost();
    return found && { provider: found.name, why: found.lost! };
  }

  /** The error to throw for a failure after a device was lost; undefined while all are alive. */
  failure(error: unknown): Promise<unknown> | undefined {
    return this.firstLost()?.failure(error);
  }

  private firstLost(): OpenDevice | undefined {
    return this.all.find(({ device }) => device.lost !== undefined)?.device;
  }

  /** Begins a run on the further devices. Their work is never replayed. */
  begin(timeline?: Timeline): FurtherWork {
    return new FurtherWork(this.further, timeline);
  }

  leave(): void {
    for (const { settings, device, session } of this.all.splice(0)) {
      session.memory.destroy();
      this.runtime.leave(settings.deviceId, device);
    }
  }
}

/** The core converts elements by the plan's forms. */
function checkForms({ name, elements }: OpenDevice, forms: PlanInfo['forms'][number]): void {
  for (const [dtype, stored] of forms) {
    const fits =
      hasGpuForm(dtype) &&
      elements.same(dtype) === (dtype === stored) &&
      elements.size(dtype) === cpuElementSize(stored);
    if (!fits)
      throw new RuntimeError(
        ErrorCode.invalid_graph,
        `the plan has ${typeName(dtype)} on ${name} as ${typeName(stored)}: it was made for another version`,
        { provider: name },
      );
  }
}

/** A run's work on the devices after the first one. */
export class FurtherWork {
  private readonly work: readonly {
    readonly session: DeviceSession;
    readonly recording: Recording;
    readonly errors: RunErrors;
    readonly recorder: Recorder;
  }[];

  constructor(sessions: readonly DeviceSession[], timeline?: Timeline) {
    this.work = sessions.map((session) => {
      const [recording, errors] = [new Recording(''), session.errors()];
      const recorder = new Recorder(session, recording, errors, undefined, timeline);
      session.recorder = recorder;
      return { session, recording, errors, recorder };
    });
  }

  /** For a profiled run. */
  async dispatches(nodes: readonly PlanNode[]): Promise<DispatchTime[]> {
    const all = this.work.map(async ({ session, recorder }, i) => {
      const rows = await Promise.all(recorder.profilers.map((one) => one.dispatches()));
      return withNodes(rows.flat(), session, nodes, DEVICE + 1 + i);
    });
    return (await Promise.all(all)).flat();
  }

  /** Call when the core needs nothing more from them. Throws their errors. */
  async ended(): Promise<void> {
    for (const { session, errors } of this.work) {
      const found = await errors.found();
      if (found?.length) throw session.provider.complaint(found);
    }
  }

  /** Frees the run's memory there, once the core has released it. */
  release(): void {
    for (const { session, recording } of this.work) {
      session.recorder = undefined;
      recording.destroy(session.memory.arena);
    }
  }
}
