// SPDX-License-Identifier: GPL-3.0-or-later
// The outpost: it runs where a CLI runs elsewhere, and connects it to the server of Emacs.  `remote.py' starts it.
// It writes the discovery files, carries connections, sends and reverts files, and ends with its stdin: lines of JSON.
const [crypto, fs, net, os, path] = ['crypto', 'fs', 'net', 'os', 'path'].map((name) => require(name));
const MARKS = ['.git', '.hg', '.jj', '.svn', '.bzr', '.project'], CONTAINER = ['/.dockerenv', '/run/.containerenv'];
// Hosts may have one home, and the process ids in files of another host say nothing.
const HOST = os.hostname() + ['/proc/self/ns/pid'].filter(fs.existsSync).map((one) => ` ${fs.readlinkSync(one)}`);
const connections = new Map(), silent = new Set(), watched = new Map(), written = new Set();
let count = 0, tries = 60, unread = 0, settings;
function send(...line) {
  if (!process.stdout.write(JSON.stringify(line) + '\n')) connections.forEach((one) => one.pause());
}
process.stdout.on('drain', () => connections.forEach((one) => one.resume()));
const server = net.createServer((one) => {
  const number = ++count, [oldest] = silent.add(one); // Strangers may hold many.
  if (silent.size > 64 && silent.delete(oldest)) oldest.destroy();
  one.on('data', (data) => {
    if (silent.delete(one)) { connections.set(number, one); send('O', number); }
    send('D', number, data.toString('base64'));
  });
  one.on('error', () => {});
  one.on('close', () => { if (!silent.delete(one) && connections.delete(number)) send('C', number); });
});
server.on('listening', announce);
server.on('error', (error) => {
  if (error.code !== 'EADDRINUSE') throw error;
  if (--tries === 0) settings.port = 0;
  setTimeout(listen, 50); // The outpost before this one may still have the port.
});
const listen = () => server.listening ? announce() : server.listen(settings.port, '127.0.0.1');

