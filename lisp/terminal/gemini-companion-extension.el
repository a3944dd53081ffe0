;;; gemini-companion-extension.el --- Install the extensions of CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Some CLIs, such as Pi, do not search for editors, and connect by an extension.  This
;; file copies the extension into the directory of the CLI: after a question, before the
;; CLI is started without it; and when the CLI is linked.  It updates the extension when
;; the mode is turned on.

;;; Code:

(require 'gemini-companion-choice)
(require 'gemini-companion-clients)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-server)
(require 'gemini-companion-text)

;;;; State

(defvar gemini-companion-extension--declined nil
  "Non-nil once the user has declined an extension in this Emacs.")

;;;; Files

(defun gemini-companion-extension-clients ()
  "Return the CLIs that connect by an extension, such as (\"pi\")."
  (seq-filter #'gemini-companion-client-extension gemini-companion-clients))

(defun gemini-companion-extension--directory (client)
  "Return the directory of the extension of CLIENT, an absolute name."
  (gemini-companion-names-below (gemini-companion-client-home client)
                                (car (gemini-companion-client-extension client))))

(defun gemini-companion-extension--files (client)
  "Return the files of the extension of CLIENT, an alist of (FILE . TEXT).
FILE is an absolute name, and TEXT the contents in this version of the package."
  (mapcar (pcase-lambda (`(,name . ,source))
            (cons (gemini-companion-names-below
                   (gemini-companion-extension--directory client) name)
                  (gemini-companion-text-read
                   (expand-file-name
                    (concat "python/gemini_companion_epc/extensions/" source)
                    gemini-companion-server-directory))))
          (cdr (gemini-companion-client-extension client))))

(defun gemini-companion-extension-installed-p (client)
  "Return non-nil if CLIENT would find its extension."
  (file-exists-p (gemini-companion-names-below
                  (gemini-companion-extension--directory client)
                  (caadr (gemini-companion-client-extension client)))))

(defun gemini-companion-extension-write (client)
  "Write those files of the extension of CLIENT that differ from this package.
A running CLI continues to use the version that it has loaded."
  ;; The CLI loads the first file of the list, which loads the others.
  (pcase-dolist (`(,file . ,text)
                 (reverse (gemini-companion-extension--files client)))
    (gemini-companion-text-write-changed file text)))

(defun gemini-companion-extension-delete (client)
  "Delete the extension of CLIENT, and its directory unless that has other files."
  (pcase-dolist (`(,file . ,_) (gemini-companion-extension--files client))
    (delete-file file))
  (ignore-error file-error
    (delete-directory (gemini-companion-extension--directory client))))

;;;; Offer

(defun gemini-companion-extension-offer (client)
  "Offer the extension of CLIENT, which is about to start, if it needs one.
Ask the user once in each Emacs.  The CLI starts whatever the answer is."
  (let ((title (gemini-companion-client-title client)))
    (cond
     ((or gemini-companion-extension--declined
          (null (gemini-companion-client-extension client))
          (gemini-companion-extension-installed-p client)))
     ((not (gemini-companion-choice-y-or-n-p
            (format "%s connects to Emacs by an extension, which is copied into \
%s; install it? "
                    title (gemini-companion-names-absolute
                           (gemini-companion-extension--directory client)))))
      (setq gemini-companion-extension--declined t))
     (t
      (condition-case problem
          (gemini-companion-extension-write client)
        (file-error
         (user-error "Extension of %s not installed: %s"
                     title (error-message-string problem))))
      (message "Extension installed; type %s in a running %s"
               (gemini-companion-client-reload-command client) title)))))

;;;; Life

(cl-defmethod gemini-companion-part-ready ((_part (eql 'extension)) _how)
  "Update the extensions that are installed, as this package may be newer."
  (dolist (client (gemini-companion-extension-clients))
    (gemini-companion-log-guarded "Updating an extension"
      (when (gemini-companion-extension-installed-p client)
        (gemini-companion-extension-write client)))))

(provide 'gemini-companion-extension)
;;; gemini-companion-extension.el ends here
