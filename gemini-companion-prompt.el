;;; gemini-companion-prompt.el --- Type into the prompt of a Gemini CLI  -*- lexical-binding: t; -*-

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

;; Put text into the prompt of a Gemini CLI that runs in a terminal of this
;; Emacs, as a paste.  What it is typed for, and what to do when the CLI runs
;; elsewhere, is the caller's matter.
;;
;; Enter is pressed on request, and only when the terminal shows the text: a
;; CLI that asks a question at that moment takes no text, and Enter would be
;; its answer.

;;; Code:

(require 'gemini-companion-session)
(require 'subr-x)

;;;; State

(defconst gemini-companion-prompt--most 65536
  "How many characters are typed at most.
A terminal takes a few thousand at once, and Emacs waits for the rest.")

(defconst gemini-companion-prompt--look-seconds 0.1
  "How often it is looked whether the text has arrived.")

(defconst gemini-companion-prompt--enter-seconds 0.2
  "How long after the text Enter is pressed.
Gemini CLI takes an Enter that follows at once for a part of the paste.")

(defconst gemini-companion-prompt--most-looks 30
  "How often it is looked before Enter is given up.")

(defvar term-raw-map)
(defvar vterm-copy-mode)

;;;; Text

(defun gemini-companion-prompt--clean (text)
  "Return TEXT with nothing in it that could drive a terminal.
Lines end as terminals paste them; other control characters go."
  (replace-regexp-in-string
   "\n" "\r"
   (replace-regexp-in-string
    "[\0-\10\13-\37\177-\237]" ""
    (replace-regexp-in-string "\r\n?" "\n" (substring-no-properties text)))
   t t))

(defun gemini-companion-prompt--words (text)
  "Return the letters and digits of TEXT, however a screen breaks it."
  (replace-regexp-in-string "[^[:alnum:]]+" "" text))

;;;; Typing

(defun gemini-companion-prompt--process (session)
  "Return the process of the terminal buffer with SESSION in it, or nil."
  (when-let* ((buffer (gemini-companion-session-terminal session))
              (process (get-buffer-process buffer)))
    (with-current-buffer buffer
      (and (process-live-p process)
           (gemini-companion-prompt--takes-keys-p)
           process))))

(defun gemini-companion-prompt--takes-keys-p ()
  "Return non-nil if the current buffer is a terminal that is followed.
Some stand still for the person to copy from, or to edit a line."
  (cond ((derived-mode-p 'vterm-mode)
         (not (bound-and-true-p vterm-copy-mode)))
        ((derived-mode-p 'term-mode)
         (eq (current-local-map) (bound-and-true-p term-raw-map)))
        ((derived-mode-p 'eat-mode) t)))

(defun gemini-companion-prompt-type (session text &optional submit)
  "Type TEXT into the prompt of SESSION; press Enter too if SUBMIT.
Return non-nil if TEXT was typed, nil if SESSION runs in no
terminal of this Emacs, or in one that stands still.  Enter is
pressed later, once TEXT is to be seen there.  Control characters
are left out, but for newlines and tabs.  TEXT may have 65,536
characters."
  (when-let* ((process (gemini-companion-prompt--process session)))
    (when (< gemini-companion-prompt--most (length text))
      (user-error "Too much text for a prompt: %d characters; send the file"
                  (length text)))
    (let ((shown (gemini-companion-prompt--shown process text)))
      (process-send-string
       process (concat "\e[200~" (gemini-companion-prompt--clean text)
                       "\e[201~"))
      (when submit
        (gemini-companion-prompt--expect process text shown
                                         gemini-companion-prompt--most-looks))
      t)))

(defun gemini-companion-prompt--shown (process text)
  "Return how often the end of TEXT is on the screen of PROCESS.
Gemini CLI shows a note in place of a long paste; that counts too."
  (let* ((words (gemini-companion-prompt--words text))
         (end (substring words (max 0 (- (length words) 24)))))
    (if (string-empty-p end)
        0
      (with-current-buffer (process-buffer process)
        (let* ((from (max (point-min) (- (point-max) 20000)))
               (screen (gemini-companion-prompt--words
                        (buffer-substring-no-properties from (point-max))))
               (case-fold-search nil)
               (count 0)
               (start 0))
          (while (string-match (concat (regexp-quote end) "\\|PastedText[0-9]+")
                               screen start)
            (setq count (1+ count)
                  start (match-end 0)))
          count)))))

(defun gemini-companion-prompt--expect (process text shown left)
  "Press Enter in PROCESS when TEXT is there more often than SHOWN.
LEFT is how often to look before that is given up."
  (run-at-time gemini-companion-prompt--look-seconds nil
               #'gemini-companion-prompt--look process text shown left))

(defun gemini-companion-prompt--look (process text shown left)
  "See whether TEXT has arrived in PROCESS; SHOWN and LEFT as before."
  (cond ((not (and (process-live-p process)
                   (buffer-live-p (process-buffer process)))))
        ((< shown (gemini-companion-prompt--shown process text))
         (run-at-time gemini-companion-prompt--enter-seconds nil
                      #'gemini-companion-prompt--enter process))
        ((< 0 left)
         (gemini-companion-prompt--expect process text shown (1- left)))
        (t (message "Gemini CLI did not take the text at its prompt; \
see its terminal"))))

(defun gemini-companion-prompt--enter (process)
  "Press Enter in the terminal of PROCESS if that is still there."
  (when (process-live-p process)
    (process-send-string process "\r")))

(provide 'gemini-companion-prompt)
;;; gemini-companion-prompt.el ends here
