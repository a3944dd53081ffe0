;;; gemini-companion.el --- Emacs companion of Gemini CLI, Qwen Code, Copilot CLI and Pi  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; URL: https://github.com/gemini-companion/gemini-companion
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1") (epc "0.1.1"))
;; Keywords: tools, convenience, processes
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Run `gemini', `qwen', `copilot' or `pi' in a terminal, inside Emacs or outside, and
;; it knows what you have selected, and mostly also which files are open and where
;; point is.  Each edit that it proposes opens as a review in Emacs: accept it,
;; with changes of your own if you like, or reject it, and the CLI continues with
;; your answer.
;;
;; Type M-x gemini-companion-mode, then M-x gemini-companion-run in a project.
;; The manual is in Info, at (gemini-companion).

;; What runs when:
;;
;; - Loading or updating the package runs no program, and uses no network.
;; - When M-x gemini-companion-mode is used for the first time, it asks whether to
;;   install Python packages.  Then pip or uv fetches them, each with its version and
;;   hash, from your package index into ~/.emacs.d/gemini-companion/.
;; - The mode starts one process, the server.  It listens on 127.0.0.1 only, and for
;;   Copilot CLI on a socket that only you can use.  It writes discovery files, which
;;   have a token: in gemini/ide/ of the temporary directory, and in ide/ of ~/.qwen/,
;;   ~/.copilot/ and ~/.pi/agent/.  They are deleted when the mode is turned off or
;;   Emacs exits.
;; - What you have not reviewed is saved for the next Emacs: texts of files, in
;;   ~/.emacs.d/gemini-companion/changes/, which only you can read.  While a file is
;;   written in place, its text before is in backups/ there.
;; - The programs diff and diff3 compare texts.  Other programs are run only after one
;;   of the following commands.
;; - M-x gemini-companion-run starts a CLI.
;; - V in the overview runs a command of your project, after a question.
;; - M-x gemini-companion-tools links the CLIs, after a question.  They then start
;;   Python for each edit and question.  The same command deletes the links.
;; - Pi cannot connect without an extension.  M-x gemini-companion-run offers to copy it
;;   into ~/.pi/agent/extensions/; to link Pi copies it as well, and to unlink deletes it.
;; - Remote hosts are connected only by a command, with the programs of TRAMP.
;; - M-x gemini-companion-status asks the Node.js of a CLI for its version.
;; - After an update, M-x gemini-companion-restart starts the new server.  If the update
;;   needs other Python packages, this command and the mode install them without
;;   another question.
;;
;; This file has the mode, its menu, keys and mode line, and starts and stops
;; the components.  It starts the server first, and loads the larger parts
;; while the server starts.

;;; Code:

;; The other files are in the directories of lisp/.  A package of an archive has them
;; all beside this one.
(eval-and-compile
;;;###autoload
  (let* ((file (or load-file-name (bound-and-true-p byte-compile-current-file)
                   buffer-file-name))
         (lisp (and file (expand-file-name "lisp" (file-name-directory file)))))
    (when (and lisp (file-directory-p lisp))
      (dolist (directory (directory-files lisp t "\\`[a-z]"))
        (add-to-list 'load-path directory)))))

(require 'easymenu)
(require 'gemini-companion-commands)
(require 'gemini-companion-install)
(require 'gemini-companion-log)
(require 'gemini-companion-part)
(require 'gemini-companion-server)
(require 'gemini-companion-text)

(declare-function feature-file "loadhist")
;; Loaded with the parts, while the server starts.
(autoload 'gemini-companion-proposal-drop-p "gemini-companion-proposal")
(autoload 'gemini-companion-proposal-decide-all "gemini-companion-proposal")
(autoload 'gemini-companion-session-reconnect "gemini-companion-session")
(autoload 'gemini-companion-context-share-roots "gemini-companion-context")
(defvar gemini-companion-review-view)

;; The autoloads of all commands are here, as package-vc reads no other file for them.
;;;###autoload
(let* ((directory (file-name-directory (or load-file-name buffer-file-name
                                           default-directory)))
       (there-p (lambda (wing addon)
                  (or (file-directory-p (expand-file-name (concat "lisp/" wing)
                                                          directory))
                      (file-exists-p
                       (expand-file-name (format "gemini-companion-%s.el" addon)
                                         directory))))))
  (autoload 'gemini-companion-auto-accept "gemini-companion-auto"
    "Turn auto-accept for the CLI of SESSION on or off." t)
  (autoload 'gemini-companion-pause "gemini-companion-context"
    "Pause sharing, or resume it." t)
  (autoload 'gemini-companion-events-buffer "gemini-companion-log"
    "Display the last events between Emacs and the server." t)
  (autoload 'gemini-companion-merge "gemini-companion-revert"
    "Merge your unsaved text with what a CLI has written to the file." t)
  (autoload 'gemini-companion-review "gemini-companion-review"
    "Go to the next review or question." t)
  (autoload 'gemini-companion-command-map "gemini-companion-commands" nil t 'keymap)
  (when (funcall there-p "terminal" "addon-terminal")
    (autoload 'gemini-companion-run "gemini-companion-cli"
      "Switch to the CLI of this project, or start it in a terminal." t)
    (autoload 'gemini-companion-visit-location "gemini-companion-location"
      "Go to the file and line at point in this terminal." t)
    (autoload 'gemini-companion-visit-location-at-click "gemini-companion-location"
      "Go to the file and line at CLICK, an event in a terminal." t)
    (autoload 'gemini-companion-run-again "gemini-companion-resume"
      "Restart the CLIs in terminals of this Emacs; ask about each of them." t)
    (autoload 'gemini-companion-resume "gemini-companion-resume"
      "Start the CLI of this project with its own list of conversations." t))
  (when (funcall there-p "changes" "addon-changes")
    (autoload 'gemini-companion-comment "gemini-companion-comment"
      "Comment on the line at point, or on the lines of the region." t)
    (autoload 'gemini-companion-remove-comments "gemini-companion-comment"
      "Remove the comments on files that were sent." t)
    (autoload 'gemini-companion-patch "gemini-companion-patch"
      "Show a unified diff in `diff-mode', with names relative to the root." t)
    (autoload 'gemini-companion-commit-message "gemini-companion-commit"
      "Insert a draft of the commit message at point: what you have asked CLIs for." t)
    (autoload 'gemini-companion-why "gemini-companion-why"
      "Show which CLI wrote the line at point, when, and for which prompt." t)
    (autoload 'gemini-companion-forget "gemini-companion-saved"
      "Delete what is saved of this project for the next Emacs." t)
    ;; An undo list that was read from a file may call it.
    (autoload 'gemini-companion-step-turn "gemini-companion-step"
      "Record that Emacs has taken back a step, or has redone it.")
    (autoload 'gemini-companion-next-change "gemini-companion-walk"
      "Go to the next unreviewed change of a CLI." t)
    (autoload 'gemini-companion-previous-change "gemini-companion-walk"
      "Go to the previous unreviewed change of a CLI." t)
    (autoload 'gemini-companion-show-change "gemini-companion-walk"
      "Show the previous text of the change at point above it, or hide it." t)
    (autoload 'gemini-companion-undo-change "gemini-companion-walk"
      "Undo the change at point in the file, and go to the next one." t)
    (autoload 'gemini-companion-undo-changes "gemini-companion-walk"
      "Undo all changes of this file, and go to the next file." t)
    (autoload 'gemini-companion-keep-change "gemini-companion-walk"
      "Keep the change at point, and go to the next one." t)
    (autoload 'gemini-companion-keep-changes "gemini-companion-walk"
      "Keep all changes of this file, and go to the next file." t))
  (when (funcall there-p "pages" "addon-pages")
    (autoload 'gemini-companion-list "gemini-companion-overview"
      "Go to what waits for an answer in the overview of all CLIs." t)
    (autoload 'gemini-companion-menu "gemini-companion-menu"
      "Display the commands of gemini-companion in a menu." t)
    (autoload 'gemini-companion-overview-menu "gemini-companion-menu"
      "Display the commands of the overview in a menu." t)
    (autoload 'gemini-companion-status "gemini-companion-status"
      "Show the state of the connections to the CLIs, and problems." t)
    (autoload 'gemini-companion-turn-page "gemini-companion-overview"
      "Go to the change at point, or the first one left, in the overview of all CLIs." t))
  (when (funcall there-p "addon-check" "addon-check")
    (autoload 'gemini-companion-references "gemini-companion-references"
      "Show the references to the symbols of the change at point." t))
  (when (funcall there-p "addon-prompts" "addon-prompts")
    (autoload 'gemini-companion-show-undone "gemini-companion-undone"
      "Display what your next prompt to each CLI reports as undone." t)
    (autoload 'gemini-companion-send-comments "gemini-companion-comment-send"
      "Send your comments on files to a CLI, all as one prompt." t)
    (autoload 'gemini-companion-compose "gemini-companion-compose"
      "Compose the next prompt of a CLI in a buffer, below its terminal." t)
    (autoload 'gemini-companion-compose-withdraw "gemini-companion-compose"
      "Withdraw the newest prompt that is queued for a CLI." t)
    (autoload 'gemini-companion-edit-reject-with-reason "gemini-companion-prompt"
      "Reject EDIT with REASON, which is by default read in the minibuffer." t)
    (autoload 'gemini-companion-send "gemini-companion-send"
      "Insert what is at point into the prompt of a CLI, and go there." t))
  (when (funcall there-p "addon-remote" "addon-remote")
    (autoload 'gemini-companion-connect "gemini-companion-remote"
      "Connect a remote host, for a CLI that you start there by hand." t)
    (autoload 'gemini-companion-disconnect "gemini-companion-remote"
      "Disconnect HOST, by default the host of the current buffer." t))
  (when (funcall there-p "addon-tools" "addon-tools")
    (autoload 'gemini-companion-tools "gemini-companion-tools"
      "Link the CLIs to this Emacs, or unlink them." t)))

;;;; Customization

(defgroup gemini-companion nil
  "Emacs companion of Gemini CLI, Qwen Code, Copilot CLI and Pi."
  :group 'tools
  :link '(info-link "(gemini-companion)")
  :prefix "gemini-companion-")
;; A project that opts out may be visited before -privacy is loaded.
;;;###autoload
(put 'gemini-companion-share 'safe-local-variable #'null)

;;;; State

(defvar gemini-companion-ready-hook nil
  "Hook run once the mode is on and a CLI can connect.")

;; The parts read this before -context is loaded.
(defvar gemini-companion-context-directory)

;;;; Menu

(defun gemini-companion--menu-item (entry visible)
  "Return the menu item of ENTRY, displayed if the form VISIBLE is non-nil.
ENTRY is a row of `gemini-companion-commands'."
  (cl-destructuring-bind
      (_key command label _places &key enable on &allow-other-keys) entry
    (vconcat
     (list label command :visible visible)
     (and enable `(:active (gemini-companion-commands-state ',enable)))
     (and on `(:style toggle
               :selected (gemini-companion-commands-state ',on))))))

;; `easy-menu-define' would also make it a command, which M-x would offer.
(defvar gemini-companion--menu-map
  (easy-menu-create-menu
   "Gemini"
   (let* ((open '(gemini-companion-commands-state 'reviews))
          (review (seq-mapcat #'cdr (gemini-companion-commands-menu 'review 'view)))
          (commands (cons 'gemini-companion-review (mapcar #'cadr review))))
     `(["Review" nil :active nil :visible ,open
        :label (or (gemini-companion-commands-state 'summary)
                   "No review is displayed")]
       ["Go to the review" gemini-companion-review :visible ,open]
       ,@(mapcar (lambda (entry) (gemini-companion--menu-item entry open))
                 review)
       ["--" nil :visible ,open]
       ,@(seq-mapcat
          (pcase-lambda (`(,title . ,entries))
            (cons (vector title nil :active nil)
                  (mapcar (lambda (entry)
                            (gemini-companion--menu-item
                             entry (or (not (memq (cadr entry) commands))
                                       `(not ,open))))
                          entries)))
          (gemini-companion-commands-menu 'global)))))
  "Menu of gemini-companion, which begins with the review if one is open.")

;;;; Mode line

(defvar gemini-companion--lighter-map
  (let ((map (make-sparse-keymap)))
    (define-key map [mode-line down-mouse-1] gemini-companion--menu-map)
    (define-key map [mode-line mouse-1] #'ignore)
    (when (fboundp 'gemini-companion-status)
      (define-key map [mode-line mouse-2] 'gemini-companion-status))
    map)
  "Keymap for the mouse on the text in the mode line.")

(defvar gemini-companion--lighter nil
  "A cons of what the last mode line was computed for, and of that mode line.")

(defun gemini-companion-lighter ()
  "Return the mode line construct.
See the Info node `(gemini-companion)The mode line'."
  ;; Each window asks for it at each redisplay.
  (let ((key (list gemini-companion-part-lighter-version
                   (eq (current-buffer) gemini-companion-part-lighter-buffer)
                   (gemini-companion-server-ready-p)
                   (gemini-companion-install-running-p))))
    (unless (equal key (car gemini-companion--lighter))
      (setq gemini-companion--lighter
            (cons key (gemini-companion--make-lighter))))
    (cdr gemini-companion--lighter)))

(defun gemini-companion--make-lighter ()
  "Return the mode line construct for the current buffer."
  (let ((elements (gemini-companion--lighter-elements)))
    `(:propertize
      ,(gemini-companion--lighter-text (mapcar #'car elements))
      mouse-face mode-line-highlight
      local-map ,gemini-companion--lighter-map
      help-echo ,(lambda (&rest _)
                   (gemini-companion--lighter-help (mapcar #'cdr elements))))))

(defun gemini-companion--lighter-elements ()
  "Return a list of elements of the mode line.
For their shape, see `gemini-companion-part-lighter'.  Without a server
that can be called, the only one shows what is awaited."
  (cond ((gemini-companion-install-running-p)
         '((" installing" . "Installing the Python packages of the server")))
        ((not (gemini-companion-server-ready-p))
         '(("..." . "The server is starting")))
        (t
         (delq nil (mapcar #'gemini-companion-part-lighter
                           (gemini-companion-parts-loaded))))))

(defun gemini-companion--lighter-text (texts)
  "Return the text of the mode line, \"Gemini\" between TEXTS.
Those that end in a space come before it."
  (let ((first-p (apply-partially #'string-suffix-p " ")))
    (concat " "
            (mapconcat #'identity (seq-filter first-p texts) "")
            "Gemini"
            (mapconcat #'identity (seq-remove first-p texts) ""))))

(defun gemini-companion--lighter-help (lines)
  "Return the tooltip of the mode line.
It has LINES, strings or functions that return a string or nil."
  (string-join
   (delq nil (mapcar (lambda (line) (if (functionp line) (funcall line) line))
                     (append lines
                             (list (if (fboundp 'gemini-companion-status)
                                       "mouse-1: menu, mouse-2: status"
                                     "mouse-1: menu")))))
   "\n"))

;;;; Mode

;;;###autoload
(define-minor-mode gemini-companion-mode
  "Share your work with a CLI, and review its edits here.
The CLI is Gemini CLI, Qwen Code, Copilot CLI or Pi.
\\[gemini-companion-run] starts it in a terminal of Emacs; in any other
terminal run `gemini', `qwen', `copilot' or `pi' in a project that is open
in this Emacs, and in the first two type /ide enable there, once.  The mode
line shows Gemini and the number of connected CLIs; a click opens a menu.
If a CLI does not connect, \\[gemini-companion-status] shows why.

A CLI receives the names of open files, the position of point and the
selected text; Copilot CLI only the latter.  Its edits wait until you
pause, and are then displayed for review.

\\<gemini-companion-review-mode-map>\
In a review, \\[gemini-companion-edit-accept] accepts the proposal with your changes, and
\\[gemini-companion-edit-reject] rejects it."
  :global t
  :package-version '(gemini-companion . "0.1.0")
  :lighter (:eval (gemini-companion-lighter))
  :keymap (let ((map (make-sparse-keymap)))
            (define-key map [menu-bar gemini]
              (cons "Gemini" gemini-companion--menu-map))
            map)
  (cond (gemini-companion-mode
         (gemini-companion--turn-on)
         (when (and (called-interactively-p 'any)
                    (gemini-companion-server-running-p))
           (gemini-companion--show-first-step "Gemini-Companion mode enabled")))
        ((called-interactively-p 'any)
         ;; The mode stays on if the user says no, or quits the question.
         (setq gemini-companion-mode t)
         (unless (gemini-companion-proposal-drop-p)
           (user-error "Mode stays on, as you have edited a proposal; answer that first"))
         (setq gemini-companion-mode nil)
         (gemini-companion--turn-off 'rejected))
        (t
         (gemini-companion--turn-off 'rejected))))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'mode)))
  "Return non-nil if the mode is on."
  gemini-companion-mode)

(defun gemini-companion--show-first-step (done)
  "Show DONE, a phrase about what was done, and the next step."
  (message "%s%s" done
           (or (gemini-companion-commands-hint 'gemini-companion-run
                                               "; %s starts a CLI")
               "")))

(defun gemini-companion--turn-on ()
  "Start the server and the parts, unless they are running.
Install the packages of the server first, if needed."
  (unless (gemini-companion-server-running-p)
    (setq gemini-companion-server-problem nil
          gemini-companion-context-directory default-directory)
    (cond ((gemini-companion-install-running-p)
           ;; The end of the installation starts the server.
           nil)
          ((gemini-companion-install-command)
           (gemini-companion--start))
          (t
           (gemini-companion--offer-installation)))))

(defun gemini-companion--start ()
  "Start the server, and the components once Emacs is idle."
  (add-hook 'kill-emacs-hook #'gemini-companion--leave)
  (gemini-companion-server-start
   :command #'gemini-companion-install-command
   :roots #'gemini-companion-context-share-roots
   :offer-tools (lambda ()
                  (require 'gemini-companion-review)
                  gemini-companion-review-view)
   :on-ready #'gemini-companion--ready
   :on-end #'gemini-companion--ended)
  (run-at-time 0 nil #'gemini-companion--begin)
  ;; The init file may use the keymaps and functions of the parts.
  (unless after-init-time
    (gemini-companion--begin)))

(defun gemini-companion--begin ()
  "Load the parts that are needed from the beginning, and start them.
A timer calls this, so the server may have been stopped before; at the
start of Emacs, so that parts may be started twice."
  (when (gemini-companion-server-running-p)
    (require 'epc)
    (dolist (part (gemini-companion-parts-to-start))
      (require (gemini-companion-part-feature part)))
    (mapc #'gemini-companion-part-start (gemini-companion-parts-loaded))))

(defun gemini-companion--turn-off (state &optional now)
  "Stop the server and the parts; set STATE as the decision about open edits.
Close their views immediately if NOW is non-nil."
  (remove-hook 'kill-emacs-hook #'gemini-companion--leave)
  (remove-hook 'emacs-startup-hook #'gemini-companion--turn-on)
  (gemini-companion-proposal-decide-all state now)
  (gemini-companion-server-stop)
  (dolist (part (reverse (gemini-companion-parts-loaded)))
    (gemini-companion-log-guarded "Stopping a part of gemini-companion"
      (gemini-companion-part-stop part)))
  (setq gemini-companion-context-directory nil))

(defun gemini-companion--leave ()
  "Turn everything off before Emacs exits.
An error must not prevent that."
  (gemini-companion-log-guarded "Ending gemini-companion"
    (gemini-companion--turn-off 'rejected 'now)))

;;;; Server

(defun gemini-companion--ready (how)
  "Notify the components and the user that the server can be called.
For HOW, see `gemini-companion-part-ready'."
  (dolist (part (gemini-companion-parts-loaded))
    (gemini-companion-log-guarded "Starting a part of gemini-companion"
      (gemini-companion-part-ready part how)))
  (pcase how
    ('started
     (run-hook-wrapped 'gemini-companion-ready-hook
                       #'gemini-companion-text-call))
    ('restarted
     (message "gemini-companion server was restarted"))
    ('resumed
     (let ((remedy (gemini-companion-session-reconnect
                    "if the CLI reports a disconnection")))
       (message "gemini-companion server crashed and was restarted%s"
                (if remedy (concat "; " remedy) "")))))
  (gemini-companion-part-update-lighter))

(defun gemini-companion--ended (reason)
  "Turn the mode off, as the server cannot run, and display REASON as a warning."
  (setq gemini-companion-mode nil
        gemini-companion-server-problem reason)
  (gemini-companion--turn-off 'dismissed)
  (run-hooks 'gemini-companion-mode-hook)
  (gemini-companion-part-update-lighter)
  (display-warning 'gemini-companion reason :error))

;;;; Installation

(defun gemini-companion--offer-installation ()
  "Offer to install the packages of the server, and start it then.
If packages were installed before, do not ask again.  While Emacs is
starting, postpone all that until it has started."
  (let ((agreed (gemini-companion-install-environment)))
    (cond
     ((or noninteractive
          ;; No frame can show a question.
          (and (not agreed)
               (daemonp)
               (equal "initial_terminal" (terminal-name))))
      (gemini-companion--ended
       "The Python packages of gemini-companion are not installed.  \
M-x gemini-companion-install-server installs them; then turn on \
`gemini-companion-mode' again."))
     ((null after-init-time)
      (add-hook 'emacs-startup-hook #'gemini-companion--turn-on))
     (agreed
      (gemini-companion-install-start #'gemini-companion--installed))
     ((gemini-companion--confirm-installation-p)
      (gemini-companion-install-start #'gemini-companion--installed 'show))
     (t
      (setq gemini-companion-mode nil)
      (gemini-companion--turn-off 'dismissed)
      (message "Nothing installed; gemini-companion is off.  \
M-x gemini-companion-mode asks again; \
`gemini-companion-server-command' selects another Python")))))

(defun gemini-companion--confirm-installation-p ()
  "Return non-nil if the user agrees to an installation.
Return nil also if the user quits the question."
  (ignore-error quit
    (y-or-n-p (format "Install the Python packages (70 MB) in %s? "
                      (abbreviate-file-name
                       gemini-companion-install-directory)))))

(defun gemini-companion--installed (problem)
  "Start or restart the server with the new packages, if the mode is on.
If PROBLEM, why they were not installed, is non-nil, report it, and turn
the mode off unless the server is running."
  (cond ((and problem (gemini-companion-server-running-p))
         (display-warning 'gemini-companion problem :error))
        (problem
         (gemini-companion--ended problem))
        ((not gemini-companion-mode)
         (message "Python packages of gemini-companion installed; \
M-x gemini-companion-mode turns it on"))
        ((gemini-companion-server-ready-p)
         (gemini-companion-server-restart))
        ((not (gemini-companion-server-running-p))
         (gemini-companion--start)
         (gemini-companion--show-first-step
          "Python packages of gemini-companion installed"))))

;;;; Commands

;;;###autoload
(defun gemini-companion-customize ()
  "Set the options of gemini-companion."
  (interactive)
  (mapc #'gemini-companion-part-load (gemini-companion-parts))
  (customize-group 'gemini-companion))

;;;###autoload
(defun gemini-companion-restart ()
  "Restart the server; CLIs stay connected, reviews stay open.
Install its packages first if an update of this package needs others."
  (interactive)
  (if (or (not (gemini-companion-server-ready-p))
          (gemini-companion-install-command))
      (gemini-companion-server-restart)
    (gemini-companion-install-server))
  ;; `emacsclient --eval' prints the value.
  nil)

;;;###autoload
(defun gemini-companion-install-server ()
  "Install the Python packages of the server, or install them again.
A running server is restarted to use them."
  (interactive)
  (when gemini-companion-server-command
    (user-error "`gemini-companion-server-command' is set; set it to nil to \
install the packages"))
  (gemini-companion-install-start #'gemini-companion--installed 'show))

(provide 'gemini-companion)
;;; gemini-companion.el ends here
