;;; bench-commands.el --- What a command costs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A loop moves point and calls what commands call, in one of two rhythms: in
;; quick succession, where the timer of the first command waits all the time; or
;; each after a pause, where none waits and each command makes its own.

;;; Code:

(require 'bench)
(require 'cl-lib)
(require 'gemini-companion)
(require 'seq)

(defvar gemini-companion-context--timer)

(defconst bench-commands--hooks
  '(pre-command-hook post-command-hook pre-redisplay-functions)
  "The hooks that are run with each command.")

(defconst bench-commands--places 1000
  "At how many places at the end of the buffer point comes by.")

(defvar bench-commands--timer nil "The timer of `bench-commands--habit'.")

(defun bench-commands--habit ()
  "Do what other companions do after each command."
  (when bench-commands--timer
    (cancel-timer bench-commands--timer))
  (setq bench-commands--timer (run-with-timer 0.05 nil #'ignore)))

(defun bench-commands--empty (&rest _)
  "Do nothing.")

(defun bench-commands--of (side)
  "Return the functions of SIDE in each of `bench-commands--hooks'."
  (pcase side
    ('ours (mapcar #'bench-commands--ours bench-commands--hooks))
    ('comparator '(nil (bench-commands--habit) nil))
    ('limit '(nil (bench-commands--empty) nil))))

(defun bench-commands--ours (hook)
  "Return the functions of ours in HOOK."
  (seq-filter (lambda (function)
                (and (symbolp function)
                     (string-prefix-p "gemini-companion"
                                      (symbol-name function))))
              (append (default-value hook)
                      (and (local-variable-p hook) (symbol-value hook)))))

(defun bench-commands--forget ()
  "Have no timer of either side wait, as when all is done."
  (setq timer-list (delq gemini-companion-context--timer
                         (delq bench-commands--timer timer-list))
        gemini-companion-context--timer nil
        bench-commands--timer nil))

(defun bench-commands--loop (count pause)
  "Move point and run the hooks of a command, COUNT times.
If PAUSE is non-nil, no timer waits before each of them; what that
takes is as much for all sides, and nearly nothing."
  (let ((start (- (point-max) bench-commands--places)))
    (dotimes (place count)
      (when pause
        (bench-commands--forget))
      (goto-char (+ start (% place bench-commands--places)))
      (run-hooks 'pre-command-hook)
      (run-hooks 'post-command-hook)
      (run-hook-with-args 'pre-redisplay-functions (selected-window)))))

(defun bench-commands--bytes (counts)
  "Return the bytes that COUNTS, of `memory-use-counts', stand for."
  (cl-loop for count in counts
           for size in '(16 8 8 48 1 56 32)
           sum (* count size)))

(defun bench-commands--cost (count pause)
  "Return the µs and the bytes of one of COUNT commands.
PAUSE is that of `bench-commands--loop'."
  (bench-commands--loop 10 pause)
  (garbage-collect)
  (let* ((began (float-time))
         (before (memory-use-counts))
         (memory (memory-use-counts)))
    (bench-commands--loop count pause)
    (let ((after (memory-use-counts))
          (took (- (float-time) began)))
      (list (/ (* 1e6 took) count)
            ;; The counts are made of conses themselves.
            (/ (bench-commands--bytes
                (cl-mapcar (lambda (x y z) (- x y (- y z)))
                           after memory before))
               (float count))))))

(defun bench-commands--check (side)
  "Signal an error if the commands of SIDE have not had a timer made."
  (unless (pcase side
            ('ours (memq gemini-companion-context--timer timer-list))
            ('comparator (memq bench-commands--timer timer-list))
            ('limit t))
    (error "No timer waits after a command")))

(defun bench-commands-run (side count pause)
  "Return the µs and the bytes of one of COUNT commands with SIDE's hooks.
SIDE is `ours', `comparator' or `limit'; PAUSE is that of
`bench-commands--loop'."
  (bench-commands--forget)
  (cl-progv bench-commands--hooks (bench-commands--of side)
    (prog1 (bench-commands--cost count pause)
      (bench-commands--check side))))

(defun bench-commands-place ()
  "Return line and character of point, as Gemini CLI is told."
  (list (line-number-at-pos) (1+ (- (point) (line-beginning-position)))))

(provide 'bench-commands)
;;; bench-commands.el ends here
