;;; gemini-companion-editor.el --- The editor key of a CLI  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Open the prompt of a CLI in this Emacs, by the key of the CLI that opens it in the
;; editor $VISUAL.  This works while `server-mode' is on.  Programs that the model runs
;; inherit $VISUAL: a git commit would open a buffer in Emacs and wait for the user,
;; who does not know of the commit.  So $VISUAL is set to a script, which opens only
;; the prompts and plans of CLIs in Emacs, and passes other files to the previous
;; editor.

;;; Code:

(require 'gemini-companion-client)
(require 'gemini-companion-install)
(require 'gemini-companion-text)

(defvar server-auth-dir)
(defvar server-name)
(defvar server-process)
(defvar server-socket-dir)
(defvar server-use-tcp)

;;;; Customization

(defcustom gemini-companion-run-editor nil
  "Non-nil means the editor key of a CLI opens its prompt in this Emacs.
The key that edits a plan opens the plan.  This works for CLIs that
`gemini-companion-run' starts on this host while `server-mode' is on.
It takes effect when a CLI is started."
  :type 'boolean
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-terminal)

;;;; Script

(defconst gemini-companion-editor--script "\
#!/bin/sh
# Written by gemini-companion: the editor of a CLI, and of what it runs.
for file; do
    case $file in
        $GEMINI_COMPANION_EDITOR_FILE | $GEMINI_COMPANION_EDITOR_PLAN)
            exec \"$GEMINI_COMPANION_EMACSCLIENT\" --quiet \\
                \"$GEMINI_COMPANION_EDITOR_SERVER\" \"$file\" ;;
    esac
done
# As git runs it.
exec sh -c \"${GEMINI_COMPANION_VISUAL:-vi} \\\"\\$@\\\"\" editor \"$@\"
"
  "Text of the script, which gets the names of files as arguments.")

(defun gemini-companion-editor--file ()
  "Return the name of the script; write the script if necessary.
Return nil if the name has a space, at which Gemini CLI would split it."
  (let ((file (expand-file-name "editor" gemini-companion-install-directory)))
    (unless (string-match-p "[ \t]" file)
      (unless (and (file-exists-p file)
                   (equal gemini-companion-editor--script
                          (gemini-companion-text-read file)))
        (with-file-modes #o700
          (make-directory (file-name-directory file) t)
          (gemini-companion-text-write file gemini-companion-editor--script)))
      (set-file-modes file #o700)
      file)))

;;;; Environment

(defun gemini-companion-editor--server ()
  "Return the option of emacsclient for the server of this Emacs.
Return nil if no server runs."
  (when (and (bound-and-true-p server-process)
             (process-live-p server-process))
    (if server-use-tcp
        (concat "--server-file=" (expand-file-name server-name server-auth-dir))
      (concat "--socket-name=" (expand-file-name server-name
                                                 server-socket-dir)))))

(defun gemini-companion-editor--emacsclient ()
  "Return the name of the program emacsclient, or nil."
  (or (executable-find "emacsclient")
      (let ((beside (expand-file-name "emacsclient" invocation-directory)))
        (and (file-executable-p beside) beside))))

(defun gemini-companion-editor--plan (client)
  "Return a shell pattern for the plans of CLIENT, or an empty string.
In a case pattern, a star matches slashes, so the last glob matches all plans."
  (let ((glob (car (last (gemini-companion-client-plan-files client)))))
    (if glob
        (concat (gemini-companion-client-home client) glob)
      "")))

(defun gemini-companion-editor-environment (client environment)
  "Return ENVIRONMENT with variables for the editor key of CLIENT.
It is ENVIRONMENT itself if `gemini-companion-run-editor' is nil, if this Emacs
runs no server, or if no file of that key is known for CLIENT."
  (let* ((pattern (and gemini-companion-run-editor
                       (gemini-companion-client-editor-file client)))
         (server (and pattern (gemini-companion-editor--server)))
         (program (and server (gemini-companion-editor--emacsclient)))
         (script (and program (gemini-companion-editor--file))))
    (if (not script)
        environment
      (let ((process-environment environment))
        (append (list (concat "VISUAL=" script)
                      (concat "GEMINI_COMPANION_VISUAL="
                              (or (getenv "VISUAL") (getenv "EDITOR")))
                      (concat "GEMINI_COMPANION_EDITOR_FILE=*/" pattern)
                      (concat "GEMINI_COMPANION_EDITOR_PLAN="
                              (gemini-companion-editor--plan client))
                      (concat "GEMINI_COMPANION_EDITOR_SERVER=" server)
                      (concat "GEMINI_COMPANION_EMACSCLIENT=" program))
                environment)))))

(provide 'gemini-companion-editor)
;;; gemini-companion-editor.el ends here
