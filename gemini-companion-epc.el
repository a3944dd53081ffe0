;;; gemini-companion-epc.el --- The EPC connection  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The EPC connection to one Python process: calls both ways, each of which is
;; recorded in the event log.  The only file that knows EPC; values are plain
;; strings, numbers and plists.  It is loaded when the first process has printed
;; its port, because EPC takes a while to load.

;;; Code:

(require 'epc)
(require 'gemini-companion-events)
(require 'seq)
(require 'subr-x)

(defun gemini-companion-epc-open (port methods handler)
  "Connect to PORT, and return the connection.
METHODS are symbols for what the process may call: then HANDLER is
called with the symbol and the arguments.  Signal an error if it
cannot connect."
  (let* ((connection (epc:connect "127.0.0.1" port))
         (manager (make-epc:manager :title "gemini-companion" :port port
                                    :connection connection)))
    ;; EPC's own name for the buffer lacks the space that hides it.
    (with-current-buffer (epc:connection-buffer connection)
      (rename-buffer " *gemini-companion connection*" t))
    ;; EPC waits a millisecond before it handles a message, which is most of the
    ;; time that one takes; the user's setting for other deferred tasks stays.
    (add-function :around (process-filter (epc:connection-process connection))
                  (lambda (filter &rest args)
                    (let ((deferred:tick-time 0))
                      (apply filter args))))
    (dolist (method methods)
      (epc:define-method manager method
                         (lambda (&rest args)
                           (gemini-companion-events-record
                            'received method
                            (gemini-companion-epc--recorded method args))
                           (gemini-companion-epc--plain
                            (apply handler method args)))))
    (epc:init-epc-layer manager)
    manager))

(defun gemini-companion-epc-close (connection)
  "Close CONNECTION once everything that has arrived there is read.
A process that has crashed may have sent a proposal before."
  (let ((process (epc:connection-process
                  (epc:manager-connection connection))))
    (while (accept-process-output process 0 nil 1)))
  (epc:stop-epc connection))

(defun gemini-companion-epc-call (connection method args done &optional failed)
  "Call METHOD over CONNECTION with ARGS.
Later, DONE is called with its value, or FAILED with a message; without
FAILED, DONE is called with nil.  An error in DONE is reported; it is
not one of the call.  Return nil if the call could not be sent."
  (gemini-companion-events-record
   'sent method (gemini-companion-epc--recorded method args))
  (when-let* ((answer (let ((print-escape-control-characters nil)
                            (print-escape-multibyte nil)
                            (print-circle nil)
                            (print-integers-as-characters nil))
                        ;; The process may have died, and its sentinel not run.
                        (ignore-errors
                          (epc:call-deferred
                           connection method
                           (gemini-companion-epc--plain args))))))
    (deferred:error
     (deferred:nextc answer
       (lambda (value)
         (with-demoted-errors "Handling an answer of the server: %S"
           (funcall done value))))
     (lambda (problem)
       (funcall (or failed (lambda (_problem) (funcall done nil)))
                ;; Errors of the process are printed strings, with quotes.
                (string-trim (if (stringp problem)
                                 problem
                               (error-message-string problem))
                             "\"" "\""))))
    t))

(defun gemini-companion-epc-later (start)
  "Return a value of a method that is known later.
Call START with a function, which is to be called with the value."
  (let ((answer (deferred:new #'identity)))
    (funcall start (lambda (value)
                     (deferred:callback-post
                      answer (gemini-companion-epc--plain value))))
    answer))

(defun gemini-companion-epc--plain (value)
  "Return VALUE with only the characters of its strings, also in lists.
Python can read neither properties nor bytes in place of characters."
  (cond ((consp value) (mapcar #'gemini-companion-epc--plain value))
        ((not (stringp value)) value)
        ((multibyte-string-p value) (substring-no-properties value))
        (t (decode-coding-string (substring-no-properties value)
                                 'utf-8-unix))))

(defun gemini-companion-epc--recorded (method args)
  "Return the ARGS of METHOD that may be recorded."
  (pcase method
    ;; It carries a secret.
    ('hello nil)
    ;; It carries texts of files.
    ('ask (seq-remove #'sequencep args))
    (_ args)))

(provide 'gemini-companion-epc)
;;; gemini-companion-epc.el ends here
