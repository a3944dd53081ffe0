// SPDX-License-Identifier: GPL-3.0-or-later
// A companion as the one of VS Code is built: the MCP SDK behind express, a
// transport for each session.  In place of an editor it follows a file of
// events, JSON objects one a line.  Prints its port once it listens.

import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readSync, watch } from 'node:fs';
import express from 'express';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

const DEBOUNCE = 50;
const [token, events] = process.argv.slice(2);
const transports = new Map();
const diffs = new Map();
let context = { workspaceState: { openFiles: [] } };
let timer;

function notify(method, params) {
  for (const transport of transports.values()) {
    transport.send({ jsonrpc: '2.0', method, params }).catch(() => {});
  }
}

function broadcast() {
  timer = undefined;
  notify('ide/contextUpdate', context);
}

function take(event) {
  if (event.kind === 'accept') {
    const content = diffs.get(event.path);
    diffs.delete(event.path);
    notify('ide/diffAccepted', { filePath: event.path, content });
  } else {
    context = { workspaceState: { openFiles: event.files } };
    clearTimeout(timer);
    timer = setTimeout(broadcast, DEBOUNCE);
  }
}

function follow(path) {
  const file = openSync(path, 'r');
  const buffer = Buffer.alloc(1 << 20);
  let rest = '';
  watch(path, () => {
    for (let size; (size = readSync(file, buffer)) > 0; ) {
      const lines = (rest + buffer.toString('utf8', 0, size)).split('\n');
      rest = lines.pop();
      lines.forEach((line) => take(JSON.parse(line)));
    }
  });
  process.on('exit', () => closeSync(file));
}

function newServer() {
  const server = new McpServer(
    { name: 'comparator', version: '1.0.0' },
    { capabilities: { logging: {} } },
  );
  server.registerTool(
    'openDiff',
    {
      description: 'Open a diff.',
      inputSchema: z.object({ filePath: z.string(), newContent: z.string() }).shape,
    },
    async ({ filePath, newContent }) => {
      diffs.set(filePath, newContent);
      return { content: [] };
    },
  );
  server.registerTool(
    'closeDiff',
    {
      description: 'Close a diff.',
      inputSchema: z.object({
        filePath: z.string(),
        suppressNotification: z.boolean().optional(),
      }).shape,
    },
    async ({ filePath }) => {
      const content = diffs.get(filePath);
      diffs.delete(filePath);
      return { content: [{ type: 'text', text: JSON.stringify({ content }) }] };
    },
  );
  return server;
}

function newTransport() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => transports.set(id, transport),
  });
  const ping = setInterval(
    () => transport.send({ jsonrpc: '2.0', method: 'ping' }).catch(() => {}),
    60_000,
  );
  transport.onclose = () => {
    clearInterval(ping);
    transports.delete(transport.sessionId);
  };
  newServer().connect(transport);
  return transport;
}

const app = express();
app.use(express.json({ limit: '64mb' }));
app.use((request, response, next) => {
  const isRight =
    request.headers.host === `127.0.0.1:${port}` &&
    request.headers.authorization === `Bearer ${token}`;
  if (isRight) next();
  else response.status(401).send('Unauthorized');
});
app.post('/mcp', async (request, response) => {
  const known = transports.get(request.headers['mcp-session-id']);
  if (known || isInitializeRequest(request.body)) {
    await (known ?? newTransport()).handleRequest(request, response, request.body);
  } else {
    response.status(400).send('No valid session');
  }
});
app.get('/mcp', async (request, response) => {
  const known = transports.get(request.headers['mcp-session-id']);
  if (known) {
    await known.handleRequest(request, response);
  } else {
    response.status(400).send('No valid session');
  }
});

let port;
const listening = app.listen(0, '127.0.0.1', () => {
  port = listening.address().port;
  process.stdout.write(`${port}\n`);
});
// A client waits for others between two requests, on a busy machine for long.
listening.keepAliveTimeout = 0;
follow(events);
