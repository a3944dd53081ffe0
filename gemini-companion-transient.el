;;; gemini-companion-transient.el --- The commands as a transient  -*- lexical-binding: t; -*-

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

;; The commands of gemini-companion-menu.el once more, as a transient.  Apart
;; from there so that Emacs loads the package transient only when it is used.

;;; Code:

(require 'gemini-companion-menu)
(require 'transient)

(defmacro gemini-companion-transient--define (name documentation)
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

;;;###autoload (autoload 'gemini-companion-menu "gemini-companion-transient" nil t)
(gemini-companion-transient--define gemini-companion-menu
  "Give a command of gemini-companion.")

(provide 'gemini-companion-transient)
;;; gemini-companion-transient.el ends here
