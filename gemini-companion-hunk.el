;;; gemini-companion-hunk.el --- Hunks of a proposal  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The hunks of a proposal, as `diff' finds them, which of them are excluded,
;; and how many lines they add and remove.  The two texts are in buffers.
;;
;; A hunk is one block of changed lines, a list (OLD OLD-COUNT NEW NEW-COUNT) of
;; lines, from 1 on, in the original and in the proposal.  An excluded hunk is
;; marked by an overlay in the proposal, whose text stays; the text to be
;; written is computed from both when it is needed.

;;; Code:

(require 'gemini-companion-text)

;;;; Comparison

(defun gemini-companion-hunk-find (original proposal)
  "Return the hunks between the buffers ORIGINAL and PROPOSAL.
Signal an error if they cannot be compared."
  (unless (executable-find diff-command)
    (user-error "Cannot find the program %s; install it or customize \
`diff-command'"
                diff-command))
  (let ((texts (mapcar #'gemini-companion-text-of-buffer
                       (list original proposal))))
    (or (gemini-companion-text-diff texts)
        (unless (apply #'string= texts)
          (user-error "%s failed" diff-command)))))

;;;; Lines

(defun gemini-companion-hunk-line (line)
  "Return where LINE, from 1 on, of the current buffer begins."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (point-min))
      (forward-line (1- line))
      (point))))

