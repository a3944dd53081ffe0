// SPDX-License-Identifier: GPL-3.0-or-later
// Emacs as the editor of Pi: its context goes with the prompts, and each edit has a
// review in Emacs before it is written.
//
// The tools that edit are those of Pi; only what they write to a file goes by Emacs.
// So a review has exactly the text that Pi would write, and edits of one file follow
// one another.  An event of a tool call would be too early: Pi sends those of all calls
// of an answer before the first of them is run.

import { realpathSync } from "node:fs";
import fs from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import {
  VERSION,
  createEditToolDefinition,
  createWriteToolDefinition,
  generateDiffString,
  generateUnifiedPatch,
} from "@earendil-works/pi-coding-agent";
import { Companion, describe, difference, directoryOf, sleep, withLineEnds } from "./companion.mjs";

const FILE = fileURLToPath(import.meta.url);
const BYTE_ORDER_MARK = "\ufeff";
const WAIT = "Wait for Emacs";
const YES = "Yes, write it";
const NO = "No";
const WHY = "No, with a reason";
const BLIND = "Yes, as proposed by Pi";

// Milliseconds between two checks of what Pi does.
const CHECK = 100;
// Milliseconds in which Pi begins to handle a prompt.
const TAKEN = 5000;

const READING_TOOLS = ["read", "grep", "find", "ls"];
// What a tool of another extension is called that may write files.
const WRITES = /edit|write|patch|replace/i;
// The arguments in which such tools name files, and the names in a patch.
const FILE_KEY = /^(file_?)?(path|name)$|^file$/i;
const PATCHED = /^\*\*\* (?:Add|Update) File: (.+)$/gm;
const MOST_FILES = 20;
// That of the names of our tools for the model.
const PREFIX = "emacs_";

function isOwn(name) {
  try {
    return realpathSync(name) === realpathSync(FILE);
  } catch {
    return false;
  }
}

