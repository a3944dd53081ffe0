;;; gemini-companion-addon-remote.el --- The add-on for remote hosts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Declare the add-on to the core before its files are loaded: its component.  The
;; add-on connects CLIs on other hosts.

;;; Code:

(require 'gemini-companion-part)

;;;; Declarations

(defun gemini-companion-addon-remote--used-p ()
  "Return non-nil if a host was connected before, in this Emacs or another."
  (bound-and-true-p gemini-companion-remote-directories))

(cl-defmethod gemini-companion-part-members ((_part (eql 'addon-remote)))
  "Return the component of the add-on, which must start for known hosts."
  '((remote install gemini-companion-addon-remote--used-p)))

(provide 'gemini-companion-addon-remote)
;;; gemini-companion-addon-remote.el ends here
