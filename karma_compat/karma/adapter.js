// In the page that Karma opens: has Python run the cases in a frame of this page, and tells Karma what came of them.
(() => {
  const karma = window.__karma__;
  const frames = [];

  function open(url) {
    const frame = document.createElement('iframe');
    frame.src = url;
    frames.push(document.body.appendChild(frame));
  }

  function told(message) {
    if (message.open) open(message.open);
    else if (message.total !== undefined) karma.info({ total: message.total });
    else if (message.error) throw new Error(message.error);
    else {
      const { suite, name, status, reason, seconds } = message;
      const skipped = status === 'skipped';
      karma.result({
        id: `${suite} ${name}`,
        description: name,
        suite: [suite],
        success: status === 'passed' || skipped,
        skipped,
        time: seconds * 1000,
        log: reason ? [reason] : [],
      });
    }
  }

  async function run() {
    const response = await fetch('/py_ort/run');
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    let complete = false;
    for (;;) {
      const { value, done } = await reader.read();
      const lines = (rest + (value || '')).split('\n');
      rest = done ? '' : lines.pop();
      for (const line of lines.filter(Boolean)) {
        const message = JSON.parse(line);
        if (message.complete) complete = true;
        else told(message);
      }
      if (done) break;
    }
    if (!complete) throw new Error('Python ended in the middle; Karma shows what it said');
  }

  karma.start = () =>
    run()
      .then(
        () => karma.complete({}),
        (error) => karma.error(String(error.message || error)),
      )
      .finally(() => frames.forEach((frame) => frame.remove()));
})();
