// SPDX-License-Identifier: GPL-3.0-or-later
// The companion protocol as a client: find Emacs, follow it, have edits reviewed.
//
// An extension loads this for a CLI that does not speak the protocol.  It uses only
// what Node.js and Bun have, and not `fetch', which a host may send through a proxy.

import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";

// Set in the terminals of an Emacs.
const PORT_VARIABLE = "GEMINI_COMPANION_PORT";
// Milliseconds between two searches for Emacs.
const SEARCH = 2000;
// Milliseconds until an event stream that has ended is opened again.
const AGAIN = 300;
// Milliseconds in which a request is answered; opening a review may take long.
const REQUEST = 5000;
const OPENING = 30000;
// Milliseconds in which Emacs may send the text of a review that is closed here.
const CLOSING = 3000;
// Milliseconds in which Emacs learns at the end of a session that its reviews end.
const STOPPING = 1500;
// Milliseconds in which Emacs may find the new errors after an edit, or an answer for
// the model, and in which it lists what the model may ask.
const REPORT = 5000;
const QUESTION = 20000;
const LIST = 1000;
// Of a prompt, which waits for it.
const PROMPT = 2000;
const LARGEST_FILE = 65536;

export const sleep = (time, signal) =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = setTimeout(resolve, time);
    timer.unref?.();
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });

// Find Emacs

function trueName(name) {
  try {
    return fs.realpathSync(name);
  } catch {
    return path.resolve(name);
  }
}

/** Return the text of the file NAME of this user, a small regular one. */
function readOwn(name) {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants;
  const file = fs.openSync(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const stat = fs.fstatSync(file);
    const isOwn = !process.getuid || stat.uid === process.getuid();
    if (!stat.isFile() || !isOwn || stat.size > LARGEST_FILE) throw new Error(`${name} is not usable`);
    return { text: fs.readFileSync(file, "utf8"), time: stat.mtimeMs };
  } finally {
    fs.closeSync(file);
  }
}

