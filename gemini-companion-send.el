;;; gemini-companion-send.el --- Type into the prompt of a CLI  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Type into the prompt of a CLI that runs in a terminal of this Emacs:
;; a reference to the file, its lines or a diagnostic, which the user completes
;; there and sends, or the reason for a rejection.  Text for a CLI that runs
;; elsewhere goes to the kill ring.
;;
;; Enter is pressed on request, and only when the terminal shows the text: Enter
;; would answer the question of a CLI that asks one at that moment.
;;
;; The protocol has no field for the reason of a rejection, so it becomes the
;; next prompt.  It is typed when the rejection was written and the terminal
;; does not change any more; before that the CLI still asks about the edit.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-diff)
(require 'gemini-companion-privacy)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-terminal)
(require 'gemini-companion-text)
(require 'seq)
(require 'subr-x)

(declare-function flycheck-overlay-errors-in "ext:flycheck")
(declare-function flycheck-error-line "ext:flycheck")
(declare-function flycheck-error-message "ext:flycheck")
(declare-function flymake-diagnostics "flymake")
(declare-function flymake-diagnostic-beg "flymake")
(declare-function flymake-diagnostic-text "flymake")

;;;; State

(defconst gemini-companion-send--most 65536
  "Length of the longest text that is typed, in characters.
A terminal takes a few thousand at once, and Emacs waits for the rest.")

(defconst gemini-companion-send--check-seconds 0.1
  "Seconds between checks of a terminal.")

(defconst gemini-companion-send--enter-seconds 0.5
  "Seconds after the text at which Enter is pressed.
A CLI takes an Enter that follows at once for a part of the paste.")

(defconst gemini-companion-send--pasted
  (concat (regexp-opt (mapcar (lambda (client)
                                (plist-get (cdr client) :pasted))
                              gemini-companion-clients))
          "[0-9]+")
  "Regexp for how CLIs show a long paste, without spaces and punctuation.")

(defconst gemini-companion-send--most-checks 150
  "Number of checks after which Enter is not pressed.")

(defconst gemini-companion-send--still-checks 5
  "Number of checks after which an unchanged terminal is ready.")

(defconst gemini-companion-send--most-seconds 30
  "Seconds after which a reason is no longer typed.")

(defvar gemini-companion-send--reasons nil
  "Reasons to type, a list of plists.
Each has the `:id' of the diff, its `:session', the `:text', the
`:timer' that checks the terminal, the time `:until' which it checks,
and, once the rejection was written to the CLI, the `:tick' of the
terminal's text at the last check, or 0, and the number of checks since
that changed, `:still'.")

(defvar gemini-companion-send--reason-history nil
  "History of reasons.")

;;;; Typing

(defun gemini-companion-send--clean (text)
  "Return TEXT without what could control a terminal.
Lines end as terminals paste them; other control characters go."
  (replace-regexp-in-string
   "\n" "\r"
   (replace-regexp-in-string
    "[\0-\10\13-\37\177-\237]" ""
    (replace-regexp-in-string "\r\n?" "\n" (substring-no-properties text)))
   t t))

(defun gemini-companion-send--words (text)
  "Return the letters and digits of TEXT, the same on any screen."
  (replace-regexp-in-string "[^[:alnum:]]+" "" text))

(defun gemini-companion-send-type (session text &optional submit)
  "Type TEXT into the prompt of SESSION; press Enter too if SUBMIT.
Return non-nil if TEXT was typed, nil if SESSION runs in no
terminal of this Emacs, or in a suspended one.  Enter is
pressed once TEXT is shown there; a message then reports that.
Control characters other than newlines and tabs are omitted.  TEXT
may have up to 65,536 characters."
  (when-let* ((process (gemini-companion-terminal-process session)))
    (when (< gemini-companion-send--most (length text))
      (user-error "Too much text for a prompt: %d characters; send the file"
                  (length text)))
    (let ((shown (gemini-companion-send--shown process text)))
      (process-send-string
       process (concat "\e[200~" (gemini-companion-send--clean text)
                       "\e[201~"))
      (when submit
        (gemini-companion-state-submitted session text)
        (gemini-companion-send--check process text shown
                                      gemini-companion-send--most-checks))
      t)))

(defun gemini-companion-send--shown (process text)
  "Return how often the end of TEXT is on the screen of PROCESS.
A CLI shows a placeholder for a long paste; that counts too."
  (let* ((words (gemini-companion-send--words text))
         (end (substring words (max 0 (- (length words) 24)))))
    (if (string-empty-p end)
        0
      (with-current-buffer (process-buffer process)
        (let* ((from (max (point-min) (- (point-max) 20000)))
               (screen (gemini-companion-send--words
                        (buffer-substring-no-properties from (point-max))))
               (case-fold-search nil))
          (1- (length (split-string
                       screen (concat (regexp-quote end) "\\|"
                                      gemini-companion-send--pasted)))))))))

(defun gemini-companion-send--check (process text shown left)
  "Press Enter in PROCESS once it has TEXT more than SHOWN times.
Give up after LEFT further checks."
  (cond ((not (and (process-live-p process)
                   (buffer-live-p (process-buffer process)))))
        ((< shown (gemini-companion-send--shown process text))
         (run-at-time gemini-companion-send--enter-seconds nil
                      (lambda ()
                        (when (process-live-p process)
                          (process-send-string process "\r")
                          (message "Prompt submitted in %s"
                                   (buffer-name (process-buffer process)))))))
        ((< 0 left)
         (run-at-time gemini-companion-send--check-seconds nil
                      #'gemini-companion-send--check
                      process text shown (1- left)))
        (t (message "The CLI did not take the text; see %s"
                    (buffer-name (process-buffer process))))))

;;;; References

(defun gemini-companion-send--file ()
  "Return the local file of the current buffer, or signal an error.
Ask first if the file is one that is never shared."
  (let* ((buffer (or (buffer-base-buffer) (current-buffer)))
         (file (buffer-file-name buffer)))
    (cond ((null file)
           (user-error "This buffer visits no file"))
          ((file-remote-p file)
           (user-error "A CLI cannot read a remote file"))
          ((not (file-exists-p file))
           (user-error "Save the file first; the CLI reads it from the disk"))
          ((string-match-p "[[:cntrl:]]" file)
           (user-error "A prompt cannot name a file with a control character"))
          ((and (gemini-companion-privacy-hidden-p buffer)
                (not (y-or-n-p "This file is not shared; \
name it anyway? ")))
           (user-error "Nothing was sent")))
    (concat (file-truename (file-name-directory file))
            (file-name-nondirectory file))))

(defun gemini-companion-send--inside (file session)
  "Return the name of FILE, a true name, in the directory of SESSION.
Return nil if FILE is not in that directory."
  (when-let* ((name (plist-get session :directory))
              (directory (file-truename name)))
    (and (gemini-companion-text-in-directory-p file directory)
         (file-relative-name file directory))))

(defun gemini-companion-send--escape (name)
  "Return NAME, quoted for the prompt of a CLI."
  (cond ((not (eq system-type 'windows-nt))
         (replace-regexp-in-string
          ;; A dot at the end would end the sentence.
          "[][ (){};|*?$`'\"#&<>!~\\,]\\|\\.\\'" "\\\\\\&" name))
        ((string-match-p "[][ (){}^=;!'+,`~%$@#&]" name)
         (concat "\"" name "\""))
        (t name)))

(defun gemini-companion-send--lines (start end)
  "Return a text for the lines from START to END."
  (let ((first (line-number-at-pos start t))
        (last (line-number-at-pos (if (and (< start end)
                                           (eq (char-before end) ?\n))
                                      (1- end)
                                    end)
                                  t)))
    (if (= first last)
        (format "line %d" first)
      (format "lines %d-%d" first last))))

;;;; Sending

(defun gemini-companion-send--session (file)
  "Return the session that FILE is for; ask if that is not clear."
  (let* ((sessions (or (gemini-companion-sessions)
                       (user-error "No CLI is connected; \
M-x gemini-companion-run starts one, /ide enable connects a running one")))
         (near (seq-filter (lambda (session)
                             (gemini-companion-send--inside file session))
                           sessions)))
    (gemini-companion-session-read (or near sessions))))

(defun gemini-companion-send--insert-or-kill (text session stay)
  "Insert TEXT into the prompt of SESSION, or add it to the kill ring.
Select the terminal, or only display it if STAY is non-nil.  Return a
message."
  (let ((name (gemini-companion-session-name session))
        (terminal (gemini-companion-session-terminal session)))
    (if (gemini-companion-send-type session text)
        (progn
          (gemini-companion-terminal-show terminal stay)
          (format "In the prompt of %s: %s" name text))
      (kill-new text)
      (format (if terminal
                  "Terminal of %s takes no input now; \
copied to the kill ring: %s"
                "%s does not run in an Emacs terminal; \
copied to the kill ring: %s")
              name text))))

(defun gemini-companion-send--refer (stay describe)
  "Put a reference to the current file into a prompt.
STAY is as in `gemini-companion-send--insert-or-kill'.  DESCRIBE is
called with the reference and returns the text.  Report if the file on
disk lacks unsaved changes of the buffer."
  (let* ((file (gemini-companion-send--file))
         (unsaved (buffer-modified-p))
         (session (gemini-companion-send--session file))
         (reference (concat "@" (gemini-companion-send--escape
                                 (or (gemini-companion-send--inside
                                      file session)
                                     file)))))
    (message "%s%s"
             (gemini-companion-send--insert-or-kill
              (concat (funcall describe reference) " ") session stay)
             (if unsaved
                 "(unsaved changes; the CLI reads the file on disk)"
               ""))))

;;;; Diagnostics

(defun gemini-companion-send--diagnostics (start end)
  "Return the diagnostics from START to END, a list of (LINE . TEXT)."
  (append
   (when (bound-and-true-p flymake-mode)
     (mapcar (lambda (diagnostic)
               (cons (line-number-at-pos (flymake-diagnostic-beg diagnostic) t)
                     (flymake-diagnostic-text diagnostic)))
             (flymake-diagnostics start end)))
   (when (bound-and-true-p flycheck-mode)
     (mapcar (lambda (problem)
               (cons (flycheck-error-line problem)
                     (flycheck-error-message problem)))
             (flycheck-overlay-errors-in start end)))))

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

(defun gemini-companion-send--reason (diff text)
  "Type TEXT as the next prompt of the CLI of DIFF, which was rejected."
  (let ((session (gemini-companion-diff-session diff)))
    (if (not (gemini-companion-session-terminal session))
        (gemini-companion-send--keep
         text "Rejected; %s does not run in an Emacs terminal"
         (gemini-companion-session-name session))
      (let ((reason (list :id (gemini-companion-diff-id diff)
                          :session session :text text :timer nil
                          :until (+ (float-time)
                                    gemini-companion-send--most-seconds)
                          :tick nil :still 0)))
        (plist-put reason :timer
                   (run-at-time gemini-companion-send--check-seconds
                                gemini-companion-send--check-seconds
                                #'gemini-companion-send--check-reason reason))
        (push reason gemini-companion-send--reasons)
        (message "Rejected; the reason will be submitted in %s"
                 (gemini-companion-session-name session))))))

(defun gemini-companion-send--written (id)
  "Record that the rejection of the diff ID was written to its CLI."
  (when-let* ((reason (seq-find (lambda (reason)
                                  (eql id (plist-get reason :id)))
                                gemini-companion-send--reasons)))
    (plist-put reason :tick 0)))

(defun gemini-companion-send--check-reason (reason)
  "Type REASON if its terminal is ready; give up if that takes too long."
  (let* ((session (plist-get reason :session))
         (text (plist-get reason :text))
         (terminal (gemini-companion-session-terminal session))
         (late (or (not terminal)
                   (< (plist-get reason :until) (float-time)))))
    (when (or late (gemini-companion-send--still-p reason terminal))
      (gemini-companion-send--drop reason)
      ;; A text that is too long is kept, too.
      (when (or late (not (ignore-error user-error
                            (gemini-companion-send-type session text t))))
        (gemini-companion-send--keep
         text "Rejected; %s is not ready for a prompt"
         (gemini-companion-session-name session))))))

(defun gemini-companion-send--still-p (reason terminal)
  "Return non-nil if TERMINAL is ready for REASON.
The rejection was written, and nothing changed during the last checks."
  (when-let* ((previous (plist-get reason :tick))
              (tick (buffer-chars-modified-tick terminal)))
    (plist-put reason :tick tick)
    (plist-put reason :still
               (if (eql tick previous) (1+ (plist-get reason :still)) 0))
    (<= gemini-companion-send--still-checks (plist-get reason :still))))

(defun gemini-companion-send--drop (reason)
  "Remove REASON from those that are to be typed."
  (cancel-timer (plist-get reason :timer))
  (setq gemini-companion-send--reasons
        (delq reason gemini-companion-send--reasons)))

;;;; Life

(defun gemini-companion-send-idle-p ()
  "Return non-nil if no reason is waiting to be typed."
  (null gemini-companion-send--reasons))

(defun gemini-companion-send-start ()
  "Follow which outcomes were written."
  (add-hook 'gemini-companion-outcome-written-functions
            #'gemini-companion-send--written))

(defun gemini-companion-send-stop ()
  "Stop typing, and put pending reasons into the kill ring."
  (remove-hook 'gemini-companion-outcome-written-functions
               #'gemini-companion-send--written)
  (dolist (reason (copy-sequence gemini-companion-send--reasons))
    (gemini-companion-send--drop reason)
    (gemini-companion-send--keep (plist-get reason :text) "Reason not sent")))

;;;; Commands

;;;###autoload
(defun gemini-companion-send-file (&optional stay)
  "Put a reference to the file of this buffer into the prompt of a CLI.
Select its terminal; with STAY, a prefix argument, only display it."
  (interactive "P")
  (gemini-companion-send--refer stay #'identity))

;;;###autoload
(defun gemini-companion-send-region (start end &optional stay)
  "Put a reference to the lines from START to END into the prompt of a CLI.
Interactively, they are the lines of the region, or the line of point if
no region is active.
Select the terminal; with STAY, a prefix argument, only display it."
  (interactive
   (append (if (or (use-region-p) (and (not transient-mark-mode) (mark t)))
               (list (region-beginning) (region-end))
             (list (point) (point)))
           (list current-prefix-arg)))
  (gemini-companion-send--refer
   stay
   (lambda (reference)
     (format "%s (%s)" reference (gemini-companion-send--lines start end)))))

;;;###autoload
(defun gemini-companion-send-diagnostic-at-point (&optional stay)
  "Put the diagnostic at point into the prompt of a CLI.
It comes from Flymake or Flycheck.  If there is none at point, use the
diagnostics of the line.
Select the terminal; with STAY, a prefix argument, only display it."
  (interactive "P")
  (let ((diagnostics (or (gemini-companion-send--diagnostics
                          (point) (min (1+ (point)) (point-max)))
                         (gemini-companion-send--diagnostics
                          (line-beginning-position) (line-end-position))
                         (user-error
                          "No diagnostic of Flymake or Flycheck here"))))
    (gemini-companion-send--refer
     stay
     (lambda (reference)
       (mapconcat (pcase-lambda (`(,line . ,text))
                    (format "%s (line %d): %s"
                            reference line (string-trim (or text ""))))
                  (seq-uniq diagnostics)
                  "\n")))))

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
      (gemini-companion-diff-reject diff)
      (gemini-companion-send--reason diff text))))

(provide 'gemini-companion-send)
;;; gemini-companion-send.el ends here
