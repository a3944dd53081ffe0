;;; gemini-companion-lighter.el --- Gemini CLI in the mode line  -*- lexical-binding: t; -*-

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

;; What the mode line says of Gemini CLI.  A click opens the menu, and the
;; mouse over it tells more.

;;; Code:

(require 'gemini-companion-auto)
(require 'gemini-companion-diff)
(require 'gemini-companion-install)
(require 'gemini-companion-menu)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-sharing)
(require 'subr-x)

(defvar gemini-companion-lighter--map
  (let ((map (make-sparse-keymap)))
    (define-key map [mode-line down-mouse-1] gemini-companion-menu-map)
    (define-key map [mode-line mouse-1] #'ignore)
    (define-key map [mode-line mouse-2] 'gemini-companion-status)
    (define-key map [mode-line down-mouse-3] gemini-companion-menu-map)
    (define-key map [mode-line mouse-3] #'ignore)
    map)
  "What the mouse does on the text in the mode line.")

(defun gemini-companion-lighter ()
  "Return the construct for the mode line."
  `(:propertize ,(gemini-companion-lighter-text)
                mouse-face mode-line-highlight
                help-echo gemini-companion-lighter--help
                local-map ,gemini-companion-lighter--map))

(defun gemini-companion-lighter-text ()
  "Return the text for the mode line.
The number of connected CLIs, a ! if auto-accept is on for one,
after a ? the number of proposals that await an answer, and
whether what the person works on is not told."
  (let ((diffs (length (gemini-companion-diffs)))
        (sessions (length (gemini-companion-sessions))))
    (concat " Gemini"
            (cond ((gemini-companion-install-running-p) " installing")
                  ((not (gemini-companion-server-ready-p)) "...")
                  ((< 0 sessions) (format ":%d" sessions)))
            (if (gemini-companion-auto-on-p) "!" "")
            (if (zerop diffs) "" (format "?%d" diffs))
            (cond (gemini-companion-paused " paused")
                  ((gemini-companion-sharing-kept-p (current-buffer)) " hidden")
                  (t "")))))

(defun gemini-companion-lighter--help (&rest _)
  "Return the help for the mouse over the text."
  (string-join
   (delq nil
         (list (gemini-companion-lighter--connection)
               (let ((diffs (length (gemini-companion-diffs))))
                 (unless (zerop diffs)
                   (format "%d edits await your answer" diffs)))
               (when (gemini-companion-auto-on-p)
                 "Auto-accept is on for one")
               (gemini-companion-lighter--shared)
               "mouse-1: menu, mouse-2: status"))
   "\n"))

(defun gemini-companion-lighter--shared ()
  "Return what the connected CLIs are told, as a line, or nil."
  (when (gemini-companion-sessions)
    (let* ((files (gemini-companion-shared))
           (active (gemini-companion-sharing-active))
           (others (length (remq active files)))
           (selected (length (plist-get active :selected-text))))
      (concat "Shared: "
              (cond (active
                     (file-name-nondirectory (plist-get active :path)))
                    (gemini-companion-paused "nothing, as you paused it")
                    (files "no active file")
                    (t "nothing"))
              (if (zerop selected)
                  ""
                (format ", %d characters selected" selected))
              (cond ((zerop others) "")
                    ((= 1 others) ", one open file")
                    (t (format ", %d open files" others)))))))

(defun gemini-companion-lighter--connection ()
  "Return which CLIs are connected, as a line."
  (cond ((gemini-companion-install-running-p)
         "The Python packages of the server are being installed")
        ((not (gemini-companion-server-ready-p)) "The server is starting")
        ((gemini-companion-sessions)
         (concat "Connected: "
                 (mapconcat #'gemini-companion-session-name
                            (gemini-companion-sessions) ", ")))
        (t "No Gemini CLI is connected")))

(provide 'gemini-companion-lighter)
;;; gemini-companion-lighter.el ends here
