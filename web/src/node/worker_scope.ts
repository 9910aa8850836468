// This thread is a worker: imported before a worker's script.
import { becomeWorkerScope } from './worker';

becomeWorkerScope();
