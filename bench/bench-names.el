;;; bench-names.el --- Questions about names, and what else Emacs does  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Starts a language server, and records how long Emacs works without reading keys while
;; a question is answered.  That is processor time, as the language server uses all
;; processors; or the time for which Emacs waits until the language server reads.

;;; Code:

(require 'bench)
(require 'eglot nil t)

(declare-function eglot-ensure "eglot")
(declare-function eglot-managed-p "eglot")
(declare-function gemini-companion-tools--write-policy "gemini-companion-tools")
(declare-function gemini-companion-tools--run "gemini-companion-tools")
(declare-function gemini-companion-tools--write-extension "gemini-companion-tools")
(declare-function gemini-companion-part-ready "gemini-companion-server")
(defvar eglot-server-programs)
(defvar gemini-companion-run-commands)

(defvar bench-names--sending nil
  "Time when Emacs began to send a message, or nil.")
(defvar bench-names--last '(0 . 0)
  "Processor time and time of garbage collection at the last record.")
(defvar bench-names--work 0
  "Maximum of seconds between two records, without garbage collection.")

(defun bench-names-start (command gemini)
  "Check Python by COMMAND, and link Gemini CLI, the program GEMINI."
  (setq eglot-server-programs `((python-mode . ,command))
        gemini-companion-run-commands `(("gemini" . ,gemini)))
  (add-hook 'python-mode-hook #'eglot-ensure)
  (require 'gemini-companion-tools)
  (gemini-companion-tools--write-extension)
  (gemini-companion-tools--run "link" '("gemini") #'ignore)
  (gemini-companion-tools--write-policy "gemini")
  (gemini-companion-part-ready 'tools 'started)
  nil)

(defun bench-names-watch ()
  "Begin to record how long Emacs works without reading keys."
  (advice-add 'process-send-string :around #'bench-names--send)
  (run-at-time 0 0.001 #'bench-names--tick))

(defun bench-names--now ()
  "Return the processor time and the time of garbage collection."
  (let (now garbage)
    ;; It may be collected in between.
    (while (not (eql garbage gc-elapsed))
      (setq garbage gc-elapsed
            now (float-time (get-internal-run-time))))
    (cons now garbage)))

(defun bench-names--tick ()
  "Record how long Emacs has worked without running timers or keys.
While Emacs waits to send a message it runs timers, but handles no keys."
  (let ((now (bench-names--now)))
    (setq bench-names--work
          (max bench-names--work
               (- (car now) (car bench-names--last)
                  (- (cdr now) (cdr bench-names--last)))
               (- (float-time) (or bench-names--sending (float-time))))
          bench-names--last now)))

(defun bench-names--send (function &rest args)
  "Call FUNCTION, which sends a message, with ARGS."
  (let ((bench-names--sending (float-time)))
    (apply function args)))

(defun bench-names-begin ()
  "Forget what was recorded."
  (setq bench-names--work 0
        bench-names--last (bench-names--now)))

(defun bench-names-end ()
  "Return the longest ms of work at once since `bench-names-begin'."
  (bench-names--tick)
  (* 1000 bench-names--work))

(defun bench-names-visit (file)
  "Visit FILE with point at its end; return non-nil once its server has it."
  (with-current-buffer (find-file-noselect file)
    (goto-char (point-max))
    (run-hooks 'post-command-hook)
    (eglot-managed-p)))

(defun bench-names-status-p ()
  "Return non-nil once the status in the selected window is whole."
  (with-current-buffer (window-buffer)
    (save-excursion
      (goto-char (point-min))
      (not (search-forward "Asking where" nil t)))))

(provide 'bench-names)
;;; bench-names.el ends here