function rootOf(directory) {
  const real = (one) => fs.existsSync(one) ? fs.realpathSync(one) : '/';
  const root = real(directory), never = [real(os.homedir()), '/'];
  for (let one = root; !never.includes(one); one = path.dirname(one))
    if (MARKS.some((mark) => fs.existsSync(path.join(one, mark)))) return one;
  return never.includes(root) ? null : root;
}
// The version of a CLI in the path, which the package.json above its program has.
function versionOf(program) {
  for (const directory of (process.env.PATH || '').split(':'))
    try {
      let one = fs.realpathSync(path.join(directory, program));
      while (one !== '/' && !fs.existsSync(path.join(one, 'package.json'))) one = path.dirname(one);
      return JSON.parse(fs.readFileSync(path.join(one, 'package.json'))).version;
    } catch { /* It is in another directory, or not a package. */ }
}
function announce() {
  const { port } = server.address(), { roots } = settings, problems = [], versions = {};
  for (const client of settings.clients) {
    versions[client.name] = versionOf(client.name);
    try { writeDiscovery(client, port, roots); } catch (error) { problems.push(error.message); }
  }
  send('H', { port, pid: process.pid, node: process.versions.node, home: path.resolve(os.homedir()), tmp: os.tmpdir(),
    container: CONTAINER.some(fs.existsSync) && !process.env.SSH_CONNECTION, roots, problems, versions }, settings.number);
}
const directoryOf = ({ home, top }) => path.resolve(home ? os.homedir() : os.tmpdir(), process.env[home] || top, 'ide');
function writeDiscovery(client, port, roots) {
  const directory = directoryOf(client), base = path.dirname(directory);
  if (client.home && !fs.existsSync(base) && !versionOf(client.name)) return;
  for (const one of client.home ? [directory] : [base, directory]) makeOwn(one);
  const file = path.join(directory, client.file.replace('PID', process.pid).replace('PORT', port));
  const plain = [...new Set(Object.values(roots))].filter((root) => root && !root.includes(':'));
  const content = { ...client.content, port, workspacePath: plain.join(':'), ppid: process.pid, host: HOST };
  written.add(file);
  fs.writeFileSync(`${file}.tmp`, JSON.stringify(content), { mode: 0o600 });
  fs.renameSync(`${file}.tmp`, file);
}
function makeOwn(directory) {
  fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
  const stat = fs.lstatSync(directory);
  if (!stat.isDirectory() || stat.uid !== process.geteuid()) throw Error(`${directory} is not your own directory`);
  if (stat.mode & 0o022) fs.chmodSync(directory, 0o700);
}
// An outpost with the same token ends: its connection was lost, which its host has not noticed.
function sweep({ content }, directory) {
  for (const file of fs.readdirSync(directory).map((name) => path.join(directory, name)))
    try {
      const { ideInfo, host, ppid, authToken } = JSON.parse(readFile(file, 65536, fs.constants.O_NOFOLLOW));
      if (ideInfo.name === 'emacs' && host === HOST && ppid !== process.pid)
        process.kill(ppid, authToken === content.authToken ? 'SIGTERM' : 0);
    } catch (error) { if (error.code === 'ESRCH') remove(file); }
}
// Opening a FIFO would wait; a file without a size, as in /proc, may have no end.
function readFile(name, limit, flags = 0) {
  const file = fs.openSync(name, fs.constants.O_NONBLOCK | flags), stat = fs.fstatSync(file);
  try {
    if (!stat.isFile() || (flags && stat.uid !== process.geteuid())) throw Error('is not a regular file');
    if (stat.size > limit) throw Error('is too large');
    return stat.size ? fs.readFileSync(file) : Buffer.alloc(0);
  } finally { fs.closeSync(file); }
}
function writeFile(name, expected, text) { // In place, so that mode, owner and links stay; no text deletes.
  const old = readFile(name, settings.limit);
  if (crypto.createHash('sha256').update(old).digest('hex') !== expected) throw Error('it has changed there');
  if (text == null) return fs.unlinkSync(fs.realpathSync(name));
  const put = (bytes) => { fs.writeFileSync(name, bytes, { flag: 'r+' }); fs.truncateSync(name, bytes.length); };
  try { put(Buffer.from(text, 'base64')); } catch (error) { put(old); throw error; }
}
function stampOf(name) {
  const stat = fs.existsSync(name) && fs.statSync(name, { bigint: true, throwIfNoEntry: false });
  return stat ? `${stat.mtimeNs}-${stat.size}` : '';
}
function sendFile(number, name, known, problem) {
  const facts = { path: name, stamp: stampOf(name), problem };
  try {
    facts.true = fs.realpathSync(name);
    if (facts.stamp !== known) facts.text = readFile(name, settings.limit).toString('base64');
  } catch (error) { if (!['ENOENT', 'ENOTDIR'].includes(error.code)) facts.problem = problem || error.message; }
  watched.delete(name);
  watched.set(name, facts.stamp); // It comes last, as others may change less often.
  unread++;
  send('F', facts, number);
}
function watchFiles() { // A text waits until the previous one has arrived.
  for (const [name, stamp] of watched) if (!unread && stampOf(name) !== stamp) sendFile(0, name, stamp);
}

function greet(number, data) {
  for (const one of data.clients) try { sweep(one, directoryOf(one)); } catch { /* There is none. */ }
  settings = { ...data, number, roots: Object.fromEntries(data.directories.map((one) => [one, rootOf(one)])) };
  for (const root of Object.values(settings.roots).filter((one) => one)) // They decide what a CLI may know.
    for (const file of data.files.map((one) => path.resolve(root, one.replace(/^~/, os.homedir()))))
      if (!watched.has(file)) sendFile(0, file);
  listen();
}
function receive(kind, key, data, ...rest) {
  if (kind === 'D') connections.get(key)?.write(data, 'base64');
  else if (kind === 'C') connections.get(key)?.destroySoon(); // A stranger might not close it.
  else if (kind === 'F') sendFile(key, data, ...rest);
  else if (kind === 'W')
    try { writeFile(data, ...rest); sendFile(key, data); }
    catch (error) { sendFile(key, data, undefined, error.message); }
  else if (kind === 'A') unread--;
  else if (kind === 'H') greet(key, data);
  else if (kind === 'P') {
    send('P', '', key);
    data?.forEach((name) => watched.delete(name));
    if (server.listening && ![...written].every(fs.existsSync)) announce();
  }
}
const end = () => process.exit(), silence = setTimeout(end, 120000);
const remove = (file) => { try { fs.unlinkSync(file); } catch { /* It is gone, or a directory. */ } };
process.on('exit', () => written.forEach(remove));
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(name, end);
process.stdin.on('data', () => silence.refresh());
setInterval(send, 15000, 'P');
setInterval(watchFiles, 200);
require('readline').createInterface(process.stdin).on('line', (line) => receive(...JSON.parse(line))).on('close', end);
process.stdout.write('\ngemini-companion-outpost\n');
