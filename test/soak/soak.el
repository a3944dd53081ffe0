;;; soak.el --- The user of the soak test  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A timer types, another answers reviews by the documented functions.  The name
;; of a file specifies how: accept-1.txt is accepted, edit-1.txt edited first, and
;; so on.  The outcome of each diff is written to a journal, one JSON object a line.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion)
(require 'gemini-companion-arrival)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-proposal)
(require 'gemini-companion-written)
(require 'json)

(setq message-log-max 1000
      create-lockfiles nil
      make-backup-files nil
      ;; Reviews stay pending.
      gemini-companion-review-arrival 'notify)

;; Most accepted texts are not written, and for a minute each is kept in memory.
(setq gemini-companion-written-minute 10)

;; Five crashes within minutes would turn the mode off.
(setq gemini-companion-server-delays (make-list 100000 0))

;;;; State

(defvar soak-journal nil "File of the journal.")
(defvar soak-ready 0 "How often the mode started a server.")
(defvar soak-before nil "Value of `soak-state' before the mode was turned on.")
(defvar soak-problems nil "Errors in this Emacs, a list of strings.")
(defvar soak--edited (make-hash-table :test #'eq :weakness 'key)
  "The diffs whose proposals were edited.")
(defvar soak-timers nil "The timers of the simulated user.")

(defconst soak--additions ["added\n" "\r\n" "\U0001D11E e\u0301"]
  "Texts to add to proposals.")

;;;; Journal

(defun soak--note (diff state text)
  "Record in the journal that DIFF, with TEXT if non-nil, is in STATE."
  (let ((coding-system-for-write 'utf-8-unix))
    (write-region
     (concat (json-encode
              `((session . ,(gemini-companion-session-id
                             (gemini-companion-edit-session diff)))
                (path . ,(gemini-companion-edit-file diff))
                (state . ,state)
                (sha . ,(and text (secure-hash
                                   'sha1 (encode-coding-string text 'utf-8-unix))))))
             "\n")
     nil soak-journal t 'silent)))

(defun soak--closed (diff)
  "Record the outcome of DIFF."
  (soak--note diff (gemini-companion-edit-status diff)
              (and (eq (gemini-companion-edit-status diff) 'accepted)
                   (gemini-companion-edit-after diff))))

;;;; Answers

(defun soak--name (diff)
  "Return the name of the file of DIFF, without its directory."
  (file-name-nondirectory (gemini-companion-edit-file diff)))

(defun soak--edit (diff)
  "Edit the proposal of DIFF at random, but not its first line."
  (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
    (goto-char (point-max))
    (insert "x" (aref soak--additions (random (length soak--additions))))
    (goto-char (point-min))
    (when (zerop (forward-line 1))
      (forward-char (random (1+ (- (point-max) (point)))))
      (insert (aref soak--additions (random (length soak--additions)))))))

(defun soak--answer (diff)
  "Answer DIFF according to its name."
  (pcase (car (split-string (soak--name diff) "-"))
    ((or "accept" "race") (gemini-companion-edit-accept diff))
    ("edit" (soak--edit diff) (gemini-companion-edit-accept diff))
    ("reject" (gemini-companion-edit-reject diff))
    ("kill" (kill-buffer (gemini-companion-edit-proposal-buffer diff)))
    ;; It stays open, and is edited once.
    ("holdedit" (unless (gethash diff soak--edited)
                  (puthash diff t soak--edited)
                  (soak--edit diff)
                  (soak--note diff 'edited (gemini-companion-edit-text diff))))))

(defun soak--answer-some ()
  "Answer some of the diffs."
  (dolist (diff (gemini-companion-edits-open))
    (when (and (zerop (random 2)) (memq diff (gemini-companion-edits-open)))
      (condition-case problem
          (soak--answer diff)
        (error
         ;; If the server has just been killed, the next round answers.
         (unless (and (string-match-p "epc con" (error-message-string problem))
                      (memq diff (gemini-companion-edits-open)))
           (push (format "%s: %s" (soak--name diff)
                         (error-message-string problem))
                 soak-problems)))))))

;;;; Typing

(defun soak--type ()
  "Move point at random, and run the hooks of a command."
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

;;;; Resources

(defun soak--ours (names)
  "Return those of NAMES that belong to the package."
  (seq-filter (lambda (name)
                (string-match-p "gemini\\|epc\\|proposal" (or name "")))
              names))

(defun soak-state ()
  "Return the resources of this Emacs that must not grow."
  (list :buffers (soak--ours (mapcar #'buffer-name (buffer-list)))
        :processes (soak--ours (mapcar #'process-name (process-list)))
        :timers (mapcar (lambda (timer)
                          (let ((function (timer--function timer)))
                            (if (symbolp function) (symbol-name function)
                              "closure")))
                        (seq-remove (lambda (timer) (memq timer soak-timers))
                                    (append timer-list timer-idle-list)))
        :diffs (length (gemini-companion-edits-open))))

(defun soak-live-bytes ()
  "Collect garbage and return the size of the live objects."
  (cl-loop for (_name size used . _) in (garbage-collect)
           sum (* size used)))

;;;; Start

(defun soak-start ()
  "Turn on the mode, and start the simulated user."
  (setq soak-before (soak-state))
  (add-hook 'gemini-companion-ready-hook (lambda () (cl-incf soak-ready)))
  (add-hook 'gemini-companion-edit-closed-functions #'soak--closed)
  (gemini-companion-mode)
  (setq soak-timers
        (list (run-at-time 0.02 0.02 #'soak--answer-some)
              (run-at-time 0.1 0.1 #'soak--type))))

(provide 'soak)
;;; soak.el ends here