export default function (pi) {
  let companion;
  // The context that the model has.
  let sent = "";

  // Session

  pi.on("session_start", (_event, ctx) => {
    sent = "";
    companion = new Companion({
      name: "pi",
      version: VERSION,
      directory: directoryOf("PI_CODING_AGENT_DIR", ".pi/agent"),
      cwd: ctx.cwd,
      changed: () => ((shown = undefined), showConnection(ctx), showReviews(ctx)),
      prompt: (text) => (prompts = prompts.then(() => submit(ctx, text))),
    });
    showConnection(ctx);
    register(createEditToolDefinition);
    register(createWriteToolDefinition);
    companion.start();
  });
  pi.on("session_shutdown", async (_event, ctx) => {
    if (shown && ctx.mode === "tui") process.stdout.write("\x1b]7501;id=emacs:state=clear\x1b\\");
    await companion?.stop();
  });

  const isOthers = ({ sourceInfo }) => sourceInfo?.source !== "builtin" && !isOwn(sourceInfo?.path);

  /** Return the names of the tools of others that may write files without a review. */
  function unreviewed() {
    const active = pi.getActiveTools();
    const tools = pi.getAllTools().filter((tool) => isOthers(tool) && WRITES.test(tool.name));
    return tools.map(({ name }) => name).filter((name) => active.includes(name));
  }

  function showConnection(ctx) {
    const others = unreviewed().join(", ");
    const connected = others ? `Emacs (no review of ${others})` : "Emacs";
    if (ctx.hasUI) ctx.ui.setStatus("emacs", companion.connected ? connected : "no Emacs");
  }

  // Pi reports its own state by the Program Status Protocol only to a terminal that has
  // answered at its start, and neither a summary of a branch nor a review.
  let shown;
  function showState(ctx) {
    const isBlocked = Boolean(companion?.reviews.size);
    const state = isBlocked ? "blocked:kind=permission" : isRunning || isWorking ? "working" : "idle";
    if (ctx.mode !== "tui" || !companion?.connected || state === shown) return;
    shown = state;
    process.stdout.write(`\x1b]7501;id=emacs:app=pi:state=${state}\x1b\\`);
  }

  let isWorking = false;
  let isRunning = false;
  pi.on("agent_start", (_event, ctx) => {
    isRunning = true;
    showState(ctx);
  });
  pi.on("agent_settled", (_event, ctx) => {
    isRunning = false;
    showState(ctx);
    void companion?.report("end");
  });

  /** Show that Pi works without an agent, until it is idle; no event says that. */
  async function showWork(ctx) {
    isWorking = true;
    showState(ctx);
    await idle(ctx);
    isWorking = false;
    showState(ctx);
  }
  pi.on("session_before_compact", (_event, ctx) => void showWork(ctx));
  pi.on("session_before_tree", ({ preparation }, ctx) => {
    if (preparation.userWantsSummary) void showWork(ctx);
  });

  async function idle(ctx, isEnough = () => false) {
    const { signal } = companion.ended;
    while (!signal.aborted && !isEnough() && !ctx.isIdle()) await sleep(CHECK, signal);
  }

  // Prompts

  // The last prompt of Emacs, as a promise.
  let prompts = Promise.resolve();
  // The prompt that Pi is to take.
  let sending;

  /** Submit TEXT as a prompt, and return whether Pi has taken it.
   *
   * Pi refuses it while it compacts the conversation or summarizes a branch, and without
   * a model, and reports that only to the user. */
  async function submit(ctx, text) {
    const { signal } = companion.ended;
    await idle(ctx, () => isRunning);
    if (signal.aborted) return false;
    const prompt = (sending = { text, isTaken: false });
    pi.sendUserMessage(text, { deliverAs: "followUp" });
    const end = Date.now() + TAKEN;
    while (!signal.aborted && !prompt.isTaken && (Date.now() < end || !ctx.isIdle())) await sleep(CHECK, signal);
    sending = undefined;
    return prompt.isTaken;
  }
  pi.on("input", ({ text, source, streamingBehavior }) => {
    // Pi queues it while an agent runs.
    if (source === "extension" && text === sending?.text && streamingBehavior) sending.isTaken = true;
  });

  pi.on("before_agent_start", async ({ prompt }, ctx) => {
    if (sending) sending.isTaken = true;
    await companion?.ready;
    const added = (await companion?.prompted(prompt ?? "")) ?? "";
    await offerTools();
    const context = companion?.connected ? describe(companion.files, ctx.cwd) : "";
    const isNew = context && context !== sent;
    if (isNew) sent = context;
    const parts = [isNew && context, added].filter(Boolean);
    if (!parts.length) return undefined;
    const content = `<editor name="Emacs">\n${parts.join("\n\n")}\n</editor>`;
    return { message: { customType: "emacs-context", content, display: false } };
  });

  // What other tools write

  // The tools with reviews.
  const own = new Set();
  const writes = (name) => !own.has(name) && !READING_TOOLS.includes(name) && !name.startsWith(PREFIX);
  const callOf = ({ toolCallId, toolName, input }) => ({ id: toolCallId, name: String(input?.command ?? toolName).slice(0, 2000) });

  /** Return the names of files in INPUT, the arguments of a tool. */
  function filesIn(input, cwd) {
    const names = new Set();
    const add = (name) => names.size < MOST_FILES && names.add(path.resolve(cwd, name));
    const search = (value, key, depth) => {
      if (typeof value === "string") {
        if (FILE_KEY.test(key)) add(value);
        else for (const [, name] of value.matchAll(PATCHED)) add(name.trim());
      } else if (value && typeof value === "object" && depth < 4)
        for (const [inner, one] of Object.entries(value)) search(one, Array.isArray(value) ? key : inner, depth + 1);
    };
    search(input, "", 0);
    return [...names];
  }

  pi.on("tool_call", async (event) => {
    if (writes(event.toolName)) await companion?.report("called", callOf(event));
  });
  pi.on("tool_result", async (event, ctx) => {
    if (!writes(event.toolName)) return;
    for (const name of filesIn(event.input, ctx.cwd)) await companion?.wrote(name);
    await companion?.report("returned", callOf(event));
  });

  // Questions of the model

  // The tools of Emacs that are registered, by our names for them.
  const registered = new Set();

  /** Offer the model the tools of Emacs, as long as that answers what linked CLIs ask. */
  async function offerTools() {
    const tools = await (companion?.tools() ?? []);
    const names = tools.map(({ name }) => PREFIX + name);
    for (const { name, description, inputSchema } of tools) {
      if (registered.has(PREFIX + name)) continue;
      registered.add(PREFIX + name);
      pi.registerTool({
        name: PREFIX + name,
        label: `Emacs: ${name}`,
        description,
        parameters: inputSchema,
        execute: async (_id, params) => ({ content: await companion.callTool(name, params), details: undefined }),
      });
    }
    if (!registered.size) return;
    const active = pi.getActiveTools();
    const wanted = [...active.filter((name) => !registered.has(name)), ...names];
    if (wanted.length !== active.length) pi.setActiveTools(wanted);
  }

  // Reviews

  /** Show which reviews are open.  This takes no key: the user may be typing. */
  function showReviews(ctx) {
    const names = [...companion.reviews.keys()].map((name) => path.relative(ctx.cwd, name));
    const where = companion.connected ? "In review in Emacs" : "Waiting for Emacs, which had the review of";
    if (ctx.hasUI)
      ctx.ui.setWidget("emacs", names.length ? [`${where}: ${names.join(", ")} (/emacs answers here, Esc stops)`] : undefined);
    showState(ctx);
  }

  /** Ask about the open reviews in the terminal; the first answer counts. */
  async function ask(ctx) {
    for (const review of [...(companion?.reviews.values() ?? [])]) {
      const answered = new AbortController();
      void review.answer.then(() => answered.abort());
      const { signal } = answered;
      const shown = path.relative(ctx.cwd, review.path);
      // The user may have typed Enter before the question was on the screen.
      const answer = await ctx.ui.select(`Write ${shown}?`, [WAIT, YES, NO, WHY], { signal });
      if (signal.aborted) continue;
      if (answer === YES) {
        if (await review.close("accepted")) continue;
        const title = `Emacs does not answer: what you have changed there in ${shown} is not known`;
        const other = await ctx.ui.select(title, [WAIT, BLIND, NO], { signal });
        if (signal.aborted) continue;
        if (other === BLIND) await review.close("accepted", undefined, true);
        else if (other === NO) await review.close("rejected");
        else return;
      } else if (answer === NO) await review.close("rejected");
      else if (answer === WHY) {
        const reason = await ctx.ui.input(`Why not ${shown}?`, "", { signal });
        if (!signal.aborted && reason !== undefined) await review.close("rejected", reason);
      } else return;
    }
  }
  pi.registerCommand("emacs", {
    description: "Answer here about edits that are in review in Emacs",
    handler: (_args, ctx) => ask(ctx),
  });

  /** Return the text to write in place of TEXT, or throw an error for the model. */
  async function reviewed(ctx, signal, name, text) {
    const shown = path.relative(ctx.cwd, name) || name;
    const review = await companion.review(name, text);
    const stop = () => void review.close("stopped");
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) stop();
    showReviews(ctx);
    const { outcome, content, reason } = await review.answer;
    signal?.removeEventListener("abort", stop);
    showReviews(ctx);
    if (outcome === "accepted") return content;
    if (outcome === "rejected")
      throw new Error(`The user rejected this edit of ${shown}; nothing was written.${reason ? ` The reason: ${reason}` : ""}`);
    if (outcome === "failed") throw new Error(`Emacs cannot show a review of ${shown}; nothing was written: ${reason}`);
    throw new Error("Operation aborted");
  }

  /** Register the tool that MAKE defines, with reviews of what it writes.
   *
   * Pi does not start if two extensions register one tool while they are loaded. */
  function register(make) {
    const plain = make(process.cwd());
    if (pi.getAllTools().some((tool) => tool.name === plain.name && isOthers(tool))) return;
    own.add(plain.name);
    pi.registerTool({
      ...plain,
      // If the user has turned the tool off, it stays off.
      defaultActive: false,
      async execute(id, params, signal, onUpdate, ctx) {
        await companion?.ready;
        // An Emacs that runs, but does not answer, has the edit once it does.
        if (!(companion?.connected || companion?.isPresent) || !ctx.hasUI) return make(ctx.cwd).execute(id, params, signal, onUpdate, ctx);
        let change;
        const operations = {
          access: (name) => fs.access(name, fs.constants.R_OK | fs.constants.W_OK),
          readFile: (name) => fs.readFile(name),
          // The directory is made with the file, which may be rejected.
          mkdir: async () => {},
          async writeFile(name, whole) {
            const old = await fs.readFile(name, "utf8").catch(() => undefined);
            if (old === whole) return;
            const mark = whole.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : "";
            const plain = whole.slice(mark.length);
            const proposed = plain.replaceAll("\r\n", "\n");
            const accepted = await reviewed(ctx, signal, name, proposed);
            const text = accepted === proposed ? whole : mark + withLineEnds(accepted, plain);
            await fs.mkdir(path.dirname(name), { recursive: true });
            // The time of a script of codemode may be over.
            if (signal?.aborted) throw new Error("Operation aborted");
            await fs.writeFile(name, text);
            change = { file: name, old: old?.replaceAll("\r\n", "\n"), proposed, accepted };
          },
        };
        const result = await make(ctx.cwd, { operations }).execute(id, params, signal, onUpdate, ctx);
        if (!change) return result;
        const { file, old, proposed, accepted } = change;
        const before = old ?? "";
        const errors = await companion.report("edit", { file, before: old, after: accepted });
        const content = [...result.content, ...(errors ? [{ type: "text", text: errors }] : [])];
        if (accepted === proposed) return { ...result, content };
        // The terminal and the model have what was written.
        const note = `The user changed this edit before it was written.  Your text (-) and the text in the file (+):\n${difference(proposed, accepted)}`;
        // These are slow; the details of a written file have neither.
        const details = result.details && {
          ...result.details,
          ...generateDiffString(before, accepted),
          patch: generateUnifiedPatch(params.path, before, accepted),
        };
        return { ...result, content: [...content, { type: "text", text: note }], details };
      },
    });
  }
}
