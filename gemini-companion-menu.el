;;; gemini-companion-menu.el --- The commands as a transient  -*- lexical-binding: t; -*-

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

;; The commands of gemini-companion.el as a transient.  A file of its own so that
;; Emacs loads the package transient only when it is used.

;;; Code:

(require 'gemini-companion)
(require 'transient)

(defmacro gemini-companion-menu--define (name documentation)
  "Define NAME with DOCUMENTATION, a transient of all commands."
  `(transient-define-prefix ,name ()
     ,documentation
     ,(vconcat
       (mapcar (pcase-lambda (`(,title . ,commands))
                 (vconcat (list title)
                          (mapcar (pcase-lambda (`(,key ,command ,label))
                                    (list key label command))
                                  commands)))
               gemini-companion-menu-commands))))

;;;###autoload (autoload 'gemini-companion-menu "gemini-companion-menu" nil t)
(gemini-companion-menu--define gemini-companion-menu
  "Give a command of gemini-companion.")

(provide 'gemini-companion-menu)
;;; gemini-companion-menu.el ends here
