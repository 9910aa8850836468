// The WebNN contexts of a page, by the ids of the option `deviceId`: the page's own, and those made with a session's
// options.
import { invalid, messageOf, RuntimeError } from '../../errors';
import { ErrorCode } from '../../schema';
import { OpenDevices } from '../../device/open_devices';
import { type MlContext, NAME, navigatorMl } from './ml';
import { OpenContext } from './open_device';

interface Options {
  readonly deviceType?: string;
  readonly powerPreference?: string;
}

export class MlContexts extends OpenDevices<OpenContext, Options, MlContext> {
  protected readonly fixed = ['deviceType', 'powerPreference'] as const;

  protected async start(id: number, options: Options): Promise<OpenContext> {
    const given = this.given(id);
    if (given && typeof given.createTensor !== 'function')
      throw invalid(
        'the `context` of webnn is no MLContext: give it what `await navigator.ml.createContext()` returns',
      );
    const own = await this.usable(id);
    if (own) return newDevice(own, { description: "an MLContext of the page's own" });
    const ml = navigatorMl();
    if (!ml)
      throw new RuntimeError(ErrorCode.no_adapter, 'this browser has no WebNN (navigator.ml)', { provider: NAME });
    const { deviceType, powerPreference } = options;
    const asked = { ...(deviceType && { deviceType }), ...(powerPreference && { powerPreference }) };
    try {
      const description = `WebNN on ${deviceType || 'the default device'}`;
      return newDevice(await ml.createContext(asked), { description, ...asked });
    } catch (error) {
      throw new RuntimeError(ErrorCode.no_adapter, `WebNN gives no context: ${messageOf(error)}`, { provider: NAME });
    }
  }

  protected override check(id: number, device: OpenContext, has: Options, wanted: Options): void {
    if (!this.given(id)) super.check(id, device, has, wanted);
  }

  protected close(id: number, device: OpenContext): void {
    device.close();
    if (!this.given(id)) device.context.destroy();
  }
}

const newDevice = (context: MlContext, description: object) =>
  new OpenContext(context, { ...description, limits: context.opSupportLimits() });
