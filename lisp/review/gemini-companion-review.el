;;; gemini-companion-review.el --- A review on the screen  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Open, select and close the review of an edit, and define its commands.
;; `gemini-companion-view' has the generic functions that a view implements;
;; `gemini-companion-ediff', which has the one for a single edit, is loaded on first use.

;;; Code:

(require 'gemini-companion-arrival)
(require 'gemini-companion-choice)
(require 'gemini-companion-commands)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-header)
(require 'gemini-companion-hunk)
(require 'gemini-companion-idle)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-proposal)
(require 'gemini-companion-replace)
(require 'gemini-companion-request)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-view)
(require 'gemini-companion-windows)

(autoload 'gemini-companion-ediff-make "gemini-companion-ediff")

(declare-function gemini-companion-edit-reject-with-reason "gemini-companion-prompt")

;;;; Customization

(defcustom gemini-companion-review-view 'ediff
  "View in which `gemini-companion-review' shows a proposed edit.
`ediff' is an Ediff session, `diff' its row in the overview, with the
diff.  A file with a very long line always is a row, and so is one that
is not new in a frame of less than 20 lines.

Nil means no reviews: CLIs ask in their terminals as they do without
an editor, and still receive the context.  A CLI asks whether there
are reviews only when it connects.  So after a change to or from nil
type \"/ide disable\" in each Gemini CLI and Qwen Code,
\\[gemini-companion-restart], and \"/ide enable\" in each.  Copilot CLI
connects again by itself.  Until then, answer in their terminals.
Any other change takes effect with the next review."
  :type '(choice (const :tag "Ediff" ediff)
                 (const :tag "Diff in the overview" diff)
                 (const :tag "No reviews, only context" nil))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

(defface gemini-companion-other-hunk
  '((((class color) (min-colors 88) (background light))
     :background "#e6e6e6" :extend t)
    (((class color) (min-colors 88) (background dark))
     :background "#3a3a3a" :extend t)
    (t :underline t))
  "Face of the hunks in Ediff that are not current."
  :group 'gemini-companion-reviews)

;;;; Keys

(defun gemini-companion-review-letter (command)
  "Return a binding of COMMAND, a letter, for a review that was displayed.
In a review that began by itself, the letter was typed for something else."
  (list 'menu-item "" command
        :filter (lambda (command)
                  (cond ((not (gemini-companion-review-requested-p))
                         #'gemini-companion-review--no-letter)
                        ((gemini-companion-review--drawn-p) command)
                        (t #'gemini-companion-review--too-soon)))))

(defun gemini-companion-review--view-here ()
  "Return the view of the review in the current buffer, or nil."
  (and gemini-companion-edit-here
       (gemini-companion-edit-view gemini-companion-edit-here)))

(defvar gemini-companion-review--seconds 1
  "Seconds after which keys answer a review that began by itself.
In the terminal of a CLI, the same keys interrupt the CLI.")

(defun gemini-companion-review--drawn-p ()
  "Return non-nil if the review of the current buffer has been displayed.
One that began by itself must have been displayed for a second."
  (let ((view (gemini-companion-review--view-here)))
    (or gemini-companion-header-listing-keys
        (null view)
        (when-let* ((drawn (gemini-companion-view-drawn view)))
          (or (gemini-companion-view-requested view)
              (not (gemini-companion-idle-since-p
                    drawn gemini-companion-review--seconds)))))))

(defvar gemini-companion-review--said nil
  "Last message about a key, which is removed with the review.")

(cl-defmethod gemini-companion-view-check ((view gemini-companion-view))
  "Signal a `user-error' unless the review VIEW was displayed as it is."
  (unless (with-current-buffer (car (gemini-companion-view-buffers view))
            (gemini-companion-review--drawn-p))
    (user-error "%s" (setq gemini-companion-review--said
                           "The review has just appeared or changed; \
read it, then answer"))))

(defun gemini-companion-review-requested-p ()
  "Return non-nil if the user has asked for the review of the current buffer."
  (let ((view (gemini-companion-review--view-here)))
    (or (null view) (gemini-companion-view-requested view))))

(defun gemini-companion-review--say (text)
  "Display TEXT about the keys of the review until that closes."
  (message "%s" (setq gemini-companion-review--said text)))

(defun gemini-companion-review--too-soon ()
  "Ignore a key that was typed before the review was displayed as it is."
  (interactive)
  (gemini-companion-review--say
   "The review has just appeared or changed; type the key again"))

(defun gemini-companion-review--no-letter ()
  "Ignore a letter in a review that began by itself."
  (interactive)
  (gemini-companion-review--say
   (substitute-command-keys
    "Letter ignored: C-c C-c accepts, C-c C-k rejects; \
\\[gemini-companion-review] enables letters")))

(defun gemini-companion-review--click ()
  "Enable the letters of this review, as the user has clicked in it."
  (interactive)
  (when-let* ((view (gemini-companion-review--view-here)))
    ;; A click may have been for what was there before.
    (gemini-companion-view-check view)
    (gemini-companion-view-follow view 'select)))

(let ((map (gemini-companion-commands-bind gemini-companion-review-mode-map
                                           'review)))
  (define-key map [remap save-buffer] #'gemini-companion-edit-accept)
  (define-key map [remap evil-quit] #'gemini-companion-review-quit)
  ;; Evil also remaps the commands of its ex line.
  (dolist (command '(evil-write evil-update evil-save-and-close
                                evil-save-modified-and-close))
    (define-key map (vector 'remap command)
      #'gemini-companion-review--accept-as-saved)))

(defun gemini-companion-review-bind (map &rest contexts)
  "Bind the keys of CONTEXTS in MAP, for a view in which no text is typed.
For CONTEXTS, see `gemini-companion-commands'.  Return MAP."
  (define-key map [mouse-1] #'gemini-companion-review--click)
  (dolist (context contexts)
    (gemini-companion-commands-bind map context #'gemini-companion-review-letter))
  (define-key map "q" #'gemini-companion-review-quit)
  map)

;;;; Context menu

(put 'gemini-companion-review--context-menu 'permanent-local-hook t)

(defun gemini-companion-review--context-menu (menu click)
  "Add the answers of the review at CLICK to MENU, and return MENU.
This is a member of `context-menu-functions'."
  (when (and gemini-companion-edit-here
             (gemini-companion-edit-open-p gemini-companion-edit-here))
    (define-key menu [gemini-companion-separator] menu-bar-separator)
    (gemini-companion-commands-add-items
     menu click
     '(("Accept" . gemini-companion-edit-accept)
       ("Reject" . gemini-companion-edit-reject)
       ("Exclude or restore this hunk" . gemini-companion-review-toggle-hunk))))
  menu)

(defun gemini-companion-review--set-context-menu ()
  "Add the answers of a review to the context menu of its buffer, or remove them.
This is a member of `gemini-companion-review-mode-hook' while the mode is on."
  (if gemini-companion-review-mode
      (add-hook 'context-menu-functions #'gemini-companion-review--context-menu
                nil t)
    (remove-hook 'context-menu-functions #'gemini-companion-review--context-menu
                 t)))

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'review)))
  "Add the answers of a review to the context menus of its buffers."
  '((gemini-companion-review-mode-hook gemini-companion-review--set-context-menu)))

;;;; Current review

(defun gemini-companion-review-main-buffer (edit)
  "Return the buffer to select in the view of EDIT, or nil without a view."
  (when-let* ((view (gemini-companion-edit-view edit)))
    (car (gemini-companion-view-buffers view))))

(defun gemini-companion-review-of-buffer ()
  "Return the view of the current buffer, or signal an error."
  (or gemini-companion-edits-view
      (and gemini-companion-edit-here
           (gemini-companion-edit-view gemini-companion-edit-here))
      (user-error "No review in this buffer; %s goes to one"
                  (substitute-command-keys "\\[gemini-companion-review]"))))

(defun gemini-companion-review-enter ()
  "Return the view of the current review.
In the overview, first go to the review at point, to the line at point."
  (if (null gemini-companion-edits-view)
      (gemini-companion-review-of-buffer)
    (let ((edit (gemini-companion-edit-open-or-error))
          (line (get-text-property (point) 'gemini-companion-line)))
      (when-let* ((reason (gemini-companion-arrival-row-reason edit)))
        (user-error "No review by Ediff: %s" reason))
      (gemini-companion-arrival-view edit 'requested)
      (gemini-companion-review--go-to edit line)
      ;; Ediff selects its panel, but leaves the current buffer alone.
      (gemini-companion-edit-view edit))))

(defun gemini-companion-review--go-to (edit line)
  "Move point to the hunk of EDIT at LINE, or to the last hunk before it.
LINE is a line of the proposal, or nil.  The view of EDIT must be selected."
  (when-let* ((line)
              (hunks (gemini-companion-edit-known-hunks edit))
              (view (gemini-companion-edit-view edit))
              (number (seq-count (lambda (hunk)
                                   (< (gemini-companion-hunk-new hunk) line))
                                 hunks)))
    (gemini-companion-view-go-to view (max 0 (1- number)))))

(cl-defmethod gemini-companion-view-follow ((view gemini-companion-view) event)
  "Update VIEW after EVENT of its edit, or select it if that is `select'."
  (pcase event
    ('file-changed (gemini-companion-view-compare view))
    ('select (setf (gemini-companion-view-requested view) t)
             (gemini-companion-review--select view)
             ;; Letters answer from now on, so draw its keys again.
             (gemini-companion-view-mark view)
             (force-mode-line-update t))
    ('toggled (gemini-companion-view-mark view))
    ('stay (gemini-companion-review--select view)
           (with-current-buffer (car (gemini-companion-view-buffers view))
             (gemini-companion-review-stay-mode))
           (gemini-companion-view-mark view))
    ('restored
     ;; The user may have typed an answer before this is displayed.
     (setf (gemini-companion-view-drawn view) nil)
     (gemini-companion-view-mark view)
     ;; An edit or an undo is in progress.
     (run-at-time 0 nil #'gemini-companion-review--compare view))
    ('hide (gemini-companion-review--close view))))

(defun gemini-companion-review--compare (view)
  "Compare the texts of VIEW again if they have changed, and it is still open."
  (let ((edit (gemini-companion-view-edit view)))
    (when (and (eq view (gemini-companion-edit-view edit))
               (gemini-companion-edit-open-p edit)
               (not (eq (gemini-companion-view-hunks view)
                        (gemini-companion-edit-hunks edit))))
      (gemini-companion-view-compare view))))

;;;; After the answer

(defvar gemini-companion-review-stay-mode-map
  (let ((map (make-keymap)))
    (set-char-table-range (nth 1 map) t #'gemini-companion-review--no-key)
    ;; These begin commands, which may leave the review.
    (dolist (prefix '(?\C-x ?\C-h ?\e))
      (define-key map (vector prefix) nil))
    (define-key map (kbd "C-c") (make-sparse-keymap))
    (dolist (key '("C-c C-c" "C-c C-k" "C-c C-r" "C-x C-s"))
      (define-key map (kbd key) #'gemini-companion-review--no-key))
    (dolist (key '("q" "C-g"))
      (define-key map (kbd key) #'gemini-companion-review--leave))
    map)
  "Keys in an answered review, which stays until the next one begins.")

(define-minor-mode gemini-companion-review-stay-mode
  "Mode of an answered review, which stays until the next one begins.
Keys are ignored there: they may be typed for the next one, or for the
terminal of the CLI."
  :interactive nil
  :lighter nil
  ;; Before the keys of the review, and of Ediff.
  (setq-local minor-mode-overriding-map-alist
              (list (cons 'gemini-companion-review-stay-mode
                          gemini-companion-review-stay-mode-map))))

(defun gemini-companion-review--no-key ()
  "Ignore a key in an answered review."
  (interactive)
  (message "Key ignored: %s has been answered"
           (gemini-companion-edit-name gemini-companion-edit-here 'plain)))

(defun gemini-companion-review--leave ()
  "Close an answered review, which waits for the next one."
  (interactive)
  (gemini-companion-proposal-finish gemini-companion-edit-here))

;;;; Menu state

(defun gemini-companion-review--displayed-hunk ()
  "Return the displayed hunk at point, in an open review, or nil.
Do not compare the texts."
  (gemini-companion-edit-open-or-error)
  (gemini-companion-view-hunk (gemini-companion-review-of-buffer)))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'review)))
  "Return the view of the current buffer."
  (gemini-companion-review-of-buffer))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'hunk)))
  "Return the hunk of a review at point."
  (gemini-companion-review--displayed-hunk))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'excluded)))
  "Return non-nil if the hunk of a review at point is excluded."
  (member (gemini-companion-review--displayed-hunk)
          (gemini-companion-hunk-excluded
           (gemini-companion-edit-proposal-buffer
            (gemini-companion-edit-open-or-error)))))

;;;; Hunk at point

(defun gemini-companion-review-hunk-here ()
  "Update the comparison of the review at point, and return the hunk at point.
The value is nil if there is no hunk.  Commands call this; menus call
`gemini-companion-review--displayed-hunk', which compares nothing.  If the texts
have changed, compare them again, since lines that were typed beside a hunk
belong to it.  On a page with several edits, signal a `user-error' if the hunk
at point is outdated."
  (let* ((view (gemini-companion-review-of-buffer))
         (edit (gemini-companion-view-edit view)))
    (when edit
      (gemini-companion-review--compare view))
    (let ((hunk (gemini-companion-view-hunk view)))
      (unless (or edit (null hunk))
        (gemini-companion-review-check-hunk
         (gemini-companion-edit-open-or-error) hunk))
      hunk)))

(defun gemini-companion-review-check-hunk (edit hunk)
  "Signal a `user-error' if HUNK, which the overview displays, is not of EDIT."
  (unless (member hunk (gemini-companion-edit-hunks edit))
    (revert-buffer)
    (user-error "The proposal has changed; its diff was updated")))

;;;; Views

(cl-defmethod gemini-companion-view-show ((edit gemini-companion-edit) requested)
  "Show EDIT by Ediff on the selected frame, and select it.
For REQUESTED, see the generic function.  If that fails, restore the windows,
and signal the error again."
  (unless gemini-companion-review-view
    (user-error "No review of %s, as `gemini-companion-review-view' is nil"
                (gemini-companion-edit-name edit)))
  ;; A new file may be empty, such as __init__.py.
  (unless (or (gemini-companion-edit-hunks edit)
              (gemini-companion-edit-new-p edit))
    (user-error "Proposal for %s contains no changes"
                (gemini-companion-edit-name edit)))
  (let ((view (gemini-companion-ediff-make
               :edit edit :frame (selected-frame) :requested requested
               :layout (gemini-companion-windows-configuration))))
    (condition-case problem
        (progn
          (gemini-companion-windows-clear)
          (gemini-companion-view-open view)
          (gemini-companion-review-note-windows view)
          (dolist (buffer (gemini-companion-view-buffers view))
            ;; Ediff may have displayed it already.
            (force-window-update buffer)
            (with-current-buffer buffer
              (add-hook 'pre-redisplay-functions
                        (lambda (_window)
                          ;; After a timer, Emacs also draws while keys wait to be
                          ;; read, which were typed before.
                          (unless (or (gemini-companion-view-drawn view)
                                      (input-pending-p))
                            (setf (gemini-companion-view-drawn view) (float-time))))
                        nil t))))
      ((error quit)
       (gemini-companion-windows-restore (gemini-companion-view-layout view))
       (gemini-companion-view-close view)
       (signal (car problem) (cdr problem))))
    (gemini-companion-windows-forget-screen)
    (gemini-companion-edit-set-view edit view)
    ;; Draw its keys: letters answer only if the user has asked for it.
    (gemini-companion-view-mark view)))

(defun gemini-companion-review-note-windows (view)
  "Record the windows of the selected frame that display VIEW."
  (setf (gemini-companion-view-windows view)
        (seq-mapcat (lambda (buffer) (get-buffer-window-list buffer nil))
                    (gemini-companion-view-buffers view))))

(defun gemini-companion-review--select (view)
  "Select VIEW on its frame; display its first buffer if it is in no window."
  (let ((frame (gemini-companion-view-frame view)))
    (when (and (frame-live-p frame)
               (not (eq frame (selected-frame)))
               (eq (frame-terminal frame) (frame-terminal)))
      (select-frame-set-input-focus frame))
    (pop-to-buffer (car (gemini-companion-view-buffers view))
                   '((display-buffer-reuse-window display-buffer-same-window)
                     (category . gemini-companion-review)))))

;;;; Closing

(defun gemini-companion-review--close (view)
  "Close VIEW; do not change its proposal."
  (let* ((edit (gemini-companion-view-edit view))
         (proposal (gemini-companion-edit-proposal-buffer edit)))
    ;; A frame that is deleted with its windows would close it again.
    (gemini-companion-edit-set-view edit nil)
    (when (equal gemini-companion-review--said (current-message))
      (message nil))
    (gemini-companion-windows-close (gemini-companion-view-layout view)
                                    (seq-filter #'buffer-live-p
                                                (gemini-companion-view-buffers view))
                                    (gemini-companion-view-windows view))
    (gemini-companion-view-close view)
    (when (buffer-live-p proposal)
      (with-current-buffer proposal
        (setq header-line-format nil)))))

;;;; Commands

(defun gemini-companion-review (&optional list)
  "Go to the next review or question.
If a review is displayed, select it.  Otherwise begin the review of the
proposal, or go to the question of a CLI, that has waited longest; from
there, go to the next one.  If nothing waits, display the state of each CLI.
With prefix argument LIST, go to the overview."
  (interactive "P")
  (gemini-companion-windows-select-room)
  (let ((request (or (gemini-companion-edit-shown)
                     (gemini-companion-request-next))))
    (cond ((and list (fboundp 'gemini-companion-list))
           (call-interactively 'gemini-companion-list))
          (request (gemini-companion-request-show request))
          (t
           (user-error "No proposal waits for an answer%s"
                       (mapconcat
                        (lambda (session)
                          (pcase (gemini-companion-session-state session)
                            ('unknown "")
                            (state (format "; %s is %s"
                                           (gemini-companion-session-name
                                            session)
                                           state))))
                        (gemini-companion-sessions) ""))))))

(defun gemini-companion-review-quit ()
  "Ask whether to accept, reject or keep reviewing the current edit."
  (interactive (gemini-companion-proposal-check))
  (let* ((edit (gemini-companion-edit-open-or-error nil))
         (view (gemini-companion-edit-view edit)))
    (pcase (car (gemini-companion-proposal-ask
                 edit
                 (lambda ()
                   (gemini-companion-review--settle)
                   (gemini-companion-choice-forget-keys)
                   (read-multiple-choice
                    (format "Answer for %s" (gemini-companion-edit-name edit))
                    `((?a "accept" "The CLI writes the proposal")
                      (?r "reject" "The file is not written")
                      ,@(and (fboundp 'gemini-companion-edit-reject-with-reason)
                             '((?R "reason" "The file is not written, and the \
model gets your reason")))
                      (?k "keep reviewing" "Nothing is decided"))))))
      ;; The connection of its frame was lost: this key was typed in another one.
      ((guard (and view (null (gemini-companion-edit-view edit))))
       (message "Review was hidden; the edit still awaits an answer"))
      (?a (gemini-companion-edit-accept edit))
      (?r (gemini-companion-edit-reject edit))
      (?R (gemini-companion-edit-reject-with-reason edit)))))

(defun gemini-companion-review--settle ()
  "Signal a `user-error' if a key follows at once in a review that began by itself.
It may be prose that is typed for the terminal: a letter would answer."
  (unless (or (gemini-companion-review-requested-p)
              (progn
                (message "Accept, reject, or keep reviewing?")
                (and (sit-for gemini-companion-review--seconds)
                     ;; A busy Emacs may not have read it meanwhile.
                     (not (input-pending-p)))))
    (discard-input)
    (user-error "Keys ignored: nothing was decided; q asks again")))

(defun gemini-companion-review--accept-as-saved ()
  "Accept the current review, as :w and ZZ of Evil save a file.
With a file name, as in :w FILE, do what Evil does."
  (interactive)
  (if (bound-and-true-p evil-ex-argument)
      (call-interactively 'evil-write)
    (call-interactively #'gemini-companion-edit-accept)))

(defun gemini-companion-review-toggle-hunk (&optional key)
  "Exclude the hunk at point from the proposal, or restore it.
Accepting the proposal sends only the hunks that are not excluded.  With an
active region in one of the texts, exclude its lines, by an edit of the
proposal.  KEY is the key that restores the hunk, by default that of this
command."
  (interactive)
  (if (and (use-region-p) (gemini-companion-review--texts-here-p))
      (gemini-companion-review--exclude-region)
    (gemini-companion-review--toggle-hunk key)))

(defun gemini-companion-review--texts-here-p ()
  "Return non-nil if this buffer is the original or the proposal of a review."
  (and gemini-companion-edit-here
       (memq (current-buffer)
             (list (gemini-companion-edit-original-buffer gemini-companion-edit-here)
                   (gemini-companion-edit-proposal-buffer gemini-companion-edit-here)))))

(defun gemini-companion-review--exclude-region ()
  "Exclude the lines of the region from the proposal.
The current buffer is the proposal, or the original, for removed lines."
  (let* ((view (gemini-companion-review-of-buffer))
         (edit (gemini-companion-view-edit view))
         (proposal (gemini-companion-edit-proposal-buffer edit))
         (in-p (gemini-companion-text-region-predicate))
         (text (if (eq (current-buffer) proposal)
                   (gemini-companion-edit-hunks-text-without edit in-p #'ignore)
                 (gemini-companion-edit-hunks-text-without edit #'ignore in-p))))
    (deactivate-mark)
    (with-current-buffer proposal
      (gemini-companion-replace-text text))
    (gemini-companion-view-compare view)
    (message "Lines excluded; %s%s restores them"
             (if buffer-read-only
                 (concat (substitute-command-keys "\\[gemini-companion-review-edit]")
                         " and then ")
               "")
             (substitute-command-keys "\\[undo]"))))

(defun gemini-companion-review--toggle-hunk (key)
  "Exclude the hunk at point, or restore it.
For KEY, see `gemini-companion-review-toggle-hunk'."
  (let ((hunk (or (gemini-companion-review-hunk-here)
                  (user-error
                   "No hunk here; %s goes to the next one"
                   (gemini-companion-header-shortest-key
                    'gemini-companion-review-next-hunk)))))
    (if (gemini-companion-edit-hunks-toggle (gemini-companion-edit-current) hunk)
        (message "Hunk excluded; %s restores it"
                 (or key
                     (gemini-companion-header-shortest-key
                      'gemini-companion-review-toggle-hunk)
                     (substitute-command-keys
                      "\\[gemini-companion-review-toggle-hunk]")))
      (message "Hunk restored"))))

(defun gemini-companion-review-next-hunk (&optional count)
  "Go to the next hunk of this review, or COUNT hunks on.
In the overview, go to the next row or change."
  (interactive "p")
  (gemini-companion-view-move (gemini-companion-review-of-buffer)
                              (or count 1)))

(defun gemini-companion-review-previous-hunk (&optional count)
  "Go to the previous hunk of this review, or COUNT hunks back.
In the overview, go to the previous row or change."
  (interactive "p")
  (gemini-companion-review-next-hunk (- (or count 1))))

(defun gemini-companion-review-edit ()
  "Go to the proposal to edit it, or from there back to the review."
  (interactive)
  (gemini-companion-edit-open-or-error)
  ;; The method may be loaded by showing the review.
  (let ((view (gemini-companion-review-enter)))
    (gemini-companion-view-edit-proposal view)))

(provide 'gemini-companion-review)
;;; gemini-companion-review.el ends here
