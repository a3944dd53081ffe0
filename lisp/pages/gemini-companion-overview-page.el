;;; gemini-companion-overview-page.el --- The text of the overview  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The text of the overview: which row is at point, which rows are folded, how changed
;; rows and diffs are redrawn, and how point moves to a row or a change.  The file
;; `gemini-companion-overview-row' computes the rows, and
;; `gemini-companion-overview-draw' draws them.
;;
;; The buffer is a page, see `gemini-companion-page', and an outline.  The text below a
;; folded row is drawn when the user unfolds the row.

;;; Code:

(require 'gemini-companion-changes)
(require 'gemini-companion-choice)
(require 'gemini-companion-edit)
(require 'gemini-companion-garbage)
(require 'gemini-companion-hunk)
(require 'gemini-companion-idle)
(require 'gemini-companion-names)
(require 'gemini-companion-overview-draw)
(require 'gemini-companion-overview-row)
(require 'gemini-companion-page)
(require 'gemini-companion-record)
(require 'gemini-companion-text)
(require 'gemini-companion-unified-draw)
(require 'outline)

;;;; State

(defconst gemini-companion-overview-page-buffer "*gemini*"
  "Name of the buffer.")

(defvar-local gemini-companion-overview-page--rows nil
  "The rows as they were drawn last, those of level 1.")

(defvar-local gemini-companion-overview-page--by-key nil
  "Table from keys to rows.")

(defvar-local gemini-companion-overview-page--parents nil
  "Table from keys to the rows above them.")

(defvar-local gemini-companion-overview-page--texts nil
  "Table from keys of sections to what was drawn last.
A value is a cons of the state, compared by `equal', and the text.")

(defvar-local gemini-companion-overview-page--chosen nil
  "Table from keys to `open' or `folded', as the user has chosen that.")

