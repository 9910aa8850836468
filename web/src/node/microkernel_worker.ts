import './worker_scope';
import '../page/microkernel_worker';
