;;; bench-exchange.el --- Two EPC connections in one Emacs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Texts over EPC as the package uses it: a proposal arrives, and is sent back
;; when it is accepted.  For comparison, a bare socket with the same protocol.

;;; Code:

(require 'bench)
(require 'gemini-companion)

(declare-function gemini-companion-diff-proposal-buffer
                  "gemini-companion-diff")
(declare-function gemini-companion-diff-accept "gemini-companion-diff")
(declare-function gemini-companion-diffs "gemini-companion-diff")
(defvar gemini-companion-review-arrival)

(defvar bench-exchange--ready nil "Non-nil once the package is connected.")

(defvar bench-exchange--bare nil "The bare socket, or nil.")

(defvar bench-exchange--text "" "Last text received over the bare socket.")

;;;; Both

(defun bench-exchange-ready-p ()
  "Return non-nil if both can be used."
  (and bench-exchange--ready bench-exchange--bare t))

(defun bench-exchange-send (kind)
  "Send the last text back over KIND, `ours' or `bare'.
Return when that began."
  (let ((diff (car (last (gemini-companion-diffs))))
        (text bench-exchange--text))
    (prog1 (float-time)
      (pcase kind
        ('ours (gemini-companion-diff-accept diff))
        ('bare (bench-exchange--call 'diff-accepted 1 text))))))

(defun bench-exchange--digest (text)
  "Return the digest of TEXT."
  (secure-hash 'sha256 (encode-coding-string text 'utf-8-unix)))

;;;; Ours

(defun bench-exchange-ours (command)
  "Start the mode with COMMAND as its server; display no review."
  (setq gemini-companion-server-command command
        gemini-companion-review-arrival 'notify)
  (add-hook 'gemini-companion-ready-hook
            (lambda () (setq bench-exchange--ready t)))
  ;; By its name in the protocol, which no hook of the package has.
  (advice-add 'gemini-companion-diff-open :after #'bench-exchange--opened)
  (gemini-companion-mode))

(defun bench-exchange--opened (&rest _)
  "Report when a proposal has arrived, and its text."
  (let* ((at (float-time))
         (diff (car (last (gemini-companion-diffs)))))
    (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
      (bench-report (list at (bench-exchange--digest (buffer-string)))))))

;;;; Bare

(defun bench-exchange-bare (command version)
  "Start COMMAND and connect to it as an Emacs with the package of VERSION."
  (process-send-string
   (make-process :name "bare" :command command :connection-type 'pipe
                 :noquery t
                 :filter (lambda (_process string)
                           (bench-exchange--connect string version)))
   (concat (json-serialize (list :secret "secret" :emacsPid (emacs-pid))) "\n"))
  nil)

(defun bench-exchange--connect (port version)
  "Connect to PORT, a string, as an Emacs with the package of VERSION."
  (setq bench-exchange--bare
        (make-network-process
         :name "bare EPC" :host "127.0.0.1" :service (string-to-number port)
         :buffer (generate-new-buffer " *bare*" t) :coding 'binary
         :noquery t :filter #'bench-exchange--take))
  (with-current-buffer (process-buffer bench-exchange--bare)
    (set-buffer-multibyte nil))
  (bench-exchange--call 'hello "secret" version))

(defun bench-exchange--call (method &rest args)
  "Send a call of METHOD with ARGS over the bare socket."
  (let ((message (encode-coding-string
                  (concat (prin1-to-string (list 'call 1 method args)) "\n")
                  'utf-8-unix)))
    (process-send-string bench-exchange--bare
                         (concat (format "%06x" (length message)) message))))

(defun bench-exchange--take (process string)
  "Handle the messages over PROCESS, the bare socket, that STRING completes."
  (with-current-buffer (process-buffer process)
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
             (bench-exchange--got text))))))))

(defun bench-exchange--got (text)
  "Report when TEXT, a string or a reference to a file, has arrived."
  (setq bench-exchange--text (if (stringp text)
                                 text
                               (prog1 (bench-exchange--read (cadr text))
                                 (delete-file (cadr text)))))
  (let ((at (float-time)))
    (bench-report (list at (bench-exchange--digest bench-exchange--text)))))

(defun bench-exchange--read (file)
  "Return the text of FILE."
  (with-temp-buffer
    (let ((coding-system-for-read 'utf-8-unix))
      (insert-file-contents file))
    (buffer-string)))

(provide 'bench-exchange)
;;; bench-exchange.el ends here
