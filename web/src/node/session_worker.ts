import './start';
import './worker_scope';
import '../api/worker';
