;;; gemini-companion-git.el --- The git that Emacs starts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A repository may be hostile, and the environment of Emacs may name another one.  So
;; git gets no variable that chooses a repository, an index, objects or a program.  It
;; fetches nothing, and starts no program.  The server does the same, in git.py.

;;; Code:

(require 'seq)

(defconst gemini-companion-git-command
  `("git" "--no-pager" "--no-optional-locks" "--literal-pathspecs"
    ;; A project may set these to programs.
    "-c" "core.fsmonitor=false" "-c" ,(concat "core.hooksPath=" null-device)
    "-c" "log.showSignature=false")
  "The beginning of a command by which git reads a repository of the user.")

(defconst gemini-companion-git--kept
  "\\`GIT_\\(?:CONFIG\\|CEILING_DIRECTORIES=\\|DISCOVERY_ACROSS_FILESYSTEM=\\)"
  "Regexp of variables that say which settings git reads.
Others choose a repository or a program.")

(defconst gemini-companion-git--never
  '("GIT_NO_LAZY_FETCH=1"
    ;; Git knows that since 2.44; no protocol has this name.
    "GIT_ALLOW_PROTOCOL=none"
    "GIT_NO_REPLACE_OBJECTS=1" "GIT_OPTIONAL_LOCKS=0" "GIT_TERMINAL_PROMPT=0")
  "Variables by which git starts no program.")

(defun gemini-companion-git-environment (&rest variables)
  "Return the `process-environment' of a git, with VARIABLES such as \"X=1\"."
  (append variables
          gemini-companion-git--never
          (let ((case-fold-search nil))
            (seq-filter (lambda (variable)
                          (or (not (string-prefix-p "GIT_" variable))
                              (string-match-p gemini-companion-git--kept variable)))
                        process-environment))))

(provide 'gemini-companion-git)
;;; gemini-companion-git.el ends here
