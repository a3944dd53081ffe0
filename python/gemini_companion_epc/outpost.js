// SPDX-License-Identifier: GPL-3.0-or-later
// The outpost: it runs where a CLI runs elsewhere, and connects it to the server of
// Emacs.  `places.py' starts it, and is at the other end of stdin and stdout.  There,
// each frame is a letter, a number, the length of the rest, and the rest.  It writes
// the discovery files, carries connections, and sends the texts of files that a CLI
// wants to write.  When stdin ends, it removes the discovery files and exits.
'use strict';
const fs = require('fs'), net = require('net'), os = require('os'), path = require('path');
const connections = new Map(), watched = new Map(), written = new Set(), roots = {};
const MARKS = ['.git', '.hg', '.jj', '.svn', '.bzr', '.project'];
const SILENCE = 60000, MOST_WATCHED = 64, MOST_CONNECTIONS = 64;
let incoming = Buffer.alloc(0), count = 0, settings, heard = Date.now();

function send(kind, number, body = '') {
  const data = Buffer.from(body), head = Buffer.alloc(9);
  head.write(kind);
  head.writeUInt32BE(number, 1);
  head.writeUInt32BE(data.length, 5);
  if (!process.stdout.write(Buffer.concat([head, data]))) connections.forEach((one) => one.pause());
}
process.stdout.on('drain', () => connections.forEach((one) => one.resume()));

// Connections
const server = net.createServer((one) => {
  const number = ++count;
  connections.set(number, one);
  send('O', number);
  one.on('data', (data) => send('D', number, data));
  one.on('error', () => {});
  one.on('close', () => { connections.delete(number); send('C', number); });
});
server.maxConnections = MOST_CONNECTIONS;
server.on('listening', report);
server.on('error', () => {
  // The outpost before this one may still have the port.
  if (--settings.tries > 0) setTimeout(() => server.listen(settings.port, '127.0.0.1'), 50);
  else server.listen(0, '127.0.0.1');
});

// Discovery files
function rootOf(directory) {
  let root;
  try { root = fs.realpathSync(directory); } catch { return null; }
  for (let one = root; one !== path.dirname(one) && one !== os.homedir(); one = path.dirname(one))
    if (MARKS.some((mark) => fs.existsSync(path.join(one, mark)))) return one;
  return root === os.homedir() || root === path.dirname(root) ? null : root;
}

function report() {
  const port = server.address().port, problems = [];
  for (const name of settings.directories) roots[name] = rootOf(name);
  const all = [...new Set(Object.values(roots))].filter((root) => root !== null);
  for (const client of settings.clients)
    try { writeDiscovery(client, port, all); } catch (error) { problems.push(error.message); }
  const container = ['/.dockerenv', '/run/.containerenv'].some((file) => fs.existsSync(file));
  send('H', 0, JSON.stringify({ port, pid: process.pid, node: process.versions.node, roots, problems,
    home: os.homedir(), tmp: os.tmpdir(), container: container && !process.env.SSH_CONNECTION }));
}

function writeDiscovery(client, port, all) {
  const [first, ...rest] = client.parts;
  const base = client.home ? process.env[client.home] || path.join(os.homedir(), first) : path.join(os.tmpdir(), first);
  if (client.home && !fs.existsSync(base)) return;
  const directory = path.join(base, ...rest);
  fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
  fs.readdirSync(directory).filter((name) => name.endsWith(client.suffix)).forEach((name) => sweep(path.join(directory, name)));
  const file = path.join(directory, client.name.replace('PID', process.pid).replace('PORT', port));
  const plain = all.filter((root) => !root.includes(path.delimiter));
  const content = { port, authToken: client.bearer, ideInfo: settings.ide, ppid: process.pid,
    workspacePath: client.json && plain.length < all.length ? JSON.stringify(all) : plain.join(path.delimiter) };
  const draft = `${file}.${process.pid}.tmp`;
  fs.rmSync(draft, { force: true });
  fs.writeFileSync(draft, JSON.stringify(content), { mode: 0o600, flag: 'wx' });
  fs.renameSync(draft, file);
  written.add(file);
}

// Remove a file that an outpost of this user has left.
function sweep(file) {
  try {
    const { ideInfo, ppid } = JSON.parse(fs.readFileSync(file));
    if (ideInfo.name === settings.ide.name) process.kill(ppid, 0);
  } catch (error) { if (error.code === 'ESRCH') fs.rmSync(file, { force: true }); }
}

// Files
function sendFile(name, number) {
  const facts = { path: name };
  let text = '';
  try {
    const stat = fs.statSync(name);
    facts.mtime = stat.mtimeMs;
    if (!stat.isFile()) facts.problem = 'is not a regular file';
    else if (stat.size > settings.limit) facts.problem = 'is too large';
    else if (stat.size) text = fs.readFileSync(name);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(error.code)) facts.absent = true; else facts.problem = error.message;
  }
  send('F', number, Buffer.concat([Buffer.from(JSON.stringify(facts) + '\n'), Buffer.from(text)]));
  if (watched.has(name)) return;
  watched.set(name, true);
  fs.watchFile(name, { interval: 200 }, () => sendFile(name, 0));
  const [oldest] = watched.keys();
  if (watched.size > MOST_WATCHED) { fs.unwatchFile(oldest); watched.delete(oldest); }
}

// Frames
function receive(kind, number, body) {
  const one = connections.get(number);
  if (kind === 'H') { settings = JSON.parse(body); if (server.listening) report(); else server.listen(settings.port, '127.0.0.1'); }
  else if (kind === 'D' && one) one.write(body);
  else if (kind === 'E' && one) one.end();
  else if (kind === 'R') sendFile(body.toString(), number);
  else if (kind === 'P') send('P', number);
}

process.stdin.on('data', (data) => {
  heard = Date.now();
  incoming = Buffer.concat([incoming, data]);
  while (incoming.length >= 9 && incoming.length >= 9 + incoming.readUInt32BE(5)) {
    const frame = incoming.subarray(0, 9 + incoming.readUInt32BE(5));
    incoming = incoming.subarray(frame.length);
    receive(String.fromCharCode(frame[0]), frame.readUInt32BE(1), frame.subarray(9));
  }
});

function end() {
  for (const file of written) fs.rmSync(file, { force: true });
  server.close();
  for (const one of connections.values()) one.end();
  setTimeout(() => process.exit(0), connections.size ? 300 : 0);
}
process.stdin.on('end', end);
process.stdout.on('error', end);
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(name, end);
setInterval(() => { if (Date.now() - heard > SILENCE) end(); }, SILENCE / 4);
process.stdout.write('\ngemini-companion-outpost\n');
