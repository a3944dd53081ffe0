;;; bench-names.el --- Questions about names, and what else Emacs does  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Starts a language server, and records how long it takes for each question, and
;; how long Emacs works meanwhile without reading keys.  That is processor time, as
;; the language server uses all processors.

;;; Code:

(require 'bench)
(require 'eglot nil t)

(declare-function eglot-ensure "eglot")
(declare-function eglot-managed-p "eglot")
(declare-function gemini-companion-tools-write-policy "gemini-companion-tools")
(declare-function gemini-companion-tools-link-client "gemini-companion-tools")
(declare-function gemini-companion-tools-write-extension "gemini-companion-tools")
(declare-function gemini-companion-tools-ready "gemini-companion-tools")
(defvar eglot-server-programs)

(defvar bench-names--server 0 "Seconds that the language server has taken.")
(defvar bench-names--last 0 "Processor time when Emacs last ran timers.")
(defvar bench-names--longest 0 "Maximum of seconds between two of these.")

(defun bench-names-start (command)
  "Check Python by COMMAND, and link Gemini CLI."
  (setq eglot-server-programs `((python-mode . ,command)))
  (add-hook 'python-mode-hook #'eglot-ensure)
  (require 'gemini-companion-tools)
  (gemini-companion-tools-write-extension)
  (gemini-companion-tools-link-client "gemini")
  (gemini-companion-tools-write-policy)
  (gemini-companion-tools-ready 'started)
  (advice-add 'jsonrpc-async-request :around #'bench-names--request)
  (run-at-time 0 0.001 #'bench-names--tick))

(defun bench-names--request (function server method params &rest options)
  "Call FUNCTION with SERVER, METHOD, PARAMS and OPTIONS; record the time."
  (let ((began (float-time))
        (then (plist-get options :success-fn)))
    (when (and then (eq method :textDocument/references))
      (setq options
            (plist-put (copy-sequence options) :success-fn
                       (lambda (result)
                         (setq bench-names--server (- (float-time) began))
                         (funcall then result)))))
    (apply function server method params options)))

(defun bench-names--tick ()
  "Record how long Emacs has worked without running timers or keys."
  (let ((now (float-time (get-internal-run-time))))
    (setq bench-names--longest (max bench-names--longest
                                    (- now bench-names--last))
          bench-names--last now)))

(defun bench-names-begin ()
  "Forget what was recorded."
  (setq bench-names--longest 0
        bench-names--last (float-time (get-internal-run-time))))

(defun bench-names-end ()
  "Return the ms that the server took, and the longest ms of work at once."
  (bench-names--tick)
  (list (* 1000 bench-names--server) (* 1000 bench-names--longest)))

(defun bench-names-visit (file)
  "Visit FILE with point at its end; return non-nil once its server has it."
  (with-current-buffer (find-file-noselect file)
    (goto-char (point-max))
    (run-hooks 'post-command-hook)
    (eglot-managed-p)))

(provide 'bench-names)
;;; bench-names.el ends here
