;;; gemini-companion-list.el --- The edits of each CLI in a buffer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The edits of the current turn of each CLI, in sections that unfold to their
;; diffs, to be answered, commented and reverted from there.  When something
;; changes while the buffer is visible, the whole buffer is written again.  The
;; program diff finds the hunks in the background, for one edit after another;
;; the code of the unified view inserts them.

;;; Code:

(require 'gemini-companion-auto)
(require 'gemini-companion-clients)
(require 'gemini-companion-diff)
(require 'gemini-companion-hunk)
(require 'gemini-companion-revert)
(require 'gemini-companion-review)
(require 'gemini-companion-send)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'gemini-companion-unified)
(require 'gemini-companion-windows)
(require 'seq)
(require 'subr-x)

;;;; Faces

(defface gemini-companion-comment
  '((t :inherit (italic warning)))
  "Face of comments on the lines of a proposal."
  :group 'gemini-companion-reviews)

;;;; Keys

(autoload 'gemini-companion-list-menu "gemini-companion-menu" nil t)

(defvar gemini-companion-list-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "TAB") #'gemini-companion-list-toggle)
    (define-key map (kbd "RET") #'gemini-companion-list-view)
    (define-key map "n" #'gemini-companion-list-next)
    (define-key map "p" #'gemini-companion-list-previous)
    (define-key map "a" #'gemini-companion-list-accept)
    (define-key map "r" #'gemini-companion-list-reject)
    (define-key map "R" #'gemini-companion-list-reject-with-reason)
    (define-key map "x" #'gemini-companion-list-toggle-hunk)
    (define-key map "e" #'gemini-companion-list-edit)
    (define-key map "v" #'gemini-companion-list-switch-view)
    (define-key map "c" #'gemini-companion-list-comment)
    (define-key map "u" #'gemini-companion-list-revert)
    (define-key map "!" #'gemini-companion-list-auto-accept)
    (define-key map "?" #'gemini-companion-list-menu)
    map)
  "Keys in the list of edits.")

;;;; State

(defconst gemini-companion-list--buffer "*gemini reviews*"
  "Name of the buffer with the list.")

(defconst gemini-companion-list--lines 24
  "Height that the window of the list gets if the frame is large enough.")

(defconst gemini-companion-list--most-bytes (* 5 1024 1024)
  "Size in bytes above which a text is not compared.")

(defconst gemini-companion-list--labels
  '((pending "waiting" bold)
    (shown "shown" bold)
    (accepted "accepted" success)
    (automatic "accepted automatically" success)
    (unwritten "not written" warning)
    (rejected "rejected" error)
    (dismissed "closed" shadow)
    (written "written without review" warning)
    (reverted "reverted" shadow)
    (deleted "deleted" shadow))
  "Alist of (STATUS LABEL FACE).")

(defconst gemini-companion-list--header
  (concat "\\<gemini-companion-list-mode-map>"
          "\\[gemini-companion-list-menu] keys "
          " \\[gemini-companion-list-accept] accept "
          " \\[gemini-companion-list-reject] reject "
          " \\[gemini-companion-list-toggle] diff "
          " \\[gemini-companion-list-view] review "
          " \\[gemini-companion-list-toggle-hunk] exclude "
          " \\[gemini-companion-list-comment] comment "
          " \\[gemini-companion-list-revert] revert")
  "Help on the keys, for 80 columns.")

(defvar gemini-companion-list--diffs (make-hash-table :test #'eq
                                                      :weakness 'key)
  "Diff of each edit, a cons (TICK . HUNKS).
TICK is the value of `gemini-companion-list--tick' when the texts were
compared.  HUNKS is `failed' if they could not be compared.")

(defvar gemini-companion-list--texts (make-hash-table :test #'eq
                                                      :weakness 'key)
  "Cache of the displayed diff of each edit, a cons (KEY . TEXT).
KEY is a list of all that TEXT depends on.")

(defvar gemini-companion-list--process nil
  "The process that compares two texts, or nil.")

(defvar gemini-companion-list--timer nil
  "Timer that refreshes the list soon, or nil.")

(defvar-local gemini-companion-list--changes 0
  "Number of changes of this proposal since its diff was shown.
The modification tick of the buffer would also count the changes that
`gemini-companion-hunk-call-with-all' undoes at once.")
(put 'gemini-companion-list--changes 'permanent-local t)

(defvar-local gemini-companion-list--toggled nil
  "Keys of the sections that the user has folded or unfolded.
The key of an edit is its `id'.  The key of a CLI is a list of `cli'
and a name of that CLI; with `earlier' in place of `cli', it is the key
of the earlier edits.  The key of a fold in the diff of an edit is a
cons of the `id' and the fold.")

(defvar gemini-companion-list--starts nil
  "Alist of the key of each section and where it begins.")

;;;; Diffs

(defun gemini-companion-list--tick (edit)
  "Return a value that differs after each change of EDIT."
  (if-let* ((diff (gemini-companion-turn-edit-diff edit)))
      (progn
        (gemini-companion-turn-read edit)
        (cons (gemini-companion-turn-edit-stamp edit)
              (buffer-local-value 'gemini-companion-list--changes
                                  (gemini-companion-diff-proposal-buffer
                                   diff))))
    'ended))

(defun gemini-companion-list--changed (&rest _)
  "Record that the current buffer, a proposal, has changed.
Excluding a hunk does not change the diff, which has all hunks."
  (unless gemini-companion-hunk-toggling
    (setq gemini-companion-list--changes (1+ gemini-companion-list--changes)))
  (gemini-companion-list--soon))
(put 'gemini-companion-list--changed 'permanent-local-hook t)

(defun gemini-companion-list--known-p (edit)
  "Return non-nil if the diff of EDIT is known and up to date."
  (equal (gemini-companion-list--tick edit)
         (car (gethash edit gemini-companion-list--diffs))))

(defun gemini-companion-list--after (edit)
  "Return the text that EDIT proposes, with no hunk excluded, or has written."
  (if-let* ((diff (gemini-companion-turn-edit-diff edit)))
      (gemini-companion-hunk-call-with-all
       (gemini-companion-diff-proposal-buffer diff)
       (lambda () (gemini-companion-diff-proposal-text diff)))
    (gemini-companion-turn-edit-after edit)))

(defun gemini-companion-list--start (edit)
  "Return where the section of EDIT begins, or nil if it has none."
  (cdr (assoc (gemini-companion-turn-edit-id edit)
              gemini-companion-list--starts)))

(defun gemini-companion-list--compare-next ()
  "Compare the texts of the first listed edit whose diff is not known."
  (unless (process-live-p gemini-companion-list--process)
    (when-let* ((edit (seq-find (lambda (edit)
                                  (and (gemini-companion-list--start edit)
                                       (not (gemini-companion-list--known-p
                                             edit))))
                                (gemini-companion-turn-edits))))
      (gemini-companion-list--compare edit))))

(defun gemini-companion-list--compare (edit)
  "Start to compare the texts of EDIT, unless they are too large."
  (when-let* ((diff (gemini-companion-turn-edit-diff edit)))
    (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
      (add-hook 'after-change-functions
                #'gemini-companion-list--changed nil t)))
  (let ((tick (gemini-companion-list--tick edit)))
    (gemini-companion-list--call-with-texts
     edit
     (lambda (old new)
       (if (and (not (eq 'unknown (gemini-companion-turn-edit-before edit)))
                (<= (gemini-companion-text-size new)
                    gemini-companion-list--most-bytes)
                (executable-find diff-command))
           (setq gemini-companion-list--process
                 (gemini-companion-hunk-compare
                  old new
                  (lambda (hunks)
                    (puthash edit (cons tick hunks)
                             gemini-companion-list--diffs)
                    (gemini-companion-list--compare-next)
                    (gemini-companion-list--soon))))
         (puthash edit (cons tick 'failed) gemini-companion-list--diffs)
         (gemini-companion-list--soon))))))

(defun gemini-companion-list--call-with-texts (edit function)
  "Call FUNCTION with buffers of the texts before and after EDIT.
The texts are decoded as the CLI reads them."
  (let ((before (gemini-companion-turn-edit-before edit))
        (after (gemini-companion-list--after edit)))
    (with-temp-buffer
      (when (stringp before)
        (insert (gemini-companion-text-plain
                 (replace-regexp-in-string
                  "[\x3fff80-\x3fffff]" "\uFFFD"
                  (decode-coding-string before 'utf-8-unix)))))
      (let ((old (current-buffer)))
        (with-temp-buffer
          (insert (gemini-companion-text-plain after))
          (funcall function old (current-buffer)))))))

;;;; Sections

(defun gemini-companion-list--groups ()
  "Return a list (SESSION CLIENT . EDITS) for each CLI.
The connected CLIs come first, then others with edits."
  (let ((groups (mapcar (lambda (session)
                          (list session (plist-get session :client)))
                        (gemini-companion-sessions))))
    (dolist (edit (gemini-companion-turn-edits))
      (let ((group (seq-find (pcase-lambda (`(,session ,client . ,_))
                               (gemini-companion-turn-same-p
                                edit session client))
                             groups)))
        (unless group
          (setq group (list (gemini-companion-turn-edit-session edit)
                            (gemini-companion-turn-edit-client edit))
                groups (append groups (list group))))
        (nconc group (list edit))))
    groups))

(defun gemini-companion-list--unfolded-p (key)
  "Return non-nil if the section of KEY is unfolded.
At first only the sections of CLIs are."
  (if (eq 'cli (car-safe key))
      (not (member key gemini-companion-list--toggled))
    (member key gemini-companion-list--toggled)))

(defun gemini-companion-list--insert (item &rest texts)
  "Insert TEXTS as a line, and record ITEM, its description.
ITEM is a plist with the `:key' of the section, the `:session', the
`:edit', and `:stop', non-nil if `gemini-companion-list-next' stops at
the line.  In a diff it also has the `:line', a cons of the numbers of
the line before and after the edit; the `:place' of a comment on it; the
`:block' of changed lines; and the key of the `:fold'."
  (let ((beg (point))
        (key (plist-get item :key)))
    (apply #'insert texts)
    (unless (bolp) (insert "\n"))
    (unless (assoc key gemini-companion-list--starts)
      (push (cons key beg) gemini-companion-list--starts))
    (put-text-property beg (point) 'gemini-companion-list-item item)))

(defun gemini-companion-list--insert-all ()
  "Insert the sections of all CLIs."
  (setq gemini-companion-list--starts nil)
  (if-let* ((groups (gemini-companion-list--groups)))
      (dolist (group groups)
        (apply #'gemini-companion-list--insert-cli group))
    (insert (propertize "No CLI is connected\n" 'face 'shadow))))

(defun gemini-companion-list--insert-cli (session client &rest edits)
  "Insert the section of SESSION of CLIENT with EDITS."
  (let* ((name (or (plist-get session :id) client))
         (key (list 'cli name))
         (now (seq-remove #'gemini-companion-turn-edit-earlier edits))
         (earlier (seq-filter #'gemini-companion-turn-edit-earlier edits)))
    (gemini-companion-list--insert
     (list :key key :stop t :session session)
     (propertize (if session
                     (gemini-companion-session-name session)
                   (or (gemini-companion-clients-get client :title) "A CLI"))
                 'face 'font-lock-keyword-face)
     "  " (gemini-companion-list--summary session now))
    (when (gemini-companion-list--unfolded-p key)
      (gemini-companion-list--insert-edits now)
      (when earlier
        (let ((key (list 'earlier name)))
          (gemini-companion-list--insert
           (list :key key :stop t :session session)
           (propertize (format "  %d earlier" (length earlier)) 'face 'shadow))
          (when (gemini-companion-list--unfolded-p key)
            (gemini-companion-list--insert-edits earlier)))))))

(defun gemini-companion-list--summary (session edits)
  "Return a text with the number of EDITS of SESSION in each state."
  (string-join
   (delq nil
         `(,(and session
                 (not (gemini-companion-session-connected-p session))
                 "disconnected")
           ,(and session
                 (gemini-companion-auto-on-p session)
                 (propertize "auto-accept" 'face 'warning))
           ,@(mapcar
              (pcase-lambda (`(,status ,label ,_))
                (let ((count (seq-count
                              (lambda (edit)
                                (eq status
                                    (gemini-companion-turn-edit-status edit)))
                              edits)))
                  (and (< 0 count) (format "%d %s" count label))))
              gemini-companion-list--labels)
           ,(unless edits "no edits")))
   ", "))

(defun gemini-companion-list--insert-edits (edits)
  "Insert EDITS, with their diffs where these are unfolded."
  (let ((width (apply #'max 0 (mapcar (lambda (edit)
                                        (length (gemini-companion-list--label
                                                 edit)))
                                      edits))))
    (dolist (edit edits)
      (gemini-companion-list--insert-edit edit width))))

(defun gemini-companion-list--label (edit)
  "Return the state of EDIT for the user."
  (pcase-let ((`(,label ,face)
               (alist-get (gemini-companion-turn-edit-status edit)
                          gemini-companion-list--labels)))
    (propertize label 'face face)))

(defun gemini-companion-list--insert-edit (edit width)
  "Insert the line of EDIT, with its state padded to WIDTH.
If EDIT is unfolded, insert its diff, too."
  (let* ((key (gemini-companion-turn-edit-id edit))
         (item (list :key key :edit edit
                     :session (gemini-companion-turn-edit-session edit)))
         (remarks (gemini-companion-list--remarks edit))
         (window (get-buffer-window nil t))
         (columns (- (if window (window-width window) 80)
                     width 16 (length remarks))))
    (gemini-companion-list--insert
     (append '(:stop t) item)
     (string-pad (concat "  " (gemini-companion-list--label edit)) (+ 2 width))
     (format "%10s  " (gemini-companion-list--lines edit))
     (let ((name (gemini-companion-turn-name edit (max 16 columns))))
       (add-face-text-property 0 (length name) 'bold 'append name)
       name)
     (propertize remarks 'face 'shadow))
    (when (gemini-companion-list--unfolded-p key)
      (gemini-companion-list--insert-diff item edit))))

(defun gemini-companion-list--lines (edit)
  "Return the numbers of lines added and removed by EDIT, a text."
  (let ((diff (gemini-companion-turn-edit-diff edit)))
    (pcase (gethash edit gemini-companion-list--diffs)
      ('nil "...")
      (`(,_ . failed) "?")
      (`(,_ . ,hunks)
       (apply #'gemini-companion-hunk-lines
              (nthcdr 2 (gemini-companion-hunk-counts
                         hunks
                         (and diff (gemini-companion-diff-proposal-buffer
                                    diff)))))))))

(defun gemini-companion-list--remarks (edit)
  "Return a text with further remarks about EDIT."
  (mapconcat
   (lambda (remark) (concat "  " remark))
   (delq nil
         (when-let* ((diff (gemini-companion-turn-edit-diff edit)))
           (let ((excluded (gemini-companion-list--excluded diff))
                 (comments (gemini-companion-diff-comments diff)))
             (list (and excluded (format "%d excluded" (length excluded)))
                   (and comments
                        (format (ngettext "%d comment" "%d comments"
                                          (length comments))
                                (length comments)))
                   (gemini-companion-diff-problem diff)
                   (gemini-companion-diff-note diff)))))
   ""))

(defun gemini-companion-list--excluded (diff)
  "Return the lines at which the excluded hunks of DIFF begin.
They are counted in the proposal with no hunk excluded."
  (gemini-companion-hunk-excluded-lines
   (gemini-companion-diff-proposal-buffer diff)))

;;;; Diff of an edit

(defun gemini-companion-list--insert-diff (item edit)
  "Insert the diff of EDIT, lines with ITEM."
  (let ((hunks (cdr (gethash edit gemini-companion-list--diffs)))
        (last (cdr (gethash edit gemini-companion-list--texts))))
    (cond ((eq hunks 'failed)
           (gemini-companion-list--insert item "    cannot be compared"))
          ((gemini-companion-list--known-p edit)
           (if hunks
               (gemini-companion-list--insert-hunks item edit hunks)
             (gemini-companion-list--insert item "    no difference")))
          (last (insert last))
          (t (gemini-companion-list--insert item "    comparing...")))))

(defun gemini-companion-list--insert-hunks (item edit hunks)
  "Insert HUNKS of EDIT, lines with ITEM."
  (let* ((diff (gemini-companion-turn-edit-diff edit))
         (id (gemini-companion-turn-edit-id edit))
         (excluded (and diff (gemini-companion-list--excluded diff)))
         (comments (and diff (gemini-companion-diff-comments diff)))
         (key (list (gemini-companion-list--tick edit)
                    excluded
                    (copy-tree comments)
                    (seq-filter (lambda (key) (eq id (car-safe key)))
                                gemini-companion-list--toggled)))
         (known (gethash edit gemini-companion-list--texts))
         (beg (point)))
    (if (equal key (car known))
        (insert (cdr known))
      (let ((buffer (current-buffer)))
        (gemini-companion-list--call-with-texts
         edit
         (lambda (old new)
           (with-current-buffer buffer
             (gemini-companion-unified-insert
              (gemini-companion-turn-edit-file edit) old new hunks excluded
              (and diff (gemini-companion-diff-unedited diff))
              (lambda (fold)
                (gemini-companion-list--unfolded-p (cons id fold))))))))
      (gemini-companion-list--complete item beg comments)
      (puthash edit (cons key (buffer-substring beg (point)))
               gemini-companion-list--texts))))

(defun gemini-companion-list--complete (item beg comments)
  "Record the items of the lines of a diff from BEG to point.
Each is ITEM with properties of its own.  Insert COMMENTS after the
lines that they are about."
  (save-restriction
    (narrow-to-region beg (point))
    (goto-char beg)
    (let (last)
      (while (not (eobp))
        (let* ((line (gemini-companion-list--line-item item))
               (block (plist-get line :block))
               (place (plist-get line :place))
               (comment (and place (cdr (assoc place comments)))))
          (put-text-property
           (point) (line-beginning-position 2) 'gemini-companion-list-item
           (append (and block (not (eq block last)) '(:stop t)) line))
          (forward-line)
          (when comment
            (gemini-companion-list--insert
             line (propertize (concat "  >> " comment)
                              'face 'gemini-companion-comment)))
          (setq last block))))))

(defun gemini-companion-list--line-item (item)
  "Return ITEM with the properties of the line of a diff at point.
The place of a removed line is a cons of `before' and its number in the
file; that of any other line is one of `after' and its number in the
proposal."
  (let* ((get (lambda (property) (get-text-property (point) property)))
         (hunk (funcall get 'gemini-companion-hunk))
         (new (funcall get 'gemini-companion-line))
         (old (funcall get 'gemini-companion-old))
         (fold (or (funcall get 'gemini-companion-fold)
                   (funcall get 'gemini-companion-unfolded))))
    (append (and new
                 (list :line (cons (or old (car hunk)) new)
                       :place (if (and hunk old)
                                  (cons 'before old)
                                (cons 'after new))))
            (and hunk (list :block hunk))
            (and fold (list :fold (cons (plist-get item :key) fold)))
            item)))

;;;; Refresh

(defun gemini-companion-list--place (position)
  "Return the place of POSITION, to find it again after a refresh.
It is a list of the key of the section, the number of lines from the
start of the section, the column and the line."
  (save-excursion
    (goto-char position)
    (let* ((key (gemini-companion-list--get :key))
           (start (cdr (assoc key gemini-companion-list--starts))))
      (list key
            (if start (count-lines start (line-beginning-position)) 0)
            (current-column)
            (line-number-at-pos)))))

(defun gemini-companion-list--position (place)
  "Return the position of PLACE, or of its line if the section is gone."
  (pcase-let ((`(,key ,lines ,column ,line) place))
    (save-excursion
      (if-let* ((start (cdr (assoc key gemini-companion-list--starts))))
          (progn
            (goto-char start)
            (forward-line lines)
            ;; The section may have become shorter.
            (while (not (equal key (gemini-companion-list--get :key)))
              (forward-line -1)))
        (goto-char (point-min))
        (forward-line (1- line))
        (when (and (eobp) (not (bobp)))
          (forward-line -1)))
      (move-to-column column)
      (point))))

(defun gemini-companion-list--refresh ()
  "Write the list again; each of its windows stays at the same line."
  (when-let* ((buffer (get-buffer gemini-companion-list--buffer)))
    (with-current-buffer buffer
      (let ((here (gemini-companion-list--place (point)))
            (places (mapcar
                     (lambda (window)
                       (list window
                             (gemini-companion-list--place
                              (window-point window))
                             (count-lines (window-start window)
                                          (window-point window))))
                     (get-buffer-window-list nil nil t))))
        (with-silent-modifications
          (erase-buffer)
          (gemini-companion-list--insert-all))
        (goto-char (gemini-companion-list--position here))
        (pcase-dolist (`(,window ,place ,lines) places)
          (set-window-point window (gemini-companion-list--position place))
          (set-window-start window
                            (save-excursion
                              (goto-char (window-point window))
                              (forward-line (- lines))
                              (point))
                            'noforce))
        (gemini-companion-list--compare-next)))))

(defun gemini-companion-list--soon (&rest _)
  "Refresh the list soon, if it is visible."
  (when (and (not gemini-companion-list--timer)
             (get-buffer-window gemini-companion-list--buffer t))
    (setq gemini-companion-list--timer
          (run-at-time 0.05 nil #'gemini-companion-list--now))))

(defun gemini-companion-list--now ()
  "Refresh the list."
  (setq gemini-companion-list--timer nil)
  (gemini-companion-list--refresh))

;;;; Mode

(define-derived-mode gemini-companion-list-mode special-mode "Gemini-Reviews"
  "Major mode for the edits of each CLI.
The section of each CLI has the edits of its current turn, and below
them a section with its earlier edits.  A new turn begins with the
first edit that arrives when no edit of that CLI is open, and none has
arrived or ended for a minute.

\\{gemini-companion-list-mode-map}"
  ;; A global mode may have turned them on.
  :after-hook (setq display-line-numbers nil)
  (buffer-disable-undo)
  (setq truncate-lines t
        header-line-format (substitute-command-keys
                            gemini-companion-list--header))
  (setq-local revert-buffer-function
              (lambda (&rest _) (gemini-companion-list--refresh)))
  (add-hook 'kill-buffer-hook #'gemini-companion-list--forget nil t)
  (add-hook 'window-buffer-change-functions #'gemini-companion-list--soon nil t)
  (add-hook 'window-size-change-functions #'gemini-companion-list--soon nil t)
  (add-hook 'gemini-companion-turn-changed-hook #'gemini-companion-list--soon)
  (add-hook 'gemini-companion-session-changed-functions
            #'gemini-companion-list--soon)
  (gemini-companion-review-letters-are-keys 'gemini-companion-list-mode))

(defun gemini-companion-list--forget ()
  "Forget the list, as its buffer is being killed."
  (remove-hook 'gemini-companion-turn-changed-hook
               #'gemini-companion-list--soon)
  (remove-hook 'gemini-companion-session-changed-functions
               #'gemini-companion-list--soon)
  (setq gemini-companion-list--starts nil)
  (when gemini-companion-list--process
    (gemini-companion-hunk-cancel gemini-companion-list--process))
  (when gemini-companion-list--timer
    (cancel-timer gemini-companion-list--timer))
  (setq gemini-companion-list--timer nil))

(defun gemini-companion-list-stop ()
  "Close the list."
  (when-let* ((buffer (get-buffer gemini-companion-list--buffer)))
    (kill-buffer buffer))
  (clrhash gemini-companion-list--diffs)
  (clrhash gemini-companion-list--texts))

;;;; Point

(defun gemini-companion-list--get (key)
  "Return the value of KEY of the line at point, or nil."
  (plist-get (get-text-property (line-beginning-position)
                                'gemini-companion-list-item)
             key))

(defun gemini-companion-list--edit ()
  "Return the edit at point, or signal an error."
  (or (gemini-companion-list--get :edit)
      (user-error "No edit on this line")))

(defun gemini-companion-list-diff ()
  "Return the diff of the edit at point, or signal an error."
  (let ((edit (gemini-companion-list--edit)))
    (or (gemini-companion-turn-edit-diff edit)
        (user-error "No review of %s is open: %s"
                    (gemini-companion-turn-name edit)
                    (gemini-companion-list--label edit)))))

(defun gemini-companion-list--session ()
  "Return the session of the line at point, or signal an error."
  (or (gemini-companion-list--get :session)
      (user-error "No CLI on this line")))

(defun gemini-companion-list-diffs ()
  "Return the diffs to be answered at point: one, or all of a CLI."
  (if (gemini-companion-list--get :edit)
      (list (gemini-companion-list-diff))
    (let ((session (gemini-companion-list--session)))
      (or (seq-filter (lambda (diff)
                        (gemini-companion-session-same-p
                         session (gemini-companion-diff-session diff)))
                      (gemini-companion-diffs))
          (user-error "No review of %s is open"
                      (gemini-companion-session-name session))))))

(defun gemini-companion-list--answer (verb function)
  "Call FUNCTION with each diff at point, and go to the next open edit.
If there are several diffs, ask for confirmation with VERB."
  (let ((diffs (gemini-companion-list-diffs)))
    (when (or (null (cdr diffs))
              (y-or-n-p (format "%s %d edits? " verb (length diffs))))
      ;; Some diffs may end while a question is asked.
      (dolist (diff diffs)
        (when (memq diff (gemini-companion-diffs))
          (funcall function diff)))
      (with-current-buffer gemini-companion-list--buffer
        (gemini-companion-list--refresh)
        (gemini-companion-list--go-to-open)))))

(defun gemini-companion-list--go-to-open ()
  "Go to the next edit that awaits an answer, or else to the first one."
  (let ((next (lambda ()
                (gemini-companion-list--find
                 1 #'gemini-companion-list--open-here-p))))
    (when-let* ((place (or (funcall next)
                           (save-excursion
                             (goto-char (point-min))
                             (funcall next)))))
      (goto-char place))))

(defun gemini-companion-list--find (step predicate)
  "Return where the next line begins at which PREDICATE is non-nil, or nil.
STEP is 1, or -1 to search backward."
  (save-excursion
    (let (found)
      (while (and (not found) (zerop (forward-line step)) (not (eobp)))
        (setq found (and (funcall predicate) (point))))
      found)))

(defun gemini-companion-list--open-here-p ()
  "Return non-nil if the line at point is that of an edit to be answered."
  (and (gemini-companion-list--get :stop)
       (not (gemini-companion-list--get :block))
       (when-let* ((edit (gemini-companion-list--get :edit)))
         (gemini-companion-turn-edit-diff edit))))

;;;; Menu state

;; A user error of these functions means nil in a menu.

(defun gemini-companion-list-line-p ()
  "Return non-nil if a line of a proposal is at point."
  (and (gemini-companion-list-diff)
       (gemini-companion-list--get :line)))

(defun gemini-companion-list-hunk-p ()
  "Return the hunk of a proposal at point, or nil."
  (and (gemini-companion-list-diff)
       (gemini-companion-list--get :block)))

(defun gemini-companion-list-excluded-p ()
  "Return non-nil if the hunk at point is excluded."
  (when-let* ((hunk (gemini-companion-list-hunk-p)))
    (memql (nth 2 hunk)
           (gemini-companion-list--excluded (gemini-companion-list-diff)))))

(defun gemini-companion-list-revertible-p ()
  "Return non-nil if the edit at point can be reverted."
  (gemini-companion-turn-check-revert (gemini-companion-list--edit))
  t)

(defun gemini-companion-list-auto-p ()
  "Return non-nil if auto-accept is on for the CLI at point."
  (when-let* ((session (gemini-companion-list--get :session)))
    (gemini-companion-auto-on-p session)))

;;;; Commands

(defun gemini-companion-list ()
  "List the edits of each CLI: those that await an answer, and others.
In a buffer of a review, go to the line of that review."
  (interactive)
  (with-current-buffer (get-buffer-create gemini-companion-list--buffer)
    (unless (derived-mode-p 'gemini-companion-list-mode)
      (gemini-companion-list-mode)))
  (let ((diff gemini-companion-diff-here)
        (free (null (gemini-companion-windows-place))))
    (pop-to-buffer gemini-companion-list--buffer
                   '((display-buffer-reuse-window
                      gemini-companion-windows-cover)))
    (when free
      (gemini-companion-list--enlarge))
    (gemini-companion-list--refresh)
    (when diff
      (gemini-companion-list--go-to diff)))
  (when (and (bobp) (not (gemini-companion-list--open-here-p)))
    (gemini-companion-list--go-to-open)))

(defun gemini-companion-list--go-to (diff)
  "Go to the line of the edit of DIFF, unless point is in its section."
  (when-let* ((edit (seq-find (lambda (edit)
                                (eq diff (gemini-companion-turn-edit-diff
                                          edit)))
                              (gemini-companion-turn-edits)))
              (start (gemini-companion-list--start edit)))
    (unless (eq edit (gemini-companion-list--get :edit))
      (goto-char start))))

(defun gemini-companion-list--enlarge ()
  "Give the selected window up to two thirds of the height of its frame.
Quitting it restores the height."
  (let ((lines (- (min gemini-companion-list--lines
                       (/ (* 2 (window-total-height (frame-root-window))) 3))
                  (window-total-height))))
    (when (and (< 0 lines) (window-combined-p))
      (window-resize nil (window-sizable nil lines)))))

(defun gemini-companion-review (&optional list)
  "Show the next proposal that waits, or select the one that is shown.
If one of its windows was deleted, or the terminal beside it, lay out
the windows again.  With prefix argument LIST, or if several proposals
wait and none is shown, list them."
  (interactive "P")
  (let ((diffs (gemini-companion-diffs))
        (shown (gemini-companion-diff-shown)))
    (cond (list (gemini-companion-list))
          (shown (gemini-companion-diff-view shown))
          ((cdr diffs) (gemini-companion-list))
          (diffs (gemini-companion-diff-view (car diffs)))
          (t (user-error "No proposal waits for an answer")))))

(defun gemini-companion-list-toggle ()
  "Unfold the section at point, or fold it again.
In a diff, show the lines that are folded at point, or fold unchanged
lines again."
  (interactive nil gemini-companion-list-mode)
  (let* ((fold (gemini-companion-list--get :fold))
         (key (or fold
                  (gemini-companion-list--get :key)
                  (user-error "No section here")))
         (lines (count-lines (point-min) (point-max))))
    (setq gemini-companion-list--toggled
          (if (member key gemini-companion-list--toggled)
              (delete key gemini-companion-list--toggled)
            (cons key gemini-companion-list--toggled)))
    (if (not fold)
        (goto-char (cdr (assoc key gemini-companion-list--starts)))
      (while (equal fold (gemini-companion-list--get :fold))
        (forward-line -1))
      (forward-line))
    (gemini-companion-list--refresh)
    (gemini-companion-list--reveal
     (- (count-lines (point-min) (point-max)) lines))))

(defun gemini-companion-list--reveal (count)
  "Scroll to show COUNT lines after the line at point, or as many as fit."
  (let* ((above (count-lines (window-start) (line-beginning-position)))
         (hidden (- (+ above 1 count) (window-body-height))))
    (when (and (< 0 count) (< 0 hidden))
      (set-window-start nil (save-excursion
                              (goto-char (window-start))
                              (forward-line (min above hidden))
                              (point))))))

(defun gemini-companion-list-next (&optional count)
  "Go to the next line of a CLI, edit or hunk, or COUNT such lines on."
  (interactive "p" gemini-companion-list-mode)
  (let ((step (if (< count 0) -1 1)))
    (dotimes (_ (abs count))
      (goto-char (or (gemini-companion-list--find
                      step (lambda () (gemini-companion-list--get :stop)))
                     (user-error "No more edits or hunks"))))))

(defun gemini-companion-list-previous (&optional count)
  "Go to the previous line of a CLI, edit or hunk, or COUNT lines back."
  (interactive "p" gemini-companion-list-mode)
  (gemini-companion-list-next (- count)))

(defun gemini-companion-list-view ()
  "Review the proposal at point, at the hunk at point.
If the edit at point has ended, visit its file at that line instead."
  (interactive nil gemini-companion-list-mode)
  (let ((edit (gemini-companion-list--get :edit)))
    (cond ((null edit) (gemini-companion-list-toggle))
          ((gemini-companion-turn-edit-diff edit)
           (gemini-companion-list--review))
          (t (gemini-companion-list--visit
              edit (gemini-companion-list--get :line))))))

(defun gemini-companion-list--review ()
  "Show and select the review at point, at the hunk at point."
  (let ((diff (gemini-companion-list-diff))
        (line (gemini-companion-list--get :line)))
    (if line
        (gemini-companion-review-go-to diff (cdr line))
      (gemini-companion-diff-view diff))))

(defun gemini-companion-list-edit ()
  "Go to the proposal at point to edit it, at the hunk at point."
  (interactive nil gemini-companion-list-mode)
  (gemini-companion-list--review)
  (gemini-companion-review-edit))

(defun gemini-companion-list-switch-view ()
  "Show the review at point in the other view, at the hunk at point."
  (interactive nil gemini-companion-list-mode)
  (gemini-companion-list--review)
  (gemini-companion-review-switch-view))

(defun gemini-companion-list--show-file (file)
  "Visit FILE in another window, but hide no terminal of a CLI and no review."
  ;; Otherwise Emacs asks whether to read a file again that was just written.
  (gemini-companion-revert file)
  (pop-to-buffer (find-file-noselect file)
                 (if (gemini-companion-windows-place)
                     '((display-buffer-reuse-window
                        display-buffer-below-selected)
                       (inhibit-same-window . t))
                   t)))

(defun gemini-companion-list--visit (edit numbers)
  "Visit the file of EDIT at the line of its diff with NUMBERS, if non-nil."
  (let ((file (gemini-companion-turn-edit-file edit)))
    (unless (file-exists-p file)
      (user-error "%s does not exist" (gemini-companion-turn-name edit)))
    (gemini-companion-list--show-file file)
    (when numbers
      (goto-char (gemini-companion-hunk-line
                  (if (memq (gemini-companion-turn-edit-state edit)
                            '(rejected unwritten))
                      (car numbers)
                    (cdr numbers)))))))

(defun gemini-companion-list-accept ()
  "Accept the proposal at point, or all proposals of the CLI at point."
  (interactive nil gemini-companion-list-mode)
  (gemini-companion-list--answer "Accept" #'gemini-companion-diff-accept))

(defun gemini-companion-list-reject ()
  "Reject the proposal at point, or all proposals of the CLI at point.
Comments on their lines are sent as the reason."
  (interactive nil gemini-companion-list-mode)
  (gemini-companion-list--answer
   "Reject"
   (lambda (diff)
     (if (gemini-companion-diff-comments diff)
         (gemini-companion-diff-reject-with-reason diff "")
       (gemini-companion-diff-reject diff)))))

(defun gemini-companion-list-reject-with-reason ()
  "Reject the proposal at point with a reason and the comments on its lines."
  (interactive nil gemini-companion-list-mode)
  (gemini-companion-diff-reject-with-reason (gemini-companion-list-diff))
  (gemini-companion-list--refresh))

(defun gemini-companion-list-toggle-hunk ()
  "Exclude the hunk at point from the proposal, or restore it."
  (interactive nil gemini-companion-list-mode)
  (let ((diff (gemini-companion-list-diff))
        (edit (gemini-companion-list--edit))
        (block (gemini-companion-list--get :block)))
    (unless block
      (user-error "No hunk here"))
    (unless (gemini-companion-list--known-p edit)
      (gemini-companion-list--refresh)
      (user-error "The proposal has changed; its diff is being updated"))
    ;; Ediff does not compare again after each edit.
    (gemini-companion-review-set-hunks
     diff (cdr (gethash edit gemini-companion-list--diffs)))
    (message (if (gemini-companion-review-toggle diff block)
                 "Hunk excluded"
               "Hunk restored"))
    (gemini-companion-list--refresh)))

(defun gemini-companion-list-comment ()
  "Comment on the line at point; an empty text deletes the comment.
If the proposal is rejected, the comment becomes part of the reason."
  (interactive nil gemini-companion-list-mode)
  (let* ((diff (gemini-companion-list-diff))
         (place (or (gemini-companion-list--get :place)
                    (user-error "No line of the file here")))
         (comment (gemini-companion-diff-ask
                   diff
                   (lambda ()
                     (read-string
                      (format "Comment on line %d: " (cdr place))
                      (cdr (assoc place
                                  (gemini-companion-diff-comments diff))))))))
    (when comment
      (setf (alist-get place (gemini-companion-diff-comments diff)
                       nil 'remove #'equal)
            (and (not (string-blank-p comment)) comment))
      (with-current-buffer gemini-companion-list--buffer
        (gemini-companion-list--refresh)))))

(defun gemini-companion-list-auto-accept ()
  "Turn auto-accept on or off for the CLI at point."
  (interactive nil gemini-companion-list-mode)
  (gemini-companion-auto-accept
   (gemini-companion-auto-confirm (gemini-companion-list--session)))
  (gemini-companion-list--refresh))

(defun gemini-companion-list-revert ()
  "Revert the edit at point: restore the previous text in the file's buffer.
The buffer is not saved.  If the file was new, delete it."
  (interactive nil gemini-companion-list-mode)
  (let* ((edit (gemini-companion-list--edit))
         (name (gemini-companion-turn-name edit)))
    (gemini-companion-turn-check-revert edit)
    (when (y-or-n-p (if (eq 'new (gemini-companion-turn-edit-before edit))
                        (format "%s was new; delete it? " name)
                      (format "Revert the edit of %s? " name)))
      (gemini-companion-turn-revert edit)
      (gemini-companion-list--soon)
      (when (eq 'reverted (gemini-companion-turn-edit-state edit))
        (gemini-companion-list--show-file
         (gemini-companion-turn-edit-file edit))))))

(provide 'gemini-companion-list)
;;; gemini-companion-list.el ends here
