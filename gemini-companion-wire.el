;;; gemini-companion-wire.el --- The EPC wire to one Python process  -*- lexical-binding: t; -*-


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

;; The EPC connection to one Python process: calls both ways, each of which is
;; noted among the events.  The only file that knows EPC: what it hands to
;; others are plain strings, numbers and plists.  What they mean is not known
;; here.  It is loaded when the first process has named its port, as EPC takes
;; a while to load.

;;; Code:

(require 'epc)
(require 'gemini-companion-events)
(require 'subr-x)

(defun gemini-companion-wire-open (port command methods)
  "Connect to PORT, which COMMAND named, and return the wire.
METHODS is an alist of (NAME . FUNCTION), what the other end may
call.  Signal an error if nothing can be connected to."
  (let* ((connection (gemini-companion-wire--connect port))
         (wire (make-epc:manager :title "gemini-companion" :port port
                                 :commands command :connection connection)))
    (pcase-dolist (`(,name . ,function) methods)
      (epc:define-method wire name
                         (gemini-companion-wire--method name function)))
    (epc:init-epc-layer wire)
    wire))

(defun gemini-companion-wire--connect (port)
  "Return a new EPC connection to PORT, whose buffer is hidden."
  (let ((connection
         (condition-case problem
             (epc:connect "127.0.0.1" port)
           (error
            ;; The buffer that EPC made before it could connect.
            (when-let* ((buffer (get-buffer (format "*epc con %d*" epc:uid))))
              (kill-buffer buffer))
            (signal (car problem) (cdr problem))))))
    ;; EPC's own name for the buffer lacks the space that hides it.
    (with-current-buffer (epc:connection-buffer connection)
      (rename-buffer " *gemini-companion wire*" t))
    (gemini-companion-wire--hurry (epc:connection-process connection))
    connection))

(defun gemini-companion-wire--hurry (process)
  "Have what comes from PROCESS dealt with at the next opportunity.
EPC waits a millisecond before, which is most of the time that a
message takes; the person's own setting for all deferred tasks
stays as it is."
  (add-function :around (process-filter process)
                (lambda (filter &rest args)
                  (let ((deferred:tick-time 0))
                    (apply filter args)))))

(defun gemini-companion-wire--method (name function)
  "Return FUNCTION, the method NAME, for use by EPC."
  (lambda (&rest args)
    (gemini-companion-events-note 'received name args)
    (apply function args)))

(defun gemini-companion-wire-close (wire)
  "Close WIRE."
  (epc:live-connections-delete wire)
  (epc:disconnect (epc:manager-connection wire)))

(defun gemini-companion-wire-call (wire method args &optional done failed)
  "Call METHOD over WIRE with ARGS.
DONE is called with its value later, or FAILED with a message.
Return nil if the call could not be sent."
  ;; What hello carries is secret.
  (gemini-companion-events-note 'sent method
                                (unless (eq method 'hello) args))
  (when-let* ((answer (gemini-companion-wire--send wire method args)))
    (deferred:error
     (deferred:nextc answer (or done #'ignore))
     (lambda (problem)
       (funcall (or failed #'ignore)
                (gemini-companion-wire--message problem))))
    t))

(defun gemini-companion-wire--send (wire method args)
  "Send the call of METHOD with ARGS over WIRE; return its deferred answer.
Return nil if the process has died and its sentinel has not run."
  (let ((print-escape-control-characters nil)
        (print-escape-multibyte nil)
        (print-circle nil)
        (print-integers-as-characters nil))
    (ignore-errors
      (epc:call-deferred wire method args))))

(defun gemini-companion-wire--message (problem)
  "Return PROBLEM, from EPC, as a sentence.
What comes from the other end comes printed, with its quotes."
  (string-trim (if (stringp problem) problem (error-message-string problem))
               "\"" "\""))

(provide 'gemini-companion-wire)
;;; gemini-companion-wire.el ends here
