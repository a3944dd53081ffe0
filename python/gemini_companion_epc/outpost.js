// SPDX-License-Identifier: GPL-3.0-or-later
// The outpost: it runs where a CLI runs elsewhere, and connects it to the server of Emacs.  `outpost.py' starts it.
// It writes the discovery files, carries connections, sends and reverts files, and ends with its stdin.  Both sides
// send lines of JSON, a kind and its values; see `Kind', and `handlers' for those that come here.
const crypto = require('crypto');
const fs = require('fs');
const net = require('net');
const os = require('os');
const path = require('path');
const readline = require('readline');

const LARGEST_DISCOVERY = 65536;
const MOST_SILENT = 64; // Connections on which nothing has arrived.
const TRY_AGAIN_MS = 50; // Between two tries of listening at a port that is in use.
const GREETING_MS = 120000;
const BEAT_MS = 15000;
const WATCH_MS = 200;
const ROOT_MARKS = ['.git', '.hg', '.jj', '.svn', '.bzr', '.project'];
const CONTAINER_MARKS = ['/.dockerenv', '/run/.containerenv'];
// Hosts may have one home, and the process ids in files of another host say nothing.
const HOST = hostName();

// The kinds of lines, as in outpost_lines.py.
const Kind = {
  HELLO: 'H', // To here: the settings.  From here: the facts of this host.
  ROOTS: 'R', // From here: the workspace roots, before the files of their rules.
  OPEN: 'O', // From here: a CLI has opened a connection.
  DATA: 'D', // Both ways: data of a connection.
  CLOSE: 'C', // Both ways: the end of a connection.
  FILE: 'F', // To here: send a file.  From here: its stamp, and its text if that is new.
  WRITE: 'W', // To here: change a file, then send it.
  ARRIVED: 'A', // To here: a file that was sent has arrived.
  BEAT: 'P', // Both ways: a sign of life.
};

let settings; // Of the last greeting, see `_greet' in outpost.py.

function hostName() {
  const namespace = '/proc/self/ns/pid';
  return os.hostname() + (fs.existsSync(namespace) ? ` ${fs.readlinkSync(namespace)}` : '');
}

function remove(file) {
  try {
    fs.unlinkSync(file);
  } catch {
    // It is gone, or a directory.
  }
}

// Lines to the server

function send(...line) {
  const isRead = process.stdout.write(JSON.stringify(line) + '\n');
  if (!isRead) {
    connections.forEach((connection) => connection.pause());
  }
}

process.stdout.on('drain', () => connections.forEach((connection) => connection.resume()));

// Connections

const connections = new Map(); // By number, those that have sent something.
const silent = new Set();
let lastNumber = 0;
let lastTry = 0; // The time of the last try of a port that is in use.

const server = net.createServer((connection) => {
  const number = ++lastNumber;
  silent.add(connection);
  if (silent.size > MOST_SILENT) { // Strangers may hold many.
    const [oldest] = silent;
    silent.delete(oldest);
    oldest.destroy();
  }
  connection.on('data', (data) => {
    if (silent.delete(connection)) {
      connections.set(number, connection);
      send(Kind.OPEN, number);
    }
    send(Kind.DATA, number, data.toString('base64'));
  });
  connection.on('error', () => {});
  connection.on('close', () => {
    if (!silent.delete(connection) && connections.delete(number)) {
      send(Kind.CLOSE, number);
    }
  });
});
server.on('listening', announce);
server.on('error', (error) => {
  if (error.code !== 'EADDRINUSE') {
    throw error;
  }
  // The outpost before this one has the port until it ends, as it hears nothing.
  lastTry ||= Date.now() + 1000 * settings.silence;
  if (Date.now() > lastTry) {
    settings.port = 0;
  }
  setTimeout(listen, TRY_AGAIN_MS);
});

function listen() {
  if (server.listening) {
    announce();
  } else {
    server.listen(settings.port, '127.0.0.1');
  }
}

// Roots and versions

function trueName(directory) {
  return fs.existsSync(directory) ? fs.realpathSync(directory) : '/';
}

// The workspace root of a directory, or null: neither the home nor / is one.
function rootOf(directory) {
  const found = trueName(directory);
  const never = [trueName(os.homedir()), '/'];
  for (let parent = found; !never.includes(parent); parent = path.dirname(parent)) {
    if (ROOT_MARKS.some((mark) => fs.existsSync(path.join(parent, mark)))) {
      return parent;
    }
  }
  return never.includes(found) ? null : found;
}

