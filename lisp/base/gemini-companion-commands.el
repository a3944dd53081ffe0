;;; gemini-companion-commands.el --- The table of commands  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The table of all commands, with their keys, labels and contexts.  Keymaps, header
;; lines, menus and transients are built from this table.

;;; Code:

(require 'gemini-companion-log)
(require 'gemini-companion-part)

;;;; The table

;; Defined before the table, which loads add-ons with methods of it.
(cl-defgeneric gemini-companion-commands-value (_name)
  "Return the state NAME, a symbol of the table of commands, for menus.
The file that owns the state has a method.  Emacs calls it each time it
displays a menu, so it must be fast and have no side effects.  A user error
means nil.  Without a method, as before the file is loaded, return nil."
  nil)

(defconst gemini-companion-commands--core
  '(("CLI"
     ("P" gemini-companion-pause "Pause sharing" (global) :on paused))
    ("Reviews"
     ("r" gemini-companion-review "Next review or question" (global)
      :enable connected)
     ("a" gemini-companion-auto-accept "Auto-accept" (global)
      :enable connected :on auto-accept))
    ("Changes in files"
     ("M" gemini-companion-merge "Merge with the file" (global)))
    ;; Their rows are of add-ons.
    ("Changes") ("Waiting") ("Go to") ("Show")
    ("Connection"
     ("R" gemini-companion-restart "Restart the server" (global) :enable mode)
     ("e" gemini-companion-events-buffer "Show the event log" (global))
     ("i" gemini-companion-install-server "Install packages" (global))
     ("m" gemini-companion-mode "Companion mode" (global) :on mode)
     ("," gemini-companion-customize "Set options" (global)))
    ("Answer"
     ("C-c C-c" gemini-companion-edit-accept "Accept" (review)
      :enable to-answer :first t :header "accept")
     ("C-c C-k" gemini-companion-edit-reject "Reject" (review)
      :enable to-answer :first t :header "reject")
     ("q" gemini-companion-review-quit "Quit (asks first)" (view)
      :enable to-answer))
    ("Edit"
     ("C-c C-n" gemini-companion-review-next-hunk "Next hunk" (review)
      :enable review :stay t :header "next")
     ("C-c C-p" gemini-companion-review-previous-hunk "Previous hunk" (review)
      :enable review :stay t)
     ("x" gemini-companion-review-toggle-hunk "Exclude this hunk" (view)
      :enable hunk
      :on excluded :stay t :header "exclude")
     ("e" gemini-companion-review-edit "Edit the proposal" (view)
      :enable review :header "edit"))
    ("Display")
    (nil
     ("a" gemini-companion-ediff-exclude nil (panel))
     ("rb" gemini-companion-ediff-restore nil (panel))
     ("!" gemini-companion-ediff-compare-again nil (panel))
     ("C-c C-x" gemini-companion-review-toggle-hunk nil (review))
     ("C-c C-e" gemini-companion-review-edit nil (review))))
  "The commands of the core, as in `gemini-companion-commands'.")

(defun gemini-companion-commands--insert (group previous rows)
  "Insert ROWS into GROUP, (TITLE ROW...), after the last row of the key PREVIOUS.
They come first if PREVIOUS is nil, and last if no row has that key."
  (let ((place (if previous (last group) group)))
    (cl-loop for cells on (cdr group)
             when (and previous (equal previous (caar cells)))
             do (setq place cells))
    (setcdr place (append rows (cdr place)))))

