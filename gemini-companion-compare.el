;;; gemini-companion-compare.el --- What diff says of an original and a proposal  -*- lexical-binding: t; -*-

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

;; Run the program `diff' on the original and a proposal with no hunk excluded,
;; beside Emacs, and hand over the file that it wrote.  Knows nothing of how
;; that is shown.

;;; Code:

(require 'diff)
(require 'gemini-companion-hunks)
(require 'gemini-companion-look)
(require 'gemini-companion-text)

(defun gemini-companion-compare-start (original proposal name on-end)
  "Start `diff' on the buffers ORIGINAL and PROPOSAL; return its process.
NAME is that of the file, for the diff.  ON-END is called with the
process and the file that it wrote, unless it was cancelled."
  (unless (executable-find diff-command)
    (user-error "Cannot find the program %s; install it or customize \
`diff-command'"
                diff-command))
  (let* ((verbatim (buffer-local-value 'gemini-companion-look-file original))
         (old (or verbatim (gemini-companion-compare--file original)))
         (new (gemini-companion-compare--file proposal))
         (out (make-temp-file "gemini-companion-"))
         (default-directory "/")
         (process (make-process
                   :name "gemini-companion-diff" :noquery t
                   :connection-type 'pipe
                   :command (gemini-companion-compare--command
                             old new out (abbreviate-file-name name))
                   :sentinel (lambda (process _event)
                               (gemini-companion-compare--take process)))))
    (process-put process :files (cons out (remq verbatim (list old new))))
    (process-put process :on-end on-end)
    process))

(defun gemini-companion-compare--file (buffer)
  "Write BUFFER to a new private file, and return its name.
Of a proposal, write the text with no hunk excluded."
  (gemini-companion-hunks-call-with-all
   buffer #'gemini-companion-text-temporary-file))

(defun gemini-companion-compare--command (old new out name)
  "Return the command that writes how the files OLD and NEW differ to OUT.
Both are called NAME there.  It writes to a file, as a garbage
collection would come with each piece that is read from a pipe."
  ;; The person's own shell may quote in another way.
  (let ((posix (file-executable-p "/bin/sh")))
    (list (if posix "/bin/sh" shell-file-name)
          (if posix "-c" shell-command-switch)
          (concat (and posix "exec ")
                  (mapconcat #'shell-quote-argument
                             (list diff-command "--text" "-u"
                                   "--label" (concat name "\tas it is")
                                   "--label" (concat name "\tproposed")
                                   old new)
                             " ")
                  " >" (shell-quote-argument out)))))

(defun gemini-companion-compare-wait (process seconds)
  "Wait until PROCESS has ended, SECONDS at most."
  (let ((end (+ (float-time) seconds)))
    (while (and (process-live-p process) (< (float-time) end))
      ;; No timer may run meanwhile.
      (accept-process-output process 0.005 nil 1)))
  (gemini-companion-compare--take process))

(defun gemini-companion-compare--take (process)
  "Hand over what PROCESS has written, if it has ended."
  (when-let* ((files (and (not (process-live-p process))
                          (process-get process :files))))
    (unwind-protect
        (funcall (process-get process :on-end) process (car files))
      (gemini-companion-compare-cancel process))))

(defun gemini-companion-compare-cancel (process)
  "End PROCESS, if that is needed, and delete its files."
  (let ((files (process-get process :files)))
    (process-put process :files nil)
    (delete-process process)
    (mapc #'delete-file files)))

(provide 'gemini-companion-compare)
;;; gemini-companion-compare.el ends here
