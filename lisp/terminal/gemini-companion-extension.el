;;; gemini-companion-extension.el --- Install the extensions of CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Some CLIs, such as Pi, do not search for editors, and connect by an extension.  This
;; file asks before it copies the extension into the directory of the CLI.  It updates
;; the extension when it differs from this package, and removes it on request.  The
;; status shows whether the extension is installed, and whether running CLIs have
;; loaded it.

;;; Code:

(require 'gemini-companion-choice)
(require 'gemini-companion-clients)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-text)

;;;; State

(defvar gemini-companion-extension--declined nil
  "Non-nil once the user has declined or removed an extension in this Emacs.")

;;;; Files

(defun gemini-companion-extension--clients ()
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

(defun gemini-companion-extension--fingerprint (client)
  "Return a hash of the files of the extension of CLIENT in this package.
The extension computes and reports the hash of its files when it is loaded."
  (let ((texts (mapcar #'cdr (gemini-companion-extension--files client))))
    (substring (secure-hash 'sha256 (encode-coding-string (string-join texts) 'utf-8))
               0 16)))

(defun gemini-companion-extension-installed-p (client)
  "Return non-nil if the directory of the extension of CLIENT exists."
  (file-directory-p (gemini-companion-extension--directory client)))

(defun gemini-companion-extension--current-p (client)
  "Return non-nil if the installed extension of CLIENT is that of this package."
  (seq-every-p (pcase-lambda (`(,file . ,text))
                 (and (file-readable-p file)
                      (equal text (gemini-companion-text-read file))))
               (gemini-companion-extension--files client)))

(defun gemini-companion-extension--write (client)
  "Write the extension of CLIENT.
A running CLI continues to use the version that it has loaded."
  ;; The CLI loads the first file of the list, which loads the others.
  (pcase-dolist (`(,file . ,text)
                 (reverse (gemini-companion-extension--files client)))
    (gemini-companion-text-write-changed file text)))

(defun gemini-companion-extension--update ()
  "Update the installed extensions that differ from those of this package."
  (dolist (client (gemini-companion-extension--clients))
    (gemini-companion-log-guarded "Updating an extension"
      (when (and (gemini-companion-extension-installed-p client)
                 (not (gemini-companion-extension--current-p client)))
        (gemini-companion-extension--write client)))))

;;;; Effects

(defun gemini-companion-extension--install (client)
  "Install the extension of CLIENT, and report that."
  (condition-case problem
      (gemini-companion-extension--write client)
    (file-error
     (user-error "Extension of %s not installed: %s"
                 (gemini-companion-client-title client)
                 (error-message-string problem))))
  (message "Extension installed; type %s in a running %s"
           (gemini-companion-client-reload-command client)
           (gemini-companion-client-title client)))

(defun gemini-companion-extension--remove (client)
  "Remove the extension of CLIENT, and report that.
It is not offered again in this Emacs."
  (let ((directory (gemini-companion-extension--directory client)))
    (pcase-dolist (`(,file . ,_) (gemini-companion-extension--files client))
      (delete-file file))
    ;; A directory with files of the user stays.
    (ignore-error file-error
      (delete-directory directory))
    (setq gemini-companion-extension--declined t)
    (message "Extension removed; a running %s uses it until you type %s"
             (gemini-companion-client-title client)
             (gemini-companion-client-reload-command client))))

(defun gemini-companion-extension--ask (client)
  "Ask whether to install the extension of CLIENT, and return the answer."
  (y-or-n-p (format "%s connects to Emacs by an extension, which is copied into \
%s; install it? "
                    (gemini-companion-client-title client)
                    (gemini-companion-names-absolute
                     (gemini-companion-extension--directory client)))))

(defun gemini-companion-extension-offer (client)
  "Offer the extension of CLIENT, which is about to start, if it needs one.
Ask the user once in each Emacs.  The CLI starts whatever the answer is."
  (unless (or gemini-companion-extension--declined
              (null (gemini-companion-client-extension client))
              (gemini-companion-extension-installed-p client))
    (if (gemini-companion-extension--ask client)
        (gemini-companion-extension--install client)
      (setq gemini-companion-extension--declined t))))

;;;; Findings

(defun gemini-companion-extension--finding (client)
  "Return the finding about the extension of CLIENT.
For findings, see `gemini-companion-status-checks'."
  (let ((title (gemini-companion-client-title client))
        (directory (gemini-companion-names-absolute
                    (gemini-companion-extension--directory client)))
        (install (apply-partially #'gemini-companion-extension--install client)))
    (cond
     ((not (gemini-companion-extension-installed-p client))
      `(note ,(format "%s lacks the extension that connects it" title)
             "M-x gemini-companion-extension installs and removes it."
             ("Install" . ,install)))
     ((not (gemini-companion-extension--current-p client))
      `(bad ,(format "%s differs from the extension of this package" directory)
            "If it cannot be written, see the event log."
            ("Update" . ,install)))
     (t `(good ,(format "%s has the extension, in %s" title directory))))))

(defun gemini-companion-extension--session-findings (session)
  "Return the findings about the extension that the CLI of SESSION has loaded.
For findings, see `gemini-companion-status-checks'."
  (let ((client (gemini-companion-session-client session))
        (extension (gemini-companion-session-extension session))
        (unreviewed (gemini-companion-session-unreviewed session))
        (name (gemini-companion-session-name session)))
    (append
     (when (and extension
                (not (equal extension
                            (gemini-companion-extension--fingerprint client))))
       `((note ,(format "%s has loaded another version of the extension" name)
               ,(format "Type %s there."
                        (gemini-companion-client-reload-command client)))))
     (when unreviewed
       `((bad ,(format "%s has tools that may write files without a review: %s"
                       name (string-join unreviewed ", "))
              ,(format "Remove the extensions that have them, and type %s there."
                       (gemini-companion-client-reload-command client))))))))

;;;; Life

(cl-defmethod gemini-companion-part-ready ((_part (eql 'extension)) _how)
  "Update the extensions, as this package may be newer."
  (gemini-companion-extension--update))

(cl-defmethod gemini-companion-part-findings ((_part (eql 'extension)) _directory)
  "Return the findings about the extensions of CLIs that are used."
  (let ((sessions (gemini-companion-sessions)))
    (mapcar
     (apply-partially #'cons "Extension")
     (append
      (mapcar #'gemini-companion-extension--finding
              (seq-filter (lambda (client)
                            (or (gemini-companion-client-has-run-p client)
                                (gemini-companion-extension-installed-p client)))
                          (gemini-companion-extension--clients)))
      (seq-mapcat #'gemini-companion-extension--session-findings
                  (seq-filter (lambda (session)
                                (gemini-companion-client-extension
                                 (gemini-companion-session-client session)))
                              sessions))))))

;;;; Commands

(defun gemini-companion-extension (client)
  "Install the extension by which CLIENT connects, or remove it; ask first.
CLIENT is the name of a CLI, by default the one that needs an extension:
Pi.  The files are copied into the directory of CLIENT, and updated with
this package."
  (interactive
   (list (let ((clients (gemini-companion-extension--clients)))
           (if (cdr clients)
               (gemini-companion-choice-read
                "Extension of"
                (mapcar (lambda (client)
                          (cons (gemini-companion-client-title client) client))
                        clients)
                'gemini-companion-extension)
             (car clients)))))
  (cond ((not (gemini-companion-extension-installed-p client))
         (unless (gemini-companion-extension--ask client)
           (user-error "Extension not installed"))
         (gemini-companion-extension--install client))
        ((y-or-n-p (format "Remove the extension from %s? "
                           (gemini-companion-names-absolute
                            (gemini-companion-extension--directory client))))
         (gemini-companion-extension--remove client))
        (t (user-error "Extension not removed"))))

(provide 'gemini-companion-extension)
;;; gemini-companion-extension.el ends here