(defun gemini-companion-commands--all ()
  "Return the commands of the core and of the add-ons that are installed."
  (let ((groups (mapcar #'copy-sequence gemini-companion-commands--core)))
    (dolist (part (gemini-companion-part-addon-parts) groups)
      (when (gemini-companion-part-load part)
        (pcase-dolist (`(,title ,previous . ,rows)
                       (gemini-companion-part-commands part))
          ;; A new group comes last.
          (unless (assoc title groups)
            (setq groups (append groups (list (list title)))))
          (gemini-companion-commands--insert (assoc title groups) previous rows))))))

(defconst gemini-companion-commands (gemini-companion-commands--all)
  "Commands by group, a list of (TITLE ROW...).
A row is a list (KEY COMMAND LABEL CONTEXTS . PLIST).  A group whose TITLE
is nil is in no menu.  CONTEXTS is a list of symbols, where the key applies:

`global'      the keymap of all commands
`review'      all buffers of a review
`view'        buffers of a review in which no text is typed
`panel'       the control panel of Ediff, a `view'
`overview'    the buffer of what waits and what was written
`change'      the next key after a command that goes to a change
`permission'  the question of a CLI before it runs a tool
`plan'        the plan of a CLI
`inquiry'     a question of the model
`rename'      a rename that the model asks for

In PLIST, `:header' is the word beside the key in a header line, and `:words'
an alist from what is at point in the overview to that word; rows with `:first'
come first.  The transient stays after commands with `:stay'.
`:enable' and `:on' are names for `gemini-companion-commands-value': the
command is disabled while the value of `:enable' is nil, and it toggles the
value of `:on'.")

(defun gemini-companion-commands--rows (rows contexts)
  "Return those of ROWS that apply in CONTEXTS."
  ;; Header lines ask for it after each key.
  (cl-loop for row in rows
           when (cl-loop for context in contexts
                         thereis (memq context (nth 3 row)))
           collect row))

(defun gemini-companion-commands-menu (&rest contexts)
  "Return the groups of `gemini-companion-commands' for a menu in CONTEXTS."
  (cl-loop for (title . rows) in gemini-companion-commands
           for in-context = (gemini-companion-commands--rows rows contexts)
           when (and title in-context) collect (cons title in-context)))

(defun gemini-companion-commands-in (&rest contexts)
  "Return the rows of `gemini-companion-commands' that apply in CONTEXTS."
  (cl-loop for (_ . rows) in gemini-companion-commands
           nconc (gemini-companion-commands--rows rows contexts)))

(defun gemini-companion-commands--events (key)
  "Return the events of KEY, as `kbd' does.
The keys of the start are one character.  In Emacs 28, `kbd' would load
libraries for them, which takes longer than all else."
  (pcase (append key nil)
    (`(,char) (vector char))
    (`(?M ?- ,char) (vector (logior char ?\M-\0)))
    (_ (kbd key))))

(defun gemini-companion-commands-bind (map context &optional binding)
  "Bind the keys of CONTEXT in MAP to their commands, and return MAP.
A command with a label is bound as (LABEL . COMMAND), so that which-key
displays the label.  BINDING is nil, or a function that returns the binding
for a command."
  (pcase-dolist (`(,key ,command ,label . ,_)
                 (gemini-companion-commands-in context) map)
    (define-key map (gemini-companion-commands--events key)
      (cond (binding (funcall binding command))
            (label (cons label command))
            (t command)))))

(defun gemini-companion-commands-special-map (context)
  "Return a new keymap with the keys of CONTEXT, and those of `special-mode'."
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map special-mode-map)
    (gemini-companion-commands-bind map context)))

(defun gemini-companion-commands-state (name)
  "Return the state NAME in the current buffer, or nil after a user error.
See `gemini-companion-commands-value'."
  (ignore-error user-error (gemini-companion-commands-value name)))

(defun gemini-companion-commands-hint (command text)
  "Return TEXT, a format, with the key of COMMAND, or nil if there is no COMMAND.
The core says so where a wing above it, which may be missing, has COMMAND."
  (and (fboundp command)
       (format text (substitute-command-keys (format "\\[%s]" command)))))

(declare-function evil-initial-state "ext:evil-core")
(declare-function evil-set-initial-state "ext:evil-core")

(defun gemini-companion-commands-letters-are-keys (mode)
  "Make Evil start MODE, a major mode, in a state where letters are commands.
An initial state that the user has set for MODE takes precedence."
  (when (and (fboundp 'evil-initial-state)
             (not (evil-initial-state mode)))
    (evil-set-initial-state mode 'emacs)))

;;;; Mouse

(defun gemini-companion-commands-go-to-click (click)
  "Select the window of CLICK, an event, and move point to its position."
  (let ((position (event-start click)))
    (select-window (posn-window position))
    (goto-char (posn-point position))))

(defun gemini-companion-commands-add-items (menu click items)
  "Add ITEMS to MENU, the context menu at CLICK, in their order.
ITEMS is a list of (LABEL . COMMAND).  A command is called with point at the
position of CLICK and without a region, unless something else is there since the
menu was opened."
  (let ((there (gemini-companion-commands--at click)))
    ;; `define-key' puts each item before the others.
    (pcase-dolist (`(,label . ,command) (reverse items))
      (define-key menu (vector command)
                  `(menu-item ,label
                              ,(lambda ()
                                 (interactive)
                                 (unless (equal there
                                                (gemini-companion-commands--at click))
                                   (user-error
                                    "Text has changed since the menu was opened; open it again"))
                                 (gemini-companion-commands-go-to-click click)
                                 ;; Otherwise the region would now end at the click.
                                 (deactivate-mark)
                                 (call-interactively command)))))))

(defun gemini-companion-commands--at (click)
  "Return a value that differs once CLICK, an event, is on another text."
  (let ((window (posn-window (event-start click))))
    (when (window-live-p window)
      (list (window-buffer window)
            (buffer-chars-modified-tick (window-buffer window))))))

;;;; The keymap

(defvar gemini-companion-command-map
  (gemini-companion-commands-bind (make-sparse-keymap) 'global)
  "Keymap of the commands, for a prefix key of your choice.
For example:
  (global-set-key (kbd \"C-c g\") \\='gemini-companion-command-map)")

(fset 'gemini-companion-command-map gemini-companion-command-map)

(provide 'gemini-companion-commands)
;;; gemini-companion-commands.el ends here
