;;; gemini-companion-header.el --- The header line of a review  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The header line of the buffers of a review, and the line of a control panel:
;; the file, remarks on it, the amount of change and the keys, as far as they
;; fit.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-edit)
(require 'gemini-companion-hunk)
(require 'gemini-companion-name)
(require 'gemini-companion-revert)
(require 'gemini-companion-review)
(require 'gemini-companion-session)

;;;; Header line

(defun gemini-companion-header-set ()
  "Set the header line of the current buffer, one of a review."
  (setq header-line-format '(:eval (gemini-companion-header-text)))
  ;; It shows the hunk at point, and whether the review is selected.
  (add-hook 'post-command-hook #'force-mode-line-update nil t)
  (add-hook 'window-selection-change-functions #'force-mode-line-update nil t))

(defun gemini-companion-header-text (&optional width)
  "Return the header line of the review of the current buffer.
It has the file, remarks on it, the amount of change, and the keys in
this buffer, as far as they fit into WIDTH, by default the
width of the window."
  (let ((edit gemini-companion-edit-here))
    (string-replace
     "%" "%%"
     (concat " " (gemini-companion-name-fit
                  (append (gemini-companion-header--subject edit)
                          (gemini-companion-header--amount edit)
                          (gemini-companion-header--answers edit))
                  (1- (or width (window-width))))))))

(defun gemini-companion-header--answers (edit)
  "Return the keys that answer EDIT, parts of a header line."
  ;; While a header line is computed, its own window is selected.
  (let* ((window (old-selected-window))
         (window (if (and (window-live-p window) (window-minibuffer-p window))
                     (get-mru-window (window-frame window) t)
                   window))
         (selected (and (window-live-p window) (window-buffer window))))
    (if (and selected
             (eq edit (buffer-local-value 'gemini-companion-edit-here selected)))
        (gemini-companion-header--keys
         (let ((proposal (gemini-companion-edit-proposal-buffer edit)))
           (if (eq (current-buffer) proposal)
               ;; The mark of removed lines is empty, so no character has it.
               (seq-some (lambda (mark)
                           (<= (overlay-start mark) (point) (overlay-end mark)))
                         (gemini-companion-hunk-marks proposal))
             (member (get-text-property (point) 'gemini-companion-hunk)
                     (gemini-companion-hunk-excluded proposal)))))
      ;; The key that works where the user is.
      (with-current-buffer (or selected (current-buffer))
        `((2 ,(substitute-command-keys
               "  \\[gemini-companion-review] to answer")))))))

;; The ranks: 0 is a remark that guards text of the user, 2 a key that answers;
;; all others are omitted before the name is shortened.
(defun gemini-companion-header--subject (edit)
  "Return the file of EDIT and remarks on it, parts of a header line.
What guards text comes first, the longest last: a long name may not fit."
  (let ((name (copy-sequence (gemini-companion-edit-name edit)))
        (session (gemini-companion-edit-session edit))
        (remarks (gemini-companion-edit-remarks edit)))
    (add-face-text-property 0 (length name) 'bold 'append name)
    (append
     (mapcar
      (lambda (remark) (list 0 (concat (propertize remark 'face 'bold) "; ")))
      (append
       (when (gemini-companion-revert-unsaved-p
              (gemini-companion-edit-file edit))
         '("unsaved changes here"))
       (when (memq 'changed remarks)
         '("file changed since the proposal"))
       (when (memq 'not-utf-8 remarks)
         '("not UTF-8"))
       (when (and (gemini-companion-clients-get (plist-get session :client)
                                                :discards-edits)
                  (or (gemini-companion-edit-edited-p edit)
                      (gemini-companion-hunk-marks
                       (gemini-companion-edit-proposal-buffer edit))))
         '("answer here: a yes in the terminal writes the CLI's own text"))))
     (list (list nil name))
     (mapcar
      (pcase-lambda (`(,rank ,remark))
        (list rank (concat ", " (propertize remark 'face 'bold))))
      (append
       (pcase (gemini-companion-edit-decision edit)
         ;; Its buffers stay while the user types in them.
         ('dismissed '((0 "closed")))
         ((and state (or 'accepted 'rejected))
          `((0 ,(symbol-name state)))))
       (when-let* ((objection (gemini-companion-edit-auto-objection edit)))
         `((3 ,objection)))
       (unless (gemini-companion-session-connected-p session)
         '((3 "not connected")))
       (when (memq 'new remarks)
         '((3 "new file"))))))))

(defun gemini-companion-header--amount (edit)
  "Return the amount of change in EDIT, parts of a header line."
  (let ((edits (gemini-companion-edits-open)))
    (append
     (pcase (gemini-companion-edit-counts edit)
       (`(,hunks ,excluded ,added ,removed)
        (list
         (list 5 (concat "  " (gemini-companion-hunk-lines added removed)))
         (list 7 (if-let* ((hunk (get-text-property (point)
                                                    'gemini-companion-hunk))
                           (index (seq-position (gemini-companion-edit-known-hunks edit)
                                                hunk)))
                     (format ", hunk %d of %d" (1+ index) hunks)
                   (format (ngettext ", %d hunk" ", %d hunks" hunks) hunks)))
         (list 4 (if (zerop excluded)
                     ""
                   (concat ", " (propertize (format "%d excluded" excluded)
                                            'face 'bold)))))))
     (when (gemini-companion-edit-edited-p edit)
       (list (list 6 (concat ", " (propertize "edited" 'face 'bold)))))
     (when (cdr edits)
       (list (list 6 (format ", %d of %d"
                             (1+ (or (seq-position edits edit #'eq) 0))
                             (length edits)))))
     ;; Two CLIs may propose files of one name.
     (list (list (if (cdr (gemini-companion-sessions)) 3 10)
                 (concat ", " (gemini-companion-session-name
                               (gemini-companion-edit-session edit))))))))

(defun gemini-companion-header--keys (excluded &optional panel)
  "Return the keys in the current buffer, or what follows after an answer.
The value consists of parts of a header line.  EXCLUDED is non-nil if
the hunk at point is excluded.  In a control panel, for which PANEL is
non-nil, the keys are letters, and more."
  (let (;; Include the keys that a new review ignores for a moment.
        (gemini-companion-review-new-until 0)
        (edit gemini-companion-edit-here))
    (if (memq (gemini-companion-edit-decision edit) '(accepted rejected))
        '((2 "  waiting for the next edit; any other key closes this"))
      (mapcar
       (pcase-lambda (`(,rank ,command ,name))
         (list rank
               (format "  %s %s"
                       (if panel
                           (propertize
                            (car (rassq command
                                        gemini-companion-review-letters))
                            'face 'bold)
                         (substitute-command-keys (format "\\[%s]" command)))
                       name)))
       (append
        '((2 gemini-companion-edit-accept "accept")
          (2 gemini-companion-edit-reject "reject")
          (9 gemini-companion-edit-reject-with-reason "with reason"))
        (let ((editing (eq (current-buffer)
                           (gemini-companion-edit-proposal-buffer edit))))
          (if (and editing (gemini-companion-review-unified-p))
              '((3 gemini-companion-review-edit "back to the diff"))
            `((8 gemini-companion-review-toggle-hunk ,(if excluded
                                                          "restore"
                                                        "exclude"))
              ,@(when panel
                  '((8 gemini-companion-review-next-hunk "next")
                    (10 gemini-companion-review-switch-view "unified diff")))
              ,@(unless editing
                  '((8 gemini-companion-review-edit "edit"))))))
        (when (eq (key-binding "?") 'gemini-companion-review-menu)
          '((7 gemini-companion-review-menu "more"))))))))

;;;; Control panel

(defun gemini-companion-header-panel (number count excluded width)
  "Return the line of a control panel: hunk NUMBER of COUNT, and its keys.
EXCLUDED is non-nil if it is excluded.  The line fits into WIDTH."
  (gemini-companion-name-fit
   (cons (list nil (concat (format " Hunk %d of %d" number count)
                           (and excluded
                                (concat ", " (propertize "excluded"
                                                         'face 'bold)))))
         (gemini-companion-header--keys excluded 'panel))
   (1- width)))

(provide 'gemini-companion-header)
;;; gemini-companion-header.el ends here
