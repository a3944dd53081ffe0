;;; gemini-companion-status.el --- What goes on, and what is wrong  -*- lexical-binding: t; -*-

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

;; One buffer that says what goes on and, if Gemini CLI is not connected, why:
;; the state first, then what gemini-companion-diagnosis.el found.  It only
;; shows; and it shows what it can when half of Emacs is broken.  Programs are
;; asked in the background, and the buffer is written anew when they answer.

;;; Code:

(require 'button)
(require 'gemini-companion-diagnosis)
(require 'seq)
(require 'subr-x)

;;;; State

(defconst gemini-companion-status--seconds 20
  "How long a program that is asked may take.")

(defconst gemini-companion-status--again-seconds 0.5
  "How soon the buffer is written anew while something is not known yet.")

(defconst gemini-companion-status--most-again 120
  "How many times that is done.")

(defconst gemini-companion-status--longest 60
  "How many characters of a selection are shown.")

(defvar-local gemini-companion-status--answers nil
  "Alist of (COMMAND . ANSWER), what programs said.
ANSWER is a cons of exit status and output, or the process that is
to give it.")

(defvar-local gemini-companion-status--origin nil
  "The buffer from which the status was asked for.")

(defvar-local gemini-companion-status--timer nil
  "Timer that writes the buffer anew, or nil.")

(defvar-local gemini-companion-status--left 0
  "How many more times the buffer is written anew by itself.")

(defvar-local gemini-companion-status--waits nil
  "Non-nil if something in the buffer is not known yet.")

;;;; Mode

(defvar gemini-companion-status-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "TAB") #'forward-button)
    (define-key map (kbd "<backtab>") #'backward-button)
    map)
  "Keys in the buffer of the status.")

(define-derived-mode gemini-companion-status-mode special-mode "Gemini status"
  "What goes on between this Emacs and Gemini CLI, and what is wrong.
\\{gemini-companion-status-mode-map}"
  (setq-local revert-buffer-function #'gemini-companion-status--refresh
              truncate-lines nil)
  (visual-line-mode)
  (add-hook 'kill-buffer-hook #'gemini-companion-status--forget nil t))

;;;###autoload
(defun gemini-companion-status ()
  "Show the state of the connection to Gemini CLI, and what is wrong.
\\<gemini-companion-status-mode-map>\
\\[revert-buffer] looks again, \\[forward-button] goes to the next button."
  (interactive)
  (let ((directory default-directory)
        (origin (current-buffer))
        (status (get-buffer-create "*gemini-companion status*")))
    (with-current-buffer status
      (unless (derived-mode-p 'gemini-companion-status-mode)
        (gemini-companion-status-mode))
      (unless (eq origin status)
        (setq gemini-companion-status--origin origin
              default-directory directory))
      (gemini-companion-status--refresh))
    (pop-to-buffer status)))

(defun gemini-companion-status--refresh (&rest _)
  "Look at everything anew."
  (gemini-companion-status--forget)
  (setq gemini-companion-status--left gemini-companion-status--most-again)
  (gemini-companion-status--write))

(defun gemini-companion-status--forget ()
  "Forget what programs said, and end those that run."
  (dolist (answer gemini-companion-status--answers)
    (when (processp (cdr answer))
      (delete-process (cdr answer))))
  (when gemini-companion-status--timer
    (cancel-timer gemini-companion-status--timer))
  (setq gemini-companion-status--answers nil
        gemini-companion-status--timer nil))

(defun gemini-companion-status--write ()
  "Write the buffer, and again soon if something is not known yet."
  (let ((line (line-number-at-pos))
        (column (current-column))
        (inhibit-read-only t))
    (setq gemini-companion-status--waits nil)
    (erase-buffer)
    (gemini-companion-status--insert-all)
    (goto-char (point-min))
    (forward-line (1- line))
    (move-to-column column)
    (when (and gemini-companion-status--waits
               (null gemini-companion-status--timer)
               (<= 0 (setq gemini-companion-status--left
                           (1- gemini-companion-status--left))))
      (gemini-companion-status--write-soon))))

(defun gemini-companion-status--write-soon ()
  "Write the current buffer again soon, where windows have their points."
  (let ((buffer (current-buffer)))
    (setq gemini-companion-status--timer
          (run-at-time gemini-companion-status--again-seconds nil
                       #'gemini-companion-status--due buffer))))

(defun gemini-companion-status--due (buffer)
  "Write BUFFER, a status, if it is still there and to be seen."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq gemini-companion-status--timer nil)
      (if-let* ((window (get-buffer-window buffer t)))
          (with-selected-window window
            (gemini-companion-status--write))
        (setq gemini-companion-status--left 0)))))

;;;; Programs

(defun gemini-companion-status--ask (program &rest args)
  "Return what PROGRAM answers to ARGS: its exit status and output.
Nil as long as that is not known; it is asked in the background."
  (let* ((command (cons program args))
         (known (assoc command gemini-companion-status--answers)))
    (unless known
      (setq known (cons command (gemini-companion-status--started command)))
      (push known gemini-companion-status--answers))
    (unless (processp (cdr known))
      (cdr known))))

(defun gemini-companion-status--started (command)
  "Start COMMAND; return its process, or the answer if that fails."
  (let ((process-environment (default-value 'process-environment))
        (default-directory temporary-file-directory)
        (status (current-buffer))
        (output (generate-new-buffer " *gemini-companion answer*" t)))
    (condition-case problem
        (let ((process
               (make-process
                :name "gemini-companion question" :command command
                :buffer output :noquery t :connection-type 'pipe
                :sentinel (lambda (process _event)
                            (unless (process-live-p process)
                              (gemini-companion-status--answered
                               process command status))))))
          ;; One that has ended by now is noticed by its sentinel.
          (ignore-errors (process-send-eof process))
          (process-put process 'bound
                       (run-at-time gemini-companion-status--seconds nil
                                    #'delete-process process))
          process)
      (error
       (kill-buffer output)
       (cons 1 (error-message-string problem))))))

(defun gemini-companion-status--answered (process command status)
  "Note in the buffer STATUS what PROCESS, which ran COMMAND, has answered."
  (let* ((buffer (process-buffer process))
         (output (with-current-buffer buffer (buffer-string))))
    (kill-buffer buffer)
    (cancel-timer (process-get process 'bound))
    (when (buffer-live-p status)
      (with-current-buffer status
        (when-let* ((known (assoc command gemini-companion-status--answers)))
          (when (eq process (cdr known))
            (setcdr known
                    (cons (process-exit-status process)
                          (if (eq (process-status process) 'exit)
                              output
                            "it did not answer in time")))))))))

;;;; Marks

(defconst gemini-companion-status--marks
  '((good "✓" "ok" success)
    (bad "✗" "NO" error)
    (note "•" "--" shadow)
    (wait "…" ".." shadow))
  "How each mark looks: as a character, in ASCII, and its face.")

(defun gemini-companion-status--mark (mark)
  "Return the text for MARK on this display."
  (pcase-let ((`(,character ,ascii ,face)
               (alist-get mark gemini-companion-status--marks)))
    (propertize (if (char-displayable-p (aref character 0)) character ascii)
                'face face)))

(defun gemini-companion-status--button (label function)
  "Insert a button with LABEL, for FUNCTION and a new look."
  (insert " ")
  (insert-text-button
   (concat "[" label "]")
   'follow-link t
   'action (lambda (button)
             (let ((buffer (current-buffer)))
               (ignore button)
               (unwind-protect
                   (if (commandp function)
                       (call-interactively function)
                     (funcall function))
                 (when (buffer-live-p buffer)
                   (with-current-buffer buffer
                     (gemini-companion-status--refresh))))))))

;;;; Contents

(defconst gemini-companion-status--state
  '(gemini-companion-status--insert-mode
    gemini-companion-status--insert-sessions
    gemini-companion-status--insert-reviews
    gemini-companion-status--insert-shared
    gemini-companion-status--insert-roots)
  "Functions that insert the parts of the state.")

(defun gemini-companion-status--insert-all ()
  "Insert the whole status."
  (dolist (insert gemini-companion-status--state)
    (condition-case problem
        (funcall insert)
      (error
       (insert (format "This could not be looked at: %s\n"
                       (error-message-string problem))))))
  (gemini-companion-status--heading "Checks")
  (insert "\n")
  (pcase-dolist (`(,title . ,findings)
                 (let ((directory default-directory)
                       (default-directory temporary-file-directory))
                   (gemini-companion-diagnosis
                    directory #'gemini-companion-status--ask)))
    (dolist (finding findings)
      (gemini-companion-status--insert-finding title finding))))

(defun gemini-companion-status--heading (text)
  "Insert TEXT as a heading."
  (insert (if (bobp) "" "\n") (propertize text 'face 'bold)))

(defun gemini-companion-status--insert-finding (title finding)
  "Insert FINDING of the check TITLE."
  (let ((mark (gemini-companion-finding-mark finding)))
    (when (eq mark 'wait)
      (setq gemini-companion-status--waits t))
    (insert (gemini-companion-status--mark mark) " " title ": "
            (gemini-companion-finding-text finding))
    (when (memq mark '(bad note))
      (when-let* ((cure (gemini-companion-finding-cure finding)))
        (insert "\n    " cure))
      (pcase-dolist (`(,label . ,function)
                     (gemini-companion-finding-actions finding))
        (gemini-companion-status--button label function)))
    (insert "\n")))

(defun gemini-companion-status--insert-mode ()
  "Insert whether the mode is on, and facts of the server."
  (let ((info (and (fboundp 'gemini-companion-server-info)
                   (gemini-companion-server-info))))
    (gemini-companion-status--heading "gemini-companion")
    (cond
     (info
      (insert (format " is on\nServer: process %d, port %d, since %s"
                      (gemini-companion-server-pid) (plist-get info :port)
                      (format-time-string "%H:%M"
                                          (gemini-companion-server-since))))
      (gemini-companion-status--button "Restart" #'gemini-companion-restart)
      (gemini-companion-status--button "Events"
                                       #'gemini-companion-events-buffer))
     ((gemini-companion-diagnosis-installing-p)
      (setq gemini-companion-status--waits t)
      (insert " is installing its Python packages"))
     ((bound-and-true-p gemini-companion-mode)
      (setq gemini-companion-status--waits t)
      (insert " is starting"))
     (t
      (insert " is off")
      (gemini-companion-status--button
       "Turn on" #'gemini-companion-diagnosis-turn-on)))
    (insert "\n")))

(defun gemini-companion-status--insert-sessions ()
  "Insert the CLIs that are connected."
  (let ((sessions (gemini-companion-sessions)))
    (insert (format "Connected: %s\n"
                    (pcase (length sessions)
                      (0 "no Gemini CLI")
                      (1 "1 Gemini CLI")
                      (count (format "%d Gemini CLIs" count)))))
    (dolist (session sessions)
      (gemini-companion-status--insert-session session))))

(defun gemini-companion-status--insert-session (session)
  "Insert one line about SESSION."
  (let ((directory (plist-get session :directory))
        (version (plist-get session :version))
        (since (plist-get session :since))
        (terminal (gemini-companion-session-terminal session)))
    (insert "    " (gemini-companion-session-name session)
            (if directory
                (concat " in " (abbreviate-file-name directory))
              "")
            (if version (concat ", version " version) "")
            (if since
                (format-time-string ", since %H:%M" (/ since 1000))
              ""))
    (when terminal
      (gemini-companion-status--button
       "Terminal" (lambda () (pop-to-buffer terminal))))
    (insert "\n")))

(defun gemini-companion-status--insert-reviews ()
  "Insert the reviews that await an answer."
  (let ((diffs (gemini-companion-diffs)))
    (insert (format "Reviews: %s" (if diffs (length diffs) "none")))
    (when diffs
      (gemini-companion-status--button "Review" #'gemini-companion-review))
    (insert "\n")
    (dolist (diff diffs)
      (insert (format "    %s, from %s, %s\n"
                      (abbreviate-file-name
                       (gemini-companion-diff-file-path diff))
                      (gemini-companion-session-name
                       (gemini-companion-diff-session diff))
                      (gemini-companion-diff-state diff))))))

(defun gemini-companion-status--insert-shared ()
  "Insert what Gemini CLI is told."
  (gemini-companion-status--heading "Shared with Gemini CLI")
  (let ((files (and (fboundp 'gemini-companion-shared)
                    (gemini-companion-shared))))
    (insert (cond ((bound-and-true-p gemini-companion-paused)
                   ": nothing, as you paused it")
                  ((null (gemini-companion-sessions))
                   ": nothing, as no Gemini CLI is connected")
                  ((null files) ": nothing")
                  (t "")))
    (when (and (fboundp 'gemini-companion-pause)
               (bound-and-true-p gemini-companion-mode))
      (gemini-companion-status--button
       (if (bound-and-true-p gemini-companion-paused) "Resume" "Pause")
       'gemini-companion-pause))
    (insert "\n")
    (mapc #'gemini-companion-status--insert-file files)
    (gemini-companion-status--insert-untold)))

(defun gemini-companion-status--insert-untold ()
  "Insert why the file that the person comes from is not told, if so."
  (let* ((origin gemini-companion-status--origin)
         (file (and (buffer-live-p origin)
                    ;; Without the package epc nothing of this is loaded.
                    (featurep 'gemini-companion)
                    (buffer-file-name origin)))
         (why (cond ((null file) nil)
                    ((file-remote-p file) "it is on another machine")
                    ((gemini-companion-privacy-hidden-p origin)
                     "see `gemini-companion-excluded', \
`gemini-companion-share' and .geminiignore")
                    ((not (file-exists-p file)) "it is not on the disk yet")
                    ((not (or (not gemini-companion-mode)
                              gemini-companion-share-outside-projects
                              (gemini-companion-roots-name file)))
                     "it is outside the folders below; \
see `gemini-companion-share-outside-projects'"))))
    (when why
      (insert (format "    %s is not told: %s\n"
                      (if (file-remote-p file) file (abbreviate-file-name file))
                      why)))))

(defun gemini-companion-status--insert-file (file)
  "Insert FILE, a plist of `gemini-companion-context-snapshot'."
  (insert "    " (abbreviate-file-name (plist-get file :path))
          (if (plist-get file :active)
              (format ", active, line %s, character %s"
                      (plist-get file :line) (plist-get file :character))
            "")
          "\n")
  (when-let* ((text (plist-get file :selected-text)))
    (let ((print-escape-newlines t))
      (insert (format "        %d characters selected: %S\n" (length text)
                      (truncate-string-to-width
                       text gemini-companion-status--longest
                       nil nil "..."))))))

(defun gemini-companion-status--insert-roots ()
  "Insert the folders from which Gemini CLI may connect."
  (let ((file (and (fboundp 'gemini-companion-server-info)
                   (plist-get (gemini-companion-server-info) :discovery))))
    (when file
      (gemini-companion-status--heading "Gemini CLI may connect from\n")
      (dolist (folder (gemini-companion-diagnosis-folders file))
        (insert "    " (abbreviate-file-name folder) "\n")))))

(provide 'gemini-companion-status)
;;; gemini-companion-status.el ends here
