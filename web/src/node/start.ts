// Node is the host: imported before anything that asks for it.
import { setHost } from '../host';
import { node } from './host';

setHost(node);
