;;; gemini-companion-send.el --- Put what point is at into a prompt  -*- lexical-binding: t; -*-

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

;; Commands that put a reference to the file, its lines or a diagnostic into
;; the prompt of a Gemini CLI.  The person completes the prompt there and
;; sends it.  A CLI in a terminal elsewhere cannot be typed into; for that the
;; text goes to the kill ring.

;;; Code:

(require 'gemini-companion-privacy)
(require 'gemini-companion-prompt)
(require 'gemini-companion-session)
(require 'seq)
(require 'subr-x)

(declare-function flycheck-overlay-errors-in "ext:flycheck")
(declare-function flycheck-error-line "ext:flycheck")
(declare-function flycheck-error-message "ext:flycheck")
(declare-function flymake-diagnostics "flymake")
(declare-function flymake-diagnostic-beg "flymake")
(declare-function flymake-diagnostic-text "flymake")

;;;; References

(defun gemini-companion-send--file ()
  "Return the local file of the current buffer, or signal what is missing.
Ask first if the file is one that is never told by itself."
  (let* ((buffer (or (buffer-base-buffer) (current-buffer)))
         (file (buffer-file-name buffer)))
    (cond ((null file)
           (user-error "This buffer visits no file"))
          ((file-remote-p file)
           (user-error "Gemini CLI cannot read a remote file"))
          ((not (file-exists-p file))
           (user-error "Save the file first; Gemini CLI reads it from the disk"))
          ((string-match-p "[[:cntrl:]]" file)
           (user-error "No prompt can have a control character in a file name"))
          ((and (gemini-companion-privacy-hidden-p buffer)
                (not (y-or-n-p "Gemini CLI is not told of this file; \
name it all the same? ")))
           (user-error "Nothing was sent")))
    (concat (file-truename (file-name-directory file))
            (file-name-nondirectory file))))

(defun gemini-companion-send--inside-p (file session)
  "Return non-nil if FILE is in the folder of SESSION."
  (when-let* ((directory (plist-get session :directory)))
    (string-prefix-p (file-name-as-directory (file-truename directory)) file)))

(defun gemini-companion-send--reference (file session)
  "Return the reference to FILE, a true name, for the prompt of SESSION."
  (concat "@"
          (gemini-companion-send--escape
           (if (gemini-companion-send--inside-p file session)
               (file-relative-name
                file (file-truename (plist-get session :directory)))
             file))))

(defun gemini-companion-send--escape (name)
  "Return NAME as it is written in a prompt of Gemini CLI."
  (cond ((not (eq system-type 'windows-nt))
         (replace-regexp-in-string
          ;; A dot at the end would be that of the sentence.
          "[][ (){};|*?$`'\"#&<>!~\\,]\\|\\.\\'" "\\\\\\&" name))
        ((string-match-p "[][ (){}^=;!'+,`~%$@#&]" name)
         (concat "\"" name "\""))
        (t name)))

(defun gemini-companion-send--lines (start end)
  "Return the lines from START to END as a person writes them."
  (let ((first (line-number-at-pos start t))
        (last (line-number-at-pos (if (and (< start end)
                                           (eq (char-before end) ?\n))
                                      (1- end)
                                    end)
                                  t)))
    (if (= first last)
        (format "line %d" first)
      (format "lines %d-%d" first last))))

;;;; Sending

(defun gemini-companion-send--session (file)
  "Return the session that FILE is for; ask if that is not clear."
  (let* ((sessions (or (gemini-companion-sessions)
                       (user-error "No Gemini CLI is connected; \
start gemini in the project, or type /ide enable in it")))
         (near (seq-filter (lambda (session)
                             (gemini-companion-send--inside-p file session))
                           sessions)))
    (cond ((null (cdr sessions)) (car sessions))
          ((and near (null (cdr near))) (car near))
          (t (gemini-companion-session-read "Gemini CLI"
                                            (or near sessions))))))

(defun gemini-companion-send--put (text session)
  "Put TEXT into the prompt of SESSION, or into the kill ring.
Return a sentence for the person about that."
  (if (gemini-companion-prompt-type session text)
      (progn
        (display-buffer (gemini-companion-session-terminal session)
                        '(nil (inhibit-same-window . t)
                              (reusable-frames . visible)))
        (format "In the prompt of %s: %s"
                (gemini-companion-session-name session) text))
    (kill-new text)
    (format "Copied, as %s is in no terminal of this Emacs; paste it there: %s"
            (gemini-companion-session-name session) text)))

(defun gemini-companion-send--refer (describe)
  "Put a reference to the current file into a prompt.
DESCRIBE is called with the reference and returns the text.  Say so
if what the file has on disk is not what the buffer has."
  (let* ((file (gemini-companion-send--file))
         (session (gemini-companion-send--session file))
         (reference (gemini-companion-send--reference file session)))
    (message "%s%s"
             (gemini-companion-send--put
              (concat (funcall describe reference) " ") session)
             (if (buffer-modified-p)
                 "(not saved; Gemini CLI reads it from the disk)"
               ""))))

;;;; Diagnostics

(defun gemini-companion-send--diagnostics (start end)
  "Return what is said of START to END, a list of (POSITION . TEXT)."
  (append
   (when (bound-and-true-p flymake-mode)
     (mapcar (lambda (diagnostic)
               (cons (flymake-diagnostic-beg diagnostic)
                     (flymake-diagnostic-text diagnostic)))
             (flymake-diagnostics start end)))
   (when (bound-and-true-p flycheck-mode)
     (mapcar (lambda (problem)
               (cons (save-excursion
                       (save-restriction
                         (widen)
                         (goto-char (point-min))
                         (forward-line (1- (flycheck-error-line problem)))
                         (point)))
                     (flycheck-error-message problem)))
             (flycheck-overlay-errors-in start end)))))

(defun gemini-companion-send--diagnostics-here ()
  "Return the diagnostics at point, else those of its line."
  (or (gemini-companion-send--diagnostics
       (point) (min (1+ (point)) (point-max)))
      (gemini-companion-send--diagnostics (line-beginning-position)
                                          (line-end-position))
      (user-error "No diagnostic of Flymake or Flycheck is here")))

(defun gemini-companion-send--diagnostic-text (reference diagnostics)
  "Return a text with DIAGNOSTICS of the file with REFERENCE."
  (mapconcat (pcase-lambda (`(,position . ,text))
               (format "%s (%s): %s" reference
                       (gemini-companion-send--lines position position)
                       (string-trim (or text ""))))
             (seq-uniq diagnostics)
             "\n"))

;;;; Commands

;;;###autoload
(defun gemini-companion-send-file ()
  "Put a reference to the file of this buffer into the prompt of Gemini CLI."
  (interactive)
  (gemini-companion-send--refer #'identity))

;;;###autoload
(defun gemini-companion-send-region (start end)
  "Put a reference to the lines from START to END into the prompt of Gemini CLI.
Interactively, to those of the region; if none is active, to that of
point."
  (interactive
   (if (or (use-region-p) (and (not transient-mark-mode) (mark t)))
       (list (region-beginning) (region-end))
     (list (point) (point))))
  (gemini-companion-send--refer
   (lambda (reference)
     (format "%s (%s)" reference (gemini-companion-send--lines start end)))))

;;;###autoload
(defun gemini-companion-send-diagnostic-at-point ()
  "Put the diagnostic at point into the prompt of Gemini CLI.
It comes from Flymake or Flycheck; without one at point, those of
the line are taken."
  (interactive)
  (let ((diagnostics (gemini-companion-send--diagnostics-here)))
    (gemini-companion-send--refer
     (lambda (reference)
       (gemini-companion-send--diagnostic-text reference diagnostics)))))

(provide 'gemini-companion-send)
;;; gemini-companion-send.el ends here
