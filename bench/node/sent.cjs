// SPDX-License-Identifier: GPL-3.0-or-later
// Loaded into Gemini CLI: appends to the file BENCH_SENT when openDiff leaves it,
// in ms since 1970.

'use strict';

const { appendFileSync } = require('node:fs');
const { Socket } = require('node:net');

const { write } = Socket.prototype;

Socket.prototype.write = function (chunk, ...rest) {
  const now = performance.timeOrigin + performance.now();
  const isWritten = write.call(this, chunk, ...rest);
  if (Buffer.from(chunk).includes('"name":"openDiff"')) {
    appendFileSync(process.env.BENCH_SENT, `${now}\n`);
  }
  return isWritten;
};