(defun gemini-companion-hunk-counts (hunks &optional proposal)
  "Return the numbers of HUNKS and of their lines.
The value is a list (HUNKS EXCLUDED ADDED REMOVED): the number of hunks,
of those excluded from PROPOSAL, and of the lines that the other hunks
add and remove."
  (let* ((excluded (and proposal (gemini-companion-hunk-excluded proposal)))
         (others (seq-difference hunks excluded)))
    (list (length hunks)
          (length excluded)
          (apply #'+ (mapcar #'cl-fourth others))
          (apply #'+ (mapcar #'cl-second others)))))

(defun gemini-companion-hunk-lines (added removed)
  "Return a text for ADDED and REMOVED numbers of lines."
  (format "+%d %s%d" added (gemini-companion-text-sign ?\u2212 "-") removed))

(defun gemini-companion-hunk--text (line count)
  "Return COUNT lines of the current buffer from LINE on."
  (save-restriction
    (widen)
    (buffer-substring-no-properties
     (gemini-companion-hunk-line line)
     (gemini-companion-hunk-line (+ line count)))))

;;;; Excluding

(defface gemini-companion-excluded-text
  '((t :strike-through t))
  "Face of the text of a hunk that is excluded from a proposal.
The lines are dimmed, too."
  :group 'gemini-companion-reviews)

(defun gemini-companion-hunk-toggle (hunk original proposal)
  "Exclude HUNK of the buffer ORIGINAL from PROPOSAL, or restore it.
Return non-nil if it is excluded now."
  (if-let* ((mark (seq-find
                   (lambda (mark)
                     (equal hunk (overlay-get mark 'gemini-companion-hunk)))
                   (gemini-companion-hunk-marks proposal))))
      (ignore (delete-overlay mark))
    (pcase-let ((`(,old ,old-count ,new ,new-count) hunk))
      (with-current-buffer proposal
        (let* ((beg (gemini-companion-hunk-line new))
               (end (gemini-companion-hunk-line (+ new new-count)))
               (mark (make-overlay beg end nil (< beg end))))
          (pcase-dolist (`(,property ,value)
                         `((gemini-companion-hunk ,hunk)
                           (gemini-companion-original
                            ,(with-current-buffer original
                               (gemini-companion-hunk--text old old-count)))
                           (gemini-companion-proposed
                            ,(gemini-companion-hunk--text new new-count))
                           (face (gemini-companion-excluded-text shadow))
                           (line-prefix "x")
                           (wrap-prefix " ")))
            (overlay-put mark property value))
          ;; Without a line of its own it would be invisible.
          (when (= beg end)
            (overlay-put mark 'before-string
                         (propertize
                          (format (ngettext "x %d removed line stays\n"
                                            "x %d removed lines stay\n"
                                            old-count)
                                  old-count)
                          'face 'shadow))))))
    t))

(defun gemini-companion-hunk-marks (proposal)
  "Return the overlays of the hunks excluded from PROPOSAL, in order."
  (with-current-buffer proposal
    (save-restriction
      (widen)
      (seq-sort-by
       (lambda (mark) (car (overlay-get mark 'gemini-companion-hunk)))
       #'<
       (seq-filter #'gemini-companion-hunk--valid-p
                   (gemini-companion-hunk--all-marks))))))

(defun gemini-companion-hunk--all-marks ()
  "Return the overlays of excluded hunks in the accessible text."
  (seq-filter (lambda (overlay)
                (overlay-get overlay 'gemini-companion-original))
              (overlays-in (point-min) (point-max))))

(defun gemini-companion-hunk--valid-p (mark)
  "Return non-nil if MARK still has its lines, and these only.
The buffer of MARK is current, and widened."
  (let ((beg (overlay-start mark))
        (end (overlay-end mark))
        (original (overlay-get mark 'gemini-companion-original)))
    (and (string= (buffer-substring-no-properties beg end)
                  (overlay-get mark 'gemini-companion-proposed))
         (memq (char-before beg) '(?\n nil))
         (or (= end (point-max))
             (and (memq (char-before end) '(?\n nil))
                  ;; Otherwise the next line would become a part of the last.
                  (string-match-p "\\(?:\\`\\|\n\\)\\'" original))))))

(defun gemini-companion-hunk-prune (proposal &optional hunks original)
  "Restore the excluded hunks of PROPOSAL that were edited; return how many.
If ORIGINAL is non-nil, PROPOSAL was compared with it: restore also those
that are none of HUNKS."
  (let ((count 0))
    (with-current-buffer proposal
      (save-restriction
        (widen)
        (dolist (mark (gemini-companion-hunk--all-marks) count)
          (unless (and (gemini-companion-hunk--valid-p mark)
                       (or (null original)
                           (gemini-companion-hunk--match mark hunks original)))
            (delete-overlay mark)
            (setq count (1+ count))))))))

(defun gemini-companion-hunk--match (mark hunks original)
  "Return the one of HUNKS, of the buffer ORIGINAL, that is marked by MARK."
  (pcase (cl-find (line-number-at-pos (overlay-start mark)) hunks
                  :key #'cl-third)
    ((and `(,old ,old-count ,new ,new-count)
          hunk
          (guard (and (= (overlay-end mark)
                         (gemini-companion-hunk-line (+ new new-count)))
                      (string= (overlay-get mark 'gemini-companion-original)
                               (with-current-buffer original
                                 (gemini-companion-hunk--text old
                                                              old-count))))))
     (overlay-put mark 'gemini-companion-hunk hunk))))

(defun gemini-companion-hunk-excluded (proposal)
  "Return the hunks that are excluded from the buffer PROPOSAL.
They have the lines of the last comparison."
  (mapcar (lambda (mark) (overlay-get mark 'gemini-companion-hunk))
          (gemini-companion-hunk-marks proposal)))

(defun gemini-companion-hunk-remaining-text (proposal)
  "Return the text of the buffer PROPOSAL without the excluded hunks.
In their place it has the lines of the original."
  (let ((text (gemini-companion-text-of-buffer proposal))
        (position 0))
    (concat (mapconcat (lambda (mark)
                         (prog1 (concat
                                 (substring text position
                                            (1- (overlay-start mark)))
                                 (overlay-get mark 'gemini-companion-original))
                           (setq position (1- (overlay-end mark)))))
                       (gemini-companion-hunk-marks proposal) "")
            (substring text position))))

(provide 'gemini-companion-hunk)
;;; gemini-companion-hunk.el ends here