// The version of a CLI in the path, which the package.json above its program has.
function versionOf(program) {
  for (const directory of (process.env.PATH || '').split(':')) {
    try {
      let parent = fs.realpathSync(path.join(directory, program));
      while (parent !== '/' && !fs.existsSync(path.join(parent, 'package.json'))) {
        parent = path.dirname(parent);
      }
      return JSON.parse(fs.readFileSync(path.join(parent, 'package.json'))).version;
    } catch {
      // It is in another directory, or not a package.
    }
  }
  return undefined;
}

// Discovery files

const written = new Set();

function directoryOf({ home, top }) {
  const parent = home ? os.homedir() : os.tmpdir();
  return path.resolve(parent, process.env[home] || top, 'ide');
}

// Write the discovery files, and tell the server what was asked for in its greeting.
function announce() {
  const { port } = server.address();
  const { roots } = settings;
  const problems = [];
  const versions = {};
  for (const client of settings.clients) {
    versions[client.name] = versionOf(client.name);
    try {
      writeDiscovery(client, port, roots);
    } catch (error) {
      problems.push(error.message);
    }
  }
  const facts = {
    port,
    pid: process.pid,
    node: process.versions.node,
    home: path.resolve(os.homedir()),
    tmp: os.tmpdir(),
    container: CONTAINER_MARKS.some(fs.existsSync) && !process.env.SSH_CONNECTION,
    roots,
    problems,
    versions,
  };
  send(Kind.HELLO, facts, settings.number);
}

function writeDiscovery(client, port, roots) {
  const directory = directoryOf(client);
  const base = path.dirname(directory);
  const isInstalled = !client.home || fs.existsSync(base) || versionOf(client.name);
  if (!isInstalled) {
    return;
  }
  if (!client.home) {
    makeOwn(base);
  }
  makeOwn(directory);
  const file = path.join(directory, client.file.replace('PID', process.pid).replace('PORT', port));
  const plain = [...new Set(Object.values(roots))].filter((root) => root && !root.includes(':'));
  const content = {
    ...client.content,
    port,
    workspacePath: plain.join(':'),
    ppid: process.pid,
    host: HOST,
  };
  written.add(file);
  const draft = `${file}.tmp`;
  remove(draft); // Others may have written in the directory before it was only the user's own.
  fs.writeFileSync(draft, JSON.stringify(content), { mode: 0o600, flag: 'wx' });
  fs.renameSync(draft, file);
}

function makeOwn(directory) {
  fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
  const stat = fs.lstatSync(directory);
  if (!stat.isDirectory() || stat.uid !== process.geteuid()) {
    throw Error(`${directory} is not your own directory`);
  }
  if (stat.mode & 0o022) {
    fs.chmodSync(directory, 0o700);
  }
}

// Outposts that were before this one

// Remove the files of this Emacs, whose connection was lost, and of processes that have ended.
function sweep(client) {
  const directory = directoryOf(client);
  for (const name of filesIn(directory)) {
    const file = path.join(directory, name);
    const content = written.has(file) ? null : readDiscovery(file);
    if (content && (content.authToken === client.content.authToken || hasEnded(content.ppid))) {
      remove(file);
    }
  }
}

function filesIn(directory) {
  try {
    return fs.readdirSync(directory);
  } catch {
    return []; // There is no directory, or it is another user's.
  }
}

// The content of a discovery file that an outpost or an Emacs of this host has written, or null.
function readDiscovery(file) {
  try {
    const content = JSON.parse(readFile(file, LARGEST_DISCOVERY, fs.constants.O_NOFOLLOW));
    const isOurs = content.ideInfo.name === 'emacs' && content.host === HOST;
    // Other numbers are for groups of processes.
    return isOurs && Number.isInteger(content.ppid) && content.ppid > 0 ? content : null;
  } catch {
    return null;
  }
}