/** Return what tells processes with one number apart: host and namespace. */
function thisHost() {
  try {
    return `${os.hostname()} ${fs.readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return os.hostname();
  }
}

/** Return whether the Emacs with the process PID on HOST has exited, as far as is known. */
function hasExited(pid, host) {
  // With one home directory on several hosts, the process may be on another one.
  if (host !== thisHost() || !Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    return error.code === "ESRCH";
  }
  try {
    // The parent of a zombie has not yet noticed that it has exited.
    return /\) Z[^)]*$/.test(fs.readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}

/** Return the server of the discovery file NAME, or undefined if it is none of Emacs. */
function readServer(name) {
  try {
    const { text, time } = readOwn(name);
    const { port, authToken, ideInfo, workspacePath, ppid, host } = JSON.parse(text);
    if (ideInfo.name !== "emacs" || !Number.isInteger(port) || !authToken) return undefined;
    if (hasExited(ppid, host)) return undefined;
    const roots = workspacePath.startsWith("[") ? JSON.parse(workspacePath) : workspacePath.split(path.delimiter);
    return { port, token: String(authToken), roots: roots.filter(Boolean), time };
  } catch {
    return undefined;
  }
}

/** Return the numbers of the users that listen at PORT.
 *
 * Where the system does not tell, as on macOS and Windows, that is taken for this one. */
async function listeners(port) {
  let rows;
  try {
    rows = (await fs.promises.readFile("/proc/net/tcp", "utf8")).split("\n");
  } catch {
    return [process.getuid?.()];
  }
  // A row has a number, both ends, the state, three fields, and the user.
  const end = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter((row) => row[1] === end && row[3] === "0A")
    .map((row) => Number(row[7]));
}

const isOther = (user) => user !== process.getuid?.();

/** Return a socket to PORT through DONE, unless another user listens there.
 *
 * After a crash of Emacs, that may be a program that must get no token and no text. */
function connect({ port, host }, done) {
  const socket = net.connect(port, host);
  socket.once("error", done);
  socket.once("connect", async () => {
    const users = await listeners(port);
    socket.off("error", done);
    if (users.length && !users.some(isOther)) return done(null, socket);
    socket.destroy();
    done(new Error("Another user listens there"));
  });
}

/** Return the Emacs for the directory CWD whose discovery file is in DIRECTORY. */
export async function find(directory, cwd, environ = process.env) {
  let names = [];
  try {
    names = fs.readdirSync(directory).filter((name) => name.endsWith(".json"));
  } catch {
    return undefined;
  }
  const here = trueName(cwd);
  const isInside = (root) => here === root || here.startsWith(root.endsWith(path.sep) ? root : root + path.sep);
  const isWanted = (server) => String(server.port) === environ[PORT_VARIABLE];
  const servers = names
    .map((name) => readServer(path.join(directory, name)))
    .filter((server) => server?.roots.some((root) => isInside(trueName(root))))
    .sort((a, b) => isWanted(b) - isWanted(a) || b.time - a.time);
  // Nobody listens for a moment while a server is restarted.
  for (const server of servers) if (!(await listeners(server.port)).some(isOther)) return server;
  return undefined;
}

/** Return the directory of discovery files of a CLI: VARIABLE, else HOME in the home. */
export function directoryOf(variable, home) {
  const name = process.env[variable] || path.join("~", home);
  return path.join(name.replace(/^~(?=$|[/\\])/, os.homedir()), "ide");
}

// Connect

async function textOf(response) {
  let text = "";
  for await (const piece of response.setEncoding("utf8")) text += piece;
  return text;
}

/** A connection to Emacs, for which this searches until `stop' is called. */
export class Companion {
  /** NAME and VERSION are those of the CLI, which runs in CWD.  CHANGED is called when
   * `connected' has changed.  PROMPT is called with a text to submit, and returns a
   * promise whether that was taken. */
  constructor({ name, version, directory, cwd, changed = () => {}, prompt = async () => false }) {
    Object.assign(this, { name, version, directory, cwd, changed, prompt });
    this.connected = false;
    // Whether an Emacs runs for the directory, connected or not, as of the last search.
    this.isPresent = false;
    // The open files of Emacs, the last used first.
    this.files = [];
    // The open reviews, by file.
    this.reviews = new Map();
    // Requests for reviews, by file.
    this.openings = new Map();
    // Requests to close reviews.
    this.closings = new Set();
    this.ended = new AbortController();
    this.count = 0;
    // Resolved once this is connected, or there was no Emacs at the first search.  An
    // edit that comes earlier would have no review.
    this.ready = new Promise((resolve) => (this.setReady = resolve));
  }

  start() {
    this.running ??= this.run();
  }

  /** End the connection and all reviews, which also end in Emacs: a yes there would
   * write nothing. */
  async stop() {
    for (const review of [...this.reviews.values()]) void review.close("stopped");
    const requests = [...this.openings.values(), ...this.closings];
    await Promise.race([Promise.allSettled(requests), sleep(STOPPING)]);
    this.setConnected(false);
    this.ended.abort();
  }

  setConnected(connected) {
    this.setReady();
    if (connected === this.connected) return;
    this.connected = connected;
    if (!connected) this.files = [];
    this.changed(connected);
  }

  async run() {
    while (!this.ended.signal.aborted) {
      const server = await find(this.directory, this.cwd);
      this.isPresent = Boolean(server);
      let isSoon = false;
      try {
        if (server) {
          // A restarted server has the port and the token, and takes over the session.
          const isSame = server.port === this.server?.port && server.token === this.server?.token;
          if (!isSame || !this.session) await this.initialize(server);
          await this.listen();
          isSoon = true;
        }
      } catch (error) {
        if (error.status) this.session = undefined;
        else isSoon = this.connected && Boolean(server);
      }
      if (this.ended.signal.aborted) return;
      if (!isSoon) this.setConnected(false);
      await sleep(isSoon ? AGAIN : SEARCH, this.ended.signal);
    }
  }

  async initialize(server) {
    this.server = server;
    this.session = undefined;
    const clientInfo = { name: this.name, version: this.version };
    const { session } = await this.post("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
    this.session = session;
    await this.notify("notifications/initialized");
  }

  /** Return the response to a request for TO, whose headers come within LIMIT milliseconds. */
  request(method, body, limit, to = "/mcp") {
    const headers = {
      Authorization: `Bearer ${this.server.token}`,
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": "2025-06-18",
      ...(this.session && { "Mcp-Session-Id": this.session }),
      ...(body && { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) }),
    };
    const { signal } = this.ended;
    const options = { host: "127.0.0.1", port: this.server.port, path: to, method, headers, signal, createConnection: connect };
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => request.destroy(new Error("Emacs does not answer")), limit);
      const request = http.request(options, (response) => {
        clearTimeout(late);
        if (response.statusCode < 300) return resolve(response);
        response.resume();
        reject(Object.assign(new Error(`HTTP ${response.statusCode}`), { status: response.statusCode }));
      });
      request.on("error", (error) => (clearTimeout(late), reject(error)));
      request.end(body);
    });
  }

  async post(method, params, limit = REQUEST) {
    const body = JSON.stringify({ jsonrpc: "2.0", id: ++this.count, method, params });
    const response = await this.request("POST", body, limit);
    const text = await textOf(response);
    // The answer is JSON, or an event of a stream.
    const { result, error } = JSON.parse(text.startsWith("{") ? text : text.match(/^data: (.*)$/m)[1]);
    if (error) throw new Error(error.message);
    return { result, session: response.headers["mcp-session-id"] };
  }

  async notify(method) {
    const response = await this.request("POST", JSON.stringify({ jsonrpc: "2.0", method }), REQUEST);
    response.resume();
  }

  /** Read the event stream to its end. */
  async listen() {
    const response = await this.request("GET", undefined, REQUEST);
    this.setConnected(true);
    // A server that has a review open keeps what the user has done to it.
    for (const review of this.reviews.values()) if (!review.isClosing) void this.open(review);
    let text = "";
    for await (const piece of response.setEncoding("utf8")) {
      const events = (text + piece).split("\r\n\r\n");
      text = events.pop();
      for (const event of events) {
        const data = event.match(/^data: (.*)$/m);
        if (data) this.receive(JSON.parse(data[1]));
      }
    }
  }

  /** Handle a notification; unknown ones are of a later version. */
  receive({ method, params }) {
    if (method === "ide/contextUpdate") this.files = params.workspaceState?.openFiles ?? [];
    else if (method === "ide/prompt") void this.submit(params);
    else if (method === "ide/diffAccepted")
      this.reviews.get(params.filePath)?.end({ outcome: "accepted", content: params.content });
    else if (method === "ide/diffRejected")
      this.reviews.get(params.filePath)?.end({ outcome: "rejected", reason: params.reason });
  }

  /** Submit a prompt of Emacs, which keeps the TEXT until it is known to be taken. */
  async submit({ id, text }) {
    const isTaken = await this.prompt(text).catch(() => false);
    await this.call("promptEnded", { id, isTaken }).catch(() => {});
  }

  /** Tell Emacs that the file NAME was written without a review. */
  async wrote(name) {
    if (this.connected) await this.call("fileWritten", { filePath: name }).catch(() => {});
  }

  // What Emacs answers once the user has linked the CLIs

  /** Return the answer to REQUEST, an object, or {} if there is none within LIMIT. */
  async ask(request, limit) {
    if (!this.connected) return {};
    const body = JSON.stringify({ pid: process.pid, directory: this.cwd, ...request });
    const answer = this.request("POST", body, limit, "/tools").then(textOf).then(JSON.parse);
    return answer.catch(() => ({}));
  }

  /** Report EVENT with FACTS: an "edit" with the `file', and its texts `before' and
   * `after'; the "end" of a turn.  Return a text for the model. */
  async report(event, facts = {}) {
    const { text = "" } = await this.ask({ method: "event", event: { event, directory: this.cwd, ...facts } }, REPORT);
    return text;
  }

  /** Report PROMPT, and return what Emacs adds to it for the model. */
  async prompted(prompt) {
    const event = { event: "prompt", directory: this.cwd, prompt };
    const { text = "" } = await this.ask({ method: "event", confirms: true, event }, PROMPT);
    if (text) void this.ask({ method: "read" }, REPORT);
    return text;
  }

  /** Return what the model may ask, as descriptions of tools of MCP. */
  async tools() {
    const { tools = [] } = await this.ask({ method: "list" }, LIST);
    return tools;
  }

  /** Return the answer to the tool NAME with the arguments GIVEN, or throw an error. */
  async callTool(name, given) {
    const { content, isError } = await this.ask({ method: "call", name, arguments: given }, QUESTION);
    if (!content || isError) throw new Error(content?.[0]?.text ?? "Emacs does not answer");
    return content;
  }

  // Reviews

  async call(name, args, limit) {
    const { result } = await this.post("tools/call", { name, arguments: args }, limit);
    const text = result.content?.[0]?.text ?? "";
    if (result.isError) throw Object.assign(new Error(text), { isRefused: true });
    return text;
  }

  /** Close the review of the file NAME, and return the text that it has, if known. */
  async closed(name) {
    const closing = this.call("closeDiff", { filePath: name }, CLOSING).then(
      (answer) => JSON.parse(answer || "{}").content,
      () => undefined,
    );
    this.closings.add(closing);
    const content = await closing;
    this.closings.delete(closing);
    return content;
  }

  async open(review) {
    const opening = this.requestReview(review);
    this.openings.set(review.path, opening);
    await opening;
    if (this.openings.get(review.path) === opening) this.openings.delete(review.path);
  }

  async requestReview(review) {
    const file = { filePath: review.path };
    try {
      await this.call("openDiff", { ...file, newContent: review.text }, OPENING);
      // When it is sent again, its outcome may cross it; Emacs would open another one.
      if (review.isEnded) await this.call("closeDiff", file, CLOSING);
    } catch (error) {
      // Without a connection, it is opened when there is one again.
      if (error.isRefused) review.end({ outcome: "failed", reason: error.message });
    }
  }

  /** Open a review of TEXT for the file NAME, an absolute name, and return it.
   *
   * Its `answer' is a promise of {outcome, content, reason}: the outcome is "accepted",
   * "rejected", "failed", or that with which `close' was called.  For a yes, that
   * returns undefined if it is not known what text Emacs has, and the review stays. */
  async review(name, text) {
    while (this.reviews.has(name) || this.openings.has(name))
      await (this.reviews.get(name)?.answer ?? this.openings.get(name).then(() => sleep(0)));
    const review = { path: name, text };
    review.answer = new Promise((resolve) => {
      review.end = (answer) => {
        review.isEnded = true;
        if (this.reviews.get(name) === review) this.reviews.delete(name);
        resolve(answer);
      };
    });
    // The user has answered in the CLI; a yes takes the text that Emacs has now, or if
    // IS_BLIND, the one that was proposed.
    review.close = async (outcome, reason, isBlind = false) => {
      if (review.isClosing || review.isEnded) return review.answer;
      review.isClosing = true;
      const closed = this.closed(name);
      const isTaken = outcome === "accepted" && !isBlind;
      const content = isTaken ? await closed : text;
      if (content !== undefined) review.end({ outcome, content, reason });
      else if (!review.isEnded) {
        review.isClosing = false;
        void this.open(review);
        return undefined;
      }
      return review.answer;
    };
    this.reviews.set(name, review);
    void this.open(review);
    return review;
  }
}

