;;; gemini-companion-send.el --- Type into the prompt of a CLI  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Type into the prompt of a CLI that runs in a terminal of this Emacs, so that
;; it can be nothing but text: what is at point, a prompt that was composed, or the
;; reason for a rejection.  Text for a CLI that runs elsewhere goes to the kill
;; ring.
;;
;; Enter is pressed on request, and only when the terminal shows the text: Enter
;; would answer the question of a CLI that asks one at that moment.  A space that
;; is nowhere else in the terminal is typed with the text, and searched there; the
;; CLI strips it from the prompt.  The text itself may be there already, and long
;; texts are shown as placeholders.
;;
;; The protocol has no field for the reason of a rejection, so it becomes the
;; next prompt.  It is typed when the rejection was written and the terminal
;; does not change any more; before that the CLI still asks about the edit.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-diff)
(require 'gemini-companion-outcome)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-terminal)
(require 'seq)
(require 'subr-x)

;;;; State

(defconst gemini-companion-send--most 200000
  "Length of the longest text that is typed, in characters.
A terminal takes a few thousand at once, and Emacs waits for the rest.")

(defconst gemini-companion-send--check-seconds 0.1
  "Seconds between checks of a terminal.")

(defconst gemini-companion-send--seconds 30
  "Seconds after which a CLI is not expected to take a text any more.")

(defconst gemini-companion-send--still-checks 5
  "Number of checks for which a terminal must be ready.
A CLI takes an Enter that follows a text at once for a part of a paste.")

(defconst gemini-companion-send--marks
  (mapcar #'string (number-sequence ?\u2000 ?\u200a))
  "Spaces of which one is typed with a text to be submitted.")

(defvar gemini-companion-send--waiting nil
  "What waits for a terminal, lists (TEXT PROBLEM READY FUNCTION PROCESS).
The last is first.  See `gemini-companion-send--when'.")

(defvar gemini-companion-send--reason-history nil
  "History of reasons.")

;;;; Typing

(defun gemini-companion-send--clean (text)
  "Return TEXT without what could control a terminal.
Lines end as terminals paste them; other control characters go."
  (replace-regexp-in-string
   "\n" "\r"
   (replace-regexp-in-string
    "[\0-\10\13-\37\177\u0080-\u009f]" ""
    (replace-regexp-in-string "\r\n?" "\n" (substring-no-properties text)))
   t t))

(defun gemini-companion-send--paste (process text)
  "Type TEXT into PROCESS as a paste."
  (process-send-string process (concat "\e[200~"
                                       (gemini-companion-send--clean text)
                                       "\e[201~")))

(defun gemini-companion-send-type (session text &optional submit)
  "Type TEXT into the prompt of SESSION; press Enter too if SUBMIT.
Return non-nil if TEXT was typed, nil if SESSION runs in no
terminal of this Emacs, or in a suspended one, or waits for an answer,
which TEXT would be.  Enter is pressed once TEXT is shown there; a
message then reports that.  Control characters other than newlines and
tabs are omitted.  TEXT may have up to 200,000 characters."
  (when-let* ((process (and (not (eq 'waiting (gemini-companion-session-state
                                               session)))
                            (gemini-companion-terminal-process session))))
    (when (< gemini-companion-send--most (length text))
      (user-error "Too much text for a prompt: %d characters; send the file"
                  (length text)))
    (if submit
        (gemini-companion-send--submit session process text)
      (gemini-companion-send--paste process text))
    t))

(defun gemini-companion-send--submit (session process text)
  "Type TEXT into PROCESS, the terminal of SESSION, and press Enter.
Before that, wait for the texts that are submitted there already."
  (let ((seen 0)
        mark)
    (gemini-companion-send--when
     text gemini-companion-send--seconds "The CLI did not take the text"
     (lambda (task)
       (cond ((not (process-live-p process)) 'never)
             ((eq 'waiting (gemini-companion-session-state session))
              (setq seen 0)
              nil)
             (mark
              (setq seen (if (gemini-companion-send--shown-p mark process)
                             (1+ seen)
                           0))
              (< gemini-companion-send--still-checks seen))
             ((not (seq-some (lambda (other) (eq process (nth 4 other)))
                             (cdr (memq task gemini-companion-send--waiting))))
              (setq mark (gemini-companion-send--type-marked process text))
              nil)))
     (lambda ()
       (gemini-companion-state-submitted session text)
       (process-send-string process "\r")
       (message "Prompt submitted in %s"
                (buffer-name (process-buffer process))))
     process)))

(defun gemini-companion-send--type-marked (process text)
  "Type TEXT and a space into PROCESS; return the space.
That is one that is not in the terminal."
  (let ((mark (or (seq-find (lambda (mark)
                              (not (gemini-companion-send--shown-p
                                    mark process)))
                            gemini-companion-send--marks)
                  (car gemini-companion-send--marks))))
    ;; At the end of a command it would begin another word to complete.
    (if (string-prefix-p "/" text)
        (gemini-companion-send--paste process (concat mark text))
      (gemini-companion-send--paste
       process
       ;; Enter would choose a file for a name at the end.
       (concat text (and (string-match-p
                          "@\\(?:\\\\.\\|[^[:space:]]\\)*\\'" text)
                         " ")))
      ;; It is shown though a placeholder stands for TEXT.
      (gemini-companion-send--paste process mark))
    mark))

(defun gemini-companion-send--shown-p (string process)
  "Return non-nil if STRING is in the terminal of PROCESS."
  (with-current-buffer (process-buffer process)
    (save-excursion
      (goto-char (point-max))
      (or (search-backward string nil t)
          ;; In the C locale term displays bytes.
          (search-backward (string-to-multibyte
                            (encode-coding-string string 'utf-8))
                           nil t)))))

(defun gemini-companion-send-insert (text session &optional stay)
  "Insert TEXT into the prompt of SESSION, or add it to the kill ring.
Select the terminal, or only display it if STAY is non-nil.  Return a
message."
  (let ((name (gemini-companion-session-name session))
        (terminal (gemini-companion-session-terminal session)))
    (if (gemini-companion-send-type session text)
        (progn
          (gemini-companion-terminal-show terminal stay)
          (format "In the prompt of %s: %s" name
                  (truncate-string-to-width text 60 nil nil t)))
      (kill-new text)
      (format (cond ((not terminal) "%s does not run in an Emacs terminal; \
copied to the kill ring")
                    ((eq 'waiting (gemini-companion-session-state session))
                     "%s waits for an answer; copied to the kill ring")
                    (t "Terminal of %s takes no input now; \
copied to the kill ring"))
              name))))

;;;; Reasons

(defun gemini-companion-send--read-reason (diff)
  "Return the user's reason to reject DIFF, or nil if DIFF ended meanwhile.
Text typed until then is in the kill ring."
  (let* ((typed "")
         (reason
          (gemini-companion-diff-ask
           diff
           (lambda ()
             (minibuffer-with-setup-hook
                 (lambda ()
                   (add-hook 'minibuffer-exit-hook
                             (lambda ()
                               (setq typed
                                     (minibuffer-contents-no-properties)))
                             nil t))
               (read-string (format "Reject %s; reason for %s%s: "
                                    (gemini-companion-diff-name diff)
                                    (gemini-companion-session-title
                                     (gemini-companion-diff-session diff))
                                    (if (gemini-companion-diff-comments diff)
                                        " (in addition to your comments)"
                                      ""))
                            nil 'gemini-companion-send--reason-history nil t))))))
    (if (and reason (memq diff (gemini-companion-diffs)))
        reason
      (gemini-companion-send--keep
       (or reason typed) "This review has ended already: %s"
       (gemini-companion-diff-state diff))
      nil)))

(defun gemini-companion-send--keep (text format &rest args)
  "Put TEXT into the kill ring; the message begins with FORMAT and ARGS."
  (if (string-blank-p text)
      (apply #'message format args)
    (kill-new text)
    (message "%s; your text is in the kill ring"
             (apply #'format format args))))

(defun gemini-companion-send--comments (diff)
  "Return the comments on DIFF, a list of lines for a prompt."
  (let* ((file (gemini-companion-diff-file-path diff))
         (directory (plist-get (gemini-companion-diff-session diff) :directory))
         (name (if directory (file-relative-name file directory) file)))
    (mapcar (pcase-lambda (`((,side . ,line) . ,comment))
              (format "%s:%d%s: %s" name line
                      (if (eq side 'before) " (removed line)" "")
                      comment))
            (seq-sort-by #'cdar #'< (gemini-companion-diff-comments diff)))))

;;;; Waiting

(defun gemini-companion-send--when
    (text seconds problem ready function &optional process)
  "Call FUNCTION once the value of the function READY is non-nil.
READY is called with the element of `gemini-companion-send--waiting'.
If that takes more than SECONDS, or the value is `never', put TEXT into
the kill ring; the message begins with PROBLEM.  PROCESS, if any, is the
terminal into which TEXT is typed."
  (let ((task (list text problem ready function process)))
    (push task gemini-companion-send--waiting)
    ;; Checks are counted, as a busy Emacs has not seen what the CLI shows.
    (gemini-companion-send--try
     task (/ seconds gemini-companion-send--check-seconds))))

(defun gemini-companion-send--try (task left)
  "Do what TASK, an element of `gemini-companion-send--waiting', is for.
If it is not ready, try again soon, at most LEFT times."
  (pcase-let* ((`(,text ,problem ,ready ,function . ,_) task)
               (now (if (< left 0) 'never (funcall ready task))))
    (if (null now)
        (run-at-time gemini-companion-send--check-seconds nil
                     #'gemini-companion-send--try task (1- left))
      (setq gemini-companion-send--waiting
            (delq task gemini-companion-send--waiting))
      (if (eq now 'never)
          (gemini-companion-send--keep text "%s" problem)
        (funcall function)))))

(defun gemini-companion-send-later (text find seconds problem &optional diff)
  "Submit TEXT when the terminal of a session does not change any more.
The session is what the function FIND returns.  With DIFF, wait until its
rejection was written, too.  After SECONDS, or if the terminal is killed,
TEXT is added to the kill ring, and the message begins with PROBLEM."
  (let ((tick nil)
        (still 0)
        session)
    (gemini-companion-send--when
     text seconds problem
     (lambda (_)
       (setq session (funcall find))
       (if-let* ((terminal (and session
                                (gemini-companion-session-terminal session)))
                 (new (buffer-chars-modified-tick terminal)))
           (progn
             (setq still (if (and (eql tick new)
                                  (not (gemini-companion-outcome-unwritten-p
                                        diff)))
                             (1+ still)
                           0)
                   tick new)
             (and (<= gemini-companion-send--still-checks still)
                  (not (eq 'waiting (gemini-companion-session-state session)))))
         (and tick 'never)))
     (lambda ()
       ;; A text that is too long is kept, too.
       (unless (ignore-error user-error
                 (gemini-companion-send-type session text t))
         (gemini-companion-send--keep text "%s" problem))))))

(defun gemini-companion-send-idle-p ()
  "Return non-nil if no text is waiting to be typed or submitted."
  (null gemini-companion-send--waiting))

(defun gemini-companion-send-stop ()
  "Stop waiting for terminals; put the texts into the kill ring."
  (cancel-function-timers #'gemini-companion-send--try)
  (dolist (task gemini-companion-send--waiting)
    (gemini-companion-send--keep (car task) "Prompt not submitted"))
  (setq gemini-companion-send--waiting nil))

;;;; Commands

(defun gemini-companion-diff-reject-with-reason (&optional diff reason)
  "Reject DIFF with REASON, which is by default read in the minibuffer.
The reason, and the comments on the lines of DIFF, are sent as the next
prompt of the CLI if it runs in a terminal of this Emacs; otherwise they
are added to the kill ring.  Without DIFF, take the review of the
current buffer, else the one that is shown."
  (interactive)
  (let ((diff (gemini-companion-diff-unsettled diff)))
    (when-let* ((reason (or reason (gemini-companion-send--read-reason diff)))
                (text (string-join
                       (append (unless (string-blank-p reason) (list reason))
                               (gemini-companion-send--comments diff))
                       "\n")))
      (when (string-empty-p text)
        (user-error "No reason given; %s rejects without one"
                    (substitute-command-keys
                     "\\<gemini-companion-review-mode-map>\
\\[gemini-companion-diff-reject]")))
      ;; It must not be a command of the CLI.
      (when (string-match-p "\\`[ \t\n]*[/!]" text)
        (setq text (concat "No: " text)))
      (gemini-companion-diff-reject diff)
      (let* ((session (gemini-companion-diff-session diff))
             (name (gemini-companion-session-name session)))
        (if (not (gemini-companion-session-terminal session))
            (gemini-companion-send--keep
             text "Rejected; %s does not run in an Emacs terminal" name)
          (gemini-companion-send-later
           text (lambda () session) gemini-companion-send--seconds
           (format "Rejected; %s is not ready for a prompt" name) diff)
          (message "Rejected; the reason will be submitted in %s" name))))))

(provide 'gemini-companion-send)
;;; gemini-companion-send.el ends here
