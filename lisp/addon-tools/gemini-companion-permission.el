;;; gemini-companion-permission.el --- What a CLI asks before it runs a tool  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A permission is a request: a linked CLI asks before it runs a command, fetches a
;; URL or calls a tool.  A hook of the CLI reports the question; Emacs displays it.
;;
;; Most CLIs ask in their terminals: then the permission is what a question of the state
;; is about, and ends with that.  For some CLIs the hook waits for Emacs: then the slot
;; `answer' of the permission has a function, which is called once.  Only one key allows,
;; in the buffer of the permission, after each part of the text was on the screen.  In all
;; other cases, the CLI asks in its terminal.
;;
;; Plans and questions of models arrive and end in the same way: their structs include
;; the struct of a permission, and have methods for the generic functions of this
;; file.  No key allows them.  A rename is a permission that Emacs itself asks for.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-choice)
(require 'gemini-companion-commands)
(require 'gemini-companion-context)
(require 'gemini-companion-edit)
(require 'gemini-companion-header)
(require 'gemini-companion-label)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-privacy)
(require 'gemini-companion-request)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-terminal)
(require 'gemini-companion-text)
(require 'gemini-companion-windows-beside)
(require 'json)
(require 'map)

;;;; Customization

(defface gemini-companion-permission-name
  '((t :inherit font-lock-keyword-face))
  "Face of the names of arguments in the buffer of a permission."
  :group 'gemini-companion)

;;;; Keys

(defvar gemini-companion-permission-mode-map
  (gemini-companion-commands-bind (make-sparse-keymap) 'permission)
  "Keys in the buffer of a permission.")

;;;; State

(defvar gemini-companion-permission-largest 20000
  "Maximum number of characters of a question that is answered in Emacs.
A CLI chooses the text, and a long text takes time to display.")

(cl-defstruct (gemini-companion-permission
               (:noinline t)
               (:include gemini-companion-request (kind 'permission))
               (:constructor gemini-companion-permission--make)
               (:copier nil))
  "A question of a CLI for permission to run a tool.
ID is the ID of the question in the server, a string.  ANSWER is a function
that sends the answer; it is nil once the answer is sent, or if the CLI asks in
its terminal: then the permission is not open, and what a question of the state
is about, see `gemini-companion-state-ask'.  INPUT is the text from
the server, from which these slots are read:
  TOOL is its name, and COMMAND the command of a shell, or nil.
  ARGUMENTS are the other ones, lists (NAME TEXT); PARTIAL is non-nil if
  there are more.
  CUT is the number of characters that are not displayed, as the text is too
  long, or 0.
  SUMMARY is the tool and the first line.
DIRECTORY is the directory of the CLI.
OUTCOME is nil while the permission is open; `allowed', `refused', or `ended'.
APPEARED is non-nil once the permission was displayed, and BUFFER is the buffer
that displays it, or nil."
  id answer input tool command arguments partial cut summary
  directory outcome appeared buffer)

(defvar gemini-companion-permission--open nil
  "The open permissions, oldest first.")

(defvar gemini-companion-permission--answered nil
  "The last permissions that were answered in Emacs, the newest first.")

