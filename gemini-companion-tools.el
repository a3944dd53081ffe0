;;; gemini-companion-tools.el --- Questions of a CLI to Emacs, and its edits  -*- lexical-binding: t; -*-

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

;; A CLI that is linked to this Emacs reports each edit after it was written, and
;; gets the new errors; its model may ask about the code.  This file dispatches
;; the calls of the server, and has the command that links the CLIs.  It does
;; nothing until the user runs that command.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-clients)
(require 'gemini-companion-code)
(require 'gemini-companion-errors)
(require 'gemini-companion-extension)
(require 'gemini-companion-revert)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-settings)
(require 'gemini-companion-share)
(require 'gemini-companion-turn)
(require 'seq)
(require 'subr-x)

(defvar gemini-companion-tools--counts (list 0 0)
  "The numbers of questions and of edits since the mode was turned on.")

;;;; Life

(defun gemini-companion-tools-ready (_how)
  "Enable questions in the new server if the extension exists."
  (when (gemini-companion-extension-p)
    (gemini-companion-tools--start)))

(defun gemini-companion-tools--start ()
  "Start answering questions."
  (gemini-companion-extension-write)
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
  "Answer question ID, of KIND, about FACTS, a plist, and TEXTS, later."
  (let ((answer (apply-partially #'gemini-companion-server-call 'answered id))
        (texts (mapcar #'gemini-companion-tools--text texts)))
    ;; The server asks the last one by itself.
    (unless (eq kind 'visible)
      (cl-incf (nth (if (eq kind 'edited) 1 0)
                    gemini-companion-tools--counts)))
    (condition-case problem
        (save-match-data
          (gemini-companion-tools--dispatch kind facts texts answer))
      (error
       (funcall answer (list :problem (format "Emacs failed: %s"
                                              (car problem)))))))
  t)

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
                             (list :busy (gemini-companion-errors-busy-p
                                          file)))))))
        ('definition
         (gemini-companion-code-definition file symbol line answer))
        ('diagnostics
         (gemini-companion-code-diagnostics file answer))
        ('visible
         (gemini-companion-code-visible (plist-get facts :files) answer)))))))

(defun gemini-companion-tools--edited (facts answer before after)
  "Follow an edit that a CLI has written; call ANSWER with the new errors.
FACTS names the file and the CLI; BEFORE, nil for a new file, and
AFTER are its texts."
  (let ((file (plist-get facts :path)))
    (gemini-companion-revert file)
    (gemini-companion-turn-written (gemini-companion-tools--session facts)
                                   (plist-get facts :client)
                                   file before after)
    (gemini-companion-errors-after-edit
     file before after
     (lambda (text) (funcall answer (list :text text))))))

(defun gemini-companion-tools--session (facts)
  "Return the session of the CLI that FACTS describe, or nil."
  (seq-find (lambda (session)
              (memql (plist-get session :pid) (plist-get facts :pids)))
            (gemini-companion-sessions)))

;;;; Status

(defun gemini-companion-tools-findings (directory _ask)
  "Return the findings about the links of CLIs that run in DIRECTORY.
For findings, see `gemini-companion-status-checks'."
  (if (not (gemini-companion-extension-p))
      '((note "No CLI is linked, so none receives errors or asks about code" nil
              ("Link" . gemini-companion-tools)))
    (append
     (mapcar (lambda (client)
               (gemini-companion-tools--finding client directory))
             (gemini-companion-extension-clients))
     (unless (seq-some #'gemini-companion-code-checker (buffer-list))
       '((note "Nothing checks an open file, so there are no errors to send"
               "Start Eglot, Flymake or Flycheck in a file."))))))

(defun gemini-companion-tools--finding (client directory)
  "Return the finding about the link of CLIENT, for one in DIRECTORY."
  (let ((title (gemini-companion-clients-title client))
        (obstacles (gemini-companion-tools--obstacles client directory)))
    (pcase-let ((`(,questions ,edits) gemini-companion-tools--counts))
      (cond ((not (gemini-companion-extension-linked-p client))
             `(note ,(format "%s is not linked" title)
                    "M-x gemini-companion-tools unlinks all CLIs; repeat it to link \
them."))
            (obstacles
             `(note ,(format "%s is linked, but: %s" title
                             (string-join obstacles "; "))
                    ,(when (gemini-companion-tools--untrusted-p
                            client directory)
                       (format "To trust it, type %s in %s there."
                               (gemini-companion-clients-get client :trust)
                               title))))
            (t
             `(good ,(format "%s is linked; %d questions and %d edits so far"
                             title questions edits)))))))

(defun gemini-companion-tools--obstacles (client directory)
  "Return why CLIENT in DIRECTORY does not use the link, a list of texts."
  (let* ((setting (apply-partially #'gemini-companion-tools--setting
                                   client directory))
         (name gemini-companion-extension-server)
         (allowed (funcall setting "mcp" "allowed")))
    (delq nil
          (list
           (and (eq :false (funcall setting "hooksConfig" "enabled"))
                "hooksConfig.enabled is false, so edits are not reported")
           (and (eq t (funcall setting "disableAllHooks"))
                "disableAllHooks is true, so edits are not reported")
           (and allowed (not (seq-contains-p allowed name))
                (format "mcp.allowed lacks %s" name))
           (and (seq-contains-p (funcall setting "mcp" "excluded") name)
                (format "mcp.excluded has %s" name))
           (and (gemini-companion-extension-disabled-p client)
                "the extension is disabled there")
           (and (gemini-companion-tools--untrusted-p client directory)
                (format "%s is not trusted, so questions are not offered and \
edits are not reported"
                        (abbreviate-file-name directory)))))))

(defun gemini-companion-tools--setting (client directory &rest keys)
  "Return the setting of CLIENT in DIRECTORY for KEYS, strings, or nil."
  (when-let* ((file (gemini-companion-settings-find
                     (gemini-companion-settings-files client directory)
                     keys)))
    (gemini-companion-settings-get file keys)))

(defun gemini-companion-tools--untrusted-p (client directory)
  "Return non-nil if CLIENT does not trust DIRECTORY."
  (and (eq t (or (gemini-companion-tools--setting
                  client directory "security" "folderTrust" "enabled")
                 ;; The default.
                 (equal client "gemini")))
       (not (gemini-companion-extension-trusted-p client directory))))

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
  (if (gemini-companion-extension-p)
      (gemini-companion-tools--unlink)
    (gemini-companion-tools--link)))

(defun gemini-companion-tools--link ()
  "Ask, and link the CLIs that are installed."
  (let* ((clients (or (gemini-companion-extension-clients)
                      (user-error "No CLI is installed")))
         (titles (mapconcat #'gemini-companion-clients-title clients
                            " and ")))
    (unless (y-or-n-p
             (format "%s will receive the new errors after each edit, and may \
ask Emacs for references, definitions and diagnostics of shared files.  \
The same command deletes the link.  Link it? "
                     titles))
      (user-error "Nothing was linked"))
    (gemini-companion-extension-write)
    (mapc #'gemini-companion-extension-link clients)
    (when (and (member "gemini" clients)
               (y-or-n-p "Allow these read-only questions of Gemini CLI \
without confirmation? "))
      (gemini-companion-extension-allow))
    (gemini-companion-tools--start)
    (message "Linked %s; restart those that are running" titles)))

(defun gemini-companion-tools--unlink ()
  "Ask, and delete the extension and all links to it."
  (unless (y-or-n-p "The extension is linked; delete it and its links? ")
    (user-error "The extension stays linked"))
  (gemini-companion-extension-delete)
  (gemini-companion-tools-stop)
  (message "Deleted the extension and its links"))

(provide 'gemini-companion-tools)
;;; gemini-companion-tools.el ends here
