;;; gemini-companion-list.el --- The edits of each CLI in a buffer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The edits of each CLI and turn, to be answered, commented and reverted from
;; there.  The buffer is an outline: sections of CLIs, turns and edits, with the
;; diff of an edit below its heading.  It is a page, see gemini-companion-page.el,
;; so there is no state but its text, what is folded in that, and the variables
;; below.  The hunks of edits are drawn by the code of the unified view once they
;; are visible.

;;; Code:

(require 'gemini-companion-auto)
(require 'gemini-companion-changes)
(require 'gemini-companion-comment)
(require 'gemini-companion-undo)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-header)
(require 'gemini-companion-hunk)
(require 'gemini-companion-label)
(require 'gemini-companion-lines)
(require 'gemini-companion-names)
(require 'gemini-companion-notify)
(require 'gemini-companion-page)
(require 'gemini-companion-request)
(require 'gemini-companion-revert)
(require 'gemini-companion-review)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'gemini-companion-unified)
(require 'gemini-companion-unified-draw)
(require 'gemini-companion-view)
(require 'gemini-companion-walk)
(require 'gemini-companion-weave)
(require 'gemini-companion-windows)
(require 'map)
(require 'outline)

(declare-function gemini-companion-turn-page "gemini-companion-turn-page")

;;;; Keys

(defvar gemini-companion-list-mode-map
  (gemini-companion-commands-bind (make-sparse-keymap) 'list)
  "Keys in the list of edits.")

;;;; State

(defconst gemini-companion-list--buffer "*gemini edits*"
  "Name of the buffer with the list.")

(defconst gemini-companion-list--labels
  '((pending "waiting" bold)
    (shown "shown" bold)
    (accepted "accepted" success)
    (automatic "accepted automatically" success)
    (unwritten "not written" warning)
    (rejected "rejected" error)
    (dismissed "closed" shadow)
    (unreviewed "written without review" warning)
    (kept "kept" success)
    (reverted "undone" shadow)
    (unsaved "undone, not saved" shadow)
    (deleted "deleted" shadow))
  "Alist of (STATUS LABEL FACE).
STATUS is a value of `gemini-companion-edit-status', or `kept' if the user has
kept what was written without a review.")

;;;; Headings

(defun gemini-companion-list--headings ()
  "Return the headings of the list, plists.
Each has its `:text', the `:key' and the `:level' of the section, the
`:session' of the CLI, and the `:edit', if it is one, the `:request', if it
is one of another kind, or the `:edits' of a turn, or of the last turn of a
CLI.  `:open' is non-nil if it is not folded at first.  CLIs that are
connected come first."
  (or (mapcan #'gemini-companion-list--cli-headings
              (seq-uniq (append (gemini-companion-sessions)
                                (mapcar #'gemini-companion-request-session
                                        (append (gemini-companion-requests)
                                                (gemini-companion-edits))))
                        #'gemini-companion-session-same-p))
      `((:key none :level 1
         :text ,(propertize "No CLI is connected" 'face 'shadow)))))

(defun gemini-companion-list--cli-headings (session)
  "Return the headings of SESSION, its requests and each turn, the newest first."
  (let ((turns (nreverse
                (seq-group-by
                 #'gemini-companion-edit-turn
                 (seq-filter (lambda (edit)
                               (gemini-companion-session-same-p
                                session (gemini-companion-edit-session edit)))
                             (gemini-companion-edits))))))
    (cons
     (list :key `(cli ,(or (plist-get session :pid) (plist-get session :id)))
           :level 1 :open t :session session
           :edits (seq-union (cdar turns)
                             (gemini-companion-edits-open session) #'eq)
           :text
           (gemini-companion-list--fit
            (propertize (gemini-companion-session-name session)
                        'face 'font-lock-keyword-face)
            (gemini-companion-list--columns
             (unless (gemini-companion-session-connected-p session)
               "disconnected")
             (gemini-companion-notify-description session)
             (when (gemini-companion-auto-on-p session)
               (propertize "auto-accept" 'face 'warning)))))
     (append
      (mapcar #'gemini-companion-list--request-heading
              ;; The headings of turns have the edits.
              (seq-remove #'gemini-companion-edit-p
                          (gemini-companion-requests session)))
      (mapcan (lambda (turn)
                (gemini-companion-list--turn-headings
                 turn session (eq turn (car turns))))
              turns)))))

(defun gemini-companion-list--request-heading (request)
  "Return the heading of REQUEST, which is no edit."
  (list :key (list 'request
                   (gemini-companion-request-kind request)
                   (gemini-companion-request-since request))
        :level 2 :open t
        :session (gemini-companion-request-session request)
        :request request
        :text (gemini-companion-list--fit
               (gemini-companion-list--columns
                (gemini-companion-request-label request)))))

(defun gemini-companion-list--turn-headings (turn session last)
  "Return the headings of TURN, a cons of it and its edits, of SESSION.
LAST is non-nil if it is the last one.  The first line has the time, the
files and lines, how long it took, and the prompt, as far as known."
  (pcase-let* ((`(,turn . ,edits) turn)
               (began (gemini-companion-turn-began turn))
               (ended (gemini-companion-turn-ended turn))
               (took (and ended
                          (format-seconds "%hh %mm %z%ss" (- ended began))))
               (labels (mapcar #'gemini-companion-list--label edits))
               (width (apply #'max (mapcar #'length labels))))
    (cons
     (list :key (list (if last 'turn 'earlier)
                      (gemini-companion-edit-id (car edits)))
           :level 2 :open last :session session :edits edits :turn turn
           :text
           (gemini-companion-list--fit
            (propertize (apply #'gemini-companion-list--columns
                               (format-time-string "%H:%M" began)
                               (if (gemini-companion-turn-prompt turn)
                                   `(,@(gemini-companion-edit-hunks-total edits)
                                     ,took)
                                 (gemini-companion-list--named-by-files edits took)))
                        'face 'shadow)
            (gemini-companion-list--columns
             (when-let* ((prompt (gemini-companion-turn-prompt turn)))
               (gemini-companion-text-escaped prompt 'composed)))))
     (mapcar (lambda (edit)
               (list :key (gemini-companion-edit-id edit) :level 3
                     :session session :edit edit
                     :text (gemini-companion-list--edit-line edit width)))
             edits))))

(defun gemini-companion-list--named-by-files (edits took)
  "Return texts for the line of a turn with EDITS whose prompt is unknown.
TOOK says how long it took, or is nil.  Lines that only count files would
look all the same."
  (list (gemini-companion-edit-hunks-files edits)
        (gemini-companion-edit-hunks-lines
         (seq-filter #'gemini-companion-edit-written-p edits))
        took))

(defun gemini-companion-list--fit (&rest texts)
  "Return TEXTS as a line that fits into the window of the list.
Only the last text is shortened."
  (truncate-string-to-width (string-join texts)
                            (1- (window-width (get-buffer-window nil t)))
                            nil nil (gemini-companion-text-sign ?\u2026 "...")))

(defun gemini-companion-list--columns (&rest texts)
  "Return TEXTS, without nil, with two spaces before each."
  (mapconcat (apply-partially #'concat "  ") (delq nil texts) ""))

(defun gemini-companion-list--edit-line (edit width)
  "Return the line of EDIT in the list.
WIDTH is that of the column with the states of edits."
  (let* ((name (gemini-companion-edit-name edit 'plain))
         (warnings (mapconcat (lambda (warning) (concat warning "; "))
                              (gemini-companion-label-place-warnings
                               (gemini-companion-label-place
                                (gemini-companion-edit-file edit)
                                (gemini-companion-edit-session edit)))
                              ""))
         (state (concat "    "
                        (string-pad (gemini-companion-list--label edit) width)
                        (format "%10s  " (or (gemini-companion-edit-hunks-lines
                                              (list edit))
                                             "?"))))
         (remarks (propertize (apply #'gemini-companion-list--columns
                                     (gemini-companion-list--remarks edit))
                              'face 'shadow))
         (room (- (window-width (get-buffer-window nil t))
                  1 (string-width state) (string-width warnings)
                  (string-width remarks))))
    (add-face-text-property 0 (length name) 'bold 'append name)
    ;; The end of a name tells files in one directory apart.
    (gemini-companion-list--fit
     state warnings (gemini-companion-names-shown name (max 16 room)) remarks)))

(defun gemini-companion-list--remarks (edit)
  "Return the remarks behind the name in the line of EDIT.
It is a list of strings and nil."
  (if (gemini-companion-edit-open-p edit)
      (let ((excluded (length (gemini-companion-hunk-excluded
                               (gemini-companion-edit-proposal-buffer edit))))
            (comments (length (gemini-companion-edit-comments edit))))
        (list (and (< 0 excluded) (format "%d excluded" excluded))
              (and (< 0 comments)
                   (format (ngettext "%d comment" "%d comments" comments)
                           comments))
              (gemini-companion-edit-problem edit)
              (gemini-companion-edit-objection edit)
              (gemini-companion-edit-rule edit)))
    (let ((undone (length (gemini-companion-edit-undone edit)))
          (hunks (length (gemini-companion-edit-known-hunks edit)))
          (left (length (cdr (gemini-companion-changes-of-edit edit)))))
      ;; The label says that all of them are.
      (list (and (< 0 undone hunks)
                 (format "%d of %d changes undone%s" undone hunks
                         (if (gemini-companion-revert-unsaved
                              (gemini-companion-edit-file edit))
                             ", buffer not saved"
                           "")))
            (and (< 0 left)
                 (format (ngettext "%d change left" "%d changes left" left) left))
            (and (eq 'automatic (gemini-companion-edit-decision edit))
                 (gemini-companion-edit-rule edit))
            (gemini-companion-edit-texts-conversion edit)))))

(defun gemini-companion-list--label (edit)
  "Return the text for what has become of EDIT, with its face."
  (pcase-let* ((status (gemini-companion-edit-status edit))
               (`(,label ,face)
                (alist-get (if (and (memq status '(automatic unreviewed))
                                    (gemini-companion-changes-kept-p edit))
                               'kept
                             status)
                           gemini-companion-list--labels)))
    (propertize label 'face face)))

;;;; Sections

;; All lines of a section have its item as a text property.
(cl-defstruct (gemini-companion-list--section
               (:noinline t)
               (:constructor gemini-companion-list--section (item length)))
  "A heading and what is below it, as drawn.
ITEM is a plist of all that is drawn: that of the heading, see
`gemini-companion-list--headings', with `:folded' and `:body', which is
a `gemini-companion-list--body' if it is one of an edit.  LENGTH is the
number of characters in the buffer.  A section with an equal item is
not drawn again."
  item length)

(cl-defstruct (gemini-companion-list--body
               (:noinline t)
               (:constructor gemini-companion-list--make-body (state text))
               (:copier nil))
  "What is below the heading of an edit.
TEXT is the diff, and STATE what that depends on, compared by `equal'; or
TEXT is an ellipsis for a diff that is folded, and STATE is nil."
  state text)

(defvar-local gemini-companion-list--sections nil
  "The sections of the text, in order.")

(defun gemini-companion-list--get (key)
  (plist-get (get-text-property (point) 'gemini-companion-list-item) key))

(defun gemini-companion-list--write (&optional toggled)
  "Write the list; point, windows and what is folded stay.
Fold the section with the key TOGGLED, if non-nil, or unfold it.  What has
become of the edits in their files is looked at before."
  (gemini-companion-changes-look-at-edits (gemini-companion-edits))
  (let ((folds (gemini-companion-list--folds)))
    (when toggled
      (cl-callf not (car (alist-get toggled folds nil nil #'equal))))
    ;; A heading may come to be where the text of another is folded.
    (remove-overlays nil nil 'invisible 'outline)
    (gemini-companion-list--replace
     (mapcar (lambda (heading)
               (gemini-companion-list--item heading folds))
             (gemini-companion-list--headings))))
  (gemini-companion-list--each-section
   (lambda ()
     (when (gemini-companion-list--get :folded)
       (outline-hide-subtree))))
  ;; An earlier turn is folded when the next one begins.
  (dolist (window (get-buffer-window-list nil nil t))
    (set-window-point window
                      (save-excursion
                        (goto-char (window-point window))
                        (when (invisible-p (line-beginning-position))
                          (outline-back-to-heading))
                        (point)))))

(defun gemini-companion-list--replace (items)
  "Make the sections of ITEMS the text, and draw only those that differ.
Sections keep their order; one whose key is not among the next sections
is new, and those before one that is found are gone."
  (widen)
  (let ((old gemini-companion-list--sections)
        (beg 1)
        (sections nil))
    (dolist (item items)
      (let ((found (gemini-companion-list--from item old)))
        (when found
          (gemini-companion-list--delete beg (cl-ldiff old found))
          (setq old (cdr found)))
        (let ((section (gemini-companion-list--update beg item (car found))))
          (push section sections)
          (cl-incf beg (gemini-companion-list--section-length section)))))
    (gemini-companion-list--delete beg old)
    (setq gemini-companion-list--sections (nreverse sections))))

(defun gemini-companion-list--from (item sections)
  "Return the part of SECTIONS that begins with the key of ITEM, or nil."
  (cl-member (plist-get item :key) sections
             :test #'equal
             :key (lambda (section)
                    (plist-get (gemini-companion-list--section-item section)
                               :key))))

(defun gemini-companion-list--delete (beg sections)
  "Delete the text of SECTIONS, which begins at BEG."
  (when sections
    (gemini-companion-page-replace
     "" beg (apply #'+ beg (mapcar #'gemini-companion-list--section-length
                                   sections)))))

(defun gemini-companion-list--update (beg item section)
  "Draw ITEM at BEG in place of SECTION, or of nothing; return its section.
A diff that has not changed stays as it is, so point in it does, too."
  (if (and section
           (equal item (gemini-companion-list--section-item section)))
      section
    (let* ((drawn (gemini-companion-list--drawn item))
           (end (+ beg (if section
                           (gemini-companion-list--section-length section)
                         0)))
           (kept (gemini-companion-list--kept item section)))
      (gemini-companion-page-replace
       (substring drawn 0 (- (length drawn) kept)) beg (- end kept))
      (gemini-companion-list--section item (length drawn)))))

(defun gemini-companion-list--drawn (item)
  "Return the text of the section of ITEM: its heading, and its diff."
  (let ((text (propertize (concat (plist-get item :text) "\n"
                                  (gemini-companion-list--below item))
                          'gemini-companion-list-item item)))
    (put-text-property 0 1 'gemini-companion-change t text)
    ;; The regexp of headings matches no other character.
    (put-text-property 0 1 'syntax-table (string-to-syntax "|") text)
    text))

(defun gemini-companion-list--below (item)
  "Return the text below the heading of ITEM, which may be empty."
  (if-let* ((body (plist-get item :body)))
      (gemini-companion-list--body-text body)
    ""))

(defun gemini-companion-list--kept (item section)
  "Return the number of characters at the end of SECTION that ITEM has, too.
These are those of its diff, or none.  SECTION may be nil."
  (if (and section
           (equal (plist-get item :body)
                  (plist-get (gemini-companion-list--section-item section)
                             :body)))
      (length (gemini-companion-list--below item))
    0))

(defun gemini-companion-list--each-section (function)
  "Return the values of FUNCTION, called at the heading of each section."
  (save-excursion
    (let ((beg 1))
      (mapcar (lambda (section)
                (goto-char beg)
                (cl-incf beg (gemini-companion-list--section-length section))
                (funcall function))
              gemini-companion-list--sections))))

(defun gemini-companion-list--folds ()
  "Return an alist of the keys of the sections.
The values are conses of whether it is folded, and its body, which is nil
if it is no edit."
  (gemini-companion-list--each-section
   (lambda ()
     (cons (gemini-companion-list--get :key)
           (cons (if (invisible-p (point))
                     (gemini-companion-list--get :folded)
                   (outline-invisible-p (line-end-position)))
                 (gemini-companion-list--get :body))))))

(defun gemini-companion-list--item (heading folds)
  "Return the item of the section of HEADING, with all that is drawn.
FOLDS is as in `gemini-companion-list--folds'."
  (pcase-let* (((map :key :edit :open) heading)
               (`(,folded . ,body)
                (alist-get key folds (list (not open)) nil #'equal)))
    `(:folded ,folded
      :body ,(cond ((null edit) nil)
                   (folded (gemini-companion-list--make-body nil "    ...\n"))
                   (t (gemini-companion-list--diff edit body)))
      ,@heading)))

;;;; Diffs

(defun gemini-companion-list--diff (edit last)
  "Return the body of EDIT with its diff.
LAST is the one that is displayed, or nil.  It is returned, and nothing
drawn, if all that the diff depends on is the same."
  (let* ((hunks (condition-case nil
                    (gemini-companion-edit-hunks edit)
                  ;; The texts of an edit may be unknown, or the program diff may fail.
                  (error 'failed)))
         ;; The comparison decides part of the state.
         (state (gemini-companion-list--diff-state edit)))
    (if (and last (equal state (gemini-companion-list--body-state last)))
        last
      (gemini-companion-list--make-body
       state
       (cond ((eq 'failed hunks) "    cannot be compared\n")
             (hunks (gemini-companion-list--draw-diff edit hunks))
             ((eq 'new (gemini-companion-edit-before edit)) "    empty file\n")
             (t "    no difference\n"))))))

(defun gemini-companion-list--diff-state (edit)
  "Return a list of all that the diff of EDIT depends on.
Its texts are those that were compared last."
  (list (gemini-companion-edit-since edit)
        (gemini-companion-edit-compared edit)
        gemini-companion-unified-draw-unfolded
        (when (gemini-companion-edit-open-p edit)
          (gemini-companion-hunk-excluded
           (gemini-companion-edit-proposal-buffer edit)))
        (gemini-companion-comment-state-of-edit edit)))

(defun gemini-companion-list--draw-diff (edit hunks)
  "Return the text of the diff of EDIT, its HUNKS with the comments on them."
  ;; In a temporary buffer, its local value would be nil.
  (let ((unfolded gemini-companion-unified-draw-unfolded))
    (gemini-companion-edit-texts-call
     edit
     (lambda (old new)
       (with-temp-buffer
         (gemini-companion-unified-draw-insert edit old new hunks unfolded)
         (if (gemini-companion-edit-open-p edit)
             (gemini-companion-view-insert-notes edit)
           (gemini-companion-comment-insert
            (append
             (gemini-companion-comment-places-of-edit edit)
             (gemini-companion-comment-places
              (gemini-companion-comment-file-of-edit edit)
              (gemini-companion-lines-split (gemini-companion-text-of-buffer new))
              (gemini-companion-lines-split (gemini-companion-text-of-buffer old))))))
         (buffer-string))))))

;;;; Mode

(define-derived-mode gemini-companion-list-mode special-mode "Gemini-Edits"
  "Major mode for the edits of each CLI.
The section of each CLI has a section with the edits of each turn, the
last turn first.  Where the turns of a CLI are unknown, a new one begins
with an edit that arrives when the previous edit of that CLI ended at
least a minute ago.

\\{gemini-companion-list-mode-map}"
  :interactive nil
  ;; A global mode may have turned them on.
  :after-hook (setq display-line-numbers nil)
  (buffer-disable-undo)
  (setq truncate-lines t
        header-line-format '(:eval (gemini-companion-label-fit
                                    (gemini-companion-header-keys)
                                    (window-width)))
        gemini-companion-edits-view (gemini-companion-list--make-view))
  (setq-local bidi-paragraph-direction 'left-to-right
              glyphless-char-display gemini-companion-text-glyphless
              outline-regexp "\\s|"
              outline-level (lambda () (gemini-companion-list--get :level))
              parse-sexp-lookup-properties t)
  (outline-minor-mode)
  ;; An ellipsis after the name of a file could be a part of it.
  (setq buffer-invisibility-spec '(outline))
  (gemini-companion-page-set-up #'gemini-companion-list--write
                                '(gemini-companion-edit-functions
                                  gemini-companion-comment-functions
                                  gemini-companion-session-changed-functions
                                  gemini-companion-changes-functions
                                  gemini-companion-state-functions)
                                ;; A CLI waits until the user sees its row.
                                '(gemini-companion-request-functions))
  ;; The user may have undone or saved something in the window of a file.
  (let ((page (current-buffer)))
    (add-hook 'window-selection-change-functions
              ;; Another buffer may be current.
              (lambda (_window) (gemini-companion-page-refresh-soon page))
              nil t))
  ;; A diff is drawn when it is unfolded.  Emacs 29 has declared the hook obsolete,
  ;; and has nothing in its place.
  (with-suppressed-warnings ((obsolete outline-view-change-hook))
    (add-hook 'outline-view-change-hook
              (lambda () (gemini-companion-page-refresh-soon (current-buffer)))
              nil t))
  (gemini-companion-commands-letters-are-keys 'gemini-companion-list-mode))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'list)))
  "Close the list."
  (when-let* ((buffer (get-buffer gemini-companion-list--buffer)))
    (gemini-companion-windows-at-once
      (kill-buffer buffer))))

;;;; Point

(cl-defstruct (gemini-companion-list-view
               (:noinline t)
               (:include gemini-companion-view)
               (:constructor gemini-companion-list--make-view)
               (:copier nil))
  "The view of the list, of no one edit.")

(cl-defmethod gemini-companion-view-edits ((_ gemini-companion-list-view))
  "Return the CLI and the edit at point, or the edits of the turn or CLI."
  (let ((edit (gemini-companion-list--get :edit)))
    (cons (or (gemini-companion-list--get :session)
              (user-error "No CLI on this line"))
          (if edit (list edit) (gemini-companion-list--get :edits)))))

(cl-defmethod gemini-companion-view-session ((_ gemini-companion-list-view))
  "Return the CLI of the line at point, or nil."
  (gemini-companion-list--get :session))

(cl-defmethod gemini-companion-view-edit-here ((_ gemini-companion-list-view))
  "Return the edit at point, or nil."
  (gemini-companion-list--get :edit))

(cl-defmethod gemini-companion-view-texts ((_ gemini-companion-list-view))
  "Return the lines after and before the edit at point."
  (gemini-companion-edit-texts-call
   (gemini-companion-list--get :edit)
   (lambda (old new)
     (cons (gemini-companion-lines-split (gemini-companion-text-of-buffer new))
           (gemini-companion-lines-split (gemini-companion-text-of-buffer old))))))

(cl-defmethod gemini-companion-view-hunk ((_ gemini-companion-list-view))
  "Return the hunk at point, or nil."
  (get-text-property (point) 'gemini-companion-hunk))

(cl-defmethod gemini-companion-view-move ((_ gemini-companion-list-view) count)
  "Go forward by COUNT lines of a CLI, turn, edit or hunk."
  (dotimes (_ (abs count))
    (goto-char (or (gemini-companion-unified-change (< count 0))
                   (user-error "No more edits or hunks")))))

(cl-defmethod gemini-companion-view-follow
  ((_ gemini-companion-list-view) event)
  "Show the effect of EVENT of an edit at once, as the user has caused it here."
  (pcase event
    ((or 'toggled 'changed) (gemini-companion-page-refresh))
    ('answered (with-current-buffer gemini-companion-list--buffer
                 (gemini-companion-list--go-to-open)))))

(defun gemini-companion-list--open-edit ()
  (when-let* ((edit (gemini-companion-list--get :edit))
              ((gemini-companion-edit-open-p edit)))
    edit))

(defun gemini-companion-list--go-to-open ()
  (unless (gemini-companion-list--open-edit)
    (gemini-companion-list--go-to (lambda ()
                                    (and (gemini-companion-list--open-edit)
                                         (not (invisible-p (point))))))))

(defun gemini-companion-list--go-to (predicate)
  (when-let* ((positions (delq nil (gemini-companion-list--each-section
                                    (lambda ()
                                      (and (funcall predicate) (point)))))))
    (goto-char (or (seq-find (apply-partially #'< (point)) positions)
                   (car positions)))))

;;;; Commands

(defun gemini-companion-list ()
  "List the edits of each CLI: those that await an answer, and others.
In a buffer of a review, go to the line of that review."
  (interactive)
  (with-current-buffer (get-buffer-create gemini-companion-list--buffer)
    (unless (derived-mode-p 'gemini-companion-list-mode)
      (gemini-companion-list-mode)))
  (let ((edit gemini-companion-edit-here))
    (gemini-companion-windows-at-once
      (pop-to-buffer gemini-companion-list--buffer
                     '((display-buffer-reuse-window
                        gemini-companion-windows-display-covering)
                       (category . gemini-companion-list)
                       (window-height . 0.6))))
    (gemini-companion-page-refresh)
    ;; Unless point is in its section.
    (unless (or (null edit) (eq edit (gemini-companion-list--open-edit)))
      (gemini-companion-list--go-to
       (lambda () (eq edit (gemini-companion-list--open-edit))))))
  (gemini-companion-list--go-to-open))

(defun gemini-companion-list-toggle ()
  "Unfold the section at point, or fold it again.
In a diff, show the lines that are folded at point, or fold unchanged
lines again."
  (interactive nil gemini-companion-list-mode)
  (if (gemini-companion-unified-draw-fold-here)
      (gemini-companion-unified-toggle-fold)
    (outline-back-to-heading)
    (gemini-companion-list--write (gemini-companion-list--get :key))))

(defun gemini-companion-list-view ()
  "Review the proposal at point, at the hunk at point.
If the edit at point has ended, visit its file at that line instead.  On
the line of something else that waits for an answer, go there; on that of
a turn, show all its changes on one page, and on that of a CLI all that
are left of it."
  (interactive nil gemini-companion-list-mode)
  (let ((edit (gemini-companion-list--get :edit))
        (request (gemini-companion-list--get :request)))
    (cond
     (request (gemini-companion-request-show request))
     ((null edit)
      (gemini-companion-turn-page
       (or (gemini-companion-list--get :session)
           (user-error "No CLI on this line"))
       (gemini-companion-list--get :turn)))
     ((gemini-companion-edit-open-p edit) (gemini-companion-review-enter))
     (t
      (let ((file (gemini-companion-edit-file edit))
            (line (if (gemini-companion-edit-written-p edit)
                      (get-text-property (point) 'gemini-companion-line)
                    (or (get-text-property (point) 'gemini-companion-old)
                        ;; An added line is not in the file.
                        (when-let* ((hunk (get-text-property
                                           (point) 'gemini-companion-hunk)))
                          (gemini-companion-hunk-old hunk))))))
        (unless (file-exists-p file)
          (user-error "%s does not exist" (gemini-companion-edit-name edit)))
        (gemini-companion-windows-show-beside (gemini-companion-revert-visit file)
                                              #'pop-to-buffer)
        (when line
          (goto-char (gemini-companion-hunk-line line))))))))

(defun gemini-companion-list-revert ()
  "Revert the edit at point: restore the previous text of the file.
Its buffer is shown and not selected.  If the file was new, delete it.
On a hunk, restore only its lines.  On the line of a turn or a CLI, revert
all edits of the turn."
  (interactive nil gemini-companion-list-mode)
  (if-let* ((edits (gemini-companion-list--get :edits)))
      (gemini-companion-list--revert-turn edits)
    (let* ((edit (gemini-companion-edit-current))
           (file (gemini-companion-edit-file edit))
           (new (eq 'new (gemini-companion-edit-before edit)))
           (hunk (and (not new)
                      (get-text-property (point) 'gemini-companion-hunk))))
      (gemini-companion-undo-check edit hunk)
      (when (y-or-n-p (format (cond (new "%s was new; delete it? ")
                                    (hunk "Undo this change of %s%s? ")
                                    (t "Undo the edit of %s%s? "))
                              (gemini-companion-edit-name edit)
                              (if (gemini-companion-revert-unsaved file)
                                  " in its unsaved buffer"
                                ", and save")))
        ;; Before that, so that undo in its buffer brings the edit back.
        (unless (or new
                    ;; Visiting it may ask for a password.
                    (find-file-name-handler file 'insert-file-contents)
                    ;; Tramp would block Emacs.
                    (and (gemini-companion-names-of-copy file)
                         (null (gemini-companion-names-buffer file))))
          (gemini-companion-windows-show-beside (gemini-companion-revert-visit file)
                                                #'display-buffer))
        (gemini-companion-undo-edit edit hunk)))))

(defun gemini-companion-list--revert-turn (edits)
  "Revert EDITS, those of a turn, after asking; the last one first."
  (let* ((edits (or (seq-remove #'gemini-companion-undo-unwritten edits)
                    (user-error "This turn has no edit to undo")))
         (new (seq-count (lambda (edit)
                           (eq 'new (gemini-companion-edit-before edit)))
                         edits))
         (count (length edits)))
    (when (y-or-n-p
           (format (ngettext "Undo %d edit of this turn%s? "
                             "Undo %d edits of this turn%s? " count)
                   count
                   (if (zerop new)
                       ""
                     (format (ngettext " (%d deletes a new file)"
                                       " (%d delete new files)" new)
                             new))))
      (gemini-companion-list--revert-all (reverse edits) count nil))))

(defun gemini-companion-list--revert-all (edits count problems)
  "Revert EDITS, the last ones of COUNT, one after another.
PROBLEMS are those of the previous ones."
  (let* ((add (lambda (problem)
                (setq problems (append problems (ensure-list problem)))))
         (go-on (lambda (problem)
                  (funcall add problem)
                  (gemini-companion-list--revert-all edits count problems)))
         (ended t))
    (while (and edits ended)
      (setq ended (condition-case problem
                      (gemini-companion-undo-edit (pop edits) nil go-on)
                    (error (funcall add (error-message-string problem))))))
    (when ended
      (message "%s%s"
               (gemini-companion-list--undone (- count (length problems)) count)
               (mapconcat (apply-partially #'concat "; ") problems "")))))

(defun gemini-companion-list--undone (done count)
  "Return a text that DONE of COUNT edits were undone."
  (cond ((= 0 done) "Nothing undone")
        ((= done count) (format (ngettext "Undid %d edit" "Undid %d edits" done)
                                done))
        (t (format "Undid %d of %d edits" done count))))

(defun gemini-companion-list-keep ()
  "Keep the changes of the edit at point that you have not reviewed.
If they are kept, make them changes again.  On the line of a turn or a CLI,
keep those of all edits of the turn; what has lines of another turn stays."
  (interactive nil gemini-companion-list-mode)
  (if-let* ((edits (gemini-companion-list--get :edits)))
      (gemini-companion-list--keep-all edits)
    (let ((edit (gemini-companion-edit-current)))
      (if (not (gemini-companion-changes-kept-p edit))
          (gemini-companion-list--keep-all (list edit))
        (pcase (gemini-companion-undo-unwritten edit)
          ((and why (pred stringp))
           (user-error "%s %s" (gemini-companion-edit-name edit) why)))
        (let ((left (gemini-companion-changes-unkeep edit)))
          (gemini-companion-page-refresh)
          (message (ngettext "Not kept any more: %d change of %s is left"
                             "Not kept any more: %d changes of %s are left" left)
                   left (gemini-companion-edit-name edit 'plain)))))))

(defun gemini-companion-list--keep-all (edits)
  "Keep the changes of EDITS, all of one turn, and report how many these are.
Those with lines of another turn are not kept if EDITS are several."
  (let ((kept 0)
        (shared 0)
        (turn (gemini-companion-edit-turn (car edits))))
    (dolist (edit edits)
      (pcase (gemini-companion-changes-of-edit edit)
        (`(,record . ,changes)
         (let ((own (if (cdr edits)
                        (seq-filter
                         (lambda (change)
                           (seq-every-p
                            (lambda (other)
                              (eq turn (gemini-companion-edit-turn other)))
                            (gemini-companion-weave-change-edits change)))
                         changes)
                      changes)))
           (cl-incf kept (length own))
           (cl-incf shared (- (length changes) (length own)))
           (when own
             (gemini-companion-changes-keep record own))))))
    (when (= 0 kept shared)
      (user-error "No changes to keep here"))
    (gemini-companion-page-refresh)
    (message "%s%s"
             (format (ngettext "Kept %d change" "Kept %d changes" kept) kept)
             (or (gemini-companion-walk-shared shared) ""))))

(defun gemini-companion-last-proposal ()
  "Show the last text that you edited or accepted and that was not written.
It is of a review that you answered in the terminal of the CLI, that
another proposal replaced, or that ended in another way than by your
answer.  After an interrupt of the CLI, it need not be edited.  Call
this again there for the text before, up to ten of them."
  (interactive)
  (let* ((kept (or (gemini-companion-edits-kept)
                   (user-error "No unwritten proposal to show")))
         (buffer (get-buffer-create "*gemini last proposal*"))
         (shown (and (eq buffer (window-buffer))
                     (seq-position kept (buffer-local-value
                                         'gemini-companion-edit-here buffer)
                                   #'eq)))
         (number (if shown (% (1+ shown) (length kept)) 0))
         (edit (nth number kept))
         (inhibit-read-only t))
    (gemini-companion-windows-at-once
      (pop-to-buffer buffer '(nil (category . gemini-companion-list))))
    (special-mode)
    (setq gemini-companion-edit-here edit)
    (erase-buffer)
    (insert (cdr (gemini-companion-edit-kept edit)))
    (goto-char (point-min))
    (message "%s, %d of %d"
             (gemini-companion-names-absolute (gemini-companion-edit-file edit))
             (1+ number) (length kept))))

(provide 'gemini-companion-list)
;;; gemini-companion-list.el ends here
