// An open context, with all that sessions and pages ask of one.
import type { OpenDevice } from '../../device/module';
import { MlDevice } from './device';
import { MlPageTensors } from './page_tensors';
import { MlSession } from './session';

export class OpenContext extends MlDevice implements OpenDevice {
  readonly keeper = new MlPageTensors(this);

  session(): MlSession {
    return new MlSession(this);
  }
}
