;;; soak.el --- The person of the soak test  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Runs in an Emacs without a frame, so that reviews stay pending.  A timer
;; types, another answers reviews by the functions.  The name of a file says
;; how: accept-1.txt is accepted, edit-1.txt edited first, and so on.  What
;; became of each diff is written to a journal, one JSON object a line.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'package)

(setq load-prefer-newer t
      package-user-dir (getenv "GC_ELPA")
      package-directory-list nil
      message-log-max 1000
      create-lockfiles nil
      make-backup-files nil)
(package-initialize)
(push (getenv "SOAK_ROOT") load-path)
(require 'gemini-companion)

(setq gemini-companion-server-command
      (list (getenv "GC_PYTHON") "-m" "gemini_companion_epc"))

;; Five deaths within minutes are a broken installation elsewhere; here they
;; stand for as many bad days.
(setq gemini-companion-server--healthy-seconds 0)

(random (getenv "GC_SOAK_SEED"))

;;;; State

(defvar soak-ready 0 "How often the server became ready at first.")
(defvar soak-before nil "What there was before the mode came on, a plist.")
(defvar soak-problems nil "What went wrong in here, strings.")
(defvar soak-again 0 "How many answers failed and were given again.")
(defvar soak-typed 0 "How often the person typed.")
(defvar soak--entries nil "Lines for the journal, the last one first.")
(defvar soak--edited (make-hash-table :test #'eq :weakness 'key)
  "The diffs whose proposals were edited.")
(defvar soak--timers nil "The timers of the person.")

(defconst soak--additions
  ["added\n" "\r\n" "\u2028" "\U0001D11E\U0001F469\u200D\U0001F680"
   "e\u0301\u0000" "\uFEFF" "\x3FFFE9 raw" "\\377 \" #(\"x\" 0 1)" "\t"]
  "What the person adds to proposals.")

;;;; Journal

(defun soak--sha (text)
  "Return the SHA-1 of TEXT as it must arrive."
  (secure-hash 'sha1 (encode-coding-string
                      (replace-regexp-in-string
                       "[^\0-\uD7FF\uE000-\U0010FFFF]" "\uFFFD" text t t)
                      'utf-8-unix)))

(defun soak--note (diff state text)
  "Write into the journal that DIFF, with TEXT if non-nil, is in STATE."
  (push (json-encode
         `((session . ,(plist-get (gemini-companion-diff-session diff) :id))
           (path . ,(gemini-companion-diff-file-path diff))
           (state . ,state)
           (sha . ,(and text (soak--sha text)))))
        soak--entries))

(defun soak--closed (diff)
  "Note how DIFF ended."
  (soak--note diff (gemini-companion-diff-state diff)
              (and (eq (gemini-companion-diff-state diff) 'accepted)
                   (gemini-companion-diff-accepted-text diff))))

(defun soak-flush ()
  "Write what is to be in the journal."
  (when soak--entries
    (let ((coding-system-for-write 'utf-8-unix))
      (write-region (concat (mapconcat #'identity (nreverse soak--entries) "\n")
                            "\n")
                    nil (getenv "SOAK_JOURNAL") t 'silent))
    (setq soak--entries nil)))

;;;; Answers

(defun soak--edit (diff)
  "Edit the proposal of DIFF here and there, but not its first line."
  (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
    (goto-char (point-max))
    (insert "x" (aref soak--additions (random (length soak--additions))))
    (goto-char (point-min))
    (when (zerop (forward-line 1))
      (forward-char (random (1+ (- (point-max) (point)))))
      (insert (aref soak--additions (random (length soak--additions)))))))

(defun soak--edit-once (diff)
  "Edit the proposal of DIFF if it was not edited yet, and note that."
  (unless (gethash diff soak--edited)
    (puthash diff t soak--edited)
    (soak--edit diff)
    (soak--note diff 'edited (gemini-companion-diff-proposal-text diff))))

(defun soak--reject-emptied (diff)
  "Try to accept DIFF with an empty proposal, which must fail; reject it."
  (unless (string-empty-p (gemini-companion-diff-proposed-text diff))
    (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
      (erase-buffer))
    (condition-case nil
        (progn
          (gemini-companion-diff-accept diff)
          (push "An empty text was accepted" soak-problems))
      (user-error nil)))
  (when (memq diff (gemini-companion-diffs))
    (gemini-companion-diff-reject diff)))

(defun soak--answer (diff)
  "Answer DIFF according to its name."
  (pcase (car (split-string (gemini-companion-diff-name diff) "-"))
    ((or "accept" "race") (gemini-companion-diff-accept diff))
    ("edit" (soak--edit diff) (gemini-companion-diff-accept diff))
    ("reject" (gemini-companion-diff-reject diff))
    ("kill" (kill-buffer (gemini-companion-diff-proposal-buffer diff)))
    ("empty" (soak--reject-emptied diff))
    ("holdedit" (soak--edit-once diff))))

(defun soak--answer-some ()
  "Answer some of the diffs."
  (dolist (diff (gemini-companion-diffs))
    (when (and (zerop (random 2)) (memq diff (gemini-companion-diffs)))
      (condition-case problem
          (soak--answer diff)
        (error
         (if (and (string-match-p "epc con" (error-message-string problem))
                  (memq diff (gemini-companion-diffs)))
             ;; The server has just been killed; it is answered again.
             (cl-incf soak-again)
           (push (format "%s: %s" (gemini-companion-diff-name diff)
                         (error-message-string problem))
                 soak-problems))))))
  (soak-flush))

;;;; Typing

(defun soak--type ()
  "Move about as a user does, and run the hooks of a command."
  (cl-incf soak-typed)
  (when (zerop (random 20))
    (let ((files (seq-filter #'buffer-file-name (buffer-list))))
      (when files
        (switch-to-buffer (nth (random (length files)) files) t t))))
  (with-current-buffer (window-buffer (selected-window))
    (pcase (random 8)
      (0 (push-mark (+ (point-min) (random (1+ (buffer-size)))) t t))
      (1 (deactivate-mark)))
    (goto-char (+ (point-min) (random (1+ (buffer-size)))))
    (set-window-point (selected-window) (point))
    (run-hooks 'post-command-hook)))

;;;; What there is

(defun soak--ours (names)
  "Return those of NAMES that speak of us."
  (seq-filter (lambda (name)
                (string-match-p "gemini\\|epc\\|proposal" (or name "")))
              names))

(defun soak-state ()
  "Return what there is in this Emacs that must not grow."
  (list :buffers (soak--ours (mapcar #'buffer-name (buffer-list)))
        :processes (soak--ours (mapcar #'process-name (process-list)))
        :timers (mapcar (lambda (timer)
                          (let ((function (timer--function timer)))
                            (if (symbolp function) (symbol-name function)
                              "closure")))
                        (seq-remove (lambda (timer) (memq timer soak--timers))
                                    (append timer-list timer-idle-list)))
        :diffs (length (gemini-companion-diffs))))

(defun soak-hooks ()
  "Return the hooks that hold a function of ours."
  (let (found)
    (mapatoms
     (lambda (symbol)
       (when (and (boundp symbol)
                  (string-match-p "-\\(hook\\|functions\\)\\'"
                                  (symbol-name symbol))
                  (not (string-prefix-p "gemini-companion"
                                        (symbol-name symbol)))
                  ;; `revert-buffer' keeps a copy of another hook there.
                  (not (eq symbol 'revert-buffer-internal-hook))
                  (consp (symbol-value symbol))
                  (seq-some (lambda (function)
                              (and (symbolp function)
                                   (string-prefix-p "gemini-companion"
                                                    (symbol-name function))))
                            (ensure-list (symbol-value symbol))))
         (push (symbol-name symbol) found))))
    found))

(defun soak-live-bytes ()
  "Collect garbage and return the size of what is left."
  (cl-loop for (_name size used . _) in (garbage-collect)
           sum (* size used)))

;;;; Life

(defun soak-start ()
  "Turn on the mode, and let the person begin."
  (setq soak-before (soak-state))
  (add-hook 'gemini-companion-ready-hook (lambda () (cl-incf soak-ready)))
  (add-hook 'gemini-companion-diff-closed-functions #'soak--closed)
  (dolist (file (file-expand-wildcards
                 (expand-file-name "c*/*.txt" (getenv "SOAK_PROJECT"))))
    (find-file-noselect file))
  (switch-to-buffer (seq-find #'buffer-file-name (buffer-list)) t t)
  (setq default-directory (file-name-as-directory (getenv "SOAK_PROJECT")))
  (gemini-companion-mode)
  (setq soak--timers
        (list (run-at-time 0.02 0.02 #'soak--answer-some)
              (run-at-time 0.1 0.1 #'soak--type))))

(defun soak-rest ()
  "Let the person rest."
  (mapc #'cancel-timer soak--timers)
  (setq soak--timers nil)
  (soak-flush))

(provide 'soak)
;;; soak.el ends here
