// SPDX-License-Identifier: GPL-3.0-or-later
// truth.js TYPESCRIPT PROJECT < EDITS > ERRORS: the errors of each text.
const [, , typescript, project] = process.argv;
const ts = require(typescript);
const path = require("path");
const edits = JSON.parse(require("fs").readFileSync(0, "utf8"));
const config = path.join(project, "tsconfig.json");
const parsed = ts.parseJsonConfigFileContent(
  ts.readConfigFile(config, ts.sys.readFile).config, ts.sys, project);
const texts = new Map();
let version = 0;
const host = {
  ...ts.sys,
  useCaseSensitiveFileNames: () => true,
  getScriptFileNames: () => parsed.fileNames,
  getScriptVersion: (name) => (texts.has(name) ? `${version}` : "0"),
  getScriptSnapshot: (name) => {
    const text = texts.get(name) ?? ts.sys.readFile(name);
    return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
  },
  getCurrentDirectory: () => project,
  getCompilationSettings: () => parsed.options,
  getDefaultLibFileName: (options) => ts.getDefaultLibFilePath(options),
};
const service = ts.createLanguageService(host);
const errors = (file, text) => {
  texts.clear();
  texts.set(file, text);
  version += 1;
  return [...service.getSyntacticDiagnostics(file),
          ...service.getSemanticDiagnostics(file)]
    .filter((found) => found.category === ts.DiagnosticCategory.Error)
    .map((found) => [
      found.file.getLineAndCharacterOfPosition(found.start).line + 1,
      ts.flattenDiagnosticMessageText(found.messageText, "\n"),
    ]);
};
console.log(JSON.stringify(edits.map((edit) => ({
  before: errors(edit.file, edit.before),
  after: errors(edit.file, edit.after),
}))));