// Texts for the model

/** Return a description of the open files FILES of Emacs, "" without any. */
export function describe(files, cwd) {
  const name = (file) => {
    const relative = path.relative(cwd, file.path);
    return relative.startsWith("..") ? file.path : relative;
  };
  const active = files.find((file) => file.isActive);
  const lines = [];
  if (active) {
    const at = active.cursor ? `, line ${active.cursor.line}, column ${active.cursor.character}` : "";
    lines.push(`Active file: ${name(active)}${at}.`);
    if (active.selectedText) lines.push(`Selected text:\n\`\`\`\n${active.selectedText}\n\`\`\``);
  }
  const others = files.filter((file) => file !== active).slice(0, 9).map(name);
  if (others.length) lines.push(`Other open files: ${others.join(", ")}.`);
  return lines.join("\n");
}

// Bounds of a difference for a model, in characters.
const LONGEST_LINE = 400;
const LONGEST_DIFFERENCE = 8000;

/** Return the lines in which BEFORE and AFTER differ, as many as fit. */
export function difference(before, after) {
  const [a, b] = [before.split("\n"), after.split("\n")];
  const equal = [...align(a, b), a.length];
  const rows = [];
  for (let i = 0, j = 0; j <= b.length; i = equal[j] + 1, j++) {
    const first = j;
    while (equal[j] < 0) j++;
    if (i === equal[j] && first === j) continue;
    rows.push(`@@ line ${first + 1} @@`);
    for (const line of a.slice(i, equal[j])) rows.push(`-${line}`);
    for (const line of b.slice(first, j)) rows.push(`+${line}`);
  }
  const shown = [];
  for (let size = 0; shown.length < rows.length; ) {
    const row = rows[shown.length];
    const cut = row.slice(0, LONGEST_LINE).replace(/[\ud800-\udbff]$/, "");
    const line = cut === row ? row : `${cut}… (${row.length} characters)`;
    size += line.length + 1;
    if (size > LONGEST_DIFFERENCE) break;
    shown.push(line);
  }
  if (shown.length < rows.length) shown.push(`… ${rows.length - shown.length} more lines; read the file`);
  return shown.join("\n");
}

