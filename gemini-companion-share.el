;;; gemini-companion-share.el --- Send workspace roots and context to the server  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Send the workspace roots to the server, and the context while a CLI is
;; connected and sharing is not paused.  Compute them again when a hook or an
;; option requires it, and send only what has changed.

;;; Code:

(require 'gemini-companion-context)
(require 'gemini-companion-events)
(require 'gemini-companion-privacy)
(require 'gemini-companion-server)
(require 'gemini-companion-session)

;;;; State

(defvar gemini-companion-share-directory nil
  "Directory in which the mode was turned on.
The mode sets it before this library is loaded.")

(defvar gemini-companion-share--sent nil
  "Alist of (METHOD . VALUE), the last values sent to the server.")

(defvar gemini-companion-paused nil
  "Non-nil while sharing is paused.
Set by `gemini-companion-pause'.")

;;;; Sending

(defun gemini-companion-share-roots ()
  "Return the workspace roots of this Emacs.
Compute them again only if other buffers may be shared."
  (let* ((buffers (gemini-companion-context-buffers))
         (directories (mapcar (apply-partially #'buffer-local-value
                                               'default-directory)
                              (cadr buffers))))
    (unless (equal directories (car buffers))
      (setcar buffers directories)
      (gemini-companion-roots gemini-companion-share-directory))
    gemini-companion-roots-last))

(defun gemini-companion-share--send ()
  (when (gemini-companion-server-ready-p)
    (gemini-companion-share--post 'roots-update (gemini-companion-share-roots))
    (when (gemini-companion-sessions)
      (gemini-companion-share--post 'context-update
                                    (unless gemini-companion-paused
                                      (gemini-companion-context-snapshot)))
      ;; It shows whether the file is shared.
      (when (buffer-live-p gemini-companion-context-active)
        (with-current-buffer gemini-companion-context-active
          (force-mode-line-update))))))

(defun gemini-companion-share--refresh ()
  "Send the roots and the context, computed without caches."
  (gemini-companion-privacy-refresh)
  (gemini-companion-share--send))

(defun gemini-companion-shared ()
  "Return the files that are shared with the CLIs, or nil.
They are a list of plists, see `gemini-companion-context-snapshot'.
Nil while no CLI is connected or sharing is paused."
  (alist-get 'context-update gemini-companion-share--sent))

(defun gemini-companion-share--post (method value)
  "Send VALUE to the server by METHOD unless it was the last value sent."
  (unless (equal value (alist-get method gemini-companion-share--sent 'none))
    (setf (alist-get method gemini-companion-share--sent) value)
    (gemini-companion-server-post method value)))

;;;; Life

(defun gemini-companion-idle-p ()
  "Return non-nil if the server has the current state of Emacs.
No change waits to be sent, and all messages are answered."
  (and (gemini-companion-context-idle-p)
       (gemini-companion-server-idle-p)))

(defconst gemini-companion-share--hooks
  '((gemini-companion-place-changed-hook . gemini-companion-share--refresh)
    (gemini-companion-session-changed-functions
     . gemini-companion-share--sessions-changed))
  "Alist of (HOOK . FUNCTION) while the mode is on.")

(defconst gemini-companion-share--options
  (cons 'gemini-companion-share gemini-companion-privacy-options)
  "Options that affect what is shared.")

(defun gemini-companion-share--option-changed (&rest _)
  (gemini-companion-privacy-refresh)
  (gemini-companion-context-changed))

(defun gemini-companion-share-ready (_how)
  "Send everything to the server, which is new."
  (setq gemini-companion-share--sent nil)
  (gemini-companion-share--refresh))

(defun gemini-companion-share--sessions-changed (&rest _)
  "Send the context again, as the server drops it while no CLI is connected.
A CLI also reads ignore files when it starts."
  (setq gemini-companion-share--sent
        (assq-delete-all 'context-update gemini-companion-share--sent))
  (gemini-companion-share--refresh))

(defun gemini-companion-share-lighter ()
  "Return the text and tooltip of sharing for the mode line."
  (cons (cond (gemini-companion-paused " paused")
              ((and (eq (current-buffer) gemini-companion-context-active)
                    (assq 'context-update gemini-companion-share--sent)
                    (not (seq-some (lambda (file) (plist-get file :active))
                                  (gemini-companion-shared))))
               " hidden")
              (t ""))
        #'gemini-companion-share--help))

(defun gemini-companion-share--help ()
  (when (gemini-companion-sessions)
    (let ((files (mapconcat (lambda (file)
                              (file-name-nondirectory (plist-get file :path)))
                            (gemini-companion-shared) ", ")))
      (concat "Shared: "
              (cond (gemini-companion-paused "nothing, sharing is paused")
                    ((string-empty-p files) "nothing")
                    (t files))))))

(defun gemini-companion-share-start ()
  "Start sending each change."
  (gemini-companion-privacy-refresh)
  (gemini-companion-context-start #'gemini-companion-share--send)
  (pcase-dolist (`(,hook . ,function) gemini-companion-share--hooks)
    (add-hook hook function))
  (dolist (option gemini-companion-share--options)
    (add-variable-watcher option #'gemini-companion-share--option-changed)))

(defun gemini-companion-share-stop ()
  "Stop sending, and drop the recorded state."
  (pcase-dolist (`(,hook . ,function) gemini-companion-share--hooks)
    (remove-hook hook function))
  (dolist (option gemini-companion-share--options)
    (remove-variable-watcher option #'gemini-companion-share--option-changed))
  (gemini-companion-context-stop)
  (gemini-companion-privacy-refresh)
  (setq gemini-companion-roots-last nil
        gemini-companion-share--sent nil))

;;;; Command

;;;###autoload
(defun gemini-companion-pause ()
  "Pause sharing, or resume it.
While it is paused, no open files are reported to the CLIs.  Each
stays connected, and reviews are shown as usual."
  (interactive)
  (setq gemini-companion-paused (not gemini-companion-paused))
  (gemini-companion-share--send)
  (force-mode-line-update t)
  (message (if gemini-companion-paused
               "Sharing paused; M-x gemini-companion-pause resumes it"
             "Sharing resumed")))

(provide 'gemini-companion-share)
;;; gemini-companion-share.el ends here
