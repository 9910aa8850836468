// An open context, with everything that sessions and pages need.
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