/** Return TEXT, whose lines end by \\n, with the line ends of WHOLE.
 *
 * Each line of WHOLE keeps its own; a new line has that of the line before it. */
export function withLineEnds(text, whole) {
  const ends = whole.match(/\r?\n/g) ?? [];
  if (!ends.includes("\r\n")) return text;
  const lines = text.split("\n");
  const equal = align(whole.replaceAll("\r\n", "\n").split("\n"), lines);
  // The next line of WHOLE that is kept, for each line.
  const next = [];
  for (let n = lines.length, place = Infinity; n-- > 0; next[n] = place) if (equal[n] >= 0) place = equal[n];
  let [place, end] = [-1, ends[0]];
  return lines
    .map((line, n) => {
      if (n === lines.length - 1) return line;
      if (equal[n] >= 0) place = equal[n];
      // A changed line has the end of the one that it replaces.
      else if (place + 1 < Math.min(next[n], ends.length)) place++;
      else return line + end;
      end = ends[place] ?? end;
      return line + end;
    })
    .join("");
}

/** Return the index of an equal line of A for each line of B, or -1, in ascending order.
 *
 * Equal lines at both ends of a block belong together, and those that it has once. */
function align(a, b) {
  const equal = new Array(b.length).fill(-1);
  const within = (i, iEnd, j, jEnd) => {
    while (i < iEnd && j < jEnd && a[i] === b[j]) equal[j++] = i++;
    while (i < iEnd && j < jEnd && a[iEnd - 1] === b[jEnd - 1]) equal[--jEnd] = --iEnd;
    if (i === iEnd || j === jEnd) return;
    const anchors = common(a, i, iEnd, b, j, jEnd);
    if (!anchors.length) return;
    for (const [x, y] of anchors) {
      within(i, x, j, y);
      equal[y] = x;
      [i, j] = [x + 1, y + 1];
    }
    within(i, iEnd, j, jEnd);
  };
  within(0, a.length, 0, b.length);
  return equal;
}

/** Return the longest ascending list of pairs of lines that both blocks have once. */
function common(a, i, iEnd, b, j, jEnd) {
  const once = (lines, first, end) => {
    const places = new Map();
    for (let n = first; n < end; n++) places.set(lines[n], places.has(lines[n]) ? -1 : n);
    return places;
  };
  const there = once(a, i, iEnd);
  // The last pairs of the best lists of each length; a pair knows the one before it.
  const best = [];
  for (const [line, y] of once(b, j, jEnd)) {
    const x = there.get(line) ?? -1;
    if (x < 0 || y < 0) continue;
    let [low, high] = [0, best.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (best[middle].x < x) low = middle + 1;
      else high = middle;
    }
    best[low] = { x, y, before: best[low - 1] };
  }
  const pairs = [];
  for (let pair = best.at(-1); pair; pair = pair.before) pairs.push([pair.x, pair.y]);
  return pairs.reverse();
}