(defvar gemini-companion-permission--ended nil
  "The permissions that have ended while the user was in their buffers.
A buffer is closed once the user has left it.")

(defconst gemini-companion-permission--display-action
  '((display-buffer-reuse-window gemini-companion-windows-beside-replace)
    (category . gemini-companion-permission)
    (instead-of . gemini-companion-permission--shown-in)
    (reusable-frames . visible))
  "Action of `display-buffer' for the buffer of a permission.
At most one permission is displayed at a time, so that its window can be
restored.")

(defvar-local gemini-companion-permission-here nil
  "The permission that the current buffer shows.")

(defvar-local gemini-companion-permission--drawn nil
  "The use time of the window that has displayed this buffer since the last key.
It is nil if that was not the selected window.  See `window-use-time'.")

(defvar-local gemini-companion-permission--displayed nil
  "The use time of the window that had displayed this buffer before the last key.")

(defvar-local gemini-companion-permission--shown 1
  "The position before which all of this buffer was on the screen.")

(defun gemini-companion-permission--list ()
  "Return the open permissions, oldest first."
  gemini-companion-permission--open)

;;;; Arrival and end

(defun gemini-companion-permission-ask (facts input answer)
  "Display the question of a CLI; call ANSWER with nil now, or an answer later.
With nil, the CLI asks in its terminal.  FACTS is a plist with the `:client',
its `:pids', the `:directory', and the `:id' of the question if the hook waits
for the answer.  INPUT is the question, JSON of the server.

If the project is not shared, or if the hook has exited, so that the process
of the CLI is unknown, display nothing, and call ANSWER with nil.  Do so also
if INPUT is too long to be displayed whole, but display the question."
  (let ((directory (plist-get facts :directory))
        (id (plist-get facts :id)))
    (if (or (gemini-companion-permission--private-p directory)
            (null (gemini-companion-permission-session-of facts)))
        (funcall answer nil)
      (let ((permission (gemini-companion-permission--read facts input)))
        (cond ((and id (zerop (gemini-companion-permission-cut permission)))
               (setf (gemini-companion-permission-id permission) id
                     (gemini-companion-permission-answer permission) answer)
               (gemini-companion-permission-open permission))
              (t
               (funcall answer nil)
               (gemini-companion-state-ask
                (gemini-companion-permission-session permission) permission)))))))

(defun gemini-companion-permission-open (permission)
  "Add PERMISSION, which has its answer function, to those that await an answer."
  (cl-callf append gemini-companion-permission--open (list permission))
  (gemini-companion-request-notify permission 'opened))

(defun gemini-companion-permission--private-p (directory)
  "Return non-nil if nothing of DIRECTORY is shared now."
  (or gemini-companion-context-paused
      (gemini-companion-privacy-directory-hidden-p directory)))

(cl-defgeneric gemini-companion-permission-new (kind parsed slots)
  "Return a new request of KIND, a symbol, for a question of a CLI.
PARSED is a value of `gemini-companion-permission--parse'.  SLOTS is a plist
of the slots that are the same for all kinds.")

(cl-defmethod gemini-companion-permission-new ((_kind (eql 'permission)) parsed slots)
  "Return the permission for PARSED and SLOTS."
  (pcase-let* (((map :tool :command :arguments) parsed)
               (cut (gemini-companion-permission-fit
                     `(,tool ,command ,@(apply #'append arguments))))
               (`(,shown-tool ,shown-command . ,rest) (car cut)))
    (apply #'gemini-companion-permission--make
           :tool (or shown-tool "") :command shown-command
           :arguments (seq-partition rest 2) :cut (cdr cut)
           :summary (gemini-companion-permission-summarize tool command arguments)
           slots)))

(defun gemini-companion-permission--read (facts input)
  "Return the request that INPUT of the server describes.
For FACTS and INPUT, see `gemini-companion-permission-ask'."
  (let* ((parsed (gemini-companion-permission--parse input))
         (session (gemini-companion-permission-session-of facts)))
    (gemini-companion-permission-new
     (pcase (plist-get parsed :kind)
       ("plan" 'plan)
       ("inquiry" 'inquiry)
       (_ 'permission))
     parsed
     (list :session session
           :input input
           :partial (plist-get parsed :partial)
           :directory (plist-get facts :directory)))))

(defun gemini-companion-permission--parse (input)
  "Parse INPUT, a JSON string from the server, into a plist."
  ;; The parser in C is fifty times as fast, but rejects lone surrogates and, before
  ;; Emacs 30, NUL.
  (or (and (json-available-p)
           (ignore-error json-error
             (json-parse-string input :object-type 'plist :array-type 'list
                                :null-object nil :false-object nil)))
      (let ((json-object-type 'plist)
            (json-array-type 'list)
            (json-false nil)
            (json-null nil)
            (json-key-type 'keyword))
        (json-read-from-string input))))

(defun gemini-companion-permission-fit (texts)
  "Return (FITTING . MISSING): the part of TEXTS to display, and a number.
TEXTS is a list of strings and nil, and FITTING its beginning, with at most
`gemini-companion-permission-largest' characters.  MISSING is the number of
omitted characters; an omitted empty text counts as one."
  (let ((room gemini-companion-permission-largest)
        (missing 0)
        (fitting nil))
    (dolist (text texts)
      (let ((length (length text)))
        (cond ((<= length room) (push text fitting))
              (t
               (cl-incf missing (max 1 (- length (max 0 room))))
               (when (< 0 room)
                 (push (substring text 0 room) fitting))))
        ;; Each text begins a line, and thousands of lines are slow to display.
        (cl-decf room (+ length 20))))
    (cons (nreverse fitting) missing)))

(defun gemini-companion-permission-summarize (tool command arguments)
  "Return TOOL and the first line of COMMAND, or of ARGUMENTS, in one line."
  (let* ((text (or command (mapconcat #'cadr (seq-take arguments 10) " ")))
         (line (gemini-companion-text-escaped-line text 200))
         (more (cl-count ?\n (gemini-companion-text-trim text "\n" 'right))))
    (string-join
     (delq nil
           (list (propertize (gemini-companion-text-escaped-line tool 60)
                             'face 'gemini-companion-permission-name)
                 (unless (string-empty-p line) line)
                 (when (< 0 more)
                   (format (ngettext "+%d line" "+%d lines" more) more))))
     "  ")))

(defun gemini-companion-permission-session-of (facts)
  "Return the session of the CLI in FACTS, or nil if its process is unknown.
For a CLI that is linked but not connected, return a session of its process."
  (pcase-let (((map :client :pids :directory) facts))
    (or (gemini-companion-session-of-processes pids)
        ;; The first process is the shell that runs the hook.  If the CLI has
        ;; exited, the shell is a child of process 1.
        (when-let* ((pid (or (nth 1 pids) (car pids)))
                    ((< 1 pid)))
          (gemini-companion-session-unconnected client pid directory)))))

(defun gemini-companion-permission-close (permission outcome)
  "End PERMISSION by OUTCOME if it is open; close its buffer once it is left."
  (when (memq permission gemini-companion-permission--open)
    (setf (gemini-companion-permission-outcome permission) outcome)
    (setq gemini-companion-permission--open
          (remq permission gemini-companion-permission--open))
    (gemini-companion-request-notify permission 'closed)
    (gemini-companion-permission-closed permission)
    (gemini-companion-part-update-lighter)
    (push permission gemini-companion-permission--ended)
    (gemini-companion-permission--close-left)))

(cl-defgeneric gemini-companion-permission-reason (_permission)
  "Return the words of the user with which to refuse a permission.
By default, read a reason."
  (gemini-companion-choice-reason "Reason for the model: "))

(cl-defgeneric gemini-companion-permission-closed (_permission)
  "Save what the user has typed about a permission that has ended.
By default, do nothing."
  nil)

(defun gemini-companion-permission--follow-windows ()
  "Close ended permissions that the user has left, outside of redisplay."
  (when gemini-companion-permission--ended
    (run-at-time 0 nil #'gemini-companion-permission--close-left)))

(defun gemini-companion-permission--close-left ()
  "Close the buffers of ended permissions, except in the selected window.
Otherwise, keys of the user could go to another buffer."
  (dolist (permission gemini-companion-permission--ended)
    (let ((buffer (gemini-companion-request-buffer permission)))
      (unless (and buffer
                   (eq buffer (window-buffer (or (minibuffer-selected-window)
                                                 (selected-window)))))
        (gemini-companion-permission--kill permission)))))

(defun gemini-companion-permission--kill (permission)
  "Delete the windows and the buffer of PERMISSION.
The selected window stays selected, unless it is one of them."
  (setq gemini-companion-permission--ended
        (remq permission gemini-companion-permission--ended))
  (when-let* ((buffer (gemini-companion-request-buffer permission)))
    (gemini-companion-permission--leave
     (get-buffer-window-list buffer 'no-minibuffer t)
     (lambda ()
       (quit-windows-on buffer 'kill)
       (when (buffer-live-p buffer)
         (kill-buffer buffer))))))

(defun gemini-companion-permission--leave (windows quit)
  "Call QUIT, which quits WINDOWS, the windows that display one permission.
Afterwards, WINDOWS display no other permission.  If the selected window is
one of WINDOWS, select a window without a permission: the keys of the user
must not answer a question that the user has not selected.  Otherwise, the
selected window stays selected, although quitting a window may select another."
  (let ((selected (selected-window)))
    (funcall quit)
    (dolist (window windows)
      ;; A window may have displayed several permissions, one after another.
      (let ((most (length gemini-companion-permission--open)))
        (while (and (window-live-p window)
                    (gemini-companion-permission--shown-in window)
                    (<= 0 (cl-decf most)))
          (quit-window nil window))))
    (cond
     ((not (memq selected windows))
      (when (window-live-p selected)
        (select-window selected)))
     ((gemini-companion-permission--shown-in (selected-window))
      (when-let* ((other (seq-find (lambda (window)
                                     (not (gemini-companion-permission--shown-in
                                           window)))
                                   (window-list nil 'no-minibuffer))))
        (select-window other))))))

(defun gemini-companion-permission--shown-in (window)
  "Return the permission in WINDOW, or nil."
  (buffer-local-value 'gemini-companion-permission-here (window-buffer window)))

(cl-defgeneric gemini-companion-permission-return (permission)
  "Let the CLI of PERMISSION, which is open, ask in its terminal."
  (let ((answer (gemini-companion-permission-answer permission)))
    (setf (gemini-companion-permission-answer permission) nil)
    (gemini-companion-permission-close permission 'ended)
    (funcall answer nil)
    (gemini-companion-state-ask (gemini-companion-permission-session permission)
                                permission)))

(cl-defmethod gemini-companion-server-receive ((_method (eql 'withdrawn)) id how)
  "Record that the CLI no longer waits for the answer to the question ID.
HOW is `returned' if it asks in its terminal instead, else `ended'."
  (if-let* ((permission (cl-find id gemini-companion-permission--open
                                 :key #'gemini-companion-permission-id
                                 :test #'equal)))
      (if (eq how 'ended)
          (gemini-companion-permission-close permission 'ended)
        ;; The hook no longer waits, so the answer has no effect.
        (gemini-companion-permission-return permission))
    (when-let* ((permission (cl-find id gemini-companion-permission--answered
                                     :key #'gemini-companion-permission-id
                                     :test #'equal)))
      (message "%s was no longer waiting for your answer%s"
               (gemini-companion-session-title
                (gemini-companion-permission-session permission))
               (if (eq how 'returned) "; it asks in its terminal" ""))))
  t)

(defun gemini-companion-permission--return-all ()
  "Let all CLIs ask in their terminals.
Called when sharing is paused, and after a crash of the server, which ends
the hooks."
  (mapc #'gemini-companion-permission-return
        gemini-companion-permission--open))

(defun gemini-companion-permission--of-p (permission session)
  "Return non-nil if the CLI of SESSION asks PERMISSION."
  (let ((other (gemini-companion-permission-session permission)))
    (or (gemini-companion-session-same-p session other)
        ;; A linked CLI may have connected since it asked.
        (and (gemini-companion-session-pid session)
             (not (gemini-companion-session-remote session))
             (eql (gemini-companion-session-pid session)
                  (gemini-companion-session-pid other))))))

(defun gemini-companion-permission--sessions-changed (previous)
  "End the permissions of those PREVIOUS sessions that have ended."
  (dolist (session previous)
    (unless (cl-member session (gemini-companion-sessions)
                       :test #'gemini-companion-session-same-p)
      (dolist (permission gemini-companion-permission--open)
        (when (gemini-companion-permission--of-p permission session)
          (gemini-companion-permission-close permission 'ended))))))

;;;; Request

(cl-defmethod gemini-companion-request-label ((permission gemini-companion-permission))
  "Return the tool and the first line of what the CLI of PERMISSION asks.
For example: asks  Shell  rm -rf build && make  +40 lines"
  (concat "asks  " (gemini-companion-permission-summary permission)))

(cl-defmethod gemini-companion-request-insert
  ((permission gemini-companion-permission))
  "Insert PERMISSION as in its buffer."
  (gemini-companion-permission-insert permission))

(cl-defmethod gemini-companion-request-waits-to-appear-p
  ((permission gemini-companion-permission))
  "Return non-nil if PERMISSION should appear now, to be answered in Emacs.
Return nil once it has appeared, and while another permission is displayed,
which it would replace while the user reads."
  (and (not (gemini-companion-permission-appeared permission))
       (not (seq-some #'gemini-companion-permission--displayed-p
                      (remq permission gemini-companion-permission--open)))))

(defun gemini-companion-permission--displayed-p (permission)
  "Return non-nil if the buffer of PERMISSION is in a visible window."
  (when-let* ((buffer (gemini-companion-request-buffer permission)))
    (get-buffer-window buffer 'visible)))

(cl-defmethod gemini-companion-request-appear ((permission gemini-companion-permission))
  "Display PERMISSION, without selecting it."
  (setf (gemini-companion-permission-appeared permission) t)
  (display-buffer (gemini-companion-permission--get-buffer permission)
                  `(,@gemini-companion-permission--display-action
                    (inhibit-same-window . t))))

(cl-defmethod gemini-companion-request-show ((permission gemini-companion-permission))
  "Select the buffer of PERMISSION."
  (setf (gemini-companion-permission-appeared permission) t)
  (pop-to-buffer (gemini-companion-permission--get-buffer permission)
                 gemini-companion-permission--display-action))

(cl-defmethod gemini-companion-request-buffer ((permission gemini-companion-permission))
  "Return the buffer of PERMISSION, or nil."
  (let ((buffer (gemini-companion-permission-buffer permission)))
    (and (buffer-live-p buffer) buffer)))

(cl-defmethod gemini-companion-request-answer
  ((permission gemini-companion-permission) answer)
  "Send ANSWER to PERMISSION by its hook, which waits."
  (let ((send (gemini-companion-permission-answer permission))
        (private (gemini-companion-permission--private-p
                  (gemini-companion-permission-directory permission))))
    (cond
     (private
      (gemini-companion-permission-return permission)
      (user-error "Sharing is paused, or the project is excluded; %s asks in its \
terminal"
                  (gemini-companion-permission-title permission)))
     (t
      (setf (gemini-companion-permission-answer permission) nil)
      (setq gemini-companion-permission--answered
            (seq-take (cons permission gemini-companion-permission--answered) 20))
      (gemini-companion-permission-close
       permission (if (eq answer 'allow) 'allowed 'refused))
      (funcall send (gemini-companion-permission--form permission answer))))))

(defun gemini-companion-permission--form (permission answer)
  "Return ANSWER to PERMISSION as a plist for the server.
It has a hash of the displayed text, without which the server ignores it."
  (let ((shown (secure-hash 'sha256
                            (encode-coding-string
                             (gemini-companion-permission-input permission)
                             'utf-8))))
    (pcase-exhaustive answer
      ('allow (list :behavior "allow" :input shown))
      ('refuse (list :behavior "deny" :input shown
                     :message "The user refused this."))
      (`(refuse . ,reason) (list :behavior "deny" :input shown
                                 :message reason)))))

;;;; Text

(defun gemini-companion-permission-title (permission)
  "Return the title of the CLI of PERMISSION."
  (gemini-companion-session-title (gemini-companion-permission-session permission)))

(cl-defgeneric gemini-companion-permission-insert (permission)
  "Insert all facts about PERMISSION: the command or the tool comes first.
Only this first text is bold, and arguments are indented, so that the text of
a CLI cannot imitate a line of Emacs."
  (pcase-let* (((cl-struct gemini-companion-permission tool command
                           arguments partial cut)
                permission)
               (rest nil))
    (insert (gemini-companion-text-escaped (propertize (or command tool) 'face 'bold)
                                           nil (and command 'lines))
            "\n")
    (gemini-companion-permission-insert-cut cut)
    (insert "\n")
    (setq rest (point))
    (when arguments
      (gemini-companion-permission-insert-row "Arguments" "")
      (pcase-dolist (`(,name ,text) arguments)
        (gemini-companion-permission-insert-argument name (or text ""))))
    (unless command
      (insert "\n")
      (setq rest (point)))
    (when partial
      (gemini-companion-permission-insert-row "Arguments" "in the terminal"))
    (gemini-companion-permission-insert-facts permission)
    (add-face-text-property rest (point) 'shadow 'append)))

(defun gemini-companion-permission-insert-cut (cut)
  "Insert that CUT characters are missing, unless that is 0."
  (when (< 0 cut)
    (insert (propertize (format "%d more characters are not shown; answer in the \
terminal\n"
                                cut)
                        'face 'warning))))

(defun gemini-companion-permission-insert-facts (permission)
  "Insert lines with the tool, the CLI and the directory of PERMISSION."
  (pcase-let (((cl-struct gemini-companion-permission session tool directory since)
               permission))
    (gemini-companion-permission-insert-row
     "Tool" (concat (gemini-companion-text-escaped-line tool 60)
                    (format-time-string ", asked at %H:%M:%S" since)))
    (gemini-companion-permission-insert-row
     "CLI" (gemini-companion-session-name session))
    (gemini-companion-permission-insert-row
     "Project" (gemini-companion-text-escaped-line
                (file-name-nondirectory (directory-file-name directory)) 60))
    (gemini-companion-permission-insert-row
     "Directory" (gemini-companion-text-escaped-line
                  (gemini-companion-names-absolute directory) 500))))

(defun gemini-companion-permission-insert-row (name text)
  "Insert a line of Emacs, with NAME and TEXT."
  (insert (propertize (concat name ":") 'face 'gemini-companion-permission-name)
          (if (string-empty-p text) "" " ")
          text
          "\n"))

(defun gemini-companion-permission-insert-argument (name text)
  "Insert the argument NAME with TEXT, indented, with its newlines as escapes."
  (insert (propertize
           (concat "  "
                   (propertize (concat (gemini-companion-text-escaped name) ":")
                               'face 'gemini-companion-permission-name)
                   " "
                   (mapconcat #'gemini-companion-text-escaped
                              (split-string text "\n")
                              (concat (gemini-companion-text-escaped "\n") "\n    "))
                   "\n")
           'wrap-prefix "    ")))

(define-derived-mode gemini-companion-permission-mode special-mode "Permission"
  "Mode of a buffer with a permission, the question of a CLI.

\\{gemini-companion-permission-mode-map}"
  :interactive nil
  (buffer-disable-undo)
  (setq truncate-lines nil
        word-wrap nil
        display-line-numbers nil
        buffer-invisibility-spec nil
        bidi-display-reordering nil
        show-trailing-whitespace t
        header-line-format '(:eval (gemini-companion-permission--header)))
  (setq-local truncate-partial-width-windows nil
              auto-composition-mode nil
              glyphless-char-display gemini-companion-label-glyphless)
  (add-hook 'pre-redisplay-functions #'gemini-companion-permission--note-drawing nil t)
  (add-hook 'pre-command-hook #'gemini-companion-permission--note-shown nil t)
  (gemini-companion-commands-letters-are-keys 'gemini-companion-permission-mode))

(cl-defgeneric gemini-companion-permission-major-mode (_permission)
  "Return the major mode for the buffer of a permission, a symbol.
The mode is `gemini-companion-permission-mode', or derived from it."
  'gemini-companion-permission-mode)

(cl-defgeneric gemini-companion-permission-context (_permission)
  "Return where the keys of a permission apply, as in `gemini-companion-commands'."
  'permission)

(defun gemini-companion-permission--get-buffer (permission)
  "Return the buffer of PERMISSION, a new one unless it has one."
  (or (gemini-companion-request-buffer permission)
      (let* ((directory (gemini-companion-permission-directory permission))
             (buffer (generate-new-buffer
                      (format "*%s asks: %s*"
                              (gemini-companion-permission-title permission)
                              (gemini-companion-names-shown
                               (file-name-nondirectory
                                (directory-file-name directory))
                               30)))))
        (setf (gemini-companion-permission-buffer permission) buffer)
        (with-current-buffer buffer
          (funcall (gemini-companion-permission-major-mode permission))
          (setq gemini-companion-permission-here permission
                default-directory "/")
          (let ((inhibit-read-only t))
            (gemini-companion-permission-insert permission))
          (goto-char (point-min)))
        buffer)))

(defun gemini-companion-permission--header ()
  "Return the header line of the buffer of a permission: the CLI, and the keys."
  (let* ((permission gemini-companion-permission-here)
         (name (propertize (gemini-companion-session-name
                            (gemini-companion-permission-session permission))
                           'face 'bold)))
    (gemini-companion-label-header
     (cons name
           (cond
            ((gemini-companion-permission-outcome permission)
             '(": this question has ended; q closes it"))
            (t
             (gemini-companion-header-keys
              (gemini-companion-permission-context permission))))))))

;;;; Answers by a key

(defun gemini-companion-permission--note-drawing (window)
  "Note that WINDOW, if it is selected, is about to display this buffer.
After a timer, Emacs draws even while keys wait to be read, which were typed
before.  A member of `pre-redisplay-functions'."
  (unless (input-pending-p)
    (setq gemini-companion-permission--drawn
          (and (eq window (selected-window)) (window-use-time window)))))

(defun gemini-companion-permission--note-shown ()
  "Note what the selected window has displayed of this buffer before the last key.
A member of `pre-command-hook'."
  (let ((time (window-use-time)))
    (when (and (eq (current-buffer) (window-buffer))
               (eql time gemini-companion-permission--drawn))
      (setq gemini-companion-permission--displayed time)
      ;; Otherwise the lines between were scrolled past, and never displayed.
      (when (<= (window-start) gemini-companion-permission--shown)
        (cl-callf max gemini-companion-permission--shown (window-end))))
    (setq gemini-companion-permission--drawn nil)))

(defun gemini-companion-permission-to-answer (&optional whole)
  "Return the open permission here, if the key that was typed may answer it.
Its window must have displayed it before the key, and since the window was
selected.  If WHOLE is non-nil, each part of it must have been displayed;
otherwise show the next part.  Signal a `user-error' if the key may not answer."
  (let ((permission gemini-companion-permission-here))
    (cond
     ((null permission)
      (user-error "No permission here"))
     ((gemini-companion-permission-outcome permission)
      (user-error "This question has ended; q closes it"))
     (executing-kbd-macro
      (user-error "A keyboard macro cannot answer this"))
     ((not (eql (window-use-time) gemini-companion-permission--displayed))
      (user-error "Not answered: the text was not displayed yet; type the key again"))
     ((and whole (< gemini-companion-permission--shown (point-max)))
      (goto-char gemini-companion-permission--shown)
      (recenter 0)
      ;; Leave nothing blank below the end.
      (when (pos-visible-in-window-p (point-max))
        (goto-char (point-max))
        (recenter -1))
      (user-error "Not answered: read this part, then type the key again"))
     (t permission))))

(defun gemini-companion-permission-decide (permission answer word)
  "Answer PERMISSION by ANSWER, report WORD, and close its buffer."
  (when (gemini-companion-permission-outcome permission)
    (user-error "This question has ended; q closes it"))
  (gemini-companion-request-answer permission answer)
  (when (gemini-companion-permission-outcome permission)
    (gemini-companion-permission--kill permission)
    (when (input-pending-p)
      (discard-input))
    (message "%s: %s" word
             (gemini-companion-text-escaped-line
              (or (gemini-companion-permission-command permission)
                  (gemini-companion-permission-tool permission))
              60))))

(defun gemini-companion-permission--go-there (permission)
  "Let the CLI of PERMISSION ask in its terminal, and select the terminal."
  (when (memq permission gemini-companion-permission--open)
    (gemini-companion-permission-return permission))
  (if-let* ((terminal (gemini-companion-session-terminal
                       (gemini-companion-permission-session permission))))
      (gemini-companion-terminal-show-question terminal)
    (message "%s asks in its terminal, which is not in this Emacs"
             (gemini-companion-permission-title permission))))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'permission)))
  "Follow the permissions of the CLIs."
  '((gemini-companion-request-list-functions gemini-companion-permission--list)
    (gemini-companion-session-changed-functions
     gemini-companion-permission--sessions-changed)
    (gemini-companion-context-pause-hook gemini-companion-permission--return-all)
    (gemini-companion-server-crash-hook
     gemini-companion-permission--return-all)
    (window-state-change-hook gemini-companion-permission--follow-windows)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'permission)))
  "Let the CLIs ask in their terminals, and close all permissions."
  (gemini-companion-permission--return-all)
  (mapc #'gemini-companion-permission--kill gemini-companion-permission--ended)
  (setq gemini-companion-permission--answered nil)
  (cancel-function-timers #'gemini-companion-permission--close-left))

;;;; Commands

(defun gemini-companion-permission-allow ()
  "Allow the permission of this buffer, once.
It has no letter, as that may be typed for a text.  The key works only once
each part of the text was in the selected window, and not in a keyboard macro;
otherwise it shows the next part."
  (interactive nil gemini-companion-permission-mode)
  (gemini-companion-permission-decide
   (gemini-companion-permission-to-answer 'whole) 'allow "Allowed once"))

(defun gemini-companion-permission-refuse ()
  "Refuse the permission of this buffer."
  (interactive nil gemini-companion-permission-mode)
  (gemini-companion-permission-decide (gemini-companion-permission-to-answer)
                                       'refuse "Refused"))

(defun gemini-companion-permission-refuse-with-reason ()
  "Refuse the permission of this buffer, and send the model a reason."
  (interactive nil gemini-companion-permission-mode)
  (let* ((permission (gemini-companion-permission-to-answer))
         (reason (gemini-companion-permission-reason permission)))
    (when (string-blank-p reason)
      (user-error "Not answered: no reason was given"))
    (condition-case problem
        (gemini-companion-permission-decide permission (cons 'refuse reason)
                                             "Refused")
      ;; The question may have ended meanwhile.
      (user-error
       (gemini-companion-text-keep reason (error-message-string problem))))))

(defun gemini-companion-permission-answer-there ()
  "Select the terminal of the CLI, to answer there.
If the CLI waits for Emacs instead of asking there, it asks there now.
This sends no key to the terminal.  The first RET there is ignored, since it
may have been typed without a look at the question."
  (interactive nil gemini-companion-permission-mode)
  (let ((permission (or gemini-companion-permission-here
                        (user-error "No permission here"))))
    (when (eq 'rename (gemini-companion-request-kind permission))
      (user-error "No CLI asks for a rename in its terminal; answer here"))
    (gemini-companion-permission--go-there permission)))

(defun gemini-companion-permission-quit ()
  "Close this buffer; the question stays open.
\\[gemini-companion-review] shows it again."
  (interactive nil gemini-companion-permission-mode)
  (if (and gemini-companion-permission-here
           (gemini-companion-permission-outcome gemini-companion-permission-here))
      (gemini-companion-permission--kill gemini-companion-permission-here)
    (gemini-companion-permission--leave (list (selected-window)) #'quit-window)))

(provide 'gemini-companion-permission)
;;; gemini-companion-permission.el ends here