(defvar-local gemini-companion-overview-page--shown nil
  "Table from keys to whether the row was unfolded when it was drawn last.
The values are `open' or `folded'.")

(defvar-local gemini-companion-overview-page--displayed nil
  "Value of `gemini-companion-overview-page--texts' when a window displayed it.")

(defvar-local gemini-companion-overview-page--since nil
  "Alist from IDs of proposals to the times when they were displayed first.")

(defvar gemini-companion-overview-page-seconds 1
  "Seconds for which a proposal must be displayed before a key answers it.")

(defvar-local gemini-companion-overview-page-directory nil
  "The directory from which the user came.  Its CLI comes first.")

(defvar gemini-companion-overview-page-going-to nil
  "The row to which a command goes, or nil.  It and its turn stay unfolded.")

(defvar gemini-companion-overview-page-sign-map (make-sparse-keymap)
  "Keymap of the sign before a row that can be folded.
`gemini-companion-overview' binds its keys.")

(defun gemini-companion-overview-page-set-up ()
  "Make the current buffer one without rows, of which nothing is drawn."
  (dolist (table '(gemini-companion-overview-page--by-key
                   gemini-companion-overview-page--parents
                   gemini-companion-overview-page--texts
                   gemini-companion-overview-page--chosen
                   gemini-companion-overview-page--shown))
    (set table (make-hash-table :test 'equal))))

;;;; Rows

(defun gemini-companion-overview-page-all-rows ()
  "Return all rows in order, also those below folded ones."
  (gemini-companion-overview-row-flat gemini-companion-overview-page--rows))

(defun gemini-companion-overview-page-row-of-key (key)
  "Return the row of KEY, or nil if there is none now."
  (gethash key gemini-companion-overview-page--by-key))

(defun gemini-companion-overview-page-computed (row)
  "Return the row for what ROW is of, computed now, or nil; nothing is drawn.
A command that decides about ROW draws the result."
  (gemini-companion-names-search-once
    (gemini-companion-garbage-later
      (seq-find (lambda (other)
                  (equal (gemini-companion-overview-row-key row)
                         (gemini-companion-overview-row-key other)))
                (gemini-companion-overview-row-flat
                 (gemini-companion-overview-rows
                  gemini-companion-overview-page-directory
                  (gemini-companion-overview-page--plain
                   (gemini-companion-overview-row-turn row))))))))

(defun gemini-companion-overview-page-row ()
  "Return the row of the line at point, or of the text at point, or nil."
  (when-let* ((key (get-text-property (point) 'gemini-companion-overview-key)))
    (gemini-companion-overview-page-row-of-key key)))

(defun gemini-companion-overview-page-row-or-error ()
  "Return the row at point, or signal an error."
  (or (gemini-companion-overview-page-row)
      (user-error "No row here; n goes to the next one")))

(defun gemini-companion-overview-page-kind ()
  "Return the kind of the row at point, or nil."
  (when-let* ((row (gemini-companion-overview-page-row)))
    (gemini-companion-overview-row-kind row)))

(defun gemini-companion-overview-page-on-heading-p ()
  "Return non-nil if point is on the line of a row, not in the text below."
  (and (get-text-property (line-beginning-position) 'gemini-companion-overview-heading) t))

(defun gemini-companion-overview-page-parent (row)
  "Return the row above ROW, or nil."
  (gethash (gemini-companion-overview-row-key row) gemini-companion-overview-page--parents))

(defun gemini-companion-overview-page-ancestor (row kind)
  "Return ROW, or the row above it, that is of KIND, or nil."
  (while (and row (not (eq kind (gemini-companion-overview-row-kind row))))
    (setq row (gemini-companion-overview-page-parent row)))
  row)

(defun gemini-companion-overview-page-change-id ()
  "Return a cons that identifies the change at point in its row, or nil.
The car is `left' or `decided', the cdr the number of the change."
  (get-text-property (point) 'gemini-companion-overview-change))

(defun gemini-companion-overview-page-change ()
  "Return the change at point, left or decided, as it was drawn, or nil."
  (pcase (gemini-companion-overview-page-change-id)
    (`(left . ,number)
     (nth number (gemini-companion-overview-row-left (gemini-companion-overview-page-row))))
    (`(decided . ,number)
     (nth number (gemini-companion-overview-row-decided
                  (gemini-companion-overview-page-row))))))

(defun gemini-companion-overview-page-current-change ()
  "Return the change at point, computed again.
Signal an error if it shows other lines than those that the user has seen; these
are then drawn."
  (let* ((seen (gemini-companion-overview-page-change))
         (record (gemini-companion-overview-row-record
                  (gemini-companion-overview-page-row)))
         (look (and record (gemini-companion-changes-look record)))
         (shown (and seen (gemini-companion-changes-shown seen)))
         (equals (and look shown
                      (seq-filter
                       (lambda (change)
                         (equal shown (gemini-companion-changes-shown change)))
                       (if (gemini-companion-record-decided-p seen)
                           (gemini-companion-changes-seen-decided look)
                         (gemini-companion-changes-file-known record))))))
    ;; Two parts of one hunk may be equal.
    (or (car (seq-sort-by (lambda (change)
                            (abs (- (gemini-companion-hunk-new change)
                                    (gemini-companion-hunk-new seen))))
                          #'< equals))
        (gemini-companion-overview-page-refuse
         "This change has changed since you saw it; read it again"))))

(defun gemini-companion-overview-page-refuse (problem)
  "Draw the overview again, and signal PROBLEM, a text, as a `user-error'.
Keys that were typed already are not about what is drawn now, and are dropped."
  (gemini-companion-page-refresh)
  (gemini-companion-choice-forget-keys)
  (user-error "%s" problem))

;;;; Folding

(defun gemini-companion-overview-page--read-folds ()
  "Note which rows the user has folded or unfolded by commands of the outline."
  (let ((beg (point-min)))
    (pcase-dolist (`(,section . ,text) (gemini-companion-page-sections))
      (pcase section
        (`(row ,key)
         (when-let* ((shown (gethash key gemini-companion-overview-page--shown)))
           (unless (invisible-p beg)
             (let ((now (if (outline-invisible-p (+ beg (length text) -1))
                            'folded
                          'open)))
               (unless (eq now shown)
                 (puthash key now gemini-companion-overview-page--chosen)))))))
      (setq beg (+ beg (length text))))))

(defun gemini-companion-overview-page--fits-p (row)
  "Return non-nil if the diff of ROW, a file, about fits into the window."
  (<= (cl-loop for change in (gemini-companion-overview-row-left row)
               sum (+ 4 (length (gemini-companion-hunk-lines change))
                      (gemini-companion-hunk-new-count change)))
      (max 12 (window-height (get-buffer-window nil t)))))

(defun gemini-companion-overview-page--open-by-default (rows)
  "Return the keys of the rows that are unfolded at first.
These are among ROWS, which are of level 1, and the rows below."
  (let ((keys nil))
    (cl-flet ((open (row)
                (push (gemini-companion-overview-row-key row) keys)))
      (dolist (row rows)
        (pcase (gemini-companion-overview-row-kind row)
          ('waiting
           (open row)
           (open (car (gemini-companion-overview-row-rows row)))
           ;; All files of a request are unfolded, since one answer is for all.
           (dolist (request (gemini-companion-overview-row-rows row))
             (when (gemini-companion-overview-row-rows request)
               (open request)
               (mapc #'open (gemini-companion-overview-row-rows request)))))
          ('cli
           (let* ((turns (gemini-companion-overview-row-rows row))
                  (turn (or (seq-find (lambda (turn)
                                        (< 0 (gemini-companion-overview-row-count-left
                                              turn)))
                                      turns)
                            (seq-find #'gemini-companion-overview-row-rows turns))))
             (open row)
             (when turn
               (open turn)
               (let ((file (seq-find #'gemini-companion-overview-row-left
                                     (gemini-companion-overview-row-rows turn))))
                 (when (and file (gemini-companion-overview-page--fits-p file))
                   (open file)))
               (dolist (file (gemini-companion-overview-row-files turn))
                 (when (and (gemini-companion-overview-row-comments-p file)
                            (gemini-companion-comments-of-file
                             (gemini-companion-overview-row-file file)))
                   (open file)))))))))
    keys))

(defun gemini-companion-overview-page--open-p (row default turn here)
  "Return non-nil if ROW is to be unfolded.
DEFAULT are the keys of the rows that are unfolded by default.  HERE are the
keys of the row of point and the rows above it, and TURN is the turn of point,
or nil; all these rows are folded only by the user."
  (let ((key (gemini-companion-overview-row-key row)))
    (pcase (gethash key gemini-companion-overview-page--chosen)
      ('open t)
      ('folded nil)
      (_ (or (member key default)
             (and (eq 'open (gethash key gemini-companion-overview-page--shown))
                  (or (memq (gemini-companion-overview-row-kind row)
                            '(cli proposal request))
                      (member key here)
                      (and turn
                           (eq turn (gemini-companion-overview-row-turn row))))))))))

(defun gemini-companion-overview-page-shown (row)
  "Return `open' or `folded', as ROW was drawn last, or nil if nothing is below it."
  (gethash (gemini-companion-overview-row-key row) gemini-companion-overview-page--shown))

(defun gemini-companion-overview-page-choose (row state)
  "Record that the user wants ROW to be STATE, `open' or `folded'."
  (puthash (gemini-companion-overview-row-key row) state
           gemini-companion-overview-page--chosen))

(defun gemini-companion-overview-page-unfold (above &optional row)
  "Draw the buffer with ABOVE and the rows above it unfolded, to go to ROW.
ROW is by default ABOVE.  The user has not chosen that, so they may be folded
again by themselves."
  (let ((gemini-companion-overview-page-going-to (or row above)))
    (while above
      (let ((key (gemini-companion-overview-row-key above)))
        (when (eq 'folded (gethash key gemini-companion-overview-page--chosen))
          (remhash key gemini-companion-overview-page--chosen))
        (puthash key 'open gemini-companion-overview-page--shown)
        (setq above (gemini-companion-overview-page-parent above))))
    (gemini-companion-page-refresh)))

;;;; Drawing

(defun gemini-companion-overview-page-write (&optional fresh)
  "Draw the rows that differ; keep point, windows and folds.
If FRESH is non-nil, draw all rows, and fold as by default those in which point
is not, unless the user has chosen otherwise."
  (gemini-companion-names-search-once
    ;; Drawing 400 changes, Emacs would collect garbage for most of the time.
    (gemini-companion-garbage-later
      (gemini-companion-overview-page--write fresh))))

(defun gemini-companion-overview-page--write (fresh)
  "Draw the rows that differ.
For FRESH, see `gemini-companion-overview-page-write'."
  (let* ((points (gemini-companion-overview-page--points))
         (going-to gemini-companion-overview-page-going-to)
         (keys (unless going-to (cdr (assq nil points))))
         (here (or going-to (gemini-companion-overview-page-row)))
         (turn (and here (gemini-companion-overview-row-turn here)))
         (known gemini-companion-overview-page--by-key))
    (unless going-to
      (gemini-companion-overview-page--read-folds))
    (when fresh
      (setq gemini-companion-overview-page--texts (make-hash-table :test 'equal)))
    (let ((rows (gemini-companion-overview-rows
                 gemini-companion-overview-page-directory
                 (if fresh keys (gemini-companion-overview-page--plain turn)))))
      (gemini-companion-overview-page--set-folds rows (unless fresh turn) keys)
      (gemini-companion-overview-page--draw rows))
    (gemini-companion-overview-page--restore-points points)
    (gemini-companion-overview-page--show-new known)
    (force-mode-line-update)))

(defun gemini-companion-overview-page--set-folds (rows turn here)
  "Decide which of ROWS, those of level 1, and of the rows below are unfolded.
For TURN and HERE, see `gemini-companion-overview-page--open-p'."
  (let ((default (gemini-companion-overview-page--open-by-default rows))
        (shown (make-hash-table :test 'equal)))
    (dolist (row (gemini-companion-overview-row-flat rows))
      (puthash (gemini-companion-overview-row-key row)
               (if (gemini-companion-overview-page--open-p row default turn here)
                   'open
                 'folded)
               shown))
    (setq gemini-companion-overview-page--shown shown)))

(defun gemini-companion-overview-page--draw (rows)
  "Replace the text of the page by that of ROWS, those of level 1."
  (let ((sections (gemini-companion-overview-page--sections
                   rows (gemini-companion-overview-draw-width))))
    ;; The rows and the text belong together: a redisplay while the text is drawn, or
    ;; after an error, reads both for the header line.
    (gemini-companion-overview-page--set-rows rows)
    (remove-overlays nil nil 'invisible 'outline)
    (gemini-companion-page-replace-sections sections)
    (gemini-companion-overview-page--hide-folded)))

(defun gemini-companion-overview-page--plain (turn)
  "Return the keys of the rows of files of TURN that are displayed by themselves."
  (when turn
    (cl-loop for row in (gemini-companion-overview-page-all-rows)
             when (and (eq turn (gemini-companion-overview-row-turn row))
                       (eq 'file (gemini-companion-overview-row-kind row))
                       (= 3 (gemini-companion-overview-row-level row)))
             collect (gemini-companion-overview-row-key row))))

(defun gemini-companion-overview-page--set-rows (rows)
  "Set ROWS, those of level 1, as the rows of the page, and the tables of them."
  (setq gemini-companion-overview-page--rows rows
        gemini-companion-overview-page--by-key (make-hash-table :test 'equal)
        gemini-companion-overview-page--parents (make-hash-table :test 'equal))
  (cl-labels ((add (row parent)
                (let ((key (gemini-companion-overview-row-key row)))
                  (puthash key row gemini-companion-overview-page--by-key)
                  (when parent
                    (puthash key parent gemini-companion-overview-page--parents))
                  (dolist (below (gemini-companion-overview-row-rows row))
                    (add below row)))))
    (dolist (row rows)
      (add row nil))))

(defun gemini-companion-overview-page--sections (rows width)
  "Return the sections of ROWS, those of level 1, for WIDTH columns.
They are as for `gemini-companion-page-replace-sections'.  Record them as drawn."
  (let ((texts (make-hash-table :test 'equal))
        (edge (gemini-companion-overview-draw-edge))
        (sections nil))
    (cl-labels
        ((add (key drawn)
           (puthash key drawn texts)
           (push (cons key (cdr drawn)) sections))
         (draw (row)
           (let* ((key (gemini-companion-overview-row-key row))
                  (body (gemini-companion-overview-page--body row))
                  (below (gemini-companion-overview-row-rows row))
                  (open (eq 'open (gethash key gemini-companion-overview-page--shown)))
                  (fold (cond ((not (or body below)) nil) (open 'open) (t 'folded))))
             (add (list 'row key)
                  (gemini-companion-overview-page--drawn-heading row fold width edge))
             (pcase fold
               ('nil (remhash key gemini-companion-overview-page--shown))
               ('folded (add (list 'fold key)
                             (gemini-companion-overview-page--drawn
                              (list 'fold key) nil
                              (lambda ()
                                (propertize "    ...\n"
                                            'gemini-companion-overview-key key)))))
               ('open (when body
                        (add (list 'body key) body))
                      (mapc #'draw below))))))
      (dolist (row rows)
        (draw row)
        (when (and (eq 'waiting (gemini-companion-overview-row-kind row))
                   (<= gemini-companion-overview-draw-wide width))
          (push '((blank) . "\n") sections))))
    (setq gemini-companion-overview-page--texts texts)
    (nreverse sections)))

(defun gemini-companion-overview-page--drawn (key state draw)
  "Return a cons of STATE and the text of the section of KEY.
DRAW is a function that returns the text.  If it was drawn last in the same
STATE, by `equal', return that cons: its text is left as it is."
  (let ((last (gethash key gemini-companion-overview-page--texts)))
    (if (and last (equal state (car last)))
        last
      (cons state (funcall draw)))))

(defun gemini-companion-overview-page--drawn-heading (row fold width edge)
  "Return a cons of a state and the line of ROW, for WIDTH columns.
For FOLD, see `gemini-companion-overview-page--heading'; for EDGE, see
`gemini-companion-overview-draw-edge'."
  (let ((key (list 'row (gemini-companion-overview-row-key row)))
        (state (gemini-companion-overview-draw-heading-state row))
        (draw (lambda () (gemini-companion-overview-page--heading row fold width))))
    (if state
        (gemini-companion-overview-page--drawn key (list fold width edge state) draw)
      ;; Without a state, a row is drawn again only if its text differs.
      (let ((text (funcall draw)))
        (gemini-companion-overview-page--drawn
         key (cons edge (substring-no-properties text)) (lambda () text))))))

(defun gemini-companion-overview-page--heading (row fold width)
  "Return the line of ROW for WIDTH columns.
FOLD is `open' or `folded', or nil if nothing is below it."
  (let* ((sign (pcase fold
                 ('open (gemini-companion-text-sign ?\u25BE "v"))
                 ('folded (gemini-companion-text-sign ?\u25B8 ">"))
                 (_ " ")))
         (text (concat (gemini-companion-overview-draw-heading
                        row
                        (concat (if fold
                                    (propertize
                                     sign 'keymap gemini-companion-overview-page-sign-map
                                     'mouse-face 'highlight
                                     'help-echo "mouse-1: fold or unfold")
                                  sign)
                                " ")
                        width)
                       "\n")))
    (when (eq 'file (gemini-companion-overview-row-kind row))
      (add-face-text-property 0 (length text) 'gemini-companion-file 'append text))
    (add-text-properties 0 (length text)
                         (list 'gemini-companion-overview-key
                               (gemini-companion-overview-row-key row)
                               'gemini-companion-overview-heading t)
                         text)
    ;; The regexp of headings matches no other character.
    (put-text-property 0 1 'syntax-table (string-to-syntax "|") text)
    (when (gemini-companion-overview-page--needs-p row)
      (put-text-property 0 1 'gemini-companion-change t text))
    text))

(defun gemini-companion-overview-page--body (row)
  "Return a cons of a state and the text below ROW, or nil if there is none.
The text of a folded row is not drawn: it is nil.  That of a proposal has a
property with the version that is drawn."
  (when (gemini-companion-overview-draw-body-p row)
    (let ((key (gemini-companion-overview-row-key row))
          (unfolded gemini-companion-unified-draw-unfolded))
      (if (not (or (eq 'open (gethash key gemini-companion-overview-page--shown))
                   (eq 'request (gemini-companion-overview-row-kind row))))
          (list nil)
        (let* ((state (gemini-companion-overview-draw-body-state row unfolded))
               (body (gemini-companion-overview-page--drawn
                      (list 'body key) state
                      (lambda ()
                        (propertize
                         (gemini-companion-overview-draw-body row unfolded)
                         'gemini-companion-overview-key key
                         'gemini-companion-version
                         (when (eq 'proposal (gemini-companion-overview-row-kind row))
                           (let ((edit (gemini-companion-overview-row-edit row)))
                             (gemini-companion-overview-page--version
                              edit (gemini-companion-edit-compared edit)))))))))
          (unless (string-empty-p (cdr body))
            body))))))

(defun gemini-companion-overview-page--version (edit state)
  "Return what identifies what accepting EDIT sends, in STATE, by `equal'.
For STATE, see `gemini-companion-edit-texts-state'."
  (list (gemini-companion-edit-id edit) state
        (when-let* ((proposal (gemini-companion-edit-proposal-buffer edit)))
          (gemini-companion-hunk-excluded proposal))))

(defun gemini-companion-overview-page--drawn-version (row texts)
  "Return the version of ROW, a proposal, that is drawn in TEXTS, or nil.
TEXTS are as of `gemini-companion-overview-page--texts', or nil."
  (when-let* ((text (and texts
                         (cdr (gethash (list 'body (gemini-companion-overview-row-key row))
                                       texts))))
              ((not (string-empty-p text))))
    (get-text-property 0 'gemini-companion-version text)))

(defun gemini-companion-overview-page-note-display (_window)
  "Note that a window is about to display the overview as it is drawn."
  (unless (eq gemini-companion-overview-page--displayed
              gemini-companion-overview-page--texts)
    (setq gemini-companion-overview-page--displayed gemini-companion-overview-page--texts)
    (cl-loop for drawn being the hash-values of gemini-companion-overview-page--texts
             for text = (cdr drawn)
             for version = (and text
                                (not (string-empty-p text))
                                (get-text-property 0 'gemini-companion-version text))
             ;; The text of a proposal is drawn.
             unless (or (null version)
                        (assoc (car version) gemini-companion-overview-page--since))
             do (push (cons (car version) (float-time))
                      gemini-companion-overview-page--since))))

(defun gemini-companion-overview-page-unfolded-p (row)
  "Return non-nil if the text of ROW, a proposal, is drawn and not folded."
  (when-let* ((bounds (gemini-companion-page-section
                       (list 'body (gemini-companion-overview-row-key row)))))
    (not (invisible-p (car bounds)))))

(defun gemini-companion-overview-page-current-p (row)
  "Return non-nil if the text of ROW, a proposal, is drawn as it is now."
  (let ((edit (gemini-companion-overview-row-edit row)))
    (equal (gemini-companion-overview-page--drawn-version
            row gemini-companion-overview-page--texts)
           (gemini-companion-overview-page--version
            edit (gemini-companion-edit-texts-state edit)))))

(defun gemini-companion-overview-page-displayed-p (row)
  "Return non-nil if the text of ROW, a proposal, was displayed as it is drawn.
A key that is typed within a second may have been meant for something else; but
not after a change by the user, such as excluding a hunk."
  (when-let* ((drawn (gemini-companion-overview-page--drawn-version
                      row gemini-companion-overview-page--texts))
              ((equal drawn (gemini-companion-overview-page--drawn-version
                             row gemini-companion-overview-page--displayed)))
              (since (alist-get (car drawn) gemini-companion-overview-page--since)))
    (not (gemini-companion-idle-since-p since gemini-companion-overview-page-seconds))))

(defun gemini-companion-overview-page--hide-folded ()
  "Hide the text below rows that are folded."
  (let ((beg (point-min)))
    (pcase-dolist (`(,section . ,text) (gemini-companion-page-sections))
      (let ((end (+ beg (length text))))
        (when (eq 'fold (car section))
          (outline-flag-region (1- beg) (1- end) t))
        (setq beg end)))))

(defun gemini-companion-overview-page--points ()
  "Return the row of point in each window and in the buffer.
The value is a list of (WINDOW . KEYS).
KEYS are those of its row and of the rows above that; WINDOW is nil for the
buffer."
  (mapcar (lambda (window)
            (save-excursion
              (when window
                (goto-char (window-point window)))
              (let ((row (gemini-companion-overview-page-row))
                    (keys nil))
                (while row
                  (push (gemini-companion-overview-row-key row) keys)
                  (setq row (gemini-companion-overview-page-parent row)))
                (cons window (nreverse keys)))))
          (cons nil (get-buffer-window-list nil nil t))))

(defun gemini-companion-overview-page--restore-points (points)
  "Move each of POINTS whose row is gone to the row above it.
POINTS are as of `gemini-companion-overview-page--points'.  If the
row still exists, or point was not in a row, point stays."
  (pcase-dolist (`(,window . ,keys) points)
    (let ((position (if window (window-point window) (point))))
      (save-excursion
        (goto-char position)
        (let ((row (gemini-companion-overview-page-row)))
          (unless (or (null keys)
                      (and row
                           (not (invisible-p (point)))
                           (equal (car keys) (gemini-companion-overview-row-key row))))
            (setq position
                  (or (car (seq-some (lambda (key)
                                       (gemini-companion-page-section (list 'row key)))
                                     keys))
                      (progn
                        (while (and (not (bobp))
                                    (or (eobp) (invisible-p (line-beginning-position))))
                          (forward-line -1))
                        (point)))))))
      (if window
          (set-window-point window position)
        (goto-char position)))))

(defun gemini-companion-overview-page--show-new (known)
  "Scroll each window to the first new row of what waits, if that is not visible.
KNOWN is a table of the keys of the rows that were drawn before.  Point stays at
its row, unless the window is not selected and too small for both."
  (when-let* ((new (seq-find
                    (lambda (row)
                      (and (memq (gemini-companion-overview-row-kind row)
                                 '(proposal request))
                           (null (gethash (gemini-companion-overview-row-key row)
                                          known))))
                    (gemini-companion-overview-page-drawn-rows)))
              (position (gemini-companion-overview-page-begin-of new)))
    (dolist (window (get-buffer-window-list nil nil t))
      (gemini-companion-overview-page--scroll-to position window))))

(defun gemini-companion-overview-page-begin-of (row)
  "Return the position of ROW, with the heading of what waits if it is the first.
Return nil if ROW is not displayed."
  (let ((shown (if (eq row (gemini-companion-overview-page-waiting-row))
                   (gemini-companion-overview-page-parent row)
                 row)))
    (car (gemini-companion-page-section
          (list 'row (gemini-companion-overview-row-key shown))))))

(defun gemini-companion-overview-page--scroll-to (position window)
  "Scroll WINDOW so that the line at POSITION is visible, and point as well.
If there is no room for both, do nothing in the selected window, and move point
in another one."
  (let* ((height (window-body-height window))
         (start (window-start window))
         (point (window-point window))
         (fits-p (lambda (from to)
                   ;; Between them, there may be many thousand lines.
                   (and (<= from to)
                        (save-excursion
                          (goto-char from)
                          (or (< (vertical-motion height window) height)
                              (< to (point))))))))
    (cond ((funcall fits-p start position))
          ((funcall fits-p position point)
           (set-window-start window position))
          ((funcall fits-p point position)
           (save-excursion
             (goto-char position)
             (vertical-motion (- 1 height) window)
             (set-window-start window (point))))
          ((not (eq window (selected-window)))
           (set-window-point window position)
           (set-window-start window position)))))

(defun gemini-companion-overview-page--needs-p (row)
  "Return non-nil if something at or below ROW waits for the user, or is left."
  (or (memq (gemini-companion-overview-row-kind row)
            '(note waiting proposal request taken))
      (gemini-companion-overview-row-asks-p row)
      (< 0 (gemini-companion-overview-row-count-left row))))

;;;; Going

(defun gemini-companion-overview-page-go-to-row (row)
  "Go to the line of ROW, which is unfolded for that; return non-nil."
  (let ((parent (gemini-companion-overview-page-parent row)))
    (when (and parent
               (null (gemini-companion-page-section
                      (list 'row (gemini-companion-overview-row-key row)))))
      (gemini-companion-overview-page-unfold parent row)))
  (when-let* ((bounds (gemini-companion-page-section
                       (list 'row (gemini-companion-overview-row-key row)))))
    (goto-char (car bounds))
    t))

(defun gemini-companion-overview-page-targets ()
  "Return the changes that are left, a list of (ROW . NUMBER), in order."
  (cl-loop for row in (gemini-companion-overview-page-all-rows)
           append (cl-loop for number from 0
                           below (length (gemini-companion-overview-row-left row))
                           collect (cons row number))))

(defun gemini-companion-overview-page-target-number ()
  "Return the number of the change at or after point, from 0.
Only changes that are left are counted."
  (let ((here (gemini-companion-overview-page-row))
        (id (gemini-companion-overview-page-change-id)))
    (+ (cl-loop for row in (gemini-companion-overview-page-all-rows)
                until (eq row here)
                sum (length (gemini-companion-overview-row-left row)))
       (if (eq 'left (car id)) (cdr id) 0))))

(defun gemini-companion-overview-page-go-to-change (target)
  "Go to TARGET, a cons of a row and the number of a change that is left there."
  (pcase-let* ((`(,row . ,number) target)
               (key (gemini-companion-overview-row-key row)))
    (unless (gemini-companion-page-section (list 'body key))
      (gemini-companion-overview-page-unfold row))
    (goto-char (or (gemini-companion-overview-page--position-of key (cons 'left number))
                   ;; The rest of a long diff is not drawn.
                   (pcase (gemini-companion-page-section (list 'body key))
                     (`(,beg . ,end)
                      (text-property-any beg end 'gemini-companion-change 'more)))
                   (car (gemini-companion-page-section (list 'row key)))
                   (point)))
    (gemini-companion-overview-page--reveal)))

(defun gemini-companion-overview-page-go-to-restored ()
  "Redraw the buffer, and go to the first change that was not left before.
Stay if there is none."
  (let ((before (make-hash-table :test #'eq)))
    (dolist (row (gemini-companion-overview-page-all-rows))
      (dolist (change (gemini-companion-overview-row-left row))
        (dolist (hunk (gemini-companion-record-change-hunks change))
          (puthash hunk t before))))
    (gemini-companion-page-refresh)
    (when-let* ((restored
                 (cl-loop
                  named search
                  for row in (gemini-companion-overview-page-all-rows)
                  do (cl-loop
                      for change in (gemini-companion-overview-row-left row)
                      for number from 0
                      unless (seq-every-p (lambda (hunk) (gethash hunk before))
                                          (gemini-companion-record-change-hunks change))
                      do (cl-return-from search (cons row number))))))
      (gemini-companion-overview-page-go-to-change restored))))

(defun gemini-companion-overview-page--position-of (key id)
  "Return where the change with ID begins in the text below the row of KEY."
  (pcase (gemini-companion-page-section (list 'body key))
    (`(,beg . ,end)
     (cl-loop for at = beg then (next-single-property-change
                                 at 'gemini-companion-overview-change nil end)
              while (< at end)
              when (equal id (get-text-property at 'gemini-companion-overview-change))
              return at))))

(defun gemini-companion-overview-page--reveal ()
  "Make the change at point visible, if the overview is in the selected window."
  (when (eq (current-buffer) (window-buffer))
    (let ((end (next-single-property-change (point) 'gemini-companion-hunk
                                            nil (point-max))))
      (unless (and (pos-visible-in-window-p)
                   (pos-visible-in-window-p (max (point) (1- end))))
        (recenter (min 4 (/ (window-body-height) 3)))))))

(defun gemini-companion-overview-page--changes ()
  "Return the positions of the visible hunks and changes, in order."
  (let* ((next (lambda (position)
                 (text-property-not-all position (point-max)
                                        'gemini-companion-change nil)))
         (position (funcall next (point-min)))
         (positions nil))
    (while position
      (unless (invisible-p position)
        (push position positions))
      (setq position (funcall next (1+ position))))
    (nreverse positions)))

(defun gemini-companion-overview-page-after (index here what)
  "Redraw the buffer, report WHAT was done, and go to the next change left.
A command has acted on HERE, a row, and INDEX is the number of changes left
before it.  The next change is searched for in the same file, then in the same
turn, then in the same CLI; without one, a request that waits is next.  WHAT is
a text such as \"Kept 1 change\"."
  (gemini-companion-page-refresh)
  (let* ((targets (gemini-companion-overview-page-targets))
         (here (or (gemini-companion-overview-page-row-of-key
                    (gemini-companion-overview-row-key here))
                   here))
         (next
          (seq-some
           (lambda (kind)
             (let* ((row (gemini-companion-overview-page-ancestor here kind))
                    (key (and row (gemini-companion-overview-row-key row)))
                    (in-p (lambda (target)
                            (let ((above (gemini-companion-overview-page-ancestor
                                          (car target) kind)))
                              (and above
                                   (equal key (gemini-companion-overview-row-key
                                               above)))))))
               (and row
                    (or (seq-find in-p (nthcdr index targets))
                        (seq-find in-p targets)))))
           '(file turn cli)))
         (left (length targets)))
    (cond (next (gemini-companion-overview-page-go-to-change next))
          ((gemini-companion-overview-page-waiting-row)
           (gemini-companion-overview-page-go-to-row (gemini-companion-overview-page-waiting-row)))
          (targets (gemini-companion-overview-page-go-to-change (car targets))))
    (message "%s; %s" what
             (if (= 0 left)
                 "nothing left, q quits"
               (format (ngettext "%d change is left" "%d changes are left" left)
                       left)))))

(defun gemini-companion-overview-page-waiting-row ()
  "Return the first row of what waits, or nil."
  (let ((first (seq-find (lambda (row)
                           (eq 'waiting (gemini-companion-overview-row-kind row)))
                         gemini-companion-overview-page--rows)))
    (and first (car (gemini-companion-overview-row-rows first)))))

(defun gemini-companion-overview-page-go-to-first ()
  "Go to the first change that is left, or to the first row."
  (let ((first (car (gemini-companion-overview-page-targets))))
    (if first
        (gemini-companion-overview-page-go-to-change first)
      (goto-char (point-min))
      (when (eq 'note (gemini-companion-overview-page-kind))
        (ignore-error user-error (gemini-companion-overview-page-step nil))))))

(defun gemini-companion-overview-page-move-by-changes (count)
  "Go to the change left that is COUNT changes further."
  (let* ((targets (gemini-companion-overview-page-targets))
         (index (gemini-companion-overview-page-target-number))
         (on (eq 'left (car (gemini-companion-overview-page-change-id))))
         (number (if (< 0 count)
                     (+ index (if on count (1- count)))
                   (+ index count))))
    (unless (and (<= 0 number) (nth number targets))
      (user-error "No %s change is left" (if (< 0 count) "further" "previous")))
    (gemini-companion-overview-page-go-to-change (nth number targets))))

(defun gemini-companion-overview-page-drawn-rows ()
  "Return the rows that are displayed, in order."
  (cl-loop for (section . _) in (gemini-companion-page-sections)
           when (eq 'row (car section))
           collect (gemini-companion-overview-page-row-of-key (cadr section))))

(defun gemini-companion-overview-page-step (back)
  "Go to the next row or change, or to the previous one if BACK is non-nil.
Skip rows and changes that need no decision, unless there are no others."
  (let ((changes (gemini-companion-overview-page--changes)))
    (goto-char
     (or (if back
             (car (last (seq-take-while (lambda (change) (< change (point))) changes)))
           (seq-find (lambda (change) (< (point) change)) changes))
         (gemini-companion-overview-page-heading-beside back)
         (user-error (if back "This is the first row" "This is the last row")))))
  (when (gemini-companion-overview-page-change-id)
    (gemini-companion-overview-page--reveal)))

(defun gemini-companion-overview-page-heading-beside (back)
  "Return the position of the next line of a row, or if BACK, of the previous one."
  (save-excursion
    (cl-loop while (if back
                       (and (not (bobp)) (progn (forward-line -1) t))
                     (progn (forward-line) (not (eobp))))
             when (and (gemini-companion-overview-page-on-heading-p)
                       (not (invisible-p (point))))
             return (point))))

(provide 'gemini-companion-overview-page)
;;; gemini-companion-overview-page.el ends here
