;;; gemini-companion-extension.el --- Extension that links CLIs to Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;; This program is free software; you can redistribute it and/or modify
;; it under the terms of the GNU General Public License as published by
;; the Free Software Foundation, either version 3 of the License, or
;; (at your option) any later version.

;; This program is distributed in the hope that it will be useful,
;; but WITHOUT ANY WARRANTY; without even the implied warranty of
;; MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the
;; GNU General Public License for more details.

;; You should have received a copy of the GNU General Public License
;; along with this program.  If not, see <https://www.gnu.org/licenses/>.

;;; Commentary:

;; The directory of an extension of the CLIs, below that of the installation: a
;; manifest for each kind of CLI, a hook, and the program that both start, the
;; bridge.  A CLI finds it by a pointer among its own extensions, as its command
;; "extensions link" writes it.  That command would also mark the directory in
;; which it runs as trusted, and leave files behind.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-install)
(require 'gemini-companion-server)
(require 'gemini-companion-settings)
(require 'gemini-companion-text)
(require 'json)
(require 'seq)
(require 'subr-x)

(defconst gemini-companion-extension--name "gemini-companion"
  "Name of the extension.")

(defconst gemini-companion-extension-server "emacs"
  "Name of the bridge in the CLIs, which is part of the names of tools.")

(defconst gemini-companion-extension--hook-milliseconds 6000
  "Milliseconds after which a CLI stops the hook, which ends before that.")

;;;; Files

(defun gemini-companion-extension-directory ()
  "Return the directory of the extension."
  (expand-file-name "extension/" gemini-companion-install-directory))

(defun gemini-companion-extension-p ()
  "Return non-nil if the extension was written."
  (file-exists-p (expand-file-name "bridge.py"
                                   (gemini-companion-extension-directory))))

(defun gemini-companion-extension--python ()
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

(defun gemini-companion-extension--command (client &rest options)
  "Return the command of the bridge for CLIENT, with OPTIONS."
  ;; It starts sooner than by -I and the directory, for which Python imports more.
  (append (list (gemini-companion-extension--python) "-E" "-s" "-S"
                (expand-file-name "__main__.py"
                                  (gemini-companion-extension-directory))
                client)
          options))

(defun gemini-companion-extension--manifest (client)
  "Return the manifest for CLIENT, for `json-encode'."
  (let ((command (gemini-companion-extension--command client)))
    `((name . ,gemini-companion-extension--name)
      (version . ,gemini-companion-server-version)
      (mcpServers
       . ((,gemini-companion-extension-server
           . ((command . ,(car command))
              (args . ,(vconcat (cdr command)))
              ;; Else, Qwen Code hides the tools behind its tool_search.
              (alwaysLoadTools . t))))))))

(defun gemini-companion-extension--hooks (client event matcher)
  "Return the hook of CLIENT after EVENT of a tool that MATCHER matches."
  `((,event
     . [((matcher . ,matcher)
         (hooks
          . [((type . "command")
              (name . ,gemini-companion-extension-server)
              (command . ,(mapconcat #'shell-quote-argument
                                     (gemini-companion-extension--command
                                      client "--hook")
                                     " "))
              (timeout . ,gemini-companion-extension--hook-milliseconds))]))])))

(defun gemini-companion-extension--files ()
  "Return an alist of the names and texts of the files of the extension."
  (list
   (cons "gemini-extension.json"
         (json-encode (gemini-companion-extension--manifest "gemini")))
   (cons "hooks/hooks.json"
         (json-encode
          `((hooks . ,(gemini-companion-extension--hooks
                       "gemini" "AfterTool" "write_file|replace")))))
   (cons "qwen-extension.json"
         (json-encode
          (append (gemini-companion-extension--manifest "qwen")
                  `((hooks . ,(gemini-companion-extension--hooks
                               "qwen" "PostToolUse" "write_file|edit"))))))
   ;; Python keeps compiled what is imported, and a hook runs after each edit.
   (cons "__main__.py" "import bridge\n\nbridge.main()\n")
   (cons "bridge.py"
         (gemini-companion-extension--read
          (expand-file-name "python/gemini_companion_epc/bridge.py"
                            gemini-companion-server-directory)))))

(defun gemini-companion-extension--read (file)
  "Return the text of FILE, or nil if there is none."
  (when (file-exists-p file)
    (gemini-companion-text-read file)))

(defun gemini-companion-extension-write ()
  "Write those files of the extension that are missing or differ.
After an update of this package, the CLIs find the new ones."
  (pcase-dolist (`(,name . ,text) (gemini-companion-extension--files))
    (let ((file (expand-file-name name
                                  (gemini-companion-extension-directory))))
      (unless (equal text (gemini-companion-extension--read file))
        (gemini-companion-extension--write file text)))))

(defun gemini-companion-extension--write (file text)
  "Write TEXT to FILE atomically."
  (make-directory (file-name-directory file) t)
  (let ((draft (concat file ".new")))
    (gemini-companion-text-write draft text)
    (rename-file draft file t)))

;;;; Links

(defun gemini-companion-extension--pointer (client)
  "Return the file that links the extension to CLIENT."
  (expand-file-name
   (format "extensions/%s/.%s-extension-install.json"
           gemini-companion-extension--name client)
   (gemini-companion-clients-home client)))

(defun gemini-companion-extension-policy ()
  "Return the file of the policy for questions of Gemini CLI."
  (expand-file-name (format "policies/%s.toml" gemini-companion-extension--name)
                    (gemini-companion-clients-home "gemini")))

(defun gemini-companion-extension-clients ()
  "Return the names of the CLIs that are installed."
  (seq-filter (lambda (client)
                (or (gemini-companion-clients-used-p client)
                    (executable-find
                     (gemini-companion-clients-get client :program))))
              (mapcar #'car gemini-companion-clients)))

(defun gemini-companion-extension-linked-p (client)
  "Return non-nil if CLIENT has a link to the extension."
  (when-let* ((text (gemini-companion-extension--read
                     (gemini-companion-extension--pointer client))))
    (equal (directory-file-name (gemini-companion-extension-directory))
           (alist-get 'source (ignore-errors (json-read-from-string text))))))

(defun gemini-companion-extension--enablement (client)
  "Return the file of CLIENT with the rules for each extension."
  (expand-file-name "extensions/extension-enablement.json"
                    (gemini-companion-clients-home client)))

(defun gemini-companion-extension-disabled-p (client)
  "Return non-nil if the extension is disabled everywhere in CLIENT."
  (let ((overrides (gemini-companion-settings-get
                    (gemini-companion-extension--enablement client)
                    (list gemini-companion-extension--name "overrides"))))
    (seq-some (lambda (rule) (string-prefix-p "!" rule)) overrides)))

(defun gemini-companion-extension-trusted-p (client directory)
  "Return non-nil if CLIENT trusts DIRECTORY or one above it."
  (let ((rules (ignore-errors
                 (gemini-companion-settings-read
                  (expand-file-name "trustedFolders.json"
                                    (gemini-companion-clients-home
                                     client)))))
        (directory (expand-file-name directory)))
    (seq-some (pcase-lambda (`(,place . ,trust))
                (pcase trust
                  ("TRUST_FOLDER" (file-in-directory-p directory place))
                  ("TRUST_PARENT" (file-in-directory-p
                                   directory (file-name-directory place)))))
              rules)))

(defun gemini-companion-extension-link (client)
  "Link CLIENT to the extension."
  (gemini-companion-extension--write
   (gemini-companion-extension--pointer client)
   (json-encode `((source . ,(directory-file-name
                              (gemini-companion-extension-directory)))
                  (type . "link")))))

(defun gemini-companion-extension-allow ()
  "Write the policy by which Gemini CLI asks without confirmation."
  (gemini-companion-extension--write
   (gemini-companion-extension-policy)
   (format "# Written by M-x gemini-companion-tools, which also deletes it.
[[rule]]
mcpName = \"%s\"
toolName = \"*\"
toolAnnotations = { readOnlyHint = true }
decision = \"allow\"
priority = 100
" gemini-companion-extension-server)))

(defun gemini-companion-extension-delete ()
  "Delete the extension, its links, and the policy."
  (dolist (client (mapcar #'car gemini-companion-clients))
    (when (gemini-companion-extension-linked-p client)
      (gemini-companion-extension--forget client)
      (gemini-companion-extension--delete
       (gemini-companion-extension--pointer client) 2)))
  (gemini-companion-extension--delete (gemini-companion-extension-policy) 1)
  (when (gemini-companion-extension-p)
    (delete-directory (gemini-companion-extension-directory) t)))

(defun gemini-companion-extension--forget (client)
  "Delete what CLIENT has recorded of where the extension is enabled."
  (let* ((file (gemini-companion-extension--enablement client))
         (all (ignore-errors (gemini-companion-settings-read file)))
         (others (seq-remove (pcase-lambda (`(,name . ,_))
                               (equal name gemini-companion-extension--name))
                             all)))
    (cond ((equal all others))
          (others
           (gemini-companion-extension--write file (json-encode others)))
          (t (delete-file file)))))

(defun gemini-companion-extension--delete (file count)
  "Delete FILE and up to COUNT directories above it that are empty then."
  (when (file-exists-p file)
    (delete-file file)
    (ignore-error file-error
      (dotimes (_ count)
        (setq file (directory-file-name (file-name-directory file)))
        (delete-directory file)))))

(provide 'gemini-companion-extension)
;;; gemini-companion-extension.el ends here
