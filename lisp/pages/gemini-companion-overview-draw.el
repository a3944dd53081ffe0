;;; gemini-companion-overview-draw.el --- How the rows of the overview look  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A row is one line: a sign, a state, line counts, a name, remarks, and at the right
;; edge how many changes are left to review, or what became of the file.  In a narrow
;; window, remarks are cut or dropped in a fixed order; the name and the right edge
;; stay.
;;
;; Below the row of a file is its diff, drawn by the code of the unified view.  Changes
;; that are left, neither kept nor undone, are in color; other changes have a letter
;; before the sign.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-auto)
(require 'gemini-companion-changes)
(require 'gemini-companion-comment)
(require 'gemini-companion-comment-opening)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-header)
(require 'gemini-companion-hunk)
(require 'gemini-companion-label)
(require 'gemini-companion-lines)
(require 'gemini-companion-names)
(require 'gemini-companion-notify)
(require 'gemini-companion-overview-row)
(require 'gemini-companion-record)
(require 'gemini-companion-request)
(require 'gemini-companion-revert)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'gemini-companion-unified-draw)

;;;; Customization

(defface gemini-companion-file
  ;; Without a color of its own, the line would have that of each part of the row.
  '((((class color) (min-colors 256) (background light))
     :overline "gray75" :extend t)
    (((class color) (min-colors 256) (background dark))
     :overline "gray35" :extend t)
    (t :extend t))
  "Face of the row of a file in the overview."
  :group 'gemini-companion-reviews)

;; On a white background, the orange of the face `warning' has a contrast of 2.3.
(defface gemini-companion-file-remark
  '((t :inherit (bold font-lock-variable-name-face)))
  "Face of what needs attention in a row of the overview."
  :group 'gemini-companion-reviews)

(defface gemini-companion-left
  '((t :inherit bold))
  "Face of what is left at the right edge of the overview."
  :group 'gemini-companion-reviews)

;;;; Widths

(defconst gemini-companion-overview-draw-wide 90
  "Number of columns from which a row has names of CLIs and durations.")

(defconst gemini-companion-overview-draw--narrow 60
  "Number of columns below which the right edge is a number.")

(defun gemini-companion-overview-draw-width ()
  "Return how many columns a row of the current buffer has."
  (window-max-chars-per-line (get-buffer-window nil t)))

(defun gemini-companion-overview-draw-edge ()
  "Return how many columns are free behind the right edge of a row.
In a text terminal, the border between two windows counts for one."
  (if (or (display-graphic-p)
          (window-at-side-p (or (get-buffer-window nil t) (selected-window)) 'right))
      1
    2))

(defun gemini-companion-overview-draw--joined (texts)
  "Return TEXTS, without nil and empty ones, with two spaces between them."
  (mapconcat #'identity (seq-remove #'string-empty-p (delq nil (copy-sequence texts)))
             "  "))

(cl-defun gemini-companion-overview-draw--line
    (width before name &key flexible tail right)
  "Return a line of WIDTH columns.
BEFORE and NAME are never omitted; NAME is shortened in its middle if
nothing else helps.  FLEXIBLE is cut at its end.  TAIL is a list of three texts
or nils after FLEXIBLE; the last one is omitted first, then the first one.
RIGHT is at the right edge."
  (pcase-let*
      ((right (or right ""))
       (room (- width (string-width before)
                (if (string-empty-p right)
                    0
                  ;; In a text terminal, WIDTH is without the last column.
                  (+ (if (display-graphic-p) 3 2) (string-width right)))))
       (flexible (or flexible ""))
       (least (min 20 (string-width flexible)))
       (gap (if (<= gemini-companion-overview-draw-wide width) "    " "  "))
       (between (if (or (string-empty-p name) (string-empty-p flexible)) "" "  "))
       (`(,first ,second ,third) tail)
       (ends (mapcar (lambda (texts)
                       (let ((text (gemini-companion-overview-draw--joined texts)))
                         (concat (unless (or (string-empty-p text)
                                             (string-empty-p (concat name flexible)))
                                   gap)
                                 text)))
                     (list (list first second third) (list first second)
                           (list second))))
       (end (or (seq-find (lambda (end)
                            (<= (+ (string-width name) (length between) least
                                   (string-width end))
                                room))
                          ends)
                ""))
       (left (- room (string-width name) (string-width end)))
       (name (if (< left 0)
                 (gemini-companion-names-shown name (max 8 room))
               name))
       (rest (if (< (+ 3 (length between)) left)
                 (concat between
                         (truncate-string-to-width
                          flexible (- left (length between)) nil nil
                          (gemini-companion-text-sign ?\u2026 "...")))
               "")))
    (concat before name rest end
            (unless (string-empty-p right)
              (concat
               (propertize "  " 'display
                           `(space :align-to
                                   (- right ,(+ (string-width right)
                                                (gemini-companion-overview-draw-edge)))))
               right)))))

;;;; Words

(defun gemini-companion-overview-draw--count (count singular plural)
  "Return COUNT in the format SINGULAR if it is 1, else in PLURAL."
  (format (if (= 1 count) singular plural) count))

(defun gemini-companion-overview-draw--answer (edit)
  "Return a word for how EDIT, whose review has ended, was answered."
  (let ((proposed (gemini-companion-edit-proposed edit))
        (after (gemini-companion-edit-after edit)))
    (if (and (eq 'accepted (gemini-companion-edit-answer edit))
             (stringp proposed)
             (stringp after)
             (not (gemini-companion-edit-texts-same-p proposed after)))
        "edited"
      (gemini-companion-edit-word (gemini-companion-edit-final-answer edit)))))

(defun gemini-companion-overview-draw--never-written-p (edit)
  "Return non-nil if EDIT has ended, and its file never had its text."
  (memq (gemini-companion-edit-status edit) '(rejected dismissed unwritten)))

(defun gemini-companion-overview-draw--decided (row)
  "Return the outcome of ROW, a file with no changes left, a short text."
  (let* ((edit (gemini-companion-overview-row-edit row))
         (status (gemini-companion-overview-row-outcome row))
         (exists (gemini-companion-text-attributes
                  (gemini-companion-overview-row-path row)))
         (states (seq-uniq (mapcar #'gemini-companion-record-decided-state
                                   (gemini-companion-overview-row-decided row)))))
    (cond
     ((and (eq 'gone status) (not exists)) (gemini-companion-edit-word status))
     ((equal states '(undone)) "undone")
     ((not (eq 'marks gemini-companion-after-write)) "")
     ((equal states '(kept)) "kept")
     (states
      (let ((undone (seq-count
                     (lambda (change)
                       (eq 'undone (gemini-companion-record-decided-state change)))
                     (gemini-companion-overview-row-decided row))))
        (format "%d kept, %d undone"
                (- (length (gemini-companion-overview-row-decided row)) undone)
                undone)))
     ((gemini-companion-overview-row-open-p row) "")
     ((memq status '(undone gone)) (gemini-companion-edit-word status))
     ((gemini-companion-overview-draw--never-written-p edit) "")
     ((gemini-companion-overview-row-several-p row)
      (pcase (gemini-companion-changes-several-undone edit)
        (`(0 . ,_) "not marked")
        (`(,undone . ,_) (format "%d undone" undone))))
     ((and exists (not (gemini-companion-edit-known-p edit))) "not recorded")
     ((and exists (gemini-companion-overview-row-empty-p row)) "empty")
     ((gemini-companion-overview-row-without-marks-p row) "not marked")
     ((and exists (gemini-companion-overview-row-record row)) "reviewed")
     (t ""))))

(defun gemini-companion-overview-draw--left (row left decided width)
  "Return a text such as \"2 of 5 left, 1 later\" for ROW, of WIDTH columns.
LEFT and DECIDED are the numbers of changes left and of decided changes."
  (let ((later (gemini-companion-overview-row-count-postponed row)))
    (propertize
     (if (< width gemini-companion-overview-draw--narrow)
         (number-to-string left)
       (concat (if (= 0 decided)
                   (format "%d left" left)
                 (format "%d of %d left" left (+ left decided)))
               (and (< 0 later) (format ", %d later" later))))
     'face 'gemini-companion-left)))

(defun gemini-companion-overview-draw--shadow (text)
  "Return TEXT in the face of what needs no attention."
  (propertize text 'face 'shadow))

(defun gemini-companion-overview-draw--lines (files)
  "Return the numbers of lines of FILES, rows, such as \"+3 -1\", or nil."
  (let ((counts (mapcar #'gemini-companion-overview-draw--counts files)))
    (unless (memq nil counts)
      (gemini-companion-hunk-amount (apply #'+ (mapcar #'car counts))
                                    (apply #'+ (mapcar #'cdr counts))))))

(defun gemini-companion-overview-draw--counts (row)
  "Return how many lines of ROW, a file, are new, and how many are gone, a cons.
Return nil if that is unknown."
  (if (gemini-companion-overview-draw--recorded-p row)
      (cl-loop for piece in (gemini-companion-overview-draw--pieces
                             row (gemini-companion-overview-row-lines row)
                             (gemini-companion-overview-row-others row))
               for undone = (eq 'undone (gemini-companion-overview-draw--piece-state
                                         piece))
               for now = (gemini-companion-hunk-new-count piece)
               sum (if undone
                       (length (gemini-companion-overview-draw--piece-with piece))
                     now)
               into added
               sum (if undone now (length (gemini-companion-hunk-lines piece)))
               into removed
               finally return (cons added removed))
    (let ((edit (gemini-companion-overview-row-edit row)))
      (condition-case nil
          (progn
            (gemini-companion-edit-hunks edit)
            (if-let* ((counts (gemini-companion-edit-hunks-counts edit)))
                (cons (gemini-companion-hunk-counts-added counts)
                      (gemini-companion-hunk-counts-removed counts))
              (cons 0 0)))
        ;; The text before was not kept, or the program diff fails.
        (error nil)))))

;;;; Rows

(defun gemini-companion-overview-draw-heading (row sign width)
  "Return the line of ROW, with SIGN before it, for WIDTH columns."
  (let ((before (concat (make-string (pcase (gemini-companion-overview-row-kind row)
                                       ('turn 2)
                                       ((or 'file 'reviewed 'taken)
                                        (if (= 4 (gemini-companion-overview-row-level row))
                                            6
                                          4))
                                       ('note 4)
                                       (_ 0))
                                     ?\s)
                        sign)))
    (pcase (gemini-companion-overview-row-kind row)
      ('note
       (gemini-companion-overview-draw--line
        width (if (gemini-companion-overview-row-turn row) before "")
        (let ((text (gemini-companion-overview-row-text row)))
          (propertize text 'face (or (get-text-property 0 'face text)
                                     'gemini-companion-file-remark)))))
      ('waiting (gemini-companion-overview-draw--waiting row width))
      ('proposal (gemini-companion-overview-draw--proposal row before width))
      ('request (gemini-companion-overview-draw--request row before width))
      ('cli (gemini-companion-overview-draw--cli row before width))
      ('turn (gemini-companion-overview-draw--turn row before width))
      ('reviewed (gemini-companion-overview-draw--reviewed row before width))
      ('taken (gemini-companion-overview-draw--taken row before width))
      (_ (gemini-companion-overview-draw--file row before width)))))

(defun gemini-companion-overview-draw-heading-state (row)
  "Return a list of everything that the line of ROW depends on, except its width.
Return nil if that is unknown before the line is drawn."
  (pcase (gemini-companion-overview-row-kind row)
    ('proposal (gemini-companion-overview-draw--state-of-proposal row))
    ((and 'file (guard (gemini-companion-overview-row-record row)))
     (gemini-companion-overview-draw--state-of-file row))))

(defun gemini-companion-overview-draw--state-of-proposal (row)
  "Return a list of everything that the line of ROW, a proposal, depends on."
  (let ((edit (gemini-companion-overview-row-edit row))
        (session (gemini-companion-overview-row-session row)))
    (list (gemini-companion-edit-id edit)
          (gemini-companion-overview-row-path row)
          (and (gemini-companion-edit-view edit) t)
          (gemini-companion-edit-compared edit)
          (gemini-companion-hunk-excluded (gemini-companion-edit-proposal-buffer edit))
          (length (gemini-companion-edit-comments edit))
          (gemini-companion-edit-problem edit)
          (gemini-companion-edit-review-reason edit)
          (gemini-companion-edit-rule edit)
          (funcall gemini-companion-edit-also-function edit)
          (gemini-companion-session-name session)
          (gemini-companion-overview-draw--titles-beside session)
          (gemini-companion-session-connected-p session))))

(defun gemini-companion-overview-draw--state-of-file (row)
  "Return a list of everything that the line of ROW depends on.
ROW is a file with a record."
  (let ((edit (gemini-companion-overview-row-edit row))
        (turn (gemini-companion-overview-row-turn row)))
    (list (gemini-companion-overview-row-version row)
          (gemini-companion-overview-row-path row)
          (gemini-companion-overview-row-level row)
          (length (gemini-companion-overview-row-left row))
          (length (gemini-companion-overview-row-decided row))
          (gemini-companion-overview-row-open-p row)
          (and (gemini-companion-overview-row-comments-p row)
               (gemini-companion-comment-state
                (gemini-companion-overview-row-file row)))
          (gemini-companion-comment-times (gemini-companion-overview-row-session row))
          (gemini-companion-turn-ended turn)
          ;; What became of the edit depends on these and the version.
          (gemini-companion-edit-status edit)
          (gemini-companion-changes-read-version (gemini-companion-overview-row-record row))
          gemini-companion-after-write)))

(defun gemini-companion-overview-draw--asking (count width)
  "Return a text for COUNT requests that await an answer, or nil for none.
It is shorter if WIDTH, the number of columns, is small."
  (when (< 0 count)
    (propertize (if (< width gemini-companion-overview-draw--narrow)
                    (format "?%d" count)
                  (format "%d to answer" count))
                'face 'gemini-companion-left)))

(defun gemini-companion-overview-draw--waiting (row width)
  "Return the line of ROW, the heading of what waits, for WIDTH columns."
  (gemini-companion-overview-draw--line
   width "" (propertize "Waiting" 'face 'font-lock-keyword-face)
   :right (gemini-companion-overview-draw--asking
           (seq-count #'gemini-companion-overview-row-asks-p
                      (gemini-companion-overview-row-rows row))
           width)))

(defun gemini-companion-overview-draw--who (row width)
  "Return the CLI of ROW, and the time since it waits, for WIDTH columns.
If there is little room, the CLI is its directory or, where others are in that
directory, its program; the whole name only tells it from a second one."
  (let* ((session (gemini-companion-overview-row-session row))
         (time (format-time-string "%H:%M" (gemini-companion-request-since
                                            (gemini-companion-overview-row-request row))))
         (name (gemini-companion-session-name session))
         (title (gemini-companion-session-title session))
         (others (gemini-companion-overview-draw--titles-beside session))
         (short (cond ((member title others) name)
                      (others title)
                      ((gemini-companion-session-directory-name
                        (gemini-companion-session-directory session)
                        (gemini-companion-session-remote session)))
                      (t name))))
    (gemini-companion-overview-draw--shadow
     (cond ((<= gemini-companion-overview-draw-wide width) (concat name " " time))
           ((<= gemini-companion-overview-draw--narrow width) (concat short " " time))
           (others short)
           (t time)))))

(defun gemini-companion-overview-draw--titles-beside (session)
  "Return the titles of the other CLIs in the directory of SESSION.
Only its base name counts."
  (let* ((name-of (lambda (session)
                    (gemini-companion-session-directory-name
                     (gemini-companion-session-directory session)
                     (gemini-companion-session-remote session))))
         (name (funcall name-of session)))
    (cl-loop for other in (gemini-companion-sessions)
             when (and (equal name (funcall name-of other))
                       (not (gemini-companion-session-same-p session other)))
             collect (gemini-companion-session-title other))))

(defun gemini-companion-overview-draw--columns (state face lines)
  "Return STATE with FACE, and LINES, in columns of the same width.
Large numbers of lines leave less room after STATE."
  (let ((lines (format "%9s" (or lines ""))))
    (concat (propertize (string-pad state (max (1+ (length state))
                                               (- 18 (length lines))))
                        'face face)
            lines "  ")))

(defun gemini-companion-overview-draw--name (row)
  "Return the name of the file of ROW, and a list of warnings about it."
  (if-let* ((edit (gemini-companion-overview-row-edit row))
            ((gemini-companion-changes-several-p edit)))
      (list (propertize (gemini-companion-edit-name edit) 'face 'bold))
    (gemini-companion-overview-draw--name-of-file row)))

(defun gemini-companion-overview-draw--name-of-file (row)
  "Return the name of the file of ROW, and a list of warnings about it."
  (let* ((location (gemini-companion-label-location
                    (gemini-companion-overview-row-path row)
                    (gemini-companion-overview-row-session row))))
    (cons (propertize (gemini-companion-label-location-text location 'plain) 'face 'bold)
          (gemini-companion-label-location-warnings location))))

(defun gemini-companion-overview-draw--number-of-comments (count)
  "Return a remark about COUNT comments, or nil for none."
  (and (< 0 count)
       (gemini-companion-overview-draw--count count "%d comment" "%d comments")))

(defun gemini-companion-overview-draw--proposal (row before width)
  "Return the line of ROW, a proposal, with BEFORE, for WIDTH columns."
  (pcase-let* ((edit (gemini-companion-overview-row-edit row))
               (excluded (length (gemini-companion-hunk-excluded
                                  (gemini-companion-edit-proposal-buffer edit))))
               (`(,name . ,warnings) (gemini-companion-overview-draw--name row))
               (lines (or (gemini-companion-edit-hunks-lines (list edit)) "?")))
    (gemini-companion-overview-draw--line
     width
     (concat before (gemini-companion-overview-draw--columns
                     (if (gemini-companion-edit-view edit) "shown" "proposal")
                     'bold lines))
     name
     :flexible
     (gemini-companion-overview-draw--joined
      ;; What is not written comes first: the end may be cut.
      (append (and (< 0 excluded)
                   (list (gemini-companion-overview-draw--shadow
                          (format "%d excluded" excluded))))
              warnings
              (gemini-companion-overview-draw--warnings edit)
              (mapcar
               (lambda (text)
                 (and text (gemini-companion-overview-draw--shadow text)))
               (list (and (gemini-companion-edit-new-p edit) "new file")
                     (gemini-companion-overview-draw--number-of-comments
                      (length (gemini-companion-edit-comments edit)))
                     (gemini-companion-edit-problem edit)
                     (gemini-companion-edit-rule edit)))))
     :right (gemini-companion-overview-draw--who row width))))

(defun gemini-companion-overview-draw--warnings (edit)
  "Return the warnings about EDIT, a proposal, as in the header line of its review.
One that is the reason why it was not auto-accepted says so."
  (let ((reason (gemini-companion-edit-review-reason edit)))
    (mapcar (lambda (warning)
              (propertize (if (and reason (string-prefix-p reason warning))
                              (string-replace
                               reason (gemini-companion-edit-review-remark edit) warning)
                            warning)
                          'face 'gemini-companion-file-remark))
            (gemini-companion-header-warnings edit))))

(defun gemini-companion-overview-draw--request (row before width)
  "Return the line of ROW, a request, with BEFORE, for WIDTH columns."
  (let* ((label (gemini-companion-request-label
                 (gemini-companion-overview-row-request row)))
         (asks (string-prefix-p "asks  " label)))
    (gemini-companion-overview-draw--line
     width
     (concat before (propertize (if asks "asks         " "") 'face 'bold))
     ""
     :flexible (if asks (substring label 6) label)
     :right (gemini-companion-overview-draw--who row width))))

(defun gemini-companion-overview-draw--cli (row before width)
  "Return the line of ROW, a CLI, with BEFORE, for WIDTH columns."
  (let* ((session (gemini-companion-overview-row-session row))
         (left (gemini-companion-overview-row-count-left row))
         (asking (length (gemini-companion-requests-certain session)))
         (narrow (< width gemini-companion-overview-draw--narrow)))
    (gemini-companion-overview-draw--line
     width before
     (propertize (gemini-companion-session-name session)
                 'face 'font-lock-keyword-face
                 'help-echo (when-let* ((directory (gemini-companion-session-directory
                                                    session)))
                              (gemini-companion-names-absolute directory)))
     :flexible
     (gemini-companion-overview-draw--joined
      (list (unless (gemini-companion-session-connected-p session) "disconnected")
            (gemini-companion-notify-description session)
            (and (gemini-companion-auto-on-p session)
                 (propertize "auto-accept" 'face 'gemini-companion-file-remark))
            (when-let* ((opening (gemini-companion-comment-opening session)))
              (propertize (concat ">> " (gemini-companion-text-escaped-line opening 200))
                          'face 'gemini-companion-comment))
            (and (<= gemini-companion-overview-draw-wide width)
                 (gemini-companion-session-version session)
                 (gemini-companion-overview-draw--shadow
                  (concat "version " (gemini-companion-session-version session))))))
     :right
     (string-join
      (delq nil
            (list (gemini-companion-overview-draw--asking asking width)
                  (and (< 0 left)
                       (gemini-companion-overview-draw--left row left 0 width))))
      (if narrow " " ", ")))))

(defun gemini-companion-overview-draw--turn (row before width)
  "Return the line of ROW, a turn, for WIDTH columns, with the prefix BEFORE."
  (let* ((turn (gemini-companion-overview-row-turn row))
         (began (gemini-companion-turn-began turn))
         (ended (gemini-companion-turn-ended turn))
         (prompt (gemini-companion-turn-prompt turn))
         (edits (gemini-companion-overview-row-edits row)))
    (gemini-companion-overview-draw--line
     width
     (concat before (gemini-companion-overview-draw--shadow
                     (format-time-string "%H:%M  " began)))
     ""
     :flexible (if prompt
                   (gemini-companion-text-escaped prompt 'composed)
                 (gemini-companion-edit-hunks-files edits))
     :tail (mapcar (lambda (text)
                     (and text (gemini-companion-overview-draw--shadow text)))
                   (append
                    (gemini-companion-overview-draw--turn-size row)
                    (and ended
                         (<= gemini-companion-overview-draw-wide width)
                         (list (format-seconds "%hh %mm %z%ss" (- ended began))))))
     :right (gemini-companion-overview-draw--turn-right
             row (gemini-companion-overview-row-files row) width))))

(defun gemini-companion-overview-draw--turn-size (row)
  "Return the number of files of ROW, a turn, and that of lines, or nil, as texts."
  (let ((count (length (delete-dups
                        (seq-mapcat #'gemini-companion-changes-names
                                    (gemini-companion-overview-row-edits row)))))
        (written (seq-filter (lambda (file)
                               (and (not (gemini-companion-overview-row-several-p file))
                                    (or (gemini-companion-overview-row-record file)
                                        (gemini-companion-changes-there-p
                                         (gemini-companion-overview-row-edit file)))))
                             (gemini-companion-overview-row-files row))))
    (list (gemini-companion-overview-draw--count count "%d file" "%d files")
          (and written (gemini-companion-overview-draw--lines written)))))

(defun gemini-companion-overview-draw-turn (session turn)
  "Return the size of TURN of SESSION, and what is left of it, as in its row.
The value is a list of texts, nil for a turn without edits."
  (let ((row (gemini-companion-overview-row-of-turn session turn)))
    (and (gemini-companion-overview-row-edits row)
         (seq-remove #'string-empty-p
                     (mapcar #'substring-no-properties
                             (delq nil
                                   (append
                                    (gemini-companion-overview-draw--turn-size row)
                                    (list (gemini-companion-overview-draw--turn-right
                                           row (gemini-companion-overview-row-files row)
                                           gemini-companion-overview-draw-wide)))))))))

(defun gemini-companion-overview-draw--turn-right (row files width)
  "Return the text at the right edge of ROW, a turn with FILES, for WIDTH columns."
  (let ((left (gemini-companion-overview-row-count-left row))
        (proposed (seq-count #'gemini-companion-edit-open-p
                             (gemini-companion-overview-row-edits row)))
        (words (seq-uniq (mapcar #'gemini-companion-overview-draw--word files))))
    (cond
     ((< 0 left)
      (gemini-companion-overview-draw--left
       row left (gemini-companion-overview-row-count-decided row) width))
     ((< 0 proposed)
      (propertize (if (< width gemini-companion-overview-draw--narrow)
                      (format "?%d" proposed)
                    (gemini-companion-overview-draw--count
                     proposed "%d file proposed" "%d files proposed"))
                  'face 'gemini-companion-left))
     ((member words '(("rejected") ("closed") ("not written") ("undone") ("gone")))
      (gemini-companion-overview-draw--shadow (car words)))
     ((and words (null (seq-difference words '("undone" "gone"))))
      (gemini-companion-overview-draw--shadow "undone"))
     ((not (eq 'marks gemini-companion-after-write)) "")
     ;; Conspicuous: its hunks are unknown, so nobody can have reviewed them.
     ((member "not recorded" words)
      (propertize "not recorded" 'face 'gemini-companion-file-remark))
     ((member "not marked" words)
      (gemini-companion-overview-draw--shadow "not marked"))
     ;; A newer turn counts them.
     ((seq-some #'gemini-companion-overview-row-open-p files) "")
     (t (gemini-companion-overview-draw--shadow "reviewed")))))

(defun gemini-companion-overview-draw--word (row)
  "Return a word for the outcome of ROW, a file with no changes left."
  (let ((edit (gemini-companion-overview-row-edit row)))
    (if (gemini-companion-overview-draw--never-written-p edit)
        (gemini-companion-edit-word (gemini-companion-edit-status edit))
      (gemini-companion-overview-draw--decided row))))

(defun gemini-companion-overview-draw--reviewed (row before width)
  "Return the line of ROW, files with nothing left, with BEFORE, for WIDTH."
  (let* ((files (gemini-companion-overview-row-rows row))
         (words (seq-remove #'string-empty-p
                            (mapcar #'gemini-companion-overview-draw--word files))))
    (gemini-companion-overview-draw--line
     width
     (concat before (gemini-companion-overview-draw--shadow "reviewed  "))
     (gemini-companion-overview-draw--shadow (format "%d files" (length files)))
     :right
     (gemini-companion-overview-draw--shadow
      (if (< width gemini-companion-overview-draw--narrow)
          ""
        (mapconcat (pcase-lambda (`(,word . ,all)) (format "%d %s" (length all) word))
                   (seq-group-by (lambda (word)
                                   (if (string-match-p "," word) "partly undone" word))
                                 words)
                   ", "))))))

(defun gemini-companion-overview-draw--taken (row before width)
  "Return the line of ROW, lines taken from the user, with BEFORE, for WIDTH."
  (let* ((files (gemini-companion-overview-row-taken row))
         (edits (seq-filter #'gemini-companion-edit-taken
                            (gemini-companion-overview-row-edits row)))
         (commands (seq-uniq (delq nil (mapcar #'gemini-companion-edit-command edits)))))
    (gemini-companion-overview-draw--line
     width before
     (propertize (gemini-companion-overview-draw-taken
                  (cl-loop for file in files
                           sum (length (gemini-companion-overview-row-lines-taken file)))
                  (seq-every-p #'car (mapcar #'gemini-companion-edit-taken edits)))
                 'face 'gemini-companion-file-remark)
     :flexible
     (gemini-companion-overview-draw--joined
      (list (mapconcat (lambda (file)
                         (car (gemini-companion-overview-draw--name-of-file file)))
                       files ", ")
            (gemini-companion-overview-draw--shadow
             (concat "by " (mapconcat #'gemini-companion-edit-command-text commands
                                      ", ")))
            (and (seq-some #'gemini-companion-overview-draw-stash-p commands)
                 (gemini-companion-overview-draw--shadow
                  "`git stash pop' gives them back as well")))))))

(defun gemini-companion-overview-draw-taken (count yours)
  "Return that a command takes COUNT lines of the user in no commit, a phrase.
If YOURS is nil, they may be of another program."
  (format (if yours
              (ngettext "takes %d line of yours that was never committed"
                        "takes %d lines of yours that were never committed" count)
            (ngettext "takes %d line, maybe yours, that was never committed"
                      "takes %d lines, maybe yours, that were never committed" count))
          count))

(defun gemini-companion-overview-draw-stash-p (command)
  "Return non-nil if COMMAND seems to stash changes."
  (string-match-p
   "\\bgit\\b[^;&|\n]*\\bstash\\b[[:blank:]]*\\($\\|[;&|\n-]\\|push\\b\\|save\\b\\)" command))

(defun gemini-companion-overview-draw--file (row before width)
  "Return the line of ROW, a file of a turn, with BEFORE, for WIDTH columns."
  (pcase-let* ((edit (gemini-companion-overview-row-edit row))
               (left (length (gemini-companion-overview-row-left row)))
               (`(,name . ,warnings) (gemini-companion-overview-draw--name row)))
    (gemini-companion-overview-draw--line
     width
     (concat before
             (gemini-companion-overview-draw--columns
              (gemini-companion-overview-draw--answer edit)
              (if (memq (gemini-companion-overview-row-outcome row)
                        '(unreviewed unwritten))
                  'gemini-companion-file-remark
                'shadow)
              ;; Those of a file without marks are not counted.
              (unless (gemini-companion-overview-row-several-p row)
                (or (gemini-companion-overview-draw--lines (list row)) "?"))))
     name
     :flexible (gemini-companion-overview-draw--joined
                (append warnings (gemini-companion-overview-draw--remarks row)))
     :right (if (and (< 0 left) (eq 'marks gemini-companion-after-write))
                (gemini-companion-overview-draw--left
                 row left (length (gemini-companion-overview-row-decided row)) width)
              (gemini-companion-overview-draw--shadow
               (gemini-companion-overview-draw--decided row))))))

(defun gemini-companion-overview-draw--remarks (row)
  "Return remarks about ROW, a file of a turn, a list of texts.
Those that need attention come first."
  (let* ((edit (gemini-companion-overview-row-edit row))
         (path (gemini-companion-overview-row-path row))
         (deleted (gemini-companion-edit-deleted-modes edit))
         (exists (gemini-companion-text-attributes path))
         (one-of (seq-count (lambda (edit)
                              (memq 'one-of (gemini-companion-edit-remarks edit)))
                            (gemini-companion-overview-row-edits row))))
    (append
     (mapcar
      (lambda (text) (propertize text 'face 'gemini-companion-file-remark))
      (delq nil
            (list
             (and (eq 'unwritten (gemini-companion-edit-status edit))
                  (gemini-companion-edit-word 'unwritten))
             (gemini-companion-overview-draw--since-comments row)
             (gemini-companion-overview-draw--unsaved row))))
     (mapcar
      #'gemini-companion-overview-draw--shadow
      (delq nil
            (list
             (and (gemini-companion-overview-row-comments-p row)
                  (gemini-companion-overview-draw--number-of-comments
                   (length (gemini-companion-comments-of-file
                            (gemini-companion-overview-row-file row)))))
             (and (gemini-companion-overview-draw--new-p row) "new file")
             (and deleted (if exists "was deleted, exists again" "deleted"))
             (seq-some #'gemini-companion-edit-texts-conversion
                       (seq-filter #'gemini-companion-changes-there-p
                                   (gemini-companion-overview-row-edits row)))
             (and (gemini-companion-overview-row-record row)
                  (gemini-companion-changes-unmarked-reason
                   (gemini-companion-overview-row-record row)))
             (and (< 0 one-of) (format "one of %d edits" one-of))
             (when-let* ((command (gemini-companion-edit-command edit)))
               (concat "by " (gemini-companion-edit-command-text command)))
             (gemini-companion-edit-problem edit)
             (and (eq 'automatic (gemini-companion-edit-answer edit))
                  (gemini-companion-edit-rule edit))
             (and (memq (gemini-companion-changes-outcome edit) '(written gone))
                  (not deleted)
                  (not exists)
                  "deleted or renamed since")))))))

(defun gemini-companion-overview-draw--since-comments (row)
  "Return how many changes of ROW are newer than the comments, or nil for none."
  (when-let* ((time (gemini-companion-overview-row-answered row))
              (count (seq-count
                      (lambda (change)
                        (seq-some (lambda (edit)
                                    (< time (gemini-companion-edit-since edit)))
                                  (gemini-companion-record-change-edits change)))
                      (gemini-companion-overview-row-left row)))
              ((< 0 count)))
    (format "%d since your comments" count)))

(defun gemini-companion-overview-draw--unsaved (row)
  "Return a remark if the buffer of ROW's file has unsaved changes, or nil."
  (when-let* ((buffer (gemini-companion-revert-unsaved
                       (gemini-companion-overview-row-path row))))
    (cond ((gemini-companion-revert-unmerged-p buffer)
           "written since; merge its buffer")
          ((gemini-companion-overview-row-decided row) "not saved")
          ((gemini-companion-overview-row-left row) "unsaved changes in Emacs"))))

(defun gemini-companion-overview-draw--new-p (row)
  "Return non-nil if an edit of ROW has created its file, and is not reviewed."
  (if-let* ((record (gemini-companion-overview-row-record row)))
      (and (or (gemini-companion-overview-row-left row)
               (gemini-companion-overview-row-empty-p row))
           (gemini-companion-changes-file-new record)
           (seq-some #'gemini-companion-edit-new-p
                     (gemini-companion-overview-row-edits row)))
    (gemini-companion-edit-new-p (gemini-companion-overview-row-edit row))))

;;;; Below rows

(defun gemini-companion-overview-draw-body-p (row)
  "Return non-nil if ROW has a text below it, besides rows."
  (memq (gemini-companion-overview-row-kind row) '(proposal request file)))

(defun gemini-companion-overview-draw-body-state (row unfolded)
  "Return a list of everything that the text below ROW depends on.
UNFOLDED are the folds whose lines are shown."
  (let* ((edit (gemini-companion-overview-row-edit row))
         (record (gemini-companion-overview-row-record row))
         (file (gemini-companion-overview-row-file row))
         (own (and edit
                   (seq-filter (lambda (fold)
                                 (equal (gemini-companion-edit-id edit) (car fold)))
                               unfolded)))
         (comments (and file
                        (gemini-companion-overview-row-comments-p row)
                        (gemini-companion-comment-state file))))
    (pcase (gemini-companion-overview-row-kind row)
      ('request (list (gemini-companion-overview-row-request row)))
      ((guard record)
       (list own comments (gemini-companion-overview-row-version row)
             (length (gemini-companion-overview-row-left row))
             (gemini-companion-overview-row-problem row)
             (length (gemini-companion-overview-row-edits row))))
      (_
       ;; The comparison sets some of the following values.
       (ignore-errors (gemini-companion-edit-hunks edit))
       (list own comments (gemini-companion-edit-id edit)
             (gemini-companion-edit-compared edit)
             (gemini-companion-changes-outcome edit)
             (and (gemini-companion-edit-open-p edit)
                  (list (gemini-companion-hunk-excluded
                         (gemini-companion-edit-proposal-buffer edit))
                        (gemini-companion-comment-state-of-edit edit))))))))

(defun gemini-companion-overview-draw-body (row unfolded)
  "Return the text below ROW; UNFOLDED are the folds whose lines are shown."
  (pcase (gemini-companion-overview-row-kind row)
    ('request (gemini-companion-overview-draw--asked row))
    ((guard (gemini-companion-overview-row-problem row))
     (format "    %s\n" (gemini-companion-overview-row-problem row)))
    ((guard (gemini-companion-overview-draw--recorded-p row))
     (gemini-companion-overview-draw--diff row unfolded))
    ((guard (gemini-companion-overview-row-several-p row))
     (gemini-companion-changes-several-text (gemini-companion-overview-row-edit row)))
    (_ (gemini-companion-overview-draw--diff-of-edit row unfolded))))

(defun gemini-companion-overview-draw--recorded-p (row)
  "Return non-nil if changes of ROW are in its file now."
  (or (gemini-companion-overview-row-left row)
      (gemini-companion-overview-row-decided row)))

(defun gemini-companion-overview-draw--asked (row)
  "Return the full text of the request of ROW."
  (with-temp-buffer
    (gemini-companion-request-insert (gemini-companion-overview-row-request row))
    (unless (or (bobp) (bolp))
      (insert "\n"))
    (let ((text (buffer-string)))
      (add-text-properties 0 (length text)
                           '(line-prefix "    " wrap-prefix "    ") text)
      text)))

(defun gemini-companion-overview-draw--diff-of-edit (row unfolded)
  "Return the diff of the edit of ROW; UNFOLDED are folds that are shown."
  (let* ((edit (gemini-companion-overview-row-edit row))
         (hunks (condition-case err
                    (gemini-companion-edit-hunks edit)
                  ;; The text before was not kept, or the program diff fails.
                  (error (gemini-companion-text-problem err))))
         (undone (memq (gemini-companion-changes-outcome edit) '(undone gone))))
    (cond
     ((stringp hunks) (format "    %s\n" hunks))
     (hunks
      (gemini-companion-edit-texts-call
       edit
       (lambda (old new)
         (with-temp-buffer
           (gemini-companion-unified-draw-insert
            edit old new hunks unfolded
            :decided (and undone (mapcar (lambda (hunk) (cons hunk 'undone)) hunks)))
           (gemini-companion-overview-draw--insert-comments
            row
            (gemini-companion-lines-split (gemini-companion-text-of-buffer new))
            (gemini-companion-lines-split (gemini-companion-text-of-buffer old)))
           (buffer-string)))))
     ((gemini-companion-edit-new-p edit) "    Empty file\n")
     (t "    No difference\n"))))

(defun gemini-companion-overview-draw--insert-comments (row after before)
  "Insert the comments on ROW into its diff, the text of the current buffer.
AFTER and BEFORE are the lines of the two texts, vectors.  Comments on lines
that the diff does not have are inserted at its end."
  (let* ((edit (gemini-companion-overview-row-edit row))
         (left (gemini-companion-comment-insert
                (cond ((gemini-companion-edit-open-p edit)
                       (gemini-companion-comment-positions-of-edit edit))
                      ((gemini-companion-overview-row-comments-p row)
                       (gemini-companion-comment-positions
                        (gemini-companion-overview-row-file row) after before))))))
    (goto-char (point-max))
    (dolist (position left)
      (gemini-companion-comment-insert-with-lines
       position (if (eq 'before (caar position)) before after)))))

(defun gemini-companion-overview-draw-lines-before (row)
  "Return the lines of the file of ROW without the changes of its turn."
  (gemini-companion-lines-without
   (gemini-companion-overview-draw--in-order
    (append (gemini-companion-overview-row-left row)
            (seq-remove (lambda (change)
                          (eq 'undone (gemini-companion-record-decided-state change)))
                        (gemini-companion-overview-row-decided row))))
   (gemini-companion-overview-row-lines row)))

(defun gemini-companion-overview-draw--in-order (changes)
  "Return CHANGES in the order of their lines."
  (seq-sort (lambda (a b)
              (let ((first (gemini-companion-hunk-new a))
                    (second (gemini-companion-hunk-new b)))
                (or (< first second)
                    (and (= first second)
                         (< (gemini-companion-hunk-new-end a)
                            (gemini-companion-hunk-new-end b))))))
            changes))

;;;; The diff of a file

(cl-defstruct (gemini-companion-overview-draw--piece
               (:include gemini-companion-hunk)
               (:noinline t)
               (:constructor gemini-companion-overview-draw--piece
                             (new new-end lines id &optional state with))
               (:copier nil))
  "A hunk of the diff of a file, whose second text is the current one.
It is a change, or a part of one, which ID identifies: a cons of `left' or
`decided' and its number.  STATE is nil if the change is left, or `kept' or
`undone'.  With an undone change, the current text would have WITH, a list, in
place of the lines from NEW to NEW-END."
  id state with)

(defun gemini-companion-overview-draw--pieces (row now others)
  "Return the pieces of the diff of ROW in the lines NOW, in order.
OTHERS are the indices of lines that no CLI has written: they are in no piece
if they are there without it."
  (let ((pieces nil))
    (cl-loop for change in (gemini-companion-overview-row-left row)
             for number from 0
             do (setq pieces
                      (append (gemini-companion-overview-draw--pieces-of-change
                               change now others (cons 'left number))
                              pieces)))
    (cl-loop for decided in (gemini-companion-overview-row-decided row)
             for number from 0
             for state = (gemini-companion-record-decided-state decided)
             do (push (gemini-companion-overview-draw--piece
                       (gemini-companion-hunk-new decided)
                       (gemini-companion-hunk-new-end decided)
                       (gemini-companion-hunk-lines decided)
                       (cons 'decided number) state
                       (and (eq state 'undone)
                            (gemini-companion-record-decided-with decided)))
                      pieces))
    ;; Lines that were undone come before the line that is now in their place.
    (gemini-companion-overview-draw--in-order (nreverse pieces))))

(defun gemini-companion-overview-draw--pieces-of-change (change now others id)
  "Return the pieces of CHANGE, which is left, with ID, the last one first.
For NOW and OTHERS, see `gemini-companion-overview-draw--pieces'."
  (let ((start (gemini-companion-hunk-new change))
        (end (gemini-companion-hunk-new-end change))
        (lines (gemini-companion-hunk-lines change))
        (pieces nil))
    (dolist (other others)
      (when (and (<= start other) (< other end))
        (when-let* ((at (seq-position lines (aref now other) #'equal)))
          (when (or (< start other) (< 0 at))
            (push (gemini-companion-overview-draw--piece
                   start other (seq-take lines at) id)
                  pieces))
          (setq start (1+ other)
                lines (nthcdr (1+ at) lines)))))
    (when (or (< start end) lines)
      (push (gemini-companion-overview-draw--piece start end lines id)
            pieces))
    pieces))

(defun gemini-companion-overview-draw--diff (row unfolded)
  "Return the diff of the file of ROW; UNFOLDED are folds that are shown."
  (let* ((now (gemini-companion-overview-row-lines row))
         (before (gemini-companion-overview-draw-lines-before row))
         (others (gemini-companion-overview-row-others row))
         (pieces (gemini-companion-overview-draw--pieces row now others))
         (undone (seq-filter (lambda (piece)
                               (eq 'undone (gemini-companion-overview-draw--piece-state
                                            piece)))
                             pieces))
         (after (gemini-companion-lines-without
                 (mapcar (lambda (piece)
                           (gemini-companion-hunk-make
                            nil nil
                            (gemini-companion-hunk-new piece)
                            (gemini-companion-hunk-new-end piece)
                            (gemini-companion-overview-draw--piece-with piece)))
                         undone)
                 now)))
    (with-temp-buffer
      (insert (gemini-companion-lines-join before))
      (let ((old (current-buffer)))
        (with-temp-buffer
          (insert (gemini-companion-lines-join after))
          (let ((new (current-buffer)))
            (with-temp-buffer
              (gemini-companion-overview-draw--insert-diff
               row old new pieces others unfolded)
              (gemini-companion-overview-draw--insert-comments row now before)
              (buffer-string))))))))

(defun gemini-companion-overview-draw--insert-diff (row old new pieces others unfolded)
  "Insert the diff of ROW with PIECES between the buffers OLD and NEW.
NEW has the lines of what was undone.  OTHERS are the indices of lines that no
CLI has written, and UNFOLDED the folds whose lines are shown."
  (let* ((drawn (gemini-companion-overview-draw--drawn pieces))
         (to-file (seq-filter
                   (pcase-lambda (`(,_ . ,piece))
                     (eq 'undone (gemini-companion-overview-draw--piece-state piece)))
                   (reverse drawn)))
         (from-file (mapcar (pcase-lambda (`(,hunk . ,piece)) (cons piece hunk))
                            to-file)))
    (gemini-companion-unified-draw-insert
     (gemini-companion-overview-row-edit row) old new (mapcar #'car drawn) unfolded
     :decided (cl-loop for (hunk . piece) in drawn
                       for state = (gemini-companion-overview-draw--piece-state piece)
                       when state collect (cons hunk state))
     :postponed (cl-loop
                 for (hunk . piece) in drawn
                 for (kind . number) = (gemini-companion-overview-draw--piece-id piece)
                 when (and (eq kind 'left)
                           (gemini-companion-record-postponed-p
                            (nth number (gemini-companion-overview-row-left row))))
                 collect hunk)
     :number (lambda (line) (gemini-companion-overview-draw--shifted line to-file))
     :user-lines (mapcar (lambda (other)
                           (gemini-companion-overview-draw--shifted (1+ other)
                                                                    from-file))
                         others))
    (gemini-companion-overview-draw--identify-lines drawn)))

(defun gemini-companion-overview-draw--drawn (pieces)
  "Return an alist from each hunk to draw to its piece, one of PIECES, in order.
The hunk is between the text before and the text with the lines of what was
undone.  Set the lines of PIECES in the text before."
  (let ((more-old 0)
        (more-new 0))
    (mapcar
     (lambda (piece)
       (pcase-let* (((cl-struct gemini-companion-overview-draw--piece
                                (new start) (new-end end) lines with state)
                     piece)
                    (now (- end start))
                    (undone (eq state 'undone))
                    (old-count (if undone now (length lines)))
                    (new-count (if undone (length with) now))
                    (old (+ start more-old))
                    (new (+ start more-new)))
         (setf (gemini-companion-hunk-old piece) old
               (gemini-companion-hunk-old-end piece) (+ old old-count))
         (cl-incf more-old (- old-count now))
         (cl-incf more-new (- new-count now))
         (cons (gemini-companion-hunk-make old (+ old old-count)
                                           new (+ new new-count) lines)
               piece)))
     pieces)))

(defun gemini-companion-overview-draw--shifted (line pairs)
  "Return the number of LINE of one text in another one.
The texts differ only in the hunks PAIRS, of which the last one is first: conses
of the hunk in the text of LINE and the hunk in the other text."
  (pcase (seq-find (lambda (pair) (< (gemini-companion-hunk-new-end (car pair)) line))
                   pairs)
    (`(,hunk . ,other)
     (+ line (- (gemini-companion-hunk-new-end other)
                (gemini-companion-hunk-new-end hunk))))
    (_ line)))

(defun gemini-companion-overview-draw--identify-lines (drawn)
  "Put properties that identify its change on the lines of each hunk in the buffer.
DRAWN is an alist from each hunk as it was drawn to its piece, whose ID is the
value of the text property `gemini-companion-overview-change'."
  (let ((position (point-min)))
    (while (< position (point-max))
      (let ((next (next-single-property-change position 'gemini-companion-hunk
                                               nil (point-max)))
            (piece (cdr (assq (get-text-property position 'gemini-companion-hunk)
                              drawn))))
        (when piece
          (add-text-properties
           position next
           (list 'gemini-companion-hunk piece
                 'gemini-companion-overview-change
                 (gemini-companion-overview-draw--piece-id piece))))
        (setq position next)))))

(provide 'gemini-companion-overview-draw)
;;; gemini-companion-overview-draw.el ends here
