;;; gemini-companion-list.el --- The edits of each CLI in a buffer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The edits of each CLI, to be answered, commented and reverted from there: an
;; outline of CLIs and edits, with the diff of an edit below its heading.  When
;; something changes while the buffer is visible, the lines that differ are
;; written again.  The program diff finds the hunks in the background, for one
;; edit after another; the code of the unified view inserts them when they are
;; visible.

;;; Code:

(require 'gemini-companion-arrival)
(require 'gemini-companion-auto)
(require 'gemini-companion-clients)
(require 'gemini-companion-diff)
(require 'gemini-companion-hunk)
(require 'gemini-companion-name)
(require 'gemini-companion-notify)
(require 'gemini-companion-revert)
(require 'gemini-companion-review)
(require 'gemini-companion-send)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-text)
(require 'gemini-companion-edits)
(require 'gemini-companion-unified)
(require 'gemini-companion-windows)
(require 'outline)
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

(defvar gemini-companion-list--process nil
  "The process that compares two texts, or nil.")

(defvar gemini-companion-list--timer nil
  "Timer that refreshes the list soon, or nil.")

(defconst gemini-companion-list--hooks
  '(gemini-companion-edits-changed-hook
    gemini-companion-session-changed-functions
    gemini-companion-state-functions)
  "Hooks that run when there is something new to list.")

;;;; Hunks

(defun gemini-companion-list--tick (edit)
  "Return a value that differs after each change of the texts of EDIT."
  (if-let* ((diff (gemini-companion-edit-diff edit)))
      (progn
        (gemini-companion-edits-read edit)
        (cons (gemini-companion-edit-stamp edit)
              (buffer-chars-modified-tick
               (gemini-companion-diff-proposal-buffer diff))))
    'ended))

(defun gemini-companion-list--known-p (edit)
  "Return non-nil if the hunks of EDIT are known and up to date."
  (equal (gemini-companion-list--tick edit)
         (car (gemini-companion-edit-compared edit))))

(defun gemini-companion-list--compare-next ()
  "Compare the texts of the first edit whose hunks are not known."
  ;; One that has ended may not have reported its end.
  (when-let* (((null gemini-companion-list--process))
              (buffer (get-buffer gemini-companion-list--buffer))
              (place
               (with-current-buffer buffer
                 (gemini-companion-list--section
                  (lambda (item)
                    (when-let* ((edit (plist-get item :edit)))
                      (not (gemini-companion-list--known-p edit))))))))
    (gemini-companion-list--compare
     (plist-get (get-text-property place 'gemini-companion-list-item buffer)
                :edit))))

(defun gemini-companion-list--compare (edit)
  "Start to compare the texts of EDIT, unless they are too large."
  (when-let* ((diff (gemini-companion-edit-diff edit)))
    (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
      (add-hook 'after-change-functions
                #'gemini-companion-list--schedule-refresh nil t)))
  (let ((compared (apply-partially #'gemini-companion-list--compared edit
                                   (gemini-companion-list--tick edit))))
    (gemini-companion-edits-call-with-texts
     edit
     (lambda (old new)
       (if (and (not (eq 'unknown (gemini-companion-edit-before edit)))
                (<= (gemini-companion-text-size new)
                    gemini-companion-list--most-bytes)
                (executable-find diff-command))
           (setq gemini-companion-list--process
                 (gemini-companion-hunk-compare
                  old new (lambda (hunks)
                            (setq gemini-companion-list--process nil)
                            (funcall compared hunks)
                            (gemini-companion-list--compare-next))))
         (funcall compared 'failed))))))

(defun gemini-companion-list--compared (edit tick hunks)
  "Record HUNKS of EDIT, or `failed', found when its tick was TICK."
  (setf (gemini-companion-edit-compared edit) (cons tick hunks))
  (when-let* ((diff (gemini-companion-edit-diff edit))
              ((listp hunks))
              ((gemini-companion-list--known-p edit)))
    (gemini-companion-edits-call-with-texts
     edit
     (lambda (old _)
       (gemini-companion-review-set-hunks diff hunks old))))
  (gemini-companion-list--schedule-refresh))

(defun gemini-companion-list--groups ()
  "Return a list (SESSION CLIENT . EDITS) for each CLI.
They are in the order of their first edits; CLIs without edits follow."
  (let* ((sessions (gemini-companion-sessions))
         groups)
    (dolist (edit (gemini-companion-edits))
      (let ((group (seq-find (pcase-lambda (`(,session ,client . ,_))
                               (gemini-companion-edits-same-p
                                edit session client))
                             groups)))
        (unless group
          (let ((session (gemini-companion-edit-session edit)))
            (setq group (list (or (gemini-companion-list--same session sessions)
                                  session)
                              (gemini-companion-edit-client edit))
                  groups (append groups (list group)))))
        (nconc group (list edit))))
    (append groups
            (mapcar (lambda (session)
                      (list session (plist-get session :client)))
                    (seq-remove (lambda (session)
                                  (gemini-companion-list--same
                                   session (mapcar #'car groups)))
                                sessions)))))

(defun gemini-companion-list--same (session sessions)
  "Return the one of SESSIONS that is of the same CLI as SESSION, or nil."
  (seq-find (apply-partially #'gemini-companion-session-same-p session)
            sessions))

(defun gemini-companion-list--headings ()
  "Return the headings of the list, conses (ITEM . TEXT).
ITEM is a plist with the `:key' and the `:level' of the section, the
`:session' of the CLI, and the `:edit', if it is one, or the `:edits' of
a turn; for a CLI, that is the last one."
  (or (mapcan (lambda (group)
                (apply #'gemini-companion-list--cli-headings group))
              (gemini-companion-list--groups))
      (list (cons '(:key none :level 1)
                  (propertize "No CLI is connected" 'face 'shadow)))))

(defun gemini-companion-list--cli-headings (session client &rest edits)
  "Return the headings of SESSION of CLIENT with EDITS."
  (let ((turns (gemini-companion-list--turns edits)))
    (cons
     (cons (list :key (list 'cli (or (plist-get session :pid)
                                     (plist-get session :id)
                                     client))
                 :level 1 :session session :edits (car turns))
           (concat (propertize
                    (cond (session (gemini-companion-session-name session))
                          ((gemini-companion-clients-get client :title))
                          (t "A CLI"))
                    'face 'font-lock-keyword-face)
                   "  " (gemini-companion-list--summary session (car turns))))
     (mapcan (lambda (turn)
               (gemini-companion-list--turn-headings
                turn session (eq turn (car turns))))
             turns))))

(defun gemini-companion-list--turns (edits)
  "Return EDITS as lists, one for each turn, the last one first."
  (let (turns)
    (dolist (edit edits turns)
      (if-let* ((turn (seq-find (lambda (turn)
                                  (eq (gemini-companion-edit-turn edit)
                                      (gemini-companion-edit-turn (car turn))))
                                turns)))
          (nconc turn (list edit))
        (push (list edit) turns)))))

(defun gemini-companion-list--turn-headings (edits session now)
  "Return the headings of EDITS of SESSION, a turn.
NOW is non-nil if it is the last one.  If nothing is known about that,
its edits have no other heading than the one of the CLI."
  (if (and now (not (gemini-companion-turn-p
                     (gemini-companion-edit-turn (car edits)))))
      (gemini-companion-list--edit-headings edits session 2)
    (cons
     (cons (list :key (list (if now 'turn 'earlier)
                            (gemini-companion-edit-id (car edits)))
                 :level 2 :session session :edits edits)
           (gemini-companion-list--turn-line edits))
     (gemini-companion-list--edit-headings edits session 3))))

(defun gemini-companion-list--turn-line (edits)
  "Return the heading of EDITS, a turn.
It has the time, the number of files, the lines, how long the turn took,
and the prompt, as far as that is known."
  (let* ((turn (gemini-companion-edit-turn (car edits)))
         (known (gemini-companion-turn-p turn))
         (began (if known
                    (gemini-companion-turn-began turn)
                  (gemini-companion-edit-time (car edits))))
         (ended (and known (gemini-companion-turn-ended turn)))
         (files (length (seq-uniq (mapcar #'gemini-companion-edit-file edits))))
         (window (get-buffer-window nil t))
         (facts (concat
                 (format-time-string "  %H:%M  " began)
                 (format (ngettext "%d file  " "%d files  " files) files)
                 (gemini-companion-list--total edits)
                 (and ended "  ")
                 (and ended (format-seconds "%hh %mm %z%ss" (- ended began))))))
    (concat (propertize facts 'face 'shadow)
            (when-let* ((prompt (and known (gemini-companion-turn-prompt turn))))
              (concat "  "
                      (gemini-companion-name-shown
                       prompt
                       (max 16 (- (if window (window-width window) 80)
                                  (length facts) 3))))))))

(defun gemini-companion-list--summary (session edits)
  "Return a text with the number of EDITS of SESSION in each state."
  (string-join
   (delq nil
         `(,(and session
                 (not (gemini-companion-session-connected-p session))
                 "disconnected")
           ,(and session (gemini-companion-notify-state session))
           ,(and session
                 (gemini-companion-auto-on-p session)
                 (propertize "auto-accept" 'face 'warning))
           ,@(mapcar
              (pcase-lambda (`(,status ,label ,_))
                (let ((count (seq-count
                              (lambda (edit)
                                (eq status
                                    (gemini-companion-edit-status edit)))
                              edits)))
                  (and (< 0 count) (format "%d %s" count label))))
              gemini-companion-list--labels)
           ,(unless edits "no edits")))
   ", "))

(defun gemini-companion-list--edit-headings (edits session level)
  "Return the headings of EDITS of SESSION, at LEVEL."
  (let ((width (apply #'max 0 (mapcar (lambda (edit)
                                        (length (gemini-companion-list--label
                                                 edit)))
                                      edits))))
    (mapcar (lambda (edit)
              (cons (list :key (gemini-companion-edit-id edit) :level level
                          :session session :edit edit)
                    (gemini-companion-list--edit-line edit width)))
            edits)))

(defun gemini-companion-list--label (edit)
  "Return the state of EDIT for the user."
  (pcase-let ((`(,label ,face)
               (alist-get (gemini-companion-edit-status edit)
                          gemini-companion-list--labels)))
    (propertize label 'face face)))

(defun gemini-companion-list--edit-line (edit width)
  "Return the heading of EDIT, with its state padded to WIDTH."
  (let* ((remarks (gemini-companion-list--remarks edit))
         (window (get-buffer-window nil t))
         (columns (- (if window (window-width window) 80)
                     width 16 (length remarks)))
         (name (gemini-companion-edits-name edit (max 16 columns))))
    (add-face-text-property 0 (length name) 'bold 'append name)
    (concat (string-pad (concat "  " (gemini-companion-list--label edit))
                        (+ 2 width))
            (format "%10s  " (gemini-companion-list--lines edit))
            name
            (propertize remarks 'face 'shadow))))

(defun gemini-companion-list--lines (edit)
  "Return the numbers of lines added and removed by EDIT, a text."
  (pcase (gemini-companion-edit-compared edit)
    ('nil "...")
    (`(,_ . failed) "?")
    (_ (apply #'gemini-companion-hunk-lines
              (gemini-companion-list--counts edit)))))

(defun gemini-companion-list--counts (edit)
  "Return the numbers of lines added and removed by EDIT, a list, or nil."
  (pcase (gemini-companion-edit-compared edit)
    (`(,_ . ,(and hunks (pred listp)))
     (let ((diff (gemini-companion-edit-diff edit)))
       (nthcdr 2 (gemini-companion-hunk-counts
                  hunks
                  (and diff (gemini-companion-diff-proposal-buffer diff))))))))

(defun gemini-companion-list--written (edits)
  "Return those of EDITS that have changed their file."
  (seq-filter (lambda (edit)
                (memq (gemini-companion-edit-state edit)
                      '(accepted automatic written)))
              edits))

(defun gemini-companion-list--total (edits)
  "Return the numbers of lines added and removed by EDITS, a text.
Only what was written is counted."
  (let ((counts (mapcar #'gemini-companion-list--counts
                        (gemini-companion-list--written edits))))
    (unless (or (null counts) (memq nil counts))
      (gemini-companion-hunk-lines (apply #'+ (mapcar #'car counts))
                                   (apply #'+ (mapcar #'cadr counts))))))

(defun gemini-companion-list--remarks (edit)
  "Return a text with further remarks about EDIT."
  (mapconcat
   (lambda (remark) (concat "  " remark))
   (delq nil
         (when-let* ((diff (gemini-companion-edit-diff edit)))
           (let ((excluded (gemini-companion-list--excluded diff))
                 (comments (gemini-companion-diff-comments diff)))
             (list (and excluded (format "%d excluded" (length excluded)))
                   (and comments
                        (format (ngettext "%d comment" "%d comments"
                                          (length comments))
                                (length comments)))
                   (gemini-companion-diff-problem diff)
                   (gemini-companion-diff-objection diff)))))
   ""))

(defun gemini-companion-list--excluded (diff)
  "Return the excluded hunks of DIFF, or nil if that is nil."
  (and diff
       (gemini-companion-hunk-excluded
        (gemini-companion-diff-proposal-buffer diff))))

;;;; Sections

;; All lines of a section have the same item as a text property.

(defun gemini-companion-list--get (key)
  "Return the value of KEY in the item of the line at point, or nil."
  (plist-get (get-text-property (line-beginning-position)
                                'gemini-companion-list-item)
             key))

(defun gemini-companion-list--heading-p ()
  "Return non-nil if the line at point is a heading."
  (get-text-property (line-beginning-position) 'gemini-companion-list-heading))

(defun gemini-companion-list--end (position)
  "Return where the section at POSITION ends."
  (next-single-property-change position 'gemini-companion-list-item
                               nil (point-max)))

(defun gemini-companion-list--section (predicate)
  "Return where the first section begins for which PREDICATE is non-nil.
PREDICATE is called with the item, and with point there.  Return nil if
there is none."
  (save-excursion
    (goto-char (point-min))
    (while (not (or (eobp)
                    (funcall predicate
                             (get-text-property (point)
                                                'gemini-companion-list-item))))
      (goto-char (gemini-companion-list--end (point))))
    (unless (eobp)
      (point))))

(defun gemini-companion-list--refresh ()
  "Write the list again; point, windows and what is folded stay."
  (when-let* ((buffer (get-buffer gemini-companion-list--buffer)))
    (with-current-buffer buffer
      (let ((text (mapconcat #'gemini-companion-list--section-text
                             (gemini-companion-list--headings) "")))
        (with-silent-modifications
          (gemini-companion-text-replace text)
          ;; Lines that are alike still have their last properties.
          (pcase-dolist (`(,beg ,end ,properties) (object-intervals text))
            (set-text-properties (1+ beg) (1+ end) properties))))
      ;; Emacs 29 has declared it obsolete, and has nothing in its place.
      (with-suppressed-warnings ((obsolete outline-view-change-hook))
        (let ((outline-view-change-hook nil))
          (save-excursion
            (gemini-companion-list--fold))))
      (gemini-companion-list--compare-next))))

(defun gemini-companion-list--section-text (heading)
  "Return the text of the section of HEADING, a cons (ITEM . TEXT).
What was shown of it stays; otherwise only the sections of a CLI and of
its last turn are."
  (pcase-let* ((`(,item . ,text) heading)
               (key (plist-get item :key))
               (edit (plist-get item :edit))
               (start (gemini-companion-list--section
                       (lambda (item) (equal key (plist-get item :key)))))
               (end (and start (save-excursion
                                 (goto-char start)
                                 (line-end-position))))
               (shown (if start
                          (not (outline-invisible-p end))
                        (memq (car-safe key) '(cli turn)))))
    ;; The regexp of headings matches no other character.
    (put-text-property 0 1 'syntax-table (string-to-syntax "|") text)
    (propertize
     (concat (propertize text 'gemini-companion-list-heading t)
             "\n"
             (and edit
                  (gemini-companion-list--body
                   edit
                   (if start
                       (buffer-substring (1+ end)
                                         (gemini-companion-list--end start))
                     "    comparing...\n")
                   shown)))
     'gemini-companion-list-item (append (list :shown shown) item))))

(defun gemini-companion-list--fold ()
  "Hide what is not to be shown."
  (remove-overlays (point-min) (point-max) 'invisible 'outline)
  (goto-char (point-min))
  (while (not (eobp))
    (let ((end (gemini-companion-list--end (point))))
      (cond ((gemini-companion-list--get :shown))
            ((gemini-companion-list--get :edit)
             (outline-flag-region (line-end-position) (1- end) t))
            (t (outline-hide-subtree)))
      (goto-char end))))

;;;; Diffs

(defun gemini-companion-list--body (edit last shown)
  "Return the text below the heading of EDIT.
That is LAST if it is up to date, or if SHOWN is nil."
  (let* ((diff (gemini-companion-edit-diff edit))
         (folds (gemini-companion-list--folds last))
         (state (list (gemini-companion-edit-compared edit)
                      folds
                      (gemini-companion-list--excluded diff)
                      (and diff (gemini-companion-diff-comments diff)))))
    (if (and shown
             (gemini-companion-list--known-p edit)
             (not (equal state (get-text-property
                                0 'gemini-companion-list-state last))))
        (propertize (gemini-companion-list--diff-text edit folds)
                    'gemini-companion-list-state state)
      last)))

(defun gemini-companion-list--folds (text)
  "Return the folds whose lines are shown in TEXT, a diff."
  (delete-dups
   (delq nil (mapcar (lambda (interval)
                       (plist-get (nth 2 interval) 'gemini-companion-unfolded))
                     (object-intervals text)))))

(defun gemini-companion-list--diff-text (edit folds)
  "Return the diff of EDIT, with the lines of FOLDS."
  (let ((hunks (cdr (gemini-companion-edit-compared edit)))
        (diff (gemini-companion-edit-diff edit)))
    (pcase hunks
      ('nil "    no difference\n")
      ('failed "    cannot be compared\n")
      (_
       (gemini-companion-edits-call-with-texts
        edit
        (lambda (old new)
          (with-temp-buffer
            (gemini-companion-unified-insert
             (gemini-companion-edit-file edit) old new hunks
             (gemini-companion-list--excluded diff)
             (and diff
                  (gemini-companion-diff-edited-p diff)
                  (gemini-companion-diff-proposed-text diff))
             folds)
            (when diff
              (gemini-companion-list--insert-comments
               (gemini-companion-diff-comments diff)))
            (buffer-string))))))))

(defun gemini-companion-list--insert-comments (comments)
  "Insert COMMENTS after the lines of this buffer that they are about."
  (goto-char (point-min))
  (while (not (eobp))
    (let ((comment (cdr (assoc (gemini-companion-list--place) comments)))
          (properties
           (mapcan (lambda (property)
                     (list property (get-text-property (point) property)))
                   '(gemini-companion-hunk gemini-companion-line
                     gemini-companion-old gemini-companion-unfolded))))
      (forward-line)
      (when comment
        (insert (apply #'propertize (concat "  >> " comment "\n")
                       'face 'gemini-companion-comment properties))))))

(defun gemini-companion-list--place ()
  "Return the place of a comment on the line of a diff at point, or nil.
For a removed line, it is a cons of `before' and its number in the file;
for any other line, one of `after' and its number in the proposal."
  (pcase-let ((`(,old . ,new) (gemini-companion-list--line)))
    (cond ((null new) nil)
          ((and old (gemini-companion-list--hunk)) (cons 'before old))
          (t (cons 'after new)))))

(defun gemini-companion-list--line ()
  "Return the numbers of the line at point in the two texts, or nil.
The value is a cons (OLD . NEW); OLD is nil for an added line."
  (when-let* ((new (get-text-property (line-beginning-position)
                                      'gemini-companion-line)))
    (cons (get-text-property (line-beginning-position) 'gemini-companion-old)
          new)))

(defun gemini-companion-list--hunk (&optional position)
  "Return the hunk of the line at POSITION, by default at point, or nil."
  (get-text-property (or position (line-beginning-position))
                     'gemini-companion-hunk))

;;;; Refresh

(defun gemini-companion-list--schedule-refresh (&rest _)
  "Refresh the list soon, if it is visible."
  (when (and (not gemini-companion-list--timer)
             (get-buffer-window gemini-companion-list--buffer t))
    (setq gemini-companion-list--timer
          (run-at-time 0.05 nil #'gemini-companion-list--refresh-now))))
(put 'gemini-companion-list--schedule-refresh 'permanent-local-hook t)

(defun gemini-companion-list--refresh-now ()
  "Refresh the list."
  (setq gemini-companion-list--timer nil)
  (gemini-companion-list--refresh))

;;;; Mode

(define-derived-mode gemini-companion-list-mode special-mode "Gemini-Reviews"
  "Major mode for the edits of each CLI.
The section of each CLI has the edits of its last turn, and below them
a section for each earlier one.  Where the turns of a CLI are unknown,
a new one begins with the first edit that arrives when no edit of that
CLI is open, and none has arrived or ended for a minute.

\\{gemini-companion-list-mode-map}"
  ;; A global mode may have turned them on.
  :after-hook (setq display-line-numbers nil)
  (buffer-disable-undo)
  (setq truncate-lines t
        header-line-format '(:eval (gemini-companion-list--header)))
  (setq-local revert-buffer-function
              (lambda (&rest _) (gemini-companion-list--refresh)))
  (setq-local outline-regexp "\\s|"
              outline-level #'gemini-companion-list--level
              parse-sexp-lookup-properties t)
  (outline-minor-mode)
  ;; An ellipsis after the name of a file could be a part of it.
  (setq buffer-invisibility-spec '(outline))
  (add-hook 'kill-buffer-hook #'gemini-companion-list--forget nil t)
  (dolist (hook '(window-buffer-change-functions window-size-change-functions
                  outline-view-change-hook))
    (add-hook hook #'gemini-companion-list--schedule-refresh nil t))
  (dolist (hook gemini-companion-list--hooks)
    (add-hook hook #'gemini-companion-list--schedule-refresh))
  (gemini-companion-review-letters-are-keys 'gemini-companion-list-mode))

(defun gemini-companion-list--level ()
  "Return the level of the heading at point."
  (gemini-companion-list--get :level))

(defun gemini-companion-list--forget ()
  "Forget the list, as its buffer is being killed."
  (dolist (hook gemini-companion-list--hooks)
    (remove-hook hook #'gemini-companion-list--schedule-refresh))
  (when gemini-companion-list--process
    (gemini-companion-hunk-cancel gemini-companion-list--process))
  (when gemini-companion-list--timer
    (cancel-timer gemini-companion-list--timer))
  (setq gemini-companion-list--process nil
        gemini-companion-list--timer nil))

(defun gemini-companion-list-stop ()
  "Close the list."
  (when-let* ((buffer (get-buffer gemini-companion-list--buffer)))
    (kill-buffer buffer)))

(defun gemini-companion-list--header ()
  "Return the header line, help on the keys for 80 columns."
  (string-replace
   "%" "%%"
   (substitute-command-keys
    (concat "\\<gemini-companion-list-mode-map>"
            "\\[gemini-companion-list-menu] keys "
            " \\[gemini-companion-list-accept] accept "
            " \\[gemini-companion-list-reject] reject "
            " \\[gemini-companion-list-toggle] diff "
            " \\[gemini-companion-list-view] review "
            " \\[gemini-companion-list-toggle-hunk] "
            (if (ignore-error user-error (gemini-companion-list-excluded-p))
                "restore "
              "exclude ")
            " \\[gemini-companion-list-comment] comment "
            " \\[gemini-companion-list-revert] revert"))))

;;;; Point

(defun gemini-companion-list--edit ()
  "Return the edit at point, or signal an error."
  (or (gemini-companion-list--get :edit)
      (user-error "No edit on this line")))

(defun gemini-companion-list-diff ()
  "Return the diff of the edit at point, or signal an error."
  (let ((edit (gemini-companion-list--edit)))
    (or (gemini-companion-edit-diff edit)
        (user-error "No review of %s is open: %s"
                    (gemini-companion-edits-name edit)
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
              (y-or-n-p (format "%s %d proposals? " verb (length diffs))))
      ;; Some diffs may end while a question is asked.
      (dolist (diff diffs)
        (when (memq diff (gemini-companion-diffs))
          (funcall function diff)))
      (with-current-buffer gemini-companion-list--buffer
        (gemini-companion-list--refresh)
        (gemini-companion-list--go-to-open)))))

(defun gemini-companion-list--go-to-open ()
  "Go to the next edit that awaits an answer, or else to the first one."
  (when-let* ((place (or (gemini-companion-list--find
                          1 #'gemini-companion-list--open-here-p)
                         (save-excursion
                           (goto-char (point-min))
                           (gemini-companion-list--find
                            1 #'gemini-companion-list--open-here-p)))))
    (goto-char place)))

(defun gemini-companion-list--find (step predicate)
  "Return the next visible line at which PREDICATE is non-nil, or nil.
STEP is 1, or -1 to search backward."
  (save-excursion
    (let (found)
      (while (and (not found) (zerop (forward-line step)) (not (eobp)))
        (setq found (and (not (invisible-p (point)))
                         (funcall predicate)
                         (point))))
      found)))

(defun gemini-companion-list--open-here-p ()
  "Return non-nil if the heading of an edit to be answered is at point."
  (when-let* (((gemini-companion-list--heading-p))
              (edit (gemini-companion-list--get :edit)))
    (gemini-companion-edit-diff edit)))

(defun gemini-companion-list--stop-p ()
  "Return non-nil if the line at point is a heading, or begins a hunk."
  (or (gemini-companion-list--heading-p)
      (when-let* ((hunk (gemini-companion-list--hunk)))
        (not (eq hunk (gemini-companion-list--hunk
                       (line-beginning-position 0)))))))

;;;; Menu state

;; A user error of these functions means nil in a menu.

(defun gemini-companion-list-line-p ()
  "Return non-nil if a line of a proposal is at point."
  (and (gemini-companion-list-diff)
       (gemini-companion-list--line)))

(defun gemini-companion-list-hunk-p ()
  "Return the hunk of a proposal at point, or nil."
  (and (gemini-companion-list-diff)
       (gemini-companion-list--hunk)))

(defun gemini-companion-list-excluded-p ()
  "Return non-nil if the hunk at point is excluded."
  (member (gemini-companion-list-hunk-p)
          (gemini-companion-list--excluded (gemini-companion-list-diff))))

(defun gemini-companion-list-revertible-p ()
  "Return non-nil if the edit or the turn at point can be reverted."
  (or (gemini-companion-list--written (gemini-companion-list--get :edits))
      (progn
        (gemini-companion-edits-check-revert (gemini-companion-list--edit))
        t)))

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
                      gemini-companion-windows-display-over)))
    (when free
      (gemini-companion-list--enlarge))
    (gemini-companion-list--refresh)
    (when diff
      (gemini-companion-list--go-to diff)))
  (when (and (bobp) (not (gemini-companion-list--open-here-p)))
    (gemini-companion-list--go-to-open)))

(defun gemini-companion-list--go-to (diff)
  "Go to the line of the edit of DIFF, unless point is in its section."
  (let ((here-p (lambda (item)
                  (when-let* ((edit (plist-get item :edit)))
                    (eq diff (gemini-companion-edit-diff edit))))))
    (when-let* (((not (funcall here-p
                               (get-text-property
                                (line-beginning-position)
                                'gemini-companion-list-item))))
                (start (gemini-companion-list--section here-p)))
      (goto-char start))))

(defun gemini-companion-list--enlarge ()
  "Give the selected window up to two thirds of the height of its frame.
Quitting it restores the height."
  (let ((lines (- (min gemini-companion-list--lines
                       (/ (* 2 (window-total-height (frame-root-window))) 3))
                  (window-total-height))))
    (when (and (< 0 lines) (window-combined-p))
      (window-resize nil (window-sizable nil lines)))))

(defun gemini-companion-list-toggle ()
  "Unfold the section at point, or fold it again.
In a diff, show the lines that are folded at point, or fold unchanged
lines again."
  (interactive nil gemini-companion-list-mode)
  (unless (derived-mode-p 'gemini-companion-list-mode)
    (user-error "Not in the list; %s shows it"
                (substitute-command-keys "\\[gemini-companion-list]")))
  (let* ((get (lambda (property)
                (get-text-property (line-beginning-position) property)))
         (fold (funcall get 'gemini-companion-fold))
         (unfolded (funcall get 'gemini-companion-unfolded)))
    (beginning-of-line)
    (with-silent-modifications
      (cond (fold
             (put-text-property (point) (line-end-position)
                                'gemini-companion-unfolded fold))
            (unfolded
             (goto-char (or (previous-single-property-change
                             (1+ (point)) 'gemini-companion-unfolded)
                            (point)))
             (remove-text-properties
              (point)
              (next-single-property-change (point) 'gemini-companion-unfolded
                                           nil (point-max))
              '(gemini-companion-unfolded nil)))
            (t
             (outline-back-to-heading)
             (outline-toggle-children))))
    (gemini-companion-list--refresh)
    (gemini-companion-list--reveal)))

(defun gemini-companion-list--reveal ()
  "Scroll to show the section at point, or as much of it as fits."
  (let ((above (count-lines (window-start) (point) 'visible))
        (lines (count-lines (point) (gemini-companion-list--end (point))
                            'visible)))
    (when (< (window-body-height) (+ above lines))
      (recenter (max 0 (- (window-body-height) lines))))))

(defun gemini-companion-list-next (&optional count)
  "Go to the next line of a CLI, edit or hunk, or COUNT such lines on."
  (interactive "p" gemini-companion-list-mode)
  (let ((step (if (< count 0) -1 1)))
    (dotimes (_ (abs count))
      (goto-char (or (gemini-companion-list--find
                      step #'gemini-companion-list--stop-p)
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
          ((gemini-companion-edit-diff edit)
           (gemini-companion-list--review))
          (t (gemini-companion-list--visit
              edit (gemini-companion-list--line))))))

(defun gemini-companion-list--review ()
  "Show and select the review at point, at the hunk at point."
  (let ((diff (gemini-companion-list-diff))
        (line (gemini-companion-list--line)))
    (if line
        (gemini-companion-review-go-to diff (cdr line))
      (gemini-companion-arrival-view diff))))

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

(defun gemini-companion-list--show-file (file display)
  "Show FILE in another window by DISPLAY.
That is `pop-to-buffer' or `display-buffer'.  No terminal of a CLI and
no review is hidden."
  ;; Otherwise Emacs asks whether to read a file again that was just written.
  (gemini-companion-revert-now file)
  (funcall display (find-file-noselect (gemini-companion-place-file file))
           (if (gemini-companion-windows-place)
               '((display-buffer-reuse-window
                  display-buffer-below-selected)
                 (inhibit-same-window . t))
             t)))

(defun gemini-companion-list--visit (edit numbers)
  "Visit the file of EDIT at the line of its diff with NUMBERS, if non-nil."
  (let ((file (gemini-companion-edit-file edit))
        (hunk (gemini-companion-list--hunk)))
    (unless (file-exists-p file)
      (user-error "%s does not exist" (gemini-companion-edits-name edit)))
    (gemini-companion-list--show-file file #'pop-to-buffer)
    (when numbers
      (goto-char (gemini-companion-hunk-line
                  (if (memq (gemini-companion-edit-state edit)
                            '(rejected unwritten))
                      (or (car numbers) (car hunk))
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
        (hunk (or (gemini-companion-list--hunk)
                  (user-error "No hunk here"))))
    (unless (gemini-companion-list--known-p edit)
      (gemini-companion-list--refresh)
      (user-error "The proposal has changed; its diff is being updated"))
    (message (if (gemini-companion-review-toggle diff hunk)
                 "Hunk excluded"
               "Hunk restored"))
    (gemini-companion-list--refresh)))

(defun gemini-companion-list-comment ()
  "Comment on the line at point; an empty text deletes the comment.
If the proposal is rejected, the comment becomes part of the reason."
  (interactive nil gemini-companion-list-mode)
  (let* ((diff (gemini-companion-list-diff))
         (place (or (gemini-companion-list--place)
                    (user-error "No line of the file here")))
         (comment (gemini-companion-diff-ask
                   diff
                   (lambda ()
                     (read-string
                      (format "Comment on line %d: " (cdr place))
                      (cdr (assoc place
                                  (gemini-companion-diff-comments diff))))))))
    (when comment
      (gemini-companion-diff-comment
       diff place (and (not (string-blank-p comment)) comment))
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
The buffer is shown, and neither saved nor selected.  If the file was
new, delete it.  On the line of a turn or a CLI, revert all edits of
the turn, and save the files."
  (interactive nil gemini-companion-list-mode)
  (let ((edits (gemini-companion-list--get :edits)))
    (if edits
        (gemini-companion-list--revert-turn edits)
      (gemini-companion-list--revert-edit (gemini-companion-list--edit)))))

(defun gemini-companion-list--revert-edit (edit)
  "Revert EDIT, and show the buffer of its file."
  (let ((name (gemini-companion-edits-name edit)))
    (gemini-companion-edits-check-revert edit)
    (when (y-or-n-p (if (eq 'new (gemini-companion-edit-before edit))
                        (format "%s was new; delete it? " name)
                      (format "Revert the edit of %s? " name)))
      (gemini-companion-edits-revert edit)
      (gemini-companion-list--schedule-refresh)
      (when (eq 'reverted (gemini-companion-edit-state edit))
        (gemini-companion-list--show-file (gemini-companion-edit-file edit)
                                          #'display-buffer)))))

(defun gemini-companion-list--revert-turn (edits)
  "Revert EDITS, a turn, and save the files."
  (let* ((edits (or (gemini-companion-list--written edits)
                    (user-error "No edit of this turn was written")))
         (new (seq-count (lambda (edit)
                           (eq 'new (gemini-companion-edit-before edit)))
                         edits))
         (count (length edits)))
    (when (y-or-n-p
           (concat (format (ngettext "Revert %d edit of this turn"
                                     "Revert %d edits of this turn" count)
                           count)
                   (when (< 0 new)
                     (format (ngettext ", delete %d new file"
                                       ", delete %d new files" new)
                             new))
                   ", and save? "))
      (let ((left (gemini-companion-edits-revert-all edits)))
        (gemini-companion-list--schedule-refresh)
        (message "Reverted %d of %d edits%s" (- count (length left)) count
                 (if left (concat "; " (string-join left "; ")) ""))))))

(provide 'gemini-companion-list)
;;; gemini-companion-list.el ends here
