;;; gemini-companion-part.el --- What a part of the package does  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The mode consists of parts, each in a file of its own.  The file of a part has
;; methods of these generic functions for what the part needs: its functions on
;; hooks, its start, a server that is ready, its element of the mode line, its
;; problems for the status, and its stop.
;;
;; An add-on is a group of parts without which the core works.  What the core has to
;; know before those are loaded, its rows in the table of commands and its
;; autoloads, is in a small part of its own, gemini-companion-addon-NAME.

;;; Code:

(require 'cl-lib)
(require 'seq)

;;;; State

(defvar gemini-companion-part-addons '(prompts remote tools)
  "The add-ons, symbols; the file of one that is not installed is missing.")

(defvar gemini-companion-part-list
  '(install extension state session roots watch revert edit proposal notify auto
    arrival changes marks context review cli resume walk decision comment overview
    status)
  "The parts of the core in starting order; they stop in reverse order.
The file of each has the methods of `gemini-companion-part-start',
`-hooks', `-ready', `-lighter', `-findings' and `-stop' that it needs.
`gemini-companion-parts' returns those of add-ons, too.")

(defconst gemini-companion-part-used-later '(walk decision comment overview status)
  "The parts of the core whose files are loaded when they are used.
The files of the others are loaded as the mode is turned on.  The file of a
part that has to start calls `gemini-companion-part-loaded' at its end.")

;;;; Files

(defun gemini-companion-part-feature (part)
  "Return the feature of PART, a symbol such as `edit'."
  (intern (format "gemini-companion-%s" part)))

(defun gemini-companion-part-addon-parts ()
  "Return the parts with what the core has to know of the add-ons."
  (mapcar (lambda (addon) (intern (format "addon-%s" addon)))
          gemini-companion-part-addons))

(defun gemini-companion-part--members ()
  "Return the parts of all add-ons, see `gemini-companion-part-members'."
  (seq-mapcat #'gemini-companion-part-members (gemini-companion-part-addon-parts)))

(defun gemini-companion-parts ()
  "Return the parts of the core and of the add-ons, in starting order."
  (let ((parts (copy-sequence gemini-companion-part-list)))
    (pcase-dolist (`(,member ,after) (gemini-companion-part--members))
      (push member (cdr (memq after parts))))
    parts))

(defun gemini-companion-parts-used-later ()
  "Return the parts whose files are loaded when they are used."
  (append gemini-companion-part-used-later
          (mapcar #'car (gemini-companion-part--members))))

(defun gemini-companion-part--starts-p (part)
  "Return non-nil if the file of PART is to be loaded as the mode is turned on."
  (pcase (assq part (gemini-companion-part--members))
    (`(,_ ,_ . ,rest) (and rest (funcall (car rest))))
    (_ (not (memq part gemini-companion-part-used-later)))))

(defun gemini-companion-parts-to-start ()
  "Return the parts whose files are loaded as the mode is turned on.
That is in starting order.  Parts of add-ons say so by
`gemini-companion-part-members'."
  (seq-filter #'gemini-companion-part--starts-p (gemini-companion-parts)))

(defun gemini-companion-parts-loaded ()
  "Return the parts whose files are loaded, in starting order.
The parts with what the core has to know of add-ons come last."
  (seq-filter (lambda (part) (featurep (gemini-companion-part-feature part)))
              (append (gemini-companion-parts)
                      (gemini-companion-part-addon-parts))))

(defun gemini-companion-part-load (part)
  "Load the file of PART, and return non-nil if it is there."
  (require (gemini-companion-part-feature part) nil 'noerror))

(defun gemini-companion-part-use (part what)
  "Load PART, of an add-on, for WHAT, the subject of a sentence.
Signal a `user-error' if it is not installed."
  (unless (gemini-companion-part-load part)
    (user-error "%s needs the file gemini-companion-%s.el, which is not \
installed" what part)))

;;;; Autoloads

(defun gemini-companion-part-autoload (part &rest commands)
  "Autoload COMMANDS, symbols, from the file of PART.
That is for commands of a keymap or a menu, which are of no use by
\\[execute-extended-command]; the others are in the list of gemini-companion.el."
  (dolist (command commands)
    (unless (fboundp command)
      (autoload command (symbol-name (gemini-companion-part-feature part)) nil t))))

;; A CLI that is started turns on the mode.
(unless (fboundp 'gemini-companion-mode)
  (autoload 'gemini-companion-mode "gemini-companion" nil t))

;;;; Generic functions

(cl-defgeneric gemini-companion-part-hooks (_part)
  "Return the functions of PART that are on hooks while the mode is on.
The value is a list of (HOOK FUNCTION DEPTH), for `add-hook'."
  nil)

(cl-defgeneric gemini-companion-part-start (_part)
  "Start PART, a symbol, as the mode is turned on.
PART may have started before."
  nil)

(cl-defmethod gemini-companion-part-start :before (part)
  "Put the functions of PART on their hooks."
  (pcase-dolist (`(,hook ,function ,depth) (gemini-companion-part-hooks part))
    (add-hook hook function depth)))

(defun gemini-companion-part-loaded (part)
  "Start PART, whose file has been loaded, if the mode is on.
Many ways lead to a file that is loaded by use, so it calls this itself."
  (when (bound-and-true-p gemini-companion-mode)
    (gemini-companion-part-start part)))

(cl-defgeneric gemini-companion-part-ready (_part _how)
  "Tell PART that the server can be called.
HOW is `started'; `restarted' on request; `resumed' after a crash that no
CLI has noticed; or else `recovered'."
  nil)

(cl-defgeneric gemini-companion-part-lighter (_part)
  "Return the element of PART for the mode line, a cons, or nil.
It has a text, which comes first if it ends in a space, and a line of
the tooltip or a function that returns that line."
  nil)

(cl-defgeneric gemini-companion-part-findings (_part _directory)
  "Return what is to be known of PART for a CLI in DIRECTORY.
The value is an alist of (TITLE . FINDING), in any order; for findings,
see `gemini-companion-status-checks'.  For example:
  ((\"Project\" good \"A CLI may connect from ~/src/p\"))
The status calls this for each part that is loaded, and puts its findings
in the order of `gemini-companion-status-titles'."
  nil)

(cl-defgeneric gemini-companion-part-commands (_part)
  "Return the rows of PART in the table of commands.
The value is a list of (GROUP KEY ROW): ROW comes into the GROUP, a title
or nil, after the row of KEY, or first if KEY is nil.  For ROW, see
`gemini-companion-commands'.  For example:
  ((\"CLI\" \"G\" (\"s\" my-send \"Send what is at point\" (global))))"
  nil)

(cl-defgeneric gemini-companion-part-files (_part)
  "Return the files of the add-on whose part for the core is PART.
The value is a list of symbols without the prefix, such as `compose'.  The
core works, without the commands of the add-on, if they are removed."
  nil)

(cl-defgeneric gemini-companion-part-members (_part)
  "Return the parts of the add-on whose part for the core is PART.
The value is a list of (MEMBER AFTER WANTED-P), where MEMBER starts after the
part AFTER, of the core or a MEMBER before.  Its file is loaded when it is
used; as the mode is turned on, it is loaded if the function WANTED-P returns
non-nil.  For example:
  ((clock status) (alarm clock my-alarm-set-p))"
  nil)

(cl-defgeneric gemini-companion-part-stop (_part)
  "Stop PART, as the mode is turned off."
  nil)

(cl-defmethod gemini-companion-part-stop :before (part)
  "Remove the functions of PART from their hooks."
  (pcase-dolist (`(,hook ,function) (gemini-companion-part-hooks part))
    (remove-hook hook function)))

(provide 'gemini-companion-part)
;;; gemini-companion-part.el ends here
