;;; gemini-companion-tools.el --- Link CLIs to Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A CLI that is linked to this Emacs reports each edit after it was written, and
;; gets the new errors; its model may ask about the code.  This file dispatches
;; the calls of the server, and has the command that links the CLIs.  It does
;; nothing until the user runs that command.
;;
;; What links them is an extension: a directory with a manifest for each kind of
;; CLI, a hook, and the program that both start, the bridge.  A CLI finds it by a
;; pointer among its own extensions, as its command "extensions link" writes it.
;; That command would also mark the directory in which it runs as trusted, and
;; leave files behind.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-clients)
(require 'gemini-companion-code)
(require 'gemini-companion-errors)
(require 'gemini-companion-install)
(require 'gemini-companion-revert)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-settings)
(require 'gemini-companion-share)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'json)
(require 'seq)
(require 'subr-x)

(defconst gemini-companion-tools--name "gemini-companion"
  "Name of the extension.")

(defconst gemini-companion-tools--server "emacs"
  "Name of the bridge in the CLIs, which is part of the names of tools.")

(defconst gemini-companion-tools--hook-milliseconds 6000
  "Milliseconds after which a CLI stops the hook, which ends before that.")

(defvar gemini-companion-tools--counts (list 0 0)
  "The numbers of questions and of edits since the mode was turned on.")

;;;; Extension

(defun gemini-companion-tools-directory ()
  "Return the directory of the extension."
  (expand-file-name "extension/" gemini-companion-install-directory))

(defun gemini-companion-tools-extension-p ()
  "Return non-nil if the extension was written."
  (file-exists-p (expand-file-name "bridge.py"
                                   (gemini-companion-tools-directory))))

(defun gemini-companion-tools--python ()
  "Return the Python for the bridge.
It is that of the server, by a name that outlives an update of its
packages."
  (let ((program (car (gemini-companion-install-command))))
    (file-truename
     (or (executable-find
          (if (and program
                   (string-match-p "python" (file-name-nondirectory program)))
              program
            "python3"))
         (user-error "Cannot find a Python; \
M-x gemini-companion-install-server installs what is needed")))))

(defun gemini-companion-tools--command (client &rest options)
  "Return the command of the bridge for CLIENT, with OPTIONS."
  ;; With -I and the directory, Python imports more and starts later.
  (append (list (gemini-companion-tools--python) "-E" "-s" "-S"
                (expand-file-name "__main__.py"
                                  (gemini-companion-tools-directory))
                client)
          options))

(defun gemini-companion-tools--manifest (client)
  "Return the manifest for CLIENT, for `json-encode'."
  (let ((command (gemini-companion-tools--command client)))
    `((name . ,gemini-companion-tools--name)
      (version . ,gemini-companion-server-version)
      (mcpServers
       . ((,gemini-companion-tools--server
           . ((command . ,(car command))
              (args . ,(vconcat (cdr command)))
              ;; Otherwise Qwen Code hides the tools behind its tool_search.
              (alwaysLoadTools . t))))))))

(defun gemini-companion-tools--hooks (client event matcher)
  "Return the hook of CLIENT after EVENT of a tool that MATCHER matches."
  `((,event
     . [((matcher . ,matcher)
         (hooks
          . [((type . "command")
              (name . ,gemini-companion-tools--server)
              ;; A CLI takes the status 2, with which Python ends after the
              ;; extension was deleted, for the failure of the edit.
              (command . ,(concat
                           (mapconcat #'shell-quote-argument
                                      (gemini-companion-tools--command
                                       client "--hook")
                                      " ")
                           " || echo {}"))
              (timeout . ,gemini-companion-tools--hook-milliseconds))]))])))

(defun gemini-companion-tools--files ()
  "Return an alist of the names and texts of the files of the extension."
  (list
   (cons "gemini-extension.json"
         (json-encode (gemini-companion-tools--manifest "gemini")))
   (cons "hooks/hooks.json"
         (json-encode
          `((hooks . ,(gemini-companion-tools--hooks
                       "gemini" "AfterTool" "write_file|replace")))))
   (cons "qwen-extension.json"
         (json-encode
          (append (gemini-companion-tools--manifest "qwen")
                  `((hooks . ,(gemini-companion-tools--hooks
                               "qwen" "PostToolUse" "write_file|edit"))))))
   ;; Python caches only modules that are imported; a hook runs after each edit.
   (cons "__main__.py" "import bridge\n\nbridge.main()\n")
   (cons "bridge.py"
         (gemini-companion-text-read
          (expand-file-name "python/gemini_companion_epc/bridge.py"
                            gemini-companion-server-directory)))))

(defun gemini-companion-tools-write-extension ()
  "Write those files of the extension that are missing or differ.
After an update of this package, the CLIs find the new ones."
  (pcase-dolist (`(,name . ,text) (gemini-companion-tools--files))
    (let ((file (expand-file-name name
                                  (gemini-companion-tools-directory))))
      (unless (and (file-exists-p file)
                   (equal text (gemini-companion-text-read file)))
        (gemini-companion-tools--write file text)))))

(defun gemini-companion-tools--write (file text)
  "Write TEXT to FILE atomically."
  (make-directory (file-name-directory file) t)
  (let ((draft (concat file ".new")))
    (gemini-companion-text-write draft text)
    (rename-file draft file t)))

;;;; Links

(defun gemini-companion-tools--file (client name)
  "Return the file NAME in the directory of CLIENT."
  (expand-file-name name (gemini-companion-clients-home client)))

(defun gemini-companion-tools--pointer (client)
  "Return the file that links the extension to CLIENT."
  (gemini-companion-tools--file
   client (format "extensions/%s/.%s-extension-install.json"
                  gemini-companion-tools--name client)))

(defun gemini-companion-tools-policy-file ()
  "Return the file of the policy for questions of Gemini CLI."
  (gemini-companion-tools--file
   "gemini" (format "policies/%s.toml" gemini-companion-tools--name)))

(defun gemini-companion-tools-clients ()
  "Return the names of the CLIs that are installed."
  (seq-filter (lambda (client)
                (or (gemini-companion-clients-used-p client)
                    (executable-find
                     (gemini-companion-clients-get client :program))))
              (mapcar #'car gemini-companion-clients)))

(defun gemini-companion-tools-linked-p (client)
  "Return non-nil if CLIENT has a link to the extension."
  (equal (directory-file-name (gemini-companion-tools-directory))
         (gemini-companion-settings-get (gemini-companion-tools--pointer client)
                                        '("source"))))

(defun gemini-companion-tools--taken-p (client)
  "Return non-nil if CLIENT has another extension of the same name."
  (let* ((pointer (gemini-companion-tools--pointer client))
         (directory (file-name-directory pointer)))
    (and (file-directory-p directory)
         (remove (file-name-nondirectory pointer)
                 (directory-files directory nil
                                  directory-files-no-dot-files-regexp)))))

(defun gemini-companion-tools--disabled-p (client directory)
  "Return non-nil if the extension is disabled in CLIENT in DIRECTORY.
A rule is a name of a directory, with \"*\" for those below too, and
after \"!\" if it disables the extension.  The last one that matches wins."
  ;; The status must not wait for another host.
  (unless (file-remote-p directory)
    (let ((rules (gemini-companion-settings-get
                  (gemini-companion-tools--file
                   client "extensions/extension-enablement.json")
                  (list gemini-companion-tools--name "overrides")))
          (directory (file-name-as-directory (file-truename directory))))
      (seq-reduce (lambda (disabled rule)
                    (let ((name (string-trim rule "!" "\\*")))
                      (if (if (string-suffix-p "*" rule)
                              (string-prefix-p name directory)
                            (equal name directory))
                          (string-prefix-p "!" rule)
                        disabled)))
                  rules nil))))

(defun gemini-companion-tools-link-client (client)
  "Link CLIENT to the extension."
  (gemini-companion-tools--write
   (gemini-companion-tools--pointer client)
   (json-encode `((source . ,(directory-file-name
                              (gemini-companion-tools-directory)))
                  (type . "link")))))

(defun gemini-companion-tools-write-policy ()
  "Write the policy for questions of Gemini CLI without confirmation."
  (gemini-companion-tools--write
   (gemini-companion-tools-policy-file)
   (format "# Written by M-x gemini-companion-tools, which also deletes it.
[[rule]]
mcpName = \"%s\"
toolName = \"*\"
toolAnnotations = { readOnlyHint = true }
decision = \"allow\"
priority = 100
" gemini-companion-tools--server)))

(defun gemini-companion-tools-delete-extension ()
  "Delete the extension, its links, and the policy."
  (dolist (client (mapcar #'car gemini-companion-clients))
    (when (gemini-companion-tools-linked-p client)
      (gemini-companion-tools--forget client)
      (gemini-companion-tools--delete
       (gemini-companion-tools--pointer client) 2)))
  (gemini-companion-tools--delete (gemini-companion-tools-policy-file) 1)
  (when (gemini-companion-tools-extension-p)
    (delete-directory (gemini-companion-tools-directory) t)))

(defun gemini-companion-tools--forget (client)
  "Delete what CLIENT has recorded of where the extension is enabled."
  (let* ((file (gemini-companion-tools--file
                client "extensions/extension-enablement.json"))
         (all (gemini-companion-settings-get file nil)))
    (when (assoc gemini-companion-tools--name all)
      (if-let* ((others (assoc-delete-all gemini-companion-tools--name all)))
          (gemini-companion-tools--write-object file others)
        (delete-file file))))
  ;; Qwen Code also records it here.
  (let* ((file (gemini-companion-tools--file
                client "extension-store/state.json"))
         (state (gemini-companion-settings-get file nil))
         (all (assoc "extensions" state))
         (own (seq-find (pcase-lambda (`(,_ . ,record))
                          (equal gemini-companion-tools--name
                                 (cdr (assoc "name" record))))
                        (cdr all))))
    (when own
      (setcdr all (delq own (cdr all)))
      (gemini-companion-tools--write-object file state))))

(defun gemini-companion-tools--write-object (file object)
  "Write OBJECT, a value of `gemini-companion-settings-read', to FILE."
  (let ((json-false :false)
        (json-null :null))
    (gemini-companion-tools--write file (json-encode object))))

(defun gemini-companion-tools--delete (file count)
  "Delete FILE and up to COUNT directories above it that are empty then."
  (when (file-exists-p file)
    (delete-file file)
    (ignore-error file-error
      (dotimes (_ count)
        (setq file (directory-file-name (file-name-directory file)))
        (delete-directory file)))))

;;;; Life

(defun gemini-companion-tools-ready (_how)
  "Enable questions in the new server if the extension exists."
  (when (gemini-companion-tools-extension-p)
    (gemini-companion-tools--start)))

(defun gemini-companion-tools--start ()
  "Start answering questions."
  (gemini-companion-tools-write-extension)
  (gemini-companion-errors-start)
  (gemini-companion-server-call 'tools-update t))

(defun gemini-companion-tools-stop ()
  "Stop answering questions."
  (gemini-companion-server-call 'tools-update nil)
  (gemini-companion-errors-stop)
  (setq gemini-companion-tools--counts (list 0 0)))

(defun gemini-companion-tools-counts ()
  "Return the numbers of questions and of edits, a list."
  (copy-sequence gemini-companion-tools--counts))

;;;; Questions

(defun gemini-companion-tools-ask (id kind facts &rest texts)
  "Send the server the answer to its question ID, later.
KIND, FACTS and TEXTS are those of `gemini-companion-tools-answer'."
  (apply #'gemini-companion-tools-answer
         (apply-partially #'gemini-companion-server-call 'answered id)
         kind facts texts)
  t)

(defun gemini-companion-tools-answer (answer kind facts &rest texts)
  "Call ANSWER, later, with the answer to a question of KIND.
It is about FACTS, a plist, and TEXTS."
  (let ((texts (mapcar #'gemini-companion-tools--text texts)))
    ;; The server asks this one by itself.
    (unless (eq kind 'visible)
      (cl-incf (nth (if (eq kind 'edited) 1 0)
                    gemini-companion-tools--counts)))
    (condition-case problem
        (save-match-data
          (gemini-companion-tools--dispatch kind facts texts answer))
      (error
       (funcall answer (list :problem (format "Emacs failed: %s"
                                              (car problem))))))))

(defun gemini-companion-tools--text (text)
  "Return TEXT, a string or nil; call it if it is a function to insert one."
  (if (functionp text)
      (with-temp-buffer
        (funcall text)
        (buffer-string))
    text))

(defun gemini-companion-tools--dispatch (kind facts texts answer)
  "Call ANSWER with the answer to the question of KIND about FACTS and TEXTS."
  (let ((file (plist-get facts :path))
        (symbol (plist-get facts :symbol))
        (line (plist-get facts :line)))
    (cond
     ((eq kind 'edited)
      (apply #'gemini-companion-tools--edited facts answer texts))
     (gemini-companion-paused
      (funcall answer '(:problem "Sharing is paused in Emacs")))
     (t
      (pcase-exhaustive kind
        ('references
         (gemini-companion-code-references
          file symbol line (plist-get facts :after)
          (lambda (found)
            (funcall answer
                     (append found
                             ;; Otherwise the file may be a remote one.
                             (unless (plist-get found :problem)
                               (list :busy (gemini-companion-errors-busy-p
                                            file))))))))
        ('definition
         (gemini-companion-code-definition file symbol line answer))
        ('diagnostics
         (gemini-companion-code-diagnostics
          file answer #'gemini-companion-errors-awaited-p))
        ('visible
         (gemini-companion-code-visible (plist-get facts :files) answer)))))))

(defun gemini-companion-tools--edited (facts answer before after)
  "Follow an edit that a CLI has written; call ANSWER with the new errors.
FACTS names the file and the CLI; BEFORE, nil for a new file, and
AFTER are its texts."
  (let ((file (plist-get facts :path))
        (session (seq-find (lambda (session)
                             (memql (plist-get session :pid)
                                    (plist-get facts :pids)))
                           (gemini-companion-sessions))))
    (gemini-companion-revert file)
    (gemini-companion-turn-written session (plist-get facts :client)
                                   file before after)
    (gemini-companion-errors-after-edit
     file before after
     (lambda (text) (funcall answer (list :text text))))))

;;;; Status

(defun gemini-companion-tools-findings (directory _ask)
  "Return the findings about the links of CLIs that run in DIRECTORY.
For findings, see `gemini-companion-status-checks'."
  (if (not (gemini-companion-tools-extension-p))
      '((note "No CLI is linked, so none receives errors or asks about code" nil
              ("Link" . gemini-companion-tools)))
    (append
     (mapcar (lambda (client)
               (gemini-companion-tools--finding client directory))
             (gemini-companion-tools-clients))
     (unless (seq-some #'gemini-companion-code-checker (buffer-list))
       '((note "Nothing checks an open file, so there are no errors to send"
               "Start Eglot, Flymake or Flycheck in a file."))))))

(defun gemini-companion-tools--finding (client directory)
  "Return the finding about the link of CLIENT, for one in DIRECTORY."
  (let ((title (gemini-companion-clients-title client))
        (obstacles (gemini-companion-tools--obstacles client directory)))
    (cond ((not (gemini-companion-tools-linked-p client))
           `(note ,(format "%s is not linked" title)
                  "M-x gemini-companion-tools unlinks all CLIs; run it again to \
link them."))
          (obstacles
           `(note ,(format "%s is linked, but: %s" title
                           (string-join obstacles "; "))
                  ,(when (gemini-companion-tools--untrusted-p client directory)
                     (format "To trust the directory, type %s in %s there."
                             (gemini-companion-clients-get client :trust)
                             title))))
          (t
           `(good ,(apply #'format
                          "%s is linked; %d questions and %d edits so far, of all \
CLIs"
                          title gemini-companion-tools--counts))))))

(defun gemini-companion-tools--obstacles (client directory)
  "Return why CLIENT in DIRECTORY does not use the link, a list of texts."
  (let* ((setting (lambda (&rest keys)
                    (gemini-companion-settings-value client directory keys)))
         (name gemini-companion-tools--server)
         (allowed (funcall setting "mcp" "allowed")))
    (delq nil
          (list
           (and (eq :false (funcall setting "hooksConfig" "enabled"))
                "hooksConfig.enabled is false, so edits are not reported")
           (and (eq t (funcall setting "disableAllHooks"))
                "disableAllHooks is true, so edits are not reported")
           (and (seq-contains-p (funcall setting "hooksConfig" "disabled") name)
                (format "hooksConfig.disabled has %s, so edits are not reported"
                        name))
           (and (eq :false (gemini-companion-settings-get
                            (gemini-companion-tools--file
                             client "mcp-server-enablement.json")
                            (list name "enabled")))
                (format "the server %s is disabled; /mcp enable %s enables it"
                        name name))
           (and allowed (not (seq-contains-p allowed name))
                (format "mcp.allowed lacks %s" name))
           (and (seq-contains-p (funcall setting "mcp" "excluded") name)
                (format "mcp.excluded has %s" name))
           (and (gemini-companion-tools--disabled-p client directory)
                (format "the extension is disabled in %s"
                        (abbreviate-file-name directory)))
           (and (gemini-companion-tools--untrusted-p client directory)
                (format "%s is not trusted, so questions are not offered and \
edits are not reported"
                        (abbreviate-file-name directory)))))))

(defun gemini-companion-tools--untrusted-p (client directory)
  "Return non-nil if CLIENT trusts neither DIRECTORY nor one above it."
  (and (not (file-remote-p directory))
       (eq t (or (gemini-companion-settings-value
                  client directory '("security" "folderTrust" "enabled"))
                 ;; The default.
                 (equal client "gemini")))
       (seq-every-p
        (pcase-lambda (`(,place . ,trust))
          (not (pcase trust
                 ("TRUST_FOLDER" (file-in-directory-p directory place))
                 ("TRUST_PARENT" (file-in-directory-p
                                  directory (file-name-directory place))))))
        (gemini-companion-settings-get
         (gemini-companion-tools--file client "trustedFolders.json") nil))))

;;;; Command

;;;###autoload
(defun gemini-companion-tools ()
  "Link the CLIs to this Emacs, or unlink them.
After each edit, the new errors that Eglot, Flymake or Flycheck finds
are reported to a linked CLI.  Its model may ask for the references and
the definition of a symbol, and for the diagnostics of a file.

An extension is written into `gemini-companion-install-directory',
and a link to it for each CLI that is installed; a CLI finds it when
it starts next.  The same command deletes both."
  (interactive)
  (if (gemini-companion-tools-extension-p)
      (gemini-companion-tools--unlink)
    (gemini-companion-tools--link)))

(defun gemini-companion-tools--link ()
  "Ask, and link the CLIs that are installed."
  (let* ((clients (or (gemini-companion-tools-clients)
                      (user-error "No CLI is installed; install Gemini CLI or \
Qwen Code")))
         (titles (mapconcat #'gemini-companion-clients-title clients
                            " and ")))
    (when-let* ((client (seq-find #'gemini-companion-tools--taken-p clients)))
      (user-error "%s has another extension named %s; uninstall it first"
                  (gemini-companion-clients-title client)
                  gemini-companion-tools--name))
    (unless (y-or-n-p
             (format "A linked CLI receives the new errors after each edit, and \
may ask Emacs for references, definitions and diagnostics of shared files; \
the same command unlinks it.  Link %s? "
                     titles))
      (user-error "Nothing was linked"))
    (let ((allowed (and (member "gemini" clients)
                        (y-or-n-p "Allow these read-only questions of \
Gemini CLI without confirmation? "))))
      (condition-case problem
          (progn
            (gemini-companion-tools-write-extension)
            (mapc #'gemini-companion-tools-link-client clients)
            (when allowed
              (gemini-companion-tools-write-policy)))
        (file-error
         (gemini-companion-tools-delete-extension)
         (signal (car problem) (cdr problem)))))
    ;; Otherwise `gemini-companion-tools-ready' does it later.
    (when (gemini-companion-server-ready-p)
      (gemini-companion-tools--start))
    (message "Linked %s; restart those that are running" titles)))

(defun gemini-companion-tools--unlink ()
  "Ask, and delete the extension and all links to it."
  (unless (y-or-n-p "The extension is linked; delete it and its links? ")
    (user-error "The extension stays linked"))
  (gemini-companion-tools-delete-extension)
  (gemini-companion-tools-stop)
  (message "Deleted the extension and its links"))

(provide 'gemini-companion-tools)
;;; gemini-companion-tools.el ends here
