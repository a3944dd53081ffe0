;;; bench.el --- The Emacs side of the measurements  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Connects to the bench and evaluates what comes from there, one form a
;; line; each answer is one line of JSON.  Times are seconds since 1970, which
;; the bench reads from the same clock.

;;; Code:

(require 'cl-lib)
(require 'ediff)
(require 'gemini-companion)
(require 'json)
(require 'seq)

(defvar gemini-companion-unified--process)

(defvar bench--input "" "What has come of the next line.")

(defun bench-connect (port)
  "Connect to the bench, which listens on PORT."
  (make-network-process :name "bench" :host "127.0.0.1" :service port
                        :coding 'utf-8-unix :noquery t
                        :filter #'bench--take))

(defun bench--take (process string)
  "Evaluate the lines that STRING, from PROCESS, completes."
  (let ((lines (split-string (concat bench--input string) "\n")))
    (setq bench--input (car (last lines)))
    (dolist (line (butlast lines))
      ;; Not in here, where nobody can quit.
      (run-at-time 0 nil #'bench--answer process (car (read-from-string line))))))

(defun bench--answer (process form)
  "Send PROCESS the value of FORM."
  (process-send-string
   process
   (concat (json-encode
            (condition-case problem
                (list :value (eval form t))
              (error (list :error (error-message-string problem)))))
           "\n")))

(defun bench-tell (value)
  "Send the bench VALUE, which it has not asked for."
  (process-send-string "bench" (concat (json-encode (list :told value)) "\n")))

;;;; Commands

(defconst bench--command-hooks
  '(pre-command-hook post-command-hook pre-redisplay-functions)
  "The hooks that are run with each command.")

(defvar bench--timer nil "The timer of `bench--habit'.")

(defun bench--habit ()
  "Do what other companions do after each command."
  (when bench--timer
    (cancel-timer bench--timer))
  (setq bench--timer (run-with-timer 0.05 nil #'ignore)))

(defun bench--empty (&rest _)
  "Do nothing.")

(defun bench--ours (hook)
  "Return the functions of ours in HOOK."
  (seq-filter (lambda (function)
                (and (symbolp function)
                     (string-prefix-p "gemini-companion"
                                      (symbol-name function))))
              (append (default-value hook)
                      (and (local-variable-p hook) (symbol-value hook)))))

(defun bench--loop (count)
  "Move point and run the hooks of a command, COUNT times."
  (dotimes (place count)
    (goto-char (1+ (% place 1000)))
    (run-hooks 'pre-command-hook)
    (run-hooks 'post-command-hook)
    (run-hook-with-args 'pre-redisplay-functions (selected-window))))

(defun bench--bytes (counts)
  "Return the bytes that COUNTS, of `memory-use-counts', stand for."
  (cl-loop for count in counts
           for size in '(16 8 8 48 1 56 32)
           sum (* count size)))

(defun bench--run (hooks count)
  "Return the µs and the bytes of one of COUNT commands with HOOKS.
HOOKS are the values of `bench--command-hooks'."
  (cl-progv bench--command-hooks hooks
    (bench--loop 10)
    (garbage-collect)
    (let* ((began (float-time))
           (before (memory-use-counts))
           (memory (memory-use-counts)))
      (bench--loop count)
      (let ((after (memory-use-counts))
            (took (- (float-time) began)))
        (list (/ (* 1e6 took) count)
              ;; The counts are made of conses themselves.
              (/ (bench--bytes (cl-mapcar (lambda (x y z) (- x y (- y z)))
                                          after memory before))
                 (float count)))))))

(defun bench-commands (count)
  "Return what one of COUNT commands costs by the three kinds of hooks."
  (let ((ours (mapcar #'bench--ours bench--command-hooks)))
    (unless (seq-some #'identity ours)
      (error "Nothing of ours runs after a command"))
    (prog1 (list :ours (bench--run ours count)
                 :comparator (bench--run '(nil (bench--habit) nil) count)
                 :limit (bench--run '(nil (bench--empty) nil) count))
      (cancel-timer bench--timer))))

;;;; Moving

(defvar bench--moves nil "Alist of column and time, the last move first.")

(defun bench--note-move ()
  "Note that point has moved."
  (push (list (1+ (current-column)) (float-time)) bench--moves))

(defun bench-move ()
  "Have the person press the key of `forward-char'."
  (add-hook 'post-command-hook #'bench--note-move -90)
  (setq unread-command-events (append unread-command-events (list ?\C-f)))
  nil)

(defun bench-moves ()
  "Return where point was and when, and forget it."
  (remove-hook 'post-command-hook #'bench--note-move)
  (prog1 (vconcat bench--moves)
    (setq bench--moves nil)))

;;;; Reviews

(defun bench-review ()
  "Show each review at once and tell when it is on the screen."
  (setq gemini-companion-review-arrival 'now)
  (add-hook 'gemini-companion-diff-opened-functions #'bench--shown))

(defun bench--shown (_diff)
  "Tell when a review is on the screen, all of it."
  (let ((process (bound-and-true-p gemini-companion-unified--process)))
    (while (process-live-p process)
      (accept-process-output process 0.01)))
  (redisplay t)
  (bench-tell (list (float-time) (buffer-name))))

(defun bench-accept ()
  "Accept the review that is shown; return when that was pressed."
  (prog1 (float-time)
    (gemini-companion-diff-accept)))

(defun bench--buffer (file)
  "Return a new buffer with the text of FILE."
  (with-current-buffer (generate-new-buffer (file-name-nondirectory file))
    (let ((coding-system-for-read 'utf-8-unix))
      (insert-file-contents file))
    (goto-char (point-min))
    (set-buffer-modified-p nil)
    (current-buffer)))

(defun bench-ediff (one two)
  "Return how long Ediff takes to show the files ONE and TWO."
  (let* ((windows (current-window-configuration))
         (buffers (mapcar #'bench--buffer (list one two)))
         (ediff-window-setup-function #'ediff-setup-windows-plain)
         (began (progn (garbage-collect) (float-time)))
         panel took)
    (ediff-buffers (car buffers) (cadr buffers)
                   (list (lambda ()
                           (setq panel (current-buffer))
                           (ediff-next-difference))))
    (redisplay t)
    (setq took (- (float-time) began))
    (unless (< 0 (buffer-local-value 'ediff-number-of-differences panel))
      (error "Ediff found no difference"))
    (let ((this-command 'ediff-quit))
      (with-current-buffer panel
        (ediff-really-quit nil)))
    (mapc #'kill-buffer buffers)
    (set-window-configuration windows)
    took))

(defun bench-diff (one two)
  "Return how long diff takes to show the files ONE and TWO."
  (garbage-collect)
  (let ((began (float-time)))
    (save-window-excursion
      (switch-to-buffer (generate-new-buffer "diff"))
      (unless (eql 1 (call-process "diff" nil t nil "-u" one two))
        (error "Diff found no difference"))
      (goto-char (point-min))
      (redisplay t)
      (prog1 (- (float-time) began)
        (set-buffer-modified-p nil)
        (kill-buffer)))))

;;;; Wire

(defvar bench--wires nil "Alist of a kind of wire, and what sends a call on it.")

(defun bench--got (text)
  "Tell that TEXT has come, a string or a function to insert it."
  (let* ((string (if (stringp text)
                     text
                   (with-temp-buffer
                     (funcall text)
                     (buffer-string))))
         (at (float-time)))
    (bench-tell (list at (length string)))))

(defun bench-wire-ours (command)
  "Start COMMAND as the server is started, and have `ours' send to it."
  (gemini-companion-link-open
   :command command :environment process-environment :directory "/"
   :version gemini-companion-server-version :keep #'ignore
   :methods '((open-diff . (lambda (_link _id _session _path text &rest _)
                             (bench--got text))))
   :on-ready (lambda (link)
               (push (cons 'ours
                           (lambda (method &rest args)
                             (apply #'gemini-companion-link-call
                                    link method args)))
                     bench--wires))
   :on-end (lambda (_link problem) (message "%s" problem)))
  nil)

(defun bench-wire-bare (command)
  "Start COMMAND and have `bare' send to it with a socket and `prin1'."
  (process-send-string
   (make-process :name "bare" :command command :connection-type 'pipe
                 :noquery t :filter #'bench--bare-port)
   (concat (json-encode (list :secret "secret" :emacsPid (emacs-pid))) "\n"))
  nil)

(defun bench--bare-port (_process string)
  "Connect to the port that STRING names."
  (let ((wire (make-network-process
               :name "bare wire" :host "127.0.0.1" :service (string-to-number string)
               :buffer (generate-new-buffer " *bare*" t) :coding 'binary
               :noquery t :filter #'bench--bare-take)))
    (with-current-buffer (process-buffer wire)
      (set-buffer-multibyte nil))
    (bench--bare-send wire 'hello "secret" gemini-companion-server-version)
    (push (cons 'bare (apply-partially #'bench--bare-send wire))
          bench--wires)))

(defun bench--bare-send (wire method &rest args)
  "Send over WIRE a call of METHOD with ARGS."
  (let ((message (encode-coding-string
                  (concat (prin1-to-string (list 'call 1 method args)) "\n")
                  'utf-8-unix)))
    (process-send-string wire (concat (format "%06x" (length message))
                                      message))))

(defun bench--bare-take (wire string)
  "Take the messages over WIRE that STRING completes."
  (with-current-buffer (process-buffer wire)
    (goto-char (point-max))
    (insert string)
    (let (size)
      (while (and (<= 6 (buffer-size))
                  (<= (setq size (+ 6 (string-to-number (buffer-substring 1 7) 16)))
                      (buffer-size)))
        (let ((form (read (decode-coding-string (buffer-substring 7 (1+ size))
                                                'utf-8-unix))))
          (delete-region 1 (1+ size))
          (pcase form
            (`(call ,_ open-diff (,_ ,_ ,_ ,text . ,_))
             (bench--got (bench--bare-text text)))))))))

(defun bench--bare-text (text)
  "Return the string that TEXT stands for."
  (if (stringp text)
      text
    (with-temp-buffer
      (let ((coding-system-for-read 'utf-8-unix))
        (insert-file-contents (cadr text)))
      (delete-file (cadr text))
      (buffer-string))))

(defun bench-wire-ready ()
  "Return non-nil if both wires can be used."
  (= 2 (length bench--wires)))

(defun bench-send (kind size)
  "Send a text of SIZE over the wire KIND; return when that began."
  (let ((text (make-string size ?x))
        (send (alist-get kind bench--wires)))
    (prog1 (float-time)
      (funcall send 'diff-accepted 1 text))))

(defun bench-ask (kind size)
  "Have a text of SIZE sent over the wire KIND."
  (funcall (alist-get kind bench--wires) 'diff-rejected size)
  nil)

;;;; Start

(defun bench-mode ()
  "Turn the mode on; return when that began, and when it was done."
  (let ((began (float-time)))
    (gemini-companion-mode 1)
    (list began (float-time))))

(provide 'bench)
;;; bench.el ends here
