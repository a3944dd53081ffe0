;;; bench.el --- The Emacs side of the measurements  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Connects to the bench and evaluates the forms that it sends, one on a line;
;; each answer is one line of JSON.  Times are seconds since 1970 on the clock
;; that the bench uses.
;;
;; Loads nothing, because the first call of a mode that is not loaded is measured,
;; too.  The functions for each kind of row are in a file of that name.

;;; Code:

(declare-function gemini-companion-mode "gemini-companion-mode")

(defvar gemini-companion-server-command)

(defvar bench-ready nil "Non-nil once Gemini CLI could connect.")

(defun bench-connect (port)
  "Connect to the bench, which listens on PORT."
  (add-hook 'gemini-companion-ready-hook (lambda () (setq bench-ready t)))
  (make-network-process :name "bench" :host "127.0.0.1" :service port
                        :coding 'utf-8-unix :noquery t
                        :filter #'bench--take))

(defun bench--take (process string)
  "Evaluate the lines that STRING, from PROCESS, completes."
  (let ((lines (split-string (concat (process-get process :input) string)
                             "\n")))
    (process-put process :input (car (last lines)))
    (dolist (line (butlast lines))
      ;; Not in a process filter, which cannot be quit.
      (run-at-time 0 nil #'bench--answer process (car (read-from-string line))))))

(defun bench--answer (process form)
  "Send the value of FORM to PROCESS."
  (bench--send process (condition-case problem
                           (list :value (bench--plain (eval form t)))
                         (error (list :error (error-message-string problem))))))

(defun bench-report (value)
  "Send VALUE to the bench without a request."
  (bench--send "bench" (list :reported (bench--plain value))))

(defun bench--send (process plist)
  "Send PLIST to PROCESS as a line of JSON."
  (process-send-string process (concat (json-serialize plist) "\n")))

(defun bench--plain (value)
  "Return VALUE for JSON: a list becomes a vector, nil becomes null.
What is nothing for JSON becomes a string."
  (cond ((null value) :null)
        ((or (eq value t) (numberp value) (stringp value)) value)
        ((proper-list-p value) (apply #'vector (mapcar #'bench--plain value)))
        (t (format "%s" value))))

;;;; Moving

(defvar bench--moves nil "Alist of column and time, the last move first.")

(defun bench--record-move ()
  "Record that point has moved."
  (push (list (1+ (current-column)) (float-time)) bench--moves))

(defun bench-move ()
  "Press the key of `forward-char' as the user does."
  (add-hook 'post-command-hook #'bench--record-move -90)
  (setq unread-command-events (append unread-command-events (list ?\C-f)))
  nil)

(defun bench-moves ()
  "Return column and time of each recorded move, and drop them."
  (remove-hook 'post-command-hook #'bench--record-move)
  (prog1 bench--moves
    (setq bench--moves nil)))

;;;; Start

(defun bench-mode ()
  "Turn the mode on; return the times of its begin and end.
The garbage of the start of Emacs is not the mode's."
  (garbage-collect)
  (let ((began (float-time)))
    (gemini-companion-mode 1)
    (list began (float-time))))

;;;; Installation

(defvar bench-questions 0 "Number of questions that were asked.")

(defun bench-install ()
  "Turn the mode on without the packages of the server; answer all questions."
  (dolist (function '(y-or-n-p yes-or-no-p read-from-minibuffer read-event))
    (advice-add function :override
                (lambda (&rest _) (setq bench-questions (1+ bench-questions)))))
  (setq gemini-companion-server-command nil)
  (gemini-companion-mode 1)
  nil)

(provide 'bench)
;;; bench.el ends here
