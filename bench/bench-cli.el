;;; bench-cli.el --- Files that Gemini CLI writes  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Visits files, and reports when what was written to one is in its buffer.

;;; Code:

(require 'autorevert)
(require 'bench-review)

(defconst bench-cli--interval 0.002
  "Seconds between two checks of a buffer.")

(defun bench-cli-visit (file auto-revert)
  "Visit FILE, with `auto-revert-mode' if AUTO-REVERT is non-nil."
  (with-current-buffer (find-file-noselect file)
    (auto-revert-mode (if auto-revert 1 -1))
    nil))

(defun bench-cli-follow (file text)
  "Report when TEXT is in the buffer that visits FILE, and in FILE."
  (let ((buffer (find-buffer-visiting file))
        timer)
    (setq timer (run-at-time
                 0 bench-cli--interval
                 (lambda ()
                   (when (bench-cli--current-p buffer text)
                     (cancel-timer timer)
                     (bench-report (float-time))))))
    nil))

(defun bench-cli--current-p (buffer text)
  "Return non-nil if TEXT is in BUFFER and in its file."
  (with-current-buffer buffer
    (and (not (buffer-modified-p))
         (= (buffer-size) (length text))
         (string= (buffer-string) text)
         (verify-visited-file-modtime buffer))))

(provide 'bench-cli)
;;; bench-cli.el ends here
