// The main thread waits for events; a worker sleeps in a recursion that is
// compiled; another runs.
const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');

let after = 0;
const never = new Int32Array(new SharedArrayBuffer(4));

function recurseA(depth, way) {
  if (depth <= 1) return way();
  const n = recurseB(depth - 1, way);
  after += n;
  return n + 1;
}

function recurseB(depth, way) {
  if (depth <= 1) return way();
  const n = recurseA(depth - 1, way);
  after += n;
  return n + 1;
}

function spin() {
  for (;;) after++;
}

if (isMainThread) {
  let ready = 0;
  for (const way of ['sleep', 'spin']) {
    new Worker(__filename, { workerData: way }).on('message', () => {
      if (++ready === 2) setTimeout(() => console.log('ready'), 200);
    });
  }
  setInterval(() => {}, 1 << 30);
} else {
  for (let i = 0; i < 50000; i++) recurseA(12, () => 1);
  parentPort.postMessage('made');
  const ways = { sleep: () => (Atomics.wait(never, 0, 0), 1), spin };
  setTimeout(() => recurseA(12, ways[workerData]), 50);
}
