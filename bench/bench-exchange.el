;;; bench-exchange.el --- Two wires in one Emacs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Texts over the EPC wire as the package uses it, and over a bare socket that
;; speaks the same protocol.

;;; Code:

(require 'bench)
(require 'gemini-companion)

(defvar bench-exchange--wires nil
  "Alist of a kind of wire, and what sends a call on it.")

(defun bench-exchange--got (text)
  "Tell that TEXT has come, a string or a function to insert it."
  (let* ((string (if (stringp text)
                     text
                   (with-temp-buffer
                     (funcall text)
                     (buffer-string))))
         (at (float-time)))
    (bench-tell (list at (bench-exchange--digest string)))))

(defun bench-exchange--digest (text)
  "Return what no other text than TEXT has."
  (secure-hash 'sha256 (encode-coding-string text 'utf-8-unix)))

(defun bench-exchange-ours (command)
  "Start COMMAND as the server is started, and have `ours' send to it."
  (gemini-companion-link-open
   :command command :environment process-environment :directory "/"
   :version gemini-companion-server-version :keep #'ignore
   :methods '((open-diff . (lambda (_link _id _session _path text &rest _)
                             (bench-exchange--got text))))
   :on-ready (lambda (link)
               (push (cons 'ours
                           (lambda (method &rest args)
                             (apply #'gemini-companion-link-call
                                    link method args)))
                     bench-exchange--wires))
   :on-end (lambda (_link problem) (message "%s" problem)))
  nil)

(defun bench-exchange-bare (command)
  "Start COMMAND and have `bare' send to it with a socket and `prin1'."
  (process-send-string
   (make-process :name "bare" :command command :connection-type 'pipe
                 :noquery t :filter #'bench-exchange--port)
   (concat (json-serialize (list :secret "secret" :emacsPid (emacs-pid))) "\n"))
  nil)

(defun bench-exchange--port (_process string)
  "Connect to the port that STRING names."
  (let ((wire (make-network-process
               :name "bare wire" :host "127.0.0.1" :service (string-to-number string)
               :buffer (generate-new-buffer " *bare*" t) :coding 'binary
               :noquery t :filter #'bench-exchange--take)))
    (with-current-buffer (process-buffer wire)
      (set-buffer-multibyte nil))
    (bench-exchange--send wire 'hello "secret" gemini-companion-server-version)
    (push (cons 'bare (apply-partially #'bench-exchange--send wire))
          bench-exchange--wires)))

(defun bench-exchange--send (wire method &rest args)
  "Send over WIRE a call of METHOD with ARGS."
  (let ((message (encode-coding-string
                  (concat (prin1-to-string (list 'call 1 method args)) "\n")
                  'utf-8-unix)))
    (process-send-string wire (concat (format "%06x" (length message))
                                      message))))

(defun bench-exchange--take (wire string)
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
             (bench-exchange--got (bench-exchange--text text)))))))))

(defun bench-exchange--text (text)
  "Return the string that TEXT stands for."
  (if (stringp text)
      text
    (prog1 (bench-exchange--read (cadr text))
      (delete-file (cadr text)))))

(defun bench-exchange--read (file)
  "Return the text of FILE."
  (with-temp-buffer
    (let ((coding-system-for-read 'utf-8-unix))
      (insert-file-contents file))
    (buffer-string)))

(defun bench-exchange-ready ()
  "Return non-nil if both wires can be used."
  (= 2 (length bench-exchange--wires)))

(defun bench-exchange-send (kind file)
  "Send the text of FILE over the wire KIND; return when that began."
  (let ((text (bench-exchange--read file))
        (send (alist-get kind bench-exchange--wires)))
    (prog1 (float-time)
      (funcall send 'diff-accepted 1 text))))

(defun bench-exchange-ask (kind size)
  "Have a text of SIZE sent over the wire KIND."
  (funcall (alist-get kind bench-exchange--wires) 'diff-rejected size)
  nil)

(provide 'bench-exchange)
;;; bench-exchange.el ends here
