// SPDX-License-Identifier: GPL-3.0-or-later
// The outpost: it runs where a CLI runs elsewhere, and connects it to the server of
// Emacs.  `places.py' starts it, and exchanges lines of JSON with it.  The outpost
// writes the discovery files, carries connections, and sends the texts of files that a
// CLI wants to write.  When stdin ends, it removes the discovery files and exits.
const fs = require('fs'), net = require('net'), os = require('os'), path = require('path');
const connections = new Map(), watched = new Set(), written = new Set(), SILENCE = 60000, MOST = 64;
const MARKS = ['.git', '.hg', '.jj', '.svn', '.bzr', '.project'], CONTAINER = ['/.dockerenv', '/run/.containerenv'];
let count = 0, tries = 60, settings, silence = setTimeout(end, SILENCE);

function send(...line) {
  if (!process.stdout.write(JSON.stringify(line) + '\n')) connections.forEach((one) => one.pause());
}
process.stdout.on('drain', () => connections.forEach((one) => one.resume()));

const server = net.createServer((one) => {
  const number = ++count;
  connections.set(number, one);
  send('O', number);
  one.on('data', (data) => send('D', number, data.toString('base64')));
  one.on('error', () => {});
  one.on('close', () => { connections.delete(number); send('C', number); });
});
server.maxConnections = 4 * MOST; // The server of Emacs closes strangers before there are so many.
server.on('listening', report);
// The outpost before this one may still have the port.
server.on('error', () => setTimeout(listen, 50, --tries > 0 ? settings.port : 0));
const listen = (port) => server.listening ? report() : server.listen(port, '127.0.0.1');

const trueName = (name) => fs.existsSync(name) ? fs.realpathSync(name) : '/';

function rootOf(directory) {
  const never = ['/', trueName(os.homedir())], root = trueName(directory);
  for (let one = root; !never.includes(one); one = path.dirname(one))
    if (MARKS.some((mark) => fs.existsSync(path.join(one, mark)))) return one;
  return never.includes(root) ? null : root;
}

// The version of a CLI in the path, which the package.json above its program has.
function versionOf(program) {
  for (const directory of process.env.PATH.split(':'))
    try {
      let one = fs.realpathSync(path.join(directory, program));
      while (one !== '/' && !fs.existsSync(path.join(one, 'package.json'))) one = path.dirname(one);
      return JSON.parse(fs.readFileSync(path.join(one, 'package.json'))).version;
    } catch { /* It is in another directory, or not a package. */ }
}

function report() {
  const port = server.address().port, problems = [], roots = {}, versions = {};
  for (const name of settings.directories) roots[name] = rootOf(name);
  for (const client of settings.clients) {
    versions[client.name] = versionOf(client.name);
    try { writeDiscovery(client, port, roots); } catch (error) { problems.push(error.message); }
  }
  send('H', { port, pid: process.pid, node: process.versions.node, home: path.resolve(os.homedir()), tmp: os.tmpdir(),
    container: CONTAINER.some(fs.existsSync) && !process.env.SSH_CONNECTION, roots, problems, versions }, settings.number);
}

function writeDiscovery(client, port, roots) {
  const [first, ...rest] = client.parts, top = client.home ? os.homedir() : os.tmpdir();
  const base = process.env[client.home] || path.join(top, first), directory = path.join(base, ...rest);
  if (client.home && !fs.existsSync(base) && !versionOf(client.name)) return;
  fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const name of fs.readdirSync(directory))
    if (name.endsWith(client.suffix)) sweep(path.join(directory, name));
  const file = path.join(directory, client.file.replace('PID', process.pid).replace('PORT', port));
  const plain = [...new Set(Object.values(roots))].filter((root) => root && !root.includes(':'));
  const content = { ...client.content, port, workspacePath: plain.join(':'), ppid: process.pid };
  written.add(file).add(`${file}.tmp`);
  fs.rmSync(`${file}.tmp`, { force: true }); // It is left if the disk was full.
  fs.writeFileSync(`${file}.tmp`, JSON.stringify(content), { mode: 0o600, flag: 'wx' });
  fs.renameSync(`${file}.tmp`, file);
}

// Remove a file that an outpost of this user has left.
function sweep(file) {
  try {
    const { ideInfo, ppid } = JSON.parse(fs.readFileSync(file));
    if (ideInfo.name === 'emacs') process.kill(ppid, 0);
  } catch (error) { if (error.code === 'ESRCH') fs.rmSync(file, { force: true }); }
}

function sendFile(name, number, text) { // Null deletes the file, another text is written first.
  const facts = { path: name };
  try {
    if (text === null) fs.rmSync(name, { force: true });
    else if (text !== undefined) fs.writeFileSync(name, text, 'base64');
  } catch (error) { facts.problem = error.message; }
  try {
    const stat = fs.statSync(name);
    Object.assign(facts, { mtime: stat.mtimeMs, true: fs.realpathSync(name) });
    if (!stat.isFile()) facts.problem = 'is not a regular file';
    else if (stat.size > settings.limit) facts.problem = 'is too large';
    else facts.text = stat.size ? fs.readFileSync(name, 'base64') : '';
  } catch (error) { if (!['ENOENT', 'ENOTDIR'].includes(error.code)) facts.problem = error.message; }
  send('F', facts, number);
  if (watched.has(name)) return;
  fs.watchFile(name, { interval: 200 }, () => sendFile(name));
  const [oldest] = watched.add(name);
  if (watched.size > 16 * MOST) { fs.unwatchFile(oldest); watched.delete(oldest); }
}

function receive(kind, key, data, text) {
  if (kind === 'D') connections.get(key)?.write(data, 'base64');
  else if (kind === 'C') connections.get(key)?.end();
  else if (kind === 'F') sendFile(data, key, text);
  else if (kind === 'P' && key) send('P', '', key);
  else if (kind === 'H') { settings = { ...data, number: key }; listen(settings.port); }
}

function end() {
  for (const file of written) fs.rmSync(file, { force: true });
  for (const one of connections.values()) one.end();
  setTimeout(() => process.exit(0), connections.size ? 300 : 0);
}
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(name, end);
process.stdout.on('error', end);
process.stdin.on('data', () => silence.refresh());
setInterval(send, SILENCE / 4, 'P'); // It is answered, so both sides see that the connection lives.
require('readline').createInterface(process.stdin).on('line', (line) => receive(...JSON.parse(line))).on('close', end);
process.stdout.write('\ngemini-companion-outpost\n');
