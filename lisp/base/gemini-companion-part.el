;;; gemini-companion-part.el --- What a part of the package does  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The mode consists of components, called parts in the code.  Each has its own file.
;; The file defines methods that set up hooks, start and stop the component, act when
;; the server is ready, and add to the mode line and the status.
;;
;; An add-on is a group of components without which the core works.  The commands and
;; the autoloads of an add-on are needed before its files are loaded, so a small
;; component of the core, gemini-companion-addon-NAME, declares them.

;;; Code:

(require 'cl-lib)
(require 'seq)

;;;; State

(defvar gemini-companion-part--addons
  '((terminal) (changes terminal) (pages changes)
    (check pages) (prompts pages) (remote pages) (tools pages))
  "The add-ons, a list of (NAME NEEDED); both are symbols.
An add-on uses the core, the add-on NEEDED, if any, and what that one uses.
The files of an add-on that is not installed are missing.")

(defvar gemini-companion-part--list
  '(install session roots watch revert edit proposal auto arrival context review exit)
  "The components of the core in starting order; they stop in reverse order.
The file of a component has the methods that it needs of
`gemini-companion-part-start', `-hooks', `-ready', `-lighter', `-findings' and
`-stop'.  `gemini-companion-parts' includes the components of add-ons.")

;;;; Files

(defun gemini-companion-part-feature (part)
  "Return the feature of PART, a component such as `edit'."
  (intern (format "gemini-companion-%s" part)))

(defun gemini-companion-part-addon-parts (&optional addons)
  "Return the components that represent the add-ons in the core.
If ADDONS, a list of names, is non-nil, return only those of ADDONS and of the
add-ons that need one of them."
  (cl-loop with names = addons
           for (name needed) in gemini-companion-part--addons
           when (memq needed names) do (push name names)
           when (or (null addons) (memq name names))
           collect (intern (format "addon-%s" name))))

(defun gemini-companion-part--members ()
  "Return the components of all add-ons; see `gemini-companion-part-members'."
  (seq-mapcat #'gemini-companion-part-members (gemini-companion-part-addon-parts)))

(defun gemini-companion-parts ()
  "Return the components of the core and of the add-ons, in starting order."
  (let ((parts (copy-sequence gemini-companion-part--list)))
    (pcase-dolist (`(,member ,after) (gemini-companion-part--members))
      (push member (cdr (memq after parts))))
    parts))

(defun gemini-companion-parts-to-start ()
  "Return the components whose files are loaded when the mode is turned on.
They are in starting order.  For components of add-ons,
`gemini-companion-part-members' decides."
  (let ((members (gemini-companion-part--members)))
    (seq-filter (lambda (part)
                  (pcase (assq part members)
                    (`(,_ ,_ . ,wanted) (and wanted (funcall (car wanted))))
                    (_ t)))
                (gemini-companion-parts))))

(defun gemini-companion-parts-loaded ()
  "Return the components whose files are loaded, in starting order.
The components that represent add-ons come last."
  (seq-filter (lambda (part) (featurep (gemini-companion-part-feature part)))
              (append (gemini-companion-parts)
                      (gemini-companion-part-addon-parts))))

(defun gemini-companion-part-load (part)
  "Load the file of PART; return nil if it is not installed."
  (require (gemini-companion-part-feature part) nil 'noerror))

;;;; Autoloads

(defun gemini-companion-part-autoload (part &rest commands)
  "Autoload COMMANDS, symbols, from the file of PART.
Use this for commands that are only useful in a keymap or a menu.  Commands
for \\[execute-extended-command] are in the list of gemini-companion.el."
  (dolist (command commands)
    (unless (fboundp command)
      (autoload command (symbol-name (gemini-companion-part-feature part)) nil t))))

;; Starting a CLI turns on the mode.
(unless (fboundp 'gemini-companion-mode)
  (autoload 'gemini-companion-mode "gemini-companion" nil t))

;;;; Generic functions

(cl-defgeneric gemini-companion-part-hooks (_part)
  "Return the functions of PART that are on hooks while the mode is on.
The value is a list of (HOOK FUNCTION DEPTH), arguments of `add-hook'."
  nil)

(cl-defgeneric gemini-companion-part-start (_part)
  "Start PART, a component, when the mode is turned on.
PART may already have started."
  nil)

(cl-defmethod gemini-companion-part-start :before (part)
  "Put the functions of PART on their hooks."
  (pcase-dolist (`(,hook ,function ,depth) (gemini-companion-part-hooks part))
    (add-hook hook function depth)))

(defun gemini-companion-part-loaded (part)
  "Start PART if the mode is on.
The file of a component that is loaded on first use calls this at its end,
since several autoloads may load it."
  (when (bound-and-true-p gemini-companion-mode)
    (gemini-companion-part-start part)))

(cl-defgeneric gemini-companion-part-ready (_part _how)
  "Notify PART that the server can be called.
HOW is `started'; `restarted', on request; `resumed', after a crash during
which all CLIs stayed connected; or `recovered', after another crash."
  nil)

(cl-defgeneric gemini-companion-part-lighter (_part)
  "Return the element of PART for the mode line, or nil.
It is computed again after `gemini-companion-part-update-lighter'.
The value is (TEXT . TOOLTIP): a text, which comes first if it ends in a
space, and a line of the tooltip, or a function that returns that line."
  nil)

(defvar gemini-companion-part-lighter-version 0
  "A number that is greater whenever an element of the mode line may differ.")

(defvar gemini-companion-part-lighter-buffer nil
  "The buffer in which the mode line has an element that others do not have.")

(defun gemini-companion-part-update-lighter ()
  "Compute the elements of the mode line again, as one of them may differ."
  (setq gemini-companion-part-lighter-version
        (1+ gemini-companion-part-lighter-version))
  (force-mode-line-update t))

(cl-defgeneric gemini-companion-part-unfinished (_part)
  "Return what the exit of Emacs would end or lose for PART, a list of strings.
For example: (\"Gemini CLI is working\")"
  nil)

(cl-defgeneric gemini-companion-part-saved (_part)
  "Return the state of PART to save for the next Emacs, a list of items.
An item is a cons of the name of the file that it is about and of a value that
can be printed.  It is not saved if that file is not shared."
  nil)

(cl-defgeneric gemini-companion-part-restore (_part _items)
  "Restore ITEMS of PART, some that `gemini-companion-part-saved' has returned."
  nil)

(cl-defgeneric gemini-companion-part-findings (_part _directory)
  "Return the findings about PART in the status, for a CLI in DIRECTORY.
The value is an alist of (TITLE . FINDING), in any order; for findings,
see `gemini-companion-status-checks'.  For example:
  ((\"Project\" good \"A CLI may connect from ~/src/p\"))
The status calls this for each component that is loaded, and sorts all
findings by `gemini-companion-status-titles'."
  nil)

(cl-defgeneric gemini-companion-part-commands (_part)
  "Return the rows of PART for the table of commands.
The value is a list of (GROUP KEY ROW...): the ROWs are inserted in GROUP, a
title or nil, after the row of KEY, or first if KEY is nil.  For a ROW, see
`gemini-companion-commands'.  For example:
  ((\"CLI\" \"G\" (\"s\" my-send \"Send what is at point\" (global))))"
  nil)

(cl-defgeneric gemini-companion-part-members (_part)
  "Return the components of the add-on that PART represents in the core.
The value is a list of (MEMBER AFTER WANTED-P): MEMBER is a component, which
starts after the component AFTER, of the core or an earlier MEMBER.  Its file
is loaded on first use; or when the mode is turned on, if the function
WANTED-P, which may be missing, returns non-nil.  A file that is loaded on first
use, and whose component must start, calls `gemini-companion-part-loaded' at its
end.  For example:
  ((clock status) (alarm clock my-alarm-set-p))"
  nil)

(cl-defgeneric gemini-companion-part-stop (_part)
  "Stop PART, a component, when the mode is turned off."
  nil)

(cl-defmethod gemini-companion-part-stop :before (part)
  "Remove the functions of PART from their hooks."
  (pcase-dolist (`(,hook ,function) (gemini-companion-part-hooks part))
    (remove-hook hook function)))

(provide 'gemini-companion-part)
;;; gemini-companion-part.el ends here