function hasEnded(pid) {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

// Files

const watched = new Map(); // By name, the stamp that was sent last.
let unread = 0; // Texts that the server has not confirmed.

// Opening a FIFO would wait; a file without a size, as in /proc, may have no end.
function readFile(name, limit, flags = 0) {
  const file = fs.openSync(name, fs.constants.O_NONBLOCK | flags);
  try {
    const stat = fs.fstatSync(file);
    if (!stat.isFile() || (flags && stat.uid !== process.geteuid())) {
      throw Error('is not a regular file');
    }
    if (stat.size > limit) {
      throw Error('is too large');
    }
    return stat.size ? fs.readFileSync(file) : Buffer.alloc(0);
  } finally {
    fs.closeSync(file);
  }
}

// In place, so that mode, owner and links stay; no text deletes the file.
function writeFile(name, expected, text) {
  const old = readFile(name, settings.limit);
  if (crypto.createHash('sha256').update(old).digest('hex') !== expected) {
    throw Error('it has changed there');
  }
  if (text == null) {
    fs.unlinkSync(fs.realpathSync(name));
    return;
  }
  try {
    overwrite(name, Buffer.from(text, 'base64'));
  } catch (error) {
    overwrite(name, old);
    throw error;
  }
}

function overwrite(name, bytes) {
  fs.writeFileSync(name, bytes, { flag: 'r+' });
  fs.truncateSync(name, bytes.length);
}

function stampOf(name) {
  const stat = fs.existsSync(name) && fs.statSync(name, { bigint: true, throwIfNoEntry: false });
  return stat ? `${stat.mtimeNs}-${stat.size}` : '';
}

// Send a file and watch it; its text only if it does not have the stamp that is known.
function sendFile(number, name, known, problem) {
  const facts = { path: name, stamp: stampOf(name), problem };
  try {
    facts.true = fs.realpathSync(name);
    if (facts.stamp !== known) {
      facts.text = readFile(name, settings.limit).toString('base64');
    }
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes(error.code)) {
      facts.problem = problem || error.message;
    }
  }
  watched.delete(name);
  watched.set(name, facts.stamp); // It comes last, as others may change less often.
  unread++;
  send(Kind.FILE, facts, number);
}

// A text waits until the previous one has arrived.
function watchFiles() {
  for (const [name, stamp] of watched) {
    if (!unread && stampOf(name) !== stamp) {
      sendFile(0, name, stamp);
    }
  }
}

// Lines from the server

// By kind, what handles a line.
const handlers = {
  [Kind.HELLO]: greet, // Again when the settings have changed.
  [Kind.DATA]: writeData,
  [Kind.CLOSE]: closeConnection,
  [Kind.FILE]: sendFile,
  [Kind.WRITE]: changeFile,
  [Kind.ARRIVED]: recordArrival,
  [Kind.BEAT]: answerBeat,
};

function writeData(number, data) {
  connections.get(number)?.write(data, 'base64');
}

// `destroySoon' writes what is left and does not wait for the other side, as a stranger might not close it.
function closeConnection(number) {
  connections.get(number)?.destroySoon();
}

function recordArrival() {
  unread--;
}

function greet(number, data) {
  data.clients.forEach(sweep);
  const roots = Object.fromEntries(data.directories.map((directory) => [directory, rootOf(directory)]));
  settings = { ...data, number, roots };
  expectLines(1000 * settings.silence);
  // The server takes only what it knows to be in them.
  send(Kind.ROOTS, { roots, home: path.resolve(os.homedir()) }, number);
  for (const root of new Set(Object.values(roots))) {
    if (root) {
      sendRules(root);
    }
  }
  listen();
}

// The files that decide what a CLI may know are sent before one can connect.
function sendRules(root) {
  for (const name of settings.files) {
    const file = path.resolve(root, name.replace(/^~/, os.homedir()));
    if (!watched.has(file)) {
      sendFile(0, file);
    }
  }
}

function changeFile(number, name, expected, text) {
  try {
    writeFile(name, expected, text);
    sendFile(number, name);
  } catch (error) {
    sendFile(number, name, undefined, error.message);
  }
}

function answerBeat(number, released) {
  send(Kind.BEAT, '', number);
  released?.forEach((name) => watched.delete(name));
  const isComplete = [...written].every(fs.existsSync);
  if (server.listening && !isComplete) {
    announce();
  }
}

// Life

function end() {
  process.exit();
}

let silence;

// End when nothing arrives for LIMIT milliseconds: the connection was lost unnoticed.
function expectLines(limit) {
  clearTimeout(silence);
  silence = setTimeout(end, limit);
}

expectLines(GREETING_MS);
process.on('exit', () => written.forEach(remove));
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP']) {
  process.on(name, end);
}
process.stdin.on('data', () => silence.refresh());
setInterval(send, BEAT_MS, Kind.BEAT);
setInterval(watchFiles, WATCH_MS);
const lines = readline.createInterface(process.stdin);
lines.on('line', (line) => {
  const [kind, ...values] = JSON.parse(line);
  handlers[kind]?.(...values);
});
lines.on('close', end);
process.stdout.write('\ngemini-companion-outpost\n');
